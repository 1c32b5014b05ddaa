"""Help of every command on a terminal of 80 columns; what commands share, they spell alike."""

import re
import resource
import subprocess
import sys
from functools import cache
from itertools import pairwise

import pytest
import typer
from typer.testing import CliRunner

from vlscore.cli.command_line import app

ROOT = typer.main.get_command(app)


def _commands(group, names=()):
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from _commands(command, (*names, name))
        else:
            yield (*names, name), command


COMMANDS = dict(_commands(ROOT))
# Longer help than a screen and a half of 40 lines.
LONG = {("align",): 66, ("baseline",): 70, ("compare",): 82, ("oracle",): 74, ("train",): 90}
# Commands that make a folder of results.
WRITERS = [("evaluate",), ("sensitivity",), ("perturb",), ("oracle",), ("retrieval",)]


@cache
def help_of(names, columns="80"):
    done = CliRunner().invoke(app, [*names, "--help"], env={"COLUMNS": columns})
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(params=sorted(COMMANDS), ids=" ".join)
def names(request):
    return request.param


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_no_option_name_or_value_is_cut(names, columns):
    shown = help_of(names, columns)
    assert "…" not in shown
    for parameter in COMMANDS[names].params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-") and not parameter.hidden:
                assert re.search(rf"(^|[\s,]){re.escape(option)}([\s,]|$)", shown, re.MULTILINE)


def test_a_screen_and_a_half_is_enough_and_every_option_is_explained_on_demand(names):
    """Options that are only named have their explanation in --help-all."""
    shown = help_of(names)
    assert shown.count("\n") <= LONG.get(names, 60)
    every = CliRunner().invoke(app, [*names, "--help-all"], env={"COLUMNS": "80"}).stdout
    text = " ".join(every.split())
    for parameter in COMMANDS[names].params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            # Words are hyphenated at ends of lines.
            start = "".join(parameter.help.split())[:40]
            assert start in text.replace(" ", ""), (names, parameter.name)
    if len(every) > len(shown):
        assert "--help-all explains every option" in shown


def test_80_columns_are_enough(names):
    assert max(map(len, help_of(names).splitlines())) <= 80


def test_commands_stand_in_groups_of_their_purpose():
    text = help_of(())
    groups = re.findall(r"^([A-Z][\w ]+):\n((?:  .+\n?)+)", text, re.MULTILINE)
    commands = {name: re.findall(r"^  ([a-z-]+)  +(.+)$", body, re.M) for name, body in groups}
    assert list(commands) == [
        "Options",
        "Score reports",
        "Compare systems",
        "Judge metrics",
        "Train and prepare",
        "Look up",
    ]
    del commands["Options"]
    listed = [name for group in commands.values() for name, _ in group]
    assert sorted(listed) == sorted(
        {names[0] for names, command in COMMANDS.items() if not command.hidden}
    )
    # A whole sentence each, in one line.
    for _, sentence in (row for group in commands.values() for row in group):
        assert re.fullmatch(r"[A-Z][^.]+\.", sentence), sentence


def test_no_paragraph_is_wrapped_twice(names):
    """Docstrings are wrapped at 100 columns; at 80 no line may be a stub of the one above."""
    shown = help_of(names).split("\n\n")
    prose = [block for block in shown if block.startswith("  ") and "--" not in block]
    for block in prose:
        lines = block.splitlines()
        for line, following in pairwise(lines):
            first_word = following.split()[0]
            assert len(line) + 1 + len(first_word) > 70, block


def test_booleans_are_no_values(names):
    shown = help_of(names)
    assert "<bool>" not in shown
    assert "default: no-" not in shown
    assert "default: False" not in shown


def test_every_option_is_described(names):
    for parameter in COMMANDS[names].params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            assert parameter.help, (names, parameter.name)


@pytest.mark.parametrize("names", [("evaluate",), ("sensitivity",), ("score",)], ids=" ".join)
def test_options_stand_in_groups(names):
    shown = help_of(names)
    headings = re.findall(r"^(\w[\w ]+):$", shown, re.MULTILINE)
    expected = ["Options", "Table", "Encoder", "Images and reports", "Results"]
    if names == ("score",):
        expected.remove("Table")
    if names == ("evaluate",):
        expected = ["Arguments", *expected]
    assert sorted(headings) == sorted(expected)
    assert headings[: headings.index("Options") + 1] == expected[: expected.index("Options") + 1]


def test_a_short_name_means_the_same_in_every_command():
    long_of: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            longs = [option for option in parameter.opts if option.startswith("--")]
            for short in parameter.opts:
                if longs and not short.startswith("--"):
                    long_of.setdefault(short, set()).add(longs[0])
    assert long_of["-o"] == {"--out"}
    assert long_of["-e"] == {"--encoder"}
    assert long_of["-q"] == {"--quiet"}
    # One metric, or several.
    assert long_of["-m"] == {"--metric", "--metrics"}


@pytest.mark.parametrize("names", WRITERS, ids=" ".join)
def test_commands_that_write_a_folder_share_its_options(names):
    options = {option for parameter in COMMANDS[names].params for option in parameter.opts}
    assert {"--out", "-o", "--overwrite", "--keep-going"} <= options
    out = next(p for p in COMMANDS[names].params if "--out" in p.opts)
    assert out.metavar == "FOLDER"


def test_help_and_lists_answer_at_once():
    for arguments in (("--help",), ("evaluate", "--help"), ("metrics",), ("metrics", "bleu-4")):
        seconds = []
        for _ in range(3):
            before = _seconds_of_children()
            done = subprocess.run(
                [sys.executable, "-X", "importtime", "-m", "vlscore", *arguments],
                capture_output=True,
                text=True,
                check=True,
            )
            seconds.append(_seconds_of_children() - before)
            loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
            assert not {"torch", "nltk", "sacrebleu", "scipy", "pyarrow"} & loaded
            assert "numpy" not in loaded or arguments[0] == "metrics"
            if seconds[-1] < 1:
                break
        # Of the processor, half a second on a quiet machine: beside other work a clock shows more.
        assert min(seconds) < 2


def test_metrics_lists_every_metric_within_80_columns(command):
    from vlscore.metrics import METRICS

    done = command("metrics")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    listed = [found[1] for line in lines if (found := re.match(r"  (\S+) +[↑↓]", line))]
    assert sorted(listed) == sorted(METRICS)
    text = " ".join(done.stdout.split())
    for metric in METRICS.values():
        assert metric.description.partition(";")[0] in text


def test_one_metric_is_shown_with_everything_that_can_be_set(command):
    shown = command("metrics", "BLEU_4(smoothing=exp)").stdout
    assert shown.startswith("bleu-4(smoothing=exp)\n")
    known = (
        "smoothing: ",
        "none, exp, add-k, floor",
        "corpus corpus: ",
        "Papineni",
        "| tokens:13a",
    )
    for part in known:
        assert part in shown
    assert max(map(len, shown.splitlines())) <= 80
    own = command("metrics", "tests.metrics.own:COMPOSITE").stdout
    assert "from BLEU_1, rouge-l, length-ratio" in " ".join(own.split())
    lower = command("metrics", "bounding-sphere").stdout
    assert "lower is better" in lower


def test_an_unknown_metric_is_suggested(command):
    done = command("metrics", "rogue-l")
    assert "did you mean rouge-l" in str(done.exception)


def test_an_unknown_option_or_command_is_status_2(command):
    assert command("evaluate", "x.csv", "--nonsense").exit_code == 2
    mistyped = command("evalute")
    assert mistyped.exit_code == 2
    assert "Did you mean 'evaluate'?" in mistyped.stderr


def _seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
