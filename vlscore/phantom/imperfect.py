"""References that are wrong about the picture, and candidates that part with them in two ways.

The scene is the truth. A reference differs from it by one error; one candidate differs from the
reference where the picture does, the other by an error of the same category that the picture does
not show. Against the reference both have one error; against the picture none and two.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from vlscore.phantom.corpus import scene_at
from vlscore.phantom.errors import add_finding
from vlscore.phantom.grammar import Split, write_report
from vlscore.phantom.scene import KINDS, SIDES, PhantomFinding, Scene

Findings = tuple[PhantomFinding, ...]
# The stream of random numbers of a study that these reports are drawn from.
_STREAM = 11


@dataclass(frozen=True)
class ImperfectStudy:
    """A scene, a reference that is wrong about it, and candidates.

    Attributes:
        form: how the reference is wrong, a key of FORMS.
        position: of the scene in its corpus.
        stated: what the reference states.
        reference: the imperfect report.
        true: a candidate that states what the picture shows: the error of the reference mended.
        false: a candidate with the reference's error, and one more of the same category.
        copied: a candidate that states what the reference states, in other words.
        erring: what `false` states.
    """

    form: str
    position: int
    scene: Scene
    stated: Findings
    reference: str
    true: str
    false: str
    copied: str
    erring: Findings


def imperfect_studies(
    seed: int, count: int, form: str, *, split: Split = "train"
) -> Iterator[ImperfectStudy]:
    """The studies among the first `count` scenes of a seed that can have such a reference.

    Study k of a seed and a form is the same whatever `count` is.
    """
    for position in range(count):
        scene = scene_at(seed, position)
        rng = np.random.default_rng([seed, position, _STREAM, list(FORMS).index(form)])
        found = FORMS[form](rng, scene.findings)
        if found is None:
            continue
        stated, false = found
        reference, true, erring, copied = (
            write_report(rng, findings, split=split)
            for findings in (stated, scene.findings, false, stated)
        )
        yield ImperfectStudy(
            form, position, scene, stated, reference, true, erring, copied, erring=false
        )


def omit(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """What a reference states that leaves out a shown finding, and that with a false addition.

    None where nothing is shown, or no other finding can be added.
    """
    if not shown:
        return None
    stated = _without(shown, int(rng.integers(len(shown))))
    # Added to what is shown, so that the addition is of a kind that the picture does not show.
    added = tuple(finding for finding in add_finding(rng, shown) if finding not in shown)
    return (stated, _sorted(stated + added)) if added else None


def state(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """What a reference states that has a false finding, and that without a shown one."""
    if not shown:
        return None
    stated = add_finding(rng, shown)
    left_out = shown[int(rng.integers(len(shown)))]
    false = tuple(finding for finding in stated if finding != left_out)
    return (stated, false) if len(stated) > len(shown) else None


def move(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """What a reference states that has a finding on the wrong side, and that with another moved.

    None where the picture shows less than two findings that have a side.
    """
    sided = [finding for finding in shown if finding.side is not None]
    flippable = [finding for finding in sided if finding.side in SIDES]
    if not flippable or len(sided) < 2:
        return None
    flipped = flippable[int(rng.integers(len(flippable)))]
    others = [finding for finding in sided if finding is not flipped]
    moved = others[int(rng.integers(len(others)))]
    sides = [side for side in KINDS[moved.kind].sides if side != moved.side]
    stated = _replaced(shown, flipped, SIDES[1 - SIDES.index(str(flipped.side))])
    return stated, _replaced(stated, moved, sides[int(rng.integers(len(sides)))])


# How a reference is wrong -> what it states, and what the candidate states that errs with it.
FORMS: dict[str, Callable[[np.random.Generator, Findings], tuple[Findings, Findings] | None]] = {
    "omits": omit,
    "states": state,
    "wrong-side": move,
}


def _without(findings: Findings, position: int) -> Findings:
    return findings[:position] + findings[position + 1 :]


def _replaced(findings: Findings, finding: PhantomFinding, side: str) -> Findings:
    return _sorted(
        tuple(replace(each, side=side) if each == finding else each for each in findings)
    )


def _sorted(findings: Findings) -> Findings:
    return tuple(sorted(findings, key=lambda finding: finding.kind))
