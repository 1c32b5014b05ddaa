"""Commands that need no network start without the libraries that networks need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Of networks, of images with their codecs, of search; and what texts need of none of them.
NETWORKS = ("torch", "torchvision", "transformers", "timm", "open_clip", "safetensors")
IMAGES = ("cv2", "PIL", "pydicom", "gdcm", "openjpeg", "rle", "jpeg_ls", "libjpeg")
HEAVY = (*NETWORKS, *IMAGES, "faiss", "huggingface_hub", "nltk", "scipy.stats")
HEAVY = (*HEAVY, "vlscore.encoders.base")
COMMANDS = {
    "a slip in the header": ("evaluate", "headless.csv", "--out", "no"),
    "a score": ("score", "-m", "rouge-l", "-g", "No edema.", "-r", "Edema."),
    "one metric": ("evaluate", "texts.csv", "-m", "rouge-l", "--out", "one"),
    "some": ("evaluate", "texts.csv", "-m", "bleu-4,findings-f1,chrf", "--out", "some"),
    "compared": ("compare", "texts.csv", "again.csv", "-m", "rouge-l,judge", "--out", "compared"),
    "folders": ("compare", "one", "again=one", "--out", "folders"),
    "without images": ("compare", "images.csv", "--text-only", "-m", "judge", "--out", "without"),
    "baselines": ("compare", "texts.csv", "-m", "rouge-l", "--baselines", "--out", "baselines"),
    "a baseline": ("baseline", "normal", "texts.csv", "--train", "again.csv", "--out", "normal"),
    "judged": ("judge", "texts.csv", "--out", "judged"),
    "labelled": ("findings", "texts.csv", "--out", "labelled"),
    "changed": ("perturb", "texts.csv", "--out", "changed"),
    "explained": ("explain", "-m", "judge", "-g", "No edema.", "-r", "Edema."),
    "a page": ("report", "compared"),
    "a paragraph": ("methods", "compared"),
}
# Runs the commands one after the other: what one of them loads is loaded in all that follow.
RUN = f"""
import contextlib, io, json, sys
from vlscore.cli import main
found = {{}}
for name, arguments in json.loads(sys.argv[1]).items():
    sys.argv = ["vlscore", *arguments]
    status, errors = 0, io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    found[name] = [status, loaded, errors.getvalue()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    rows = [f'{k},"No effusion.","Small left effusion."' for k in range(4)]
    for name in ("texts", "again"):
        (folder / f"{name}.csv").write_text("\n".join(["id,reference,candidate", *rows]) + "\n")
    rows = [f"{row},{k}.png" for k, row in enumerate(rows)]
    (folder / "images.csv").write_text("\n".join(["id,reference,candidate,image", *rows]) + "\n")
    (folder / "headless.csv").write_text("a,b\n1,2\n")
    return folder


@pytest.fixture(scope="module")
def started(folder: Path) -> dict[str, tuple[int, list[str], str]]:
    """Command -> its exit status, which heavy libraries were loaded, and its errors."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(COMMANDS)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout, ended.stderr
    found: dict[str, tuple[int, list[str], str]] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "a slip in the header"])
def test_commands_on_texts_load_no_network_no_codec_no_search(started, name):
    status, loaded, error = started[name]
    assert (status, loaded) == (0, []), error


def test_a_slip_in_the_header_is_told_without_torch(started):
    status, loaded, error = started["a slip in the header"]
    assert (status, loaded) == (2, [])
    assert "no column image, reference, candidate" in error
