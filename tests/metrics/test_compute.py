"""The call, names with parameters, and its refusals."""

import subprocess
import sys

import numpy as np
import pytest

from vlscore.errors import InvalidReport, InvalidSetting, MissingDependency, UnknownName
from vlscore.metrics import METRICS, EmbeddingTriples, compute, find_metric, signature
from vlscore.metrics.providers import base


def _triples(count: int, C: float | None = 2.0) -> EmbeddingTriples:
    i, g, r = np.random.default_rng(1).normal(size=(3, count, 4))
    return EmbeddingTriples(i, g, r, "enc:test@0", C)


def test_values_stand_under_the_names_asked_for_in_that_order():
    values = compute(
        ["rouge-l", "vlscore", "bleu-4( smoothing = exp )"],
        ["a b", "c"],
        ["a b", "d"],
        embeddings=_triples(2),
    )
    assert list(values) == ["rouge-l", "vlscore", "bleu-4(smoothing=exp)"]


def test_embedded_metrics_equal_the_kernels():
    from vlscore import similarity

    triples = _triples(6)
    i, g, r = triples.images, triples.candidates, triples.references
    names = ["vlscore", "bounding_sphere", "clipscore"]
    values = compute(names, [""] * 6, [""] * 6, embeddings=triples)
    np.testing.assert_array_equal(values["vlscore"], similarity.vlscore(i, g, r, 2.0))
    np.testing.assert_array_equal(
        values["bounding_sphere"], similarity.bounding_sphere_radius(i, g, r)
    )
    np.testing.assert_array_equal(values["clipscore"], similarity.clipscore(i, g))


@pytest.mark.parametrize("name", ["", "bleu", "BLEU-4", "bleu-4(", "no such metric", "(x=1)"])
def test_unknown_names_are_refused_with_a_list(name):
    with pytest.raises(UnknownName, match="rouge-l"):
        find_metric(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bleu-4(smoothing=magic)", "one of none, exp, add-k, floor"),
        ("bleu-4(n=3)", "no parameter 'n'; it has: smoothing, tokens"),
        ("rouge-l(beta=high)", "beta is a float"),
        ("rouge-l(stemming=perhaps)", "stemming is a bool"),
        ("rouge-l(beta)", 'written "name=value"'),
        ("vlscore(C=1)", "no parameter 'C'; it has: none"),
    ],
)
def test_wrong_parameters_are_refused_with_what_would_do(name, message):
    with pytest.raises(InvalidSetting, match=message):
        find_metric(name)


def test_parameters_set_twice_keep_what_was_set_before():
    metric = METRICS["bleu-2"](smoothing="exp")(tokens="cxr")
    assert str(metric) == "bleu-2(smoothing=exp,tokens=cxr)"
    assert str(metric(smoothing="none")) == "bleu-2(tokens=cxr)"


def test_embeddings_are_asked_for():
    with pytest.raises(InvalidSetting, match="give embeddings="):
        compute(["vlscore"], ["a"], ["b"])
    with pytest.raises(InvalidSetting, match="constant C"):
        compute(["vlscore"], ["a"], ["b"], embeddings=_triples(1, C=None))


def test_lengths_must_agree():
    with pytest.raises(InvalidSetting, match="candidates 2, references 1"):
        compute(["bleu-1"], ["a", "b"], ["a"])
    with pytest.raises(InvalidSetting, match="embeddings 3"):
        compute(["bleu-1"], ["a"], ["a"], embeddings=_triples(3))
    with pytest.raises(InvalidSetting, match="one shape"):
        EmbeddingTriples(np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((1, 3)), "")


def test_what_is_no_text_is_named_by_position():
    with pytest.raises(InvalidReport, match=r"references\[1\] is a NoneType"):
        compute(["bleu-1"], ["a", "b"], ["a", None])
    with pytest.raises(InvalidReport, match="not one text"):
        compute(["bleu-1"], "a report", ["a report"])


def test_absent_library_is_named_with_its_extra(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(base, "import_module", absent)
    for name, library in (("bleu-1", "sacrebleu"), ("rouge-l", "rouge-score"), ("meteor", "nltk")):
        with pytest.raises(MissingDependency, match=rf"{library} .*vlscore\[metrics\]"):
            compute([name], ["a"], ["b"])


def test_libraries_are_imported_only_when_used():
    program = "import sys, vlscore.metrics; print({'nltk', 'sacrebleu'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"set()"


def test_signature_tells_settings_and_library():
    assert "|smoothing:exp|tokens:13a|level:sentence|case:lower|sacrebleu:" in signature(
        "bleu-4(smoothing=exp)"
    )
    assert signature("vlscore", _triples(1)).startswith("vlscore|enc:test@0|C:2|v:")
