"""Reports that the rules cannot read: other languages are noticed, English is not."""

import pytest

from vlscore.evaluation import ComparisonSettings, compare, evaluate
from vlscore.findings import language_notes, sentences_read
from vlscore.metrics import Scorer

ENGLISH = [
    "The heart is normal in size. The lungs are clear. No pleural effusion.",
    "Large left pleural effusion. Mild cardiomegaly.",
    "Interval removal of the right chest tube. Small right pneumothorax.",
    "Status post median sternotomy. Lungs are hyperinflated.",
]
GERMAN = [
    "Großer Pleuraerguss links. Herz vergrößert. Kein Infiltrat.",
    "Unauffälliger Befund. Regelrechte Lage des Tubus.",
    "Stauungszeichen. Zwerchfellhochstand rechts.",
    "Zustand nach Sternotomie. Rippenfraktur links.",
]


@pytest.mark.parametrize("text", ENGLISH)
def test_english_sentences_are_read(text):
    read, total = sentences_read(text)
    assert read == total >= 2


def test_another_language_is_noted_with_its_share():
    assert language_notes({"references": ENGLISH, "candidates": ENGLISH[::-1]}, ["judge"]) == []
    (note,) = language_notes({"references": ENGLISH, "candidates": GERMAN}, ["judge"])
    assert note.startswith("judge: the rules read few sentences of 4 of 4 different candidates (")
    assert "English" in note
    # Half of a table is enough, and no metric by rules is no reason for a note.
    (note,) = language_notes({"references": ENGLISH + GERMAN}, ["judge", "mirqi"])
    assert note.startswith("judge, mirqi: the rules read few sentences of 4 of 8 different ref")
    assert language_notes({"references": GERMAN}, []) == []


def _table(path, candidates):
    rows = [f"{k},{ENGLISH[k]},{text}\n" for k, text in enumerate(candidates)]
    path.write_text("id,reference,candidate\n" + "".join(rows), encoding="utf-8")
    return path


def test_tables_that_are_not_english_are_noted(tmp_path):
    """The scores look perfect: of two texts that are not read, none has an error."""
    other, same = _table(tmp_path / "de.csv", GERMAN), _table(tmp_path / "en.csv", ENGLISH)
    scorer = Scorer(metrics="judge,rouge-l")
    notes = evaluate(other, tmp_path / "e", scorer).notes
    assert [note for note in notes if "English" in note]
    assert not evaluate(same, tmp_path / "s", scorer).notes
    assert not evaluate(other, tmp_path / "r", Scorer(metrics="rouge-l")).notes
    quick = ComparisonSettings(resamples=20, permutations=99)
    run = compare([same, other], tmp_path / "c", scorer, quick)
    (note,) = [note for note in run.notes if "English" in note]
    assert "of 4 of 4 different candidates of de (" in note
