"""What an oracle searches for, and what it may not find."""

from dataclasses import dataclass, field
from typing import Any

from vlscore.errors import InvalidSetting
from vlscore.oracle.naming import OracleMetric, oracle_metric
from vlscore.search import GUARDS

MODES = ("auto", "exact", "approximate")

_LEAST = {"k": 1, "candidates": 0, "effort": 1, "sample": 1}


@dataclass(frozen=True)
class OracleSettings:
    """What is searched for, and what may not be found.

    Attributes:
        metric: name of a metric, with its parameters, or a Metric: one that a search minimises
            (see `search.OBJECTIVES`), or any metric of texts such as "bleu-4".
        k: hits per study.
        guard: for vlscore, see `Line`.
        mode: "exact", "approximate", or "auto": exact up to a million rows.
        exclude_exact: never find a report that equals the reference, line breaks aside.
        exclude_ids: column that lists the ids a study must not find, its own or its patient's;
            a report goes when all studies that hold it are listed.
        candidates: metrics of texts: so many nearest by cosine are re-ranked; 0 for the whole
            corpus, for which no encoder is needed.
        ranks: rank each hit by its distance to the reference.
        describe: read also what the metric does not look at, image or reference, where a study has
            it, to give the hits' other numbers. Metrics of texts read no images.
        effort: approximate mode: see `ApproximateIndex`; default: chosen for recall.
        sample: approximate mode: studies on which recall is measured.
        target: the metric itself.

    Raises: InvalidSetting, UnknownName.
    """

    metric: Any = "vlscore"
    k: int = 10
    guard: str = "none"
    mode: str = "auto"
    exclude_exact: bool = False
    exclude_ids: str | None = None
    candidates: int = 200
    ranks: bool = True
    describe: bool = True
    effort: int | None = None
    sample: int = 64
    target: OracleMetric = field(init=False)

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            _check_number(name, getattr(self, name), least)
        if self.mode not in MODES:
            raise InvalidSetting(f"mode is one of {', '.join(MODES)}, not {self.mode!r}")
        if self.guard not in GUARDS:
            raise InvalidSetting(f"guard is one of {', '.join(GUARDS)}, not {self.guard!r}")
        target = oracle_metric(self.metric)
        if self.guard != "none" and target.searched_by != "vlscore":
            raise InvalidSetting(f"a guard belongs to vlscore, not to {target.name}")
        if self.exclude_exact and target.rows != "report":
            raise InvalidSetting(
                f"only reports equal a reference; {target.name} finds {target.rows}s, so nothing "
                "can be excluded for being a copy"
            )
        object.__setattr__(self, "target", target)

    @property
    def needs(self) -> frozenset[str]:
        """What a study must have: "image", "reference" or both."""
        return frozenset(self.target.needs) | ({"reference"} if self.exclude_exact else set())

    @property
    def wants(self) -> frozenset[str]:
        """What is read besides, where a study has it."""
        if not self.describe or self.target.is_of_texts or self.target.rows != "report":
            return frozenset()
        return frozenset({"image", "reference"}) - self.needs

    @property
    def uses_embeddings(self) -> bool:
        """Whether studies are embedded at all."""
        return not self.target.is_of_texts or self.candidates > 0

    @property
    def excluded(self) -> str | None:
        """What may not be found, as signatures print it; None for nothing."""
        ids = [f"ids({self.exclude_ids})"] if self.exclude_ids is not None else []
        return "+".join([*(["exact"] if self.exclude_exact else []), *ids]) or None


def _check_number(name: str, value: Any, least: int) -> None:
    if value is None and name == "effort":
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidSetting(f"{name} is a whole number, at least {least}, not {value!r}")
