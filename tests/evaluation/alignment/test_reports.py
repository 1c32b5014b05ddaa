"""Ratings beside the tables that the reports are in, ReXrank's manifest among them."""

import json

import pytest

from tests.evaluation.alignment.samples import write_csv
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import read_ratings, with_reports

REFERENCES = {"s1": "Left effusion.", "s2": "Clear lungs.", "s3": "Edema."}


@pytest.fixture
def tables(tmp_path):
    """Two systems' reports: a manifest, and a csv that lacks the third study."""
    manifest = {
        study: {"section_findings": text, "model_prediction": f"ours {study}"}
        for study, text in REFERENCES.items()
    }
    (tmp_path / "ours.json").write_text(json.dumps(manifest), encoding="utf-8")
    rows = [
        {"id": study, "reference": f"Findings:  {text}", "candidate": f"theirs {study}"}
        for study, text in list(REFERENCES.items())[:2]
    ]
    return {
        "ours": tmp_path / "ours.json",
        "theirs": write_csv(tmp_path / "theirs.csv", rows),
    }


def _ratings(tmp_path, candidates=("ours", "theirs")):
    rows = [
        {"study_id": s, "candidate_id": c, "rating": len(s + c) % 3 + k}
        for k, s in enumerate(REFERENCES)
        for c in candidates
    ]
    return write_csv(tmp_path / "ratings.csv", rows)


def _opened(tables):
    needs = {"reference", "candidate"}
    return {name: open_studies(path, needs=needs) for name, path in tables.items()}


def test_reports_come_from_each_candidates_table(tables, tmp_path):
    rated = read_ratings(_ratings(tmp_path))
    pairs = with_reports(rated, _opened(tables))
    assert pairs.texts == ("ours s1", "theirs s1", "ours s2", "theirs s2", "ours s3")
    assert pairs.references[0] == pairs.references[1] == "Findings: Left effusion."
    assert pairs.ratings["rating"].tolist() == rated.ratings["rating"][:, :5].tolist()
    (bad,) = pairs.bad
    assert (bad.id, "theirs.csv" in bad.reason) == ("s3, theirs", True)


def test_what_does_not_match_is_refused(tables, tmp_path):
    rated = read_ratings(_ratings(tmp_path, ["ours", "third"]))
    with pytest.raises(InvalidSetting, match="rates third, whose reports are in no table"):
        with_reports(rated, _opened(tables))
    rated = read_ratings(_ratings(tmp_path))
    other = [{"id": "s1", "reference": "Fracture.", "candidate": "x"}]
    changed = tables | {"theirs": write_csv(tmp_path / "changed.csv", other)}
    with pytest.raises(InvalidTable, match="study s1 has another reference"):
        with_reports(rated, _opened(changed))
    strange = write_csv(tmp_path / "x.csv", [{"id": "z", "reference": "a", "candidate": "b"}])
    with pytest.raises(InvalidTable, match="no table has a study of"):
        with_reports(rated, _opened({"ours": strange, "theirs": strange}))
    pairs = with_reports(rated, _opened(tables))
    with pytest.raises(InvalidSetting, match="has reports of its own"):
        with_reports(pairs, _opened(tables))
