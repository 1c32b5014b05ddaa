"""Every result becomes a DataFrame in one way: flat, one row a record, ids as they are written."""

import ast
import sys
from pathlib import Path

import pytest

import vlscore
from tests.doubles import HashEncoder
from tests.evaluation.alignment.samples import make_rexval
from tests.evaluation.samples import make_table
from vlscore.core import frame, read_frame
from vlscore.data import open_reports
from vlscore.embedding import StudyEmbedder
from vlscore.errors import MissingDependency
from vlscore.evaluation import (
    Sampling,
    align,
    calibrate,
    compare,
    controlled,
    evaluate,
    failure_modes,
    findings,
    judge,
    read_ratings,
    retrieval,
    sensitivity,
)
from vlscore.metrics import Scorer
from vlscore.perturb import perturb
from vlscore.retrieval import OracleSettings, index_build, oracle
from vlscore.stats import Interval, Run

STUDIES = 5
# The log of a training is tried where trainings are; sheets are empty, answers of raters and
# candidates of baselines are tables of their own.
NO_TABLE = {"TrainingRun", "RatingSheets", "RatingsRun", "BaselineRun"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Class name -> a result of it, and how many rows its frame has."""
    folder = tmp_path_factory.mktemp("frames")
    table, _ = make_table(folder, STUDIES)
    reports = folder / "reports.csv"
    said = ["Left pleural effusion.", "Right pleural effusion.", "Heart is normal.", "Edema."]
    rows = [f'00{k},"{text} Lungs are clear, too."' for k, text in enumerate(said)]
    reports.write_text("\n".join(["id,report", *rows]) + "\n", encoding="utf-8")
    rexval, _ = make_rexval(folder / "rexval")
    pairs = read_ratings(rexval)
    embedder = StudyEmbedder(HashEncoder(), device="cpu", cache=False)
    index = index_build(reports, folder / "index", embedder)
    words = Scorer(metrics="rouge-l")
    sampling = Sampling(references=4, candidates=3, resamples=20)
    settings = OracleSettings(k=2)
    perturbed = perturb(reports, folder / "perturbed")
    quick = {"resamples": 20}
    made = [
        (words.score(None, said, said[::-1]), len(said)),
        (evaluate(table, folder / "parquet", Scorer(embedder)), STUDIES),
        (oracle(table, folder / "oracle", index.index, embedder, settings), STUDIES * 2),
        (retrieval(table, folder / "retrieval", embedder), 2),
        (
            controlled(
                open_reports(reports),
                folder / "controlled",
                words,
                observations=("Pleural Effusion",),
                sampling=sampling,
            ),
            None,
        ),
        (failure_modes(pairs, folder / "failures", **quick), None),
        (align(pairs, folder / "aligned", scorer=words, **quick), None),
        (perturbed, sum(perturbed.counts.values())),
        (sensitivity(perturbed.folder, folder / "s", metrics=["rouge-l"], **quick), None),
        (findings(reports, folder / "labels", **quick), len(said)),
        (judge(table, folder / "judged"), STUDIES),
        (compare([table], folder / "compared", words, permutations=19, **quick), None),
        (index, len(said)),
        (calibrate(embedder, table, resamples=20), None),
    ]
    return {type(result).__name__: (result, rows) for result, rows in made}


def _classes():
    """Name -> (names of its attributes, docstring of its `to_pandas`), of the whole package."""
    for path in Path(vlscore.__file__).parent.rglob("*.py"):
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                said = [
                    ast.get_docstring(part)
                    for part in each.body
                    if isinstance(part, ast.FunctionDef) and part.name == "to_pandas"
                ]
                names = {ast.unparse(p.target) for p in each.body if isinstance(p, ast.AnnAssign)}
                yield each.name, names, said


def _results_of(base):
    """All subclasses, of subclasses too."""
    return {found for each in base.__subclasses__() for found in {each, *_results_of(each)}}


def test_every_class_of_results_has_a_frame(results):
    in_folders = {name for name, names, _ in _classes() if {"folder", "unchanged"} <= names}
    said = {name: found[0] for name, _, found in _classes() if found}
    runs = {each.__name__ for each in _results_of(Run)} - {"RunOfRows"}
    assert in_folders - NO_TABLE <= set(said)
    # Every frame is tried below; that of a RetrievalResult is that of its run.
    assert {*said, *runs} - NO_TABLE == {*results, "Run", "RetrievalResult", "Index"}
    for name, text in said.items():
        assert text.startswith("Return one row a "), name
        assert "Needs pandas." in text, name


def test_frames_are_flat_and_have_every_row(results):
    pytest.importorskip("pandas")
    for name, (result, rows) in results.items():
        made = result.to_pandas()
        assert len(made) == rows if rows is not None else len(made), name
        cells = [cell for column in made.columns for cell in made[column]]
        assert not any(isinstance(cell, dict | list | tuple) for cell in cells), name
        assert len(set(made.columns)) == len(made.columns), name


def test_hits_keep_the_study_that_they_are_of(results):
    pytest.importorskip("pandas")
    made = results["OracleResult"][0].to_pandas()
    assert made["study_id"].tolist() == [f"s{k}" for k in range(STUDIES) for _ in range(2)]
    assert made["place"].tolist() == [1, 2] * STUDIES
    assert set(made["ids"]) <= {f"00{k}" for k in range(4)}


def test_the_files_of_an_evaluation_give_the_same_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    table, _ = make_table(tmp_path, 3, ".csv")
    lines = table.read_text(encoding="utf-8").replace("s0", "007").replace("s1", "NA")
    table.write_text(lines, encoding="utf-8")
    scorer = Scorer(metrics="rouge-l,bleu-1")
    frames = [
        evaluate(table, tmp_path / format, scorer, format=format).to_pandas()
        for format in ("parquet", "csv")
    ]
    assert frames[0]["id"].tolist() == frames[1]["id"].tolist() == ["007", "NA", "s2"]
    numbers = ["rouge-l", "bleu-1"]
    pandas.testing.assert_frame_equal(frames[0][numbers], frames[1][numbers])
    signature = str(scorer.signatures["bleu-1"])
    assert [each.attrs["signatures"]["bleu-1"] for each in frames] == [signature] * 2


def test_intervals_become_columns():
    pytest.importorskip("pandas")
    made = frame([{"name": "a", "tau": Interval(0.5, 0.25, 0.75)}])
    assert made.to_dict("records") == [{"name": "a", "tau": 0.5, "tau.low": 0.25, "tau.high": 0.75}]


def test_pandas_is_asked_for_where_it_is_absent(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for result, _ in results.values():
        with pytest.raises(MissingDependency, match=r"pip install 'vlscore\[pandas\]'"):
            result.to_pandas()
    with pytest.raises(MissingDependency):
        read_frame(Path("absent.csv"))
