"""`vlscore failure-modes` from the command line."""

import json

from tests.evaluation.alignment.samples import make_rexval


def test_tables_are_printed_and_written(command, tmp_path):
    folder, _ = make_rexval(tmp_path / "rexval", studies=6)
    out = tmp_path / "out"
    done = command("failure-modes", folder, "-o", out, "--resamples", 20)
    assert done.exit_code == 0, done.output
    for shown in ("significant errors", "insignificant errors", "4 wrong severity", f"wrote {out}"):
        assert shown in done.stdout
    again = command("failure-modes", folder, "-o", out, "--resamples", 20, "--json")
    assert "nothing was computed" in again.stderr
    assert set(json.loads(again.stdout)["frames"]) == {"means", "tests"}
