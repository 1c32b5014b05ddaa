"""Kinds by name in any spelling, as objects, by place, by entry point; the check of users' own."""

import sys
from importlib.metadata import EntryPoint

import pytest

from vlscore.errors import BrokenContract, InvalidSetting, UnknownName
from vlscore.perturb import (
    KINDS,
    Change,
    Edit,
    Expected,
    Kind,
    kinds_named,
    perturb,
    perturb_report,
)
from vlscore.perturb.kinds.rewordings import Paraphrase
from vlscore.perturb.registry import _check, _Kinds
from vlscore.testing import check_kind

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


def test_what_may_have_been_meant_is_told():
    with pytest.raises(UnknownName, match="did you mean change-severity"):
        kinds_named(["change-severty"])


def test_the_order_is_the_registrys_and_own_kinds_come_last():
    found = kinds_named([Own(), "paraphrase", "remove-pathology", "paraphrase"])
    assert [kind.name for kind in found] == ["remove-pathology", "paraphrase", "own"]
    assert [kind.name for kind in kinds_named(None)] == list(KINDS)


@pytest.mark.parametrize("own", [Own, Own(), [Own()], [Own]])
def test_a_kind_is_taken_as_an_object(own):
    assert [p.perturbed for p in perturb_report("Mild edema.", own)] == ["Mild edema?"]


def test_a_kind_is_taken_by_its_place(module, tmp_path):
    (made,) = perturb_report("Mild edema.", [f"{module}:Shout"])
    assert (made.kind, made.perturbed) == ("shout", "Mild edema!")
    table = tmp_path / "t.jsonl"
    table.write_text('{"id": "a", "report": "Mild edema."}\n')
    counts = perturb(table, tmp_path / "out", [f"{module}:Shout", "paraphrase"]).counts
    assert counts == {"paraphrase": 0, "shout": 1}


def test_the_command_takes_a_kind_by_its_place(module, tmp_path):
    from typer.testing import CliRunner

    from vlscore.cli.command_line import app

    table = tmp_path / "t.jsonl"
    table.write_text('{"id": "a", "report": "Mild edema."}\n')
    arguments = ["perturb", str(table), "--out", str(tmp_path / "o"), "--kinds", f"{module}:Shout"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert '"Mild edema!"' in (tmp_path / "o" / "perturbations.jsonl").read_text()


def test_a_kind_is_taken_by_entry_point(module, monkeypatch):
    point = EntryPoint("very-loud", f"{module}:Shout", "vlscore.kinds")
    monkeypatch.setattr("vlscore.core.registry.entry_points", lambda group: [point])
    registry = _Kinds("kind of perturbation", group="vlscore.kinds", check=_check)
    assert list(registry) == ["very-loud"]
    assert registry["very-loud"].name == "shout"
    assert registry["very-loud"] is registry.find("Very Loud")


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
    with pytest.raises(InvalidSetting, match="registered already"):
        kinds_named([Usurper()])
    assert [kind.name for kind in kinds_named([Paraphrase()])] == ["paraphrase"]


def test_a_kind_that_needs_arguments_or_a_name_is_refused():
    class Needy(Own):
        name = "needy"

        def __init__(self, table):
            self.table = table

    class Nameless(Own):
        name = ""

    with pytest.raises(InvalidSetting, match="Needy must be callable without arguments"):
        kinds_named([Needy])
    with pytest.raises(InvalidSetting, match="has no name"):
        kinds_named([Nameless()])


@pytest.mark.parametrize("name", list(KINDS))
def test_our_kinds_pass_the_public_check(name):
    check_kind(KINDS[name])


def test_the_public_check_lists_all_that_is_wrong():
    class Careless(Own):
        name = "Careless"
        nothing = "nothing."

        def changes(self, source, chance):
            place = source.text.index("small")
            yield Change((Edit(place, place + 5, "enormous"),), "size")

    with pytest.raises(BrokenContract) as caught:
        check_kind(Careless(), ["There is a small effusion.", "Mild edema."])
    told = str(caught.value)
    assert "its name must have the form of" in told
    assert "'a' before a vowel" in told
    assert "ValueError: substring not found (report: 'Mild edema.')" in told


def test_the_public_check_finds_what_is_left_to_luck():
    class Moody(Own):
        count = 0

        def changes(self, source, chance):
            Moody.count += 1
            yield Change((Edit(0, 0, f"{Moody.count} "),), "luck")

    with pytest.raises(BrokenContract, match="in a second run"):
        check_kind(Moody(), ["Mild edema."])
