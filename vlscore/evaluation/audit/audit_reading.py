"""What a generator's reports of altered films say of it: tables, verdict, figure."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import (
    FinishedRun,
    checked_arguments,
    finished_run,
    frame,
    generator,
    reading_result,
)
from vlscore.data import ColumnNames, Study, StudyTable, as_table, open_studies
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.audit.altered_films import FILMS, KEY
from vlscore.evaluation.audit.audit_settings import FORMATS, ORIGINAL
from vlscore.evaluation.audit.grounding import (
    effects_of,
    findings_frame,
    sentence_of,
    stated,
    verdict_of,
    whole,
)
from vlscore.evaluation.comparison.sources import split_name
from vlscore.metrics import compute as compute_metrics
from vlscore.stats import (
    UNDEFINED,
    Content,
    Interval,
    Presentation,
    Result,
    TextTable,
    bootstrap_mean,
    check_drawable,
    dot_plots,
    interval_in,
    text_table,
)

if TYPE_CHECKING:
    import pandas

_GROUNDING = (
    "grounding: share of the findings in the first report that go when their region is covered, "
    "minus the share that go when an equally large region elsewhere is (region); that go with "
    "another study's film, minus those that go under a harmless change (film). 1: every statement "
    "depends on the film; 0: none does. "
)
_CAPTION = (
    f"{_GROUNDING}invented: share of empty films whose report states it. 95 % intervals over "
    "studies; p: Wilcoxon's test of studies, adjusted (Benjamini-Hochberg)."
)
_WHOLE = (
    f"{_GROUNDING}n: number of findings. side: share of one-sided findings that change sides with "
    "the mirrored film, minus those that do under a harmless change. findings on blank: share of "
    "empty films about which a finding is stated. steadiness: findings that both reports state, of "
    "those that either does, under harmless changes. echo: mean ROUGE-L of the reports of two "
    "different films; same text: share of first reports that another film has word for word. 95 % "
    "intervals over studies."
)


@checked_arguments
def audit_read(
    folder: str | Path,
    reports: Sequence[str | Path],
    out: str | Path,
    *,
    columns: ColumnNames | Mapping[str, str] | None = None,
    figure: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Result:
    """Compare what generators wrote about altered films.

    Args:
        folder: that `audit_make` wrote.
        reports: tables of reports, one a generator, with the columns id (of films.csv) and
            candidate; "name=path" names one.
        out: folder for the results.
        columns: other names of columns.
        figure: "png", "svg" or "pdf": also draw the grounding of findings.
        seed: of the pairs of reports of which `echo` is computed.
        overwrite: compute again.

    Returns: frames "findings" (one row a generator and finding), "generators" (one row each, with
        the verdict in one sentence); reports.parquet has every report with its findings.
    Raises: InvalidSetting where `folder` is not that of `audit_make`; InvalidTable where a table
        has no report of it. A film without a report raises nothing: it is in failures.csv.
    """
    if figure is not None:
        check_drawable(figure)
    run = _films_of(folder)
    named = [(name or path.stem, path) for name, path in map(split_name, reports)]
    if not named or len(dict(named)) < len(named):
        raise InvalidSetting("name each generator's reports once, as in mine=reports.jsonl")
    tables = {name: open_studies(path, needs=(), columns=columns) for name, path in named}
    key = {
        "command": "audit read",
        "films": run.digests[KEY],
        "reports": {name: table.sha256 for name, table in tables.items()},
        "columns": asdict(ColumnNames.named(columns)),
        "figure": figure,
        "seed": seed,
    }

    def compute(place: Path) -> Content:
        import pandas

        films = _read_key(run)
        read = cache(stated)
        failures: list[Failure] = []
        notes: list[str] = []
        by_finding: list[dict[str, Any]] = []
        generators: list[dict[str, Any]] = []
        rows = []
        for name, table in tables.items():
            texts = _reports_of(table, dict.fromkeys(films["id"]), name, failures, notes)
            own = films.assign(generator=name, report=[texts.get(id) for id in films["id"]])
            written = own[own["report"].notna()]
            written = written.assign(stated=[read(text) for text in written["report"]])
            first = written[written["alteration"] == ORIGINAL]
            originals = first["report"].tolist()
            effects = effects_of(written)
            records = findings_frame(effects)
            by_finding += [
                {"generator": name, **record, "verdict": verdict_of(record)} for record in records
            ]
            generators.append(
                {
                    "generator": name,
                    **{n: v for n, v in records[0].items() if n in _OF_ALL},
                    **whole(effects, originals, _echo(originals, seed)),
                    "verdict": sentence_of(name, records),
                }
            )
            rows.append(own[_FILM].join(_changes(written, first)))
        frames = {"findings": frame(by_finding), "generators": frame(generators)}
        return Content(
            frames,
            {"reports.parquet": pandas.concat(rows, ignore_index=True).infer_objects()},
            failures,
            notes=[*(each["verdict"] for each in generators), *notes],
            facts={
                "audit": str(Path(folder).resolve()),
                "films": len(films),
                "studies": films["study"].nunique(),
            },
        )

    return Result.make(out, key, compute, figure=figure, overwrite=overwrite)


def _changes(written: "pandas.DataFrame", first: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return for each report the findings that go from the study's first one, and the new ones."""
    import pandas

    before = dict(zip(first["study"], first["stated"], strict=True))
    known = written[written["study"].isin(before)]
    changes = []
    for study, found in zip(known["study"], known["stated"], strict=True):
        gone, new = before[study].keys() - found.keys(), found.keys() - before[study].keys()
        texts = (", ".join(sorted(n.replace("_", " ") for n in names)) for names in (gone, new))
        changes.append((len(gone), len(new), *texts))
    return pandas.DataFrame(changes, index=known.index, columns=_CHANGES)


def _films_of(folder: str | Path) -> FinishedRun:
    run = finished_run(folder)
    if run is None or run.key.get("command") != "audit make":
        raise InvalidSetting(f"{folder}: name the folder that `vlscore audit make --out` wrote")
    run.check()
    return run


def _read_key(run: FinishedRun) -> "pandas.DataFrame":
    """Return the rows of key.jsonl, with the path of each film as its image."""
    import pandas

    path = run.file(KEY)
    with reading_result(path):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        suffix = FORMATS[run.key["settings"]["format"]]
        place = run.folder.resolve() / FILMS
        names = ["id", "study", "alteration", "finding", "sides"]
        found = pandas.DataFrame(rows, dtype=object)[names]
        return found.assign(image=[f"{place / id}.{suffix}" for id in found["id"]])


def _reports_of(
    table: StudyTable,
    films: Collection[str],
    name: str,
    failures: list[Failure],
    notes: list[str],
) -> dict[str, str]:
    """Return id of a film -> the report of it; an empty report states nothing.

    Args: films: ids.
    """
    found: dict[str, str] = {}
    unknown = 0
    for row in as_table(table, {"candidate"}):
        if row.id not in films:
            unknown += 1
        elif isinstance(row, Study):
            found[row.id] = row.candidate or ""
        else:
            failures.append(Failure(name, row.id, row.reason))
    if not found:
        raise InvalidTable(f"{table.path}: no row has the id of a film of the audit")
    known = {*found, *(each.id for each in failures if each.row == name)}
    failures += [Failure(name, id, "the film has no report") for id in films if id not in known]
    if unknown:
        notes.append(f"{table.path}: {unknown} rows have no id of a film and are left out")
    return found


def _echo(originals: Sequence[str], seed: int) -> Interval:
    """Return the mean ROUGE-L of the first reports of two different films."""
    if len(originals) < 2:
        return UNDEFINED
    order = generator(seed).permutation(len(originals))
    pairs = list(zip(order, np.roll(order, 1), strict=True))
    ones, others = ([originals[int(pair[k])] for pair in pairs] for k in (0, 1))
    values = np.asarray(compute_metrics("rouge-l", ones, others)["rouge-l"])
    known = values[np.isfinite(values)]
    return bootstrap_mean(known) if len(known) else UNDEFINED


# Columns of reports.parquet.
_FILM = ["generator", "id", "study", "alteration", "finding", "image", "report"]
_CHANGES = ["gone", "new", "findings_gone", "findings_new"]
# What the row of a generator has of all its findings together.
_OF_ALL = ("n_region", "grounding_region", "n_film", "grounding_film")
_COLUMNS = {
    "generator": "generator",
    "finding": "finding",
    "n_region": "n",
    "grounding_region": "grounding (region)",
    "adjusted_p_region": "p",
    "n_film": "n ",
    "grounding_film": "grounding (film)",
    "invented": "invented",
    "verdict": "verdict",
}
# Cases of a finding that is drawn.
_LEAST_DRAWN = 5
# Findings of a printed table, those with most cases.
_MOST_FINDINGS = 12


def _tables(run: Result) -> list[TextTable]:
    import pandas

    findings, parts = run.frames["findings"], []
    for _, own in findings.groupby("generator", sort=False):
        most = own[["n_region", "n_film"]].max(axis=1)[1:]
        rest = most.sort_values(ascending=False, kind="stable").index[:_MOST_FINDINGS]
        parts.append(own.loc[[own.index[0], *rest]])
    shown = pandas.concat(parts) if parts else findings
    shown = shown.assign(finding=shown["finding"].str.replace("_", " "))
    names = {
        "generator": "generator",
        "grounding_region": "grounding (region)", "n_region": "n",
        "grounding_film": "grounding (film)", "n_film": "n ",
        "side": "side", "n_side": "n  ",
        "findings_on_blank": "findings on blank",
        "steadiness": "steadiness", "echo": "echo", "same_text": "same text",
    }  # fmt: skip
    return [
        text_table("Generators", run.frames["generators"], _WHOLE, columns=names, digits=2),
        text_table("Findings", shown, _CAPTION, columns=_COLUMNS, digits=2),
    ]


def draw_audit(run: Result, format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw the grounding of each finding that has enough cases, one panel for a generator."""
    panels: dict[str, dict[str, Interval]] = {}
    by_film: dict[str, list[str]] = {}
    for each in run.frames["findings"].to_dict("records"):
        name, generator = each["finding"].replace("_", " "), each["generator"]
        way = "region" if each["n_region"] >= _LEAST_DRAWN else "film"
        if each[f"n_{way}"] >= _LEAST_DRAWN:
            panels.setdefault(generator, {})[name] = interval_in(each, f"grounding_{way}")
            by_film.setdefault(generator, []).extend([name] if way == "film" else [])
    path = run.folder / f"grounding.{format}"
    note = "Filled dots: the region of the finding is hidden; hollow: another film is shown."
    if lacking := [name for name in run.frames["generators"]["generator"] if name not in panels]:
        note += f" Too few findings: {', '.join(lacking)}."
    lines = {name: {"": 0.0, "every statement depends on it": 1.0} for name in panels}
    dot_plots(panels, path, title="Grounding of findings", lines=lines, note=note, hollow=by_film)
    return [path]


PRESENTATION = Presentation(_tables, draw_audit, page="vlscore.pages.audit_view:audit_view")
