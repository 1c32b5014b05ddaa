"""Claim: vlscore and its authors' package vlscore-cxr return the same numbers, and vlscore is at
least 2.5 times as fast cold and 40 times again (processor time).

Protocol. Both read one checkpoint: LIMITR's layout with pseudo-random weights (the tensors of
tests/encoders/goldens.py). vlscore-cxr runs as installed, in the environment whose Python --theirs
names; nothing of its code is here. Three parts:

- equal: the first frontal films of --films studies of the Indiana collection, which have 256 pixels
  and are not resized, and the 8-bit files of ../shared/data/radiographs, which are; reports
  (findings and impression) of the Indiana collection, and as candidates those of the next study.
  Largest differences of vectors and scores, also of `limitr:repository`;
- bad inputs: tables of three rows of which the second is bad. What each package does with them;
- time: --studies studies by `VLscore().compute_csv` and by `vlscore evaluate`, each in a process of
  its own with one thread, cold and again. vlscore-cxr stores nothing, so that its second run is the
  first run again. Seconds of processors count children and do not depend on other work.

    python -m venv theirs && theirs/bin/pip install vlscore-cxr
    PYTHONPATH=. python benchmarks/theirs_and_ours.py --theirs theirs/bin/python

The data are ../shared/data/iu (the Indiana collection), a DICOM file of ../shared/data/dicom, and
Bio_ClinicalBERT's vocabulary, which --vocabulary names.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_machine, publish
from PIL import Image

from tests.encoders.goldens import Golden
from vlscore import VLscore, load_encoder, triangle_vlscore
from vlscore.errors import VLScoreError

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
THEIRS = """
import json, sys
import numpy as np
from vlscore import VLscore
task = json.load(open(sys.argv[1]))
metric = VLscore(checkpoint=task["checkpoint"], device="cpu", show_progress=False)
if "csv" in task:
    metric.compute_csv(task["csv"], out_csv=task["out"])
else:
    vectors = {name: metric.encoder.encode_texts(texts) for name, texts in task["texts"].items()}
    images = metric.encoder.encode_images(task["images"])
    np.savez(task["out"], images=images, **vectors)
    said = {}
    for name, path in task["bad"].items():
        try:
            said[name] = metric.compute_csv(path)["vlscore"].tolist()
        except Exception as error:
            said[name] = f"{type(error).__name__}"
    print(json.dumps(said))
"""
# What runs when a checkpoint with code in it is unpickled.
_CODE = "touched"


def write_checkpoint(folder: Path, vocabulary: Path) -> Path:
    """LIMITR's layout with pseudo-random tensors, the settings that vlscore-cxr reads in it, and a
    folder for its tokenizer and the weights of BERT that it replaces."""
    from transformers import BertConfig, BertModel

    bert = folder / "bert"
    BertModel(BertConfig(vocab_size=28996)).save_pretrained(bert)
    (bert / "vocab.txt").write_bytes(vocabulary.read_bytes())
    text = {
        "bert_type": str(bert), "last_n_layers": 4, "aggregate_method": "sum", "norm": False,
        "embedding_dim": 768, "freeze_bert": False, "agg_tokens": True,
    }  # fmt: skip
    vision = {"model_name": "resnet_50", "pretrained": False, "freeze_cnn": False}
    settings = {
        "model": {"text": text, "vision": vision},
        "data": {"text": {"word_num": 97}, "image": {"imsize": 256}},
        "transforms": {"random_crop": {"crop_size": 224}},
    }
    path = folder / "limitr.ckpt"
    tensors = Golden.of("limitr").tensors()
    torch.save({"state_dict": tensors, "hyper_parameters": settings}, path)
    return path


def films(data: Path) -> Iterator[tuple[Path, str]]:
    """The first frontal film and the report of each study that has both."""
    with (data / "studies.jsonl").open(encoding="utf-8") as stream:
        for study in map(json.loads, stream):
            shown = [each["file"] for each in study["images"] if each["view"] == "frontal"]
            report = " ".join(study[name] or "" for name in ("findings", "impression")).strip()
            if shown and report:
                yield data / shown[0], report


def large(folder: Path) -> list[Path]:
    """The files of 8 bits that no EXIF rotation turns."""
    found = []
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(OSError), Image.open(path) as image:
            if not image.mode.startswith("I") and image.getexif().get(274, 1) == 1:
                found.append(path)
    return found


def write_table(path: Path, rows: list[tuple[Any, str, str]]) -> Path:
    import pandas as pd

    pd.DataFrame(rows, columns=["Path_frontal", "gt", "output"]).to_csv(path, index=False)
    return path


def bad_rows(folder: Path, film: Path, gt: str, output: str, dicom: Path) -> dict[str, Any]:
    """Name -> a row (image, reference, candidate) with one thing wrong, or unusual."""
    with Image.open(film) as opened:
        grey = np.asarray(opened.convert("L"))
    deep, turned, clear, broken, words = (
        folder / name for name in ("deep.png", "turned.jpg", "clear.png", "cut.jpg", "words.png")
    )
    Image.fromarray(grey.astype(np.uint16) * 257).save(deep)
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(np.rot90(grey)).save(turned, exif=exif, quality=95)
    alpha = np.full_like(grey, 255)
    alpha[: len(grey) // 4] = 0
    Image.fromarray(np.dstack([grey, alpha]), "LA").save(clear)
    content = film.read_bytes()
    broken.write_bytes(content[: len(content) // 2])
    words.write_text("no image")
    long = " ".join([gt] * 8)
    return {
        "empty cell of a candidate": (film, gt, ""),
        "empty cell of a reference": (film, "", output),
        "candidate `None`": (film, gt, "None"),
        "image that does not exist": (folder / "none.jpg", gt, output),
        "JPEG of which the second half is missing": (broken, gt, output),
        "text file called .png": (words, gt, output),
        "DICOM file, of another film": (dicom, gt, output),
        "PNG of 16 bits, the same picture": (deep, gt, output),
        "JPEG with an EXIF rotation, the same picture": (turned, gt, output),
        "transparent top quarter": (clear, gt, output),
        "candidate of more than 97 tokens": (film, gt, long),
    }


def run_theirs(python: Path, folder: Path, task: dict[str, Any]) -> str:
    path = folder / "task.json"
    path.write_text(json.dumps(task))
    return timed([str(python), "-c", THEIRS, str(path)], folder)[2]


def timed(command: list[str], folder: Path) -> tuple[float, float, str]:
    """Seconds by the clock and of processors, and what the command prints; one thread."""
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
        "VLSCORE_CACHE": str(folder / "cache"),
    }  # fmt: skip
    is_ours = command[0] == sys.executable
    if not is_ours:
        environment.pop("PYTHONPATH", None)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command,
        env=environment,
        cwd=None if is_ours else folder,
        text=True,
        capture_output=True,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, spent, done.stdout


def equal_part(theirs: dict[str, Any], checkpoint: Path, task: dict[str, Any]) -> list[str]:
    lines = [
        "| encoder | vectors of images, largest difference | relative to their length | of "
        "reports | scores |",
        "|---|---:|---:|---:|---:|",
    ]
    their_scores = triangle_vlscore(theirs["images"], theirs["gt"], theirs["output"])
    for name in ("limitr", "limitr:repository"):
        encoder = load_encoder(name, weights=checkpoint, tokenizer=checkpoint.parent / "bert")
        images = encoder.encode_images(task["images"]).numpy()
        gt, output = (encoder.encode_reports(texts).numpy() for texts in task["texts"].values())
        apart = np.linalg.norm(images - theirs["images"], axis=1)
        lengths = np.linalg.norm(theirs["images"], axis=1)
        texts = max(np.abs(gt - theirs["gt"]).max(), np.abs(output - theirs["output"]).max())
        scores = np.abs(triangle_vlscore(images, gt, output) - their_scores).max()
        lines.append(
            f"| `{name}` | {np.abs(images - theirs['images']).max():.1e} | "
            f"{(apart / lengths).max():.1e} | {texts:.1e} | {scores:.1e} |"
        )
    return lines


def bad_part(theirs: dict[str, Any], metric: VLscore, tables: dict[str, Path]) -> list[str]:
    lines = ["| second row of three | vlscore-cxr | vlscore |", "|---|---|---|"]
    for name, path in tables.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = metric.compute_csv(path)["vlscore"].tolist()
        reason = "; ".join(str(each.message) for each in said)
        ours = f"{found[1]:.3f}" if found[1] == found[1] else "nan; the others have their scores"
        if "tokens" in reason:
            ours += ", and a warning"
        given = theirs[name]
        shown = f"{given}, no row has a score" if isinstance(given, str) else f"{given[1]:.3f}"
        lines.append(f"| {name} | {shown} | {ours} |")
    return lines


class RunsCode:
    """Unpickles as a call that makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return Path.touch, (self.path,)


def checkpoint_part(python: Path, folder: Path) -> str:
    """What each does with a checkpoint that has code in it."""
    path = folder / "code.ckpt"
    outcomes = []
    for is_theirs in (True, False):
        mark = folder / f"{_CODE}{is_theirs}"
        torch.save({"state_dict": {"a": torch.ones(2)}, "more": RunsCode(mark)}, path)
        if is_theirs:
            program = "import sys; from vlscore import VLscore; VLscore(sys.argv[1], 'cpu').encoder"
            apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            command = [python, "-c", program, path]
            subprocess.run(command, cwd=folder, env=apart, capture_output=True)
        else:
            with contextlib.suppress(VLScoreError):
                load_encoder("limitr", weights=path)
        outcomes.append("runs it" if mark.exists() else "refuses it")
    return f"| checkpoint with code in it | {outcomes[0]} | {outcomes[1]} |"


def time_part(options: argparse.Namespace, folder: Path, checkpoint: Path) -> list[str]:
    rows = [each for each, _ in zip(films(options.data), range(options.studies + 1), strict=False)]
    studies = [(path, report, other) for (path, report), (_, other) in pairwise(rows)]
    table = write_table(folder / "studies.csv", studies)
    theirs, ours = [], []
    for turn in ("cold", "again"):
        task = {"checkpoint": str(checkpoint), "csv": str(table), "out": str(folder / "t.csv")}
        (folder / "time.json").write_text(json.dumps(task))
        command = [str(options.theirs), "-c", THEIRS, str(folder / "time.json")]
        theirs.append(timed(command, folder))
        print("theirs", turn, theirs[-1][:2], flush=True)
        evaluate = [
            sys.executable, "-m", "vlscore", "evaluate", str(table), "--out", str(folder / turn),
            "--rename", "image=Path_frontal,reference=gt,candidate=output", "--format", "csv",
            "--encoder", "limitr", "--weights", str(checkpoint), "--quiet",
            "--tokenizer", str(checkpoint.parent / "bert"), "--metrics", "vlscore",
        ]  # fmt: skip
        ours.append(timed(evaluate, folder))
        print("ours", turn, ours[-1][:2], flush=True)
    import pandas as pd

    found = pd.read_csv(folder / "again" / "scores.csv")["vlscore"].to_numpy()
    expected = pd.read_csv(folder / "t.csv")["vlscore"].to_numpy()
    lines = [
        f"{len(studies)} studies; scores differ by at most {np.abs(found - expected).max():.1e}.",
        "",
        "| run | vlscore-cxr, processor s | vlscore, processor s | times | by the clock, s |",
        "|---|---:|---:|---:|---:|",
    ]
    for turn, their, our in zip(("cold", "again"), theirs, ours, strict=True):
        lines.append(
            f"| {turn} | {their[1]:.1f} | {our[1]:.1f} | {their[1] / our[1]:.1f} | "
            f"{their[0]:.1f}, {our[0]:.1f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--theirs", type=Path, required=True, help="Python with vlscore-cxr")
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "iu")
    parser.add_argument("--dicom", type=Path, default=SHARED / "data" / "dicom")
    parser.add_argument(
        "--vocabulary",
        type=Path,
        default=SHARED / "encoders" / "vocab" / "bert-base-cased" / "vocab.txt",
    )
    parser.add_argument("--films-of", type=Path, default=SHARED / "data" / "radiographs")
    parser.add_argument("--films", type=int, default=50)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["VLSCORE_CACHE"] = str(folder / "numbers")
        checkpoint = write_checkpoint(folder, options.vocabulary)
        rows = [
            each for each, _ in zip(films(options.data), range(options.films + 1), strict=False)
        ]
        paths = [str(path) for path, _ in rows[:-1]] + [
            str(path) for path in large(options.films_of)
        ]
        texts = [text for _, text in rows]
        gt, output = ([texts[(k + by) % len(texts)] for k in range(len(paths))] for by in (0, 1))
        dicom = next(path for path in sorted(options.dicom.rglob("*")) if path.suffix == ".dcm")
        usual = (paths[0], gt[0], output[0])
        tables = {
            name: write_table(folder / f"{number}.csv", [usual, row, usual])
            for number, (name, row) in enumerate(
                bad_rows(folder, Path(paths[0]), gt[0], output[0], dicom).items()
            )
        }
        tables = {"nothing wrong": write_table(folder / "usual.csv", [usual] * 3), **tables}
        task = {
            "checkpoint": str(checkpoint),
            "images": paths,
            "texts": {"gt": gt, "output": output},
            "bad": {name: str(path) for name, path in tables.items()},
            "out": str(folder / "theirs.npz"),
        }
        said = json.loads(run_theirs(options.theirs, folder, task))
        with np.load(folder / "theirs.npz") as stored:
            theirs = dict(stored)
        metric = VLscore(
            checkpoint, "cpu", show_progress=False, tokenizer=checkpoint.parent / "bert"
        )
        lines = [
            "# vlscore-cxr and vlscore",
            "",
            describe_machine(),
            "",
            f"vlscore-cxr 0.1.2 and vlscore on the same pseudo-random weights; {len(paths)} "
            f"frontal films, of which {len(rows) - 1} are of the Indiana collection.",
            "",
            "## The same numbers",
            "",
            *equal_part(theirs, checkpoint, task),
            "",
            "## Bad and unusual inputs",
            "",
            *bad_part(said, metric, tables),
            checkpoint_part(options.theirs, folder),
            "",
            "## Time",
            "",
            *time_part(options, folder, checkpoint),
        ]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
