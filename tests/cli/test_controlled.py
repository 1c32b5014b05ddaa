"""`vlscore controlled` from the command line."""

import json
from types import SimpleNamespace

from tests.evaluation.test_controlled import REPORTS


def test_areas_are_printed(command, tmp_path):
    table = tmp_path / "reports.csv"
    rows = "\n".join(f"r{k},{text}" for k, text in enumerate(REPORTS))
    table.write_text(f"id,report\n{rows}\n", encoding="utf-8")
    out = tmp_path / "out"
    options = ("-m", "bleu-1", "--observations", "pleural effusion", "--resamples", 20)
    done = command("controlled", table, "-o", out, *options)
    assert done.exit_code == 0, done.output
    for shown in ("Do sentences agree?", "vlscore.findings"):
        assert shown in done.stdout
    again = command("controlled", table, "-o", out, *options, "--json")
    assert "nothing was computed" in again.stderr
    assert set(json.loads(again.stdout)["frames"]) == {"cells", "counts", "separations"}

    labelled = ("controlled", out / "sentences.csv", "--labelled", "-o", tmp_path / "second")
    done = command(*labelled, "-m", "bleu-1", "--resamples", 20)
    assert done.exit_code == 0, done.output
    assert "table sentences.csv" in done.stdout


def test_ctrl_c_says_that_nothing_was_kept_and_asks_for_no_folder(command, tmp_path, monkeypatch):
    table = tmp_path / "reports.csv"
    table.write_text("id,report\n" + "".join(f"r{k},{t}\n" for k, t in enumerate(REPORTS)))
    monkeypatch.setattr("vlscore.evaluation.controlled", _interrupt)
    done = command("controlled", table, "-o", tmp_path / "out", "-m", "bleu-1")
    assert done.exit_code == 130
    assert done.stderr.endswith("stopped; nothing was stored.\n")


def test_batches_and_cache_are_as_in_other_commands(command, tmp_path, monkeypatch):
    asked = {}
    scorer = SimpleNamespace(embedder=None)
    monkeypatch.setattr("vlscore.metrics.Scorer", lambda *_, **o: asked.update(o) or scorer)
    monkeypatch.setattr("vlscore.evaluation.controlled", _interrupt)
    table = tmp_path / "reports.csv"
    table.write_text("id,report\nr,Clear lungs.\n")
    command("controlled", table, "-o", tmp_path / "out")
    assert (asked["batch_size"], asked["cache"]) == (None, True)
    command("controlled", table, "-o", tmp_path / "out", "--no-cache", "--batch-size", 3)
    assert (asked["batch_size"], asked["cache"]) == (3, False)


def _interrupt(*_, **__):
    raise KeyboardInterrupt
