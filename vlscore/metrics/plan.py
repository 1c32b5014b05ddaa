"""Plan of the chosen metrics: what they need, and in which order they run.

A `Plan` resolves names, adds the metrics that others are computed from, reports what is missing
before anything is computed, makes each artefact of a text once, and passes the same rows to every
metric. `compute` and `compute_values` make such a plan for reports that are in memory.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Cache, Signature, __version__
from vlscore.errors import InvalidReport, InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.batch import (
    Batch,
    Computed,
    EmbeddingTriples,
    MetricValues,
    Needs,
    Values,
    as_texts,
)
from vlscore.metrics.library.embedded import constant_of
from vlscore.metrics.metric import EMBEDDINGS, Metric
from vlscore.metrics.networks.model_files import AnnotationCache
from vlscore.metrics.provider import ARTEFACTS, ArtefactStore, Provider, provider_of, why_missing
from vlscore.metrics.registry import METRICS, find_metrics, inputs_of

# Number of references to which a metric is fitted in one call.
_FITTED_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class Fit:
    """References to which a metric was fitted.

    Attributes:
        state: as its provider's `fit` returned it.
        references: number of references.
        digest: digest of the references, which does not depend on their order.
    """

    state: Any
    references: int
    digest: str

    def __str__(self) -> str:
        return f"{self.references}-references@{self.digest}"


class Plan:
    """Computes metrics over batches of studies.

    Args:
        metrics: names, as in "bleu-4(smoothing=exp)", separated by commas or in a list; or Metrics.
        text: the text policy that was applied to all texts, as printed in signatures; None if
            texts are unchanged.
        cache: cache on disk for what networks read in reports; None: no cache.

    Attributes:
        annotations: that cache, and the number of reports that were not in it.
        metrics: the requested metrics, in order.
        steps: requested metrics and their inputs, each after the metrics it is computed from.
        needs: inputs that every study must have.
        fits: references to which metrics were fitted, for metrics that need it.

    Raises: UnknownName, InvalidSetting for metrics that do not exist, depend on themselves, or
        have columns of the same name.
    """

    def __init__(
        self, metrics: Any, *, text: str | None = None, cache: Cache | None = None
    ) -> None:
        self.metrics = find_metrics(metrics)
        self.steps = _in_order(self.metrics)
        self._text = text
        self.annotations = AnnotationCache(cache)
        self._providers: dict[Metric, Provider] = {m: provider_of(m) for m in self.steps}
        self._artefacts = ArtefactStore()
        self._fitted = tuple(m for m in self.steps if self._providers[m].is_fitted(m))
        self.fits: Mapping[Metric, Fit] = {}
        self.needs = Needs(
            images=any(metric.uses_image for metric in self.steps),
            references=any(m.uses_reference for m in self.steps) or bool(self._fitted),
            embeddings=any(metric.uses_embeddings for metric in self.steps),
            embedded_references=any(m.uses_embeddings and m.uses_reference for m in self.steps),
        )
        _check_names(self.steps)

    @property
    def uses_encoders_constant(self) -> bool:
        """Return whether a metric uses the encoder's C, and none of its own."""
        return any(metric.settings.get("C", 0.0) is None for metric in self.steps)

    @property
    def needs_fit(self) -> bool:
        """Return whether a metric must be fitted to all references of a run, and was not."""
        return any(metric not in self.fits for metric in self._fitted)

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but the providers: a copy creates its own, which hold libraries."""
        return {name: value for name, value in vars(self).items() if name != "_providers"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._providers = {metric: provider_of(metric) for metric in self.steps}

    def fit(self, references: Iterable[str]) -> "Plan":
        """Return the plan with its metrics fitted to the references of a run.

        Args: references: those of every study, after the text policy; read once, in chunks.
        Raises: InvalidReport that names the position of an entry that is not a text.
        """
        if isinstance(references, str | bytes):
            raise InvalidReport("references must be a list of reports, not one text")
        states = {metric: self._providers[metric].fit(metric, []) for metric in self._fitted}
        rest, seen, total = iter(references), 0, 0
        while self._fitted and (part := list(islice(rest, _FITTED_AT_ONCE))):
            total += sum(_number_of(text, seen + k) for k, text in enumerate(part))
            seen += len(part)
            for metric, state in states.items():
                states[metric] = self._providers[metric].fit(metric, part, state)
        digest = f"{total % 2**64:016x}"[:12]
        return self.fitted_as({m: Fit(state, seen, digest) for m, state in states.items()})

    def fitted_as(self, fits: Mapping[Metric, Fit]) -> "Plan":
        """Return the plan with fits that were made earlier or in another process."""
        fitted = copy(self)
        fitted.fits = {metric: fits[metric] for metric in self._fitted if metric in fits}
        return fitted

    def require(self) -> None:
        """Raise MissingDependency if metrics cannot run here; the message says what each needs."""
        # The inputs of a metric are reported under its name, with its own parameters.
        for metrics in (self.metrics, self.steps):
            lacking = {metric: self._providers[metric].missing(metric) for metric in metrics}
            if reasons := [f"{metric}: {reason}" for metric, reason in lacking.items() if reason]:
                raise MissingDependency("; ".join(reasons))

    def signature(
        self, metric: Metric, embeddings: Signature | None = None, C: float | None = None
    ) -> Signature:
        """Return what a metric's numbers depend on.

        Args:
            embeddings: signature of the embeddings, for a metric that looks at them.
            C: the encoder's constant.

        Raises: InvalidSetting if the metric needs a constant C that the embeddings do not have.
        """
        inputs = [self.signature(m, embeddings, C) for m in inputs_of(metric).values()]
        settings = dict(metric.settings)
        facts: list[tuple[str, str | None]] = []
        if metric.uses_embeddings and embeddings is not None:
            if "C" in settings:
                settings["C"] = constant_of(metric, C)
            used = embeddings if metric.uses_image else embeddings.without("img", "views")
            facts = list(used)
        signature = Signature(metric.name).plus(settings)
        signature = signature.plus(self._providers[metric].facts(metric))
        if metric in self._fitted:
            signature = signature.plus(fit=self.fits.get(metric, "each-batch"))
        if inputs:
            signature = signature.plus(of=" + ".join(str(s).replace("|", ",") for s in inputs))
        signature = signature.plus(txt=self._text)
        signature = signature.plus(Signature("", tuple(f for f in facts if f[1] is not None)))
        # A flag such as DEMONSTRATION-ENCODER also applies to metrics computed from others.
        every = [*facts, *(fact for each in inputs for fact in each)]
        flags = [name for name, value in every if value is None]
        return signature.plus(v=__version__).flagged(*flags)

    def values(self, batch: Batch) -> dict[Metric, MetricValues]:
        """Compute the values of every requested metric, in order, for the same rows.

        A metric that must be fitted, and was not, is fitted to the references of the batch.
        """
        self._check(batch)
        if self.needs_fit:
            assert batch.references is not None
            return self.fit(batch.references).values(batch)
        batch = replace(batch, artefacts=self._made(batch), annotations=self.annotations)
        found: dict[str, MetricValues] = {}
        for metric in self.steps:
            inputs = {name: found[str(m)] for name, m in inputs_of(metric).items()}
            fitted = self.fits[metric].state if metric in self.fits else None
            given = replace(batch, values=inputs, fitted=fitted)
            computed = self._providers[metric].compute(metric, given)
            found[str(metric)] = self._finished(metric, computed, given)
        return {metric: found[str(metric)] for metric in self.metrics}

    def corpus(self, values: MetricValues, weights: Values | None = None) -> dict[str, Values]:
        """Compute the corpus values of one metric.

        Args:
            weights: (k, n) how often each candidate counts in each of k resamples; default: every
                candidate once.
        Returns: name of each corpus value -> (k,) float64, (1,) by default.
        """
        if values.statistics is None:
            return {}
        weights = np.ones((1, len(values))) if weights is None else weights
        return corpus_of_sums(values.metric, weights @ values.statistics)

    def _check(self, batch: Batch) -> None:
        if self.needs.references and batch.references is None:
            raise InvalidSetting("these metrics need references, but there are none")
        if not self.needs.embeddings:
            return
        named = next(metric for metric in self.steps if metric.uses_embeddings)
        if batch.embeddings is None:
            raise InvalidSetting(
                f"{named} needs embeddings: pass embeddings=EmbeddingTriples(...), or an encoder"
            )

    def _made(self, batch: Batch) -> Mapping[str, tuple[Sequence[Any], Sequence[Any]]]:
        names = {name for metric in self.steps for name in metric.artefacts} - {EMBEDDINGS}
        references = batch.references if batch.references is not None else ()
        return {
            name: (
                self._artefacts.of(name, batch.candidates),
                self._artefacts.of(name, references),
            )
            for name in sorted(names)
        }

    def _finished(self, metric: Metric, computed: Computed, batch: Batch) -> MetricValues:
        """Check the columns; set nan, and no statistics, where a candidate has no value."""
        columns = [np.array(column, dtype=np.float64) for column in computed.columns]
        if len(columns) != len(metric.columns) or any(len(c) != len(batch) for c in columns):
            raise InvalidSetting(
                f"the provider of {metric.name} must return {len(metric.columns)} columns of "
                f"{len(batch)} values; it returned columns of {[len(c) for c in columns]} values"
            )
        failures = dict(computed.failures)
        for row in np.flatnonzero(~np.isfinite(columns[0])).tolist():
            of_inputs = (v.failures[row] for v in batch.values.values() if row in v.failures)
            failures.setdefault(row, next(of_inputs, None) or _not_finite(metric))
        rows = list(failures)
        statistics = computed.statistics
        for column in columns:
            column[rows] = np.nan
        if statistics is not None:
            statistics = np.array(statistics, dtype=np.float64)
            statistics[rows] = 0.0
        embeddings = batch.embeddings
        return MetricValues(
            metric=metric,
            columns=dict(zip(metric.columns, columns, strict=True)),
            statistics=statistics,
            failures=dict(sorted(failures.items())),
            signature=self.signature(
                metric,
                embeddings.facts if embeddings is not None else None,
                embeddings.C if embeddings is not None else None,
            ),
        )


def corpus_of_sums(metric: Metric, sums: Values) -> dict[str, Values]:
    """Compute corpus values from statistics summed over candidates, (k, s) -> name -> (k,)."""
    if not metric.corpus:
        return {}
    found = provider_of(metric).corpus(metric, sums)
    return {output.name: np.asarray(found[output.name], np.float64) for output in metric.corpus}


def support_of_sums(metric: Metric, sums: Values) -> dict[str, int]:
    """Return the support of each corpus value: its number of occurrences in the references.

    Args: sums: (s,) statistics summed over the candidates of one corpus.
    Returns: name of a corpus value -> count; values without a support are left out.
    """
    if not metric.corpus:
        return {}
    found = provider_of(metric).support(metric, sums[None])
    names = [output.name for output in metric.corpus]
    return {name: int(found[name][0]) for name in names if name in found}


def usable_metrics(
    embeddings: EmbeddingTriples | None = None,
) -> tuple[list[Metric], dict[str, str]]:
    """Return the free metrics that can run here without settings, and why others cannot.

    Args: embeddings: embeddings of any length; None if metrics of embeddings cannot run.
    Returns: metrics, and name -> reason for each metric that is left out.
    """
    usable: list[Metric] = []
    left_out: dict[str, str] = {}
    for name, metric in METRICS.items():
        reason = why_missing(metric)
        if metric.cost != "free":
            left_out[name] = f"it runs only if it is named, because {_COSTS[metric.cost]}"
        elif reason is not None:
            left_out[name] = reason
        elif (why := lacks(metric, embeddings)) is not None:
            left_out[name] = why
        else:
            usable.append(metric)
    return usable, left_out


_COSTS = {"model": "a network computes it", "paid": "a service charges money for it"}


def lacks(metric: Metric, embeddings: EmbeddingTriples | None) -> str | None:
    """Return what a metric of embeddings lacks, as a message; None if it lacks nothing."""
    if not metric.uses_embeddings:
        return None
    if embeddings is None:
        return "it needs embeddings, but there is no encoder"
    if metric.uses_image and embeddings.images is None:
        return "it needs the image, but there are no images"
    if "C" in metric.settings:
        try:
            constant_of(metric, embeddings.C)
        except InvalidSetting as error:
            return str(error)
    return None


def _in_order(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    ordered: dict[Metric, None] = {}

    def visit(metric: Metric, above: tuple[Metric, ...]) -> None:
        if metric in above:
            names = " -> ".join(str(each) for each in (*above, metric))
            raise InvalidSetting(f"a metric must not be computed from itself: {names}")
        for given in inputs_of(metric).values():
            visit(given, (*above, metric))
        for name in metric.artefacts:
            if name != EMBEDDINGS:
                ARTEFACTS.find(name)
        ordered.setdefault(metric)

    for metric in metrics:
        visit(metric, ())
    return tuple(ordered)


def _number_of(text: str, position: int) -> int:
    if not isinstance(text, str):
        raise InvalidReport(f"references[{position}] must be a text, not a {type(text).__name__}")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def _check_names(metrics: Sequence[Metric]) -> None:
    """Raise InvalidSetting for two metrics of one name: one would overwrite the other's column."""
    holders: dict[str, Metric] = {}
    for metric in metrics:
        for column in metric.columns:
            if column in holders:
                raise InvalidSetting(
                    f"two different metrics have the column {column!r}: rename one"
                )
            holders[column] = metric


def _not_finite(metric: Metric) -> VLScoreError:
    if metric.uses_embeddings:
        return VLScoreError(
            f"{metric.name} has no finite value for this study: its embedding is not finite"
        )
    return VLScoreError(f"{metric.name} has no finite value for this study")


def compute(
    metrics: Any,
    candidates: Any,
    references: Any,
    *,
    embeddings: EmbeddingTriples | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Compute each metric for each candidate.

    Args:
        metrics: names, as in "bleu-4" or "bleu-4(smoothing=exp)", or Metrics; one or several.
        candidates: n generated reports; an empty one is scored, not refused.
        references: n reference reports; None where no metric looks at them.
        embeddings: of the same n studies, where a metric looks at embeddings.

    Returns: column -> (n,) float64, in the order of `metrics`; a metric of several numbers has
        several columns, the first under its own name.
    Raises: UnknownName, InvalidSetting, InvalidReport that names the position of an entry that is
        not a text, MissingDependency that says what to install.

    >>> compute(["bleu-1"], ["No effusion ."], ["no effusion."])["bleu-1"].tolist()
    [1.0]
    """
    found = compute_values(metrics, candidates, references, embeddings=embeddings)
    return {name: column for each in found.values() for name, column in each.columns.items()}


def compute_values(
    metrics: Any,
    candidates: Any,
    references: Any,
    *,
    embeddings: EmbeddingTriples | None = None,
) -> dict[Metric, MetricValues]:
    """Compute as `compute` does; return signatures, failures and statistics as well."""
    plan = Plan(metrics)
    plan.require()
    texts = None if references is None else as_texts("references", references)
    return plan.values(Batch(as_texts("candidates", candidates), texts, embeddings))


def signature(metric: str | Metric, embeddings: EmbeddingTriples | None = None) -> Signature:
    """Return what a metric's numbers depend on: parameters, conventions, library and version.

    >>> str(signature("bleu-4")).split("|")[:4]
    ['bleu-4', 'smoothing:none', 'tokens:13a', 'level:sentence']
    """
    plan = Plan([metric])
    plan.require()
    (found,) = plan.metrics
    if embeddings is None:
        return plan.signature(found)
    return plan.signature(found, embeddings.facts, embeddings.C)
