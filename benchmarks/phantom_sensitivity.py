"""Claim: with the bundled encoder, VLScore notices significant changes, hardly insignificant ones.

Protocol: held-out phantom scenes (seed 201; training uses seed 1) with at least one finding, in
held-out phrasings, each report closed by one non-clinical sentence. The changes are made from the
scene, so what each changes is known exactly: remove the sentence of one finding; remove the
non-clinical sentence; the other side (of the same wording); another severity (least to most, else
to least); [UNK] for the first of the words "the", "is", "there", "with", "of". The original is the
reference. Intervals resample studies. Targets: removal's Δ at least 0.15; location and severity
at least 3 times the drop of [UNK]. Text metrics score the same pairs. Every image-aware metric is
also computed with another study's and with a black image.

Run: python benchmarks/phantom_sensitivity.py [--out benchmarks/results/phantom_sensitivity.txt]
"""

import argparse
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from machine import describe_machine
from rich.console import Console

from vlscore._files import atomic_write
from vlscore.bench import Pair, embed_pairs, image_swap, sensitivity
from vlscore.phantom import Finding, Scene, render, sentence_for
from vlscore.phantom.corpus import scene_at
from vlscore.phantom.grammar import phrasings
from vlscore.report.sensitivity import kinds_table, removal_table, swap_table, word_table
from vlscore.scorer import Scorer
from vlscore.studies import StudyImages

SEED = 201
SPLIT = "held_out"
METRICS = ["vlscore", "cosine", "image_centred_cosine", "bounding_sphere", "clipscore"]
METRICS += ["refclipscore", "bleu-1", "bleu-4", "rouge-l"]
_SAYS_NOTHING = re.compile(r"\b(the|is|there|with|of)\b", re.IGNORECASE)
_OTHER_SIDE = {"left": "right", "right": "left"}


def scenes(count: int) -> Iterator[tuple[str, Scene]]:
    """The first `count` scenes that hold a finding."""
    position = found = 0
    while found < count:
        scene = scene_at(SEED, position)
        if scene.findings:
            found += 1
            yield f"phantom-{SEED}-{position:05d}", scene
        position += 1


def pairs_of(study_id: str, scene: Scene) -> Iterator[Pair]:
    """One change of each kind that the scene allows."""
    number = int(study_id.rsplit("-", 1)[1])
    rng = np.random.default_rng([SEED, number, 7])
    findings = list(scene.findings)
    sentences = [_say(number, k, finding) for k, finding in enumerate(findings)]
    others = phrasings()["other"][SPLIT]
    filler = others[int(rng.integers(len(others)))]
    original = " ".join([*sentences, filler])

    def changed(kind: str, significant: bool, category: str | None, parts: list[str]) -> Pair:
        return Pair(study_id, kind, significant, original, " ".join(parts), category)

    victim = int(rng.integers(len(findings)))
    rest = sentences[:victim] + sentences[victim + 1 :]
    yield changed("remove-pathology", True, "omission", [*rest, filler])
    yield changed("remove-insignificant", False, None, sentences)
    for kind, alter in (("change-location", _other_side), ("change-severity", _other_severity)):
        able = [k for k, finding in enumerate(findings) if alter(finding) is not None]
        if able:
            k = able[int(rng.integers(len(able)))]
            altered = alter(findings[k])
            assert altered is not None
            parts = [*sentences[:k], _say(number, k, altered), *sentences[k + 1 :], filler]
            yield changed(kind, True, kind.removeprefix("change-"), parts)
    masked = _SAYS_NOTHING.sub("[UNK]", original, count=1)
    if masked != original:
        yield changed("replace-uninformative", False, None, [masked])


def _say(number: int, place: int, finding: Finding) -> str:
    return sentence_for(np.random.default_rng([SEED, number, 8, place]), finding, SPLIT)


def _other_side(finding: Finding) -> Finding | None:
    side = _OTHER_SIDE.get(str(finding.side))
    return None if side is None else replace(finding, side=side)


def _other_severity(finding: Finding) -> Finding | None:
    if finding.severity is None:
        return None
    return replace(finding, severity=3 if finding.severity == 1 else 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--weights", help="folder of other weights to judge")
    options = parser.parse_args()
    pairs, images = [], {}
    for study_id, scene in scenes(options.studies):
        pairs += pairs_of(study_id, scene)
        picture = render(scene).astype(np.float32) / np.float32(4095)
        images[study_id] = StudyImages(study_id, (picture,))
    scorer = Scorer("phantom", weights=options.weights)
    embedded = embed_pairs(pairs, scorer, images)
    result = sensitivity(pairs, METRICS, embedded)
    console = Console(file=io.StringIO(), width=190)
    console.print(f"{len(pairs)} changes of {len(images)} held-out phantom studies.")
    console.print(describe_machine(), highlight=False)
    for table in (removal_table(result), word_table(result), kinds_table(result)):
        console.print(table)
    console.print(swap_table(image_swap(pairs, embedded)))
    for metric in result.metrics:
        console.print(metric.signature, highlight=False, markup=False, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    report = console.file.getvalue()
    print(report)
    if options.out is not None:
        with atomic_write(options.out) as stream:
            stream.write(report)


if __name__ == "__main__":
    main()
