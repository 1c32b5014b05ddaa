"""A changed report in the views of the check: which sentences an edit touches, and how."""

from hypothesis import given
from hypothesis import strategies as st

from vlscore.perturb import Change, Edit, ReadReport, apply_edits
from vlscore.perturb.changed_sentences import ChangedReport, clipped

REPORT = ReadReport.read(
    "\n".join(f"{k}. Small left effusion. Lungs are clear; no edema." for k in range(12))
)


@st.composite
def edits(draw):
    """Edits in text order without overlap, some of them insertions, some across sentences."""
    size = len(REPORT.text)
    places = sorted(draw(st.lists(st.integers(0, size), min_size=2, max_size=60)))
    pairs = zip(places[::2], places[1::2], strict=False)
    new = st.sampled_from(["", "x", " Normal.", "right"])
    return tuple(dict.fromkeys(Edit(a, b, draw(new)) for a, b in pairs))


@given(edits())
def test_the_sentences_of_an_edit_are_found_as_by_looking_at_every_one(made):
    changed = ChangedReport(REPORT, Change(made, "rule"))
    for sentence in REPORT.plain:
        every = [part for edit in made if (part := clipped(edit, sentence))]
        assert changed.edits_of(sentence) == every
    touched = [
        sentence for sentence in REPORT.plain if any(_reaches(edit, sentence) for edit in made)
    ]
    assert changed.touched == touched
    after = [apply_edits(s.text, changed.edits_of(s)).lower() for s in touched]
    assert changed.after == after
    numbers = {sentence.number for sentence in touched}
    assert changed.others == [s for s in REPORT.plain if s.number not in numbers]


def _reaches(edit, sentence):
    if edit.start < edit.end:
        return edit.start < sentence.end and sentence.start + sentence.lead < edit.end
    inside = sentence.start < edit.start < sentence.end
    opens_another = edit.replacement.strip().endswith((".", "!", "?"))
    return inside or (edit.start == sentence.end and not opens_another)


def test_a_sentence_may_not_be_said_twice():
    report = ReadReport.read("No edema. Small left effusion. Small right effusion.")
    left = report.text.index("left")
    change = Change((Edit(left, left + 4, "right"),), "rule")
    assert "would repeat a sentence" in ChangedReport(report, change).repetition()
    gone = Change((Edit(9, 30, ""),), "rule")
    assert ChangedReport(report, gone).repetition() is None
