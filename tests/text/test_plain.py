"""The plain form of a report: as long as the report, with what its marks stand for."""

import html
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlscore.findings import extract, tokenize
from vlscore.text import JOINER, plain_text, split_sentences, titles_of
from vlscore.text.stand_ins import INVISIBLE

MARKS = [
    *"ab. \n-*#_<>&;\\/~|[]{}'\"`^%1,2:?•\u00a0\u200b\r\x0c",
    "<br>", "&amp;", "&#39;", "**", "\\n", "isn ' t", " n't", "1. 2 cm", "<think>", "</think>",
    "_x000D_", "FINDINGS:", "<findings>", "[SEP]", "&lt;", "w / o", '{"a": "b"}', "\\u2022", "##",
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.sampled_from(MARKS), max_size=40).map("".join))
def test_the_plain_text_is_as_long_and_sentences_have_their_words(report):
    assert len(plain_text(report).text) == len(report)
    position = 0
    for text, start, end in split_sentences(report):
        assert report[start:end] == text
        assert position <= start < end
        position = end
    for title in titles_of(report):
        assert 0 <= title.start < title.end <= len(report)


@given(st.text(max_size=200))
def test_any_text_has_a_plain_text_of_its_length(report):
    assert len(plain_text(report).text) == len(report)
    extract(report)


UNSEEN = [chr(k) for k in range(0x10000) if chr(k).isspace()] + [*INVISIBLE]


@pytest.mark.parametrize("unseen", [*UNSEEN, *(f" {each}\t{each}" for each in UNSEEN)])
def test_a_line_on_which_nothing_is_seen_is_a_blank_line(unseen):
    for below in ("No effusion", "no effusion", ""):
        found = split_sentences(f"The heart is normal\n{unseen}\n{below}")
        expected = split_sentences(f"The heart is normal\n\n{below}")
        assert [s.text.strip() for s in found] == [s.text.strip() for s in expected]
    assert split_sentences(f"The heart is normal\n{unseen}")[0].text == "The heart is normal"


PROSE = "The heart is 2.5 cm wide, e.g. as before (see above); 9:30 a.m. No. 3 tube - stable, 3/4."


@pytest.mark.parametrize("report", [PROSE, PROSE.lower(), PROSE.upper(), "XXXX ___ 1/2 #3 + * - >"])
def test_prose_is_its_own_plain_text(report):
    assert plain_text(report).text == report


@pytest.mark.parametrize(
    "name",
    [
        "nbsp",
        "lt",
        "gt",
        "amp",
        "quot",
        "apos",
        "deg",
        "times",
        "micro",
        "frac12",
        "plusmn",
        "bull",
        "middot",
        "rsquo",
        "eacute",
        "hellip",
    ],
)
@pytest.mark.parametrize("pattern", ["&{};", "&amp;{};", "& {} ;", "&#{};", "&#x{:x};"])
def test_entities_are_those_of_html(name, pattern):
    character = html.unescape(f"&{name};")
    code = ord(character) if "#" in pattern else name
    written = f"No {pattern.format(code)}5 nodule{pattern.format(code)}s."
    meant = f"No {character}5 nodule{character}s."
    forms = [token.form for token in tokenize(plain_text(written).text)]
    assert forms == [token.form for token in tokenize(plain_text(meant).text)]


DIVIDED = {
    "isn ' t": "isn't", "is n't": "isn't", "isn 't": "isn't", "isn’t": "isn't", "isn`t": "isn't",
    "patient ' s": "patient's", "can ' t": "can't", "DOESN ' T": "doesn't", "there ' s": "there's",
    "1. 2 cm": "1.2 cm", "1 . 2 cm": "1.2 cm", "1 .2 cm": "1.2 cm", "1,2 cm": "1.2 cm",
    "1·2 cm": "1.2 cm", "1. 2 x 0. 9 cm": "1.2 x 0.9 cm", "1 . 2 x 0 . 9 cm": "1.2 x 0.9 cm",
    "w / o shift": "w/o shift", "r / o pna": "r/o pna", "s / p cabg": "s/p cabg",
    "c / w edema": "c/w edema", "w / effusion": "w/ effusion", "and / or mass": "and/or mass",
    "cardio ##megaly": "cardiomegaly", "cardio@@ megaly": "cardiomegaly", "▁no▁mass": "no mass",
    "w / out shift": "without shift", "+ / - shift": "+/- shift",
    "hyper @-@ inflated lung": "hyper-inflated lung",
}  # fmt: skip


@pytest.mark.parametrize("written", DIVIDED)
def test_divided_words_are_whole(written):
    """Expected: the words as they are spelt before a tokenizer divides them."""
    report = f"There is a mass {written}."
    whole = f"There is a mass {DIVIDED[written]}."
    found = tokenize(plain_text(report).text)
    assert [t.form for t in found] == [t.form for t in tokenize(whole)]
    assert all(report[token.start : token.end].strip() for token in found)


WHOLE = ["Fracture of rib 5. 2 cm nodule.", "1. Clear. 2. 3 mm nodule.", "Ribs 4 and 5 . 2 cm mass",
         "Views: 2. 3 mm nodule.", "Seen at T1. 2 cm mass.", "Nodules, 1, 2 and 3 mm."]  # fmt: skip


@pytest.mark.parametrize("report", WHOLE)
def test_two_numbers_are_not_one(report):
    assert JOINER not in plain_text(report).text


@pytest.mark.parametrize(
    "piece",
    [
        "No edema.<br>",
        "<p>Clear</p>",
        "**Bold** ",
        "isn ' t 1. 2 cm ",
        "&amp;",
        "\\n",
        "FINDINGS\n",
        "1) a 2) b ",
        "- a ",
        "No edema\n",
        "<think>",
        "<odd>",
        '"a": ',
        "[SEP]",
        "FINDINGS: ",
    ],
)
def test_time_is_linear(piece):
    def seconds(times: int) -> float:
        report = piece * times
        start = time.process_time()
        split_sentences(report)
        return time.process_time() - start

    seconds(50)
    many, few = (min(seconds(times) + 1e-3 for _ in range(3)) for times in (8000, 800))
    assert many < 40 * few


def test_cells_of_the_rich_text_format_keep_their_places():
    text = r"{\rtf1\ansi Edema\cell none\cell\row Heart: normal\par}"
    plain = plain_text(text)[0]
    assert [plain.index(word) for word in ("Edema", "none", "Heart")] == [
        text.index(word) for word in ("Edema", "none", "Heart")
    ]
