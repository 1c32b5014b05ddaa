"""Controlled corpora: does a metric separate sentences that agree from sentences that do not?

Pino 2022 (thesis, section 5.3; github.com/pdpino/medical-ai, nlp_in_chexpert_groups): sentences are
grouped by the label of one observation. A metric compares candidates of one group with references
of another; a good one gives its best values where the groups are the same. The area under the ROC
curve measures how well its values separate pairs that agree on whether the finding is there (stated
or uncertain, against denied or unmentioned) from pairs that do not.

Departures from his code, each for a reason: a sentence is not compared with itself, because that is
no evidence; areas take as many pairs that agree as pairs that do not, which changes no expectation
and needs fewer pairs; a cell is the mean of its pairs' values, where he has the corpus value of
BLEU.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnPhase, OnProgress, Signature, no_phase
from vlscore.errors import InvalidSetting
from vlscore.evaluation.command_settings import Sampling
from vlscore.evaluation.controlled_sentences.labelled_sentences import (
    DENIED,
    GROUPS,
    OWN_RULES,
    STATED,
    UNCERTAIN,
    UNMENTIONED,
    LabelledSentences,
)
from vlscore.evaluation.row_chunks import both
from vlscore.metrics import Item, Metric, Scorer, find_metric
from vlscore.stats import Interval, grouped_auc, grouped_mean

Pair = tuple[int, int]
Values = NDArray[np.float64]

_AT_ONCE = 2000
_OF_FINDINGS = {"chexpert-labels", "finding-mentions", "judge-statements"}
# Both sides of the 2 x 2 matrix, and of the areas.
SIDES = {"absent": (UNMENTIONED, DENIED), "present": (UNCERTAIN, STATED)}
# Task -> the references' side; None for any reference.
TASKS: dict[str, str | None] = {"recall": "present", "specificity": "absent", "all": None}


@dataclass(frozen=True)
class CellMean:
    """Mean value of candidates of one group against references of another.

    Attributes:
        metric, observation: names.
        reference, candidate: groups: one of the four labels, or "absent" or "present".
        n, references: pairs, and the different references in them.
        mean: with its bootstrap interval over references.
    """

    metric: str
    observation: str
    reference: str
    candidate: str
    n: int
    references: int
    mean: Interval


@dataclass(frozen=True)
class Separation:
    """Area under the ROC curve of a metric's values for whether two sentences agree.

    Attributes:
        task: "recall": references that state the finding; "specificity": references that do not;
            "all": any reference.
        n, references: pairs, half of them in agreement, and the different references in them.
        auc: 0.5 is chance; larger values of the oriented metric should go with agreement.
    """

    metric: str
    observation: str
    task: str
    n: int
    references: int
    auc: Interval


@dataclass(frozen=True)
class Controlled:
    """Results of some metrics on controlled corpora.

    Attributes:
        observations: that were looked at.
        counts: observation -> label -> sentences.
        cells: of the 4 x 4 and the 2 x 2 matrices.
        separations: one a metric, observation and task.
        signatures: metric -> what its values depend on.
        higher_is_better: metric -> direction.
        told: metrics that read the sentences by the rules which labelled them: in-sample upper
            bounds.
        left_out: observation, or observation and task -> why it was not looked at.
        failures: pairs of sentences without a value, by metric.
    """

    observations: Sequence[str]
    counts: Mapping[str, Mapping[str, int]]
    cells: Sequence[CellMean]
    separations: Sequence[Separation]
    signatures: Mapping[str, Signature]
    higher_is_better: Mapping[str, bool]
    told: frozenset[str]
    left_out: Mapping[str, str]
    failures: Mapping[str, int]


def controlled_corpora(
    scorer: Scorer,
    sentences: LabelledSentences,
    sampling: Sampling | None = None,
    *,
    on_progress: OnProgress | None = None,
    on_phase: OnPhase = no_phase,
) -> Controlled:
    """Compute matrices and areas of every metric of a scorer.

    Args:
        sentences: with labels; see `label_sentences` and `read_labelled`.
        on_progress: called with (pairs done, values lacking).
        on_phase: called at the beginning of each phase.

    Raises: InvalidSetting for a metric that looks at images, for sentences have none, or where no
        observation has sentences to compare.
    """
    sampling = sampling or Sampling()
    refuse_images(scorer, "sentences have none")
    scorer = scorer.fit(sentences.sentences) if scorer.plan.needs_fit else scorer
    plans = [
        _ObservationPlan(sentences, name, sampling, number)
        for number, name in enumerate(sentences.labels)
    ]
    plans = [plan for plan in plans if plan.is_usable]
    if not plans:
        raise InvalidSetting(
            f"of {len(sentences)} sentences no two state {', '.join(sentences.labels)}, or no two "
            "do not; name other observations (--observations), or give more reports"
        )
    wanted = [pair for plan in plans for pair in plan.pairs()]
    comparing = both(on_progress, on_phase("pairs of sentences", len(set(wanted))))
    values, failures = pair_values(scorer, sentences.sentences, wanted, comparing)
    cells: list[CellMean] = []
    separations: list[Separation] = []
    resampling = on_phase("resampling metrics", len(scorer.metrics))
    for number, metric in enumerate(scorer.metrics, start=1):
        of_metric = values[str(metric)]
        for plan in plans:
            cells += plan.cells_of(str(metric), of_metric)
            separations += plan.separations_of(str(metric), of_metric, metric.sign)
        resampling(number, 0)
    names = {plan.observation for plan in plans}
    left_out = {
        name: "no two sentences state it, or no two do not"
        for name in sentences.labels
        if name not in names
    }
    for plan in plans:
        left_out |= plan.left_out
    return Controlled(
        [plan.observation for plan in plans],
        {
            name: {label: len(sentences.places(name, group)) for group, label in GROUPS.items()}
            for name in sentences.labels
        },
        cells,
        separations,
        scorer.signatures,
        {str(metric): metric.higher_is_better for metric in scorer.metrics},
        metrics_of_own_rules(scorer) if sentences.labelled_by == OWN_RULES else frozenset(),
        left_out,
        failures,
    )


def metrics_of_own_rules(scorer: Scorer) -> frozenset[str]:
    """Return the metrics that read texts by the rules of `vlscore.findings`, directly or not."""
    return frozenset(str(metric) for metric in scorer.metrics if _reads_findings(metric))


def _reads_findings(metric: Metric) -> bool:
    inputs = (find_metric(given) for given in metric.inputs)
    return bool(_OF_FINDINGS & set(metric.artefacts)) or any(map(_reads_findings, inputs))


def refuse_images(scorer: Scorer, why: str) -> None:
    """Raise InvalidSetting where a metric uses images."""
    if scorer.plan.needs.images:
        named = ", ".join(str(metric) for metric in scorer.metrics if metric.uses_image)
        raise InvalidSetting(
            f"{named or 'these metrics'} look at images, and {why}; name metrics of texts. "
            "`vlscore sensitivity` shows the same reports to metrics of images"
        )


def pair_values(
    scorer: Scorer,
    texts: Sequence[str],
    pairs: Sequence[Pair],
    on_progress: OnProgress | None = None,
) -> tuple[dict[str, dict[Pair, float]], dict[str, int]]:
    """Compute the values of every metric for pairs (candidate, reference) of positions in `texts`.

    Returns: metric -> pair -> value, each pair computed once and left out where there is no value;
        and how many values are lacking, by metric.
    """
    distinct = list(dict.fromkeys(pairs))
    found: dict[str, dict[Pair, float]] = {str(metric): {} for metric in scorer.metrics}
    for start in range(0, len(distinct), _AT_ONCE):
        part = distinct[start : start + _AT_ONCE]
        table = scorer.score_items([Item(texts[g], texts[r]) for g, r in part])
        for metric, values in table.values.items():
            numbers = zip(part, values.headline.tolist(), strict=True)
            found[str(metric)] |= {pair: v for pair, v in numbers if np.isfinite(v)}
        if on_progress is not None:
            done = start + len(part)
            on_progress(done, sum(done - len(values) for values in found.values()))
    return found, {name: len(distinct) - len(values) for name, values in found.items()}


class _ObservationPlan:
    """Pairs of sentences that are compared for one observation."""

    def __init__(
        self, sentences: LabelledSentences, observation: str, sampling: Sampling, number: int
    ) -> None:
        self.observation, self._sampling = observation, sampling
        self.left_out: dict[str, str] = {}
        rng = np.random.default_rng([sampling.seed, number])
        groups = {label: sentences.places(observation, group) for group, label in GROUPS.items()}
        sides = {name: sentences.places(observation, *labels) for name, labels in SIDES.items()}
        self.is_usable = all(len(side) > 1 for side in sides.values())
        self._cells: dict[tuple[str, str], list[Pair]] = {}
        self._tasks: dict[str, list[tuple[Pair, bool]]] = {}
        if not self.is_usable:
            return
        for of in (groups, sides):
            for reference in of:
                for candidate in of:
                    pairs = list(self._drawn(rng, of[candidate], of[reference]))
                    self._cells[reference, candidate] = pairs
        for task, side in TASKS.items():
            references = np.concatenate(list(sides.values())) if side is None else sides[side]
            self._tasks[task] = list(self._compared(rng, references, sides))

    def pairs(self) -> Iterator[Pair]:
        for cell in self._cells.values():
            yield from cell
        for task in self._tasks.values():
            yield from (pair for pair, _ in task)

    def cells_of(self, metric: str, values: Mapping[Pair, float]) -> Iterator[CellMean]:
        for (reference, candidate), pairs in self._cells.items():
            there = [pair for pair in pairs if pair in values]
            groups = [str(r) for _, r in there]
            if there:
                mean = grouped_mean(
                    [values[pair] for pair in there],
                    groups,
                    resamples=self._sampling.resamples,
                    seed=self._sampling.seed,
                )
                yield CellMean(
                    metric,
                    self.observation,
                    reference,
                    candidate,
                    len(there),
                    len(set(groups)),
                    mean,
                )

    def separations_of(
        self, metric: str, values: Mapping[Pair, float], sign: int
    ) -> Iterator[Separation]:
        for task, compared in self._tasks.items():
            there = [(pair, agree) for pair, agree in compared if pair in values]
            if len({agree for _, agree in there}) < 2:
                self.left_out[f"{self.observation}, {task}"] = "its pairs all agree, or none does"
                continue
            groups = [str(r) for (_, r), _ in there]
            area = grouped_auc(
                [sign * values[pair] for pair, _ in there],
                [agree for _, agree in there],
                groups,
                resamples=self._sampling.resamples,
                seed=self._sampling.seed,
            )
            yield Separation(metric, self.observation, task, len(there), len(set(groups)), area)

    def _drawn(
        self, rng: np.random.Generator, candidates: NDArray[np.intp], references: NDArray[np.intp]
    ) -> Iterator[Pair]:
        for r in _some(rng, references, self._sampling.references):
            others = candidates[candidates != r]
            for g in _some(rng, others, self._sampling.candidates):
                yield int(g), int(r)

    def _compared(
        self,
        rng: np.random.Generator,
        references: NDArray[np.intp],
        sides: Mapping[str, NDArray[np.intp]],
    ) -> Iterator[tuple[Pair, bool]]:
        half = max(self._sampling.candidates // 2, 1)
        present = set(sides["present"].tolist())
        for r in _some(rng, references, self._sampling.references):
            for side, candidates in sides.items():
                agrees = (side == "present") == (int(r) in present)
                for g in _some(rng, candidates[candidates != r], half):
                    yield (int(g), int(r)), agrees


def _some(rng: np.random.Generator, places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return at most `most` of the places, without replacement, in random order."""
    chosen: NDArray[np.intp] = rng.permutation(places)[:most]
    return chosen
