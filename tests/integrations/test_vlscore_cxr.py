"""The classes of vlscore-cxr, with its arguments, results and column names."""

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import vlscore
from tests.doubles import HashEncoder
from vlscore import VLSCORE_NORM_LIMITR, LIMITREncoder, VLscore, metrics, triangle_vlscore
from vlscore.embedding.encoder_source import EncoderSource
from vlscore.errors import InvalidSetting, WeightsNotFound


@pytest.fixture
def encoder(monkeypatch, tmp_path):
    """A LIMITREncoder whose vectors are those of a small encoder, which loads at once."""
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache"))
    small = EncoderSource(HashEncoder())
    monkeypatch.setattr("vlscore.embedding.embedder.named_encoder", lambda *_, **__: small)
    return LIMITREncoder(show_progress=False)


@pytest.fixture
def films(tmp_path):
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"film{k}.png" for k in range(4)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (300, 280), dtype=np.uint8)).save(path)
    return paths


def test_arguments_have_the_names_order_and_defaults_of_the_package():
    """As in vlscore-cxr 0.1.2; `tokenizer` alone is ours."""

    def defaults(function):
        found = inspect.signature(function).parameters.values()
        return {p.name: p.default for p in found if p.name != "self"}

    no = inspect.Parameter.empty
    common = {"checkpoint": None, "device": None, "batch_size": 16}
    last = {"cache_dir": None, "show_progress": True}
    assert list(defaults(VLscore).items()) == list(
        {**common, "norm": 890.0, **last, "encoder": None, "tokenizer": None}.items()
    )
    assert list(defaults(LIMITREncoder).items()) == list(
        {**common, **last, "tokenizer": None}.items()
    )
    assert list(defaults(VLscore.compute)) == ["images", "gt", "output"]
    assert list(defaults(VLscore.compute_from_embeddings)) == [
        "image_embs", "gt_embs", "output_embs",
    ]  # fmt: skip
    assert defaults(VLscore.compute_csv) == {
        "csv_path": no, "image_root": None, "image_col": "Path_frontal", "gt_col": "gt",
        "output_col": "output", "out_csv": None,
    }  # fmt: skip
    assert defaults(triangle_vlscore)["norm"] == VLSCORE_NORM_LIMITR == 890.0


def test_the_triangle_is_herons():
    """By Heron's formula from the sides, another way than both packages'."""
    image, gt, output = np.random.default_rng(1).normal(size=(3, 50, 6))
    a, b, c = (
        np.linalg.norm(x - y, axis=1) for x, y in ((image, gt), (gt, output), (output, image))
    )
    s = (a + b + c) / 2
    expected = np.maximum(1 - np.sqrt(s * (s - a) * (s - b) * (s - c)) / 7, 0)
    found = triangle_vlscore(image, gt, output, norm=7)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(VLscore(norm=7).compute_from_embeddings(image, gt, output), found)
    assert found.dtype == np.float64
    with pytest.raises(ValueError, match=r"\(50, 6\), \(49, 6\), \(50, 6\)"):
        triangle_vlscore(image, gt[1:], output)
    image[3] = np.nan
    assert np.flatnonzero(np.isnan(triangle_vlscore(image, gt, output))).tolist() == [3]


def test_scores_are_of_the_encoders_vectors(encoder, films):
    gt, output = ["No effusion.", "Edema.", "Clear.", "x"], ["Effusion.", "Edema.", "Wide.", "y"]
    metric = VLscore(encoder=encoder, norm=3)
    found = metric.compute(images=films, gt=gt, output=output)
    vectors = (encoder.encode_images(films), encoder.encode_texts(gt), encoder.encode_texts(output))
    assert all(each.dtype == np.float32 and each.shape[0] == 4 for each in vectors)
    np.testing.assert_allclose(found, triangle_vlscore(*vectors, norm=3), atol=1e-6)

    # Any object with the two methods is an encoder, as in the package.
    class Other:
        encode_images, encode_texts = encoder.encode_images, encoder.encode_texts

    np.testing.assert_allclose(
        VLscore(encoder=Other(), norm=3).compute(films, gt, output), found, atol=1e-6
    )
    assert VLscore(encoder=encoder).compute([], [], []).shape == (0,)
    with pytest.raises(ValueError, match="Length mismatch: images=4, gt=4, output=3"):
        metric.compute(films, gt, output[1:])


def test_bad_rows_are_nan_and_named_in_one_warning_and_others_keep_their_scores(encoder, films):
    metric = VLscore(encoder=encoder, norm=3)
    gt = ["a", "b", "c", "d", None, "e", "f", "g"]
    output = ["k", float("nan"), " ", "nan", "l", "m", "n", "o"]
    broken = films[0].with_name("broken.png")
    broken.write_bytes(films[0].read_bytes()[:900])
    images = [*films, films[0], broken, "gone.png", films[1].parent]
    with pytest.warns(UserWarning, match="7 of 8 studies could not be used") as said:
        found = metric.compute(images, gt, output)
    assert len(said) == 1
    assert np.isnan(found).tolist() == [False] + 7 * [True]
    message = str(said[0].message)
    for part in ("1: output is empty", "3: output is 'nan'", "4: gt is empty", "broken.png"):
        assert part in message
    assert said[0].filename == __file__
    np.testing.assert_allclose(found[:1], metric.compute(images[:1], gt[:1], output[:1]), atol=1e-6)
    with pytest.warns(UserWarning, match="1 of 2 images .* 1: gone.png"):
        assert np.isnan(encoder.encode_images([films[0], "gone.png"])[1]).all()
    with pytest.warns(UserWarning, match="1 of 2 texts .* 0: NoneType"):
        assert np.isfinite(encoder.encode_texts([None, ""])[1]).all()


def test_truncated_texts_are_named_in_a_warning(encoder, films):
    most = encoder.embedder.encoder.card.max_tokens
    with pytest.warns(UserWarning, match=f"1 texts have more than {most} tokens"):
        VLscore(encoder=encoder, norm=3).compute(films[:1], ["word " * (most + 9)], ["a"])


def test_a_table(encoder, films, tmp_path):
    path, out = tmp_path / "reports.csv", tmp_path / "scores.csv"
    path.write_text(
        "id,Path_frontal,gt,output,age\n"
        "007,film0.png,No effusion.,Effusion.,61\n"
        "008,film1.png,Clear.,,62\n"
        "009,,Clear.,None,63\n"
        f"010,{films[2]},NA was given.,Clear.,64.5\n",
        encoding="utf-8",
    )
    metric = VLscore(encoder=encoder, norm=3)
    with pytest.warns(UserWarning, match="2 of 4 studies"):
        found = metric.compute_csv(path, image_root=tmp_path, out_csv=out)
    assert list(found.columns) == ["id", "Path_frontal", "gt", "output", "age", "vlscore"]
    assert found["age"].tolist() == [61, 62, 63, 64.5]
    assert found["vlscore"].isna().tolist() == [False, True, True, False]
    expected = metric.compute([films[0]], ["No effusion."], ["Effusion."])
    assert found["vlscore"][0] == pytest.approx(expected[0], abs=1e-6)
    written = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert written["id"].tolist() == ["007", "008", "009", "010"]
    assert written["output"].tolist() == ["Effusion.", "", "None", "Clear."]
    assert float(written["vlscore"][0]) == found["vlscore"][0]
    with pytest.raises(KeyError, match="no column 'reference'; it has id, Path_frontal"):
        metric.compute_csv(path, gt_col="reference")


def test_a_checkpoint_is_needed_for_images_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("VLSCORE_WEIGHTS", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(WeightsNotFound, match=r"gone\.ckpt"):
        VLscore("gone.ckpt")
    metric = VLscore(cache_dir=str(tmp_path))
    assert metric.compute_from_embeddings(*np.eye(3)[:, None]).shape == (1,)
    with pytest.raises(WeightsNotFound, match="vlscore weights fetch limitr"):
        metric.compute(["a.png"], ["a"], ["b"])


def test_the_names_are_there_and_load_nothing_before_their_use():
    program = (
        "import sys\nfrom vlscore import VLscore, LIMITREncoder, triangle_vlscore\n"
        "from vlscore import VLSCORE_NORM_LIMITR\nprint('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert {"VLscore", "LIMITREncoder"} <= set(vlscore.__all__)


@pytest.mark.filterwarnings("ignore:.*is nan for 1 of 2")
def test_masked_numbers_are_missing():
    points = np.ones((3, 2, 4)) * [[[1]], [[2]], [[4]]]
    points[2, :, 0] = 0
    masked = np.ma.array(points[2], mask=[[0] * 4, [1, 0, 0, 0]])
    expected = triangle_vlscore(*points, norm=20)
    for found in (
        triangle_vlscore(points[0], points[1], masked, norm=20),
        metrics.vlscore(points[0], masked, points[1], 20).numpy(),
        metrics.compute(
            "vlscore(C=20)",
            embeddings=metrics.EmbeddingTriples(points[0], masked, points[1], "enc:test"),
        )["vlscore(C=20)"],
    ):
        np.testing.assert_allclose(found, [expected[0], np.nan], rtol=1e-12)


@pytest.mark.parametrize(
    "options", [{"norm": "a"}, {"norm": 0}, {"norm": -1}, {"norm": np.nan}, {"batch_size": 0}]
)
def test_settings_that_are_no_positive_numbers_are_refused(options):
    with pytest.raises(InvalidSetting, match=rf"{next(iter(options))} must be a"):
        VLscore(**options)


@pytest.mark.parametrize("position", range(3))
def test_one_text_is_no_list(position):
    arguments = [["a"], ["b"], ["c"]]
    arguments[position] = "a"
    with pytest.raises(InvalidSetting, match="must be a list with one entry for each study"):
        VLscore(encoder=object()).compute(*arguments)
