"""Rated sets in their layouts, on files that are made here."""

import json

import numpy as np
import pytest

from tests.evaluation.alignment.samples import KINDS, aligned, make_rexval, valued, write_csv
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import (
    AlignmentSettings,
    alignment_tables,
    compare_with_raters,
    read_ratings,
)


def _rows(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"


def test_rexval_by_rater_category_and_significance(tmp_path):
    folder, counts = make_rexval(tmp_path / "rexval")
    pairs = read_ratings(folder)
    assert len(pairs) == 12
    assert pairs.raters == ("0", "1")
    assert pairs.studies[:5] == ("500",) * 4 + ("501",)
    assert pairs.candidates[:4] == KINDS
    assert (pairs.references[5], pairs.texts[5]) == ("Reference 1.", "Report bertscore of 1.")
    expected = {
        "total errors": counts.sum(axis=(2, 3)),
        "significant errors": counts[..., 1].sum(axis=2),
        "insignificant errors": counts[..., 0].sum(axis=2),
        "1 false finding": counts[:, :, 0].sum(axis=2),
        "6 missed comparison": counts[:, :, 5].sum(axis=2),
    }
    assert list(pairs.ratings)[:3] == list(expected)[:3]
    assert len(pairs.ratings) == 9
    for name, values in expected.items():
        assert (pairs.ratings[name] == values).all(), name
    assert not pairs.bad
    assert (pairs.means["total errors"] == expected["total errors"].mean(axis=0)).all()


def test_a_bad_count_takes_that_raters_rating_of_the_pair_and_no_other(tmp_path):
    folder, counts = make_rexval(tmp_path / "rexval")
    table = folder / "6_valid_raters_per_rater_error_categories.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    lines[1] = "0,radgraph,1,0,False,many"
    lines.append("9,radgraph,1,0,False,1")
    lines.append("0,nobody,1,0,False,1")
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = read_ratings(folder)
    assert [row.row for row in pairs.bad] == [1, len(lines) - 2, len(lines) - 1]
    assert "'many'" in pairs.bad[0].reason
    assert "rows 0 to 2" in pairs.bad[1].reason
    assert "'nobody'" in pairs.bad[2].reason
    total = counts.sum(axis=(2, 3)).astype(float)
    total[0, 0] = np.nan
    np.testing.assert_array_equal(pairs.ratings["total errors"], total)
    assert pairs.means["total errors"][0] == total[1, 0]


COUNTS = "6_valid_raters_per_rater_error_categories.csv"


@pytest.mark.parametrize(
    ("line", "lost"),
    # Columns: study_number, candidate_type, error_category, rater_index, significant, num_errors.
    [("99,{1},{2},{3},{4},{5}", [0]), ("{0},{1},{2},,{4},{5}", [0]), ("x,{1},{2},,{4},{5}", [0])],
)
def test_a_row_whose_study_is_unreadable_leaves_no_sum_that_is_too_small(tmp_path, line, lost):
    folder, counts = make_rexval(tmp_path / "rexval")
    table = folder / COUNTS
    lines = table.read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("0,radgraph,")
    lines[1] = line.format(*lines[1].split(","))
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = read_ratings(folder)
    assert len(pairs.bad) == 1
    total = counts.sum(axis=(2, 3)).astype(float)
    total[lost, 0] = np.nan
    np.testing.assert_array_equal(pairs.ratings["total errors"], total)
    assert any("left out: 1 rating that may lack counts" in note for note in pairs.notes)


def test_missing_counts_are_0_and_said_and_a_table_without_zeros_is_read_as_it_is(tmp_path):
    folder, counts = make_rexval(tmp_path / "rexval")
    table = folder / COUNTS
    header, *rows = table.read_text(encoding="utf-8").splitlines()
    one_less = [row for k, row in enumerate(rows) if k]
    table.write_text("\n".join([header, *one_less]) + "\n", encoding="utf-8")
    pairs = read_ratings(folder)
    assert any("1 of 24 ratings have fewer than 12 counts" in note for note in pairs.notes)
    stated = [row for row in rows if not row.endswith(",0")]
    table.write_text("\n".join([header, *stated]) + "\n", encoding="utf-8")
    pairs = read_ratings(folder)
    assert not pairs.notes
    known = ~np.isnan(pairs.ratings["total errors"])
    total = counts.sum(axis=(2, 3))
    assert (pairs.ratings["total errors"][known] == total[known]).all()


def test_rexval_without_a_column_or_a_file_is_refused(tmp_path):
    folder, _ = make_rexval(tmp_path / "rexval")
    table = folder / "6_valid_raters_per_rater_error_categories.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("num_errors", "errors"), "utf-8")
    with pytest.raises(InvalidTable, match=r"no column num_errors; found: .*errors"):
        read_ratings(folder)
    table.unlink()
    with pytest.raises(InvalidTable, match="no known rated set"):
        read_ratings(folder)


def test_radevalx_reads_two_tables_and_says_what_empty_cells_became(tmp_path):
    def table(name, counts):
        rows = [
            {"report_id": f"CXR{k}", "ground_truth": f"R {k}.", "M2Tr-Generation": f"G {k}."}
            | {str(c + 1): each[c] if c < len(each) else "" for c in range(8)}
            for k, each in enumerate(counts)
        ]
        write_csv(tmp_path / name, rows)

    table("RadEval_clinically_significant_errors.csv", [[1, 0, 2], [0] * 8, [0] * 8])
    table("RadEval-clinically_insignificant_errors.csv", [[0] * 7 + [3], [1] * 8])
    pairs = read_ratings(tmp_path)
    assert pairs.studies == ("CXR0", "CXR1")
    assert pairs.ratings["total errors"].tolist() == [[6, 8]]
    assert pairs.ratings["significant errors"].tolist() == [[3, 0]]
    assert pairs.ratings["8"].tolist() == [[3, 1]]
    assert pairs.raters == ("consensus",)
    assert any("5 empty counts" in note for note in pairs.notes)
    assert [row.id for row in pairs.bad] == ["CXR2"]


def _radpref_entry(rating, false=(), missed=(), attributes=()):
    errors = [{"error_type": "false", "clinical_significance": each} for each in false]
    errors += [{"error_type": "attribute", "attributes": each} for each in attributes]
    return {
        "finding_errors": {str(k): each for k, each in enumerate(errors)},
        "missing_findings": {str(k): {"clinical_significance": e} for k, e in enumerate(missed)},
        "rating": rating,
    }


def _full_radpref(folder, flat=False):
    """RadPref with its reports: two cases, whose generators change places; two raters."""
    cases = [
        {"id": "case-a", "ground_truth_report": "Edema.", "C1_report": "Edema!", "C2_report": "",
         "C1_source": "medgemma", "C2_source": "gpt"},
        {"id": "case-b", "ground_truth_report": "Clear.", "C1_report": "Clear?",
         "C2_report": "Mass.", "C1_source": "gpt", "C2_source": "medgemma"},
    ]  # fmt: skip
    inner = folder if flat else folder / "radiologist_annotations"
    inner.mkdir(parents=True, exist_ok=True)
    (folder / "preference_data.json").write_text(json.dumps(cases), encoding="utf-8")
    two = {"location": "significant", "severity": "negligible"}
    first = {
        "case-a": {
            "C1": _radpref_entry(4, ["benign_expected"]),
            "C2": _radpref_entry(1, missed=["urgent", "actionable_not_urgent"]),
            "new_finding_indices": {"C1": [0]},
        },
        "case-b": {"C1": _radpref_entry(5), "C2": _radpref_entry(2, ["urgent"], (), [two])},
    }
    second = {
        "case-a": {"C1": _radpref_entry(5), "C2": _radpref_entry(2, missed=["urgent"])},
        "case-b": {"C1": _radpref_entry(4, ["who knows"]), "C2": _radpref_entry(3)},
        "case-c": {"C1": _radpref_entry(4), "C2": _radpref_entry(3)},
    }
    for name, annotations in (("user_1", first), ("user_2", second)):
        content = json.dumps({"user_id": name[-1], "annotations": annotations})
        (inner / f"{name}.json").write_text(content, encoding="utf-8")
    if flat:
        (folder / "radjudge.json").write_text('{"RANKING_TESTS": []}', encoding="utf-8")
    return folder


@pytest.mark.parametrize("flat", [False, True])
def test_radpref_has_reports_errors_and_ratings(tmp_path, flat):
    folder = _full_radpref(tmp_path / "RadPref", flat)
    pairs = read_ratings(folder)
    assert list(zip(pairs.studies, pairs.candidates, strict=True)) == [
        ("case-a", "medgemma"),
        ("case-a", "gpt"),
        ("case-b", "gpt"),
        ("case-b", "medgemma"),
    ]
    assert pairs.references == ("Edema.", "Edema.", "Clear.", "Clear.")
    assert pairs.texts == ("Edema!", "", "Clear?", "Mass.")
    # The second rater's word for a significance is unknown: that rating is left out whole.
    expected = {
        "rating": [[4, 1, 5, 2], [5, 2, np.nan, 3]],
        "total errors": [[1, 2, 0, 3], [0, 1, np.nan, 0]],
        "significant errors": [[0, 2, 0, 2], [0, 1, np.nan, 0]],
        "false finding": [[1, 0, 0, 1], [0, 0, np.nan, 0]],
        "missed finding": [[0, 2, 0, 0], [0, 1, np.nan, 0]],
        "wrong attribute": [[0, 0, 0, 2], [0, 0, np.nan, 0]],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(pairs.ratings[name], values, err_msg=name)
    assert (pairs.meaning, pairs.sign_of("total errors"), pairs.sign_of("rating")) == (
        "errors",
        -1,
        1,
    )
    assert pairs.primary == ["total errors", "significant errors", "rating"]
    assert [row.id for row in pairs.bad] == ["case-b", "case-c", "case-c"]
    assert "who knows" not in "".join(row.reason for row in pairs.bad)


def test_one_generator_alone(tmp_path):
    pairs = read_ratings(_full_radpref(tmp_path / "RadPref")).only(["gpt"])
    assert (pairs.studies, pairs.texts) == (("case-a", "case-b"), ("", "Clear?"))
    np.testing.assert_array_equal(pairs.ratings["rating"], [[1, 5], [2, np.nan]])
    assert pairs.counts["missed finding", True].tolist()[0] == [2, 0]
    with pytest.raises(InvalidSetting, match="no candidate nobody; it has: gpt"):
        pairs.only(["nobody"])


def test_errors_and_qualities_of_one_set_are_turned_each_its_own_way(tmp_path):
    """A value that rises with quality agrees with ratings and with error counts alike."""
    pairs = read_ratings(_full_radpref(tmp_path / "RadPref"))
    values = np.array([4.0, 1.0, 5.0, 2.0])
    frames = compare_with_raters(valued({"m": values}), pairs, AlignmentSettings(resamples=10))
    tau = frames["agreements"].set_index("rating")["tau_b"]
    assert tau["rating"] == pytest.approx(1.0)
    # Of the six pairs of means (.5, 1.5, 0, 1.5) one is tied and the others agree: 5 / sqrt(6 * 5).
    assert tau["total errors"] == pytest.approx(5 / np.sqrt(30))
    assert list(dict.fromkeys(frames["rankings"]["rating"])) == list(pairs.ratings)
    titles = [table.title for table in alignment_tables(frames, pairs.primary)]
    assert "Agreement with raters: rating" in titles
    assert "Agreement with raters: significant errors" in titles


def test_radevalx_brings_values_in_a_table_of_its_own(tmp_path):
    rows = [{"report_id": f"CXR{k}", "ground_truth": "R.", "M2Tr-Generation": "G."}
            | {str(c): k for c in range(1, 9)} for k in range(3)]  # fmt: skip
    for name in ("clinically_significant", "clinically_insignificant"):
        sign = "_" if name == "clinically_significant" else "-"
        write_csv(tmp_path / f"RadEval{sign}{name}_errors.csv", rows)
    path = write_csv(tmp_path / "metrcis_scores_m2tr.csv", [
        {"report_id": f"CXR{k}", "id": k, "bleu4": 1 - k / 4, "bleu_2": 0, "bertscore": 0,
         "CheXbert": 0, "radgraph_f1": 0.5, "radcliq": k}
        for k in range(3)
    ])  # fmt: skip
    run = aligned(read_ratings(tmp_path), tmp_path / "out", values=path, resamples=10)
    metrics = run.frame("metrics")
    assert list(metrics["name"]) == [
        *("bleu4", "bleu_2", "bertscore", "CheXbert", "radgraph_f1", "radcliq")
    ]
    assert list(metrics["higher_is_better"]) == [True] * 5 + [False]
    assert not run.failures


def test_radpref_that_is_no_json_is_refused(tmp_path):
    folder = tmp_path / "radiologist_annotations"
    folder.mkdir()
    (folder / "user_1.json").write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(InvalidTable, match=r"user_1.json: is no object"):
        read_ratings(tmp_path)
    (folder / "user_1.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidTable, match="cannot be read as json"):
        read_ratings(tmp_path)


def test_refisco_v0_makes_references_of_corrections(tmp_path):
    path = tmp_path / "refisco-v0.csv"
    path.write_text(
        _rows("""
        id,indication,impression_original,impression_edited,score,annotator,source
        p1,x,Small effusion.,[no edit],No error,0,XREM
        p1,x,Left fracture.,[delete],Urgent error,0,XREM
        p1,x,,Right edema.,Not actionable,0,XREM
        p1,x,Small effusion.,Large effusion.,Emergent error,1,XREM
        p2,x,Clear.,[no edit],terrible,1,Expert
        p3,x,Clear.,[no edit],No error,1,Expert
        """),
        encoding="utf-8",
    )
    pairs = read_ratings(path)
    assert pairs.studies == ("p1", "p1", "p3")
    assert pairs.candidates == ("XREM/0", "XREM/1", "Expert/1")
    assert pairs.texts[0] == "Small effusion. Left fracture."
    assert pairs.references[:2] == ("Small effusion. Right edema.", "Large effusion.")
    assert pairs.ratings["largest severity"].tolist() == [[3, 4, 0]]
    assert pairs.ratings["mean severity"].tolist() == [[4 / 3, 4, 0]]
    assert [(row.row, row.id) for row in pairs.bad] == [(5, "p2")]


def test_refisco_v1_leaves_lines_without_a_correction(tmp_path):
    path = tmp_path / "refisco-v1.csv"
    path.write_text(
        _rows("""
        data_id,subject_id,study_id,report_type,report_text,original_line,corrected_line,error_clinical_severity,comments,annotator_id
        4,1,s1,human,t,Clear lungs.,,0,,2
        4,1,s1,human,t,Big heart.,Normal heart.,2,,2
        """),
        encoding="utf-8",
    )
    pairs = read_ratings(path)
    assert pairs.references == ("Clear lungs. Normal heart.",)
    assert pairs.texts == ("Clear lungs. Big heart.",)
    assert pairs.ratings["largest severity"].tolist() == [[2]]


def test_a_table_of_one_number_a_rater(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(
        _rows("""
        study_id,candidate_id,rater,rating,reference,candidate,image
        1,a,x,2,Ref.,Cand.,i.png
        1,a,y,,Ref.,Cand.,i.png
        1,b,x,0,Ref.,,i.png
        1,b,y,1,Ref.,,i.png
        2,a,x,nine,Ref.,Cand.,
        2,a,y,3,Ref.,Cand.,
        2,a,y,4,Ref.,Cand.,
        3,a,y,4,Ref.,Cand.,
        3,a,x,4,Another.,Cand.,
        ,a,x,4,Ref.,Cand.,
        """),
        encoding="utf-8",
    )
    pairs = read_ratings(path)
    assert pairs.studies == ("1", "1", "3")
    np.testing.assert_array_equal(pairs.ratings["rating"], [[2, 0, np.nan], [np.nan, 1, 4]])
    assert pairs.texts == ("Cand.", "", "Cand.")
    assert pairs.images[0].images == (tmp_path / "i.png",)
    assert pairs.images[2] is None
    reasons = {row.row: row.reason for row in pairs.bad}
    assert list(reasons) == [5, 7, 9, 10]
    assert "'nine'" in reasons[5]
    assert "twice" in reasons[7]
    assert "another reference report" in reasons[9]
    assert '"study_id" is empty' in reasons[10]


def test_a_table_of_counts_needs_no_row_for_a_category_without_errors(tmp_path):
    path = tmp_path / "counts.jsonl"
    records = [
        {"study_id": "1", "candidate_id": "a", "category": "omission", "significant": True, "n": 2},
        {"study_id": "1", "candidate_id": "a", "category": "place", "significant": False, "n": 1},
        {"study_id": "2", "candidate_id": "a", "category": "place", "significant": "no", "n": 0},
        {"study_id": "3", "candidate_id": "a", "category": "place", "significant": "no", "n": -1},
        {"study_id": "3", "candidate_id": "b", "category": "place", "significant": "?", "n": 1},
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    pairs = read_ratings(path, ratings=("n",))
    assert {name: values.tolist() for name, values in pairs.ratings.items()} == {
        "total errors": [[3, 0]],
        "significant errors": [[2, 0]],
        "insignificant errors": [[1, 0]],
        "omission": [[2, 0]],
        "place": [[1, 0]],
    }
    assert [row.row for row in pairs.bad] == [4, 5]


def _quality_beside_counts(path):
    """Ratings of 1 to 5, and how many of a report's errors are significant."""
    path.write_text(
        "study_id,candidate_id,rating,errors,significant\n"
        "1,a,5,0,0\n1,b,2,4,2\n2,a,4,1,1\n2,b,1,7,3\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("meaning", ["quality", "ranks"])
def test_a_count_beside_quality_is_not_read(tmp_path, meaning):
    pairs = read_ratings(_quality_beside_counts(tmp_path / "ratings.csv"), meaning=meaning)
    assert {name: values.tolist() for name, values in pairs.ratings.items()} == {
        "rating": [[5, 2, 4, 1]]
    }
    assert pairs.meaning == meaning
    assert not pairs.bad
    assert pairs.notes == (
        f'the column "significant" is not read: ratings of {meaning} count no errors',
    )


def test_errors_may_be_counted_by_significance_alone(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text(
        "study_id,candidate_id,rater,significant,rating\n"
        "1,a,ann,yes,2\n1,a,ann,no,1\n1,a,bob,yes,0\n1,a,bob,no,4\n2,a,ann,yes,1\n"
        "2,a,ann,no,0\n2,a,bob,yes,3\n2,a,bob,no,\n",
        encoding="utf-8",
    )
    pairs = read_ratings(path)
    # Bob's last row has no count: his errors of the study are not known.
    expected = {
        "total errors": [[3, 1], [4, np.nan]],
        "significant errors": [[2, 1], [0, np.nan]],
        "insignificant errors": [[1, 0], [4, np.nan]],
    }
    assert list(pairs.ratings) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(pairs.ratings[name], values)
    assert [row.row for row in pairs.bad] == [8]
    with pytest.raises(InvalidSetting, match="one column of counts"):
        read_ratings(path, by_rater=("rating", "rater"))
    ignored = read_ratings(path, rename={"significant": ""})
    assert list(ignored.ratings) == ["rating"]


def test_one_column_a_rater_and_several_dimensions(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("study_id,candidate_id,ann,bob\n1,a,1,2\n1,b,,3\n", encoding="utf-8")
    pairs = read_ratings(path, by_rater=("ann", "bob"))
    assert pairs.raters == ("ann", "bob")
    np.testing.assert_array_equal(pairs.ratings["rating"], [[1, np.nan], [2, 3]])
    dimensions = read_ratings(path, ratings=("ann", "bob"), meaning="quality")
    assert list(dimensions.ratings) == ["ann", "bob"]
    assert dimensions.raters == ("rater",)


def test_what_cannot_be_read_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("study_id,candidate_id,score,category\n1,a,1,x\n", encoding="utf-8")
    with pytest.raises(InvalidTable, match=r"no column rating; found: study_id.*--rater-columns"):
        read_ratings(path)
    with pytest.raises(InvalidTable, match="no column who"):
        read_ratings(path, ratings=("score",), rename={"rater": "who"})
    with pytest.raises(InvalidSetting, match="one column of counts"):
        read_ratings(path, by_rater=("score",))
    with pytest.raises(InvalidSetting, match="not 'stars'"):
        read_ratings(path, meaning="stars")
    path.write_text("study_id,candidate_id,rating\n1,a,inf\n", encoding="utf-8")
    with pytest.raises(InvalidTable, match=r"no rating could be read; row 1: .*finite"):
        read_ratings(path)
    # A column that is called "category" but is none.
    path.write_text("study_id,candidate_id,rating,category\n1,a,2,x\n", encoding="utf-8")
    found = read_ratings(path, rename={"category": ""})
    assert found.ratings["rating"].tolist() == [[2]]


def test_the_first_pairs_are_those_of_a_table_that_ends_there(tmp_path):
    rows = [
        {"study_id": f"s{k}", "candidate_id": "c", "rater": rater, "rating": k}
        for k in range(6)
        for rater in ("ann", "bob")
    ]
    whole = read_ratings(write_csv(tmp_path / "whole.csv", rows)).first(4)
    short = read_ratings(write_csv(tmp_path / "short.csv", rows[:8]))
    assert whole.sha256 == short.sha256
    assert whole.notes[-1] == "limited to the first 4 of 6 rated candidates"
    assert short.first(9) is short
