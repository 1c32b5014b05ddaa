"""Result folders that the tests of pages show, and what a page holds."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.command import run_command
from tests.demonstration import demo_table
from vlscore.pages import report

# What a table may hold to make a browser run it, and to end the elements of a page.
HOSTILE = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">&amp;'
REPORTS = (
    ("Small left pleural effusion. No pneumothorax.", "Large left pleural effusion. No edema."),
    ("Clear lungs.", "Small right pneumothorax."),
    ("Right pleural effusion. Mild edema.", "Left pleural effusion. Mild edema."),
    ("Pulmonary edema. Right pacemaker.", "Right pacemaker."),
)
COUNT = 48


def command(*words: object) -> None:
    """Run a command; rows may fail."""
    done = run_command(*words, "-q")
    assert done.exit_code in (0, 1), done.output


def write_table(path: Path, count: int = COUNT) -> Path:
    rows = []
    for k in range(count):
        reference, candidate = REPORTS[k % len(REPORTS)]
        if k == 5:
            reference, candidate = f"{reference} {HOSTILE}", f"{HOSTILE} {candidate}"
        rows.append({"id": f"study-{k:03d}", "reference": reference, "candidate": candidate})
    rows[7]["id"] = f"x{HOSTILE}"
    rows[9]["reference"] = ""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def payload_of(page: Path) -> dict[str, Any]:
    """What the page's program reads."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/octet-stream" id="payload">([^<]*)<', text)
    assert found is not None
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return content


def text_of(pieces: list[Any]) -> str:
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)


@pytest.fixture(scope="package")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an evaluation with hostile texts and one failed row."""
    place = tmp_path_factory.mktemp("pages")
    table = write_table(place / "studies.jsonl")
    command("evaluate", table, "-m", "rouge-l,judge", "-o", place / "scored")
    return place / "scored"


@pytest.fixture(scope="package")
def page(scored: Path) -> Path:
    return report(scored).path


@pytest.fixture(scope="package")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an evaluation of three phantoms with an encoder that has local vectors."""
    place = tmp_path_factory.mktemp("phantoms")
    table = demo_table(place, 3)
    command("evaluate", table, "-e", "phantom", "-o", place / "scored")
    return place / "scored"
