"""`vlscore sensitivity` from the command line."""

import json
import re

import pytest
from typer.testing import CliRunner

from tests.evaluation.samples import results_of
from tests.evaluation.sensitivities.samples import make_pairs, write_pairs, write_studies
from vlscore.cli.command_line import app
from vlscore.cli.output import SCREEN
from vlscore.errors import InvalidSetting, InvalidTable


@pytest.fixture
def perturbed(tmp_path):
    return write_pairs(tmp_path / "perturbed", make_pairs())


@pytest.fixture
def studies(tmp_path):
    return write_studies(tmp_path)


def _run(*arguments, columns="60"):
    arguments = ["sensitivity", *map(str, arguments), "--resamples", "50"]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": columns})


def test_texts_alone(perturbed, tmp_path):
    out = tmp_path / "out"
    done = _run("-p", perturbed, "-o", out, "--metrics", "bleu-1,rouge-l")
    assert done.exit_code == 0, done.output
    for shown in ("Mean drop by kind", "Table 2", "BLEU-1", "ROUGE-L"):
        assert shown in done.output
    assert done.stdout.count("\n") <= SCREEN + 2
    content = json.loads((out / "sensitivity.json").read_text(encoding="utf-8"))
    assert [metric["name"] for metric in content["metrics"]] == ["bleu-1", "rouge-l"]
    assert content["swaps"] == []
    tables = (out / "tables.md").read_text(encoding="utf-8")
    numbers = re.findall(r"-?\d\.\d{3} \[-?\d\.\d{3}, -?\d\.\d{3}\]", tables)
    assert len(numbers) > 30
    for shown in ("Table 2", "Table 3", "Standard normal report", "rouge-score:"):
        assert shown in tables
    # However narrow the terminal, no number is cut; and no line is longer than 80.
    printed = set(re.findall(r"-?\d\.\d{3} \[-?\d\.\d{3}, -?\d\.\d{3}\]", done.stdout))
    assert printed
    assert printed <= set(numbers)
    lines = [line for line in done.stdout.splitlines() if str(out) not in line]
    assert max(map(len, lines)) <= 80
    assert all(metric["signature"] in tables for metric in content["metrics"])
    # The table with the rest is named.
    assert f"the signatures: {out / 'tables.md'}" in done.stdout


@pytest.mark.usefixtures("hash_encoder")
def test_images_and_their_swap(perturbed, studies, tmp_path):
    options = ("--studies", studies, "--swap-images", "--metrics", "vlscore,cosine")
    done = _run("-p", perturbed, "-o", tmp_path / "out", *options)
    assert done.exit_code == 0, done.output
    assert "Does the image count?" in done.output
    content = json.loads((tmp_path / "out" / "sensitivity.json").read_text(encoding="utf-8"))
    assert [(swap["metric"], swap["image"]) for swap in content["swaps"]] == [
        ("vlscore", "other study"),
        ("vlscore", "black"),
        ("cosine", "other study"),
        ("cosine", "black"),
    ]


@pytest.mark.usefixtures("hash_encoder")
def test_an_unreadable_image_is_named_and_the_status_tells(perturbed, studies, tmp_path):
    (tmp_path / "3.png").write_bytes(b"no image")
    run = ("-p", perturbed, "-o", tmp_path / "out", "--studies", studies, "--metrics", "vlscore")
    done = _run(*run)
    assert done.exit_code == 1
    assert "3.png" in done.stderr
    again = _run(*run, "--keep-going")
    assert again.exit_code == 0
    assert "nothing was computed" in again.stderr


@pytest.mark.usefixtures("hash_encoder")
def test_ctrl_c_says_what_is_true(perturbed, studies, tmp_path, monkeypatch):
    from vlscore.evaluation.sensitivities import run

    run_once = ("-p", perturbed, "--studies", studies, "--metrics", "vlscore")
    with monkeypatch.context() as patch:
        patch.setattr(run, "write_values", _interrupt)
        done = _run(*run_once, "-o", tmp_path / "out")
    assert done.exit_code == 130
    assert "The same command resumes" in done.stderr
    again = _run(*run_once, "-o", tmp_path / "out")
    # The images of the studies were embedded before.
    assert re.search(r"resumed after row [1-9]", again.stderr)


def _interrupt(*_):
    raise KeyboardInterrupt


def test_the_section_is_that_of_every_metric(tmp_path):
    pairs = [
        pair.__class__(
            **{
                **vars(pair),
                "original": "FINDINGS: clear.\nIMPRESSION: effusion.",
                "perturbed": "FINDINGS: clear.\nIMPRESSION: no effusion.",
            }
        )
        for pair in make_pairs()
    ]
    folder = write_pairs(tmp_path / "headed", pairs)
    run = ("-p", folder, "--metrics", "bleu-1,rouge-l", "--json", "--section", "findings")
    content = json.loads(_run(*run, "-o", tmp_path / "out").stdout)
    for metric in content["metrics"]:
        assert {kind["drop"]["estimate"] for kind in metric["kinds"]} == {0.0}
        assert "|txt:findings" in metric["signature"]


def test_json_and_quiet(perturbed, tmp_path):
    run = ("-p", perturbed, "-o", tmp_path / "out", "--metrics", "bleu-1")
    done = _run(*run, "--json")
    file = (tmp_path / "out" / "sensitivity.json").read_text(encoding="utf-8")
    assert json.loads(done.stdout) == json.loads(file)
    assert _run(*run, "--quiet").stdout == ""


def test_metrics_that_cannot_run_are_named_with_the_option_that_helps(perturbed, tmp_path):
    done = _run("-p", perturbed, "-o", tmp_path / "out", "--quiet")
    assert done.exit_code == 0
    grouped = r"  vlscore, cosine, .* more: it needs embeddings, but there is no encoder"
    assert re.search(grouped, done.stderr)
    assert done.stderr.count("no encoder") == 1
    asked = _run("-p", perturbed, "-o", tmp_path / "other", "--metrics", "vlscore")
    assert isinstance(asked.exception, InvalidSetting)
    assert "(--studies)" in str(asked.exception)
    assert "(--encoder)" in str(asked.exception)


def test_slips_are_errors_of_ours(perturbed, studies, tmp_path):
    out = tmp_path / "out"
    for options, kind, message in (
        (("-p", perturbed, "--swap-images"), InvalidSetting, "--studies"),
        (("-p", tmp_path / "absent"), InvalidTable, "vlscore perturb"),
        (("-p", perturbed, "--studies", studies, "--image-column", "x"), InvalidTable, "x"),
        (("-p", perturbed, "--figure", "bmp"), InvalidSetting, "png, svg, pdf"),
        (("-p", perturbed, "--metrics", "bleu-1", "--section", "x"), InvalidSetting, "section"),
    ):
        done = _run(*options, "-o", out)
        assert isinstance(done.exception, kind), done.output
        assert message in str(done.exception)
        assert not out.exists()


def test_a_folder_of_other_settings_is_refused_and_overwritten_on_demand(perturbed, tmp_path):
    run = ("-p", perturbed, "-o", tmp_path / "out", "--quiet", "--metrics")
    _run(*run, "bleu-1")
    before = results_of(tmp_path / "out")
    refused = _run(*run, "rouge-l")
    assert "--overwrite" in str(refused.exception)
    assert results_of(tmp_path / "out") == before
    assert _run(*run, "rouge-l", "--overwrite").exit_code == 0
    assert results_of(tmp_path / "out") != before
