"""Advice follows from what was measured, and says nothing where nothing would help."""

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder, KeptEncoder
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import Stage
from vlscore.evaluation import stages as advice
from vlscore.evaluation.stages import Stages, advice_on


def measured(decoding, images, reports=0.0, loading=0.0):
    stages = {"decoding PNG": decoding, "encoding images": images, "encoding reports": reports}
    return Stages(
        10, 0, (Stage("loading", loading),), tuple(Stage(n, s) for n, s in stages.items())
    )


@pytest.fixture(autouse=True)
def cache_is_on(monkeypatch, tmp_path):
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def no_units(monkeypatch):
    monkeypatch.setattr("vlscore.encoders.devices._processor_flags", lambda: frozenset({"sse2"}))


@pytest.fixture
def embedder():
    return StudyEmbedder(HashEncoder(), device="cpu", cache=False)


def picture(path, side):
    pixels = np.random.default_rng(side).integers(0, 255, (side, side), np.uint8)
    Image.fromarray(pixels).save(path)
    return str(path)


@pytest.mark.usefixtures("no_units")
def test_where_the_encoder_takes_the_time_decoding_is_no_matter(embedder):
    (said,) = advice_on(measured(0.5, 9.5), embedder, {}, ["a", "b"], False)
    assert said.startswith("bf16 is no help: this processor has no units")


def test_workers_share_a_processor_and_keep_up_with_a_gpu(embedder, monkeypatch):
    said = advice._of_workers("cpu", 0.4, 0.6)
    assert said.startswith("Decoding is 40% of a study")
    assert "share the cores with the encoder" in said
    monkeypatch.setattr(advice, "usable_cores", lambda: 8)
    assert "from 3 --workers processes on." in advice._of_workers("cuda", 0.75, 0.2)
    assert "and here are 8 cores: decoding is the limit" in advice._of_workers("cuda", 0.95, 0.05)


def test_smaller_copies_are_tried_on_images_that_are_larger(tmp_path, monkeypatch, embedder):
    small, large = picture(tmp_path / "small.png", 5), picture(tmp_path / "large.png", 900)
    told = advice_on(measured(8.0, 2.0), embedder, {small: None}, [], False)
    assert not any("Copies" in sentence for sentence in told)
    told = advice_on(measured(8.0, 2.0), embedder, {large: None}, [], False)
    (said,) = [sentence for sentence in told if "Copies" in sentence]
    assert "a shorter side of 4 pixels" in said
    assert "(tried on 1). They change the numbers a little" in said
    # What gains nothing is not advised.
    monkeypatch.setattr(advice, "_seconds", lambda call: 1.0)
    told = advice_on(measured(8.0, 2.0), embedder, {large: None}, [], False)
    assert not any("Copies" in sentence for sentence in told)


def test_a_checkpoint_is_to_be_converted_only_where_it_is_none_yet(embedder):
    for convertible in (True, False):
        (said,) = advice_on(measured(0.1, 0.0, loading=30.0), embedder, {}, [], convertible)[-1:]
        assert said.startswith("What is done once a run takes 30.0 s")
        assert ("safetensors" in said) == convertible


@pytest.mark.parametrize(("seconds", "said"), [(1.0, "2.0 times as fast"), (4.0, "0.5 times")])
def test_bf16_is_advised_where_it_was_faster(monkeypatch, seconds, said):
    for module in ("evaluation.stages", "embedding.embedder"):
        monkeypatch.setattr(f"vlscore.{module}.why_slow", lambda precision, device: None)
    embedder = StudyEmbedder(KeptEncoder(), device="cpu", cache=False)
    times = iter([2.0, seconds + 3, 2.5, seconds, 9.0, seconds + 1])
    monkeypatch.setattr(advice, "_seconds", lambda call: next(times))
    told = advice_on(measured(0.0, 9.0), embedder, {}, ["a", "b"], False)
    if seconds < 2:
        assert f"The encoder is {said} in bf16" in told[0]
    else:
        assert told[0] == "bf16 is no help here: it takes 2.0 times as long as fp32"
