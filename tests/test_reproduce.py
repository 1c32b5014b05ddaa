"""What needs credentials: its commands are parsed, and run on files that are made alike.

The made files have the layout of ReXVal and MIMIC-CXR-JPG; the demonstration encoder stands in for
the published ones, whose options are parsed all the same.
"""

import csv
import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cyclopts import CycloptsError
from PIL import Image

from tests.command import run_command
from tests.conftest import REPOSITORY
from tests.evaluation.alignment.samples import make_rexval
from tests.example_blocks import PAGES, blocks
from vlscore.cli import app
from vlscore.data import read_rows

pytestmark = pytest.mark.slow

PAGE = REPOSITORY / "docs" / "reproduce.md"
EXCUSED = [block for page in PAGES for block in blocks(page) if block.not_run is not None]
COMMANDS = [
    (block, command) for block in EXCUSED for command in block.commands() if "..." not in command
]


def _parsed(arguments: list[str]) -> None:
    """Raises what the command line raises for options or commands that there are not."""
    app.parse_args(arguments, exit_on_error=False, print_error=False)


def test_commands_that_are_not_run_have_the_options_that_there_are() -> None:
    wrong = {}
    for block, arguments in COMMANDS:
        try:
            _parsed(arguments)
        except CycloptsError as error:
            wrong[block.place, *arguments[:2]] = str(error)
    assert wrong == {}


def test_an_option_that_there_is_not_is_found() -> None:
    with pytest.raises(Exception, match="Unknown option: --tau"):
        _parsed(["align", "rexval", "--out", "a", "--tau", "b"])
    with pytest.raises(Exception, match='Unknown command "aline"'):
        _parsed(["aline", "rexval"])
    with pytest.raises(Exception, match="RATINGS requires an argument"):
        _parsed(["align", "--out", "a"])


def _made(folder: Path) -> None:
    """ReXVal of five studies, and their images as MIMIC-CXR-JPG has them."""
    make_rexval(folder / "rexval", studies=5)
    rng = np.random.default_rng(0)
    rows = []
    for study in (500, 501, 502, 503, 504, 999):
        patient, dicom = f"1{study:07d}", f"dicom-{study}"
        place = folder / "mimic-cxr-jpg" / "files" / "p10" / f"p{patient}" / f"s{study}"
        place.mkdir(parents=True)
        for name, view in ((dicom, "PA"), (f"{dicom}-b", "LATERAL")):
            pixels = rng.integers(0, 256, (64, 64), dtype=np.uint8)
            Image.fromarray(pixels).save(place / f"{name}.jpg")
            rows.append([name, patient, study, view])
    metadata = folder / "mimic-cxr-jpg" / "mimic-cxr-2.0.0-metadata.csv.gz"
    with gzip.open(metadata, "wt", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["dicom_id", "subject_id", "study_id", "ViewPosition"])
        table.writerows(rows)
    with zipfile.ZipFile(folder / "mimic-cxr-reports.zip", "w") as archive:
        for _, patient, study, _ in rows[::2]:
            name = f"files/p10/p{patient}/s{study}.txt"
            archive.writestr(name, "FINDINGS: Clear lungs.")


def _without_weights(arguments: list[str]) -> list[str]:
    """The command for the demonstration encoder."""
    kept = list(arguments)
    for option in ("--encoder", "--weights"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
    return [*kept, "--quiet", "--resamples", "20"]


def test_the_whole_page_runs_on_files_made_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _made(tmp_path)
    monkeypatch.chdir(tmp_path)
    fetch, images, shell, largest = [b for b in blocks(PAGE) if b.not_run is not None]
    assert {command[0] for command in fetch.commands()} == {"weights"}
    (table,) = images.commands()
    done = run_command(*table)
    assert done.exit_code == 0, done.output
    assert [record["id"] for _, record in read_rows("rexval_studies.parquet")] == [
        *("500", "501", "502", "503", "504", "999")
    ]
    ran = []
    for arguments in shell.commands():
        # Models that are not here, and METEOR's Java program.
        if "table1-models" in arguments or "table1-words" in arguments:
            continue
        if any(name in arguments for name in ("gloria", "convirt", "biovil", "medclip-vit")):
            continue
        done = run_command(*_without_weights(arguments))
        assert done.exit_code == 0, (arguments, done.output)
        ran.append(arguments[arguments.index("--out") + 1])
    assert ran == ["table1-vlscore", "table5-limitr", "areas-limitr", "failure-modes", "composite"]
    exec(compile(largest.text, "largest", "exec"), {})
    C = float(capsys.readouterr().out.removeprefix("C = "))
    assert 0 < C < 100
    content = json.loads((tmp_path / "composite" / "composite.json").read_text(encoding="utf-8"))
    assert sum(each["weight"] for each in content["inputs"]) == pytest.approx(1)
