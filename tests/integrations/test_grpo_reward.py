"""A reward function as TRL calls it; with TRL itself where it is installed."""

import pickle
import warnings

import numpy as np
import pytest

import vlscore
from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting, UnknownName
from vlscore.integrations import ReportReward
from vlscore.integrations.grpo_reward import text_of_completion

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
    assert list(reward.signatures) == ["rouge-l"]
    messages = [[{"role": "assistant", "content": text}] for text in CANDIDATES]
    assert called(reward, messages) == expected.tolist()
    assert called(pickle.loads(pickle.dumps(reward))) == expected.tolist()


def test_a_weighted_sum_turns_each_metric_so_that_larger_is_better():
    # Of distances lower values are better.
    scorer = vlscore.Scorer(HashEncoder(), metrics="segment-distance,cosine", device="cpu")
    images = pictures(3)
    table = scorer.score(images, CANDIDATES, REFERENCES)
    distance, cosine = (values.headline for values in table.values.values())
    assert not scorer.metrics[0].higher_is_better
    reward = ReportReward(scorer=scorer, weights=[2, 0.5])
    np.testing.assert_allclose(called(reward, image=images), 0.5 * cosine - 2 * distance)
    views = [[image] for image in images]
    np.testing.assert_allclose(called(reward, images=views), 0.5 * cosine - 2 * distance)
    assert reward.failures == {}


def test_failed_rows_are_counted_and_reported_once(tmp_path):
    scorer = vlscore.Scorer(HashEncoder(), metrics="cosine,vlscore", device="cpu")
    reward = ReportReward(scorer=scorer)
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
        assert called(ReportReward(scorer=scorer, failed=-1), image=images)[2] == -1


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


@pytest.mark.parametrize("completion", ["", "  ", None, [], [{}], [{"content": None}], 7, "\ud800"])
def test_an_unusable_completion_is_an_empty_report(completion):
    reward = ReportReward("rouge-l")
    assert called(reward, [completion, *CANDIDATES[1:]])[0] == 0
    assert reward.failures == {}


def test_leaving_out_the_section_gains_nothing():
    """A generator must not find out that a report without a heading is left out of the step."""
    reward = ReportReward("rouge-l", text_policy="findings")
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


def test_texts_of_messages():
    assert text_of_completion([{"role": "user", "content": "a"}, {"content": "b"}]) == "b"
    assert (
        text_of_completion([{"content": [{"type": "text", "text": "a"}, {"text": "b"}]}]) == "a b"
    )


def test_one_step_of_grpo(tmp_path):
    """A model of two small layers with random weights, trained by the real TRL."""
    trl = pytest.importorskip("trl", reason="trl: pip install 'vlscore[integrations]'")
    datasets = pytest.importorskip("datasets")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["[PAD]", "[EOS]", "left", "right", "effusion", "no", "edema", "report", "lungs"]
    plain = Tokenizer(models.WordLevel({w: k for k, w in enumerate(words)}, unk_token="[PAD]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", eos_token="[EOS]", padding_side="left"
    )
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words),
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            pad_token_id=0,
            eos_token_id=1,
        )
    )
    before = model.lm_head.weight.detach().clone()
    images = pictures(2)
    scorer = vlscore.Scorer(HashEncoder(), metrics="vlscore,rouge-l", device="cpu")
    reward = ReportReward(scorer=scorer, image="film", weights=[1, 0.5])
    rows = {
        "prompt": ["report", "report"],
        "reference": ["left effusion", "no edema"],
        "film": [image.tolist() for image in images],
    }
    trainer = trl.GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        train_dataset=datasets.Dataset.from_dict(rows),
        args=trl.GRPOConfig(
            output_dir=str(tmp_path),
            per_device_train_batch_size=4,
            num_generations=2,
            max_completion_length=4,
            max_steps=1,
            logging_steps=1,
            learning_rate=0.1,
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        ),
    )
    # The data set of a real training holds paths; these lists stand for decoded images.
    call = type(reward).__call__
    seen = {}

    def watched(self, prompts=None, completions=(), **columns):
        columns["film"] = [np.array(each, dtype=np.uint8) for each in columns["film"]]
        seen["rewards"] = call(self, prompts, completions, **columns)
        return seen["rewards"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(reward), "__call__", watched)
        trainer.train()
    logged = {name for entry in trainer.state.log_history for name in entry}
    assert len(seen["rewards"]) == 4
    assert all(isinstance(value, float) for value in seen["rewards"])
    assert {"rewards/vlscore+rouge-l/mean", "vlscore", "rouge-l"} <= logged
    assert reward.failures == {}
    if len(set(seen["rewards"])) > 1:
        assert not model.lm_head.weight.equal(before)
