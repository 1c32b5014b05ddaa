"""Controlled corpora: labels, matrices and areas of metrics whose answer is known."""

import json

import numpy as np
import pytest

from tests.doubles import HashEncoder
from vlscore.data import open_reports
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import (
    Sampling,
    controlled,
    controlled_corpora,
    label_sentences,
    read_labelled,
    unmention_test,
)
from vlscore.evaluation.controlled_sentences.labelled_sentences import write_labelled
from vlscore.metrics import Scorer, text_metric

REPORTS = [
    "There is a small left pleural effusion. The heart is normal in size.",
    "Large right pleural effusion. No pneumothorax.",
    "No pleural effusion. The heart is enlarged.",
    "Possible small effusion. Lungs are clear.",
    "There is no effusion. Cardiomegaly is present.",
    "No pneumothorax. Heart size is normal. Bilateral effusions are seen.",
]
SMALL = Sampling(references=8, candidates=8, resamples=30)


def _says(text):
    return 1.0 if "effusion" in text.lower() and not text.lower().count("no ") else 0.0


@text_metric("agrees", "1 where both state an effusion, or neither does", bounds=(0, 1))
def agrees(candidate, reference):
    return float(_says(candidate) == _says(reference))


@text_metric("disagrees", "1 where one states it", bounds=(0, 1), higher_is_better=False)
def disagrees(candidate, reference):
    return float(_says(candidate) != _says(reference))


@pytest.fixture
def sentences():
    return label_sentences(REPORTS, ["pleural_effusion"])


def test_sentences_are_grouped_by_what_they_say(sentences):
    labels = dict(zip(sentences.sentences, sentences.labels["Pleural Effusion"], strict=True))
    assert labels["Large right pleural effusion."] == 1
    assert labels["No pleural effusion."] == 0
    assert labels["Possible small effusion."] == -1
    assert labels["The heart is enlarged."] == -2
    assert len(set(sentences.sentences)) == len(sentences) == 12


def test_a_metric_that_knows_the_answer_separates_all_and_a_turned_one_as_well(sentences):
    found = controlled_corpora(Scorer(metrics=[agrees, disagrees]), sentences, SMALL)
    assert len(found.separations) == 2 * 3
    assert {each.auc.estimate for each in found.separations} == {1.0}
    cells = {(e.metric, e.reference, e.candidate): e.mean.estimate for e in found.cells}
    for reference in ("absent", "present"):
        for candidate in ("absent", "present"):
            assert cells["agrees", reference, candidate] == (reference == candidate)
            assert cells["disagrees", reference, candidate] == (reference != candidate)
    assert cells["agrees", "unmentioned", "denied"] == 1
    assert cells["agrees", "stated", "denied"] == 0
    # A single uncertain sentence is never compared with itself.
    assert ("agrees", "uncertain", "uncertain") not in cells


def test_every_phase_has_a_name_and_a_total(sentences):
    phases = {}

    def begin(what, total):
        phases[what] = [total]
        return lambda done, failed: phases[what].append(done)

    controlled_corpora(Scorer(metrics="bleu-1,rouge-l"), sentences, SMALL, on_phase=begin)
    assert phases["resampling metrics"] == [2, 1, 2]
    total, *done = phases["pairs of sentences"]
    assert done == sorted(done)
    assert done[-1] == total > 10


def test_areas_of_a_text_metric_are_those_of_its_pairs(sentences):
    found = controlled_corpora(Scorer(metrics="bleu-1"), sentences, SMALL)
    assert found.told == frozenset()
    for each in found.separations:
        assert 0 <= each.auc.low <= each.auc.estimate <= each.auc.high <= 1
        assert each.n <= each.references * 8
    again = controlled_corpora(Scorer(metrics="bleu-1"), sentences, SMALL)
    assert [e.auc for e in again.separations] == [e.auc for e in found.separations]


def test_metrics_that_read_by_the_same_rules_are_named_as_told_the_answer(sentences, tmp_path):
    scorer = Scorer(metrics="findings-f1,rouge-l")
    assert controlled_corpora(scorer, sentences, SMALL).told == {"findings-f1"}
    write_labelled(tmp_path / "sentences.csv", sentences)
    others = read_labelled(tmp_path / "sentences.csv")
    assert controlled_corpora(scorer, others, SMALL).told == frozenset()


def test_an_observation_that_nothing_states_is_left_out_with_the_reason():
    sentences = label_sentences(REPORTS, ["Edema", "Pleural Effusion"])
    found = controlled_corpora(Scorer(metrics="bleu-1"), sentences, SMALL)
    assert list(found.observations) == ["Pleural Effusion"]
    assert "Edema" in found.left_out
    assert found.counts["Edema"]["stated"] == 0


def test_sentences_that_state_nothing_asked_for_are_refused():
    sentences = label_sentences(REPORTS, ["Edema"])
    with pytest.raises(InvalidSetting, match="no two state Edema"):
        controlled_corpora(Scorer(metrics="bleu-1"), sentences, SMALL)


def test_labels_by_others_are_read_as_the_labeller_writes_them(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "sentence,edema,Fracture\nA b.,1.0,\nC d.,-1,0\nA b.,0,0\nE f.,maybe,1\n,1,1\nG h.,,-2\n",
        encoding="utf-8",
    )
    found = read_labelled(path)
    assert found.sentences == ("A b.", "C d.", "G h.")
    assert found.labels["edema"].tolist() == [1, -1, -2]
    assert found.labels["Fracture"].tolist() == [-2, 0, -2]
    assert [row.row for row in found.bad] == [4, 5]
    assert "maybe" in found.bad[0].reason
    with pytest.raises(InvalidTable, match="sentence-column"):
        read_labelled(path, sentence_column="text")
    with pytest.raises(InvalidSetting, match="known: edema, Fracture"):
        read_labelled(path, ["Nodule"])


def test_what_was_written_is_read_again(sentences, tmp_path):
    write_labelled(tmp_path / "s.csv", sentences)
    again = read_labelled(tmp_path / "s.csv")
    assert again.sentences == sentences.sentences
    name = "Pleural Effusion"
    np.testing.assert_array_equal(again.labels[name], sentences.labels[name])


def test_metrics_of_images_are_refused(sentences):
    scorer = Scorer(HashEncoder(), metrics="clipscore")
    with pytest.raises(InvalidSetting, match="clipscore look at images"):
        controlled_corpora(scorer, sentences, SMALL)


def test_leaving_denials_out_costs_a_metric_of_what_is_stated_nothing():
    reports = [(str(k), text) for k, text in enumerate(REPORTS)]
    found = unmention_test(Scorer(metrics=[agrees, "rouge-l", "findings-f1"]), reports)
    assert found.looked_at == len(REPORTS)
    assert 0 < found.reports < len(REPORTS)
    mine, rouge, _ = found.results
    for name in ("copy", "denials left out", "denials added"):
        assert rouge.means[name].estimate <= 1
    assert rouge.means["copy"].estimate == 1
    assert rouge.means["denials left out"].estimate < 1
    assert rouge.ratio.low <= rouge.ratio.estimate <= rouge.ratio.high
    left_out = rouge.means["copy"].estimate - rouge.means["denials left out"].estimate
    pathology = rouge.means["copy"].estimate - rouge.means["pathology left out"].estimate
    assert rouge.ratio.estimate == pytest.approx(left_out / pathology, abs=1e-12)
    # Where a pathology costs nothing for sure, there is nothing to compare with.
    assert mine.ratio is None or mine.ratio.low >= 0
    assert mine.n == rouge.n == found.reports
    assert found.told == {"findings-f1"}


def test_a_run_writes_tables_and_is_not_done_twice(tmp_path):
    table = tmp_path / "reports.csv"
    rows = "\n".join(f"r{k},{text}" for k, text in enumerate([*REPORTS, ""]))
    table.write_text(f"id,report\n{rows}\n", encoding="utf-8")
    scorer = Scorer(metrics="bleu-1,findings-f1")
    options = {"sampling": SMALL, "observations": ("Pleural Effusion",)}
    run = controlled(open_reports(table), tmp_path / "out", scorer, **options)
    content = json.loads((run.folder / "controlled.json").read_text(encoding="utf-8"))
    assert content == run.content
    assert content["labelled_by"] == "rules of vlscore.findings"
    assert content["told_the_answer"] == ["findings-f1"]
    assert [row["id"] for row in content["failures"]] == ["r6"]
    titles = [table.title for table in run.headlines]
    assert titles == ["Do sentences agree? Pleural Effusion", "Unmentioned against negative"]
    assert "findings-f1 (in-sample upper bound)" in run.headlines[0].text()
    assert "bleu-1: Pleural Effusion" in (run.folder / "tables.md").read_text(encoding="utf-8")
    again = controlled(open_reports(table), tmp_path / "out", scorer, **options)
    assert again.unchanged
    assert [t.text() for t in again.headlines] == [t.text() for t in run.headlines]

    labelled = run.folder / "sentences.csv"
    third = controlled(read_labelled(labelled), tmp_path / "third", scorer, sampling=SMALL)
    assert third.stress is None
    assert third.content["told_the_answer"] == []
    assert third.result.separations == run.result.separations
