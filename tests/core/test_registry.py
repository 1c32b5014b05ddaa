"""Finding members of a family by name."""

import sys
from importlib.metadata import EntryPoint

import pytest

from vlscore.core import Registry, plain_name, split_call, split_names
from vlscore.errors import InvalidSetting, UnknownName, VLScoreError


class Tool:
    def __init__(self, name: str) -> None:
        self.name = name


HAMMER = Tool("hammer")


def _check(member: object) -> None:
    if not isinstance(member, Tool):
        raise InvalidSetting(f"a {type(member).__name__} is no tool")


@pytest.fixture
def tools():
    registry = Registry[Tool]("tool", group="vlscore.tests.nothing", check=_check)
    registry.register(HAMMER, aliases=("mallet",))
    registry.register(f"{__name__}:HAMMER", "late-hammer")
    return registry


@pytest.mark.parametrize("written", ["hammer", "Hammer", " HAMMER ", "mallet", "late_hammer"])
def test_names_are_found_in_any_spelling(tools, written):
    assert tools.find(written) is HAMMER


def test_an_object_is_itself_and_others_are_refused(tools):
    own = Tool("own")
    assert tools.find(own) is own
    with pytest.raises(InvalidSetting, match="int is no tool"):
        tools.find(3)
    with pytest.raises(InvalidSetting, match="str is no tool"):
        tools.find(f"{__name__}:__name__")


def test_a_members_place_in_a_module_finds_it_without_registering(tools):
    assert tools.find(f"{__name__}:HAMMER") is HAMMER
    with pytest.raises(UnknownName, match="cannot be imported"):
        tools.find("no_such_module:thing")
    with pytest.raises(UnknownName, match="cannot be imported"):
        tools.find(f"{__name__}:NOTHING")


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('no driver')",
        "def broken(:",
        "raise OSError('no file')",
        "from vlscore.errors import MissingDependency\nraise MissingDependency('pip install it')",
        "raise KeyError('x')",
    ],
    ids=["RuntimeError", "SyntaxError", "OSError", "MissingDependency", "KeyError"],
)
def test_a_module_that_cannot_be_imported_for_any_reason_leaves_the_others(
    tools, tmp_path, monkeypatch, code
):
    (tmp_path / "broken_tools.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_tools", raising=False)
    tools.register("broken_tools:SAW", "saw")
    with pytest.warns(UserWarning, match="tool saw is left out"):
        found = tools.items()
    assert found == [("hammer", HAMMER), ("late-hammer", HAMMER)]
    with pytest.raises(VLScoreError, match=r"cannot be imported|pip install it"):
        tools.find("saw")


def test_an_unknown_name_gets_the_names_or_the_command_that_lists_them(tools):
    with pytest.raises(UnknownName, match="called 'saw'; Known: hammer, late-hammer"):
        tools.find("saw")
    listed = Registry[Tool]("tool", listed_by="shop tools")
    listed.register(HAMMER)
    with pytest.raises(UnknownName, match=r"called 'hamer'; did you mean hammer\? `shop tools`"):
        listed.find("hamer")
    assert listed.similar_to("ham") == ["hammer"]
    assert listed.similar_to("saw") == []


def test_entry_points_add_members_but_replace_none(tools, monkeypatch):
    class Point:
        def __init__(self, name: str, value: str) -> None:
            self.name, self.value = name, value

    def points(group: str) -> list[Point]:
        assert group == "vlscore.tests.nothing"
        return [Point("theirs", f"{__name__}:HAMMER"), Point("Hammer", "no_such_module:thing")]

    monkeypatch.setattr("importlib.metadata.entry_points", points)
    assert tools.find("theirs") is HAMMER
    assert tools.find("hammer") is HAMMER
    assert tools.names()[-1] == "theirs"


def test_parameters_are_written_in_parentheses():
    assert split_call("rouge-l( beta = 1.2 , stemming=true)") == (
        "rouge-l",
        {"beta": "1.2", "stemming": "true"},
    )
    for wrong in ("", "a(b", "a(b)", ")("):
        with pytest.raises(InvalidSetting):
            split_call(wrong)
    assert split_names("a, b(c=1,d=2),,e") == ["a", "b(c=1,d=2)", "e"]
    assert plain_name("BLEU 4") == "bleu-4"


def test_a_broken_package_of_a_users_leaves_the_others(monkeypatch):
    points = [
        EntryPoint("absent", "no_such_package:MEMBER", "vlscore.test"),
        EntryPoint("wrong", "math:tau", "vlscore.test"),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)

    def only_whole(member):
        if not isinstance(member, int):
            raise InvalidSetting("a fruit is a whole number")

    fruits = Registry("fruit", group="vlscore.test", check=only_whole)
    fruits.register(1, "apple")
    with pytest.warns(UserWarning, match="is left out") as caught:
        assert fruits.items() == [("apple", 1)]
    assert [str(warning.message).split(":")[0] for warning in caught] == [
        "fruit absent is left out",
        "fruit wrong is left out",
    ]
    assert fruits.names() == ["apple", "absent", "wrong"]
    with pytest.raises(UnknownName, match="cannot be imported"):
        fruits.find("absent")
