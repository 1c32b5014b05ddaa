"""Settings of the wrong kind are refused by name, before anything is computed."""

import math
import shutil

import pandas
import pytest

from vlscore.core import resource_path
from vlscore.data import open_studies, read_image
from vlscore.errors import InvalidSetting, UnknownName, VLScoreError
from vlscore.evaluation import (
    AlignmentSettings,
    ComparisonSettings,
    TableSettings,
    align,
    compare,
    evaluate,
    read_ratings,
)
from vlscore.findings import changes_of, chexpert_labels, load_lexicon
from vlscore.integrations import ReportReward
from vlscore.metrics import Patient, RuleJudge, Scorer
from vlscore.perturb import PerturbationSettings, kinds_named

TABLE = "studies.csv"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("by", lambda: ComparisonSettings(by="sex")),
        ("lower_is_better", lambda: ComparisonSettings(lower_is_better="errors")),
        ("columns", lambda: TableSettings(columns="bleu-2")),
        ("systems", lambda: compare("first.csv", "out")),
        ("ratings", lambda: read_ratings(TABLE, ratings="rating")),
        ("by_rater", lambda: read_ratings(TABLE, by_rater="ann")),
    ],
)
def test_one_text_in_place_of_several_names(name, call):
    with pytest.raises(InvalidSetting, match=f"{name} is a tuple of names, as in"):
        call()


@pytest.mark.parametrize("name", ["by", "keep"])
def test_one_text_in_place_of_columns_of_evaluate(name, tmp_path):
    (tmp_path / TABLE).write_text("id,reference,candidate,view\na,Edema.,Edema.,PA\n")
    with pytest.raises(InvalidSetting, match=f"{name} is a tuple of names"):
        evaluate(tmp_path / TABLE, tmp_path / "out", Scorer(metrics="rouge-l"), **{name: "view"})


@pytest.mark.parametrize("word", ["kept", "yes", "", "ignore"])
@pytest.mark.parametrize("made", [RuleJudge, lambda **given: Scorer(metrics="judge", **given)])
def test_comparisons_are_ignored_or_not_named(word, made):
    with pytest.raises(InvalidSetting, match="comparisons is one of ignored, not"):
        made(comparisons=word)


def test_a_frame_that_there_is_not(tmp_path):
    (tmp_path / TABLE).write_text("id,reference,candidate\na,Edema.,Edema.\nb,Mass.,Mass.\n")
    result = evaluate(tmp_path / TABLE, tmp_path / "out", Scorer(metrics="rouge-l"))
    with pytest.raises(UnknownName, match=r"no frame 'kindz'; there are summary"):
        result.frame("kindz")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate(TABLE, "out", "bleu-1"), "scorer is a Scorer, not a str"),
        (lambda: evaluate(None, "out"), "table is a str or Path or StudyTable, not None"),
        (lambda: evaluate([TABLE], "out"), "table is a str or Path or StudyTable, not a list"),
        (lambda: evaluate(pandas.DataFrame(), "out"), "not a DataFrame: .* give the path"),
        (lambda: evaluate(TABLE, "out", workers=-1), "workers is a whole number, at least 0"),
        (lambda: align("ratings.csv", "out"), "pairs is a RatedPairs, not a str"),
        (
            lambda: compare([TABLE], "out", settings={"resamples": 100}),
            "settings is a ComparisonSettings, not a dict",
        ),
        (lambda: open_studies(None), "the path of a file, not a NoneType: give the path"),
        (lambda: Scorer(metrics=3), "a metric is .* not an int|no metric|vlscore.metrics.Metric"),
        (lambda: PerturbationSettings(seed="a"), "seed is a whole number, not 'a'"),
        (lambda: AlignmentSettings(seed=-1), "seed is a whole number, at least 0, not -1"),
        (lambda: Patient(age="70 years"), "an age must be 0 to 130 years, not '70 years'"),
        (lambda: ReportReward("rouge-l", failed="x"), "failed is a number or None, not 'x'"),
        (lambda: read_image(None), "an image's path is a text, not a NoneType"),
        (lambda: chexpert_labels(None), "a report must be a text, not a NoneType"),
        (lambda: chexpert_labels(math.nan), "a report must be a text, not a float"),
        (lambda: changes_of("larger effusion"), "takes what extract returns .* not a str"),
        (lambda: Scorer(metrics="cider-d").fit([]), "none of 0 references can be read"),
        (lambda: Scorer(metrics="cider-d").fit([None]), "none of 1 references can be read"),
    ],
)
def test_an_argument_of_another_kind_is_refused_by_name(call, message):
    with pytest.raises(VLScoreError, match=message):
        call()


def test_paths_are_texts_too(tmp_path):
    copied = shutil.copytree(resource_path("perturbations", "lexicons"), tmp_path / "lexicon")
    assert load_lexicon(str(copied)).observations.keys() == load_lexicon().observations.keys()
    names = [kind.name for kind in kinds_named("change-location, remove-pathology")]
    assert sorted(names) == ["change-location", "remove-pathology"]
