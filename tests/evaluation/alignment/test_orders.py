"""Cases with a known order: their file, and which metrics keep it."""

import json

import pytest

from vlscore.errors import InvalidSetting, InvalidTable, UnknownName
from vlscore.evaluation import check_orders, read_orders

CASES = {
    "RANKING_TESTS": [
        {
            "category": "Words",
            "tests": [
                {
                    "id": "1a",
                    "ground_truth": "left effusion",
                    "candidates": {"C1": {"text": "left effusion"}, "C2": {"text": "mass"}},
                    "expected_ranking": "C1 > C2",
                },
                {
                    "id": "1b",
                    "ground_truth": "left effusion",
                    "candidates": {"C1": {"text": "left effusion"}, "C2": {"text": "mass"}},
                    "expected_ranking": "C2 > C1",
                },
            ],
        },
        {
            "category": "Three",
            "tests": [
                {
                    "id": "2a",
                    "ground_truth": "small left effusion",
                    "candidates": {
                        "C1": {"text": "small left effusion"},
                        "C2": {"text": "left effusion"},
                        "C3": {"text": "mass"},
                    },
                    "expected_ranking": ["C1 > C2", "C2 > C3"],
                },
                {
                    "id": "2b",
                    "ground_truth": "mass",
                    "candidates": {
                        "C1": {"text": "edema", "context": {"age": "4"}},
                        "C2": {"text": "edema", "context": {"age": "80"}},
                    },
                    "expected_ranking": "C1 = C2",
                },
            ],
        },
    ]
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "radjudge.json"
    path.write_text(json.dumps(CASES), encoding="utf-8")
    return path


def test_orders_of_words_overlap_by_hand(path):
    found = check_orders(read_orders(path), "rouge-l,bleu-1")
    # Of 1b's two candidates the copy is the better one for every metric of words.
    assert found.passed == {
        "rouge-l": [True, False, True, True],
        "bleu-1": [True, False, True, True],
    }


def test_equal_is_equal_and_better_is_more_than_equal(path):
    cases = read_orders(path)
    assert check_orders(cases, "rouge-l", tolerance=2.0).passed["rouge-l"] == [
        *(False, False, False, True)
    ]


def test_tables_have_every_case_and_category(path):
    by_category, single = check_orders(read_orders(path), "rouge-l").tables()
    assert by_category.columns == ("metric", "passed", "Words (2)", "Three (2)")
    assert by_category.rows == (("rouge-l", "3 of 4", "1", "2"),)
    assert "2b come with the patient's age" in by_category.caption
    assert single.rows[1] == ("1b", "C2 > C1", "failed")
    assert single.rows[2] == ("2a", "C1 > C2 and C2 > C3", "passed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expected_ranking": "C1 > C9"}, r"category 1, test 1: lacks"),
        ({"expected_ranking": []}, r"category 1, test 1: lacks"),
        ({"candidates": {"C1": {}, "C2": {}}}, r"category 1, test 1: lacks"),
        ({"ground_truth": None}, r"category 1, test 1: lacks"),
    ],
)
def test_a_case_that_cannot_be_used_is_named(change, message, path):
    content = json.loads(path.read_text(encoding="utf-8"))
    content["RANKING_TESTS"][0]["tests"][0].update(change)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InvalidTable, match=message):
        read_orders(path)


def test_other_files_and_metrics_are_refused(path, tmp_path):
    for content in ("[]", "{", '{"RANKING_TESTS": []}', '{"RANKING_TESTS": [{"tests": []}]}'):
        (tmp_path / "other.json").write_text(content, encoding="utf-8")
        with pytest.raises(InvalidTable, match=r"other\.json"):
            read_orders(tmp_path / "other.json")
    with pytest.raises(InvalidSetting, match="the cases have no images"):
        check_orders(read_orders(path), "vlscore")
    with pytest.raises(UnknownName):
        check_orders(read_orders(path), "rouge-x")
