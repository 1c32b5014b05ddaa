"""The judge by a language model of transformers, made here: tiny, and with random weights."""

import json

import pytest

from vlscore.errors import IncompatibleCheckpoint, InvalidSetting, WeightsNotFound
from vlscore.metrics import JudgeCase, ModelJudge, QuestionFailed, compute, find_judge_model
from vlscore.metrics.judge import judge_answers

pytest.importorskip("llguidance", reason="needs llguidance: pip install 'vlscore[judge]'")

CASES = [
    JudgeCase("Small left effusion. Clear.", "No edema."),
    JudgeCase("", "Edema."),
    JudgeCase("", ""),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Llama of one layer, with one token for each byte and random weights."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    words = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={w: k for k, w in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=8192, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def short_answers(monkeypatch):
    """Texts of an answer may have 8 characters, so that random ones end soon."""
    for name in ("_NAME", "_CORRECTION", "_REASON"):
        monkeypatch.setattr(judge_answers, name, 8)
    monkeypatch.setattr(judge_answers, "MOST", 1)


def test_answers_of_a_random_model_follow_the_schema(folder, short_answers):
    judge = ModelJudge(find_judge_model(folder), prompt="zero-shot", cache=False)
    outcomes = judge.judge_all(CASES)
    assert [outcome.error for outcome in outcomes] == [None] * 3
    assert [outcome.counts.answers for outcome in outcomes] == [1, 1, 1]
    assert outcomes[2].judgement.errors == ()
    for outcome, case in zip(outcomes, CASES, strict=True):
        for error in outcome.judgement.errors:
            assert error.candidate is None or error.candidate.words in case.candidate
    assert judge.facts["model"].startswith(f"{folder.name}@")
    # The same judgement alone as in a batch, where questions are padded.
    alone = ModelJudge(find_judge_model(folder), prompt="zero-shot", cache=False)
    assert alone.judge(*CASES[1]) == outcomes[1].judgement


def test_without_the_constraint_the_same_model_writes_no_answer(folder, short_answers, monkeypatch):
    from vlscore.metrics.judge import judge_local

    monkeypatch.setattr(judge_local.SchemaConstraint, "__call__", lambda self, ids, scores: scores)
    own = folder.parent / "brief.toml"
    own.write_text('version = "1"\ninstructions = "x"\nagain = "{error}"\n[request]\nmax_tokens=40')
    judge = ModelJudge(find_judge_model(folder), prompt=str(own), cache=False)
    (outcome,) = judge.judge_all(CASES[:1])
    assert "no usable answer in 3 attempts" in str(outcome.error)


def test_the_metric_gives_the_judges_numbers(folder, short_answers, cache_folder):
    metric = f"judge(model={folder},prompt=zero-shot)"
    values = compute(metric, [CASES[0].candidate], [CASES[0].reference])
    judge = ModelJudge(find_judge_model(folder), prompt="zero-shot")
    judgement = judge.judge(CASES[0].candidate, CASES[0].reference)
    assert values[f"{metric}.sum"].tolist() == [judgement.sum]
    assert values[f"{metric}.count"].tolist() == [judgement.count]


def test_what_a_local_model_cannot_do_is_explained(folder, tmp_path, short_answers):
    with pytest.raises(WeightsNotFound, match="there is no such folder"):
        find_judge_model(tmp_path / "absent")
    with pytest.raises(WeightsNotFound, match=r"config.json"):
        find_judge_model(tmp_path)
    own = tmp_path / "hot.toml"
    own.write_text(
        'version = "1"\ninstructions = "x"\nagain = "{error}"\n[request]\ntemperature = 0.7\n'
    )
    with pytest.raises(InvalidSetting, match="most likely token"):
        ModelJudge(find_judge_model(folder), prompt=str(own))
    long = JudgeCase("Edema. " * 2000, "Clear.")
    judge = ModelJudge(find_judge_model(folder), prompt="zero-shot", cache=False)
    (outcome,) = judge.judge_all([long])
    assert isinstance(outcome.error, QuestionFailed)
    assert "the model can read only 8192" in str(outcome.error)


def test_a_chat_template_is_used_and_its_refusal_is_explained(folder, tmp_path, short_answers):
    import shutil

    other = tmp_path / "chat"
    shutil.copytree(folder, other)
    settings = json.loads((other / "tokenizer_config.json").read_text())
    for template, reason in (
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", None),
        ("{{ raise_exception('no system role') }}", "no system role"),
    ):
        text = json.dumps({**settings, "chat_template": template})
        (other / "tokenizer_config.json").write_text(text)
        (other / "chat_template.jinja").unlink(missing_ok=True)
        judge = ModelJudge(find_judge_model(other), prompt="zero-shot", cache=False)
        if reason is None:
            assert judge.judge("Edema.", "Clear.") is not None
        else:
            with pytest.raises(IncompatibleCheckpoint, match=reason):
                judge.judge("Edema.", "Clear.")
