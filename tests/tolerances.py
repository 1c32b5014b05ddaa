"""How far two right results may lie apart: the error model of every test of rounding, stated here.

A float32 operation rounds by at most u = 2^-24 of its result. In which order products are
summed, and whether a product is rounded before it is added, is the processor's matter, and its
libraries', and the number of threads'. So two right results of one layer differ by a few u of
the norm of its output. The errors of different layers have no common sign and grow as the
square root of their number. With 4 u a layer and 256 layers, more than any encoder here has, an
embedding x has an error of at most

    VECTOR |x| = 4 u √256 |x| = 64 u |x| = 3.8e-6 |x|,

and two right ones differ by twice that. What is computed of embeddings inherits an *absolute*
error: of a cosine near zero, or an area near zero, no relative one can be promised. With n the
largest norm of a study's three embeddings, the two points of a side move by VECTOR n each, so
that

- a side, and the radius of the bounding sphere, moves by 2 VECTOR n at most;
- the area ½ |p| |q| sin moves by ½ (|p| + |q|) 2 VECTOR n, with p and q its sides at the image,
  and VLScore by that over C;
- the direction of a side of length s turns by 2 · 2 VECTOR n / s, and a cosine moves by the turns
  of both its directions; for embeddings themselves s = n and each turns by 2 VECTOR;
- CLIPScore, 2.5 times a cosine, moves 2.5 times as far, and the harmonic mean of two numbers at
  most twice as far as the one that moves more;
- the foot, a length over |q|, moves by 2 VECTOR n (1 + 2 |foot|) / |q|.

Numbers of texts alone are sums of few float64 terms: they agree to 1e-12.

What is printed is rounded once more. A value near the middle of two printed numbers may be
printed as either, so a printed number may differ by one in its last place (`same_print`).
"""

import re
from collections.abc import Mapping, Sequence

UNIT = 2.0**-24
VECTOR = 64 * UNIT
# Two right embeddings, in units of their norm.
TWO_VECTORS = 2 * VECTOR
TEXT = 1e-12


def of_triangle(sides: Mapping[str, float], norm: float, C: float) -> dict[str, float]:
    """Return how far each number of two right results may lie apart, absolute, by its name.

    Args:
        sides: the study's numbers "image_candidate", "image_reference", "candidate_reference" and
            "foot".
        norm: the largest norm of its embeddings.
        C: the area that scores 0.
    """
    moved = 2 * TWO_VECTORS * norm
    to_candidate, to_reference = sides["image_candidate"], sides["image_reference"]
    area = 0.5 * (to_candidate + to_reference) * moved
    cosine = 4 * TWO_VECTORS
    return {
        "image_candidate": moved,
        "image_reference": moved,
        "candidate_reference": moved,
        "bounding-sphere": moved,
        "area": area,
        "vlscore": area / C,
        "cosine": cosine,
        "image-centred-cosine": 2 * moved * (1 / to_candidate + 1 / to_reference),
        "clipscore": 2.5 * cosine,
        "refclipscore": 2 * 2.5 * cosine,
        "foot": moved * (1 + 2 * abs(sides["foot"])) / to_reference,
    }


# With three decimals or more, and no part of a version.
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])")


def same_print(found: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether lines are equal but for numbers that differ by one in their last place.

    >>> same_print(["mean  0.4888"], ["mean  0.4887"]), same_print(["0.4888"], ["0.4886"])
    (True, False)
    >>> same_print(["0.4888 a"], ["0.4888 b"]), same_print(["0.488"], ["0.4888"])
    (False, False)
    """
    if [_NUMBER.sub("0", line) for line in found] != [_NUMBER.sub("0", line) for line in expected]:
        return False
    shown = (_NUMBER.findall("\n".join(lines)) for lines in (found, expected))
    return all(
        _places(one) == _places(other) and abs(_units(one) - _units(other)) <= 1
        for one, other in zip(*shown, strict=True)
    )


def _places(number: str) -> int:
    return len(number.partition(".")[2])


def _units(number: str) -> int:
    """The number in units of its last place."""
    return int(number.replace(".", ""))
