"""The picture of README.md: the triangle of one study, true to scale, over its image.

    python docs/picture.py    # writes docs/triangle.svg

Image, reports and encoder are the bundled, synthetic ones; the candidate is of `fluent`.
"""

import base64
import io
import json
import textwrap
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

import vlscore
from vlscore.errors import DemonstrationEncoderWarning

DEMO = Path(__file__).resolve().parents[1] / "weights" / "phantom" / "demo"
PICTURE = Path(__file__).with_name("triangle.svg")
STUDY = 17
# Pixels: width and height of the picture, side of the image, length of the base.
WIDTH, HEIGHT, SIDE, BASE = 860, 330, 330, 300
IMAGE_AT = (165, 248)


def draw() -> str:
    """Return the picture as SVG."""
    row = json.loads((DEMO / "fluent.jsonl").read_text(encoding="utf-8").splitlines()[STUDY])
    image = vlscore.read_image(DEMO / row["image"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonstrationEncoderWarning)
        score = vlscore.score(DEMO / row["image"], row["candidate"], row["reference"])
    # The height of the triangle over its base, in units of the base.
    height = 2 * score.area / score.image_reference**2
    x, y = IMAGE_AT
    foot = round(x + score.foot * BASE)
    top = round(y - height * BASE)
    end = x + BASE
    shapes = f"""\
<image href="data:image/jpeg;base64,{_jpeg(image.to_uint8())}" width="{SIDE}" height="{SIDE}"/>
<polygon points="{x},{y} {end},{y} {foot},{top}" fill="#e69f00" fill-opacity="0.35" \
stroke="#e69f00" stroke-width="3" stroke-linejoin="round"/>
<path d="M{end} {y}H{foot}M{foot} {top}V{y}" stroke="#555" stroke-width="2" \
stroke-dasharray="5 5"/>
<circle cx="{x}" cy="{y}" r="7" fill="#fff" stroke="#e69f00" stroke-width="3"/>
<circle cx="{end}" cy="{y}" r="7" fill="#009e73"/>
<circle cx="{foot}" cy="{top}" r="7" fill="#d55e00"/>
"""
    words = [
        _text(x - 14, y + 5, ["image"], "#fff", anchor="end", bold=True),
        _text(end - 60, y + 26, ["reference", *textwrap.wrap(row["reference"], 58)], "#00734f"),
        _text(foot + 16, top - 2, ["candidate", *textwrap.wrap(row["candidate"], 44)], "#b04a00"),
        _text(foot + 8, y - 8, [f"foot {score.foot:.3f}"], "#555"),
        _text(x + 176, y - 40, [f"area T = {score.area:.3f}"], "#222", bold=True),
        _text(
            WIDTH - 14,
            y - 40,
            [f"VLScore = max(1 − T/C, 0) = {score.score:.3f}"],
            "#222",
            anchor="end",
            bold=True,
        ),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="14" role="img">\n'
        f"<title>The triangle of image, reference and candidate, over the image</title>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n'
        f"{shapes}{''.join(words)}</svg>\n"
    )


def _jpeg(pixels: np.ndarray) -> str:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=75)
    return base64.b64encode(stream.getvalue()).decode()


def _text(
    x: int, y: int, lines: list[str], colour: str, *, anchor: str = "start", bold: bool = False
) -> str:
    first_is_bold = bold or len(lines) > 1
    heavy = ' font-weight="700"'
    spans = "".join(
        f'<tspan x="{x}" dy="{17 if number else 0}"'
        f"{heavy if first_is_bold and not number else ''}>{line}</tspan>"
        for number, line in enumerate(lines)
    )
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{spans}</text>\n'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
