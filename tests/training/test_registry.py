"""Finding an objective by name, with its settings."""

import pytest

from vlscore.errors import InvalidSetting, UnknownName
from vlscore.training.objectives.contrastive import Convirt
from vlscore.training.registry import find_objective


def test_settings_are_written_behind_the_name():
    written = find_objective("convirt(temperature=0.07, image_weight=1)", dim=4)
    assert (written.temperature, written.image_weight) == (0.07, 1.0)


def test_one_of_the_users_own():
    found = find_objective("vlscore.training.objectives.contrastive:Convirt", dim=4)
    assert isinstance(found, Convirt)
    with pytest.raises(InvalidSetting, match="is no objective"):
        find_objective("vlscore.training.registry:find_objective", dim=4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("convirt(tau=0.1)", "has no setting 'tau'; it has temperature, image_weight"),
        ("siglip(dim=3)", "has no setting 'dim'; it has scale, bias"),
        ("convirt(temperature=warm)", "temperature is a number, not 'warm'"),
        ("convirt(temperature=0)", "temperature must be above 0, not 0"),
        ("convirt(temperature=nan)", "temperature must be above 0, not nan"),
        ("gloria(local_weight=-1)", "local_weight must be at least 0, not -1"),
    ],
)
def test_wrong_settings(name, message):
    with pytest.raises(InvalidSetting, match=message):
        find_objective(name, dim=4, local_dim=4)


def test_unknown_names():
    with pytest.raises(UnknownName, match="did you mean convirt"):
        find_objective("convert", dim=4)
