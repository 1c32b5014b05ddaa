"""`vlscore doctor`, and shell completion."""

import json
import sys
from importlib import metadata

import pytest

from vlscore.cli import app
from vlscore.evaluation import doctor
from vlscore.evaluation import installation as examined


def _checks(topic):
    return [check for check in doctor() if check.topic == topic]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Any connection fails the test."""
    import socket

    def refuse(*arguments, **options):
        raise AssertionError("a connection")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_everything_that_commands_need_is_found_here(command):
    done = command("doctor")
    assert done.exit_code == 0, done.output
    libraries = _checks("Libraries")[0].fact
    for name in ("numpy", "torch", "cyclopts"):
        assert f"{name} {metadata.version(name)}" in libraries
    assert "Every command can run." in done.stdout
    assert "bundled: phantom-judging, phantom" in done.stdout


def test_a_missing_or_old_library_is_status_1_with_what_to_install(command, monkeypatch):
    def found(name):
        if name == "regex":
            raise metadata.PackageNotFoundError(name)
        return "0.1" if name == "scipy" else metadata.version(name)

    monkeypatch.setattr(examined, "version", found)
    done = command("doctor", "--json")
    assert done.exit_code == 1
    shown = json.loads(done.stdout)
    assert not shown["is_ready"]
    advice = {check["fact"]: check["advice"] for check in shown["checks"] if check["advice"]}
    assert advice["regex is not installed"] == "pip install 'regex>=2024.5'"
    assert advice["scipy 0.1 is not >=1.15"] == "pip install 'scipy>=1.15'"


def test_another_package_of_the_same_name_is_status_1_with_the_repair(command, monkeypatch):
    """tests/core/test_other_package.py says when there is one."""
    monkeypatch.setattr(examined, "name_conflict", lambda: ("both lie in one folder", "pip ..."))
    done = command("doctor")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[1].split(maxsplit=1) == ["Package", "both lie in one folder"]
    assert "Something is wrong or missing" in done.stdout


def test_a_missing_extra_is_no_failure(monkeypatch):
    def found(name):
        if name == "matplotlib":
            raise metadata.PackageNotFoundError(name)
        return metadata.version(name)

    monkeypatch.setattr(examined, "version", found)
    (plots,) = [check for check in _checks("Extras") if check.fact.startswith("plots")]
    assert plots.advice == "pip install 'vlscore[plots]'"
    assert not any(check.has_failed for check in doctor())


def test_the_other_checks_run_without_a_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    (libraries,) = _checks("Libraries")
    assert libraries.fact.startswith("cannot be examined")
    assert any(check.has_failed for check in doctor())
    assert _checks("Metrics")[0].fact.endswith("can run")


def test_what_cannot_be_imported_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (device,) = _checks("Device")
    assert "PyTorch cannot be imported" in device.fact
    assert any(check.has_failed for check in doctor())


def test_weights_are_found_where_they_lie(tmp_path, monkeypatch):
    def of(name):
        return next(
            c.fact for c in _checks("Encoders") if name in c.fact.split(": ")[-1].split(", ")
        )

    assert of("gloria").startswith("not found")
    (tmp_path / "gloria").mkdir()
    (tmp_path / "gloria" / "chexpert_resnet50.ckpt").write_bytes(b"")
    monkeypatch.setenv("VLSCORE_WEIGHTS", str(tmp_path))
    assert of("gloria").startswith("found")
    monkeypatch.setenv("VLSCORE_WEIGHTS", str(tmp_path / "gone"))
    assert any(check.advice == "there is no such file or folder" for check in _checks("Encoders"))


def test_every_metric_is_counted_or_explained(monkeypatch):
    monkeypatch.delenv("VLSCORE_RADGRAPH", raising=False)
    first, *others = _checks("Metrics")
    can, known = (int(number) for number in first.fact.split() if number.isdigit())
    explained = [name for check in others for name in check.fact.split(", ")]
    assert can + len(explained) == known
    advice = {name: check.advice for check in others for name in check.fact.split(", ")}
    assert "VLSCORE_RADGRAPH" in advice["radgraph-f1"]
    assert "radgraph-f1" in advice["radcliq-v1"]


def test_a_cache_that_cannot_be_used_has_advice(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "file"))
    (cache,) = _checks("Cache")
    assert cache.advice == "set VLSCORE_CACHE to another folder"
    monkeypatch.setenv("VLSCORE_CACHE", "off")
    assert _checks("Cache")[0].advice == ""


def test_the_shell_completes_commands_and_options():
    script = app.generate_completion(shell="bash")
    for word in ("evaluate", "verify", "--candidate", "--keep-going"):
        assert word in script
