"""Plan of the chosen metrics: what they need, and in which order they run.

A `Plan` resolves names, adds the metrics that others are computed from, reports what is missing
before anything is computed, and passes the same rows to every metric. `compute` makes such a plan
for reports that are in memory.
"""

import os
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Cache, Signature, __version__, text_digest, warn_caller
from vlscore.data import check_texts
from vlscore.errors import InvalidReport, InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.arguments import Needs, row_labels
from vlscore.metrics.batch import (
    Batch,
    Computed,
    EmbeddingTriples,
    Fit,
    Values,
    as_texts,
)
from vlscore.metrics.embedded_metric import EmbeddedMetric, constant_of
from vlscore.metrics.memo import Memo
from vlscore.metrics.metric import Metric
from vlscore.metrics.registry import METRICS, find_metric, find_metrics, without_comparisons
from vlscore.metrics.returned_values import embedded, out_of_bounds
from vlscore.metrics.stored_vectors import STORED

if TYPE_CHECKING:
    from typing import Self

    from vlscore.embedding import StudyEmbedder

# Number of references to which a metric is fitted in one call.
_FITTED_AT_ONCE = 1000


class Plan:
    """Computes metrics over batches of studies.

    Args:
        metrics: names, as in "bleu-4(smoothing=exp)", separated by commas or in a list; or Metrics.
        text: the text policy that was applied to all texts, as printed in signatures; None if
            texts are unchanged.
        cache: cache on disk for what networks read in reports, as `open_cache` takes it.

    Attributes:
        memo: memory of what is read in texts, with counts of its use.
        metrics: the requested metrics, in order.
        steps: requested metrics and their inputs, each after the metrics it is computed from.
        needs: inputs that every study must have.
        fits: metric -> the references to which it was fitted, for metrics that need it.

    Raises: UnknownName, InvalidSetting for metrics that do not exist, depend on themselves, or
        have columns of the same name.
    """

    def __init__(
        self,
        metrics: Any,
        *,
        text: str | None = None,
        cache: Cache | bool | str | os.PathLike[str] = False,
    ) -> None:
        self.metrics = find_metrics(metrics)
        self._inputs: dict[Metric, tuple[Metric, ...]] = {}
        for metric in self.metrics:
            self._add(metric, ())
        self.steps = tuple(self._inputs)
        self._columns = {metric: metric.columns for metric in self.steps}
        self._text = text
        self.memo = Memo(cache)
        self._fitted = tuple(metric for metric in self.steps if metric.is_fitted)
        self.fits: Mapping[Metric, Fit] = {}
        self._fits_of_batches: dict[Metric, str] = {}
        self._signatures: dict[Any, Signature] = {}
        self.needs = Needs(
            images=any(metric.uses_image for metric in self.steps),
            references=any(m.uses_reference for m in self.steps) or bool(self._fitted),
            embeddings=any(metric.uses_embeddings for metric in self.steps),
            embedded_references=any(m.uses_embeddings and m.uses_reference for m in self.steps),
        )
        looked_at = [self._roles_of(metric) for metric in self.metrics]
        #: Roles that every metric looks at: a row without them has no value at all.
        self.required: frozenset[str] = frozenset.intersection(*looked_at)
        holders: dict[str, Metric] = {}
        for metric in self.steps:
            for column in self._columns[metric]:
                if holders.setdefault(column, metric) is not metric:
                    raise InvalidSetting(
                        f"two different metrics have the column {column!r}: rename one"
                    )

    def _roles_of(self, metric: Metric) -> frozenset[str]:
        """Return what a metric, or one that it is computed from, looks at, as roles of a table."""
        roles = {"candidate"}
        roles |= {"image"} if metric.uses_image else set()
        roles |= {"reference"} if metric.uses_reference or metric.is_fitted else set()
        return frozenset(roles).union(*map(self._roles_of, self._inputs[metric]))

    @property
    def needs_fit(self) -> bool:
        """Return whether a metric must be fitted to all references of a run, and was not."""
        return any(metric not in self.fits for metric in self._fitted)

    def fit(self, references: Iterable[str]) -> "Self":
        """Return the plan with its metrics fitted to the references of a run.

        Args: references: those of every study, after the text policy; read once, in chunks.
        Raises: InvalidReport that names the position of an entry that is not a text; also for one
            text, a dict, a set or a table.
        """
        check_texts("references", references)
        states = {metric: metric.fit([]) for metric in self._fitted}
        rest, seen, total = iter(references), 0, 0
        while self._fitted and (part := list(islice(rest, _FITTED_AT_ONCE))):
            for position, text in enumerate(part, start=seen):
                if not isinstance(text, str):
                    kind = type(text).__name__
                    raise InvalidReport(f"references[{position}] must be a text, not a {kind}")
                total += int.from_bytes(text_digest(text)[:8], "big")
            seen += len(part)
            for metric, state in states.items():
                states[metric] = metric.fit(part, state)
        digest = f"{total % 2**64:016x}"[:12]
        fitted = copy(self)
        fitted.fits = {m: Fit(state, seen, digest) for m, state in states.items()}
        return fitted

    def require(self) -> None:
        """Raise MissingDependency if metrics cannot run here; the message says what each needs."""
        # The inputs of a metric are reported under its name, with its own parameters.
        for metrics in (self.metrics, self.steps):
            lacking = {metric: metric.missing() for metric in metrics}
            if reasons := [f"{metric}: {reason}" for metric, reason in lacking.items() if reason]:
                raise MissingDependency("; ".join(reasons))

    def signature_of(
        self, metric: Metric, embeddings: "EmbeddingTriples | StudyEmbedder | None" = None
    ) -> Signature:
        """Return what a metric's numbers depend on.

        Args: embeddings: what a metric of embeddings looks at, or the embedder that makes it.
        Raises: InvalidSetting if the metric needs a constant C that the embeddings do not have.
        """
        source = None if embeddings is None else (embeddings.signature, embeddings.C)
        key = (metric, str(self.fits.get(metric, "each-batch")), source)
        if key in self._signatures:
            return self._signatures[key]
        inputs = [self.signature_of(each, embeddings) for each in self._inputs[metric]]
        settings = dict(metric.settings)
        facts = Signature("")
        if metric.uses_embeddings and embeddings is not None:
            if "C" in settings:
                settings["C"] = constant_of(metric, embeddings.C)
            of = embeddings.signature
            facts = of if metric.uses_image else of.without("img", "views")
        signature = Signature(metric.name).plus(settings).plus(metric.facts())
        if not metric.uses_embeddings and not inputs:
            known = metric.normalisation.items()
            signature = signature.plus({n: v for n, v in known if not signature.has(n)})
        if metric in self._fitted:
            signature = signature.plus(fit=self.fits.get(metric, "each-batch"))
        if inputs:
            signature = signature.plus(of=" + ".join(str(s).replace("|", ",") for s in inputs))
        # Nobody knows which section of a report vectors from elsewhere are of.
        signature = signature.plus(txt=None if facts.has(STORED) else self._text).plus(facts)
        # A flag such as DEMONSTRATION-ENCODER also applies to metrics computed from others.
        flags = [name for each in inputs for name, value in each if value is None]
        signature = signature.plus(v=__version__).flagged(*flags)
        # A parameter may name a file or a model, which can change at any time.
        if not (metric.inputs or any(p.kind is str and not p.choices for p in metric.parameters)):
            self._signatures[key] = signature
        return signature

    def values(self, batch: Batch) -> dict[Metric, Computed]:
        """Compute the values of every requested metric, in order, for the same rows.

        A metric that must be fitted, and was not, is fitted to the references of the batch.

        Raises: InvalidSetting where the batch lacks references or embeddings that metrics need.
        """
        if self.needs.references and batch.references is None:
            raise InvalidSetting("these metrics need references, but there are none")
        if self.needs.embeddings and batch.embeddings is None:
            named = next(metric for metric in self.steps if metric.uses_embeddings)
            raise InvalidSetting(
                f"{named} needs embeddings: pass embeddings=EmbeddingTriples(...), or an encoder"
            )
        if self._fitted and self.needs_fit and batch.references is not None:
            fitted = Plan.fit(self, batch.references)
            self._warn_of_fits(fitted)
            return fitted.values(batch)
        found: dict[Metric, Computed] = {}
        for metric, inputs in self._inputs.items():
            of = [found[each] for each in inputs]
            own = replace(batch, inputs=of, fit=self.fits.get(metric), memo=self.memo)
            found[metric] = self._checked(metric, metric.compute(own), own)
        return {metric: found[metric] for metric in self.metrics}

    def _warn_of_fits(self, fitted: "Plan") -> None:
        """Warn where a metric was fitted to the references of several batches separately."""
        for metric, fit in fitted.fits.items():
            first = self._fits_of_batches.setdefault(metric, fit.digest)
            if first != fit.digest:
                warn_caller(
                    f"{metric} was fitted to the references of this call alone, and of an earlier "
                    "call to others: their numbers are not comparable. Use scorer.fit(references) "
                    "with all references"
                )

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

    def _checked(self, metric: Metric, computed: Any, batch: Batch) -> Computed:
        """Check the columns; set nan, and no statistics, where a candidate has no value."""
        wanted, count = len(self._columns[metric]), len(batch.candidates)
        try:
            if not isinstance(computed, Computed):
                several = isinstance(computed, list | tuple) and np.ndim(computed) == 2
                computed = Computed(computed if several else [np.asarray(computed)])
            columns = [np.array(column, dtype=np.float64) for column in computed.columns]
        except (TypeError, ValueError) as error:
            raise InvalidSetting(f"the metric {metric.name} must return numbers: {error}") from None
        if len(columns) != wanted or any(column.shape != (count,) for column in columns):
            raise InvalidSetting(
                f"the metric {metric.name} must return {wanted} columns of shape ({count},), one "
                f"number for each study; it returned shapes {[c.shape for c in columns]}"
            )
        failures = dict(computed.failures)
        for row in np.flatnonzero(~np.isfinite(columns[0])).tolist():
            of_inputs = (v.failures[row] for v in batch.inputs if row in v.failures)
            is_lost = metric.uses_embeddings and not embedded(batch.embeddings, row)
            why = ": its embedding is not finite" if is_lost else ""
            own = VLScoreError(f"{metric.name} has no finite value for this study{why}")
            failures.setdefault(row, next(of_inputs, own))
        if metric.library == "own":
            for output, column in zip(metric.outputs, columns, strict=True):
                for row, reason in out_of_bounds(output, column).items():
                    failures.setdefault(row, VLScoreError(f"{metric.name} returned {reason}"))
        rows = list(failures)
        for column in columns:
            column[rows] = np.nan
        statistics = computed.statistics
        if statistics is not None:
            statistics = np.array(statistics, dtype=np.float64)
            statistics[rows] = 0.0
        signature = self.signature_of(metric, batch.embeddings)
        return Computed(columns, statistics, dict(sorted(failures.items())), signature)


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
    source: "EmbeddingTriples | StudyEmbedder | None" = None,
    comparisons: str | None = None,
    *,
    images: bool = True,
    C: float | None = None,
) -> tuple[list[Metric], dict[str, str]]:
    """Return the free metrics that can run here without settings, and why others cannot.

    Args:
        source: embeddings, or their embedder; None if metrics of embeddings cannot run.
        comparisons: as of `find_metrics`.
        images: whether there are images to embed.
        C: as of `Scorer`.

    Returns: metrics, and name -> reason for each metric that is left out.
    """
    usable: list[Metric] = []
    left_out: dict[str, str] = {}
    for name, metric in METRICS.items():
        if metric.cost != "free":
            reason: str | None = f"it runs only if it is named, because {_COSTS[metric.cost]}"
        else:
            reason = metric.missing() or lacks(metric, source, images=images, C=C)
        if reason is None and comparisons is not None:
            try:
                metric = without_comparisons(metric)
            except InvalidSetting as error:
                reason = str(error)
        if reason is None:
            usable.append(metric)
        else:
            left_out[name] = reason
    return usable, left_out


_COSTS = {"model": "a network computes it", "paid": "a service charges money for it"}


def lacks(
    metric: Metric,
    source: "EmbeddingTriples | StudyEmbedder | None",
    *,
    images: bool = True,
    C: float | None = None,
) -> str | None:
    """Return what a metric lacks, as a message; None if it lacks nothing.

    Args: source, images, C: as of `usable_metrics`.
    """
    if not metric.uses_embeddings:
        return None
    if source is None:
        return "it needs embeddings, but there is no encoder"
    if metric.uses_image and not images:
        return "it needs the image, but there are no images"
    if "C" in metric.settings:
        try:
            constant_of(metric, source.C if C is None else C)
        except InvalidSetting as error:
            return str(error)
    return None


def compute(
    metrics: Any,
    candidates: Any = None,
    references: Any = None,
    *,
    embeddings: EmbeddingTriples | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Compute each metric for each candidate.

    Args:
        metrics: names, as in "bleu-4" or "bleu-4(smoothing=exp)", or Metrics; one or several.
        candidates: n generated reports; an empty one is scored, not refused. None where metrics
            look at embeddings alone.
        references: n reference reports, none of them empty; None where no metric looks at them.
        embeddings: of the same n studies, where a metric looks at embeddings; `open_embeddings`
            reads those that were computed elsewhere.

    Returns: column -> (n,) float64, in the order of `metrics`; a metric of several numbers has
        several columns, the first under its own name.
    Raises: UnknownName, InvalidSetting, InvalidReport for a dict, a set, a table or one text in
        place of a list, and that names the position of an entry that is not a text, or of a
        reference that is empty,
        MissingDependency that says what to install.
    Warns: where candidates have no value; theirs is nan.

    >>> compute(["bleu-1"], ["No effusion ."], ["no effusion."])["bleu-1"].tolist()
    [1.0]
    """
    plan = Plan(metrics)
    plan.require()
    texts = None
    if candidates is None and references is None and embeddings is not None:
        # judge-image looks at embeddings and reads texts.
        if reading := [str(m) for m in plan.steps if not isinstance(m, EmbeddedMetric)]:
            raise InvalidSetting(f"{', '.join(reading)} read texts: pass candidates and references")
        candidates = texts = [""] * len(embeddings.candidates)
    row_labels(candidates=candidates, references=references)
    if references is not None:
        # Metrics of embeddings compare vectors, whatever the texts are.
        reads = any(m.uses_reference for m in plan.steps if not isinstance(m, EmbeddedMetric))
        texts = as_texts("references", references, may_be_empty=not reads)
    found = plan.values(Batch(as_texts("candidates", candidates), texts, embeddings))
    for metric, values in found.items():
        for row, error in islice(values.failures.items(), 1):
            lost = f"{len(values.failures)} of {len(values.columns[0])} candidates"
            warn_caller(f"{metric} is nan for {lost}; for candidate {row}, counted from 0: {error}")
    return {
        name: column
        for metric, values in found.items()
        for name, column in zip(metric.columns, values.columns, strict=True)
    }


def signature(metric: str | Metric, embeddings: EmbeddingTriples | None = None) -> Signature:
    """Return what a metric's numbers depend on: parameters, conventions, library and version.

    >>> str(signature("bleu-4")).split("|")[:4]
    ['bleu-4', 'smoothing:none', 'tokens:13a', 'case:lower']
    """
    plan = Plan([metric])
    plan.require()
    return plan.signature_of(plan.metrics[0], embeddings)
