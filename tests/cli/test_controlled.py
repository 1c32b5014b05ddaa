"""`vlscore controlled` from the command line."""

import json

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
