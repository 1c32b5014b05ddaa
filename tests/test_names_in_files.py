"""Names out of files are registered names alone: no file makes the toolkit import or download.

The fields of a file that name a member are replaced by the name of a module and by names of models
on a hub. Whatever the command then answers, the module must not have been imported and the network
not asked.
"""

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import run_command
from tests.doubles import HashEncoder
from vlscore.encoders import encoder_from_file
from vlscore.errors import UnknownName

PLANTED = "planted_by_a_file"
ATTACKS = (f"{PLANTED}:THING", "openclip:hf-hub:stranger/model", "stranger/model")

# What an attack brought about; the planted module writes here.
DONE: list[str] = []

REPORTS = [
    {"id": f"s{k}", "reference": f"Small left effusion {k}.", "candidate": f"No effusion {k}.",
     "report": f"Small left effusion {k}."}
    for k in range(3)
]  # fmt: skip


def _run(*arguments: object) -> Any:
    return run_command(*arguments)


def _table(folder: Path, name: str = "studies.jsonl", rows: Any = REPORTS) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _index(folder: Path, attack: str) -> list[list[Any]]:
    table = _table(folder)
    made = _run("index", "build", table, "--out", folder / "ix")
    assert made.exit_code == 0, made.output
    path = folder / "ix" / "run.json"
    content = json.loads(path.read_text())
    assert content["index"]["encoder"] == "hash"
    path.write_text(json.dumps({**content, "index": {**content["index"], "encoder": attack}}))
    return [["oracle", table, "--index", folder / "ix", "--k", 1, "--out", folder / "o"]]


def _training(folder: Path, attack: str) -> list[list[Any]]:
    table = _table(folder, rows=[{**row, "image": "x.png"} for row in REPORTS])
    commands = []
    for name in ("objective", "encoder", "weights", "tokenizer", "image_weights", "augmentation"):
        config = folder / f"{name}.toml"
        config.write_text(f'{name} = "{attack}"\n')
        commands.append(["train", table, "--config", config, "--out", folder / name])
    return commands


def _composite(folder: Path, attack: str) -> list[list[Any]]:
    path = folder / "composite.json"
    each = {"metric": attack, "signature": "bleu-1|v:1", "mean": 0, "deviation": 1, "weight": 1}
    content = {
        "format": "vlscore composite 1",
        "inputs": [each],
        "rating": "errors",
        "pairs": 1,
        "studies": 1,
        "ridge": 1,
        "seen": ["a"],
    }
    path.write_text(json.dumps(content))
    asked = ["evaluate", _table(folder), "--out", folder / "o", "--metrics", f"composite:{path}"]
    return [asked]


def _values(folder: Path, attack: str) -> list[list[Any]]:
    """A table of values computed elsewhere, whose headers name metrics."""
    rows = [
        {"study_id": f"s{k}", "candidate_id": c, "rater": "a", "rating": k + (c == "y")}
        for k in range(3)
        for c in "xy"
    ]
    ratings = _table(folder, "ratings.jsonl", rows)
    keys = [{name: row[name] for name in ("study_id", "candidate_id")} for row in rows]
    path = _table(folder, "values.jsonl", [{**key, attack: 0.5} for key in keys])
    return [["align", ratings, "--values", path, "--out", folder / "o", "--resamples", 10]]


KINDS: dict[str, Callable[[Path, str], list[list[Any]]]] = {
    "run.json": _index,
    "training.toml": _training,
    "composite": _composite,
    "values of rated pairs": _values,
}


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


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_name_in_a_file_is_imported_or_downloaded(
    kind: str, attack: str, guard: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlscore.embedding import embedder as studies

    load = studies.named_encoder

    def loaded(name: str | None, **options: Any) -> Any:
        # A small encoder of tests stands in for the bundled one.
        return studies.EncoderSource(HashEncoder()) if name is None else load(name, **options)

    monkeypatch.setattr(studies, "named_encoder", loaded)
    for command in KINDS[kind](tmp_path, attack):
        done = _run(*command)
        assert not guard, f"{kind}: {attack} made {command}: {guard}"
        assert done.exit_code != 0 or kind == "values of rated pairs"


@pytest.mark.parametrize("name", ["phantom", "small", "BioViL_T", "medclip-swin"])
def test_registered_encoders_are_found(name: str) -> None:
    assert encoder_from_file(name, "run.json")


@pytest.mark.parametrize(
    "name",
    [
        *ATTACKS,
        "openclip:ViT-B-32:laion2b_s34b_b79k",
        "openclip:stranger/model",
        "gloria:none-such",
        "",
        None,
        3,
        ["phantom"],
    ],
)
def test_other_names_are_refused_with_what_to_do(name: object) -> None:
    with pytest.raises(UnknownName, match=r"run\.json names the encoder .*--encoder"):
        encoder_from_file(name, os.path.join("ix", "run.json"))


@pytest.mark.parametrize("line", ["out = 'x'", "overwrite = true", "pairs = 'x'"])
def test_a_file_of_settings_cannot_say_where_files_are_written(line: str, tmp_path: Path) -> None:
    config = tmp_path / "training.toml"
    config.write_text(line)
    done = _run("train", _table(tmp_path), "--config", config, "--out", tmp_path / "o")
    assert "cannot say where files are written" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["studies.jsonl", "training.toml"]


def test_what_the_command_line_names_goes_before_the_file(tmp_path: Path) -> None:
    config = tmp_path / "training.toml"
    config.write_text(f'encoder = "{ATTACKS[0]}"\nobjective = "{ATTACKS[0]}"\n')
    rows = [{**row, "image": "x.png"} for row in REPORTS]
    asked = ("train", _table(tmp_path, rows=rows), "--config", config, "--out", tmp_path / "o")
    done = _run(*asked, "--encoder", "small", "--objective", "none-such")
    assert "none-such" in done.stderr
    assert "names the" in _run(*asked).stderr
