"""Commands that need no network start without the libraries that networks need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "transformers", "nltk", "scipy.stats", "vlscore.encoders.base")
RUN = f"""
import sys
from vlscore.cli import main
sys.argv[0] = "vlscore"
try:
    main()
except SystemExit as ended:
    status = ended.code
print(status, *[name for name in {HEAVY!r} if name in sys.modules])
"""


def started(folder: Path, *arguments: str) -> tuple[str, str]:
    """The last line of output: the exit status and which heavy libraries were loaded."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout, ended.stderr
    return ended.stdout.splitlines()[-1], ended.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f'{k},"No effusion.","Small left effusion."' for k in range(4)]
    (tmp_path / "texts.csv").write_text("\n".join(["id,reference,candidate", *rows]) + "\n")
    (tmp_path / "headless.csv").write_text("a,b\n1,2\n")
    return tmp_path


@pytest.mark.parametrize("metric", ["rouge-l", "bleu-4,findings-f1,chrf"])
def test_an_evaluation_of_texts_loads_no_torch(folder, metric):
    told, error = started(folder, "evaluate", "texts.csv", "-m", metric, "--out", "out")
    assert told == "0", error
    assert (folder / "out" / "summary.json").is_file()


def test_a_slip_in_the_header_is_told_without_torch(folder):
    told, error = started(folder, "evaluate", "headless.csv", "--out", "out")
    assert told == "2"
    assert "no column image, reference, candidate" in error


def test_a_score_of_texts_loads_no_torch(folder):
    told, error = started(folder, "score", "-m", "rouge-l", "-g", "No edema.", "-r", "Edema.")
    assert told in ("0", "None"), error
