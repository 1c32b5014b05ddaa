"""Phantom studies whose references are wrong about the picture.

A reference differs from the scene, which is the truth, by one error. One candidate corrects that
error, so it differs from the reference where the picture does. The other adds an error of the same
category that the picture does not show. Against the reference both have one error; against the
picture none and two.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from vlscore.data import KINDS, PhantomFinding, Scene, Split, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.data.phantom.report_errors import add_finding
from vlscore.data.phantom.scene import SIDES

Findings = tuple[PhantomFinding, ...]
# Number of the random stream of a study from which these reports are drawn.
_STREAM = 11


@dataclass(frozen=True)
class ImperfectStudy:
    """A scene, a reference that is wrong about it, and candidates.

    Attributes:
        form: kind of the reference's error, a key of FORMS.
        position: number of the scene in its corpus.
        stated: findings of the reference.
        reference: the imperfect report.
        true: a candidate with the findings of the picture: the reference's error is corrected.
        false: a candidate with the reference's error, and one more of the same category.
        copied: a candidate with the findings of the reference, in other words.
        erring: findings of `false`.
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
    """Yield the studies among the first `count` scenes of a seed that can have such a reference.

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
    """Return findings of a reference that omits one, and the same with a false addition.

    None if the picture shows nothing, or no other finding can be added.
    """
    if not shown:
        return None
    position = int(rng.integers(len(shown)))
    stated = shown[:position] + shown[position + 1 :]
    # Added to the shown findings, so that the addition is of a kind that the picture lacks.
    added = tuple(finding for finding in add_finding(rng, shown) if finding not in shown)
    return (stated, _sorted(stated + added)) if added else None


def state(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """Return findings of a reference with a false one, and the same without a shown one."""
    if not shown:
        return None
    stated = add_finding(rng, shown)
    left_out = shown[int(rng.integers(len(shown)))]
    false = tuple(finding for finding in stated if finding != left_out)
    return (stated, false) if len(stated) > len(shown) else None


def move(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """Return findings of a reference with one on the wrong side, and the same with another moved.

    None if the picture shows fewer than two findings that have a side.
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


# Kind of a reference's error -> function for its findings and those of the erring candidate.
FORMS: dict[str, Callable[[np.random.Generator, Findings], tuple[Findings, Findings] | None]] = {
    "omits": omit,
    "states": state,
    "wrong-side": move,
}


def _replaced(findings: Findings, finding: PhantomFinding, side: str) -> Findings:
    return _sorted(
        tuple(replace(each, side=side) if each == finding else each for each in findings)
    )


def _sorted(findings: Findings) -> Findings:
    return tuple(sorted(findings, key=lambda finding: finding.kind))
