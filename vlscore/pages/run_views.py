"""View of a result folder: that of its command, or one that fits any folder."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import RECORD, unit_rows, with_noun
from vlscore.data import Study
from vlscore.errors import DemonstrationEncoderWarning, Failure, VLScoreError
from vlscore.pages.page_parts import CaseList, Column, Curves, RunView
from vlscore.pages.view_parts import PageOptions, cases_of, judged_study, tables_named
from vlscore.stats import FAILURES, Result, TextTable

if TYPE_CHECKING:
    from vlscore.training import Pairs

#: Validation pairs that are embedded for a page of a training; the others are left out.
MOST_PAIRS = 500
_MOST_LISTED = 20_000
# A column of fewer different values has no distribution to look at.
_LEAST_DISTINCT = 6
# Parts in which reasons of one kind differ: quoted text, paths, numbers.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\S*/\S+|\d+(?:\.\d+)?")


def view_of(run: Result, options: PageOptions) -> RunView:
    """Return what a page shows of a folder."""
    view = RunView(run.folder.resolve().name, run.command or "results")
    view.facts = _facts(run, options)
    view.failures = _by_reason(run.failures, particular=options.texts)
    view.signatures = list(run.signatures.values())
    view.tables = run.tables if options.texts else _tables_without_texts(run)
    if options.texts:
        view.run_notes += [str(note) for note in run.record.get("notes") or ()]
    page = run.presentation.page
    fill = resolve_name(page) if page else _generic
    fill(run, options, view)
    if not options.texts and view.cases is not None:
        _without_texts(view.cases)
    failed = sum(count for count, _ in view.failures)
    view.lead += f" {with_noun(failed, 'failure')}." if failed else ""
    return view


def _by_reason(failures: Iterable[Failure], particular: bool) -> list[tuple[int, str]]:
    """Return how many rows failed for each reason, the most frequent first.

    Args: particular: whether the first reason of its kind is written out; without, what reasons
        quote (paths, ids, numbers) is replaced by dots.
    """
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for each in failures:
        kind = _PARTICULAR.sub("…", each.reason)
        counts[kind] += 1
        first.setdefault(kind, each.reason)
    return [(n, first[k] if particular else k) for k, n in counts.most_common()]


def _tables_without_texts(run: Result) -> list[TextTable]:
    """Return the tables without texts, and without the values that name a user's own groups."""
    groups = run.frames.get("subgroups")
    columns = set() if groups is None else set(groups["column"])
    tables = []
    for table in (each for each in run.tables if not each.has_texts):
        first = table.columns[0] if table.columns else ""
        if first in columns and table.title.endswith(f" by {first}"):
            rows = [(f"group {k}", *row[1:]) for k, row in enumerate(table.rows, start=1)]
            table = replace(table, rows=tuple(rows))
        tables.append(table)
    return tables


def _without_texts(cases: CaseList) -> None:
    """Replace ids by row numbers, and remove reports and columns of free text."""
    cases.cases = None
    first = cases.columns[0]
    others = [
        c
        for c in cases.columns[1:]
        if c.name in cases.picks
        or not (c.text or any(isinstance(value, str) for value in cases.values[c.name]))
    ]
    cases.columns = [Column("row", text=False), *others]
    cases.values = cases.values[[c.name for c in others]]
    cases.values.insert(0, "row", range(1, len(cases.values) + 1))
    if cases.sort == first.name:
        cases.sort = "row"


def _facts(run: Result, options: PageOptions) -> list[tuple[str, str]]:
    record = run.record
    encoder = record.get("encoder")
    named = encoder.get("title") or encoder.get("name") if isinstance(encoder, Mapping) else None
    facts = {
        "finished": record.get("finished"),
        "vlscore": record.get("vlscore"),
        "encoder": named,
        "device": record.get("device"),
        "seconds": record.get("seconds"),
    }
    if options.texts:
        words = [str(word) for word in record.get("command") or ()]
        facts["command"] = " ".join(["vlscore", *words[1:]]) if words else None
        facts["table"] = record.get("table") or ", ".join(
            f"{name}: {path}" for name, path in tables_named(record).items()
        )
    return [(name, str(value)) for name, value in facts.items() if value not in (None, "")]


def train_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of a training: its curves, and the validation pairs."""
    record = run.record
    view.lead = (
        f"{record['objective']}: {record['steps']:,} steps on {record['pairs']:,} pairs; the best "
        f"weights are of step {record['best_step']:,}."
    )
    log, tested = (run.rows(name).to_dict("list") for name in ("log.csv", "validation.csv"))
    losses = [(n.replace("_", " "), log["step"], log[n]) for n in log if n.startswith("loss")]
    view.curves.append(Curves("Loss of each step", "step", losses))
    best = record["best_step"]
    steps = tested["step"]
    for direction in ("image to text", "text to image"):
        names = {n: n.removeprefix(direction).strip() for n in tested if f"{direction} R@" in n}
        names["mean recall"] = "mean of all"
        series = [(shown, steps, tested[name]) for name, shown in names.items()]
        view.curves.append(Curves(f"Validation: recall, {direction}", "step", series, best))
    for name in ("learning_rate", "gradient"):
        if name in log:
            shown = name.replace("_", " ")
            view.curves.append(Curves(shown, "step", [(name, log["step"], log[name])]))
    view.facts += [
        (name, str(value))
        for name, value in record["settings"].items()
        if value not in (None, "", False)
    ]
    add_retrievals(run, options, view)


def add_retrievals(run: Result, options: PageOptions, view: RunView) -> None:
    """List the validation pairs by the rank of their report.

    The pairs that the training decoded into its folder are embedded with the trained weights. A
    note says why there is no list, or that it has only the first pairs.

    Args: view: gets a list of cases: each with the report that is nearest to the image.
    """
    try:
        pairs, is_own = _pairs(run)
        import pandas

        from vlscore.encoders import encoder_from_file, load_encoder
        from vlscore.training import split

        settings = run.record["settings"]
        rows = np.arange(len(pairs))
        if not is_own:
            rows = split(pairs, settings["validation_share"], settings["seed"])[1]
        if not len(rows):
            raise VLScoreError("the run has no validation pairs")
        texts = [pairs.texts[row] for row in rows[:MOST_PAIRS]]
        # Arrays, which the page shows as it does files.
        pixels: list[Any] = [pairs.image(int(row)) for row in rows[:MOST_PAIRS]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DemonstrationEncoderWarning)
            # The folder may be somebody else's: its name of an encoder chooses registered ones.
            name = encoder_from_file(run.record["start"]["encoder"], run.folder / RECORD)
            encoder = load_encoder(name, weights=run.folder)
            images, reports = encoder.encode_images(pixels), encoder.encode_reports(texts)
    except (VLScoreError, OSError, KeyError) as error:
        view.notes.append(f"The best and the worst retrievals are not shown: {error}.")
        return
    ids = [pairs.ids[row] for row in rows[:MOST_PAIRS]]
    scores = np.round(unit_rows(images.numpy()) @ unit_rows(reports.numpy()).T, 12)
    ranks, nearest = ranks_of(scores, texts)
    values = pandas.DataFrame(
        {
            "id": ids,
            "rank": ranks,
            "cosine of own report": scores.diagonal(),
            "cosine of nearest report": scores[np.arange(len(ids)), nearest],
        }
    )
    main = list(values)[1:]
    view.cases = CaseList("validation images", values, "rank", main, {"rank": -1}, descending=True)
    view.lead += (
        f" The list has {len(ids):,} of {len(rows):,} validation images: rank of an image's own "
        f"report among {len(set(texts)):,} different ones, and the report nearest to the image."
    )
    # `add_images` takes arrays, too.
    shown: list[Any] = [(each,) for each in pixels]
    view.cases.studies = [
        Study(id, shown[k], reference=texts[k], candidate=texts[near], row=k + 1)
        for k, (id, near) in enumerate(zip(ids, nearest, strict=True))
    ]
    if options.texts:
        title = "report nearest to the image"
        view.cases.cases = cases_of(
            view.cases.studies, options, lambda row, study: judged_study(study, title=title)
        )


def ranks_of(scores: np.ndarray, texts: list[str]) -> tuple[list[int], list[int]]:
    """Return the rank of each image's own report, 1 the best, and the place of the nearest report.

    Equal texts are one report.

    Args: scores: (n, n), similarity of image i and report j; texts: n reports.

    >>> ranks_of(np.array([[0.2, 0.9, 0.9], [0.1, 0.5, 0.5], [0, 1, 1]]), ["a", "b", "b"])
    ([2, 1, 1], [1, 1, 1])
    """
    first = {text: k for k, text in reversed(list(enumerate(texts)))}
    columns = np.array(sorted(first.values()))
    different = scores[:, columns]
    own = scores[np.arange(len(texts)), [first[text] for text in texts]]
    ranks = 1 + (different > own[:, None]).sum(axis=1)
    return ranks.tolist(), columns[different.argmax(axis=1)].tolist()


def _pairs(run: Result) -> "tuple[Pairs, bool]":
    """Return the decoded pairs, and whether all of them are for validation.

    Raises: VLScoreError where they are not in the folder, or are not those of the run.
    """
    is_own = run.key.get("validation") is not None
    place: Path = run.folder / ("pairs-validation" if is_own else "pairs")
    pairs = None
    if place.is_dir():
        from vlscore.training import decoded_pairs

        pairs = decoded_pairs(place)
    if pairs is None:
        raise VLScoreError(
            f"the folder has no decoded pairs in {place.name}; a run with --pairs stored them "
            "elsewhere"
        )
    if pairs.sha256 != run.record.get("validation_sha256" if is_own else "data_sha256"):
        raise VLScoreError(f"the pairs in {place.name} are not those of the run")
    return pairs, is_own


def _generic(run: Result, options: PageOptions, view: RunView) -> None:
    """Show the tables of any folder, and the largest table among its files as a list."""
    view.lead = f"Results of vlscore {view.command}."
    sizes = {
        name: (run.folder / name).stat().st_size
        for name in run.digests
        if name.endswith((".csv", ".parquet", ".jsonl"))
        and name != FAILURES
        and not name.startswith("details.")
    }
    if not sizes:
        return
    name = max(sizes, key=lambda each: sizes[each])
    rows = run.rows(name)
    plain = [
        n for n in rows if not rows[n].map(lambda x: isinstance(x, dict | list | np.ndarray)).any()
    ]
    if rows.empty or not plain:
        return
    if len(rows) > _MOST_LISTED:
        view.notes.append(
            f"The list has the first {_MOST_LISTED:,} of {len(rows):,} rows of {name}."
        )
    values = rows[plain].head(_MOST_LISTED)
    view.cases = CaseList(f"rows of {name}", values, plain[0])
    for column in [c for c in view.cases.columns if not c.text][:6]:
        column.main = True
        column.card = values[column.name].nunique(dropna=False) >= _LEAST_DISTINCT
