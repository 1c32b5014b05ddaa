"""What a generator's reports of altered films say of it, as shares with intervals over studies.

- grounding: of the findings in the first report, the share that go when their region is covered,
  minus the share that go when another region is; likewise with another study's film, minus the
  share that go under a harmless change.
- side: of the one-sided findings, the share that change sides with the mirrored film, minus the
  share that do so under a harmless change.
- invention: findings stated about an empty film.
- steadiness: findings that both reports state, of those that either does, under a harmless change.
- echo: likeness of reports of different films.

Intervals of shares and of their differences are those of Agresti and Min (Biometrics 2005, 61,
515-523): two studies without any effect, half of them of either sign, are added, and the variance
is that of means over studies. They hold where every finding behaves alike, which a bootstrap does
not.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.evaluation.audit.audit_settings import (
    BLANK,
    ELSEWHERE,
    HARMLESS,
    HIDDEN,
    MIRRORED,
    ORIGINAL,
    OTHER,
)
from vlscore.findings import extract
from vlscore.stats import UNDEFINED, Interval, benjamini_hochberg, paired_p_value

if TYPE_CHECKING:
    import pandas

#: Observation -> the sides on which a report states it.
Stated = Mapping[str, frozenset[str]]
#: The record of all findings together.
ALL = "all findings"
_Z = 1.959963984540054
_OPPOSITE = {
    frozenset(("left",)): frozenset(("right",)),
    frozenset(("right",)): frozenset(("left",)),
}


def stated(report: str) -> dict[str, frozenset[str]]:
    """Return the findings that a report states as present, with their sides.

    >>> {name: sorted(sides) for name, sides in stated("Small left effusion. No edema.").items()}
    {'pleural_effusion': ['left']}
    """
    found: dict[str, frozenset[str]] = {}
    for each in extract(report).present:
        found[each.observation] = found.get(each.observation, frozenset()) | frozenset(each.sides)
    return found


def difference(pairs: Sequence[tuple[str, float, float]]) -> Interval:
    """Return the mean of first minus second, with an interval over studies; nan without a pair.

    Args: pairs: (study, first, second), both between 0 and 1.
    """
    return _mean_over_studies([(study, one - two) for study, one, two in pairs], is_signed=True)


def share(values: Sequence[tuple[str, float]]) -> Interval:
    """Return the mean of values between 0 and 1, with an interval over studies."""
    return _mean_over_studies(values, is_signed=False)


def _mean_over_studies(values: Sequence[tuple[str, float]], *, is_signed: bool) -> Interval:
    if not values:
        return UNDEFINED
    places: dict[str, int] = {}
    rows = np.array([places.setdefault(study, len(places)) for study, _ in values])
    sums = np.bincount(rows, [value for _, value in values])
    counts = np.bincount(rows).astype(np.float64)
    estimate = float(sums.sum() / counts.sum())
    # Two studies more, of the usual number of findings, that show no effect on the whole.
    usual = counts.mean()
    extra = [(0.5, usual), (0.5, -usual), (1.0, 0.0)] if is_signed else [(1.0, usual), (1.0, 0.0)]
    more, further = np.transpose(extra)
    weights = np.append(np.ones(len(sums)), more)
    sums, counts = np.append(sums, further), np.append(counts, np.full(len(extra), usual))
    middle = (weights * sums).sum() / (weights * counts).sum()
    spread = (weights * (sums - middle * counts) ** 2).sum()
    width = _Z * float(np.sqrt(spread)) / float((weights * counts).sum())
    least = -1.0 if is_signed else 0.0
    return Interval(estimate, max(float(middle) - width, least), min(float(middle) + width, 1.0))


def effects_of(films: "pandas.DataFrame") -> dict[str, Any]:
    """Return the rows from which all shares are computed, of one generator.

    Args: films: with the study, alteration and finding of key.jsonl; the sides on which the region
        of the finding lies, none where it is not known, or has none; and what the generator's
        report states.
    Returns: "region", "film" (study, finding, gone, gone without cause), "side" (study, finding,
        followed, changed without cause), "blank" (study, findings), "steadiness" (study, share).
    """
    by_study: dict[str, dict[tuple[str, str | None], Stated]] = {}
    regions: dict[tuple[str, str | None], frozenset[str]] = {}
    columns = (films[name] for name in ("study", "alteration", "finding", "sides", "stated"))
    for study, alteration, finding, sides, found in zip(*columns, strict=True):
        by_study.setdefault(study, {})[alteration, finding] = found
        if alteration == HIDDEN:
            regions[study, finding] = frozenset(sides)
    effects: dict[str, Any] = {n: [] for n in ("region", "film", "side", "blank", "steadiness")}
    for study, of in by_study.items():
        first = of.get((ORIGINAL, None))
        if (invented := of.get((BLANK, None))) is not None:
            effects["blank"].append((study, tuple(invented)))
        if first is None:
            continue
        calm = [of[kind, None] for kind in HARMLESS if (kind, None) in of]
        effects["steadiness"] += [(study, _likeness(first, each)) for each in calm]
        for name, sides in first.items():
            hidden, elsewhere = of.get((HIDDEN, name)), of.get((ELSEWHERE, name))
            covered = regions.get((study, name))
            # A finding of the other side has not lost its region.
            is_own = not (sides and covered and sides.isdisjoint(covered))
            if hidden is not None and elsewhere is not None and is_own:
                effects["region"].append(
                    (study, name, float(name not in hidden), float(name not in elsewhere))
                )
            other = of.get((OTHER, None))
            if other is not None and calm:
                gone = sum(name not in each for each in calm) / len(calm)
                effects["film"].append((study, name, float(name not in other), gone))
            turned = of.get((MIRRORED, None), {}).get(name)
            if sides in _OPPOSITE and turned in _OPPOSITE and calm:
                still = [each[name] for each in calm if each.get(name) in _OPPOSITE]
                if still:
                    changed = float(np.mean([each != sides for each in still]))
                    effects["side"].append((study, name, float(turned != sides), changed))
    return effects


def _likeness(one: Stated, other: Stated) -> float:
    both = len(one.keys() & other.keys())
    return both / (len(one) + len(other) - both) if one or other else 1.0


def findings_frame(effects: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one record a finding, and one of all ("all findings"): grounding by region and film.

    p values are of Wilcoxon's signed-rank test of studies, adjusted (Benjamini-Hochberg) over all
    findings and both ways.
    """
    names = {name for way in ("region", "film") for _, name, *_ in effects[way]}
    names |= {name for _, found in effects["blank"] for name in found}
    records: list[dict[str, Any]] = []
    for name in (ALL, *sorted(names)):
        record: dict[str, Any] = {"finding": name}
        for way in ("region", "film"):
            rows = [(study, *shares) for study, n, *shares in effects[way] if name in (ALL, n)]
            record |= {f"n_{way}": len(rows), f"grounding_{way}": difference(rows)}
            record[f"p_{way}"] = _p_value(rows)
        blanks = [
            (s, float(bool(found) if name == ALL else name in found))
            for s, found in effects["blank"]
        ]
        record["invented"] = share(blanks)
        records.append(record)
    ways = [(record, way) for record in records[1:] for way in ("region", "film")]
    adjusted = benjamini_hochberg([r[f"p_{w}"] for r, w in ways]) if ways else ()
    for (record, way), p in zip(ways, adjusted, strict=True):
        record[f"adjusted_p_{way}"] = float(p)
    for way in ("region", "film"):
        records[0][f"adjusted_p_{way}"] = records[0][f"p_{way}"]
    return records


def _p_value(rows: Sequence[tuple[str, float, float]]) -> float:
    """Return the p value over studies, whose findings are taken together."""
    studies: dict[str, list[tuple[float, float]]] = {}
    for study, one, two in rows:
        studies.setdefault(study, []).append((one, two))
    means = [np.mean(each, axis=0) for each in studies.values()]
    return paired_p_value(*np.transpose(means)) if means else float("nan")


def whole(
    effects: Mapping[str, Any], originals: Sequence[str], likeness: Interval
) -> dict[str, Any]:
    """Return the shares of one generator that are of no single finding.

    Args: originals: the first report of each study. likeness: ROUGE-L of reports of other films.
    """
    same = sum(count for count in Counter(originals).values() if count > 1)
    return {
        "side": difference([(s, one, two) for s, _, one, two in effects["side"]]),
        "n_side": len(effects["side"]),
        "findings_on_blank": share([(s, float(bool(found))) for s, found in effects["blank"]]),
        "n_blank": len(effects["blank"]),
        "steadiness": share(effects["steadiness"]),
        "n_steadiness": len(effects["steadiness"]),
        "echo": likeness,
        "same_text": same / len(originals) if originals else float("nan"),
    }


#: Least number of cases of a finding for a verdict.
LEAST_CASES = 10
_READS, _LEVEL = 0.5, 0.05
#: Verdict on a finding -> what a generator does with such findings.
VERDICTS = {
    "reads": "reads {} from the film",
    "reads in part": "reads {} in part",
    "changes with the film": "changes {} with the film, but is not shown to read them in their "
    "regions",
    "does not look": "writes {} without looking",
    "undecided": "states too few findings for a verdict",
}


def verdict_of(record: Mapping[str, Any]) -> str:
    """Return one of VERDICTS for a finding.

    reads: its grounding by region is above 0, and the estimate at least .5. reads in part: the
    estimate is lower. changes with the film: only its grounding by film is above 0. does not look:
    the interval by film, or by region where too few films are, contains 0 and is below .5. Above 0
    is an interval whose lower end is, with an adjusted p below .05: of many findings some have such
    an interval by chance.
    """
    if _is_above(record, "region"):
        is_read = record["grounding_region"].estimate >= _READS
        return "reads" if is_read else "reads in part"
    if _is_above(record, "film"):
        return "changes with the film"
    for way in ("film", "region"):
        if record[f"n_{way}"] >= LEAST_CASES:
            interval: Interval = record[f"grounding_{way}"]
            return "does not look" if interval.low <= 0 and interval.high < _READS else "undecided"
    return "undecided"


def _is_above(record: Mapping[str, Any], way: str) -> bool:
    interval: Interval = record[f"grounding_{way}"]
    is_significant = bool(record[f"adjusted_p_{way}"] < _LEVEL)
    return record[f"n_{way}"] >= LEAST_CASES and interval.low > 0 and is_significant


def sentence_of(system: str, records: Sequence[Mapping[str, Any]]) -> str:
    """Return the verdict on a generator in one sentence."""
    of: dict[str, list[str]] = {name: [] for name in VERDICTS}
    for record in sorted(records, key=lambda each: -max(each["n_region"], each["n_film"])):
        if record["finding"] != ALL:
            of[verdict_of(record)].append(record["finding"].replace("_", " "))
    parts = [
        VERDICTS[name].format(_listed(found))
        for name, found in of.items()
        if found and name != "undecided"
    ]
    if not parts:
        overall = verdict_of(records[0]) if records else "undecided"
        return f"{system} {VERDICTS[overall].format('its findings, taken together,')}."
    return f"{system} {', and '.join(parts)}."


_MOST_LISTED = 6


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_MOST_LISTED])
    if len(names) > _MOST_LISTED:
        shown.append(f"{len(names) - _MOST_LISTED} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
