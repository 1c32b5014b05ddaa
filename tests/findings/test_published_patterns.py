"""The published patterns of the CheXpert labeller and NegBio are kept, or differ for a reason."""

import json
from pathlib import Path

import pytest

from vlscore.findings import CHEXPERT_LABELS, chexpert_labels

DATA = Path(__file__).parent / "data" / "published_patterns.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("source", ["chexpert-labeler", "NegBio"])
def test_each_sentence_is_read_as_its_row_says(source: str) -> None:
    rows = [row for row in ROWS if row["source"] == source]
    assert len(rows) >= 50
    wrong = [
        (row["sentence"], row["label"], got)
        for row in rows
        if (got := chexpert_labels(row["sentence"])[row["label"]]) != row.get("ours", row["theirs"])
    ]
    assert not wrong


def test_a_difference_has_a_reason_and_an_agreement_none() -> None:
    for row in ROWS:
        assert row["label"] in CHEXPERT_LABELS
        assert ("why" in row) == (row.get("ours", row["theirs"]) != row["theirs"]), row


def test_the_rules_agree_with_most() -> None:
    assert sum("why" not in row for row in ROWS) >= 0.8 * len(ROWS)
