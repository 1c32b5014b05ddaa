"""Settings of the commands that compare systems and metrics, and their options.

This file loads no heavy library, because `--help` of these commands reads it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import check_settings, described, file_digest, setting
from vlscore.data import ReportTable
from vlscore.errors import InvalidSetting

_LEAST_RESAMPLES = 10
_MOST_DIGITS = 15
_TABLE, _READING, _OUTPUT = "Table", "Images and reports", "Results"
# Mark of a metric in tables and notes, where it was fitted to the data that measure it.
IN_SAMPLE = "in-sample upper bound"


def _values(columns: str) -> Any:
    """Return the field for a table of values computed elsewhere; `columns` are those it has."""
    help = f"Table of values computed elsewhere: {columns}."
    return setting(None, help, "PATH", typed=Path | None)


def _lower_is_better(named: str) -> Any:
    """Return the field for the names in this table of which smaller values are better."""
    help = f"{named} of --values, with commas, of which smaller values are better."
    return setting((), help, "NAMES")


@described
@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Settings of a comparison; its numbers depend on them.

    `train` is a table of reports that the baselines take instead of other studies' references,
    and that candidates may have copied.
    """

    train: ReportTable | None = None
    baselines: bool = setting(
        False,
        "Add four systems that know little: a constant report, the standard normal report, "
        "random reports, reports of the nearest images.",
    )
    values: str | Path | None = _values("system, id, one column a metric")  # noqa: RUF009
    lower_is_better: tuple[str, ...] = _lower_is_better("Columns")
    resamples: int = setting(2000, "Resamples of the bootstrap.", "N", least=_LEAST_RESAMPLES)
    permutations: int = setting(9999, "Permutations of the paired tests.", "N", least=99)
    seed: int = setting(0, "Seed of intervals, tests and random reports.", "N")
    ignore_blanks: bool = setting(
        False,
        "Use the first table's references where others differ in blanks and line breaks only.",
        more="Values of finished evaluations stay as they are.",
        panel=_READING,
    )
    against: str | None = setting(
        None, "Test only this system, against each other one. Default: all pairs.", "SYSTEM"
    )
    patient_column: str | None = setting(
        None,
        "Column with the patient: intervals and tests then resample patients, not studies.",
        "NAME",
        more="Of the first table that has it.",
        panel=_TABLE,
    )

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before a stopped run can be resumed."""
        values = None
        if self.values is not None:
            values = [file_digest(self.values), sorted(self.lower_is_better)]
        further = {
            "patient_column": self.patient_column,
            "ignore_blanks": self.ignore_blanks or None,
            "against": self.against,
            "values": values,
        }
        return {
            "baselines": self.baselines,
            "train_sha256": self.train.sha256 if self.train is not None else None,
            "resamples": self.resamples,
            "permutations": self.permutations,
            "seed": self.seed,
            **{name: value for name, value in further.items() if value is not None},
        }


@described
@dataclass(frozen=True)
class TableSettings:
    """Settings of the printed table of a comparison; they change no number.

    Raises: InvalidSetting that names the first invalid setting.
    """

    columns: tuple[str, ...] = setting(
        (),
        "Numbers in the table, as in bleu-4,findings-f1.recall; all for every number. Default: "
        "the primary number of every metric.",
        "NAMES",
        panel=_OUTPUT,
    )
    digits: int = setting(3, "Digits after the point.", "N", panel=_OUTPUT, least=0)
    intervals: bool = setting(False, "Write the 95 % intervals into the table, too.", panel=_OUTPUT)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.digits > _MOST_DIGITS:
            raise InvalidSetting(f"digits is a number from 0 to {_MOST_DIGITS}, not {self.digits}")


@described
@dataclass(frozen=True, kw_only=True)
class AlignmentSettings:
    """Settings of an alignment of metrics with raters; `level` is that of the intervals."""

    values: str | Path | None = _values("study_id, candidate_id, one column a metric")  # noqa: RUF009
    lower_is_better: tuple[str, ...] = _lower_is_better("Columns")
    fit: str | None = setting(
        None,
        'Also fit a composite of the computed metrics to a rating, as in "total errors"; '
        "--metrics composite:FOLDER/composite.json then is a metric.",
        "RATING",
    )
    resamples: int = setting(1000, "Resamples of the bootstrap.", "N", least=_LEAST_RESAMPLES)
    seed: int = setting(0, "Seed of the bootstrap.", "N")
    level: float = 0.95


@described
@dataclass(frozen=True, kw_only=True)
class SensitivitySettings:
    """Settings of a test of metrics with changed reports."""

    values: str | Path | None = _values(  # noqa: RUF009
        "study_id, kind, and NAME.original, NAME.perturbed of each metric, in the order of the "
        "perturbations"
    )
    lower_is_better: tuple[str, ...] = _lower_is_better("Metrics")
    swap_images: bool = setting(False, "Also measure whether the image matters.")
    resamples: int = setting(2000, "Resamples of the bootstrap.", "N", least=_LEAST_RESAMPLES)
    seed: int = setting(0, "Seed of the bootstrap and of the swap.", "N")


@described
@dataclass(frozen=True)
class Sampling:
    """Sizes of the samples from which every number of controlled corpora is computed.

    Raises: InvalidSetting that names the first invalid setting.
    """

    references: int = setting(50, "Largest number of references behind a number.", "N", least=2)
    candidates: int = setting(20, "Largest number of candidates for each reference.", "N", least=1)
    resamples: int = setting(1000, "Resamples of the bootstrap.", "N", least=_LEAST_RESAMPLES)
    seed: int = setting(0, "Seed of all random choices.", "N")

    def __post_init__(self) -> None:
        check_settings(self)
