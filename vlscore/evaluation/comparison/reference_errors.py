"""Rankings of systems with the errors of the references integrated out.

Applies to F1 of labels over a corpus, which are computed from counts of each label. Each draw
resamples studies or patients, draws the rates of the references' errors, and corrects the counts of
all systems (`vlscore.stats.true_counts`). Row 0 of all arrays is the estimate itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import file_digest, frame
from vlscore.errors import InvalidSetting
from vlscore.evaluation.comparison.comparison_settings import ComparisonSettings
from vlscore.evaluation.comparison.error_rates import (
    ErrorRates,
    file_of_rates,
    read_rates,
    second_column,
    second_report_rates,
)
from vlscore.evaluation.comparison.sources import column_of
from vlscore.evaluation.comparison.statistics import Number, is_tested
from vlscore.evaluation.comparison.systems import Systems
from vlscore.metrics import Metric, corpus_name, corpus_of_sums, support_of_sums
from vlscore.stats import (
    Array,
    Content,
    Interval,
    bootstrap_interval,
    false_discovery_of,
    first_crossing,
    invented_of,
    rank_shares,
    resampled_sums,
    sums_by_group,
    true_counts,
)

# Share of draws with impossible counts from which on the rates contradict the data.
_CONTRADICTS = 0.975
# Number of scales of the rates at which places are compared; the largest rate then is 0.9.
_SCALES, _LARGEST = 41, 0.9
Record = dict[str, Any]


def errors_key(metrics: Iterable[Metric], settings: ComparisonSettings) -> dict[str, Any]:
    """Return what corrected numbers depend on.

    Raises: InvalidSetting where no metric counts labels, or the rates cannot be read.
    """
    if not (labelled := [metric for metric in metrics if metric.counted_labels()]):
        raise InvalidSetting(
            "only the F1 of labels can be corrected for errors of the references; add findings-f1 "
            "or chexbert-f1 to the metrics"
        )
    given = settings.reference_errors or ""
    rates: Any = second_column(given)
    if rates is None:
        for metric in labelled:
            read_rates(given, metric.counted_labels())
        rates = file_digest(file_of_rates(given))
    return {"reference_errors": [rates, settings.shared_errors]}


def corrected_rankings(
    systems: Systems, names: Sequence[str], numbers: Sequence[Number], settings: ComparisonSettings
) -> Content:
    """Return frames and notes of every F1 of labels, corrected.

    Args:
        names: of k systems.
        numbers: of the systems, with the statistics (k, n, s) of corpus values.

    Raises: InvalidSetting where rates cannot be estimated from second reports.
    """
    given = settings.reference_errors or ""
    second = second_column(given)
    texts = [] if second is None else _second_reports(systems, second[1])
    of_corpus = {each.corpus[0]: each.statistics for each in numbers if each.corpus}
    metrics = [metric for metric in of_corpus if metric.counted_labels()]
    others = [str(metric) for metric in systems.signatures if metric not in metrics]
    notes = [
        "errors of the references are integrated out of the F1 of labels over the corpus "
        f"({', '.join(map(str, metrics))}), but not out of means over studies"
        + (f", nor of {', '.join(others)}, which count no labels" if others else "")
    ]
    rates_of, of_systems, pairs = [], [], []
    for metric in metrics:
        sums, labels = of_corpus[metric], metric.counted_labels()
        there = np.isfinite(sums).all((0, 2))
        if not there.any():
            raise InvalidSetting(f"no study has a value of {metric} of every system")
        if second is None:
            rates = read_rates(given, labels)
        else:
            rates = second_report_rates(texts, metric, systems.policy, *second)
        whose = systems.patients and [systems.patients[int(k)] for k in np.flatnonzero(there)]
        one = Correction(metric, names, sums[:, there], rates, settings, whose)
        rates_of += one.error_rates()
        of_systems += one.numbers
        pairs += one.pairs
        notes += one.notes()
    named = {"": of_systems, "_pairs": pairs, "_rates": rates_of}
    frames = {f"reference_errors{name}": frame(each) for name, each in named.items()}
    return Content(frames, notes=notes)


class Correction:
    """The numbers of one metric of k systems, corrected.

    Args:
        sums: (k, n, 3 m) true positives, false positives and misses of m labels in n studies.
        patients: whose each study is; whole patients are then resampled.

    Attributes:
        hits, extra: (1 + r, k, m) films where a system states a label; hits: and the reference
            does, too. stated: (1 + r, 1, m), where the reference states it. films: (1 + r, 1, 1),
            their number. units: number of studies, or patients, that were resampled.
        scored, values: number -> (1 + r, k), against the references and against the truth; those
            alone that can be corrected.
        places: number -> shares (g, 1 + r) of wrong references, values (g, 1 + r, k) there. All
            rates grow together: one factor multiplies their odds. Values are nan from where on the
            references could not agree with a system as often as they do.
        numbers, pairs: rows of the frames, one a number and system, one a number and two systems.
    """

    def __init__(
        self,
        metric: Metric,
        names: Sequence[str],
        sums: Array,
        rates: ErrorRates,
        settings: ComparisonSettings,
        patients: Sequence[str] | None = None,
    ) -> None:
        self.metric, self.names, self.rates = metric, names, rates
        self.settings, self.labels = settings, metric.counted_labels()
        systems, count, _ = sums.shape
        units = np.hstack([sums.transpose(1, 0, 2).reshape(count, -1), np.ones((count, 1))])
        if patients is not None:
            units = sums_by_group(units, patients)
        rng = np.random.default_rng(settings.seed)
        drawn = np.vstack([units.sum(0), resampled_sums(units, settings.resamples, rng)])
        parts = drawn[:, :-1].reshape(len(drawn), systems, 3, -1).transpose(2, 0, 1, 3)
        self.hits, self.extra, lacking = parts
        self.stated, self.films = (self.hits + lacking)[:, :1], drawn[:, -1:, None]
        self.units = len(units)
        self._rng = np.random.default_rng([settings.seed, 1])
        self._stated_by_system = self.hits + self.extra
        with np.errstate(invalid="ignore", divide="ignore"):
            counts = self.stated[:, 0], self.films[:, 0]
            both = rates.draw(len(self.films) - 1, self._rng, *counts)
            self.missed, self.invented = (each[:, None] for each in both)
            given = (self.missed, self.stated, self.films)
            self.false = false_discovery_of(self.invented, *given)
            self.true, self.present = self._corrected(self.missed, self.invented)
            has_rate = np.isfinite(self.missed[0, 0] + self.invented[0, 0])
            self._used = _labels_behind(metric, len(self.labels))
            self._refused = {name: self._why_not(name, has_rate) for name in self._used}
            scored = self._numbers(self.hits, self.stated)
            corrected = self._numbers(self.true, self.present)
            # A label that neither references nor systems state has no F1.
            self.scored = {
                name: each
                for name, each in scored.items()
                if not self._refused[name] and np.isfinite(each[0] + corrected[name][0]).all()
            }
            self.values = {name: corrected[name] for name in self.scored}
            self.places = self._places() if len(names) > 1 else {}
        self.numbers = [row for name in self.values for row in self._numbers_of(name)]
        self.pairs = [row for name in self.places for row in self._pairs_of(name)]

    def _corrected(self, missed: Array, invented: Array) -> tuple[Array, Array]:
        given = (self.hits, self.extra, self.stated, self.films, missed, invented)
        return true_counts(*given, self.settings.shared_errors)

    def _numbers(self, true: Array, present: Array) -> dict[str, Array]:
        """Return the corpus values (1 + r, k) of true positives and present findings.

        Pooled counts are not limited, because the limits of rare findings add up to a bias.
        """
        stated, films = self._stated_by_system, self.films
        outputs = [each.name for each in self.metric.corpus]
        pooled = {name for name in outputs if name.startswith("micro")}
        found: dict[str, Array] = {}
        for chosen in (pooled, {*outputs} - pooled):
            if not chosen:
                continue
            tp, of = true, present
            if chosen is not pooled:
                of = np.clip(present, 0, films)
                tp = np.clip(true, np.maximum(stated + of - films, 0), np.minimum(stated, of))
            sums = np.concatenate([tp, stated - tp, of - tp], axis=2)
            # Labels without rates; no number is made of them.
            sums = np.where(np.isfinite(sums), sums, 0).reshape(-1, sums.shape[2])
            numbers = corpus_of_sums(self.metric, sums)
            found |= {n: np.clip(numbers[n].reshape(true.shape[:2]), 0, 1) for n in chosen}
        return {name: found[name] for name in outputs}

    def _why_not(self, output: str, has_rate: NDArray[np.bool_]) -> str:
        """Return why a number cannot be corrected; "" where it can."""
        used, films = self._used[output], self.films
        for k in used:
            if not has_rate[k]:
                few = "the references state too few findings for rates of errors"
                return few if self.rates.origin[k] else f"{self.labels[k]} has no rates"
        wrong = ((self.present < 0) | (self.present > films))[1:, 0].mean(0) > _CONTRADICTS
        wrong |= (self.missed + self.invented)[0, 0] >= 1
        for k in used:
            if wrong[k]:
                return (
                    f"{self.labels[k]}: the references state it in "
                    f"{self.stated[0, 0, k]:.0f} of {films[0, 0, 0]:.0f} films, which no "
                    f"references do that miss {self.missed[0, 0, k]:.3g} and invent "
                    f"{self.invented[0, 0, k]:.3g}; give it a rate of its own, or "
                    "false_discovery, a share of what the references state"
                )
        stated = self._stated_by_system[1:, :, used].sum(2)
        too_true = (self.true[1:, :, used].sum(2) > stated).mean(0)
        if (too_true > _CONTRADICTS).any():
            return (
                f"{self.names[int(too_true.argmax())]} agrees with the references more often than "
                "independent errors of these rates allow: it repeats their errors "
                "(shared_errors), or they have fewer"
            )
        return ""

    def _places(self) -> dict[str, tuple[Array, Array]]:
        base = [np.clip(np.nan_to_num(p), 0, 1 - 1e-9) for p in (self.missed, self.false)]
        odds = max(float((p[0] / (1 - p[0])).max()) for p in base)
        shares: dict[str, list[Array]] = {name: [] for name in self.values}
        values: dict[str, list[Array]] = {name: [] for name in self.values}
        for part in np.linspace(0, 1, _SCALES) ** 2:
            scale = part * _LARGEST / (1 - _LARGEST) / max(odds, 1e-9)
            m, q = (scale * p / (1 - p + scale * p) for p in base)
            true, present = self._corrected(m, invented_of(q, m, self.stated, self.films))
            numbers = self._numbers(true, present)
            errors = ((np.maximum(present, 0) * m + q * self.stated) / self.films)[:, 0]
            for name, all_numbers in values.items():
                used = self._used[name]
                possible = true[0][:, used].sum(1) <= self._stated_by_system[0][:, used].sum(1)
                possible &= present[0, 0, used].sum() <= self.films[0, 0, 0] * len(used)
                shares[name].append(-np.expm1(-errors[:, used].sum(1)))
                all_numbers.append(np.where(possible, numbers[name], np.nan))
        return {name: (np.array(shares[name]), np.array(values[name])) for name in values}

    def _interval(self, drawn: Array) -> Interval:
        return bootstrap_interval(drawn, self.units)

    def error_rates(self) -> list[Record]:
        """Return one row a label: how often references state it, its rates, how often it is."""
        stated, films = self.stated, self.films
        false = np.where(stated > 0, self.false, np.nan)
        return [
            {
                "metric": str(self.metric),
                "finding": name,
                "rates": self.rates.origin[k],
                "title": self.metric.printed(self.metric.primary, of_corpus=True),
                "primary": corpus_name(self.metric, self.metric.primary),
                "source": self.rates.source,
                "sources": "; ".join((self.rates.source, *self.rates.notes)),
                "stated": float(stated[0, 0, k] / films[0, 0, 0]),
                "missed": self._interval(self.missed[:, 0, k]),
                "false_discovery": self._interval(false[:, 0, k]),
                "present": self._interval((self.present / films)[:, 0, k]),
            }
            for k, name in enumerate(self.labels)
            if self.rates.origin[k]
        ]

    def _numbers_of(self, output: str) -> Iterator[Record]:
        values = self.values[output]
        ranks = rank_shares(values[1:][np.isfinite(values[1:]).all(1)], self._rng)
        for k, system in enumerate(self.names):
            tp, fp = self.hits[0, k], self.extra[0, k]
            sums = np.concatenate([tp, fp, self.stated[0, 0] - tp])
            support = support_of_sums(self.metric, sums).get(output)
            yield {
                "metric": corpus_name(self.metric, output),
                "system": system,
                "n": int(self.films[0, 0, 0]),
                "scored": float(self.scored[output][0, k]),
                "corrected": self._interval(values[:, k]).supported(support),
                **{f"rank_{r}": float(p) for r, p in enumerate(ranks[k], start=1)},
            }

    def _pairs_of(self, output: str) -> Iterator[Record]:
        shares, values = self.places[output]
        corrected, scored = self.values[output], self.scored[output][0]
        for a, b in combinations(range(len(self.names)), 2):
            if not is_tested(self.names[a], self.names[b], self.settings.against):
                continue
            apart, sign = corrected[:, a] - corrected[:, b], np.sign(scored[a] - scored[b])
            places = first_crossing(shares, values[:, :, a] - values[:, :, b], float(sign))
            ordered = np.sort(places[1:])
            tail = int(0.025 * len(ordered))
            place = [places[0], ordered[tail], ordered[-1 - tail]]
            drawn = apart[1:][~np.isnan(apart[1:])]
            yield {
                "metric": corpus_name(self.metric, output),
                "first": self.names[a],
                "second": self.names[b],
                "scored": float(scored[a] - scored[b]),
                "corrected": self._interval(apart),
                "first_better": float((np.sign(drawn).mean() + 1) / 2),
                # nan: at no share; equal systems have none.
                "place": Interval(*np.where(np.isinf(place) | (not sign), np.nan, place).tolist()),
                "searched_to": float(shares[np.isfinite(values[:, 0]).all(1), 0].max()),
            }

    def notes(self) -> list[str]:
        """Return what the numbers rest on, and which are left out."""
        shared = self.settings.shared_errors
        more = f", but that a system repeats {shared:.0%} of the errors" if shared else ""
        left_out: dict[str, list[str]] = {}
        for name, why in self._refused.items():
            left_out.setdefault(why, []).append(name)
        left_out.pop("", None)
        return [
            f"{self.metric}: rates of errors of the references are those of {self.rates.source}; "
            "the table of errors says what is known of them, and what is assumed",
            "assumed: what a system states and the errors of the references are independent, given "
            f"what the film shows{more}; a system that learned to repeat such errors is corrected "
            "too far upwards",
            *(
                f"{self.metric}: {', '.join(names)} are not corrected: {why}"
                for why, names in left_out.items()
            ),
        ]


def _labels_behind(metric: Metric, labels: int) -> dict[str, list[int]]:
    """Return each corpus value -> the labels that it is computed from.

    Found by counting one label differently, so that no metric needs to list them.
    """
    sums = np.ones((1 + labels, 3 * labels))
    sums[np.arange(1, 1 + labels), np.arange(labels)] = 7
    return {
        name: [k for k in range(labels) if values[k + 1] != values[0]]
        for name, values in corpus_of_sums(metric, sums).items()
    }


def _second_reports(systems: Systems, column: str) -> list[tuple[str, str]]:
    """Return the second report and the reference of each study that has both."""
    texts = column_of(column, systems.sources, systems.ids)
    return [
        (systems.section(texts[name], "reference"), reference)
        for name, reference in zip(systems.ids, systems.references, strict=True)
        if name in texts and reference is not None
    ]
