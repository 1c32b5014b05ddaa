"""View of a result folder: that of its command, or one that fits any folder."""

from collections.abc import Callable, Mapping

from vlscore.data import Study
from vlscore.pages.measure_views import align_view, findings_view, sensitivity_view
from vlscore.pages.page_parts import CaseList, Column, Curves, RunView
from vlscore.pages.result_folder import ResultFolder
from vlscore.pages.score_views import compare_view, evaluate_view, judge_view, oracle_view
from vlscore.pages.view_parts import PageOptions, tables_named
from vlscore.stats import tables_of

_MOST_LISTED = 20_000
# A column of fewer different values has no distribution to look at.
_LEAST_DISTINCT = 6


def view_of(folder: ResultFolder, options: PageOptions) -> tuple[RunView, list[Study | None]]:
    """Return what a page shows of a folder, and the study of each listed case."""
    view = RunView(folder.name, folder.command)
    view.facts = _facts(folder, options)
    view.failures = folder.failures(particular=options.texts)
    view.signatures = list(filter(None, folder.signatures.values()))
    view.tables = tables_of(folder.content)
    if options.texts:
        view.notes += [str(note) for note in folder.record.get("notes") or ()]
    make = _VIEWS.get(folder.command, _generic)
    studies = make(folder, options, view)
    if not options.texts and view.cases is not None:
        _without_texts(view.cases)
    failed = sum(count for count, _ in view.failures)
    view.lead += f" {failed:,} failures." if failed else ""
    return view, studies


def _without_texts(cases: CaseList) -> None:
    """Replace ids by row numbers, and remove reports and columns of free text."""
    rows = cases.rows
    cases.cases = None
    first = cases.columns[0]
    kept = [c for c in cases.columns[1:] if not c.is_text or c.name in cases.picks]
    cases.columns = [Column("row", is_text=False), *kept]
    cases.values = {"row": list(range(1, rows + 1)), **{c.name: cases.values[c.name] for c in kept}}
    if cases.sort == first.name:
        cases.sort = "row"


def _facts(folder: ResultFolder, options: PageOptions) -> list[tuple[str, str]]:
    record = folder.record
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


def _train(folder: ResultFolder, options: PageOptions, view: RunView) -> list[Study | None]:
    record = folder.record
    view.lead = (
        f"{record['objective']}: {record['steps']:,} steps on {record['pairs']:,} pairs; the best "
        f"weights are of step {record['best_step']:,}."
    )
    log, tested = folder.columns("log.csv"), folder.columns("validation.csv")
    losses = {n.replace("_", " "): (log["step"], log[n]) for n in log if n.startswith("loss")}
    view.curves.append(Curves("Loss of each step", "step", losses))
    best = record["best_step"]
    recalls = {n: (tested["step"], tested[n]) for n in tested if n == "mean recall" or "R@" in n}
    for direction in ("image to text", "text to image"):
        of = {n.removeprefix(direction).strip(): b for n, b in recalls.items() if direction in n}
        of["mean of all"] = recalls["mean recall"]
        view.curves.append(Curves(f"Validation: recall, {direction}", "step", of, best))
    rate = {n: (log["step"], log[n]) for n in ("learning_rate", "gradient") if n in log}
    view.curves += [Curves(n.replace("_", " "), "step", {n: both}) for n, both in rate.items()]
    view.facts += [
        (name, str(value))
        for name, value in record["settings"].items()
        if value not in (None, "", False)
    ]
    from vlscore.pages.retrievals import add_retrievals

    return add_retrievals(folder, options, view)


def _generic(folder: ResultFolder, options: PageOptions, view: RunView) -> list[Study | None]:
    """Show the tables of any folder, and the largest table among its files as a list."""
    view.lead = f"Results of vlscore {folder.command}."
    sizes = {
        name: (folder.path / name).stat().st_size
        for name in folder.files
        if name.endswith((".csv", ".parquet", ".jsonl"))
        and name != "failures.csv"
        and not name.startswith("details.")
    }
    if not sizes:
        return []
    name = max(sizes, key=lambda each: sizes[each])
    values = {
        column: cells
        for column, cells in folder.columns(name).items()
        if not any(isinstance(cell, dict | list) for cell in cells)
    }
    if not values or not next(iter(values.values())):
        return []
    count = len(next(iter(values.values())))
    if count > _MOST_LISTED:
        view.notes.append(f"The list has the first {_MOST_LISTED:,} of {count:,} rows of {name}.")
        values = {column: cells[:_MOST_LISTED] for column, cells in values.items()}
    columns = [
        Column(n, is_text=any(isinstance(cell, str) for cell in cells))
        for n, cells in values.items()
    ]
    for column in [c for c in columns if not c.is_text][:6]:
        column.is_main = True
        column.has_card = len(set(values[column.name])) >= _LEAST_DISTINCT
    view.cases = CaseList(f"rows of {name}", columns, values, columns[0].name)
    return [None] * min(count, _MOST_LISTED)


_VIEWS: Mapping[str, Callable[[ResultFolder, PageOptions, RunView], list[Study | None]]] = {
    "evaluate": evaluate_view,
    "compare": compare_view,
    "align": align_view,
    "sensitivity": sensitivity_view,
    "judge": judge_view,
    "findings": findings_view,
    "oracle": oracle_view,
    "train": _train,
}
