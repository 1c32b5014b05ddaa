"""Which settings an oracle takes, and by which names it finds a metric."""

import pytest

from vlscore.errors import InvalidSetting, UnknownName
from vlscore.metrics import text_metric
from vlscore.retrieval import OracleSettings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k is a whole number, at least 1, not 0"),
        ({"k": True}, "k is a whole number, at least 1, not True"),
        ({"k": 2.5}, "k is a whole number, at least 1, not 2.5"),
        ({"candidates": -3}, "candidates is a whole number, at least 0, not -3"),
        ({"effort": 0}, "effort is a whole number, at least 1, not 0"),
        ({"mode": "fast"}, "mode is one of auto, exact, approximate"),
        ({"guard": "wall"}, "guard is one of none, segment, window"),
        ({"guard": "window", "metric": "cosine"}, "a guard belongs to vlscore, not to cosine"),
        ({"metric": "refclipscore"}, "no oracle searches by refclipscore"),
        ({"metric": "vlscore(C=-1)"}, "C must be greater than 0"),
        ({"metric": "image-to-text(k=1)"}, "image-to-text has no parameters"),
        ({"metric": "text-to-image", "exclude_exact": True}, "only reports equal a reference"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(InvalidSetting) as refused:
        OracleSettings(**settings)
    assert message in str(refused.value)


def test_one_vocabulary_in_every_spelling():
    for written, name in (
        ("VLScore", "vlscore"),
        ("vlscore(C=20)", "vlscore(C=20)"),
        ("Image_Centred cosine", "image-centred-cosine"),
        ("text to text", "cosine"),
        ("BLEU_4( smoothing=exp )", "bleu-4(smoothing=exp)"),
        ("text_to_image", "text-to-image"),
    ):
        found = OracleSettings(metric=written)
        assert found.target.name == name
        assert OracleSettings(metric=name).target == found.target
    with pytest.raises(UnknownName, match=r"called 'clipscor'; did you mean clipscore"):
        OracleSettings(metric="clipscor")


def test_a_metric_of_ones_own_is_taken_as_an_object():
    @text_metric("length", "characters")
    def length(candidate, reference):
        return len(candidate)

    settings = OracleSettings(metric=length, candidates=0)
    assert (settings.target.name, settings.target.metric) == ("length", length)
    assert not settings.uses_encoder
    with pytest.raises(InvalidSetting, match="not a function"):
        OracleSettings(metric=lambda candidate, reference: 0.0)
