"""From a table of reports to a data set of perturbations."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from vlscore._files import atomic_write, file_digest, write_json
from vlscore._resources import resource_path
from vlscore._version import __version__
from vlscore.errors import InvalidTable
from vlscore.findings import extract
from vlscore.perturb.generate import check_per_report, perturbations_of, why_nothing
from vlscore.perturb.kind import Kind, NeedsStandardNormal
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.registry import AnyKind, kinds_named
from vlscore.perturb.standard import NormalSentences
from vlscore.studies import BadRow, Report, read_reports

PERTURBATIONS_FILE = "perturbations.jsonl"
SKIPPED_FILE = "skipped.jsonl"
RUN_FILE = "run.json"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PerturbedTable:
    """What `perturb_table` made.

    Attributes:
        out: the folder, with perturbations.jsonl, skipped.jsonl and run.json.
        reports: reports read, without the bad rows.
        counts: kind -> perturbations.
        bad_rows: rows without a report that can be used.
        standard_normal: the report that stood for normal ones; None where no kind needed it.
    """

    out: Path
    reports: int
    counts: dict[str, int]
    standard_normal: str | None
    bad_rows: list[BadRow] = field(repr=False)


def perturb_table(
    path: str | Path,
    out: str | Path,
    kinds: Iterable[AnyKind] | AnyKind | None = None,
    seed: int = 0,
    *,
    per_report: int = 1,
    standard_normal: str | None = None,
    id_column: str = "id",
    text_column: str | None = None,
    on_progress: Progress | None = None,
) -> PerturbedTable:
    """Perturb every report of a table; constant memory, the same bytes for the same input and seed.

    Args:
        path: .jsonl, .csv or .parquet; see `read_reports` for the columns.
        out: folder for the results, which are replaced.
        kinds, seed, per_report: see `perturb`.
        standard_normal: report that stands for normal ones; default: made from the table itself,
            in a first pass over it.
        on_progress: called with (rows done, bad rows).

    Raises: InvalidTable where the table cannot be read or holds no report; UnknownName,
        InvalidSetting as `perturb`.
    """
    chosen = kinds_named(kinds)
    check_per_report(per_report)

    def rows() -> Iterator[Report | BadRow]:
        return read_reports(path, id_column=id_column, text_column=text_column)

    if not any(isinstance(kind, NeedsStandardNormal) for kind in chosen):
        standard_normal = None
    elif standard_normal is None:
        standard_normal = standard_normal_of(row.text for row in rows() if isinstance(row, Report))
    run = _Run(chosen, seed, per_report, standard_normal)
    out = Path(out)
    with ExitStack() as files:
        made = files.enter_context(atomic_write(out / PERTURBATIONS_FILE))
        skipped = files.enter_context(atomic_write(out / SKIPPED_FILE))
        for done, row in enumerate(rows(), start=1):
            run.take(row, made, skipped)
            if on_progress is not None:
                on_progress(done, len(run.bad_rows))
        if not run.reports:
            raise InvalidTable(f"{path}: holds no report; {_first_reason(run.bad_rows)}")
    write_json(out / RUN_FILE, run.facts(Path(path)))
    return PerturbedTable(out, run.reports, run.counts_by_kind(), standard_normal, run.bad_rows)


def standard_normal_of(reports: Iterable[str]) -> str:
    """The standard normal report of a corpus, by `perturbations/standard_normal.toml`."""
    sentences = NormalSentences()
    for report in reports:
        sentences.add(extract(report))
    return sentences.report()


class _Run:
    """Counts what a run makes, and writes it row by row."""

    def __init__(
        self, kinds: list[Kind], seed: int, per_report: int, standard_normal: str | None
    ) -> None:
        self.kinds, self.seed, self.per_report = kinds, seed, per_report
        self.standard_normal = standard_normal
        self.reports = 0
        self.bad_rows: list[BadRow] = []
        self._counts: Counter[str] = Counter()

    def take(self, row: Report | BadRow, made: IO[str], skipped: IO[str]) -> None:
        if isinstance(row, BadRow):
            self.bad_rows.append(row)
            _write(skipped, {"row": row.row, "study_id": row.id, "reason": row.reason})
            return
        self.reports += 1
        source = ReadReport.read(row.text, self.standard_normal)
        reasons = {}
        for kind in self.kinds:
            count = 0
            refused: list[str] = []
            for perturbation in perturbations_of(
                source, kind, self.seed, self.per_report, row.id, refused
            ):
                _write(made, perturbation.to_dict())
                count += 1
            self._counts[kind.name] += count
            if not count:
                reasons[kind.name] = why_nothing(source, kind, refused)
        if reasons:
            _write(skipped, {"row": row.row, "study_id": row.id, "reasons": reasons})

    def counts_by_kind(self) -> dict[str, int]:
        return {kind.name: self._counts[kind.name] for kind in self.kinds}

    def facts(self, path: Path) -> dict[str, Any]:
        """What the data set was made of and with; no times or places, so that bytes repeat."""
        return {
            "vlscore": __version__,
            "table": path.name,
            "table_sha256": file_digest(path),
            "lexicons_sha256": lexicons_digest(),
            "seed": self.seed,
            "per_report": self.per_report,
            "reports": self.reports,
            "bad_rows": len(self.bad_rows),
            "perturbations": self.counts_by_kind(),
            "standard_normal": self.standard_normal,
        }


def _write(stream: IO[str], record: dict[str, Any]) -> None:
    stream.write(json.dumps(record, ensure_ascii=False))
    stream.write("\n")


def _first_reason(bad_rows: list[BadRow]) -> str:
    return f"row {bad_rows[0].row}: {bad_rows[0].reason}" if bad_rows else "it is empty"


def lexicons_digest() -> str:
    """sha256 over the lexicons and the recipe, which decide what is generated."""
    folder = resource_path("perturbations")
    digest = hashlib.sha256()
    for file in (*sorted((folder / "lexicons").glob("*.toml")), folder / "standard_normal.toml"):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
