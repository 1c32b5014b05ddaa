"""Composite files: what they say is computed, what is wrong in them is refused, nothing is run."""

import json

import numpy as np
import pytest

from tests.metrics.contract import check_metric, values_of
from vlscore.errors import InvalidSetting, MissingDependency, UnknownName, VLScoreError
from vlscore.metrics import (
    METRICS,
    Batch,
    Composite,
    CompositeInput,
    Computed,
    compute,
    find_metric,
    find_metrics,
    read_composite,
    signature,
    write_composite,
)

CANDIDATES = ["Small left effusion.", "Clear lungs.", "The heart is enlarged today."]
REFERENCES = ["Left pleural effusion.", "The lungs are clear.", "The heart is enlarged."]


def made(**changes):
    inputs = tuple(
        CompositeInput(name, str(signature(name)), mean, deviation, weight)
        for name, mean, deviation, weight in (
            ("bleu-1", 0.4, 0.2, 0.75),
            ("rouge-l", 0.5, 0.25, 0.25),
        )
    )
    return Composite(
        **{
            "inputs": inputs,
            "rating": "total errors",
            "pairs": 200,
            "studies": 50,
            "ridge": 0.1,
            "tau_b": 0.6,
            "low": 0.5,
            "high": 0.7,
            "seen": frozenset({"ab", "cd"}),
            **changes,
        }
    )


@pytest.fixture
def file(tmp_path):
    write_composite(tmp_path / "composite.json", made())
    return tmp_path / "composite.json"


def test_what_is_written_is_read_again(file):
    assert read_composite(file) == made()
    assert len(file.read_text(encoding="utf-8")) < 2000


def test_its_values_are_the_weighted_sum_of_its_inputs(file):
    found = compute(["bleu-1", "rouge-l", f"composite:{file}"], CANDIDATES, REFERENCES)
    expected = 0.75 * (found["bleu-1"] - 0.4) / 0.2 + 0.25 * (found["rouge-l"] - 0.5) / 0.25
    np.testing.assert_allclose(found[f"composite(file={file})"], expected, atol=1e-12)


def test_it_is_a_metric_like_any_other(file):
    metric = find_metric(f"composite:{file}")
    assert find_metric(str(metric)) == metric
    assert hash(find_metric(f" composite:{file} ")) == hash(metric)
    assert metric.cost == "free"
    assert [str(m) for m in find_metrics(f"bleu-4,composite:{file}")] == ["bleu-4", str(metric)]
    check_metric(metric)
    stated = str(signature(metric))
    assert f"file:given@{read_composite(file).digest}" in stated
    assert str(file) not in stated.split("|of:")[0].replace(str(metric), "")
    assert "bleu-1,smoothing:none" in stated


def test_lower_is_better_inputs_count_the_other_way(tmp_path):
    pytest.importorskip("textstat")
    given = CompositeInput("dale-chall", str(signature("dale-chall")), 5.0, 2.0, 1.0)
    write_composite(tmp_path / "c.json", made(inputs=(given,)))
    name = f"composite:{tmp_path / 'c.json'}"
    found = compute(["dale-chall", name], CANDIDATES, REFERENCES)
    values = [*found.values()]
    np.testing.assert_allclose(values[1], -(values[0] - 5) / 2, atol=1e-12)


def test_an_input_that_is_computed_otherwise_is_refused_but_a_newer_vlscore_is_not(tmp_path):
    given = made().inputs[0]
    for old, new, is_refused in (
        ("tokens:13a", "tokens:cxr", True),
        ("|v:", "|enc:biovil@1234|v:", True),
        ("|v:", "|v:0.0.", False),
        ("sacrebleu:", "sacrebleu:0.", False),
    ):
        stated = given.signature.replace(old, new)
        assert stated != given.signature
        inputs = (CompositeInput("bleu-1", stated, 0.4, 0.2, 1.0),)
        write_composite(tmp_path / "c.json", made(inputs=inputs))
        name = f"composite:{tmp_path / 'c.json'}"
        if is_refused:
            with pytest.raises(InvalidSetting, match="was fitted with other settings"):
                compute(name, CANDIDATES, REFERENCES)
        else:
            assert np.isfinite(next(iter(compute(name, CANDIDATES, REFERENCES).values()))).all()


def _edited(content, **changes):
    return {**content, **changes}


def _inputs(**changes):
    def edit(content):
        first, *rest = content["inputs"]
        return {**content, "inputs": [{**first, **changes}, *rest]}

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: [c], "is not a composite"),
        (lambda c: _edited(c, format="pickle"), "format"),
        (lambda c: _edited(c, inputs=[]), "sum to 0"),
        (lambda c: _edited(c, inputs=[c["inputs"][0]] * 2), "is listed twice"),
        (lambda c: _edited(c, other=1), "is not a composite"),
        (_inputs(weight=0.9), "sum to 1.15"),
        (_inputs(weight=-0.25), "its weight not below"),
        (_inputs(weight="0.75"), "is not a composite"),
        (_inputs(mean=float("nan")), "is not finite"),
        (_inputs(mean=10**400), "is not a composite"),
        (_inputs(deviation=0), "must be above 0"),
        (_inputs(metric=" Composite (file=x.json)"), "must not contain a composite"),
        (_inputs(metric=["bleu-1"]), "is not a composite"),
        (_inputs(signature=None), "is not a composite"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(file, edit, message):
    content = edit(json.loads(file.read_text(encoding="utf-8")))
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InvalidSetting, match=message) as raised:
        find_metric(f"composite:{file}")
    assert str(file) in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1e999", b"null"])
def test_what_is_no_json_is_refused(file, content):
    file.write_bytes(content)
    with pytest.raises(InvalidSetting, match="is not a composite"):
        find_metric(f"composite:{file}")


def test_no_module_is_imported_for_a_file(file, tmp_path, monkeypatch):
    (tmp_path / "sprung.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    content = _inputs(metric="sprung:METRIC")(json.loads(file.read_text(encoding="utf-8")))
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnknownName, match=r"names the metric 'sprung:METRIC'.*--metrics"):
        find_metric(f"composite:{file}")


def test_no_hub_is_asked_for_a_file(file, monkeypatch):
    monkeypatch.setattr("vlscore.encoders.weight_files.download", lambda *_: pytest.fail("asked"))
    named = "chexbert-similarity(weights=w.pth,vocabulary=stranger/model)"
    content = _inputs(metric=named)(json.loads(file.read_text(encoding="utf-8")))
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnknownName, match=r"stranger/model.*repository of a hub"):
        find_metric(f"composite:{file}")


def test_absent_files_unknown_metrics_and_the_bare_name(tmp_path, file):
    with pytest.raises(InvalidSetting, match="does not exist"):
        find_metric(f"composite:{tmp_path / 'absent.json'}")
    with pytest.raises(InvalidSetting, match="is not a composite"):
        find_metric(f"composite:{tmp_path}")
    with pytest.raises(InvalidSetting, match="rename"):
        find_metric("composite:a(b.json")
    content = _inputs(metric="bleu-7")(json.loads(file.read_text(encoding="utf-8")))
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnknownName):
        find_metric(f"composite:{file}")
    content = _inputs(metric="chexbert-f1")(content)
    file.write_text(json.dumps(content), encoding="utf-8")
    assert find_metric(f"composite:{file}").missing().startswith("chexbert-f1: it needs")
    with pytest.raises(MissingDependency, match="composite:FILE"):
        compute("composite", CANDIDATES, REFERENCES)
    assert METRICS["composite"].cost == "model"


def test_a_pair_that_an_input_has_no_value_for_has_none(tmp_path):
    """METEOR apart, text metrics have a value for any text; a metric of one's own may not."""
    write_composite(tmp_path / "c.json", made())
    metric = find_metric(f"composite:{tmp_path / 'c.json'}")
    failed, sound = (values_of(name, CANDIDATES, REFERENCES) for name in ("bleu-1", "rouge-l"))
    column = failed.columns[0].copy()
    column[1] = np.nan
    failed = Computed([column], None, {1: VLScoreError("broken")}, failed.signature)
    found = metric.compute(Batch(CANDIDATES, REFERENCES, inputs=[failed, sound]))
    assert [*found.failures] == [1]
    assert np.isfinite(found.columns[0][[0, 2]]).all()
