"""Pictures of the documentation, made of bundled, synthetic images and reports.

    python docs/picture.py    # writes docs/triangle.svg and docs/audit.svg

The triangle of README.md is of one study, true to scale, over its image; its candidate is of
`fluent`. The films of docs/audit.md are those that `vlscore audit make` writes of another study.
"""

import base64
import io
import json
import tempfile
import textwrap
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

import vlscore
from vlscore.errors import DemonstrationEncoderWarning
from vlscore.evaluation import AuditSettings, audit_make, open_audited

DEMO = Path(__file__).resolve().parents[1] / "weights" / "phantom" / "demo"
PICTURE = Path(__file__).with_name("triangle.svg")
STUDY, AUDITED = 17, 14
# Pixels: width and height of the picture, side of the image, length of the base.
WIDTH, HEIGHT, SIDE, BASE = 860, 330, 330, 300
IMAGE_AT = (165, 248)
# Side of a film of the audit, and the alterations that are shown, each with what must follow.
FILM = 132
ALTERED = {
    "original": "right effusion",
    "blank": "no finding",
    "film-with-other-findings": "effusion goes",
    "finding-hidden": "effusion goes",
    "hidden-elsewhere": "effusion stays",
    "mirrored": "left effusion",
}


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


def draw_films() -> str:
    """Return the altered films of one study, and what a generator that looks writes, as SVG."""
    lines = (DEMO / "fluent.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        table = place / "studies.jsonl"
        studies = [
            {"id": row["id"], "image": str(DEMO / row["image"]), "reference": row["reference"]}
            for row in rows
        ]
        table.write_text("".join(json.dumps(row) + "\n" for row in studies), encoding="utf-8")
        made = audit_make(open_audited(table), place / "audit", AuditSettings(regions=1))
        key = [json.loads(line) for line in (made.folder / "key.jsonl").open(encoding="utf-8")]
        own = {row["alteration"]: row["id"] for row in key if row["study"] == rows[AUDITED]["id"]}
        films = [np.asarray(Image.open(made.folder / "films" / f"{own[n]}.png")) for n in ALTERED]
    width, height = (FILM + 10) * len(films) - 10, FILM + 40
    shapes = []
    for place_of, (alteration, film) in enumerate(zip(ALTERED, films, strict=True)):
        x = place_of * (FILM + 10)
        title = alteration.replace("film-with-other-findings", "another film").replace("-", " ")
        shapes += [
            f'<image href="data:image/jpeg;base64,{_jpeg(film)}" x="{x}" width="{FILM}" '
            f'height="{FILM}"/>\n',
            _text(x, FILM + 16, [title], "#222", bold=True),
            _text(x, FILM + 34, [ALTERED[alteration]], "#00734f"),
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img">\n'
        f"<title>Altered films of one study</title>\n"
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{"".join(shapes)}</svg>\n'
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
    PICTURE.with_name("audit.svg").write_text(draw_films(), encoding="utf-8")
