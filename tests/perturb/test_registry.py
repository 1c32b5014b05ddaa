"""Kinds by name in any spelling, as objects, by place, by entry point; the check of users' own."""

import sys

import pytest

from vlscore.errors import InvalidSetting
from vlscore.perturb import (
    KINDS,
    Change,
    Edit,
    Expected,
    Kind,
    PerturbationSettings,
    kinds_named,
    perturb,
    perturb_report,
)
from vlscore.perturb.kinds.rewordings import Paraphrase

MODULE = """
from vlscore.perturb import Change, Edit, Expected, Kind


class Shout(Kind):
    name = "shout"
    description = "Say it loud."
    expected = Expected.INSIGNIFICANT
    nothing = "there is no period"

    def changes(self, source, chance):
        if source.text.endswith("."):
            last = len(source.text) - 1
            yield Change((Edit(last, last + 1, "!"),), "shout")


NO_KIND = 3
"""


class Own(Kind):
    name = "own"
    description = "Doubt it."
    expected = Expected.INSIGNIFICANT
    nothing = "there is no period"

    def changes(self, source, chance):
        if source.text.endswith("."):
            last = len(source.text) - 1
            yield Change((Edit(last, last + 1, "?"),), "own")


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "loud_kinds.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "loud_kinds"
    sys.modules.pop("loud_kinds", None)


def test_any_spelling_finds_a_kind():
    for name in ("change-location", "Change_Location", " CHANGE LOCATION "):
        assert [kind.name for kind in kinds_named([name])] == ["change-location"]
    assert KINDS["paraphrase"] is KINDS["Paraphrase"]


@pytest.mark.parametrize("own", [Own, Own(), [Own()], [Own]])
def test_a_kind_is_taken_as_an_object(own):
    assert [p.perturbed for p in perturb_report("Mild edema.", own)] == ["Mild edema?"]


def test_a_kind_is_taken_by_its_place(module, tmp_path):
    (made,) = perturb_report("Mild edema.", [f"{module}:Shout"])
    assert (made.kind, made.perturbed) == ("shout", "Mild edema!")
    table = tmp_path / "t.jsonl"
    table.write_text('{"id": "a", "report": "Mild edema."}\n')
    counts = perturb(
        table, tmp_path / "out", PerturbationSettings(kinds=[f"{module}:Shout", "paraphrase"])
    ).counts
    assert counts == {"paraphrase": 0, "shout": 1}


@pytest.mark.parametrize("wrong", [3, None, int, "loud_kinds:NO_KIND"])
def test_what_is_no_kind_is_refused(module, wrong):
    with pytest.raises(InvalidSetting, match="not a kind of perturbation"):
        kinds_named([wrong])


def test_two_kinds_of_one_name_are_refused():
    class Other(Own):
        pass

    class Usurper(Own):
        name = "paraphrase"

    with pytest.raises(InvalidSetting, match="two kinds of perturbation are called 'own'"):
        kinds_named([Own(), Other()])
    with pytest.raises(InvalidSetting, match="two kinds of perturbation are called 'paraphrase'"):
        kinds_named([Usurper()])
    assert [kind.name for kind in kinds_named([Paraphrase()])] == ["paraphrase"]
