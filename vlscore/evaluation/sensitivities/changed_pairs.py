"""Pairs of an original report and a perturbed one: read, and scored.

The authors of the VLScore paper make their pairs by a script in the folder `perturbed_data` of
their repository, which has one control file a kind: tables with the columns Path_frontal, gt and
output, of MIMIC-CXR's reports. A table's name says its kind; "gt" is the report as it was and
"output" the changed one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import OnProgress, file_digest, no_progress, text_digest
from vlscore.data import Study, TextPolicy, checked_limit, columns_of, kind_of, select, whole_rows
from vlscore.errors import InvalidTable, VLScoreError
from vlscore.evaluation.score_table import score_table
from vlscore.evaluation.scored import Scored
from vlscore.evaluation.study_images import ImagesOf
from vlscore.metrics import FLAGS, Item, Scorer
from vlscore.perturb import KINDS

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_FILE = "perturbations.jsonl"
_BOTH = ("original", "perturbed")
# Ends of the columns of a metric.
ENDS = tuple(f".{name}" for name in _BOTH)
TRUNCATED = FLAGS[0]
# Columns of the tables of the paper's authors: image, original and changed report.
_AUTHORS_COLUMNS = ("Path_frontal", "gt", "output")
# Part of a table's name, in small letters -> kind; "noninformative" is looked for before others.
_AUTHORS_KINDS = {
    "noninformative": "replace-uninformative",
    "insignificant": "remove-insignificant",
    "pathology": "remove-pathology",
    "location": "change-location",
    "severity": "change-severity",
    "constant": "standard-normal",
}
# MIMIC-CXR's layout: .../p10000032/s50414267/DICOM_ID.jpg
_AUTHORS_STUDY = re.compile(r"(?:^|[/\\])s(\d+)[/\\]")


def read_pairs(place: str | Path, limit: int | None = None) -> "DataFrame":
    """Read the changes of reports, one a row.

    Args:
        place: file of records, or the folder that `vlscore perturb --out` wrote; or tables as the
            VLScore paper's authors make them, a folder of them or one (`authors_tables`).
        limit: read only so many, the first ones of each file; None for all.

    Returns: the columns study_id, kind, is_significant (whether a good metric should notice),
        original, perturbed, category (ReXVal's, where the change is an error, else None); of the
        authors' tables also image, the path that they name. `attrs["sha256"]`: digest of the files.
    Raises: InvalidTable naming the row that is no record, or the place that holds none.
    """
    from pandas import DataFrame

    tables = authors_tables(place)
    files = list(tables) or [_pairs_file(place)]
    rows: list[dict[str, Any]] = []
    for path in files:
        own = _read_authors_rows(path, tables[path]) if tables else _read_rows(path)
        rows += islice(own, checked_limit(limit))
    if not rows:
        raise InvalidTable(f"{place if tables else files[0]}: holds no perturbations")
    lines = "\n".join(f"{path.name} {file_digest(path)}" for path in files)
    pairs = DataFrame(rows)
    pairs.attrs["sha256"] = text_digest(lines).hex() if tables else file_digest(files[0])
    return pairs


def images_of_pairs(pairs: "DataFrame", image_root: str | Path | None) -> dict[str, Study]:
    """Return the studies by id with the images that the authors' tables name.

    Args: image_root: folder from which relative paths start; default: the current one.
    """
    first = pairs.drop_duplicates("study_id")
    root = Path(image_root or ".")
    named = zip(first["study_id"], first["image"], strict=True)
    return {study: Study(study, (root / image,)) for study, image in named}


def authors_tables(place: str | Path) -> dict[Path, str]:
    """Return the tables of the paper's authors in a folder, or the one at a path, with their kinds.

    A .csv file with other columns is not one of their tables; a folder of `vlscore perturb` has
    none.
    """
    path = Path(place)
    if (path / _FILE).is_file():
        return {}
    found = {}
    for file in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
        kind = _kind_in(file)
        is_table = file.is_file() and file.suffix == ".csv" and kind is not None
        if is_table and set(_AUTHORS_COLUMNS) <= set(columns_of(file)):
            found[file] = str(kind)
    return found


def _kind_in(file: Path) -> str | None:
    """Return the kind of change that the name of an authors' file says."""
    name = file.stem.lower()
    return next((kind for part, kind in _AUTHORS_KINDS.items() if part in name), None)


def _read_authors_rows(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the changes of one table of the paper's authors, with the path of the image.

    A study's id is its number in MIMIC-CXR where the image's path has it, else the path. An empty
    "output" is a report that states nothing.

    Raises: InvalidTable naming the row without an image or a report.
    """
    known = KINDS[kind]
    for row, record in whole_rows(path):
        entries = [record.get(name) for name in _AUTHORS_COLUMNS]
        image, original, perturbed = (each if isinstance(each, str) else "" for each in entries)
        for name, value in zip(_AUTHORS_COLUMNS, (image, original), strict=False):
            if not value.strip():
                raise InvalidTable(f'{path}, row {row}: "{name}" is empty')
        study = _AUTHORS_STUDY.search(image)
        yield {
            "study_id": study[1] if study else image,
            "kind": kind,
            "is_significant": known.expected == "significant",
            "original": original,
            "perturbed": perturbed,
            "category": known.category or None,
            "image": image,
        }


def _pairs_file(place: str | Path) -> Path:
    """Return the file of changes; raise InvalidTable where there is none."""
    path = Path(place)
    if path.is_dir():
        # Control files, of which the authors' script has made no tables yet.
        has_controls = any(_kind_in(file) is not None for file in path.glob("*.csv"))
        if has_controls and not (path / _FILE).is_file():
            raise InvalidTable(
                f"{path} has control files of the VLScore paper's authors, but no table with the "
                f"columns {', '.join(_AUTHORS_COLUMNS)}: make the tables with their repository's "
                "script, and name the folder that it writes"
            )
        path = path / _FILE
    if not path.is_file():
        raise InvalidTable(
            f"{path}: no such file; make one with `vlscore perturb reports.csv --out {place}`"
        )
    return path


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the changes of a file; raise InvalidTable naming the row that is none."""
    for row, record in whole_rows(path):
        if (reason := _why_no_pair(record)) is not None:
            raise InvalidTable(f"{path}, row {row}: {reason}")
        yield {
            "study_id": str(record["study_id"]),
            "kind": record["kind"],
            "is_significant": record["expected"] == "significant",
            "original": record["original"],
            "perturbed": record["perturbed"],
            "category": record.get("category") or None,
        }


def _why_no_pair(record: Mapping[str, Any]) -> str | None:
    for name in ("study_id", "kind", "expected", *_BOTH):
        if name not in record:
            return f'field "{name}" is absent'
    for name in ("kind", *_BOTH):
        if not isinstance(record[name], str):
            return f'"{name}" holds {kind_of(record[name])}, not a text'
    if record["expected"] not in ("significant", "insignificant"):
        return f'"expected" is "significant" or "insignificant", not {record["expected"]!r}'
    return None


def drop_of(scored: Scored, metric: str) -> "Series[float]":
    """Return (n,) losses by the perturbation; above 0 is worse, whatever the direction."""
    original, perturbed = (scored.rows[metric + end] for end in ENDS)
    return (original - perturbed) * (1 if scored.higher_is_better[metric] else -1)


def score_pairs(
    pairs: "DataFrame",
    scorer: Scorer,
    shown: ImagesOf | None = None,
    *,
    which: Sequence[str] = _BOTH,
    workers: int = 0,
    on_progress: OnProgress = no_progress,
) -> Scored:
    """Score the original and the perturbed report of every pair; the original is the reference.

    Args:
        pairs: from `read_pairs`.
        shown: returns the images of a study, as a new object each time; None: there are none.
        which: columns of the candidates.

    Returns: n rows with the columns METRIC.original and METRIC.perturbed, and where an encoder read
        the reports, `candidate_truncated.original` and `.perturbed`: whether not to their end.
    """
    from pandas import DataFrame

    # Both reports are taken as references are: a perturbed one has the original's headings.
    selected: list[dict[str, str] | VLScoreError] = []
    for both in pairs[list(_BOTH)].to_dict("records"):
        try:
            selected.append(
                {n: select(text, scorer.text_policy, "reference") for n, text in both.items()}
            )
        except VLScoreError as error:
            selected.append(error)
    scorer = copy(scorer)
    scorer.text_policy = TextPolicy()
    texts_of = list(zip(pairs["study_id"], selected, strict=True))
    # Each study counts once, however many changes were made of its report.
    originals = {s: both["original"] for s, both in texts_of if isinstance(both, dict)}
    scorer = scorer.prepared(originals.values())
    # Each pair of texts is scored once: many changes are made of one original report.
    keys = [
        (study, both[column], both["original"]) if isinstance(both, dict) else both
        for column in which
        for study, both in texts_of
    ]
    row_of = {key: row for row, key in enumerate(dict.fromkeys(keys))}
    items = [
        Item(key[1], key[2], None if shown is None else shown(key[0]))
        if isinstance(key, tuple)
        else key
        for key in row_of
    ]
    table = score_table(items, scorer, workers=workers, on_progress=on_progress)
    whole, count = Scored.of(table, {}).at([row_of[key] for key in keys]), len(pairs)
    names = [str(metric) for metric in table.metrics]
    flags = [flag for flag in (TRUNCATED,) if flag in whole.rows]
    columns = {
        f"{name}.{column}": whole.rows[name].to_numpy()[k * count : (k + 1) * count]
        for k, column in enumerate(which)
        for name in (*names, *flags)
    }
    failures: dict[tuple[int, str], str] = {}
    for (row, name), why in whole.failures.items():
        failures.setdefault((row % count, name), why)
    return Scored(
        DataFrame(columns),
        table.signatures,
        {name: whole.higher_is_better[name] for name in names},
        failures,
    )
