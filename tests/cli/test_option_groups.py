"""Groups of options: each field is an option, and the command receives the group."""

import dataclasses
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from vlscore.cli.command_line import app as commands
from vlscore.cli.option_groups import grouped
from vlscore.core import check_settings, described, setting, setting_of, settings_in
from vlscore.errors import InvalidSetting
from vlscore.evaluation import BaselineSettings, ComparisonSettings, TableSettings
from vlscore.findings import LabelPolicy
from vlscore.perturb import PerturbationSettings
from vlscore.retrieval import OracleSettings, SourceSettings
from vlscore.training import TrainingSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Size:
    width: Annotated[int, typer.Option("--width", min=1, help="Columns.")]
    height: Annotated[int, typer.Option("--height", help="Rows.")] = 3
    names: Annotated[list[str] | None, typer.Option("--name", help="Names.")] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Square(_Size):
    height: Annotated[int, typer.Option("--height", help="Rows of a square.")] = 5


def run(command, *arguments):
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command)
    return CliRunner().invoke(app, arguments)


def test_a_command_receives_the_group():
    received = []

    @grouped()
    def command(*, text: Annotated[str, typer.Argument()], size: _Size, last: int = 7) -> None:
        received.append((text, size, last))

    done = run(command, "a", "--width", "4", "--name", "x", "--name", "y", "--last", "8")
    assert done.exit_code == 0, done.output
    assert received == [("a", _Size(width=4, height=3, names=["x", "y"]), 8)]


def test_a_field_without_a_default_is_a_required_option():
    @grouped()
    def command(*, size: _Size) -> None:
        pass

    done = run(command)
    assert done.exit_code == 2
    assert "Missing option '--width'" in done.stderr
    assert run(command, "--width", "0").exit_code == 2


def test_an_option_that_is_left_out_has_its_default():
    received = []

    @grouped("height")
    def command(*, size: _Size) -> None:
        received.append(size)

    assert run(command, "--width", "4", "--height", "9").exit_code == 2
    assert run(command, "--width", "4").exit_code == 0
    assert received == [_Size(width=4, height=3)]


def test_a_group_that_extends_another_keeps_the_order_and_changes_a_default():
    received = []

    @grouped()
    def command(*, size: _Square) -> None:
        received.append(size)

    assert run(command, "--width", "4").exit_code == 0
    assert received == [_Square(width=4, height=5)]
    shown = run(command, "--help").stdout
    assert shown.index("--width") < shown.index("--height") < shown.index("--name")
    assert "Rows of a square." in shown


def test_a_name_that_no_group_has_is_refused():
    with pytest.raises(TypeError, match="no group has depth"):

        @grouped("depth")
        def command(*, size: _Size) -> None:
            pass


def test_two_options_of_one_name_are_refused():
    with pytest.raises(TypeError, match="width is there twice"):

        @grouped()
        def command(*, width: int, size: _Size) -> None:
            pass


@described
@dataclasses.dataclass(frozen=True)
class _Shape:
    """Shape of a picture."""

    sides: int = setting(4, "Number of sides.", "N", more="A circle has none.", least=3)
    colour: str = setting("red", "red or blue.", "NAME", choices=("red", "blue"))


def test_a_field_with_a_description_is_an_option_a_check_and_documentation():
    received = []

    @grouped()
    def command(*, shape: _Shape) -> None:
        received.append(shape)

    assert run(command, "--sides", "5").exit_code == 0
    assert received == [_Shape(5, "red")]
    assert run(command, "--sides", "2").exit_code == 2
    shown = run(command, "--help").stdout
    assert "Number of sides.  [default: 4; x>=3]" in shown
    assert "A circle" not in shown
    assert "sides: Number of sides. A circle has none." in (_Shape.__doc__ or "")
    for wrong in (_Shape(2), _Shape(3.5), _Shape(colour="green")):
        with pytest.raises(InvalidSetting, match=r"sides is a whole number|colour is one of red"):
            check_settings(wrong)


@described
@dataclasses.dataclass(frozen=True)
class _Words:
    """Words of a text."""

    words: tuple[str, ...] = setting(("a", "b"), "Words.", "NAMES")
    others: tuple[str, ...] | None = setting(None, "Other words.", "NAMES")
    weight: object = setting(1.5, "A number, or an object of Python.", "NUMBER", typed=float)
    only_python: object = None


def test_names_have_commas_and_a_field_without_a_description_is_no_option():
    received = []

    @grouped()
    def command(*, chosen: _Words) -> None:
        received.append(chosen)

    assert run(command).exit_code == 0
    assert run(command, "--words", "x, f(1,2),", "--others", "y", "--weight", "2").exit_code == 0
    assert received == [_Words(), _Words(("x", "f(1,2)"), ("y",), 2.0)]
    assert run(command, "--only-python", "x").exit_code == 2
    assert "[default: a,b]" in run(command, "--help").stdout


def test_settings_are_found_among_the_arguments_of_a_function():
    def sized(colour="red", *, sides=5, other=1):
        return settings_in(_Shape, locals())

    assert sized() == _Shape(5, "red")
    assert sized("blue", sides=3) == _Shape(3, "blue")


def test_an_option_follows_the_one_that_the_command_names():
    @grouped(after={"last": "width"})
    def command(
        *, size: _Size, last: Annotated[int, typer.Option("--last", help="Last.")] = 7
    ) -> None:
        pass

    shown = run(command, "--help").stdout
    assert shown.index("--width") < shown.index("--last") < shown.index("--height")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("train", TrainingSettings),
        ("findings", LabelPolicy),
        ("baseline", BaselineSettings),
        ("compare", ComparisonSettings),
        ("compare", TableSettings),
        ("oracle", OracleSettings),
        ("index build", SourceSettings),
        ("perturb", PerturbationSettings),
    ],
)
def test_a_setting_of_the_library_is_described_once(name, settings):
    """The option of the command line and the documentation say what the field says."""
    command = typer.main.get_command(commands)
    for part in name.split():
        command = command.commands[part]  # type: ignore[attr-defined]
    options = {option.name: option for option in command.params}
    documented = " ".join((settings.__doc__ or "").split())
    # Another option sets a field without a description, or none does.
    described = [field for field in dataclasses.fields(settings) if setting_of(field) is not None]
    assert described
    for field in described:
        found, default = setting_of(field), field.default
        assert found is not None
        assert options[field.name].help == found.help
        written = ",".join(default) if isinstance(default, tuple) else default
        assert options[field.name].default == written
        assert f"{field.name}: {found.help} {found.more}".strip() in documented
