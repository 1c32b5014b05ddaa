"""Help of every command on a terminal of 80 columns; what commands share, they spell alike."""

import itertools
import re
import resource
import shlex
import subprocess
import sys
from functools import cache

import pytest
from cyclopts import CycloptsError

from tests.command import run_command
from vlscore.cli.app import COMMANDS, app, commands

NAMES = sorted(commands())
# Commands that make a folder of results.
LONGEST = {"align": 94, "compare": 96, "train": 112}
# name, metavar and explanation of each option.
OPTION = re.compile(r"^  (?:(-\w), )?(--[\w-]+)(?: ([A-Z|.]+))?(?:  +|\n +)(\S.*)$", re.MULTILINE)


@cache
def help_of(name, columns=80):
    done = run_command(*name.split(), "--help", columns=columns)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_help_fits_on_two_screens_of_80_columns():
    lines = {name: help_of(name).splitlines() for name in NAMES}
    assert {n: len(own) for n, own in lines.items() if len(own) > LONGEST.get(n, 90)} == {}
    assert [line for own in lines.values() for line in own if len(line) > 80] == []


def test_every_option_is_explained_and_none_is_cut():
    wrong = {}
    for name, columns in itertools.product(NAMES, (60, 200)):
        shown = help_of(name, columns)
        sections = re.split(r"^[A-Z][\w ]+:$", shown, flags=re.MULTILINE)[1:]
        listed = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", "".join(sections), re.MULTILINE))
        explained = {option for _, option, _, text in OPTION.findall(shown) if text[0].isalpha()}
        # Nothing is left to the name alone, and no flag is a value.
        cut = [word for word in ("…", "default: False", "BOOL") if word in shown]
        if found := sorted(listed ^ explained) + cut:
            wrong[name, columns] = found
    assert wrong == {}


def test_every_parameter_of_a_command_is_in_its_help():
    """An option that no group lists would still be taken."""
    hidden = [
        (name, each.name)
        for name in NAMES
        for each in commands()[name].assemble_argument_collection()
        if each.show and each.names and each.name.lower() not in help_of(name).lower()
    ]
    assert hidden == []


def test_the_list_of_commands_says_what_their_own_help_says():
    listed = {name: text for each in COMMANDS.values() for name, text in each.items()}
    own = {name: " ".join(help_of(name).split("\n\n")[1].split()) for name in listed}
    assert own == listed
    assert [text for text in own.values() if not re.fullmatch(r"[A-Z][^.]+\.", text)] == []


def test_commands_stand_in_groups_of_their_purpose():
    text = help_of("")
    groups = re.findall(r"^([A-Z][\w ]+):\n((?:  .+\n?)+)", text, re.MULTILINE)
    listed = {title: re.findall(r"^  ([a-z-]+)  +(.+)$", body, re.M) for title, body in groups}
    assert [name for name, _ in listed.pop("Options")] == ["--install-completion", "--version"]
    assert listed == {title: list(each.items()) for title, each in COMMANDS.items()}


def test_the_help_lists_no_module_that_is_not_asked_for():
    """The list of commands imports none of them."""
    program = (
        "import sys\nfrom vlscore.cli import command_line\ncommand_line(['--help'])\n"
        "print([m for m in sys.modules if m.startswith('vlscore.cli.')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = set(re.findall(r"vlscore\.cli\.(\w+)", done.stderr))
    assert loaded == {"app", "help_page", "output", "shared"}


def test_examples_can_be_parsed():
    """Every line of help that begins with an example is a command that there is."""
    wrong = {}
    for name in NAMES:
        text = "\n".join(" ".join(each.split()) for each in help_of(name).split("\n\n"))
        for example in re.findall(r"^(?!Usage)[A-Z][^:]+: (vlscore .+)$", text, re.M):
            try:
                app.parse_args(shlex.split(example)[1:], exit_on_error=False, print_error=False)
            except CycloptsError as error:
                wrong[example] = str(error)
    assert wrong == {}


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
    listed = [found[1] for line in lines if (found := re.match(r"  (\S+) +[↑↓–]", line))]
    assert sorted(listed) == sorted(METRICS)
    # What is said of each stands in one column.
    rows = [line for line in lines if re.match(r"  \S+ +[↑↓–]", line)]
    assert {re.search("[↑↓–]", line).start() for line in rows} == {23}
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("metrics rogue-l", "did you mean rouge-l"),
        ("evalute", 'Did you mean "evaluate"?'),
        ("evaluate x.csv -o y --keepgoing", "Unknown option: --keepgoing. Did you mean --keep-"),
        ("evaluate x.csv", "--out"),
        ("evaluate x.csv -o y --batch-size x", "--batch-size"),
        ("evaluate x.csv -o y --engine dask", '"local", "ray"'),
        ("evaluate x.csv -o y --rename id=a,findings=b", "reads no column 'findings'"),
        ("evaluate x.csv -o y --rename study=id", "Write it the other way round: id=study"),
        ("evaluate x.csv -o y --rename id", "write --rename id=study_id"),
        ("compare x.csv -o y --resamples 5", "resamples is a whole number, at least 10, not 5"),
    ],
)
def test_a_slip_is_one_line_and_status_2(command, words, said):
    done = command(*words.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.fullmatch(r"error: .+\n", done.stderr)
    assert said in done.stderr


def test_names_have_commas_and_may_be_repeated(command, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,reference,candidate\na,No edema.,No edema.\n")
    metrics = ("-m", "bleu-4(smoothing=exp,tokens=cxr),rouge-l", "--metrics", "bleu-1")
    done = command("evaluate", table, "-o", tmp_path / "out", *metrics)
    assert done.exit_code == 0, done.output
    for name in ("bleu-4(smoothing=exp,tokens=cxr)", "rouge-l", "bleu-1"):
        assert name in done.stdout


def test_a_report_may_begin_with_a_hyphen(command):
    done = command("score", "-m", "rouge-l", "-g", "- No edema.", "-r", "--No edema.")
    assert done.exit_code == 0, done.output


def _seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
