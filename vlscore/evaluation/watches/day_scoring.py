"""Values of one day's reports: scores, errors, findings; a table or a folder of an archive."""

import hashlib
import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.claims import CONTRADICTED, evidence_digest
from vlscore.core import OnProgress, as_json, file_digest, json_line
from vlscore.data import ColumnNames, Study, StudyTable, folder_table, open_studies, read_rows
from vlscore.errors import Failure, ImageNoteWarning, InvalidReport, InvalidSetting
from vlscore.evaluation.claim_table import claims
from vlscore.evaluation.scoring.evaluate import evaluate
from vlscore.evaluation.watches.day_store import ERRORS, FINDINGS, SCORES, Stream
from vlscore.evaluation.watches.watch_settings import WatchSettings
from vlscore.findings import CHEXPERT_LABELS, chexpert_labels, extraction_name
from vlscore.metrics import Plan, Scorer

if TYPE_CHECKING:
    import pandas

    from vlscore.embedding import StudyEmbedder

EMPTY, _CLAIMS = "empty reports", "contradicted claims"
# Number of errors that a judge counts, beside its score.
_SIGNIFICANT = "significant"
# Of a row of a folder's table, which the user does not see.
_LONELY = "an image or a reference without a generated report (--keep id stores which)"
_QUOTED = re.compile(r"'[^']*'|\S*/\S+")


@dataclass(frozen=True)
class Watcher:
    """What scores the reports of every day.

    Attributes: the arguments of `watch`.
    """

    scorer: Scorer
    settings: WatchSettings
    evidence: Path | None
    embedder: "StudyEmbedder | None"
    columns: ColumnNames
    image_root: Path | None
    keep: tuple[str, ...]
    workers: int
    on_progress: OnProgress

    def streams(self) -> list[Stream]:
        """Return what is watched; raise InvalidSetting for metrics that are fitted to each day."""
        found = [Stream(EMPTY, FINDINGS, 1)]
        if self.evidence is not None:
            found.append(Stream(_CLAIMS, ERRORS, 1))
        for metric in self.scorer.metrics:
            if Plan(metric).needs_fit:
                raise InvalidSetting(
                    f"{metric} weighs words by the references of one table, so that its values of "
                    "two days cannot be compared; leave it out"
                )
            if f"{metric}.{_SIGNIFICANT}" in metric.columns:
                found.append(Stream(f"{metric}.{_SIGNIFICANT}", ERRORS, 1))
            found.append(Stream(str(metric), SCORES, -metric.sign))
        return found + [Stream(label, FINDINGS, 0) for label in CHEXPERT_LABELS]

    @cached_property
    def _claims_embedder(self) -> "StudyEmbedder":
        from vlscore.embedding import StudyEmbedder  # loads torch

        return self.embedder or self.scorer.embedder or StudyEmbedder()

    @cached_property
    def key(self) -> dict[str, Any]:
        """What must be equal for days to be compared."""
        claims = None
        if self.evidence is not None:
            claims = [evidence_digest(self.evidence), str(self._claims_embedder.signature)]
        key: dict[str, Any] = as_json(
            {
                "streams": self.streams(),
                "metrics": {name: str(each) for name, each in self.scorer.signatures.items()},
                "findings": extraction_name(),
                "section": str(self.scorer.text_policy),
                "claims": claims,
                "settings": asdict(self.settings),
            }
        )
        return key

    def open(self, path: Path, work: Path) -> StudyTable | None:
        """Open the table or folder of a day; None where it has no report.

        Args: work: folder for the table of a folder, whose texts it has.
        """
        if path.is_dir():
            table = folder_table(path, work / "studies.jsonl")
            if table is None:
                return None
            path = table
        elif next(read_rows(path, ()), None) is None:
            return None
        reads_images = self.scorer.needs.images or self.evidence is not None
        return open_studies(
            path,
            needs={"candidate"},
            wants={"reference", "image"} if reads_images else {"reference"},
            columns=self.columns,
            image_root=self.image_root,
            also=self._kept,
        )

    @property
    def _kept(self) -> list[str]:
        return [name for name in self.keep if name != self.columns.id]

    def score(
        self, table: StudyTable | None, work: Path
    ) -> tuple["pandas.DataFrame", int, list[list[str]]]:
        """Return the values of a day's reports, the number of references, and what failed.

        A metric that looks at what the whole table lacks has no value, which is no failure.
        """
        import pandas

        studies = {row.row: row for row in table or ()}
        rows = pandas.DataFrame({"row": list(studies)}).set_index("row", drop=False)
        if table is None:
            return rows, 0, []
        reasons: dict[Any, str] = {
            n: row.reason for n, row in studies.items() if isinstance(row, Failure)
        }
        found: dict[str, Mapping[Any, Any]] = {}
        if self.columns.id in self.keep:
            found["id"] = {n: row.id for n, row in studies.items()}
        with warnings.catch_warnings():
            # These warnings name files, and so patients.
            warnings.simplefilter("ignore", ImageNoteWarning)
            scores = self._scores(table, work)
            found |= self._contradicted(table, work)
        found |= {name: scores[name] for name in scores if name != "error"}
        for n, why in scores["error"].dropna().items() if "error" in scores else ():
            if own := _of_failure(why, studies[n]):
                reasons.setdefault(n, own)
        found |= self._read(studies, reasons)
        for name, column in found.items():
            rows[name] = rows["row"].map(column)
        absent = f'column "{self.columns.candidate}" is absent'
        references = sum(isinstance(r, Study) and bool(r.reference) for r in studies.values())
        is_folder = table.path.is_relative_to(work)
        failures = [
            [f"row {n}", _LONELY if is_folder and why == absent else _impersonal(why, studies[n])]
            for n, why in sorted(reasons.items())
        ]
        return rows, references, failures

    def _scores(self, table: StudyTable, work: Path) -> "pandas.DataFrame":
        """Return the values of metrics, the columns to store, and errors, by number of the row."""
        able = [m for m in self.scorer.metrics if Plan(m).needs.roles <= table.roles]
        if not able:
            import pandas

            return pandas.DataFrame()
        found = evaluate(
            table,
            work / "scores",
            self.scorer if able == list(self.scorer.metrics) else self.scorer.with_metrics(able),
            keep=self._kept,
            workers=self.workers,
            keep_going=True,
            on_progress=self.on_progress,
        )
        names = [*self._kept, *(name for metric in able for name in metric.columns), "error"]
        return found.rows("scores.parquet").set_index("row")[names]

    def _contradicted(self, table: StudyTable, work: Path) -> dict[str, Mapping[Any, Any]]:
        """Return the share of the claims of each report that its image contradicts."""
        if self.evidence is None or "image" not in table.roles:
            return {}
        with_images = open_studies(
            table.path,
            needs={"image", "candidate"},
            columns=table.columns,
            image_root=table.root,
        )
        rows = claims(
            with_images,
            work / "claims",
            self._claims_embedder,
            evidence=self.evidence,
            workers=self.workers,
        ).rows("claims.csv")
        own = rows[rows["report"] == "candidate"]
        shares = (own["verdict"] == CONTRADICTED).groupby(own["id"]).mean()
        return {_CLAIMS: {row.row: shares.get(row.id, math.nan) for row in table}}

    def _read(
        self, studies: Mapping[Any, Study | Failure], reasons: dict[Any, str]
    ) -> dict[str, Mapping[Any, Any]]:
        """Return stream -> row -> 1 where a report states a finding, or is empty, else 0."""
        found: dict[str, dict[Any, Any]] = {name: {} for name in (EMPTY, *CHEXPERT_LABELS)}
        for number, row in studies.items():
            if isinstance(row, Failure):
                continue
            try:
                text = row.selected(self.scorer.text_policy).candidate or ""
                labels = chexpert_labels(text)
            except InvalidReport as error:
                reasons.setdefault(number, str(error))
                continue
            found[EMPTY][number] = float(not text.strip())
            for label in CHEXPERT_LABELS:
                found[label][number] = float(labels[label] == 1)
        return dict(found)


def digest_of(table: StudyTable | None) -> str:
    """Return the sha256 of what is read of a day: ids, reports, further columns, image files."""
    lines = []
    for row in table or ():
        if isinstance(row, Failure):
            lines.append(json_line([row.id, row.reason]))
            continue
        images = [file_digest(path) if path.is_file() else "absent" for path in row.files]
        texts = [row.reference, row.candidate, {k: str(v) for k, v in row.extra.items()}]
        lines.append(json_line([row.id, *texts, images]))
    return hashlib.sha256("".join(sorted(lines)).encode("utf-8", "surrogatepass")).hexdigest()


def _of_failure(reason: str, row: Study | Failure) -> str:
    """Return a reason without what it says of a reference or an image that the row has not."""
    lacking = row.lacking.values() if isinstance(row, Study) else ()
    without = [each for each in lacking if each.endswith(("is empty", "names no image"))]
    return "; ".join(part for part in reason.split("; ") if part not in without)


def _impersonal(reason: str, row: Study | Failure) -> str:
    """Return a reason without the id and the paths of its study."""
    names = {row.id}
    if isinstance(row, Study):
        for path in row.files:
            names |= {str(path), path.name, path.stem}
    for name in sorted(filter(None, names), key=len, reverse=True):
        reason = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", reason)
    return _QUOTED.sub("…", reason)
