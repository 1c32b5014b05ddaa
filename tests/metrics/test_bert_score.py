"""BERTScore against greedy matching written out here, over tiny random models."""

import json
import math

import numpy as np
import pytest
import torch

from tests.metrics.contract import check_metric, values_of
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.metrics import Batch, Plan, compute, find_metric
from vlscore.metrics.library import bert_score as library

bert_score = pytest.importorskip("bert_score", reason="bert-score is not installed")
transformers = pytest.importorskip("transformers")

CANDIDATES = ["small left effusion", "the heart is normal", "lungs clear", ""]
REFERENCES = ["no pleural effusion", "heart size is normal .", "no effusion", "clear"]
WORDS = ["no", "small", "left", "pleural", "effusion", "the", "heart", "size", "is", "normal", "."]
WORDS += ["lungs", "are", "clear"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random BERT of three layers whose vocabulary is a few whole words."""
    path = tmp_path_factory.mktemp("models") / "tiny-bert"
    path.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (path / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    transformers.BertModel(config).eval().save_pretrained(path)
    tokenizer = transformers.BertTokenizer(str(path / "vocab.txt"), model_max_length=40)
    tokenizer.save_pretrained(path)
    return path


def _vectors(folder, text, layer):
    words = (folder / "vocab.txt").read_text().split("\n")
    pieces = ["[CLS]", *text.split(), "[SEP]"]
    ids = torch.tensor([[words.index(piece) for piece in pieces]])
    model = transformers.BertModel.from_pretrained(folder)
    with torch.no_grad():
        states = model.eval()(ids, output_hidden_states=True).hidden_states
    return pieces, states[layer][0].double().numpy()


def _greedy(folder, candidate, reference, layer, weight):
    """Zhang et al. 2020, Eq. 1: P, R and F of greedy matching by cosine."""
    (ours, g), (theirs, r) = (_vectors(folder, text, layer) for text in (candidate, reference))
    g, r = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (g, r))
    cosines = g @ r.T
    precision = np.average(cosines.max(1), weights=[weight(p) for p in ours])
    recall = np.average(cosines.max(0), weights=[weight(p) for p in theirs])
    return 2 * precision * recall / (precision + recall), precision, recall


@pytest.mark.parametrize("layer", [1, 2])
def test_equals_greedy_matching_of_the_named_layer(folder, layer):
    name = f"bert-score(model={folder},layer={layer})"
    found = compute(name, CANDIDATES, REFERENCES)
    assert list(found) == [name, f"{name}.precision", f"{name}.recall"]
    for row in range(3):
        expected = _greedy(
            folder, CANDIDATES[row], REFERENCES[row], layer, lambda p: float(not p.startswith("["))
        )
        assert [column[row] for column in found.values()] == pytest.approx(expected, abs=2e-6)
    assert [column[3] for column in found.values()] == [0.0, 0.0, 0.0]


def test_equals_the_library_itself(folder):
    name = f"bert-score(model={folder},layer=2)"
    scorer = bert_score.BERTScorer(model_type=str(folder), num_layers=2)
    for g, r in zip(CANDIDATES[:3], REFERENCES[:3], strict=True):
        p, recall, f = (float(x[0]) for x in scorer.score([g], [r]))
        found = [column[0] for column in compute(name, [g], [r]).values()]
        assert found == pytest.approx([f, p, recall], abs=1e-6)


def test_idf_weights_come_from_all_references_of_the_run(folder):
    name = f"bert-score(model={folder},layer=2,idf=true)"
    plan = Plan(name).fit(REFERENCES)
    (metric,) = plan.metrics

    def weight(piece):
        holding = sum(piece in text.split() for text in REFERENCES)
        return 0.0 if piece.startswith("[") else math.log(5 / (holding + 1))

    for row in range(3):
        values = plan.values(Batch([CANDIDATES[row]], [REFERENCES[row]]))[metric]
        expected = _greedy(folder, CANDIDATES[row], REFERENCES[row], 2, weight)
        found = [column[0] for column in values.columns]
        assert found == pytest.approx(expected, abs=2e-6)
    alone = values_of(name, ["clear"], ["clear"])
    assert np.isnan(alone.columns[0][0])
    assert "their weights are 0" in str(alone.failures[0])


def test_an_empty_reference_counts_in_idf_with_its_two_special_pieces(folder):
    """By hand: log((n + 1) / (holding + 1)), where all n texts hold [CLS] and [SEP]."""
    texts = [*REFERENCES, ""]
    metric = find_metric(f"bert-score(model={folder},layer=2,idf=true)")
    weights, tokenizer = library.idf_weights(metric.fit(texts)), metric._tokenizer
    assert weights[tokenizer.cls_token_id] == weights[tokenizer.sep_token_id] == 0.0
    word = REFERENCES[0].split()[0]
    holding = sum(word in text.split() for text in texts)
    expected = math.log((len(texts) + 1) / (holding + 1))
    assert weights[tokenizer.convert_tokens_to_ids(word)] == pytest.approx(expected)


def test_rescaling_subtracts_the_baseline_of_the_layer(folder, tmp_path):
    table = tmp_path / "baseline.tsv"
    table.write_text("LAYER,P,R,F\n1,0.9,0.9,0.9\n2,0.3,0.4,0.2\n")
    raw = compute(f"bert-score(model={folder},layer=2)", CANDIDATES, REFERENCES)
    name = f"bert-score(model={folder},layer=2,rescale={table})"
    rescaled = compute(name, CANDIDATES, REFERENCES)
    for one, other, b in zip(rescaled.values(), raw.values(), (0.2, 0.3, 0.4), strict=True):
        np.testing.assert_allclose(one, (other - b) / (1 - b), rtol=1e-9)
    signature = Plan(name).signature_of(find_metric(name))
    assert signature.get("rescale").startswith("baseline.tsv@")
    with pytest.raises(InvalidSetting, match="no readable baseline for layer 3"):
        compute(f"bert-score(model={folder},layer=3,rescale={table})", CANDIDATES, REFERENCES)


def test_keeps_the_contract_of_metrics(folder):
    check_metric(f"bert-score(model={folder},layer=2)")
    check_metric(f"bert-score(model={folder},layer=2,idf=true)")


def test_signature_states_model_layer_and_what_is_cut_off_and_no_path(folder):
    name = f"bert-score(model={folder},layer=2)"
    signature = Plan(name).signature_of(find_metric(name))
    assert signature.get("model").startswith("tiny-bert@")
    assert (signature.get("layer"), signature.get("longest")) == ("2", "40")
    assert str(folder) not in str(signature)
    long = "effusion " * 60
    assert compute(name, [long + "clear"], [long + "heart"])[name][0] == pytest.approx(1.0)


def test_what_is_absent_is_said_before_anything_is_loaded(folder, tmp_path):
    with pytest.raises(MissingDependency, match="model=FOLDER"):
        Plan("bert-score").require()
    with pytest.raises(MissingDependency, match=r"no config\.json"):
        Plan(f"bert-score(model={tmp_path})").require()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(MissingDependency, match="pickled weights are not read"):
        Plan(f"bert-score(model={tmp_path})").require()
    for layer, reason in (("", "no default layer"), (",layer=4", "layer=4: the model")):
        name = f"bert-score(model={folder}{layer})"
        with pytest.raises(InvalidSetting, match=reason):
            Plan(name).signature_of(find_metric(name))


def test_the_first_word_of_a_roberta_is_read_as_in_the_middle(tmp_path):
    """bert-score asks for a blank before it; newer tokenizers take no such request when called."""
    from tokenizers import ByteLevelBPETokenizer

    path = tmp_path / "tiny-roberta"
    path.mkdir()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(["no effusion clear heart"] * 9, 320, 1, special_tokens=special)
    trained.save_model(str(path))
    config = transformers.RobertaConfig(
        vocab_size=320,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=66,
    )
    torch.manual_seed(0)
    transformers.RobertaModel(config).save_pretrained(path)
    files = {"vocab": str(path / "vocab.json"), "merges": str(path / "merges.txt")}
    transformers.RobertaTokenizer(**files).save_pretrained(path)
    name = f"bert-score(model={path},layer=1)"
    metric = find_metric(name)
    tokenizer = metric._tokenizer
    (piece,) = metric._utils.sent_encode(tokenizer, "effusion")[1:-1]
    assert metric._utils.sent_encode(tokenizer, "no effusion")[-2] == piece
    assert tokenizer.model_max_length == 64
    twice, once = ["no  effusion   clear"], ["no effusion clear"]
    collapsed = f"bert-score(model={path},layer=1,blanks=collapsed)"
    assert compute([collapsed], twice, once)[collapsed] == pytest.approx([1.0], abs=1e-6)
    # RoBERTa has pieces of their own for further blanks.
    assert compute([name], twice, once)[name][0] < 0.999
