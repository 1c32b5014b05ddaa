"""A scorer in another process, or copied there and back, gives the numbers of the first."""

import copy
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from tests.doubles import HashEncoder
from vlscore.core import Cache, open_cache
from vlscore.errors import DemonstrationEncoderWarning
from vlscore.metrics import Scorer

REPORTS = ["left effusion", "no effusion", "edema of both lungs"]
REFERENCES = ["left effusion", "clear lungs", "edema"]
METRICS = "vlscore,bleu-4,findings-f1,cider-d"


def pictures() -> list[np.ndarray]:
    values = np.random.default_rng(0).integers(0, 256, (3, 16, 12), dtype=np.uint8)
    return list(values)


def columns(scorer: Scorer) -> dict[str, np.ndarray]:
    return scorer.score(pictures(), REPORTS, REFERENCES).columns


@pytest.fixture
def scorer(tmp_path) -> Scorer:
    made = Scorer(HashEncoder(), metrics=METRICS, device="cpu", cache=tmp_path / "cache")
    return made.fit(REFERENCES)


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
@pytest.mark.parametrize("is_used", [False, True])
def test_a_copy_gives_the_same_numbers(scorer, twin_of, is_used):
    if is_used:  # connections are open and memories are full
        columns(scorer)
    twin = twin_of(scorer)
    expected = columns(scorer)
    for name, column in columns(twin).items():
        np.testing.assert_array_equal(column, expected[name])
    assert twin.signatures == scorer.signatures
    assert twin.embedder.encoder is not scorer.embedder.encoder


def test_a_cache_arrives_as_that_of_its_folder(tmp_path):
    cache = open_cache(tmp_path / "kept")
    assert pickle.loads(pickle.dumps(cache)) is cache
    own = Cache(tmp_path / "own", 1 << 20)
    twin = copy.deepcopy(own)
    assert (twin.path, twin.most_bytes) == (own.path, own.most_bytes)


@pytest.mark.slow
def test_a_spawned_process_scores_as_this_one(scorer):
    expected = columns(scorer)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(columns, scorer).result()
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column)


def test_the_bundled_encoder_travels():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonstrationEncoderWarning)
        scorer = Scorer(device="cpu", cache=False)
    images = [np.random.default_rng(k).random((64, 64), dtype=np.float32) for k in range(2)]
    expected = scorer.score(images, REPORTS[:2], REFERENCES[:2])
    twin = pickle.loads(pickle.dumps(scorer))
    found = twin.score(images, REPORTS[:2], REFERENCES[:2])
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert twin.signature == scorer.signature
