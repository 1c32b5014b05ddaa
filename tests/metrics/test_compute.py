"""The call, names with parameters, and its refusals."""

from collections import Counter, deque

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore import score
from vlscore.core import Signature
from vlscore.errors import InvalidReport, InvalidSetting, MissingDependency
from vlscore.metrics import (
    METRICS,
    EmbeddingTriples,
    Scorer,
    compute,
    find_metric,
    find_metrics,
    signature,
)
from vlscore.metrics import metric as base
from vlscore.retrieval import TextSearch


def _triples(count: int, C: float | None = 2.0) -> EmbeddingTriples:
    i, g, r = np.random.default_rng(1).normal(size=(3, count, 4))
    return EmbeddingTriples(i, g, r, "enc:test@0", C)


@pytest.mark.parametrize("names", ["", [], ",", 5, None])
def test_no_name_at_all_is_refused(names):
    with pytest.raises(
        InvalidSetting, match=r"no metric is named|must be a vlscore\.metrics\.Metric"
    ):
        find_metrics(names)


def test_metrics_are_named_in_one_text_or_a_list_each_once():
    expected = [find_metric("cosine"), find_metric("bleu-4(smoothing=exp,tokens=cxr)")]
    for names in (
        "cosine, bleu-4(smoothing=exp,tokens=cxr),COSINE",
        ["cosine", expected[1], "cosine"],
        (expected[0], "bleu_4(tokens=cxr,smoothing=exp)"),
    ):
        assert list(find_metrics(names)) == expected
    assert list(find_metrics(expected[0])) == expected[:1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bleu-4(smoothing=magic)", "one of none, exp, add-k, floor"),
        ("bleu-4(n=3)", "no parameter 'n'; it has: smoothing, tokens"),
        ("rouge-l(beta=high)", "beta must be a number"),
        ("rouge-l(stemming=perhaps)", "stemming must be true or false"),
        ("rouge-l(beta)", 'written "name=value"'),
        ("cosine(C=1)", "no parameter 'C'; it has: none"),
        ("rouge-l(beta=nan)", "finite number, not 'nan'"),
        ("rouge-l(beta=inf)", "finite number"),
        ("rouge-l(beta=0)", "greater than 0"),
        ("meteor-nltk(alpha=nan)", "finite number"),
        ("vlscore(C=0)", "C must be greater than 0"),
        ("vlscore(C=-1)", "C must be greater than 0"),
        ("vlscore(C=nan)", "finite number"),
        ("vlscore(C=true)", "C must be a number"),
    ],
)
def test_wrong_parameters_are_refused_with_what_would_do(name, message):
    with pytest.raises(InvalidSetting, match=message):
        find_metric(name)


@pytest.mark.parametrize("C", [0, -2.0, float("nan"), float("inf"), True, "3"])
def test_a_constant_that_is_no_positive_number_is_refused_beside_embeddings(C):
    i, g, r = np.zeros((3, 1, 2))
    with pytest.raises(InvalidSetting, match="C must be a positive number"):
        EmbeddingTriples(i, g, r, "enc:test@0", C)


@given(st.floats(min_value=1e-300, allow_infinity=False))
def test_a_metric_is_found_by_what_it_prints_whatever_its_parameter(C):
    metric = METRICS["vlscore"](C=C)
    assert find_metric(str(metric)) == metric


def test_embeddings_are_asked_for():
    with pytest.raises(InvalidSetting, match="pass embeddings="):
        compute(["vlscore"], ["a"], ["b"])
    with pytest.raises(InvalidSetting, match="constant C"):
        compute(["vlscore"], ["a"], ["b"], embeddings=_triples(1, C=None))


def test_lengths_must_agree():
    with pytest.raises(InvalidSetting, match="candidates 2, references 1"):
        compute(["bleu-1"], ["a", "b"], ["a"])
    with pytest.raises(InvalidSetting, match="embeddings 3"):
        compute(["bleu-1"], ["a"], ["a"], embeddings=_triples(3))
    with pytest.raises(InvalidSetting, match="the same shape"):
        EmbeddingTriples(np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((1, 3)), "")


def test_what_is_no_text_is_named_by_position():
    with pytest.raises(InvalidReport, match=r"references\[1\] must be a text, not None"):
        compute(["bleu-1"], ["a", "b"], ["a", None])
    with pytest.raises(InvalidReport, match="not one text"):
        compute(["bleu-1"], "a report", ["a report"])


def test_absent_library_is_named_with_its_extra(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(base, "import_module", absent)
    monkeypatch.setattr(base, "find_spec", absent)
    for name, library, package in (
        ("bleu-1", "sacrebleu", "sacrebleu"),
        ("rouge-l", "rouge-score", "rouge-score"),
        ("meteor-nltk", "nltk", r"vlscore\[metrics\]"),
    ):
        with pytest.raises(MissingDependency, match=rf"{library} .*pip install '{package}'"):
            compute([name], ["a"], ["b"])


def test_signature_tells_settings_and_library():
    bleu = signature("bleu-4(smoothing=exp)")
    assert str(bleu).startswith("bleu-4|smoothing:exp|tokens:13a|case:lower|sacrebleu:")
    assert str(signature("vlscore", _triples(1))).startswith("vlscore|C:2|enc:test@0|v:")
    assert signature("vlscore(C=7)", _triples(1)).get("C") == "7"
    assert not signature("vlscore").has("enc")


def test_every_signature_parses_back():
    for name in METRICS:
        try:
            found = signature(name, _triples(1))
        except MissingDependency:
            continue
        assert Signature.parse(str(found)) == found


def test_references_are_needed_only_by_metrics_that_look_at_them():
    triples = _triples(2)
    without = EmbeddingTriples(triples.images, triples.candidates, None, "enc:test@0")
    alone = compute("clipscore", ["a", "b"], None, embeddings=without)["clipscore"]
    both = compute("clipscore", ["a", "b"], ["c", "d"], embeddings=triples)["clipscore"]
    assert alone.tobytes() == both.tobytes()
    with pytest.raises(InvalidSetting, match="need references, but there are none"):
        compute("bleu-1", ["a"], None)


_WITHOUT_ORDER = {
    "dict": {"s1": ["Cardiomegaly."], "s2": ["Clear."]},
    "dict of texts": {"s1": "Cardiomegaly.", "s2": "Clear."},
    "counter": Counter(["Cardiomegaly.", "Clear."]),
    "keys": {"s1": 1, "s2": 2}.keys(),
    "set": {"Cardiomegaly.", "Clear."},
    "frozen set": frozenset({"Cardiomegaly.", "Clear."}),
    "data frame": pandas.DataFrame({"a": ["x", "y"], "b": ["x", "y"]}),
    "frame of one column": pandas.DataFrame({"a": ["x", "y"]}),
    "arrow table": pyarrow.table({"a": ["x", "y"], "b": ["x", "y"]}),
    "array of two axes": np.array([["a", "b"], ["c", "d"]]),
    "one text": "ab",
    "bytes": b"ab",
}


@pytest.mark.parametrize("texts", _WITHOUT_ORDER.values(), ids=_WITHOUT_ORDER)
def test_what_has_no_order_of_texts_is_refused_everywhere(texts):
    """`compute` scored the keys of pycocoevalcap's dicts: 1.0 for opposite reports."""
    good = ["Clear.", "No edema."]
    scorer = Scorer(metrics="rouge-l")
    calls = [
        lambda: compute("rouge-l,bleu-1", texts, texts),
        lambda: compute("rouge-l", good, texts),
        lambda: compute("rouge-l", texts, good),
        lambda: scorer.fit(texts),
        lambda: TextSearch("rouge-l", texts),
        lambda: TextSearch("rouge-l", good).search(texts),
    ]
    if not isinstance(texts, str):
        calls += [
            lambda: scorer.score(None, texts, texts),
            lambda: scorer.score(None, good, texts),
            lambda: score(None, texts, good, metrics="rouge-l"),
        ]
    for call in calls:
        with pytest.raises(InvalidReport, match=r"must be a list of reports|is a text, not"):
            call()


def test_every_list_of_texts_is_the_same_list():
    texts = ["Clear lungs.", "No edema."]
    expected = compute("rouge-l", texts, texts[::-1])["rouge-l"].tolist()
    for kind in (tuple, np.array, pandas.Series, pandas.Index, iter, deque, pyarrow_texts):
        found = compute("rouge-l", kind(texts), kind(texts[::-1]))["rouge-l"].tolist()
        assert found == expected


def pyarrow_texts(texts):
    return pyarrow.array(texts).to_pylist()
