"""Names of numbers in `align`."""

from vlscore.evaluation.alignment.run import columns_named, split_values
from vlscore.metrics import find_metric


def test_a_metric_and_another_setting_of_it_are_two_metrics() -> None:
    names = ["judge", "judge(score=count)", "judge.sum"]
    metrics, columns = split_values(names)
    assert list(map(str, metrics)) == names[:2]
    assert columns == names
    found = columns_named(metrics, columns)
    assert [column for _, column in found] == names


def test_a_name_finds_a_metric_that_got_a_setting_later() -> None:
    metric = find_metric("vlscore(C=2.5)")
    assert columns_named([metric], ["vlscore"]) == [(metric, "vlscore(C=2.5)")]
