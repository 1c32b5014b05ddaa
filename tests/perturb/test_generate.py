"""`perturb_report`: from one report to its perturbations."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.perturb.contract import read
from tests.perturb.reports import REPORTS
from vlscore.errors import InvalidReport, InvalidSetting, UnknownName
from vlscore.perturb import (
    KINDS,
    Change,
    Edit,
    Effect,
    Expected,
    Kind,
    Meaning,
    ReadReport,
    apply_edits,
    kinds_named,
    perturb,
    perturb_report,
    perturbations_of,
    why_nothing,
)

REPORT = REPORTS["several findings"]


def test_all_kinds_by_default_in_the_order_of_the_registry():
    found = [perturbation.kind for perturbation in perturb_report(REPORT)]
    assert found == [name for name in KINDS if name in found]
    assert len(found) > 5


def test_kinds_come_once_and_in_the_order_of_the_registry():
    names = [kind.name for kind in kinds_named(["paraphrase", "change-location", "paraphrase"])]
    assert names == ["change-location", "paraphrase"]
    assert kinds_named([]) == []
    assert list(perturb_report(REPORT, [])) == []


def test_the_study_id_goes_into_the_records():
    assert {p.study_id for p in perturb_report(REPORT, study_id="s9")} == {"s9"}
    assert {p.study_id for p in perturb_report(REPORT)} == {""}


def test_at_most_per_report_of_each_kind():
    for most in (1, 2, 5):
        kinds = [perturbation.kind for perturbation in perturb_report(REPORT, per_report=most)]
        assert max(map(kinds.count, kinds)) == most


def test_spans_count_code_points():
    report = "\N{ANATOMICAL HEART}\N{VARIATION SELECTOR-16} Small left effusion é. No edema."
    (perturbation,) = perturb_report(report, ["change-location"])
    ((start, end, replacement),) = perturbation.edits
    assert (report[start:end], replacement) == ("left", "right")
    assert perturbation.perturbed == report.replace("left", "right")
    assert apply_edits(report, perturbation.edits) == perturbation.perturbed


def test_nothing_is_generated_before_it_is_asked_for():
    found = perturb_report("Mild edema.", ["no-such-kind"])
    with pytest.raises(UnknownName, match="no kind of perturbation is called 'no-such-kind'"):
        next(found)


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


def test_why_nothing_came_out():
    report, kind = "Heart size is normal. Lungs are clear.", KINDS["standard-normal"]
    assert why_nothing(read("  "), kind) == "the report has no sentence"
    assert why_nothing(ReadReport.read(report), kind) == "there is no standard normal report"
    assert why_nothing(read(report), KINDS["change-location"]) == KINDS["change-location"].nothing


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
def test_a_hostile_text_of_80_000_characters_takes_seconds(line):
    """It took a minute where edits were sought in every sentence, or findings in one another."""
    report = "\n".join(line.format(k=k) for k in range(80_000 // len(line)))
    start = time.process_time()
    made = list(perturb_report(report))
    assert time.process_time() - start < 6
    assert made


class _Refused(Kind):
    """Proposes what the check refuses, again and again."""

    name = "refused"
    description = "For this test."
    expected = Expected.SIGNIFICANT
    nothing = "there is nothing"
    proposed = 0

    def changes(self, source, chance):
        meaning = Meaning(Effect.STATED, ("pneumonia",))
        while True:
            type(self).proposed += 1
            yield Change((Edit(0, 0, "There is pneumonia. "),), "again", meaning)


def test_a_kind_gives_up_after_many_refusals_on_end():
    source, refused = ReadReport.read("The lungs show pneumonia."), []
    assert list(perturbations_of(source, _Refused(), 0, 3, "s", refused)) == []
    assert _Refused.proposed == len(refused) == 200
    assert "another sentence" in refused[0]


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((REPORT,), {}),
        ((REPORT, "change-location"), {}),
        ((REPORT, ["change-location"], 3), {"per_report": 2}),
        ((), {"report": REPORT, "kinds": ["change-location"]}),
    ],
)
def test_the_former_call_of_perturb_warns_and_gives_the_same(arguments, keywords):
    with pytest.warns(DeprecationWarning, match="perturb with these arguments is now perturb_repo"):
        found = list(perturb(*arguments, **keywords))
    assert found == list(perturb_report(*arguments, **keywords))


def test_a_folder_may_be_called_like_a_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("reports.jsonl").write_text('{"id": "a", "report": "Mild edema."}\n')
    assert perturb("reports.jsonl", "paraphrase").folder == Path("paraphrase")
