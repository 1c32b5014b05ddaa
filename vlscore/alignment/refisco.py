"""ReFiSco v0 and v1: radiologists correct generated reports line by line and grade every error.

v0 (PhysioNet refisco 0.0) has the columns `id`, `impression_original`, `impression_edited`,
`score`, `annotator`, `source`; "[no edit]" leaves a line, "[delete]" removes it, an empty original
is an insertion. v1 (in the repository of FineRadScore) has `data_id`, `study_id`, `report_type`,
`original_line`, `corrected_line`, `error_clinical_severity`, `annotator_id`; an empty correction
leaves the line.

The corrected report is the reference of the original one, so every annotation is a pair of its own,
with the two summaries of its severities that ReFiSco's authors use.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.alignment.building import Builder, Pair, missing_columns, name_of, number_of
from vlscore.alignment.pairs import RatedPairs
from vlscore.errors import InvalidStudy
from vlscore.studies import columns_of, read_rows
from vlscore.studies.cells import text_of

# Categories of RADPEER and the ACR's work group, as ReFiSco's authors number them.
SEVERITIES = {
    "no error": 0.0,
    "not actionable": 1.0,
    "actionable nonurgent error": 2.0,
    "urgent error": 3.0,
    "emergent error": 4.0,
}
LARGEST, MEAN = "largest severity", "mean severity"
_RATER = "annotator"


@dataclass(frozen=True)
class Version:
    """The columns of one version.

    Attributes:
        candidate: columns that tell the candidates of a study apart; the last is the annotator's.
        unchanged: what an unchanged line has for its correction.
    """

    study: str
    candidate: tuple[str, ...]
    original: str
    corrected: str
    severity: str
    unchanged: str

    @property
    def columns(self) -> tuple[str, ...]:
        """All that are read."""
        return (self.study, *self.candidate, self.original, self.corrected, self.severity)


V0 = Version(
    study="id",
    candidate=("source", "annotator"),
    original="impression_original",
    corrected="impression_edited",
    severity="score",
    unchanged="[no edit]",
)
V1 = Version(
    study="study_id",
    candidate=("report_type", "data_id", "annotator_id"),
    original="original_line",
    corrected="corrected_line",
    severity="error_clinical_severity",
    unchanged="",
)


def read_refisco_v0(path: str | Path) -> RatedPairs:
    """The annotations of ReFiSco v0 as pairs; raises InvalidTable for a table of other columns."""
    return _read(Path(path), V0)


def read_refisco_v1(path: str | Path) -> RatedPairs:
    """The annotations of ReFiSco v1 as pairs; raises InvalidTable for a table of other columns."""
    return _read(Path(path), V1)


@dataclass
class _Annotation:
    original: list[str]
    corrected: list[str]
    severities: list[float]


def _read(path: Path, version: Version) -> RatedPairs:
    missing_columns(path, columns_of(path), version.columns)
    builder = Builder((path,))
    annotations: dict[Pair, _Annotation] = {}
    for number, record in read_rows(path):
        if isinstance(record, str):
            builder.refuse(number, record)
            continue
        pair: Pair | None = None
        try:
            pair = (
                name_of(record[version.study], version.study),
                "/".join(name_of(record[column], column) for column in version.candidate),
            )
            annotation = annotations.setdefault(pair, _Annotation([], [], []))
            _take(annotation, record, version)
        except InvalidStudy as error:
            builder.refuse(number, error, pair)
    for pair, annotation in annotations.items():
        builder.add_pair(pair, " ".join(annotation.corrected), " ".join(annotation.original))
        for name, value in _summaries(annotation.severities):
            builder.add_score(pair, _RATER, name, value)
    return builder.build()


def _take(annotation: _Annotation, record: dict[str, Any], version: Version) -> None:
    """Add one line; raises InvalidStudy before anything is added."""
    severity = severity_of(record[version.severity], version.severity)
    original = (text_of(record[version.original], version.original) or "").strip()
    corrected = (text_of(record[version.corrected], version.corrected) or "").strip()
    if corrected == version.unchanged:
        corrected = original
    elif "[delete]" in corrected:
        corrected = ""
    elif not corrected:
        raise InvalidStudy(f'column "{version.corrected}" is empty')
    annotation.severities.append(severity)
    annotation.original += [original] if original else []
    annotation.corrected += [corrected] if corrected else []


def severity_of(value: Any, column: str) -> float:
    """0 to 4, from the category's name or its number; raises InvalidStudy for anything else."""
    named = SEVERITIES.get(str(value).strip().lower())
    if named is not None:
        return named
    number = number_of(value, column)
    if number is None or number not in SEVERITIES.values():
        known = ", ".join(SEVERITIES)
        raise InvalidStudy(f'column "{column}" holds {value!r}, not 0 to 4 or one of {known}')
    return number


def _summaries(severities: list[float]) -> Iterator[tuple[str, float]]:
    if severities:
        yield LARGEST, max(severities)
        yield MEAN, sum(severities) / len(severities)
