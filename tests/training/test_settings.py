"""Settings: checked once, written and read again."""

from itertools import pairwise

import pytest

from vlscore.errors import InvalidSetting
from vlscore.training import TrainingSettings, read_config
from vlscore.training.settings import write_config


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("epochs", 0),
        ("batch_size", 1),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("weight_decay", -1.0),
        ("warm_up", 1.0),
        ("clip", float("inf")),
        ("precision", "fp16"),
        ("sentences", "some"),
        ("validation_share", 1.0),
        ("select", "first"),
        ("patience", -1),
        ("seed", 1.5),
    ],
)
def test_a_value_that_cannot_be_is_named(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        TrainingSettings(**{setting: value})


def test_the_rate_rises_and_falls_to_nothing():
    settings = TrainingSettings(learning_rate=2.0, warm_up=0.1)
    rates = [settings.rate_at(step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([0.2 * k for k in range(1, 11)])
    assert rates[10] == 2.0
    assert all(one > other for one, other in pairwise(rates[10:]))
    assert rates[55] == pytest.approx(1.0)
    assert rates[-1] < 0.001
    assert TrainingSettings(warm_up=0.0, learning_rate=1.0).rate_at(0, 1) == 1.0


def test_a_config_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "training.toml"
    values = {"batch_size": 8, "clip": 0.5, "encoder": 'a "b"\\ü', "keep": True, "none": None}
    write_config(path, values)
    del values["none"]
    assert read_config(path, list(values)) == values
