"""Perturbation of every report of a table, into a data set in a folder."""

import hashlib
import json
from collections import Counter
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

from vlscore.core import (
    OnProgress,
    __version__,
    json_line,
    no_progress,
    output_folder,
    resource_path,
    write_results,
    writing,
)
from vlscore.data import Report, ReportTable, open_reports
from vlscore.errors import Failure, InvalidTable
from vlscore.perturb.edits import PerturbationSettings
from vlscore.perturb.generate import perturbations_of, why_nothing
from vlscore.perturb.parsed_report import ParsedReport
from vlscore.perturb.registry import Kind, kinds_named
from vlscore.perturb.standard_normal import standard_normal_of
from vlscore.stats import Result, TextTable

PERTURBATIONS_FILE = "perturbations.jsonl"
SKIPPED_FILE = "skipped.jsonl"


class PerturbedTable(Result):
    """Result of `perturb`: perturbations.jsonl, skipped.jsonl and run.json.

    `failures` are the rows without a report that can be used.
    """

    @property
    def counts(self) -> dict[str, int]:
        """Number of perturbations of each kind."""
        return dict(self.record["perturbations"])

    @property
    def tables(self) -> list[TextTable]:
        """Number of perturbations of each kind and of all, as it is printed."""
        counts = {**self.counts, "all": sum(self.counts.values())}
        rows = tuple((kind, str(count)) for kind, count in counts.items())
        return [TextTable(f"{self.record['reports']} reports", ("kind", "changes"), rows)]

    @cached_property
    def failures(self) -> list[Failure]:
        """The rows without a report that can be used."""
        with (self.folder / SKIPPED_FILE).open(encoding="utf-8") as stream:
            return [
                Failure(record["row"], record["study_id"] or "", record["reason"])
                for record in map(json.loads, stream)
                if "reason" in record
            ]


def perturb(
    path: str | Path,
    out: str | Path,
    settings: PerturbationSettings | None = None,
    *,
    standard_normal: str | None = None,
    id_column: str = "id",
    text_column: str | None = None,
    limit: int | None = None,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
) -> PerturbedTable:
    """Perturb every report of a table; constant memory, the same bytes for the same input and seed.

    Args:
        path: table of reports; see `open_reports` for the columns.
        out: folder for the results.
        settings: kinds, seed and number of changes.
        standard_normal: report that stands for normal ones; default: made from the table itself,
            in a first pass over it.
        id_column, text_column: names of columns; see `open_reports`.
        limit: read only so many rows of the table, the first ones; None for all.
        overwrite: make anew; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, bad rows).

    Raises: InvalidTable where the table cannot be read or holds no report; UnknownName,
        InvalidSetting as `perturb_report`, and where `out` holds another data set; FolderInUse.
    """
    settings = settings or PerturbationSettings()
    chosen = kinds_named(settings.kinds)
    table = open_reports(path, id_column=id_column, text_column=text_column, limit=limit)
    key = {
        "vlscore": __version__,
        "table_sha256": table.sha256,
        "columns": [id_column, text_column],
        **table.limit_key,
        "lexicons_sha256": lexicons_digest(),
        "kinds": [kind.name for kind in chosen],
        "seed": settings.seed,
        "per_report": settings.per_report,
        "standard_normal": standard_normal,
    }

    def write(folder: Path) -> dict[str, Any]:
        normal = None
        if any(kind.needs_standard_normal for kind in chosen):
            normal = standard_normal or standard_normal_of(
                row.text for row in table if isinstance(row, Report)
            )
        counts = _write(folder, table, chosen, settings, normal, on_progress)
        # No times or paths, so that the bytes repeat.
        return {
            "vlscore": __version__,
            "table": table.path.name,
            "table_sha256": table.sha256,
            "lexicons_sha256": key["lexicons_sha256"],
            "seed": settings.seed,
            "per_report": settings.per_report,
            **counts,
            "standard_normal": normal,
        }

    with output_folder(out, key, overwrite=overwrite) as finished:
        run = finished or write_results(Path(out), key, write)
    return PerturbedTable(run.folder, run.record, finished is not None, tuple(table.notes))


def _write(
    folder: Path,
    table: ReportTable,
    kinds: list[Kind],
    settings: PerturbationSettings,
    standard_normal: str | None,
    on_progress: OnProgress,
) -> dict[str, Any]:
    """Write both files, and return what was counted. Raises: InvalidTable without any report."""
    counts = Counter({kind.name: 0 for kind in kinds})
    first_bad: Failure | None = None
    reports = bad = 0
    on_progress(0, 0)
    with writing(folder), ExitStack() as stack:
        made, skipped = (
            stack.enter_context((folder / name).open("w", encoding="utf-8", newline="\n"))
            for name in (PERTURBATIONS_FILE, SKIPPED_FILE)
        )
        for row in table:
            if isinstance(row, Failure):
                bad, first_bad = bad + 1, first_bad or row
                skipped.write(json_line({"row": row.row, "study_id": row.id, "reason": row.reason}))
            else:
                reports += 1
                source = ParsedReport.read(row.text, standard_normal)
                reasons = {}
                for kind in kinds:
                    refused: list[str] = []
                    found = perturbations_of(
                        source, kind, settings.seed, settings.per_report, row.id, refused
                    )
                    lines = [json_line(each.to_dict()) for each in found]
                    made.writelines(lines)
                    counts[kind.name] += len(lines)
                    if not lines:
                        reasons[kind.name] = why_nothing(source, kind, refused)
                if reasons:
                    skipped.write(
                        json_line({"row": row.row, "study_id": row.id, "reasons": reasons})
                    )
            on_progress(reports + bad, bad)
    if not reports and first_bad is not None:
        raise InvalidTable(
            f"{table.path}: holds no report; row {first_bad.row}: {first_bad.reason}"
        )
    return {"reports": reports, "bad_rows": bad, "perturbations": dict(counts)}


def lexicons_digest() -> str:
    """sha256 over the lexicons and the recipe, which decide what is generated."""
    folder = resource_path("perturbations")
    digest = hashlib.sha256()
    for file in (*sorted((folder / "lexicons").glob("*.toml")), folder / "standard_normal.toml"):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
