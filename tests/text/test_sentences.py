"""Sentences end where a reader would end them, and know their place."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vlscore.text import split_sentences

CASES = {
    "decimals": ("Nodule of 2.5 cm. No change.", ["Nodule of 2.5 cm.", "No change."]),
    "titles and times": (
        "Seen by Dr. Smith at 9:15 a.m. today. No change.",
        ["Seen by Dr. Smith at 9:15 a.m. today.", "No change."],
    ),
    "tokenised lower case": (
        "no pleural effusion . heart size normal . scar vs . mass .",
        ["no pleural effusion .", "heart size normal .", "scar vs . mass ."],
    ),
    "numbered lines": (
        "1. Lungs are clear.\n2. Nodule in the right\nupper lobe.\n10.No acute disease",
        ["Lungs are clear.", "Nodule in the right\nupper lobe.", "No acute disease"],
    ),
    "wrapped lines": (
        "The heart is\nnormal. Clear\nlungs.",
        ["The heart is\nnormal.", "Clear\nlungs."],
    ),
    "headers": (
        "FINDINGS: Clear lungs.\nIMPRESSION: Normal chest.",
        ["Clear lungs.", "Normal chest."],
    ),
    "masks": (
        "XXXX XXXX. The XXXX are intact. ___ tube.",
        ["XXXX XXXX.", "The XXXX are intact.", "___ tube."],
    ),
    "no final period": ("heart normal", ["heart normal"]),
    "abbreviations": ("The tube, e.g. the PICC, is fine.", ["The tube, e.g. the PICC, is fine."]),
    "abbreviations that end a sentence": (
        "Read at 9 a.m. The lungs, hila, etc. are clear. Seen at 5 p.m. by RN.",
        ["Read at 9 a.m.", "The lungs, hila, etc. are clear.", "Seen at 5 p.m. by RN."],
    ),
    "sides": ("L. lung clear. Lt. base opaque.", ["L. lung clear.", "Lt. base opaque."]),
    "sub-headings on lines": (
        "Findings:\nLungs: clear\nHeart: normal\nImpression: fine",
        ["Lungs: clear", "Heart: normal", "fine"],
    ),
    "sub-headings in capitals": (
        "FINDINGS: AP CHEST: Fine.\nHEART: Enlarged. LUNGS: Clear. IMPRESSION: Edema.",
        ["Fine.", "HEART: Enlarged.", "LUNGS: Clear.", "Edema."],
    ),
    "numbered things": ("No. 3 tube is in place.", ["No. 3 tube is in place."]),
    "ellipsis and question": ("Stable... new? It is", ["Stable...", "new?", "It is"]),
    "paragraphs": ("Clear lungs\n\nNormal heart", ["Clear lungs", "Normal heart"]),
    "missing blank": ("Clear lungs.No effusion.", ["Clear lungs.", "No effusion."]),
    "nothing": ("", []),
    "punctuation only": (". . !", []),
}


@pytest.mark.parametrize("case", CASES)
def test_sentences(case):
    report, expected = CASES[case]
    assert [sentence.text for sentence in split_sentences(report)] == expected


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from(list("kz.!?;: \n12XAZ()-_,\t\x00é")), max_size=120))
@example("!!k ")
def test_spans_are_exact_ordered_and_lose_no_letter(report):
    sentences = split_sentences(report)
    position = 0
    for sentence in sentences:
        assert report[sentence.start : sentence.end] == sentence.text
        assert sentence.text == sentence.text.strip()
        assert sentence.start >= position
        position = sentence.end
    kept = {k for s in sentences for k in range(s.start, s.end)}
    lost = "".join(c for k, c in enumerate(report) if k not in kept and c in "kzé")
    assert lost == ""


def test_time_grows_linearly():
    sentence = "The heart is 2.5 cm wide, Dr. A. Smith said. "

    def seconds(times: int) -> float:
        start = time.process_time()
        split_sentences(sentence * times)
        return time.process_time() - start

    seconds(100)
    # The best of three: whatever else the machine does can only add.
    many, few = (min(seconds(times) for _ in range(3)) for times in (8000, 800))
    assert many < 40 * max(few, 1e-3)
