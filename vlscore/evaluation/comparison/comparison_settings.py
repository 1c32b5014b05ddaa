"""Settings of a comparison and of its printed table.

Each attribute is an option of the command, and its description the option's help. This file loads
no heavy library, because `--help` reads it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import check_settings, file_digest
from vlscore.errors import InvalidSetting

_LEAST_RESAMPLES = 10
_MOST_DIGITS = 15


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Settings of a comparison; its numbers depend on them.

    Attributes:
        train: Training reports, as a `ReportTable`: baselines use them, and verbatim copies of them
            are counted.
        baselines: Add four baselines: constant, normal, random, nearest-image.
        values: Table of values computed elsewhere: system, id, one column for each metric.
        lower_is_better: Columns of --values, with commas, of which smaller values are better.
        resamples: Resamples of the bootstrap.
        permutations: Permutations of the paired tests.
        seed: Seed of all random draws.
        ignore_blanks: Accept references that differ only in blanks and line breaks; the first
            table's are used.
        against: Test only this system against each other system. Default: all pairs.
        by: Columns, such as view or sex: also compare the studies of each of their values.
        patient_column: Column with the patient: intervals and tests then resample patients, not
            studies.
        reference_errors: Correct the F1 of labels for errors of references: a file of rates,
            emergency-2026, second:COLUMN or truth:COLUMN.
        shared_errors: Share of the references' errors that the systems repeat.

    Raises: InvalidSetting that names the first invalid setting.
    """

    train: Any = None
    baselines: bool = False
    values: str | Path | None = None
    lower_is_better: tuple[str, ...] = ()
    resamples: int = 2000
    permutations: int = 9999
    seed: int = 0
    ignore_blanks: bool = False
    against: str | None = None
    by: tuple[str, ...] = ()
    patient_column: str | None = None
    reference_errors: str | Path | None = None
    shared_errors: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self, resamples=_LEAST_RESAMPLES, permutations=99, shared_errors=0, seed=0)
        if not self.shared_errors < 1:
            raise InvalidSetting(f"shared_errors must be below 1, not {self.shared_errors!r}")
        if self.shared_errors and self.reference_errors is None:
            raise InvalidSetting("shared_errors needs reference_errors")

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before a stopped run can be resumed."""
        values = None
        if self.values is not None:
            values = [file_digest(self.values), sorted(self.lower_is_better)]
        further = {
            "patient_column": self.patient_column,
            "ignore_blanks": self.ignore_blanks or None,
            "against": self.against,
            "by": list(self.by) or None,
            "values": values,
        }
        return {
            "baselines": self.baselines,
            "train": self.train.key if self.train is not None else None,
            "resamples": self.resamples,
            "permutations": self.permutations,
            "seed": self.seed,
            **{name: value for name, value in further.items() if value is not None},
        }


@dataclass(frozen=True)
class TableSettings:
    """Settings of the printed table of a comparison; they change no number.

    Attributes:
        columns: Numbers in the table, as in bleu-4,findings-f1.recall; all for every number.
            Default: the primary number of every metric.
        digits: Digits after the point.
        intervals: Write the 95 % intervals into the table, too.

    Raises: InvalidSetting that names the first invalid setting.
    """

    columns: tuple[str, ...] = ()
    digits: int = 3
    intervals: bool = False

    def __post_init__(self) -> None:
        check_settings(self, digits=0)
        if self.digits > _MOST_DIGITS:
            raise InvalidSetting(f"digits is a number from 0 to {_MOST_DIGITS}, not {self.digits}")
