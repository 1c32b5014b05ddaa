"""Values of every metric for original and perturbed reports: computed, or read from a table.

Such a table has the layout of the `values.csv` that `vlscore sensitivity` writes: `study_id`,
`kind`, and for each metric `NAME.original` and `NAME.perturbed`. The first row of a study and kind
is of its first change in perturbations.jsonl, the second of its second.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import Signature
from vlscore.data import columns_of
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, VLScoreError
from vlscore.evaluation.row_chunks import read_arrays, write_arrays
from vlscore.evaluation.sensitivities.changed_pairs import EmbeddedPairs, Pair
from vlscore.metrics import (
    Batch,
    EmbeddingTriples,
    Fit,
    Metric,
    Plan,
    ValueColumns,
    find_metrics,
    known_metric,
    lacks,
    usable_metrics,
)


@dataclass(frozen=True, eq=False)
class PairValues:
    """Values of a metric for n pairs; failed pairs hold nan.

    Attributes:
        metric: which metric.
        signature: what its numbers depend on.
        originals: (n,) values of the original report as the candidate, itself the reference.
        perturbed: (n,) values of the perturbed report, the original being the reference.
        failures: position of a pair -> why it lacks one of the two.
    """

    metric: Metric
    signature: Signature
    originals: NDArray[np.float64]
    perturbed: NDArray[np.float64]
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)

    @property
    def drops(self) -> NDArray[np.float64]:
        """Return (n,) losses by the perturbation; above 0 is worse, whatever the direction."""
        return self.metric.sign * (self.originals - self.perturbed)

    @property
    def has_both(self) -> NDArray[np.bool_]:
        """Return (n,) whether both values are there."""
        return np.asarray(np.isfinite(self.originals) & np.isfinite(self.perturbed))


def chosen_metrics(
    names: object, embeddings: EmbeddingTriples | None
) -> tuple[list[Metric], dict[str, str]]:
    """Return the metrics to compute, and those of the default list that cannot be, with the reason.

    Args:
        names: those asked for; None for every free metric that can be computed here.
        embeddings: of any number of pairs, where there are some.

    Raises: InvalidSetting or MissingDependency where a metric that was asked for cannot be; also
        where nothing is left to compute.
    """
    if names is None:
        metrics, left_out = usable_metrics(embeddings)
        if not metrics:
            raise InvalidSetting("no metric can be computed here: name an encoder or the studies")
        return metrics, left_out
    found = find_metrics(names)
    for metric in found:
        reason = lacks(metric, embeddings)
        if reason is not None:
            raise InvalidSetting(
                f"{metric} cannot be computed: {reason}. Give the studies' images (--studies) and "
                "an encoder (--encoder), as far as they are missing"
            )
    Plan(found).require()
    return list(found), {}


def fit_metrics(pairs: Sequence[Pair], metrics: Sequence[Metric]) -> Mapping[Metric, Fit]:
    """Fit the metrics that need it to the original reports; each study counts once."""
    originals = {pair.study_id: pair.original for pair in pairs}
    return Plan(metrics).fit(originals.values()).fits


def pair_values(
    pairs: Sequence[Pair],
    metrics: Sequence[Metric],
    embedded: EmbeddedPairs | None = None,
    *,
    text: str | None = None,
    images: Tensor | None = None,
    fits: Mapping[Metric, Fit] | None = None,
) -> list[PairValues]:
    """Compute the values of each metric; what is equal for several pairs is computed once.

    Args:
        pairs: as selected by the text policy.
        text: how that policy is printed.
        images: (n, d) to show instead of each study's own.
        fits: what metrics such as CIDEr-D were fitted to; default: these pairs' originals.

    Raises: InvalidSetting where a metric needs an encoder, or images, that are not there.
    """
    plan = Plan(metrics, text=text)
    plan = plan.fitted_as(fit_metrics(pairs, metrics) if fits is None else fits)
    # An original is compared with itself once a study, however many changes were made of it.
    keys = [(p.study_id, p.original, p.original) for p in pairs]
    keys += [(p.study_id, p.perturbed, p.original) for p in pairs]
    if images is not None:
        keys = [(str(row), g, r) for row, (_, g, r) in enumerate(keys)]
    first: dict[tuple[str, str, str], int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    rows = list(first.values())
    triples = _triples(embedded, images, rows) if embedded is not None else None
    batch = Batch([keys[row][1] for row in rows], [keys[row][2] for row in rows], triples)
    place = {key: k for k, key in enumerate(first)}
    spread = [place[key] for key in keys]
    found = []
    half = len(pairs)
    for metric, values in plan.values(batch).items():
        full = values.headline[spread]
        failures: dict[int, VLScoreError] = {}
        for row, k in enumerate(spread):
            if k in values.failures:
                failures.setdefault(row % half, values.failures[k])
        failures = dict(sorted(failures.items()))
        found.append(PairValues(metric, values.signature, full[:half], full[half:], failures))
    return found


def on_common_rows(values: Sequence[PairValues]) -> list[PairValues]:
    """Return the values with nan for each pair that some metric has no value for."""
    if not values:
        return []
    common = np.logical_and.reduce([each.has_both for each in values])
    return [
        replace(
            each,
            originals=np.where(common, each.originals, np.nan),
            perturbed=np.where(common, each.perturbed, np.nan),
        )
        for each in values
    ]


def without_rows(values: PairValues, failures: Mapping[int, VLScoreError]) -> PairValues:
    """Return the values, nan where a pair failed for a reason of its own."""
    originals, perturbed = values.originals.copy(), values.perturbed.copy()
    originals[list(failures)] = perturbed[list(failures)] = np.nan
    return replace(
        values,
        originals=originals,
        perturbed=perturbed,
        failures=dict(sorted({**values.failures, **failures}.items())),
    )


def all_failures(values: Iterable[PairValues]) -> dict[int, VLScoreError]:
    """Return position of a pair -> why the first metric that lacks a value for it has none."""
    found: dict[int, VLScoreError] = {}
    for each in values:
        found = {**each.failures, **found}
    return dict(sorted(found.items()))


def failure_reasons(failures: Mapping[int, VLScoreError], pairs: Sequence[Pair]) -> dict[str, str]:
    """Return study id -> why a pair of it has no values."""
    return {pairs[position].study_id: str(error) for position, error in failures.items()}


def _triples(
    embedded: EmbeddedPairs, images: Tensor | None, rows: Sequence[int]
) -> EmbeddingTriples:
    """Return triples at some rows: originals as candidates come first, then perturbed reports."""
    count = len(embedded.originals)
    own = [row % count for row in rows]
    both = embedded.triples(embedded.originals, images).take(own)
    candidates = both.candidates.clone()
    changed = [k for k, row in enumerate(rows) if row >= count]
    candidates[changed] = embedded.perturbed[[own[k] for k in changed]]
    return replace(both, candidates=candidates)


_ORIGINAL, _PERTURBED = ".original", ".perturbed"


def read_pair_values(
    path: str | Path, pairs: Sequence[Pair], *, lower_is_better: Collection[str] = ()
) -> tuple[list[PairValues], list[str]]:
    """Read the metrics of a table of values, nan where a pair has none; and notes.

    Directions and cells that are no numbers are treated as `ValueColumns` does. Rows of studies and
    kinds that no pair has are left out, and a note counts them.

    Raises:
        InvalidTable: the file cannot be read, has not the columns, has more rows of a study and
            kind than there are changes, or has no row of a pair.
        InvalidSetting: a name in `lower_is_better` is no metric of the table.
    """
    path = Path(path)
    found = columns_of(path)
    names = [
        column.removesuffix(_ORIGINAL)
        for column in found
        if column.endswith(_ORIGINAL) and column.removesuffix(_ORIGINAL) + _PERTURBED in found
    ]
    if not {"study_id", "kind"} <= set(found) or not names:
        raise InvalidTable(
            f"{path}: needs the columns study_id, kind, and NAME{_ORIGINAL} and NAME{_PERTURBED} "
            f"of each metric; found: {', '.join(found)}"
        )
    columns = ValueColumns(path, names, lower_is_better)
    values = np.full((len(names), 2, len(pairs)), np.nan)
    reasons: list[dict[int, str]] = [{} for _ in names]
    for number, row, record in _placed(path, pairs, columns):
        for k, name in enumerate(names):
            for which, suffix in enumerate((_ORIGINAL, _PERTURBED)):
                column = name + suffix
                values[k, which, row], why = columns.value(number, record[column], column)
                if why is not None:
                    reasons[k].setdefault(row, why)
    given = [
        PairValues(
            metric := _metric(name, columns),
            columns.signature.of(str(metric)),
            numbers[0],
            numbers[1],
            {
                int(row): InvalidStudy(why.get(int(row), columns.lacking))
                for row in np.flatnonzero(~np.isfinite(numbers).all(0))
            },
        )
        for name, numbers, why in zip(names, values, reasons, strict=True)
    ]
    return given, columns.notes("study and kind of the perturbations")


def _placed(
    path: Path, pairs: Sequence[Pair], columns: ValueColumns
) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yield number of a row, position of its pair, and the row; rows of no pair are passed over."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for k, pair in enumerate(pairs):
        places[pair.study_id, pair.kind].append(k)
    taken: dict[tuple[str, str], int] = defaultdict(int)
    for number, (study, kind), record in columns.rows("study_id", "kind"):
        key = study, kind
        if key not in places:
            columns.pass_over()
            continue
        rows = places[key]
        if taken[key] == len(rows):
            raise InvalidTable(
                f"{path}, row {number}: the perturbations have {len(rows)} changes of kind "
                f"{kind!r} of study {study!r}, and this is one more"
            )
        taken[key] += 1
        yield number, rows[taken[key] - 1], record
    if not taken:
        raise InvalidTable(f"{path}: none of its rows is of a study and kind of the perturbations")


def _metric(name: str, columns: ValueColumns) -> Metric:
    higher_is_better = columns.is_higher_better(name)
    known = known_metric(name)
    if known is not None and str(known) == name:
        # A name with parameters: only the metric itself has them.
        return replace(known, higher_is_better=higher_is_better)
    try:
        return Metric(
            name=name,
            description=f"values of {columns.path.name}",
            higher_is_better=higher_is_better,
            bounds=(None, None),
            uses_image=False,
            uses_reference=True,
            citation=f"computed elsewhere: {columns.path.name}",
        )
    except VLScoreError as error:
        raise InvalidTable(f"{columns.path}: {error}") from None


def write_values(
    place: Path, values: Sequence[PairValues], failures: Mapping[int, VLScoreError]
) -> None:
    """Write the values of n pairs of a chunk, and why some have none.

    Args: failures: by the position of a pair among all of the run.
    """
    numbers = np.stack([np.stack([each.originals, each.perturbed]) for each in values])
    write_arrays(place, {str(k): str(error) for k, error in failures.items()}, values=numbers)


def read_values(place: Path) -> tuple[NDArray[np.float64], dict[int, VLScoreError]]:
    """Return (metrics, 2, n) originals and perturbed of each metric in a chunk, and failures."""
    arrays, failed = read_arrays(place)
    return arrays["values"], {int(k): InvalidStudy(reason) for k, reason in failed.items()}
