"""`perturb_report`: from one report to its perturbations."""

import os
import subprocess
import sys
import time

import pytest

from tests.perturb.reports import REPORTS
from vlscore.errors import InvalidReport, InvalidSetting, UnknownName
from vlscore.perturb import (
    apply_edits,
    perturb_report,
)

REPORT = REPORTS["several findings"]


def test_spans_count_code_points():
    report = "\N{ANATOMICAL HEART}\N{VARIATION SELECTOR-16} Small left effusion é. No edema."
    (perturbation,) = perturb_report(report, ["change-location"])
    ((start, end, replacement),) = perturbation.edits
    assert (report[start:end], replacement) == ("left", "right")
    assert perturbation.perturbed == report.replace("left", "right")
    assert apply_edits(report, perturbation.edits) == perturbation.perturbed


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"report": None}, InvalidReport),
        ({"report": b"Mild edema."}, InvalidReport),
        ({"report": "Mild edema.", "per_report": 0}, InvalidSetting),
        ({"report": "Mild edema.", "kinds": ["edema"]}, UnknownName),
        ({"report": "Mild edema.", "kinds": [3]}, InvalidSetting),
    ],
)
def test_wrong_arguments_are_refused(arguments, error):
    with pytest.raises(error):
        list(perturb_report(**arguments))


@pytest.mark.slow
def test_hash_seeds_do_not_matter():
    texts = [REPORTS[name] for name in ("several findings", "sections", "comparison", "normal")]
    code = (
        "from vlscore.perturb import perturb_report\n"
        f"for report in {texts!r}:\n"
        "    for perturbation in perturb_report(report, seed=5, per_report=3):\n"
        "        print(perturbation)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    here = [p for report in texts for p in perturb_report(report, seed=5, per_report=3)]
    assert done.stdout.splitlines() == [str(perturbation) for perturbation in here]
    assert len(here) > 20


@pytest.mark.parametrize(
    "line",
    [
        "Calcified granuloma in the right lung, size {k} mm.",
        "{k}. Small left pleural effusion is unchanged.",
        "{k}. There is a nodule which may represent cancer. Normal.",
    ],
)
def test_a_hostile_text_of_20_000_characters_takes_seconds(line):
    report = "\n".join(line.format(k=k) for k in range(20_000 // len(line)))
    start = time.process_time()
    made = list(perturb_report(report))
    assert time.process_time() - start < 6
    assert made
