"""Reports say what the scene holds, and held-out phrasings are truly held out."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlscore.data import KINDS, PhantomFinding, sample_scene, sentence_for, write_report
from vlscore.data.phantom.scene import phrasings

seeds = st.integers(0, 2**32 - 1)
laws = settings(deadline=None, max_examples=60)


def all_findings():
    for kind, spec in KINDS.items():
        for side, zone, severity in itertools.product(
            spec.sides or (None,), spec.zones or (None,), spec.severities or (None,)
        ):
            yield PhantomFinding(kind, side, zone, severity)


@pytest.mark.parametrize("split", ["train", "held_out"])
@pytest.mark.parametrize("finding", list(all_findings()), ids=str)
def test_a_sentence_states_side_zone_and_severity(finding, split):
    table = phrasings()
    rng = np.random.default_rng(0)
    for _ in range(15):
        sentence = sentence_for(rng, finding, split).lower()
        nouns = table[finding.kind]["nouns"]
        assert any(noun.lower().rstrip("s") in sentence for noun in nouns) or re.search(
            r"enlarged|increased|hyperinflated|hyperexpanded", sentence
        )
        if finding.side == "bilateral":
            assert re.search(r"bilateral|both sides", sentence)
        elif finding.side is not None:
            other = {"left": "right", "right": "left"}[finding.side]
            assert finding.side in sentence
            # "leads in the right heart" is where every pacemaker's leads are.
            assert other not in sentence.replace("right heart", "")
        if finding.zone is not None:
            words = {"upper": "upper", "middle": "mid", "lower": "lower|base"}
            assert re.search(words[finding.zone], sentence)
        if finding.severity is not None:
            scale = table[finding.kind]["scale"]
            stated = table["severity"][scale][str(finding.severity)]
            adverbs = table["adverb"][str(finding.severity)]
            assert any(word in sentence for word in (*stated, *adverbs))
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]|  |{|}", sentence)


def _patterns(split):
    table = phrasings()
    for kind in KINDS:
        yield from (kind + " " + pattern for pattern in table[kind][split])
    for change in table["change"].values():
        yield from change[split]
    for entry in table["negative"]:
        yield from entry[split]
    yield from table["other"][split]


def test_no_pattern_is_in_both_splits():
    train, held_out = set(_patterns("train")), set(_patterns("held_out"))
    assert len(train) > 120
    assert len(held_out) > 40
    assert not train & held_out


def test_no_held_out_sentence_can_be_written_from_training_patterns():
    rng = np.random.default_rng(1)
    findings = list(all_findings())
    trained = {sentence_for(rng, f, "train") for f in findings for _ in range(60)}
    held_out = {sentence_for(rng, f, "held_out") for f in findings for _ in range(20)}
    assert not trained & held_out


@laws
@given(seeds)
def test_negatives_never_deny_what_the_scene_holds(seed):
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng, normal=0.0)
    present = {finding.kind for finding in scene.findings}
    report = write_report(rng, scene.findings, negatives=1.0)
    for entry in phrasings()["negative"]:
        said = any(sentence in report for sentence in entry["train"])
        assert not said or present.isdisjoint(entry["absent"])
