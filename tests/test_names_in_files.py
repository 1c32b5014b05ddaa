"""Names out of files are registered names alone: no file makes the toolkit import or download.

Every text in a file of every kind that commands read is replaced, one at a time, by the name of a
module and by names of models on a hub. Whatever the command then answers, the module must not have
been imported and the network not asked.
"""

import ast
import copy
import json
import os
import shutil
import socket
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

import vlscore
from tests.doubles import HashEncoder
from vlscore.cli.command_line import app
from vlscore.encoders import encoder_from_file
from vlscore.errors import UnknownName

PACKAGE = Path(vlscore.__file__).parent
PLANTED = "planted_by_a_file"
ATTACKS = (f"{PLANTED}:THING", "openclip:hf-hub:stranger/model", "stranger/model")

# What an attack brought about; the planted module writes here.
DONE: list[str] = []

REPORTS = [
    {"id": f"s{k}", "reference": f"Small left effusion {k}.", "candidate": f"No effusion {k}.",
     "report": f"Small left effusion {k}."}
    for k in range(3)
]  # fmt: skip


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        make: makes it in a folder; returns the file, and the commands that read it.
        attacks: how many of ATTACKS are tried; all where it names paths, too.
    """

    make: Callable[[Path], tuple[Path, list[list[Any]]]]
    attacks: int = 2


def _run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)])


def _table(folder: Path, name: str = "studies.jsonl", rows: Any = REPORTS) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _index(folder: Path) -> tuple[Path, list[list[Any]]]:
    table = _table(folder)
    made = _run("index", "build", table, "--out", folder / "ix")
    assert made.exit_code == 0, made.output
    rows = [{"id": "new", "report": "Clear lungs."}]
    asked = ("oracle", _table(folder), "--index", folder / "ix", "--k", 1, "--metric", "cosine")
    return folder / "ix" / "index.json", [
        ["index", "add", _table(folder, "more.jsonl", rows), "--index", folder / "ix"],
        [*asked, "--out", "OUT"],
    ]


def _space(folder: Path) -> tuple[Path, list[list[Any]]]:
    d = 3
    names = ("image_mean", "report_mean", "image_matrix", "report_matrix")
    shape = {name: (d, d) if "matrix" in name else (d,) for name in names}
    space = folder / "space"
    space.mkdir()
    save_file({name: torch.zeros(shape[name]) for name in names}, space / "space.safetensors")
    card = {"below": "biovil", "below_weights": "w.pt", "below_tokenizer": "vocab.txt",
            "below_checksum": "0" * 64}  # fmt: skip
    (space / "card.json").write_text(json.dumps(card))
    encoder = ("--encoder", "vlscore.encoders.models.in_space:InSharedSpace", "--weights", space)
    return space / "card.json", [["index", "build", _table(folder), *encoder, "--out", "OUT"]]


def _training(folder: Path) -> tuple[Path, list[list[Any]]]:
    config = folder / "training.toml"
    texts = {
        "objective": "convirt",
        "encoder": "small",
        "weights": "absent.pt",
        "tokenizer": "vocab.txt",
        "image_weights": "absent.pt",
        "text_weights": "absent.pt",
        "style": "convirt",
        "augmentation": "none",
        "sentences": "all",
        "select": "loss",
        "views": "first-frontal",
        "image_policy": "auto",
        "section": "all",
        "precision": "fp32",
    }
    config.write_text("".join(f'{name} = "{value}"\n' for name, value in texts.items()))
    rows = [{**row, "image": "x.png"} for row in REPORTS]
    command = ["train", _table(folder, rows=rows), "--config", config, "--out", "OUT"]
    return config, [command]


def _composite(folder: Path) -> tuple[Path, list[list[Any]]]:
    path = folder / "composite.json"
    each = {"metric": "bleu-1", "signature": "bleu-1|v:1", "mean": 0, "deviation": 1, "weight": 1}
    content = {
        "format": "vlscore composite 1",
        "inputs": [each],
        "rating": "errors",
        "cross_validated_tau_b": {},
        "fitted_to": {"pairs": 1, "studies": 1, "ridge": 1, "seen": ["a"]},
    }
    path.write_text(json.dumps(content))
    command = ["evaluate", _table(folder), "--out", "OUT", "--metrics", f"composite:{path}"]
    return path, [command]


def _results(folder: Path) -> tuple[Path, list[list[Any]]]:
    """run.json of a finished evaluation, to which a metric is added."""
    table, out = _table(folder), folder / "scored"
    assert _run("evaluate", table, "--out", out, "--metrics", "bleu-1").exit_code == 0
    asked = ("evaluate", table, "--out", out, "--metrics", "bleu-1,rouge-l")
    return out / "run.json", [[*asked], ["compare", out, "--out", "OUT", "--resamples", 10]]


def _ratings(folder: Path) -> tuple[Path, list[list[Any]]]:
    """A table of values computed elsewhere, whose headers name metrics."""
    rows = [
        {"study_id": f"s{k}", "candidate_id": c, "rater": "a", "rating": k + (c == "y")}
        for k in range(3)
        for c in "xy"
    ]
    ratings = _table(folder, "ratings.jsonl", rows)
    values = [{"study_id": r["study_id"], "candidate_id": r["candidate_id"], "bleu-1": 0.5,
               "rouge-l": 0.25} for r in rows]  # fmt: skip
    path = _table(folder, "values.jsonl", values)
    asked = ("align", ratings, "--values", path, "--out", "OUT", "--resamples", 10)
    return path, [[*asked]]


def _perturbations(folder: Path) -> tuple[Path, list[list[Any]]]:
    rows = [
        {"study_id": f"s{k}", "kind": "change-location", "expected": "significant",
         "original": f"Small left effusion {k}.", "perturbed": f"Small right effusion {k}."}
        for k in range(2)
    ]  # fmt: skip
    path = _table(folder, "perturbations.jsonl", rows)
    asked = ("sensitivity", "-p", path, "--metrics", "bleu-1", "--resamples", 10, "--out", "OUT")
    return path, [[*asked]]


def _pair_values(folder: Path) -> tuple[Path, list[list[Any]]]:
    _, commands = _perturbations(folder)
    rows = [{"study_id": f"s{k}", "kind": "change-location", "bleu-1.original": 1,
             "bleu-1.perturbed": 0.5} for k in range(2)]  # fmt: skip
    path = _table(folder, "values.jsonl", rows)
    return path, [[*commands[0][:3], "--values", path, *commands[0][5:]]]


def _oracle_record(folder: Path) -> tuple[Path, list[list[Any]]]:
    """run.json of an oracle, of which rating sheets are made."""
    index, _ = _index(folder)
    asked = ("oracle", _table(folder), "--index", index.parent, "--k", 1, "--metric", "bleu-1")
    made = _run(*asked, "--candidates", 0, "--out", folder / "o")
    assert made.exit_code == 0, made.output
    return folder / "o" / "run.json", [
        ["rating-sheets", folder / "o", "--raters", "ann", "--out", "OUT"]
    ]


KINDS = {
    "index.json": Kind(_index),
    "card.json of a shared space": Kind(_space, 3),
    "training.toml": Kind(_training, 3),
    "composite": Kind(_composite, 3),
    "run.json of an evaluation": Kind(_results),
    "run.json of an oracle": Kind(_oracle_record),
    "values of rated pairs": Kind(_ratings),
    "perturbations.jsonl": Kind(_perturbations),
    "values of perturbations": Kind(_pair_values),
}

# Every module that reads a structured file, and where its kind of file is attacked.
TABLE = "its cells are data: the table's kinds above, and tests/data/studies"
OWN = "a chunk or result of the toolkit, read only where its sha256 agrees with the record"
SHIPPED = "ships with the package"
CODE = "tests/encoders/test_attacks.py and tests/test_no_code_runs.py attack it"
PIPE = "a message between processes of one run"
NO_NAMES = "holds no name of a member"
READERS = {
    "core.chunks": OWN,
    "core.finish": "run.json of an evaluation",
    "core.processes": PIPE,
    "core.safe_cells": OWN,
    "core.store": NO_NAMES,
    "data.datasets.dataset_files": TABLE,
    "data.datasets.r2gen": TABLE,
    "data.datasets.rex": TABLE,
    "data.images.gdcm_child": PIPE,
    "data.phantom.scene": SHIPPED,
    "data.report_pairs": TABLE,
    "data.rows": TABLE,
    "data.study": TABLE,
    "embedding.worker_child": PIPE,
    "embedding.workers": PIPE,
    "encoders.blocks.tokenizers": CODE,
    "encoders.blocks.word_tokenizers": NO_NAMES,
    "encoders.cards": SHIPPED,
    "encoders.models.in_space": "card.json of a shared space",
    "encoders.models.openclip_parts": CODE,
    "encoders.models.phantom_supervised": SHIPPED,
    "encoders.models.small": NO_NAMES,
    "encoders.published": NO_NAMES,
    "evaluation.alignment.candidate_orders": NO_NAMES,
    "evaluation.alignment.radpref_ratings": NO_NAMES,
    "evaluation.baselines.report_templates": NO_NAMES,
    "evaluation.baselines.run": OWN,
    "evaluation.calibration": NO_NAMES,
    "evaluation.comparison.known": OWN,
    "evaluation.report_labels": OWN,
    "evaluation.finished_folders": OWN,
    "evaluation.row_chunks": OWN,
    "evaluation.ratings.questions": SHIPPED,
    "evaluation.ratings.sheet_files": OWN,
    "evaluation.scoring.executor": OWN,
    "evaluation.scoring.parallel": OWN,
    "evaluation.scoring.results": "run.json of an evaluation",
    "evaluation.scoring.summary": OWN,
    "findings.lexicon": CODE,
    "metrics.judge.judge_answers": NO_NAMES,
    "metrics.judge.judge_questions": NO_NAMES,
    "metrics.judge.model_judge": NO_NAMES,
    "metrics.library.bert_score": CODE,
    "metrics.library.composite": "composite",
    "metrics.networks.model_bert": OWN,
    "metrics.networks.model_files": OWN,
    "metrics.networks.radgraph_model": CODE,
    "pages.result_folder": OWN,
    "perturb.run": OWN,
    "retrieval.index_folder": "index.json",
    "retrieval.index_parts": OWN,
    "retrieval.queries": OWN,
    "stats.command_run": OWN,
    "training.copies": OWN,
    "training.settings": "training.toml",
    "training.state": OWN,
    "training.training_pairs": OWN,
}
_READ = {"json": {"load", "loads"}, "tomllib": {"load", "loads"}}


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collects what a name must not do: import the planted module, or open a connection."""
    import huggingface_hub.constants as hub

    done = DONE
    done.clear()
    (tmp_path / f"{PLANTED}.py").write_text(
        "import tests.test_names_in_files as here\n"
        "here.DONE.append('imported')\n"
        "raise RuntimeError('imported')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def connect(*arguments: Any, **_: Any) -> None:
        done.append(f"connected {arguments[-1]}")
        raise OSError("no network here")

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", False)
    for name in ("VLSCORE_ENCODER", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield done
    sys.modules.pop(PLANTED, None)


def test_the_guard_notices(guard: list[str]) -> None:
    from vlscore.encoders import load_encoder

    for attack in ATTACKS[:2]:
        with pytest.raises(Exception):  # noqa: B017
            load_encoder(attack)
    assert "imported" in guard
    assert any(each.startswith("connected") for each in guard)


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_file_is_imported_or_downloaded(
    kind: str, guard: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlscore.embedding import embedder as studies

    decoder = studies.StudyEmbedder.decoder
    monkeypatch.setattr(studies.StudyEmbedder, "decoder", lambda self, workers=0: decoder(self))
    if kind in ("index.json", "run.json of an oracle"):
        # A small encoder of tests stands in for the bundled one; its name passes the same door.
        load = studies.load_encoder
        monkeypatch.setattr(
            studies,
            "load_encoder",
            lambda name, **options: (
                HashEncoder() if name in (None, "hash") else load(name, **options)
            ),
        )
    made = tmp_path / "made"
    made.mkdir()
    file, commands = KINDS[kind].make(made)
    guard.clear()
    before, places = _read(file), list(_places(_read(file)))
    assert places
    untouched = tmp_path / "untouched"
    shutil.copytree(made, untouched)
    for number, place in enumerate(places):
        # Only a table's headers are names of its user's choosing.
        for attack in _attacks(kind, place, number):
            changed = _planted(copy.deepcopy(before), place, attack)
            for command in commands:
                shutil.rmtree(made)
                shutil.copytree(untouched, made)
                _write(file, changed)
                out = tmp_path / f"out-{number}"
                _run(*(out if part == "OUT" else part for part in command))
                assert not guard, f"{kind}: {attack} at {place} made {command[0]}: {guard}"


def _attacks(kind: str, place: tuple[Any, ...], number: int) -> tuple[str, ...]:
    if place[-1] == "key of":
        return ATTACKS[:1]
    if kind.startswith("run.json") and "key" not in place:
        # Digests, times and signatures: the attacks take turns.
        return (ATTACKS[number % 2],)
    return ATTACKS[: KINDS[kind].attacks]


def _read(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".toml":
        return tomllib.loads(text)
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def _write(file: Path, content: Any) -> None:
    if file.suffix == ".toml":
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in content.items()]
    elif file.suffix == ".jsonl":
        lines = [json.dumps(row) + "\n" for row in content]
    else:
        lines = [json.dumps(content)]
    file.write_text("".join(lines), encoding="utf-8")


def _places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a text stands: the path to each value, and to each key (ended by "key of")."""
    if isinstance(content, str):
        yield path
    elif isinstance(content, dict):
        for key, value in content.items():
            if path == (0,):
                yield (*path, key, "key of")
            yield from _places(value, (*path, key))
    elif isinstance(content, list):
        # Rows of a table are alike, so the first stands for all of them.
        for number, value in enumerate(content[:1]):
            yield from _places(value, (*path, number))


def _planted(content: Any, path: tuple[Any, ...], text: str) -> Any:
    """The content with a text at that place, in every row where it is a table's."""
    if not path:
        return text
    if path[1:] == ("key of",):
        return {text if key == path[0] else key: value for key, value in content.items()}
    if isinstance(content, list):
        return [
            _planted(each, path[1:], text)
            if isinstance(each, dict) or k == path[0]
            else each
            for k, each in enumerate(content)
        ]  # fmt: skip
    content[path[0]] = _planted(content[path[0]], path[1:], text)
    return content


def test_every_reader_of_files_is_known() -> None:
    """A module that begins to read json or TOML says here where its names are attacked."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call | ast.Attribute) and _reads(node):
                module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
                found.add(module.removesuffix(".__init__"))
    assert found == set(READERS), found ^ set(READERS)
    assert set(READERS.values()) - {TABLE, OWN, SHIPPED, CODE, PIPE, NO_NAMES} <= set(KINDS)


def _reads(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "read_json"
    assert isinstance(node, ast.Attribute)
    return isinstance(node.value, ast.Name) and node.attr in _READ.get(node.value.id, ())


@pytest.mark.parametrize("name", ["phantom", "small", "BioViL_T", "medclip-swin"])
def test_registered_encoders_are_found(name: str) -> None:
    assert encoder_from_file(name, "index.json")


@pytest.mark.parametrize(
    "name",
    [
        *ATTACKS,
        "openclip:ViT-B-32:laion2b_s34b_b79k",
        "openclip:stranger/model",
        "gloria:none-such",
        "vlscore.encoders.models.in_space:InSharedSpace",
        "phantom+space",
        "",
        None,
        3,
        ["phantom"],
    ],
)
def test_other_names_are_refused_with_what_to_do(name: object) -> None:
    with pytest.raises(UnknownName, match=r"index\.json names the encoder .*--encoder"):
        encoder_from_file(name, os.path.join("ix", "index.json"))


@pytest.mark.parametrize("line", ["out = 'x'", "overwrite = true", "pairs = 'x'"])
def test_a_file_of_settings_cannot_say_where_files_are_written(line: str, tmp_path: Path) -> None:
    config = tmp_path / "training.toml"
    config.write_text(line)
    done = _run("train", _table(tmp_path), "--config", config, "--out", tmp_path / "o")
    assert "cannot say where files are written" in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["studies.jsonl", "training.toml"]


def test_what_the_command_line_names_goes_before_the_file(tmp_path: Path) -> None:
    config = tmp_path / "training.toml"
    config.write_text(f'encoder = "{ATTACKS[0]}"\nobjective = "{ATTACKS[0]}"\n')
    rows = [{**row, "image": "x.png"} for row in REPORTS]
    asked = ("train", _table(tmp_path, rows=rows), "--config", config, "--out", tmp_path / "o")
    done = _run(*asked, "--encoder", "small", "--objective", "none-such")
    assert "none-such" in str(done.exception)
    assert "names the" in str(_run(*asked).exception)
