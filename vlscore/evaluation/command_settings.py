"""Settings of the commands that measure metrics, of `ratings make` and of `claims`.

Each attribute is an option of the command, and its description the option's help. This file loads
no heavy library, because `--help` of these commands reads it.
"""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from vlscore.core import check_settings, file_digest
from vlscore.errors import InvalidSetting

_LEAST_RESAMPLES = 10
_RATER = re.compile(r"\w[\w.-]{0,59}")
_SHEETS = ("csv", "html")
# Mark of a metric in tables and notes, where it was fitted to the data that measure it.
IN_SAMPLE = "in-sample upper bound"


@dataclass(frozen=True, kw_only=True)
class _WithValues:
    """Settings that can name a table of values; results depend on its content, not on its name."""

    values: str | Path | None = None
    lower_is_better: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_settings(self, resamples=_LEAST_RESAMPLES, seed=0)

    def key(self) -> dict[str, Any]:
        """Return what the numbers depend on."""
        return asdict(self) | {
            "values": self.values and file_digest(self.values),
            "lower_is_better": sorted(self.lower_is_better),
        }


@dataclass(frozen=True, kw_only=True)
class AlignmentSettings(_WithValues):
    """Settings of an alignment of metrics with raters.

    Attributes:
        values: Table of values computed elsewhere: study_id, candidate_id, one column for each
            metric.
        lower_is_better: Columns of --values, with commas, of which smaller values are better.
        fit: Also fit a composite of the computed metrics to this rating, such as "total errors". It
            can then be used as --metrics composite:FOLDER/composite.json.
        resamples: Resamples of the bootstrap.
        seed: Seed of the bootstrap.
        columns: Numbers of the metrics that are compared, as in findings-f1.precision. Default: the
            first of each metric.

    Raises: InvalidSetting that names the first invalid setting.
    """

    fit: str | None = None
    resamples: int = 1000
    seed: int = 0
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SensitivitySettings(_WithValues):
    """Settings of a test of metrics with changed reports.

    Attributes:
        values: Table of values computed elsewhere: study_id, kind, and NAME.original,
            NAME.perturbed of each metric, in the order of the perturbations.
        lower_is_better: Metrics of --values, with commas, of which smaller values are better.
        swap_images: Also score with another study's image and with a black image, which shows
            whether a metric uses the image.
        resamples: Resamples of the bootstrap.
        seed: Seed of the bootstrap and of the swap.

    Raises: InvalidSetting that names the first invalid setting.
    """

    swap_images: bool = False
    resamples: int = 2000
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SheetSettings:
    """Settings of the sheets of a reading study.

    Attributes:
        raters: Names of the raters, with commas. Default: rater-1.
        ask: errors (numbers by category), dimensions (ratings 1 to 5) or errors,dimensions; or
            preferences (which of two reports is better). Default: errors.
        format: Formats of the sheets: html, csv or html,csv. Default: html.
        raters_per_study: Number of raters for each study. Default: all.
        images: Embed reduced images in the HTML pages.
        dimensions: File of your own dimensions. Default: the bundled one.
        sample: Number of studies to draw at random. Default: all.
        seed: Seed of the random draw and of every order.

    Raises: InvalidSetting that names the first invalid setting.
    """

    raters: tuple[str, ...] = ("rater-1",)
    ask: tuple[str, ...] = ("errors",)
    format: tuple[str, ...] = ("html",)
    raters_per_study: int | None = None
    images: bool = False
    dimensions: Path | None = None
    sample: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, raters_per_study=1, sample=1, seed=0)
        if wrong := [rater for rater in self.raters if not _RATER.fullmatch(rater)]:
            raise InvalidSetting(
                f"{wrong[0]!r} cannot be in the name of a file; use 1 to 60 letters, digits, -, _"
            )
        if not self.raters or len(set(self.raters)) < len(self.raters):
            raise InvalidSetting(f"raters need different names, not {', '.join(self.raters)}")
        if (self.raters_per_study or 1) > (count := len(self.raters)):
            raise InvalidSetting(
                f"a study can have 1 to {count} raters, not {self.raters_per_study}"
            )
        if set(self.format) - set(_SHEETS) or not self.format:
            raise InvalidSetting(
                f"formats of sheets are {', '.join(_SHEETS)}, not {', '.join(self.format)}"
            )
        if self.images and "html" not in self.format:
            raise InvalidSetting("only html sheets can show images; add the format html")


@dataclass(frozen=True)
class ControlledSettings:
    """Sizes of the samples from which every number of controlled corpora is computed.

    Attributes:
        references: Largest number of references behind a number.
        candidates: Largest number of candidates for each reference.
        resamples: Resamples of the bootstrap.
        seed: Seed of all random choices.

    Raises: InvalidSetting that names the first invalid setting.
    """

    references: int = 50
    candidates: int = 20
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, references=2, candidates=1, resamples=_LEAST_RESAMPLES, seed=0)


@dataclass(frozen=True, kw_only=True)
class EvidenceSettings:
    """How evidence is fitted and calibrated.

    Attributes:
        calibration_share: Share of the patients of --fit that are used to calibrate, without
            --calibrate.
        no_zero_shot: Do not compare images with sentences about a finding.
        group_column: Column with the patient of each study in --fit and --calibrate. Default: each
            study is a patient.
        blank_labels: Meaning of an empty cell in --labels with CheXpert's columns. absent: the
            report does not mention the finding, so it is absent, as with extracted labels. unknown:
            the study is left out for this finding. -1 always means unknown.
        seed: Seed of the split of patients.

    Raises: InvalidSetting for a value out of its range.
    """

    calibration_share: float = 0.5
    no_zero_shot: bool = False
    group_column: str | None = None
    blank_labels: Literal["absent", "unknown"] = "absent"
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, seed=0)
        if not 0 < self.calibration_share < 1:
            raise InvalidSetting(
                f"calibration_share must be between 0 and 1, not {self.calibration_share!r}"
            )
