"""Captions say where the demonstration encoder was used."""

import re

from vlscore.stats import TextTable, with_demonstration_note

TABLES = [
    TextTable("One", ("a",), (("1",),)),
    TextTable("Two", ("a",), (("1",),), "In brackets: n."),
]
REAL, FLAGGED = "vlscore|enc:limitr@12", "vlscore|enc:phantom@12|DEMONSTRATION-ENCODER"
SAID = "no statement about real radiographs"


def test_every_caption_is_marked_in_what_is_printed_and_pasted():
    for table in with_demonstration_note(TABLES, ["bleu-1|v:1", FLAGGED]):
        # A comment of LaTeX is not on the page: the mark is inside \caption{...}.
        assert re.search(rf"^\\caption{{.*{SAID}.*}}$", table.latex(), re.MULTILINE)
        assert SAID in table.markdown()
        assert SAID in " ".join(table.text().split())


def test_other_encoders_leave_captions_as_they_are():
    assert with_demonstration_note(TABLES, [REAL, None]) == TABLES
