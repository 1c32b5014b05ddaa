"""Controlled corpora: labels, matrices and areas of metrics whose answer is known."""

import pytest

from tests.doubles import HashEncoder
from vlscore.data import open_reports
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import (
    ControlledSettings,
    compare_sentences,
    controlled,
    label_sentences,
    read_labelled,
)
from vlscore.metrics import Scorer, text_metric

REPORTS = [
    "There is a small left pleural effusion. The heart is normal in size.",
    "Large right pleural effusion. No pneumothorax.",
    "No pleural effusion. The heart is enlarged.",
    "Possible small effusion. Lungs are clear.",
    "There is no effusion. Cardiomegaly is present.",
    "No pneumothorax. Heart size is normal. Bilateral effusions are seen.",
]
SMALL = ControlledSettings(references=8, candidates=8, resamples=30)


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


def compared(metrics, sentences, **options):
    return compare_sentences(Scorer(metrics=metrics), sentences, SMALL, **options)


def test_a_metric_that_knows_the_answer_separates_all_and_a_turned_one_as_well(sentences):
    frames, _, _ = compared([agrees, disagrees], sentences)
    assert len(frames["separations"]) == 2 * 3
    assert set(frames["separations"]["auc"]) == {1.0}
    cells = frames["cells"].set_index(["metric", "reference", "candidate"])["mean"].to_dict()
    for reference in ("absent", "present"):
        for candidate in ("absent", "present"):
            assert cells["agrees", reference, candidate] == (reference == candidate)
            assert cells["disagrees", reference, candidate] == (reference != candidate)
    assert cells["agrees", "unmentioned", "denied"] == 1
    assert cells["agrees", "stated", "denied"] == 0
    # A single uncertain sentence is never compared with itself.
    assert ("agrees", "uncertain", "uncertain") not in cells


def test_an_observation_that_nothing_states_is_left_out_with_the_reason():
    sentences = label_sentences(REPORTS, ["Edema", "Pleural Effusion"])
    frames, notes, _ = compared("bleu-1", sentences)
    assert set(frames["separations"]["observation"]) == {"Pleural Effusion"}
    assert notes == ["Edema is left out: no two sentences state it, or no two do not"]
    assert frames["counts"]["stated"].tolist() == [0, 3]
    with pytest.raises(InvalidSetting, match="fewer than two state Edema"):
        compared("bleu-1", label_sentences(REPORTS, ["Edema"]))


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
    with pytest.raises(InvalidTable, match="--rename sentence=NAME"):
        read_labelled(path, sentence_column="text")
    with pytest.raises(InvalidSetting, match="known: edema, Fracture"):
        read_labelled(path, ["Nodule"])


def test_metrics_of_images_are_refused(sentences):
    scorer = Scorer(HashEncoder(), metrics="clipscore")
    with pytest.raises(InvalidSetting, match="clipscore use images"):
        compare_sentences(scorer, sentences, SMALL)


def test_a_run_writes_tables_and_is_not_done_twice(tmp_path):
    table = tmp_path / "reports.csv"
    rows = "\n".join(f"r{k},{text}" for k, text in enumerate([*REPORTS, ""]))
    table.write_text(f"id,report\n{rows}\n", encoding="utf-8")
    scorer = Scorer(metrics="bleu-1,findings-f1")
    options = {"settings": SMALL, "observations": ("Pleural Effusion",)}
    run = controlled(open_reports(table), tmp_path / "out", scorer, **options)
    assert run.record["labelled_by"] == "rules of vlscore.findings"
    assert run.record["in_sample"] == ["findings-f1"]
    assert [failure.id for failure in run.failures] == ["r6"]
    assert run.tables[0].title == "Do sentences agree? Pleural Effusion"
    assert "findings-f1 (in-sample upper bound)" in run.tables[0].text()
    assert "bleu-1: Pleural Effusion" in (run.folder / "tables.md").read_text(encoding="utf-8")
    again = controlled(open_reports(table), tmp_path / "out", scorer, **options)
    assert again.unchanged
    assert again.content == run.content
    # What was written is read again, as labels of others.
    labelled = read_labelled(run.folder / "sentences.csv")
    third = controlled(labelled, tmp_path / "third", scorer, settings=SMALL)
    assert third.record["in_sample"] == []
    assert third.frame("separations").equals(run.frame("separations"))
