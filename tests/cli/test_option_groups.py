"""Groups of options: each field is an option, and the command receives the group."""

import dataclasses
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from vlscore.cli.option_groups import grouped


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
