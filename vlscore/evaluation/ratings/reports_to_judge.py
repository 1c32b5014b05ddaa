"""Reports that raters judge: those of systems, or those that metrics chose for each study."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vlscore.core import FinishedRun, Signature, file_digest, finished_run, with_noun
from vlscore.data import ColumnNames, Study, TextPolicy, open_studies
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.comparison.sources import open_images, open_sources, split_name
from vlscore.evaluation.comparison.systems import join
from vlscore.evaluation.ratings.sheet_files import SheetItem

# Items to judge, notes, and the images of their studies.
Material = tuple[list[SheetItem], list[str], Mapping[str, Study | Failure]]


def open_reports_to_judge(
    sources: Sequence[str | Path],
    studies: str | Path | None,
    image_root: str | Path | None,
    images: bool,
) -> tuple[dict[str, Any], Callable[[], Material]]:
    """Open reports to judge, before they have names.

    Args:
        sources: tables of candidates, one a system, or folders of `oracle`; as they are or as
            "name=path".
        studies: of oracles, the table that was searched for, where it has moved; of systems, a
            table with the images.
        image_root: folder that image paths start from.
        images: whether the images of the studies are wanted.

    Returns: what identifies the reports; and a function that reads them, an item for each different
        report of a study.
    Raises: InvalidTable, InvalidSetting where the sources cannot be read together.
    """
    where = {
        "studies": studies and file_digest(Path(studies)),
        "image_root": image_root and str(Path(image_root).resolve()),
    }
    runs = [(name, path, finished_run(path)) for name, path in map(split_name, sources)]
    if any(run is not None and run.key.get("command") == "oracle" for *_, run in runs):
        from vlscore.retrieval import HITS  # loads torch

        oracles = _oracles(runs, HITS)
        key: dict[str, Any] = {name: run.digests[HITS] for name, run in oracles.items()}
        key = {"oracles": key, **where}
        return key, lambda: _of_oracles(oracles, HITS, studies, image_root, images)
    opened = open_sources(sources)

    def of_systems() -> Material:
        table = None
        if images and studies is not None:
            table = open_studies(studies, needs={"image"}, image_root=image_root)
        elif images:
            if not any(each.has_images for each in opened):
                raise InvalidTable("no table has a column image; name one with studies (--studies)")
            table = open_images(opened, image_root)
        systems = join(opened, table)
        items = []
        for k, study in enumerate(systems.studies):
            texts = {name: candidates[k] for name, candidates in systems.candidates.items()}
            items += _distinct(study.id, study.reference or "", texts)
        return items, list(systems.notes), systems.images

    return {"systems": {each.name: each.table.key for each in opened}, **where}, of_systems


def _of_oracles(
    oracles: Mapping[str, FinishedRun],
    hits_file: str,
    studies: str | Path | None,
    image_root: str | Path | None,
    images: bool,
) -> Material:
    """Return the best reports of the studies that all oracles answer."""
    run = next(iter(oracles.values()))
    path = Path(studies if studies is not None else run.record["table"])
    columns = ColumnNames(**run.key["columns"])
    table = open_studies(path, needs={"reference"}, columns=columns)
    if table.sha256 != run.key["table_sha256"]:
        raise InvalidTable(f"{path}: is not the table that {run.folder} was made of")
    policy = TextPolicy.named(Signature.parse(run.key["signature"]).get("txt") or "all")
    read = (row.selected(policy) for row in table if isinstance(row, Study))
    references = {row.id: row.reference or "" for row in read}
    best: dict[str, dict[str, str]] = {}
    for name, oracle in oracles.items():
        hits = pq.read_table(oracle.file(hits_file), columns=["study_id", "rank", "text"])
        for hit in hits.to_pylist():
            if hit["rank"] == 1 and hit["study_id"] in references:
                best.setdefault(hit["study_id"], {})[name] = hit["text"]
    every = {study: texts for study, texts in best.items() if len(texts) == len(oracles)}
    if not every:
        raise InvalidTable("no study has a hit of every oracle; look into their failures")
    notes = []
    if lacking := len(best) - len(every):
        notes = [f"left out: {with_noun(lacking, 'study')} without a hit of every oracle"]
    shown: dict[str, Study | Failure] = {}
    if images:
        if studies is None and image_root is None:
            image_root = run.key.get("image_root")
        rows = open_studies(path, needs={"image"}, image_root=image_root, columns=columns)
        shown = {row.id: row for row in rows if row.id is not None}
    items = []
    for study, texts in every.items():
        items += _distinct(study, references[study], texts)
    return items, notes, shown


def _distinct(study: str, reference: str, texts: Mapping[str, str]) -> list[SheetItem]:
    """Return an item for each different report of a study."""
    return [
        SheetItem("", study, reference, {text: tuple(n for n, own in texts.items() if own == text)})
        for text in dict.fromkeys(texts.values())
    ]


def _oracles(
    runs: Sequence[tuple[str | None, Path, FinishedRun | None]], hits_file: str
) -> dict[str, FinishedRun]:
    """Return name -> the oracle's run; all chose from the same reports for the same studies."""
    from vlscore.retrieval import REPORTS as reports  # loads torch

    found: dict[str, FinishedRun] = {}
    made_of: dict[str, Any] = {}
    for name, path, run in runs:
        if run is None or hits_file not in run.digests:
            raise InvalidTable(
                f"{path}: holds no hits; give the folder that vlscore oracle --out wrote"
            )
        run.check()
        signature = Signature.parse(run.key["signature"])
        called = name or signature.subject
        if called in found:
            raise InvalidSetting(f"two oracles would be called {called}; name them, as in b={path}")
        found[called] = run
        mine = {
            "the table of studies": run.key["table_sha256"],
            "the index": run.key["index"][reports],
            "sections of reports": signature.get("txt"),
            "what was excluded": signature.get("excl"),
        }
        made_of = made_of or mine
        if differs := [what for what in mine if mine[what] != made_of[what]]:
            first = next(iter(found.values()))
            raise InvalidSetting(
                f"{first.folder} and {run.folder} cannot be judged together: they differ in "
                f"{', '.join(differs)}"
            )
    return found
