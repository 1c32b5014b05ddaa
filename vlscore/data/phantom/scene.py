"""Synthetic chest: its findings, how the image was taken, and reports of it.

Reports are written in radiologists' words: many phrasings, any order, exact content.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

_T = TypeVar("_T")

SIDES = ("left", "right")
ZONES = ("upper", "middle", "lower")
SEVERITIES = (1, 2, 3)
CHANGES = ("new", "increased", "decreased", "unchanged")


@dataclass(frozen=True)
class FindingKind:
    """Attributes and frequency of a kind of finding.

    Attributes:
        sides, zones, severities: possible values; empty if it has no such attribute.
        weight: relative frequency among findings.
        device: whether it is a support device.
    """

    sides: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()
    weight: float = 1.0
    device: bool = False


BOTH = (*SIDES, "bilateral")

KINDS: dict[str, FindingKind] = {
    "effusion": FindingKind(BOTH, (), SEVERITIES, 2.0),
    "pneumothorax": FindingKind(SIDES, (), SEVERITIES, 1.2),
    "consolidation": FindingKind(SIDES, ZONES, SEVERITIES, 2.0),
    "nodule": FindingKind(SIDES, ZONES, SEVERITIES, 1.5),
    "atelectasis": FindingKind(SIDES, ZONES, SEVERITIES, 1.5),
    "edema": FindingKind((), (), SEVERITIES, 1.2),
    "cardiomegaly": FindingKind((), (), SEVERITIES, 1.5),
    "fracture": FindingKind(SIDES, ZONES, (), 0.8),
    "hyperinflation": FindingKind((), (), SEVERITIES, 0.8),
    "endotracheal_tube": FindingKind(weight=0.7, device=True),
    "nasogastric_tube": FindingKind(weight=0.7, device=True),
    "central_line": FindingKind(SIDES, weight=0.8, device=True),
    "pacemaker": FindingKind(SIDES, weight=0.6, device=True),
    "chest_tube": FindingKind(SIDES, weight=0.5, device=True),
}

# Pairs that one image cannot show, or shows in the same way: they never occur together.
_EXCLUSIVE = ({"cardiomegaly", "hyperinflation"}, {"edema", "hyperinflation"})


@dataclass(frozen=True, order=True)
class PhantomFinding:
    """One finding with its attributes.

    Attributes:
        kind: a key of KINDS.
        side: "left", "right", "bilateral"; None if the kind has no side.
        zone: "upper", "middle", "lower"; None if the kind has none.
        severity: 1 (least) to 3; None if the kind has none.
        change: change since a prior image: "new", "increased", "decreased", "unchanged"; None
            without a comparison.
    """

    kind: str
    side: str | None = None
    zone: str | None = None
    severity: int | None = None
    change: str | None = None


@dataclass(frozen=True)
class Acquisition:
    """Body and exposure of the image; they change the picture, not the report.

    Attributes:
        habitus: width of the chest, around 1.
        rotation: turn of the patient, in [-1, 1].
        inspiration: depth of the breath, in [-1, 1].
        exposure: overall darkness, around 1.
        noise: standard deviation of the quantum noise, in grey levels of [0, 1].
        seed: seed of everything random in the picture.
    """

    habitus: float
    rotation: float
    inspiration: float
    exposure: float
    noise: float
    seed: int


@dataclass(frozen=True)
class Scene:
    """A synthetic chest radiograph: at most one finding of each kind, sorted by kind."""

    findings: tuple[PhantomFinding, ...]
    acquisition: Acquisition


def sample_finding(
    rng: np.random.Generator, kind: str, *, compared: bool = False
) -> PhantomFinding:
    """Draw a finding of that kind; with `compared` it has a change half of the time."""
    spec = KINDS[kind]
    change = None
    if compared and not spec.device and rng.random() < 0.5:
        change = _choose(rng, CHANGES)
    return PhantomFinding(
        kind,
        side=_choose(rng, spec.sides),
        zone=_choose(rng, spec.zones),
        severity=_choose(rng, spec.severities),
        change=change,
    )


def sample_scene(rng: np.random.Generator, *, normal: float = 0.15) -> Scene:
    """Draw a random scene; a share `normal` of them has no finding, the rest one to six."""
    findings: list[PhantomFinding] = []
    if rng.random() >= normal:
        compared = rng.random() < 0.4
        kinds = _sample_kinds(rng, int(rng.integers(1, 7)))
        findings = [sample_finding(rng, kind, compared=compared) for kind in kinds]
    acquisition = Acquisition(
        habitus=float(np.clip(rng.normal(1.0, 0.06), 0.85, 1.15)),
        rotation=float(rng.uniform(-1, 1)),
        inspiration=float(rng.uniform(-1, 1)),
        exposure=float(np.clip(rng.normal(1.0, 0.08), 0.8, 1.2)),
        noise=float(rng.uniform(0.004, 0.02)),
        seed=int(rng.integers(2**32)),
    )
    return Scene(tuple(sorted(findings, key=lambda each: each.kind)), acquisition)


def compatible(kinds: set[str]) -> bool:
    """Return True if one image can show all these kinds."""
    return not any(pair <= kinds for pair in _EXCLUSIVE)


def _sample_kinds(rng: np.random.Generator, count: int) -> list[str]:
    names = list(KINDS)
    weights = np.array([KINDS[name].weight for name in names])
    chosen: set[str] = set()
    while len(chosen) < count:
        name = names[int(rng.choice(len(names), p=weights / weights.sum()))]
        if compatible(chosen | {name}):
            chosen.add(name)
    return sorted(chosen)


def _choose(rng: np.random.Generator, values: tuple[_T, ...]) -> _T | None:
    return values[int(rng.integers(len(values)))] if values else None


Split = Literal["train", "held_out"]


@cache
def phrasings() -> dict[str, Any]:
    """Return the table of phrasings, as in phrasings.toml."""
    with Path(__file__).with_name("phrasings.toml").open("rb") as stream:
        return tomllib.load(stream)


def write_report(
    rng: np.random.Generator,
    findings: Iterable[PhantomFinding],
    *,
    split: Split = "train",
    negatives: float = 0.35,
    others: float = 0.15,
) -> str:
    """Write a report with exactly these findings, each once, in random order and words.

    Args:
        findings: findings of the report.
        split: "train" or "held_out" phrasings; no sentence pattern is in both.
        negatives: probability of each true negative statement; a report is never empty.
        others: probability of each non-clinical sentence.
    """
    stated = list(findings)
    sentences = [sentence_for(rng, finding, split) for finding in stated]
    sentences += _negatives(rng, {finding.kind for finding in stated}, split, negatives)
    table = phrasings()["other"][split]
    sentences += [sentence for sentence in table if rng.random() < others / 2]
    order = rng.permutation(len(sentences))
    return " ".join(sentences[k] for k in order)


def sentence_for(rng: np.random.Generator, finding: PhantomFinding, split: Split = "train") -> str:
    """Write one sentence about the finding with all its attributes."""
    table = phrasings()
    entry = table[finding.kind]
    severity, scale = str(finding.severity), entry["scale"]
    side = str(finding.side)
    slots = {"noun": _pick(rng, entry["nouns"])}
    if finding.severity is not None:
        slots["sev"] = _pick(rng, table["severity"][scale][severity])
        slots["adv"] = _pick(rng, table["adverb"][severity])
    if finding.side is not None:
        slots["side"] = _pick(rng, table["side"][side])
        slots["on_side"] = _pick(rng, table["on_side"][side])
    if finding.zone is not None:
        slots["place"] = _pick(rng, table["place"][finding.zone]).format(side=side)
    sentence = _pick(rng, entry[split]).format(**slots)
    if finding.change is not None:
        change = _pick(rng, table["change"][finding.change][split])
        sentence = f"{sentence.removesuffix('.')}{change}."
    return _tidy(sentence, plural=finding.side == "bilateral")


def _negatives(
    rng: np.random.Generator, present: set[str], split: Split, chance: float
) -> list[str]:
    true = [entry for entry in phrasings()["negative"] if present.isdisjoint(entry["absent"])]
    chosen = [entry for entry in true if rng.random() < chance]
    if not chosen and not present:
        chosen = true[-1:]
    return [_pick(rng, entry[split]) for entry in chosen]


def _pick(rng: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(rng.integers(len(options)))]


_PLURALS = (
    (r"\b(effusion|collection)\b", r"\1s"),
    (r"\b(T|t)here is an? ", r"\1here are "),
    (r"\bis (present|seen|noted)", r"are \1"),
    (r"\b(a|A) (?=\w[\w-]* (?:bilateral|pleural|effusions))", ""),
)


def _tidy(sentence: str, *, plural: bool) -> str:
    """Correct agreement in number, and capitals."""
    if plural:
        for pattern, replacement in _PLURALS:
            sentence = re.sub(pattern, replacement, sentence)
    sentence = re.sub(r"\b([Aa]) (?=[aeiouAEIOU])", r"\1n ", sentence)
    sentence = re.sub(r"\b([Aa])n (?=[^aeiouAEIOU])", r"\1 ", sentence)
    return sentence[0].upper() + sentence[1:]
