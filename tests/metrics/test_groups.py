"""Names that stand for several metrics, and names given more than once."""

import pytest

from tests.cli.conftest import command  # noqa: F401
from vlscore.errors import UnknownName
from vlscore.metrics import find_metrics


def names(given):
    return [str(metric) for metric in find_metrics(given)]


def test_groups_hold_what_they_say():
    assert names("bleu") == ["bleu-1", "bleu-2", "bleu-3", "bleu-4"]
    text = find_metrics("text")
    assert {"rouge-l", "findings-f1", "bleu-4"} <= {str(metric) for metric in text}
    assert not any(metric.uses_embeddings or metric.cost != "free" for metric in text)
    images = find_metrics(" Image ")
    assert "vlscore" in map(str, images)
    assert all(metric.uses_image for metric in images)


def test_names_and_groups_are_joined_in_order_each_once():
    assert names(["rouge-l", "bleu-2,bleu-1"]) == ["rouge-l", "bleu-2", "bleu-1"]
    assert names("bleu-3,bleu") == ["bleu-3", "bleu-1", "bleu-2", "bleu-4"]
    assert names(["bleu-4(smoothing=exp,tokens=cxr)"]) == ["bleu-4(smoothing=exp,tokens=cxr)"]
    with pytest.raises(UnknownName, match="texts"):
        find_metrics("texts")
