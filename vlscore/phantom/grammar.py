"""Reports of a scene, in radiologists' words: many phrasings, any order, exact content."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vlscore.phantom.scene import PhantomFinding

Split = Literal["train", "held_out"]


@cache
def phrasings() -> dict[str, Any]:
    """The table of phrasings, as in phrasings.toml."""
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
    """A report that states exactly these findings, each once, in random order and words.

    Args:
        findings: what to state.
        split: "train" or "held_out" phrasings; no sentence pattern is in both.
        negatives: chance of each true negative statement; a report is never empty.
        others: chance of each non-clinical sentence.
    """
    stated = list(findings)
    sentences = [sentence_for(rng, finding, split) for finding in stated]
    sentences += _negatives(rng, {finding.kind for finding in stated}, split, negatives)
    table = phrasings()["other"][split]
    sentences += [sentence for sentence in table if rng.random() < others / 2]
    order = rng.permutation(len(sentences))
    return " ".join(sentences[k] for k in order)


def sentence_for(rng: np.random.Generator, finding: PhantomFinding, split: Split = "train") -> str:
    """One sentence that states the finding with all its attributes."""
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
    said = [entry for entry in true if rng.random() < chance]
    if not said and not present:
        said = true[-1:]
    return [_pick(rng, entry[split]) for entry in said]


def _pick(rng: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(rng.integers(len(options)))]


_PLURALS = (
    (r"\b(effusion|collection)\b", r"\1s"),
    (r"\b(T|t)here is an? ", r"\1here are "),
    (r"\bis (present|seen|noted)", r"are \1"),
    (r"\b(a|A) (?=\w[\w-]* (?:bilateral|pleural|effusions))", ""),
)


def _tidy(sentence: str, *, plural: bool) -> str:
    """Agreement and capitals."""
    if plural:
        for pattern, replacement in _PLURALS:
            sentence = re.sub(pattern, replacement, sentence)
    sentence = re.sub(r"\b([Aa]) (?=[aeiouAEIOU])", r"\1n ", sentence)
    sentence = re.sub(r"\b([Aa])n (?=[^aeiouAEIOU])", r"\1 ", sentence)
    return sentence[0].upper() + sentence[1:]
