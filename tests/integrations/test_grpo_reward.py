"""A reward function as TRL 1.16 calls it."""

import math
import pickle
import warnings

import numpy as np
import pandas
import pytest

import vlscore
from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting, UnknownName
from vlscore.integrations import ReportReward

CANDIDATES = ["left effusion", "no effusion", "edema of both lungs"]
REFERENCES = ["left effusion", "clear lungs", "edema"]


def pictures(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 256, (count, 1, 16, 12), dtype=np.uint8))


def called(reward, completions=CANDIDATES, **columns):
    """Call a reward as TRL 1.16 does, with all that it passes."""
    columns = {"reference": REFERENCES, "trainer_state": object(), "log_extra": print} | columns
    prompts = ["Write the report."] * len(completions)
    ids = [[1, 2]] * len(completions)
    return reward(prompts=prompts, completions=completions, completion_ids=ids, **columns)


def test_a_reward_is_the_metric():
    reward = ReportReward("rouge-l")
    expected = vlscore.Scorer(metrics="rouge-l").score(None, CANDIDATES, REFERENCES).scores
    assert called(reward) == expected.tolist()
    assert reward.__name__ == "rouge-l"
    messages = [[{"role": "assistant", "content": text}] for text in CANDIDATES]
    assert called(reward, messages) == expected.tolist()
    assert called(pickle.loads(pickle.dumps(reward))) == expected.tolist()


def test_a_weighted_sum_turns_each_metric_so_that_larger_is_better():
    # Of distances lower values are better.
    scorer = vlscore.Scorer(HashEncoder(), metrics="segment-distance,cosine", device="cpu")
    images = pictures(3)
    table = scorer.score(images, CANDIDATES, REFERENCES)
    distance, cosine = (values.columns[0] for values in table.values.values())
    assert not scorer.metrics[0].higher_is_better
    reward = ReportReward(scorer, weights=[2, 0.5])
    np.testing.assert_allclose(called(reward, image=images), 0.5 * cosine - 2 * distance)
    views = [[image] for image in images]
    np.testing.assert_allclose(called(reward, images=views), 0.5 * cosine - 2 * distance)
    assert reward.failures == {}


def test_failed_rows_are_counted_and_reported_once(tmp_path):
    scorer = vlscore.Scorer(HashEncoder(), metrics="cosine,vlscore", device="cpu")
    reward = ReportReward(scorer)
    images = [*pictures(2), tmp_path / "absent.png"]
    logged = {}
    with pytest.warns(UserWarning, match=r"row 2 of a step has no reward .*absent\.png"):
        found = called(reward, image=images, log_metric=logged.__setitem__)
    assert found[2] is None
    assert None not in found[:2]
    assert logged["cosine+vlscore failed"] == pytest.approx(1 / 3)
    assert {"cosine", "vlscore"} < set(logged)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        called(reward, image=images)
    assert reward.failures == {"UnreadableImage": 2}
    with pytest.warns(UserWarning, match="reward -1"):
        assert called(ReportReward(scorer, failed=-1), image=images)[2] == -1


@pytest.mark.parametrize(
    "columns",
    [{"reference": None}, {"reference": REFERENCES[:2]}, {"reference": 7}, {"reference": "text"}],
    ids=str,
)
def test_a_call_never_raises(columns):
    reward = ReportReward("rouge-l")
    with pytest.warns(UserWarning, match="has no reward"):
        assert called(reward, **columns) == [None] * 3
    assert reward.failures.total() == 3


@pytest.mark.parametrize("absent", [" ", None, math.nan, "nan", "None", 3])
def test_an_empty_reference_costs_its_own_row(absent):
    reward = ReportReward("rouge-l")
    with pytest.warns(UserWarning, match="row 1 of a step has no reward"):
        found = called(reward, reference=[REFERENCES[0], absent, REFERENCES[2]])
    assert found[1] is None
    assert None not in (found[0], found[2])


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "  ",
        None,
        [],
        (),
        [{"content": None}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "look"}}]}],
        [{"content": [{"type": "image"}]}],
        [{"role": "tool", "content": CANDIDATES[0]}],
        f"<think>{CANDIDATES[0]}",
        f"<think>{CANDIDATES[0]}</think>",
        [{"content": [{"type": "thinking", "text": CANDIDATES[0]}]}],
        "\ud800",
    ],
    ids=repr,
)
def test_an_unusable_completion_is_an_empty_report(completion):
    reward = ReportReward("rouge-l")
    assert called(reward, [completion, *CANDIDATES[1:]])[0] == 0
    assert reward.failures == {}


@pytest.mark.parametrize("opened", ["<think>", ""])
def test_thoughts_are_no_part_of_the_report(opened):
    """Chat templates may write the opening mark into the prompt."""
    text = f"{opened}{CANDIDATES[1]}</think>\n{CANDIDATES[0]}"
    reward = ReportReward("rouge-l")
    expected = called(reward, CANDIDATES)
    for first in (text, [{"role": "assistant", "content": text}]):
        assert called(reward, [first, *CANDIDATES[1:]]) == expected


def test_the_message_of_a_user_is_no_completion():
    reward = ReportReward("rouge-l")
    with pytest.warns(UserWarning, match="the last message of a completion is of the 'user'"):
        found = called(reward, [[{"role": "user", "content": "a"}], *CANDIDATES[1:]])
    assert found[0] is None


UNKNOWN_FORMS = [
    {"role": "assistant", "content": CANDIDATES[0]},
    {"content": CANDIDATES[0]},
    {"text": CANDIDATES[0]},
    [{"from": "gpt", "value": CANDIDATES[0]}],
    [{"text": CANDIDATES[0]}],
    [CANDIDATES[0]],
    [[{"role": "assistant", "content": CANDIDATES[0]}]],
    [{"role": "assistant", "content": {"text": CANDIDATES[0]}}],
    [{"role": "assistant", "content": [CANDIDATES[0]]}],
    [{"role": "assistant", "content": [{"type": "text", "text": 7}]}],
    [{"role": "assistant", "content": 7}],
    [{}],
    [None],
    {CANDIDATES[0]},
    CANDIDATES[0].encode(),
    np.array([1, 2]),
    7,
    0.5,
    True,
    pytest.param(object(), id="object"),
]


@pytest.mark.parametrize("completion", UNKNOWN_FORMS, ids=repr)
def test_a_completion_of_an_unknown_form_fails_and_is_counted(completion):
    """It holds the reference itself: neither 0 nor 1 would be its reward."""
    reward = ReportReward("rouge-l", failed=-5)
    with pytest.warns(UserWarning, match="row 0 of a step has no reward .*must be a text, or a"):
        found = called(reward, [completion, *CANDIDATES[1:]])
    assert found[0] == -5
    assert -5 not in found[1:]
    assert reward.failures == {"InvalidReport": 1}


@pytest.mark.parametrize("kind", [dict, set, "table", str])
@pytest.mark.parametrize("argument", ["completions", "reference"])
def test_what_has_no_order_is_no_list_of_reports(kind, argument):
    values = {
        dict: {text: text for text in CANDIDATES},
        set: set(CANDIDATES),
        "table": pandas.DataFrame(dict.fromkeys(CANDIDATES, CANDIDATES)),
        str: "abc",
    }[kind]
    reward = ReportReward("rouge-l")
    with pytest.warns(UserWarning, match="must be a list of reports"):
        assert called(reward, **{argument: values}) == [None] * 3
    assert reward.failures == {"InvalidReport": 3}


def test_leaving_out_the_section_gains_nothing():
    """A generator must not find out that a report without a heading is left out of the step."""
    reward = ReportReward(vlscore.Scorer(metrics="rouge-l", text_policy="findings"))
    references = [f"FINDINGS: {text}" for text in REFERENCES]
    completions = [f"FINDINGS: {CANDIDATES[0]}", CANDIDATES[1], CANDIDATES[2]]
    assert called(reward, completions, reference=references) == [1, 0, 0]


def test_a_wrong_setting_is_an_error_before_the_training():
    with pytest.raises(UnknownName):
        ReportReward("rouge-ell")
    with pytest.raises(InvalidSetting, match="one finite number for each metric"):
        ReportReward("rouge-l,bleu-4", weights=[1])
    with pytest.raises(InvalidSetting, match="fit"):
        ReportReward("cider-d")
