"""Tables of finished runs: their images lie where the run read them."""

import shutil

import pytest

from tests.doubles import HashEncoder
from tests.evaluation.samples import make_table
from vlscore.data import Study, open_studies
from vlscore.evaluation import compare, evaluate, open_sources
from vlscore.evaluation.ratings.reports_to_judge import open_reports_to_judge
from vlscore.metrics import Scorer


@pytest.fixture
def run_with_images_elsewhere(tmp_path):
    table, _ = make_table(tmp_path / "films", 4, ".jsonl")
    (tmp_path / "tables").mkdir()
    moved = shutil.move(table, tmp_path / "tables" / "t.jsonl")
    scorer = Scorer(HashEncoder(), metrics="clipscore,rouge-l")
    there = open_studies(moved, image_root=tmp_path / "films")
    run = evaluate(there, tmp_path / "run", scorer)
    assert not run.failures
    return run, moved, scorer


def test_sheets_show_the_images_of_a_finished_run(run_with_images_elsewhere):
    run, *_ = run_with_images_elsewhere
    _, read = open_reports_to_judge([str(run.folder)], None, None, True)
    _, _, shown = read()
    assert len(shown) == 4
    for study in shown.values():
        assert isinstance(study, Study)
        assert all(path.is_file() for path in study.images)


def test_sheets_know_the_column_of_images_of_a_finished_run(tmp_path):
    table, _ = make_table(tmp_path, 3, ".jsonl")
    table.write_text(table.read_text(encoding="utf-8").replace('"image"', '"film"'), "utf-8")
    there = open_studies(table, needs={"image"}, columns={"image": "film"})
    run = evaluate(there, tmp_path / "run", Scorer(metrics="rouge-l"))
    _, read = open_reports_to_judge([str(run.folder)], None, None, True)
    assert all(isinstance(study, Study) and study.images for study in read()[2].values())


def test_a_comparison_reads_the_images_of_a_finished_run(run_with_images_elsewhere, tmp_path):
    run, table, scorer = run_with_images_elsewhere
    sources = open_sources([f"old={run.folder}", f"new={table}"])
    found = compare(sources, tmp_path / "compared", scorer)
    values = found.frame("systems")
    clipscore = values[values["metric"] == "clipscore"].set_index("system")["value"]
    assert clipscore["old"] == pytest.approx(clipscore["new"], rel=1e-6)
