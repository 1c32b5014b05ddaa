"""A metric of torchmetrics: the values of `evaluate`, in one process and in two."""

import csv
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from datetime import timedelta
from multiprocessing import get_context

import numpy as np
import pytest

import vlscore
from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting, UnreadableImage

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics", reason="torchmetrics: pip install 'vlscore[torchmetrics]'")

from vlscore.integrations import ReportMetric  # noqa: E402

TEXTS = "bleu-2,rouge-l,findings-f1"
CANDIDATES = ["left effusion", "no effusion", "edema of both lungs", "heart is normal", "fracture"]
REFERENCES = ["left effusion", "clear lungs", "edema", "heart is enlarged", "a rib fracture"]


def pictures(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 1, 16, 12), dtype=np.uint8)


def updated(metric, start=0, stop=5, size=2):
    for first in range(start, stop, size):
        part = slice(first, min(first + size, stop))
        metric.update(None, CANDIDATES[part], REFERENCES[part])
    return metric


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """What `vlscore.evaluate` says of the same studies: name -> value."""
    folder = tmp_path_factory.mktemp("evaluated")
    with (folder / "table.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "candidate", "reference"])
        rows.writerows(zip("abcde", CANDIDATES, REFERENCES, strict=True))
    scorer = vlscore.Scorer(metrics=TEXTS)
    result = vlscore.evaluate(folder / "table.csv", folder / "out", scorer)
    # A value that is not defined, such as the F1 of an observation in no report, is nan there.
    return dict(result.frame("summary")[["metric", "mean"]].itertuples(index=False))


def same(found, expected):
    assert set(expected) <= set(found)
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(value, abs=1e-12, nan_ok=True), name


def test_the_values_are_those_of_evaluate(evaluated):
    metric = updated(ReportMetric(TEXTS))
    same(metric.compute(), evaluated)
    assert metric.compute()["failed"] == 0
    assert len(evaluated) > 5
    metric.reset()
    assert len(metric.rows) == 0
    same(updated(metric, size=5).compute(), evaluated)


def test_a_copy_and_a_pickled_metric_continue(evaluated):
    half = updated(ReportMetric(TEXTS), 0, 2)
    for copied in (deepcopy(half), pickle.loads(pickle.dumps(half))):
        same(updated(copied, 2, 5).compute(), evaluated)


def test_one_value_has_a_direction():
    metric = updated(ReportMetric(TEXTS, value="bleu-2 corpus"))
    assert metric.compute().shape == ()
    assert metric.higher_is_better is True
    with pytest.raises(InvalidSetting, match=r"no value 'bleu'; the values are bleu-2, "):
        ReportMetric(TEXTS, value="bleu")


def test_images_and_failures(tmp_path):
    scorer = vlscore.Scorer(HashEncoder(), metrics="vlscore,cosine", device="cpu")
    metric = ReportMetric(scorer, on_error="keep")
    images = [*pictures(4), tmp_path / "absent.png"]
    metric.update(images, CANDIDATES, REFERENCES)
    whole = scorer.score(list(pictures(4)), CANDIDATES[:4], REFERENCES[:4])
    found = metric.compute()
    assert float(found["vlscore"]) == pytest.approx(whole.mean())
    assert (found["failed"], found["truncated"]) == (1, 0)
    assert "vlscore" in metric.scorer.signatures
    with pytest.raises(UnreadableImage):
        ReportMetric(scorer).update(images, CANDIDATES, REFERENCES)


def one_of_two(rank, folder):
    """Score a share of the studies; the second process has had none at the first `compute`."""
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=120),
    )
    try:
        metric = ReportMetric(TEXTS)
        if rank == 0:
            updated(metric, 0, 3)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The ``compute`` method")
            metric.compute()
        metric._computed = None
        if rank == 1:
            updated(metric, 3, 5)
        values = {name: float(value) for name, value in metric.compute().items()}
        # After `compute` each process has its own studies again.
        return values, sum(map(len, metric.rows))
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_report_the_same_as_one(evaluated, tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        other = pool.submit(one_of_two, 1, tmp_path)
        for own, (values, rows) in ((3, one_of_two(0, tmp_path)), (2, other.result())):
            same(values, evaluated)
            assert rows == own
