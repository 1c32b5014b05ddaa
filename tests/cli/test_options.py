"""Every option of a command reaches the library: it changes what the command's results depend on.

The commands are stopped before they compute. An option of a command that is neither given here nor
listed in `FREE` fails the test.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import write_jsonl
from tests.command import run_command
from tests.evaluation.golden_inputs import fill
from vlscore.cli.app import commands
from vlscore.cli.shared import EncoderOptions
from vlscore.core import result_folder
from vlscore.errors import InvalidSetting
from vlscore.evaluation import baselines

# How a command computes and what it shows: results do not depend on it.
SHOWN = {
    "--out", "--overwrite", "--keep-going", "--report", "--quiet", "--json", "--show", "--workers",
    "--columns", "--digits", "--intervals", "--in-flight",
}  # fmt: skip
# They choose and load the encoder, and have a test of their own below.
OF_ENCODER = {
    "--encoder", "--weights", "--tokenizer", "--device", "--precision", "--batch-size", "--no-cache"
}  # fmt: skip
# Options of another way to call a command, which other tests try.
OTHER_WAYS = {
    "evaluate": {"--join", "--engine", "--figure", "--embeddings"},
    "compare": {"--figure"},
    "judge": {
        "--model", "--endpoint", "--send-to", "--prompt", "--prices", "--evidence", "--trust",
        "--image-root", "--image-policy", "--views", "--comparisons",
    },
    "claims": {"--evidence"},
    "oracle": {"--no-check", "--mode", "--candidates", "--effort", "--section", "--image-policy"},
    "align": {
        "--figure", "--ratings-are", "--candidates", "--reports", "--image-root", "--studies",
    },
    "perturb": {"--list-kinds"},
    "controlled": {"--labelled"},
}  # fmt: skip


class Stopped(InvalidSetting):
    """Ends a command where its results would be computed."""


@pytest.fixture
def key_of(monkeypatch, hash_encoder):
    """Return what the results of a call depend on."""

    def stop(key):
        raise Stopped(json.dumps(key))

    monkeypatch.setattr(result_folder, "as_json", stop)

    def key_of(*arguments):
        done = run_command(*arguments)
        assert '{"' in done.stderr, done.output
        return json.loads(done.stderr[done.stderr.index('{"') :])

    return key_of


ROWS = [
    {
        "id": f"s{k}",
        "image": f"{k}.png",
        "reference": "FINDINGS: Small left effusion." if k % 2 else "Clear lungs.",
        "candidate": "Clear lungs.",
        "other": f"Other {k}.",
        "sex": "f" if k % 2 else "m",
        "report": f"Report {k}.",
    }
    for k in range(6)
]
RATED = [
    {
        "study_id": f"s{k}",
        "candidate_id": f"c{k % 2}",
        "rater": rater,
        "rating": k % 5,
        "reference": "Clear lungs.",
        "candidate": f"Report {k}.",
        "again": k % 3,
    }
    for k in range(6)
    for rater in ("ann", "bob")
]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """The folder with the inputs of all commands."""
    folder = tmp_path_factory.mktemp("inputs")
    for place in (folder, folder / "elsewhere"):
        place.mkdir(exist_ok=True)
        for k in range(6):
            pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(place / f"{k}.png")
    write_jsonl(folder / "a.jsonl", ROWS)
    write_jsonl(folder / "b.jsonl", [{**row, "candidate": row["other"]} for row in ROWS])
    write_jsonl(folder / "rated.jsonl", RATED)
    columns = [{**row, "ann": k % 5, "bob": k % 3} for k, row in enumerate(RATED[::2])]
    write_jsonl(folder / "wide.jsonl", columns)
    values = [f"{name},s{k},{k}" for name in "ab" for k in range(6)]
    (folder / "values.csv").write_text("\n".join(["system,id,one", *values]) + "\n")
    (folder / "labels.csv").write_text("id,Edema\n" + "".join(f"s{k},1\n" for k in range(6)))
    rated = [f"s{k},c{k % 2},{k}" for k in range(6)]
    (folder / "rated.csv").write_text("\n".join(["study_id,candidate_id,one", *rated]) + "\n")
    (folder / "normal.txt").write_text("The lungs are clear.")
    (folder / "dimensions.toml").write_text(
        '[[dimension]]\nname = "x"\ntext = "y"\nlow = "a"\nhigh = "b"\n'
    )
    changes = [
        {
            "study_id": f"s{k}",
            "kind": "change-location",
            "original": "Small left effusion.",
            "perturbed": "Small right effusion.",
            "expected": "significant",
            "category": None,
        }
        for k in range(6)
    ]
    write_jsonl(folder / "changes.jsonl", changes)
    done = [f"s{k},change-location,1,0" for k in range(6)]
    head = "study_id,kind,one.original,one.perturbed"
    (folder / "changes.csv").write_text("\n".join([head, *done]) + "\n")
    done = run_command(
        "ratings", "make", f"a={folder}/a.jsonl", f"b={folder}/b.jsonl", "--format", "csv",
        "--raters", "ann,bob", "--out", folder / "sheets",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    fill(folder / "sheets")
    few = ("--alterations", "mirrored", "--workers", "0", "-q")
    done = run_command("audit", "make", folder / "a.jsonl", "--out", folder / "films", *few)
    assert done.exit_code == 0, done.output
    for name in ("written", "again"):
        rows = [{"id": f"f{k:02}", "candidate": name, "other": "x"} for k in range(1, 13)]
        write_jsonl(folder / f"{name}.jsonl", rows)
    return folder


def calls_of(files: Path) -> dict[str, tuple[list, dict[str, list]]]:
    """Command -> a call without options, and option -> what is given with it.

    A list begins with the option's value, None for a flag; what follows is needed besides, in both
    calls: another call (a tuple), further options.
    """
    a, b = files / "a.jsonl", files / "b.jsonl"
    root = {"--image-root": [files / "elsewhere"]}
    reading = {"--section": ["findings"], "--image-policy": ["minmax"], "--views": ["mean"]}
    scoring = {**reading, "--c": ["3"], "--comparisons": ["ignored", "-m", "findings-f1"]}
    bootstrap = {"--resamples": ["777"], "--seed": ["7"]}
    values = {
        "--values": [files / "values.csv"],
        "--lower-is-better": ["one", "--values", files / "values.csv"],
    }
    return {
        "evaluate": (
            [a],
            { "--limit": ["3"],
                **root, **scoring, "--metrics": ["bleu-1"], "--keep": ["other"], "--by": ["sex"],
                "--part": ["1/2"], "--rename": ["candidate=other"], "--format": ["csv"],
            },
        ),
        "compare": (
            [f"a={a}", f"b={b}", "-m", "vlscore"],
            { "--limit": ["3"],
                **root, **scoring, **bootstrap, **values, "--metrics": ["image-gain-distance"],
                "--text-only": [None, (f"a={a}", f"b={b}")], "--train": [b], "--baselines": [None],
                "--permutations": ["777"], "--ignore-blanks": [None], "--against": ["a"],
                "--by": ["sex"], "--rename": ["candidate=other"],
                "--reference-errors": ["emergency-2026", (f"a={a}", f"b={b}", "-m", "findings-f1")],
            },
        ),
        "findings": (
            [a],
            { "--limit": ["3"],
                "--uncertain": ["negative"], "--format": ["jsonl"], "--rename": ["report=other"],
                "--section": ["findings"],
            },
        ),
        "judge": (
            [a],
            {"--limit": ["3"], "--rename": ["candidate=other"], "--section": ["findings"]},
        ),
        "claims": (
            [a, "--fit", a],
            { "--limit": ["3"],
                **root, "--fit": [b], "--calibrate": [b], "--labels": [files / "labels.csv"],
                "--blank-labels": ["unknown", "--labels", files / "labels.csv"],
                "--rate": [".2"], "--calibration-share": [".3"], "--no-zero-shot": [None],
                "--group-column": ["sex"], "--seed": ["7"], "--rename": ["candidate=other"],
                "--image-policy": ["minmax"], "--views": ["mean"],
            },
        ),
        "baseline": (
            ["nearest-image", a, "--train", b],
            { "--limit": ["3"],
                **root, **reading, "--train": [a], "--rename": ["reference=other"],
                "--seed": ["7", ("random", a, "--train", b)],
                "--labels": ["zero-shot", ("templates", a)],
                "--style": ["single", ("templates", a)],
                "--templates": [_templates(files), ("templates", a)],
            },
        ),
        "retrieval": ([a], {"--limit": ["3"], **root, **reading, "--rename": ["reference=other"]}),
        "align": (
            [files / "rated.jsonl", "-m", "bleu-1"],
            {
                "--limit": ["4"],
                **bootstrap, "--metrics": ["rouge-l"], "--values": [files / "rated.csv"],
                "--lower-is-better": ["one", "--values", files / "rated.csv"],
                "--fit": ["rating"], "--rename": ["rating=again"], "--section": ["findings"],
                "--rater-columns": [
                    "ann", (files / "wide.jsonl", "--rater-columns", "ann,bob", "-m", "bleu-1")
                ], "--c": ["3", "-m", "vlscore", "--studies", a],
                "--comparisons": ["ignored", "-m", "findings-f1"],
                "--image-policy": ["minmax", "-m", "vlscore", "--studies", a],
                "--views": ["mean", "-m", "vlscore", "--studies", a],
            },
        ),
        "sensitivity": (
            ["--perturbations", files / "changes.jsonl", "--studies", a, "-m", "vlscore"],
            { "--limit": ["3"],
                **root, **scoring, **bootstrap, "--perturbations": [_fewer(files)],
                "--studies": [b], "--metrics": ["image-gain-distance"],
                "--values": [files / "changes.csv"],
                "--lower-is-better": ["one", "--values", files / "changes.csv"],
                "--swap-images": [None], "--rename": ["view=sex"], "--figure": ["svg"],
                "--format": ["parquet"],
            },
        ),
        "controlled": (
            [a, "-m", "bleu-1"],
            { "--limit": ["3"],
                **bootstrap, "--metrics": ["rouge-l"], "--observations": ["Edema"],
                "--rename": ["report=other"], "--section": ["findings"],
                "--comparisons": ["ignored", "-m", "findings-f1"],
            },
        ),
        "failure-modes": (
            [files / "rated.jsonl"],
            {
                "--limit": ["4"],
                **bootstrap, "--rate": [".2"], "--rename": ["rating=again"],
                "--rater-columns": ["ann", (files / "wide.jsonl", "--rater-columns", "ann,bob")],
            },
        ),
        "audit make": (
            [a],
            {
                **root, "--limit": ["3"], "--alterations": ["mirrored"], "--regions": ["1"],
                "--format": ["dicom"], "--seed": ["7"], "--rename": ["candidate=other"],
                "--image-policy": ["minmax"],
            },
        ),
        "audit read": (
            [files / "films", "--reports", f"x={files}/written.jsonl"],
            {
                "--reports": [f"x={files}/again.jsonl"], "--rename": ["candidate=other"],
                "--seed": ["7"], "--figure": ["svg"],
            },
        ),
        "ratings read": ([files / "sheets"], {**bootstrap, "--group": ["one=ann"]}),
        "ratings make": (
            [f"a={a}", f"b={b}"],
            {
                **root, "--raters": ["eve"], "--ask": ["preferences"], "--format": ["csv"],
                "--raters-per-study": ["1"], "--images": [None], "--sample": ["2"],
                "--seed": ["7"], "--studies": [b],
                "--dimensions": [files / "dimensions.toml", "--ask", "dimensions"],
            },
        ),
        "index build": (
            [a],
            { "--limit": ["3"],
                "--image-root": [*root["--image-root"], "--images"], "--images": [None],
                "--approximate": ["Flat"], "--rename": ["report=other"], "--section": ["findings"],
                "--image-policy": ["minmax", "--images"],
            },
        ),
        "perturb": (
            [a],
            { "--limit": ["3"],
                "--seed": ["7"], "--kinds": ["remove-pathology"], "--per-report": ["2"],
                "--standard-normal": [files / "normal.txt"], "--rename": ["report=other"],
            },
        ),
    }  # fmt: skip


def _templates(files: Path) -> Path:
    """The bundled templates with another comment."""
    bundled = Path(baselines.__file__).parent / "templates" / "chest.toml"
    path = files / "templates.toml"
    path.write_text(bundled.read_text() + "# mine")
    return path


def _fewer(files: Path) -> Path:
    """The changes without the last one."""
    lines = (files / "changes.jsonl").read_text().splitlines(keepends=True)
    path = files / "fewer.jsonl"
    path.write_text("".join(lines[:-1]))
    return path


NAMES = (
    "evaluate", "compare", "findings", "judge", "claims", "baseline", "retrieval", "align",
    "sensitivity", "controlled", "failure-modes", "audit make", "audit read", "ratings read",
    "ratings make", "index build", "perturb",
)  # fmt: skip


def options_of(name: str) -> set[str]:
    found = commands()[name].assemble_argument_collection()
    return {each.name for each in found if each.show and each.names and each.name[:2] == "--"}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_given_or_free(files, name):
    _, given = calls_of(files)[name]
    assert options_of(name) - SHOWN - OF_ENCODER - OTHER_WAYS.get(name, set()) == set(given)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_changes_what_the_results_depend_on(files, name, key_of, tmp_path):
    call, given = calls_of(files)[name]
    out = ("--out", tmp_path / "out")
    unnoticed = []
    for option, (value, *needed) in given.items():
        start = call
        if needed and isinstance(needed[0], tuple):
            start, needed = list(needed[0]), needed[1:]
        before = [*name.split(), *without(start, needed), *needed]
        spelled = "--C" if option == "--c" else option
        after = [*without(before, [option]), spelled, *([] if value is None else [value])]
        if key_of(*before, *out) == key_of(*after, *out):
            unnoticed.append(option)
    assert not unnoticed


def without(call: list, options: list) -> list:
    """The call without options that are given anew."""
    names = {"-m" if option == "--metrics" else option for option in options}
    kept, skip = [], False
    for word in call:
        if skip or word in names:
            skip = not skip
            continue
        kept.append(word)
    return kept


@pytest.mark.parametrize("option", sorted(OF_ENCODER))
def test_every_option_of_the_encoder_reaches_embedder_and_scorer(option, monkeypatch):
    values = {
        "encoder": "small", "weights": Path("w"), "tokenizer": Path("t"), "device": "cuda:7",
        "precision": "bf16", "batch_size": 7, "no_cache": True,
    }  # fmt: skip
    name = option.removeprefix("--").replace("-", "_")
    asked = []

    def record(*arguments, **settings):
        asked.append((arguments, settings))
        raise Stopped("asked")

    monkeypatch.setattr("vlscore.embedding.StudyEmbedder", record)
    monkeypatch.setattr("vlscore.metrics.Scorer", record)
    for options in (EncoderOptions(), EncoderOptions(**{name: values[name]})):
        for make in (options.embedder, lambda o=options: o.scorer("vlscore")):
            with pytest.raises(Stopped):
                make()
    assert asked[0] != asked[2]
    assert asked[1] != asked[3]
