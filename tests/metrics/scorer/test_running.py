"""A validation loop: batches put together are the whole."""

import warnings

import numpy as np
import pytest

from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting, UnreadableImage
from vlscore.metrics import RunningScores, Scorer

REPORTS = ["left effusion", "no effusion", "edema of both lungs", "heart is normal", "fracture"]
REFERENCES = ["left effusion", "clear lungs", "edema", "heart is enlarged", "a rib fracture"]


def pictures(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 1, 16, 12), dtype=np.uint8)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_batches_put_together_are_the_whole(size):
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1,findings-f1", device="cpu")
    whole = scorer.score(pictures(5), REPORTS, REFERENCES)
    running = RunningScores(scorer)
    assert running.compute() == {}
    for start in range(0, 5, size):
        part = slice(start, start + size)
        table = running.update(pictures(5)[part], REPORTS[part], REFERENCES[part])
        assert len(table) == len(REPORTS[part])
    assert len(running) == 5
    for name, column in whole.columns.items():
        np.testing.assert_allclose(running.table().columns[name], column, rtol=1e-6)
    found = running.compute()
    assert found["vlscore"] == pytest.approx(whole.mean())
    for metric, values in whole.values.items():
        for name, value in scorer.plan.corpus(values).items():
            shown = f"{metric} {name}" + ("" if name == "corpus" else " (corpus)")
            assert found[shown] == pytest.approx(value[0], nan_ok=True)
    assert running.table().interval().estimate == pytest.approx(whole.mean())
    running.reset()
    assert len(running) == 0
    with pytest.raises(InvalidSetting, match="call update before table"):
        running.table()


def test_single_studies_and_studies_that_fail(tmp_path):
    running = RunningScores(Scorer(HashEncoder(), device="cpu"))
    running.update(pictures(1)[0, 0], REPORTS[0], REFERENCES[0])
    with pytest.raises(UnreadableImage):
        running.update([tmp_path / "absent.png"], REPORTS[:1], REFERENCES[:1])
    assert len(running) == 1
    both = [tmp_path / "absent.png", pictures(1)[0, 0]]
    running.update(both, REPORTS[:2], REFERENCES[:2], on_error="keep")
    assert list(running.table().failures) == [1]
    assert np.isfinite(running.compute()["vlscore"])


def test_texts_alone_need_no_image():
    running = RunningScores(Scorer(metrics="rouge-l"))
    for candidate, reference in zip(REPORTS, REFERENCES, strict=True):
        running.update(None, candidate, reference)
    together = Scorer(metrics="rouge-l").score(None, REPORTS, REFERENCES)
    assert running.compute() == {"rouge-l": pytest.approx(together.mean())}


def test_metrics_of_a_whole_run_are_fitted_first():
    scorer = Scorer(metrics="cider-d")
    with pytest.raises(InvalidSetting, match="all references of a run"):
        RunningScores(scorer)
    running = RunningScores(scorer.fit(REFERENCES))
    for start in (0, 3):
        part = slice(start, start + 3)
        running.update(None, REPORTS[part], REFERENCES[part])
    whole = scorer.fit(REFERENCES).score(None, REPORTS, REFERENCES)
    assert running.compute()["cider-d"] == pytest.approx(whole.mean())


def test_a_folder_is_the_views_of_one_study(tmp_path):
    from PIL import Image

    for k, name in enumerate(("b.png", "a.png")):
        Image.fromarray(pictures(2)[k, 0]).save(tmp_path / name)
    (tmp_path / "report.txt").write_text("left effusion")
    scorer = Scorer(HashEncoder(), views="mean", device="cpu")
    folder = scorer.score(tmp_path, REPORTS[0], REFERENCES[0])
    views = scorer.score((tmp_path / "a.png", tmp_path / "b.png"), REPORTS[0], REFERENCES[0])
    assert folder.score == views.score


def test_a_guessed_view_is_told():
    """Nothing says which image is frontal: the first is taken, and that must not go unsaid."""
    scorer = Scorer(HashEncoder(), device="cpu")
    views = tuple(pictures(2)[:, 0])
    with pytest.warns(
        UserWarning, match="it is unknown which image is frontal in 1 study with several images"
    ):
        scorer.score(views, REPORTS[0], REFERENCES[0])
    with pytest.warns(UserWarning, match="in 2 studies"):
        scorer.score([views, views], REPORTS[:2], REFERENCES[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer.score(views[0], REPORTS[0], REFERENCES[0])
        Scorer(HashEncoder(), views="mean", device="cpu").score(views, REPORTS[0], REFERENCES[0])
