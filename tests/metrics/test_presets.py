"""Presets: the columns of published tables under one name, with their settings and section."""

import json

import pytest

from tests.command import run_command
from vlscore.data import TextPolicy
from vlscore.metrics import (
    PRESETS,
    Scorer,
    find_metric,
    find_metrics,
    presets_in,
    read_presets,
)


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_of_a_preset_is_one_that_its_metric_has(name):
    preset = PRESETS[name]
    (metrics,) = presets_in(name).values()
    assert list(map(str, metrics)) == list(map(str, map(find_metric, preset.numbers)))
    for metric, numbers in metrics.items():
        assert set(numbers) <= {"mean", *(output.name for output in metric.corpus)}, metric
    TextPolicy.named(preset.section)


def test_rexrank_has_the_columns_of_its_board_and_the_inputs_of_its_radcliq():
    """Its evaluation takes BLEU, BERTScore, SembScore and RadGraph from the table of RadCliQ."""
    (metrics,) = presets_in("rexrank").values()
    titles = [metric.printed() for metric in metrics]
    assert [title.split(" (")[0] for title in titles] == [
        "RadCliQ-v1",
        "BLEU-2",
        "BERTScore",
        "CheXbert similarity",
        "RadGraph F1",
        "RaTEScore",
        "GREEN",
    ]
    assert set(find_metric("radcliq-v1").inputs) < set(metrics)


def test_metrics_that_cannot_run_are_left_out_and_named(monkeypatch):
    for name in ("CHEXBERT", "RADGRAPH", "GREEN", "RATESCORE_NER"):
        monkeypatch.delenv(f"VLSCORE_{name}", raising=False)
    names = "rexrank,rouge-l"
    found = find_metrics(names)
    assert [metric.name for metric in found] == ["bleu-2", "rouge-l"]
    _, notes, columns = read_presets(names)
    assert "Left out: 1/FineRadScore" in notes[0]
    assert "Section: reference=findings,candidate=all" in notes[0]
    for name in ("radcliq-v1", "bert-score", "chexbert-similarity", "radgraph-f1", "green"):
        assert any(note.startswith(f"rexrank: {name}") for note in notes[1:])
    assert columns == ("bleu-2(smoothing=floor,tokens=cxr).mean", "rouge-l")


def test_the_section_of_a_preset_is_used_unless_another_is_named():
    assert Scorer(metrics="r2gen").text_policy == TextPolicy.named(PRESETS["r2gen"].section)
    assert Scorer(metrics="rouge-l").text_policy == TextPolicy()
    assert Scorer(metrics="r2gen", text_policy="all").text_policy == TextPolicy("all")
    assert Scorer(metrics="bleu").preset_notes == Scorer(metrics="bleu").preset_columns == ()


def test_compare_prints_the_columns_of_a_preset_and_names_it(tmp_path):
    rows = [("Clear lungs.", "FINDINGS: The lungs are clear. IMPRESSION: Normal."), ("", "")]
    rows[1] = ("Left effusion.", "FINDINGS: Small left effusion. IMPRESSION: Effusion.")
    for name in ("a", "b"):
        with (tmp_path / f"{name}.jsonl").open("w") as stream:
            for k, (candidate, reference) in enumerate(rows):
                row = {"id": str(k), "candidate": candidate, "reference": reference}
                stream.write(json.dumps(row) + "\n")
    out = tmp_path / "out"
    tables = [tmp_path / f"{name}.jsonl" for name in "ab"]
    done = run_command("compare", *tables, "-m", "r2gen,judge", "--out", out)
    assert done.exit_code == 0, done.output
    assert "note: r2gen: the columns of papers since R2Gen" in done.stderr
    expected = [each.printed().removesuffix(" (mean)") for each in find_metrics("r2gen,judge")]
    table = done.stdout.partition("Means over")[0]
    assert [line.partition(" ↑")[0] for line in table.splitlines() if " ↑" in line] == expected
    result = json.loads((out / "result.json").read_text())
    assert any(note.startswith("r2gen: ") for note in result["notes"])
    assert all("txt:ref=findings,cand=all" in each for each in result["signatures"].values())
    whole = run_command(
        "evaluate", tables[0], "-m", "r2gen", "--section", "all", "-o", tmp_path / "e"
    )
    assert whole.exit_code == 0, whole.output
    record = json.loads((tmp_path / "e" / "run.json").read_text())
    assert any(note.startswith("r2gen: ") for note in record["notes"])
    assert all("txt:all" in each for each in record["key"]["metrics"].values())


def test_the_list_of_metrics_shows_presets_and_each_of_them():
    shown = run_command("metrics").stdout
    for name in PRESETS:
        assert f"  {name}: " in shown
        of_one = run_command("metrics", name).stdout
        assert "left out: " in of_one
        assert all(metric in of_one for metric in PRESETS[name].numbers)
