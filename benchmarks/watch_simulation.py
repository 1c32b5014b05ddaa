"""Claim: false alarms of `vlscore watch` are as rare as stated, and drifts are found within days.

Protocol: a day has a Poisson number of reports, 100 on weekdays and 40 at weekends. What is watched
are 17 values: the significant errors of a report (Poisson, mean .25), its score (mean .75, standard
deviation .25), empty reports (1 in 200), and CheXpert's 14 labels at the shares below. Three kinds
of quiet years, of 30 days of reference and 365 days that are compared:

- equal days: all reports are independent;
- days that differ: each day multiplies errors and shares by a lognormal factor of its own
  (sigma .2), and shifts the score by .05 (standard deviation), as patients of a day resemble one
  another; findings are then dependent, too;
- weekends that differ: the same, and shares and errors are 1.5 times as large at weekends.

For comparison, a test that takes all reports for independent: the normal z of a day against all
reports before it makes the same kind of evidence. Drifts begin on day 31, 91 or 366 of days that
differ, and the delay is the number of days up to the alarm, its day included; at most 180. Nothing
of this was used to choose the bets.

Run: python benchmarks/watch_simulation.py [--years 1000] [--drifts 200]
         [--out benchmarks/results/watch_simulation.md]
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from machine import describe_machine, publish
from scipy.stats import binomtest, norm

from vlscore.evaluation import WatchSettings
from vlscore.stats import TextTable, evidence_of_change, sequential_p_values

#: Shares of CheXpert's 14 labels; the second one drifts.
SHARES = np.array(
    [0.35, 0.10, 0.12, 0.03, 0.15, 0.08, 0.03, 0.05, 0.12, 0.02, 0.15, 0.01, 0.03, 0.25]
)
ERRORS, SCORE, SPREAD, EMPTY = 0.25, 0.75, 0.25, 0.005
WEEKDAY, WEEKEND = 100, 40
LABELS = len(SHARES)
#: Errors, score, empty reports, labels: as the command weighs them.
DIRECTIONS = [1, -1, 1] + [0] * LABELS
WEIGHTS = np.array([1 / 3, 1 / 3] + [1 / 3 / (LABELS + 1)] * (LABELS + 1))
SETTINGS = WatchSettings()
QUIET = ("equal days", "days that differ", "weekends that differ")
DRIFTS = {
    "errors x 1.5": {"errors": 1.5},
    "errors x 2": {"errors": 2.0},
    "share of one finding + 5 points": {"share": 0.05},
    "share of one finding + 10 points": {"share": 0.10},
    "score - .05": {"score": -0.05},
}
LONGEST, BEFORE, RATES = 180, (30, 90, 365), (SETTINGS.rate, 0.5)
# Years of the test that the command does not make; courses that are computed together.
FEWER, BATCH = 200, 50


def days_of(
    kind: str, days: int, seed: int, begin: int = 0, drift: Mapping[str, float] | None = None
) -> "Days":
    """Return reports and sums (days, streams) of simulated days, and the kind of each day.

    Args: begin: day from which `drift` holds.
    """
    rng = np.random.default_rng([seed, QUIET.index(kind)])
    is_weekend = np.arange(days) % 7 >= 5
    reports = rng.poisson(np.where(is_weekend, WEEKEND, WEEKDAY)) + 1
    factors, shift = np.ones((days, 1 + LABELS)), np.zeros(days)
    if kind != QUIET[0]:
        factors *= rng.lognormal(0, 0.2, factors.shape)
        shift = rng.normal(0, 0.05, days)
    if kind == QUIET[2]:
        factors[is_weekend] *= 1.5
    errors, shares = ERRORS * factors[:, 0], SHARES * factors[:, 1:]
    score = SCORE + shift
    for name, size in (drift or {}).items():
        if name == "errors":
            errors[begin:] *= size
        elif name == "share":
            shares[begin:, 1] += size
        else:
            score[begin:] += size
    sums = np.column_stack(
        [
            rng.poisson(reports * errors),
            reports * score + rng.normal(0, SPREAD, days) * np.sqrt(reports),
            rng.binomial(reports, EMPTY),
            rng.binomial(reports[:, None], np.clip(shares, 0, 1)),
        ]
    )
    counts = np.repeat(reports[:, None], sums.shape[1], axis=1)
    return counts, sums, ["weekend" if each else "weekday" for each in is_weekend]


Days = tuple[np.ndarray, np.ndarray, list[str]]


def evidence_of(simulated: Sequence[Days], seed: int) -> np.ndarray:
    """Return the largest evidence (compared days, n) of n courses of equally many days."""
    counts, sums = (np.hstack([each[k] for each in simulated]) for k in (0, 1))
    p = sequential_p_values(counts, sums, simulated[0][2], seed)
    return largest(p[SETTINGS.reference_days :], len(simulated))


def evidence_report_by_report(simulated: Sequence[Days]) -> np.ndarray:
    """Return the same of a test that takes reports for independent.

    Each day is compared with all reports before it by a normal z, whose variance is that of
    independent reports.
    """
    n, total = (np.hstack([each[k] for each in simulated]).astype(float) for k in (0, 1))
    before = np.cumsum(total, axis=0) - total
    seen = np.maximum(np.cumsum(n, axis=0) - n, 1)
    mean = before / seen
    variance = mean * (1 - mean)
    variance[:, :: len(DIRECTIONS)] = mean[:, :: len(DIRECTIONS)]
    variance[:, 1 :: len(DIRECTIONS)] = SPREAD**2
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (total / n - mean) / np.sqrt(variance * (1 / n + 1 / seen))
    p = np.clip(norm.sf(np.nan_to_num(z)), 1e-12, 1 - 1e-12)
    return largest(p[SETTINGS.reference_days :], len(simulated))


def largest(p: np.ndarray, courses: int) -> np.ndarray:
    """Return the largest evidence (days, courses) of p values (days, courses * streams)."""
    evidence = evidence_of_change(p, DIRECTIONS * courses).reshape(len(p), courses, -1)
    return (evidence * WEIGHTS).max(axis=2)


def quiet_years(years: int) -> TextTable:
    """Return the share of quiet years with a false alarm."""
    rows, fewer = [], min(years, FEWER)
    days = SETTINGS.reference_days + 365
    for kind in QUIET:
        ours = other = 0
        for start in range(0, years, BATCH):
            seeds = range(start, min(start + BATCH, years))
            simulated = [days_of(kind, days, seed) for seed in seeds]
            ours += _alarms(evidence_of(simulated, start))
            if start < fewer:
                other += _alarms(evidence_report_by_report(simulated[: fewer - start]))
        rows.append((kind, _share(ours, years), _share(other, fewer)))
    heads = ("quiet year", "watch", f"reports taken as independent ({fewer} years)")
    return TextTable("", heads, tuple(rows))


def _alarms(evidence: np.ndarray) -> int:
    """Return the number of courses with an alarm."""
    return int((evidence.max(axis=0) >= SETTINGS.threshold).sum())


def _share(alarms: int, years: int) -> str:
    low, high = binomtest(int(alarms), years).proportion_ci(method="wilson")
    return f"{alarms / years:.3f} [{low:.3f}, {high:.3f}]"


def delays(repetitions: int) -> list[TextTable]:
    """Return a table a rate of false alarms with the delay of each drift."""
    rows: dict[float, list[tuple[str, ...]]] = {rate: [] for rate in RATES}
    for name, drift in DRIFTS.items():
        cells = {rate: [name] for rate in RATES}
        for before in BEFORE:
            start = before - SETTINGS.reference_days
            found: dict[float, list[float]] = {rate: [] for rate in RATES}
            simulated = [
                days_of(QUIET[1], before + LONGEST, 10_000 + seed, before, drift)
                for seed in range(repetitions)
            ]
            for evidence in evidence_of(simulated, before).T:
                for rate, own in found.items():
                    alarms = np.flatnonzero(evidence >= 365 / rate)
                    day = alarms[0] + 1 - start if len(alarms) else np.inf
                    # An alarm before the drift is a false one, and has no delay.
                    own += [day] if day >= 1 else []
            for rate, own in found.items():
                cells[rate].append(_delay(own))
        for rate, each in cells.items():
            rows[rate].append(tuple(each))
    heads = ("drift", *(f"after {days} days" for days in BEFORE))
    return [TextTable("", heads, tuple(own)) for own in rows.values()]


def _delay(days: Sequence[float]) -> str:
    found = [np.quantile(days, q, method="higher") for q in (0.5, 0.9)]
    middle, most = (f"{each:.0f}" if np.isfinite(each) else f"> {LONGEST}" for each in found)
    missed = float(np.mean(np.isinf(days)))
    return f"{middle} ({most})" + (f", {missed:.2f} not" if missed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--years", type=int, default=1000)
    parser.add_argument("--drifts", type=int, default=200)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rate, reference = SETTINGS.rate, SETTINGS.reference_days
    usual, often = delays(arguments.drifts)
    parts = [
        "# How often does a watch give a false alarm, and how soon a true one?",
        describe_machine(),
        f"Share of {arguments.years:,} quiet years with a false alarm, with Wilson's 95 % "
        f"interval; at most {rate:g} is stated (--rate {rate:g}, the default). The last "
        "column is what the command does not do.",
        quiet_years(arguments.years).markdown(),
        f"Delay of a drift in days, at this rate: median (nine of ten) of {arguments.drifts} "
        f"drifts among days that differ, and the share that {LONGEST} days do not show. The "
        f"drift begins after so many days, of which {reference} are the reference period. "
        f"{(5 * WEEKDAY + 2 * WEEKEND) / 7:.0f} reports a day in the mean.",
        usual.markdown(),
        f"The same with --rate {RATES[1]:g}:",
        often.markdown(),
    ]
    publish("\n\n".join(parts), arguments.out)


if __name__ == "__main__":
    main()
