"""Plan of the chosen metrics: what they need, and in which order they run.

A `Plan` resolves names, adds the metrics that others are computed from, reports what is missing
before anything is computed, and passes the same rows to every metric. `compute` makes such a plan
for reports that are in memory.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Cache, Signature, __version__
from vlscore.errors import InvalidReport, InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.arguments import Needs
from vlscore.metrics.batch import (
    Batch,
    Computed,
    EmbeddingTriples,
    Fit,
    MetricValues,
    Values,
    as_texts,
)
from vlscore.metrics.library.embedded import constant_of
from vlscore.metrics.memo import Memo
from vlscore.metrics.metric import Metric
from vlscore.metrics.registry import METRICS, find_metric, find_metrics

# Number of references to which a metric is fitted in one call.
_FITTED_AT_ONCE = 1000


class Plan:
    """Computes metrics over batches of studies.

    Args:
        metrics: names, as in "bleu-4(smoothing=exp)", separated by commas or in a list; or Metrics.
        text: the text policy that was applied to all texts, as printed in signatures; None if
            texts are unchanged.
        cache: cache on disk for what networks read in reports; None: no cache.

    Attributes:
        annotations: memory of what is read in texts, with counts of its use.
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
        self._inputs: dict[Metric, tuple[Metric, ...]] = {}
        for metric in self.metrics:
            self._add(metric, ())
        self.steps = tuple(self._inputs)
        self._columns = {metric: metric.columns for metric in self.steps}
        self._text = text
        self.annotations = Memo(cache)
        self._fitted = tuple(metric for metric in self.steps if metric.is_fitted)
        self.fits: Mapping[Metric, Fit] = {}
        self._signatures: dict[Any, Signature] = {}
        self.needs = Needs(
            images=any(metric.uses_image for metric in self.steps),
            references=any(m.uses_reference for m in self.steps) or bool(self._fitted),
            embeddings=any(metric.uses_embeddings for metric in self.steps),
            embedded_references=any(m.uses_embeddings and m.uses_reference for m in self.steps),
        )
        _check_names(self.steps)

    @property
    def needs_fit(self) -> bool:
        """Return whether a metric must be fitted to all references of a run, and was not."""
        return any(metric not in self.fits for metric in self._fitted)

    def fit(self, references: Iterable[str]) -> "Plan":
        """Return the plan with its metrics fitted to the references of a run.

        Args: references: those of every study, after the text policy; read once, in chunks.
        Raises: InvalidReport that names the position of an entry that is not a text.
        """
        if isinstance(references, str | bytes):
            raise InvalidReport("references must be a list of reports, not one text")
        states = {metric: metric.fit([]) for metric in self._fitted}
        rest, seen, total = iter(references), 0, 0
        while self._fitted and (part := list(islice(rest, _FITTED_AT_ONCE))):
            total += sum(_number_of(text, seen + k) for k, text in enumerate(part))
            seen += len(part)
            for metric, state in states.items():
                states[metric] = metric.fit(part, state)
        digest = f"{total % 2**64:016x}"[:12]
        return self.fitted_as({m: Fit(state, seen, digest) for m, state in states.items()})

    def fitted_as(self, fits: Mapping[Metric, Fit]) -> "Plan":
        """Return the plan with fits that were made earlier or in another process."""
        fitted = copy(self)
        fitted.fits = {metric: fits[metric] for metric in self._fitted if metric in fits}
        fitted._signatures = {}
        return fitted

    def require(self) -> None:
        """Raise MissingDependency if metrics cannot run here; the message says what each needs."""
        # The inputs of a metric are reported under its name, with its own parameters.
        for metrics in (self.metrics, self.steps):
            lacking = {metric: metric.missing() for metric in metrics}
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
        key = (metric, embeddings, C)
        if (known := self._signatures.get(key)) is not None:
            return known
        found = self._signature_of(metric, embeddings, C)
        if not _depends_on_files(metric):
            self._signatures[key] = found
        return found

    def values(self, batch: Batch) -> dict[Metric, MetricValues]:
        """Compute the values of every requested metric, in order, for the same rows.

        A metric that must be fitted, and was not, is fitted to the references of the batch.
        """
        self._check(batch)
        if self.needs_fit:
            assert batch.references is not None
            return self.fit(batch.references).values(batch)
        found: dict[Metric, MetricValues] = {}
        for metric, inputs in self._inputs.items():
            given = replace(
                batch,
                inputs=[found[each] for each in inputs],
                fit=self.fits.get(metric),
                memo=self.annotations,
            )
            found[metric] = self._checked(metric, metric.compute(given), given)
        return {metric: found[metric] for metric in self.metrics}

    def _add(self, metric: Metric, above: tuple[Metric, ...]) -> None:
        """Add a metric after the metrics that it is computed from."""
        if metric in above:
            names = " -> ".join(str(each) for each in (*above, metric))
            raise InvalidSetting(f"a metric must not be computed from itself: {names}")
        if metric in self._inputs:
            return
        inputs = tuple(map(find_metric, metric.inputs))
        for each in inputs:
            self._add(each, (*above, metric))
        self._inputs[metric] = inputs

    def _signature_of(
        self, metric: Metric, embeddings: Signature | None, C: float | None
    ) -> Signature:
        inputs = [self.signature(each, embeddings, C) for each in self._inputs[metric]]
        settings = dict(metric.settings)
        facts: list[tuple[str, str | None]] = []
        if metric.uses_embeddings and embeddings is not None:
            if "C" in settings:
                settings["C"] = constant_of(metric, C)
            facts = list(embeddings if metric.uses_image else embeddings.without("img", "views"))
        signature = Signature(metric.name).plus(settings).plus(metric.facts())
        if not metric.uses_embeddings and not inputs:
            known = metric.normalisation.items()
            signature = signature.plus({n: v for n, v in known if not signature.has(n)})
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

    def _check(self, batch: Batch) -> None:
        if self.needs.references and batch.references is None:
            raise InvalidSetting("these metrics need references, but there are none")
        if self.needs.embeddings and batch.embeddings is None:
            named = next(metric for metric in self.steps if metric.uses_embeddings)
            raise InvalidSetting(
                f"{named} needs embeddings: pass embeddings=EmbeddingTriples(...), or an encoder"
            )

    def _checked(self, metric: Metric, computed: Any, batch: Batch) -> MetricValues:
        """Check the columns; set nan, and no statistics, where a candidate has no value."""
        if not isinstance(computed, Computed):
            several = isinstance(computed, list | tuple) and np.ndim(computed) == 2
            computed = Computed(computed if several else [np.asarray(computed)])
        columns = [np.array(column, dtype=np.float64) for column in computed.columns]
        names = self._columns[metric]
        if len(columns) != len(names) or any(len(c) != len(batch) for c in columns):
            raise InvalidSetting(
                f"the metric {metric.name} must return {len(names)} columns of "
                f"{len(batch)} values; it returned columns of {[len(c) for c in columns]} values"
            )
        failures = dict(computed.failures)
        for row in np.flatnonzero(~np.isfinite(columns[0])).tolist():
            of_inputs = (v.failures[row] for v in batch.inputs if row in v.failures)
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
            columns=dict(zip(names, columns, strict=True)),
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
    found = metric.corpus_values(sums) if metric.corpus else {}
    return {output.name: np.asarray(found[output.name], np.float64) for output in metric.corpus}


def support_of_sums(metric: Metric, sums: Values) -> dict[str, int]:
    """Return the support of each corpus value: its number of occurrences in the references.

    Args: sums: (s,) statistics summed over the candidates of one corpus.
    Returns: name of a corpus value -> count; values without a support are left out.
    """
    found = metric.support(sums[None]) if metric.corpus else {}
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
        if metric.cost != "free":
            reason: str | None = f"it runs only if it is named, because {_COSTS[metric.cost]}"
        else:
            reason = metric.missing() or lacks(metric, embeddings)
        if reason is None:
            usable.append(metric)
        else:
            left_out[name] = reason
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


def _depends_on_files(metric: Metric) -> bool:
    """Return whether a parameter may name a file or a model, which can change at any time."""
    return bool(metric.inputs) or any(p.kind is str and not p.choices for p in metric.parameters)


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
            if holders.setdefault(column, metric) is not metric:
                raise InvalidSetting(
                    f"two different metrics have the column {column!r}: rename one"
                )


def _not_finite(metric: Metric) -> VLScoreError:
    reason = ": its embedding is not finite" if metric.uses_embeddings else ""
    return VLScoreError(f"{metric.name} has no finite value for this study{reason}")


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
    plan = Plan(metrics)
    plan.require()
    texts = None if references is None else as_texts("references", references)
    found = plan.values(Batch(as_texts("candidates", candidates), texts, embeddings))
    return {name: column for each in found.values() for name, column in each.columns.items()}


def signature(metric: str | Metric, embeddings: EmbeddingTriples | None = None) -> Signature:
    """Return what a metric's numbers depend on: parameters, conventions, library and version.

    >>> str(signature("bleu-4")).split("|")[:4]
    ['bleu-4', 'smoothing:none', 'tokens:13a', 'case:lower']
    """
    plan = Plan([metric])
    plan.require()
    (found,) = plan.metrics
    if embeddings is None:
        return plan.signature(found)
    return plan.signature(found, embeddings.facts, embeddings.C)
