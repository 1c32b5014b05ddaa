"""Base class of baselines, with its settings and inputs; the registry of baselines.

A new baseline is a subclass of Baseline and one line in the list here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from vlscore.core import Registry, check_derived, check_settings, file_digest
from vlscore.data import Report
from vlscore.errors import InvalidSetting, InvalidStudy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vlscore.embedding import StudyEmbedder

    Array = NDArray[np.float32]

REFERENCE, ZERO_SHOT, PROBE = "reference", "zero-shot", "probe"
# What a baseline can need.
TRAIN, TRAIN_IMAGES, IMAGES = "train", "train images", "images"
# What follows for studies that are in the training table as well.
OWN_REPORT = "their own report may be among the training reports"


@dataclass(frozen=True, kw_only=True)
class BaselineSettings:
    """Settings of baselines; each baseline names those that it uses.

    Attributes:
        seed: Seed of random choices.
        first: Number of the most frequent words or sentences from which is drawn.
        by_section: Draw sentences of findings and of impression separately.
        labels: Labels of templates: reference (of the study itself: an upper bound), zero-shot or
            probe (from the encoder), or a classifier's table with one column for each label.
        threshold: Least probability in that table at which a label is present.
        style: Style of templates: grouped (a sentence for several labels) or single.
        templates: File of your own sentences. Default: the bundled one.

    Raises: InvalidSetting that names the first invalid setting.
    """

    seed: int = 0
    first: int = 100
    by_section: bool = False
    labels: str = REFERENCE
    threshold: float = 0.5
    style: Literal["grouped", "single"] = "grouped"
    templates: Path | None = None

    def __post_init__(self) -> None:
        check_settings(self, seed=0, first=1)

    def used(self, names: Sequence[str], of: str) -> dict[str, Any]:
        """Return the settings of these names.

        Raises: InvalidSetting where another setting has no default value.
        """
        for each in fields(self):
            if each.name not in names and getattr(self, each.name) != each.default:
                raise InvalidSetting(f"{of} does not use the setting {each.name}; leave it out")
        return {name: value for name, value in asdict(self).items() if name in names}


@dataclass(frozen=True)
class TrainingReports:
    """Reports that a baseline learns from.

    Attributes:
        reports: n texts, of the section that counts.
        whole: the same reports as they are in the table.
        images: (n, d) float32 embeddings of their images, nan for one without; None where they are
            not needed.
        own: position of a study that a report is written for -> place of its own report among
            these, which it is not given; empty where none of these studies is among them.
    """

    reports: Sequence[str]
    whole: Sequence[Report] = ()
    images: "Array | None" = None
    own: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A study that a baseline writes a report for.

    Attributes:
        position: number of its row in the table, counted from 0.
        id: of the study.
        reference: the section that counts; None where it is not read.
        image: (d,) float32 embedding; None where it is not needed.
    """

    position: int
    id: str
    reference: str | None = None
    image: "Array | None" = None


class Baseline(ABC):
    """Generator of reports without a network of its own.

    Attributes:
        name: as users write it.
        description: one sentence.
        uses: names of the settings that its reports depend on.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    uses: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: BaselineSettings) -> None:
        self.settings = settings

    @property
    def needs(self) -> frozenset[str]:
        """Return the inputs: "train", "train images", "images" (of the studies), "reference"."""
        return frozenset({TRAIN})

    def facts(self) -> dict[str, str]:
        """Return the settings for the signature; of a file its digest, not its path."""
        used = self.settings.used(self.uses, self.name)
        return {
            name: file_digest(value)[:12] if isinstance(value, Path) else str(value)
            for name, value in used.items()
            if value is not None
        }

    @abstractmethod
    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Learn from training reports; return what a user should know, one sentence each.

        Raises: InvalidTable or InvalidSetting where nothing can be learnt from them.
        """

    @abstractmethod
    def candidate(self, case: Case) -> str:
        """Return the report of one study. Raises: InvalidStudy where there is none."""

    def candidates(self, cases: Sequence[Case]) -> list[str | InvalidStudy]:
        """Return the reports of some studies, each its text or why there is none.

        A report does not depend on the other studies of the call.
        """
        found: list[str | InvalidStudy] = []
        for case in cases:
            try:
                found.append(self.candidate(case))
            except InvalidStudy as error:
                found.append(error)
        return found


AnyBaseline = str | Baseline | type[Baseline]


BASELINES: Registry[Any] = Registry(
    "baseline",
    group="vlscore.baselines",
    check=check_derived("baseline", Baseline, "vlscore.evaluation.Baseline"),
)

for _name, _target in (
    ("constant", "training_reports:Constant"),
    ("normal", "training_reports:Normal"),
    ("random", "training_reports:Random"),
    ("top-words", "training_reports:TopWords"),
    ("top-sentences", "training_reports:TopSentences"),
    ("nearest-image", "training_reports:NearestImage"),
    ("templates", "report_templates:Templates"),
):
    BASELINES.register(f"vlscore.evaluation.baselines.{_target}", _name)


def find_baseline(name: AnyBaseline, settings: BaselineSettings | None = None) -> Baseline:
    """Return the baseline of that name with its settings, or the object itself.

    Raises: UnknownName with similar names; InvalidSetting where a setting is not one of its own.

    >>> find_baseline("Top_Words").facts()
    {'seed': '0', 'first': '100'}
    """
    found = BASELINES.find(name)
    if isinstance(found, Baseline):
        return found
    chosen = settings or BaselineSettings()
    chosen.used(found.uses, found.name)
    made: Baseline = found(chosen)
    return made
