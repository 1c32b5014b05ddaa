"""Vectors that were computed elsewhere, in the files of the authors' repository."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vlscore
from tests.command import run_command
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting, UnknownName
from vlscore.metrics import METRICS, Scorer, compute, open_embeddings
from vlscore.metrics.embedded_metric import EmbeddedMetric

ROWS, DIM = 5, 768
EMBEDDED = [name for name, metric in METRICS.items() if isinstance(metric, EmbeddedMetric)]


@pytest.fixture
def vectors() -> dict[str, np.ndarray]:
    i, g, r = np.random.default_rng(0).normal(size=(3, ROWS, DIM)).astype(np.float32)
    return {"img_emb": i, "output_emb": g, "gt_emb": r}


@pytest.fixture
def folder(tmp_path: Path, vectors: dict[str, np.ndarray]) -> Path:
    path = tmp_path / "limitr"
    path.mkdir()
    for name, array in vectors.items():
        np.save(path / f"{name}.npy", array)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "reports.csv"
    rows = [f"{k},Clear lungs.,Edema {k}.\n" for k in range(ROWS)]
    path.write_text("id,gt,output\n" + "".join(rows))
    return path


def test_every_metric_of_embeddings_is_computed_by_roles(
    folder: Path, vectors: dict[str, np.ndarray]
) -> None:
    """By formulas on the arrays; candidate and reference exchanged give another foot."""
    i, g, r = (vectors[name].astype(np.float64) for name in ("img_emb", "output_emb", "gt_emb"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compute([f"{n}(C=2000)" if n == "vlscore" else n for n in EMBEDDED],
                        embeddings=open_embeddings(folder))  # fmt: skip
    sides = i - g, i - r
    squares = [(side**2).sum(1) for side in sides]
    area = np.sqrt(squares[0] * squares[1] - (sides[0] * sides[1]).sum(1) ** 2) / 2
    (name,) = (name for name in found if name.startswith("vlscore"))
    np.testing.assert_allclose(found[name], 1 - area / 2000, rtol=1e-9)
    lengths = np.linalg.norm(g, axis=1) * np.linalg.norm(r, axis=1)
    np.testing.assert_allclose(found["cosine"], (g * r).sum(1) / lengths, rtol=1e-9)
    along = (g - i) @ (r - i).T
    foot = np.diag(along) / ((r - i) ** 2).sum(1)
    nearest = i + np.clip(foot, 0, 1)[:, None] * (r - i)
    np.testing.assert_allclose(
        found["segment-distance"], np.linalg.norm(g - nearest, axis=1), rtol=1e-9
    )
    assert len(found) == len(EMBEDDED)


def test_evaluate_scores_them_without_images_or_an_encoder(
    folder: Path, table: Path, tmp_path: Path, vectors: dict[str, np.ndarray]
) -> None:
    out = tmp_path / "out"
    command = ("evaluate", table, "--rename", "reference=gt,candidate=output", "--format", "csv")
    asked = ("--embeddings", folder, "-m", "vlscore,cosine,rouge-l", "--out", out)
    done = run_command(*command, *asked, "-e", "limitr")
    assert done.exit_code == 0, done.output
    scores = pd.read_csv(out / "scores.csv")
    by_name = vlscore.triangle_vlscore(
        vectors["img_emb"], vectors["gt_emb"], vectors["output_emb"], norm=890
    )
    np.testing.assert_allclose(scores["vlscore"], by_name, atol=1e-9)
    i, g, r = (vectors[name].astype(np.float64) for name in ("img_emb", "output_emb", "gt_emb"))
    foot = ((g - i) * (r - i)).sum(1) / ((r - i) ** 2).sum(1)
    np.testing.assert_allclose(scores["foot"], foot, rtol=1e-6)
    signature = next(line for line in done.output.splitlines() if line.startswith("vlscore|"))
    assert "|C:890|enc:limitr@" in signature
    assert "|vectors:files|" in signature
    assert "txt:" not in signature
    # Without the name of an encoder C is not known; the folder's name stands in the signature.
    unnamed = run_command(*command, *asked[:-1], tmp_path / "other", "--C", "100")
    assert "|C:100.0|enc:limitr@" in unnamed.output or "|C:100|enc:limitr@" in unnamed.output
    assert "needs the constant C" in run_command(*command, *asked[:-1], tmp_path / "no").output
    # Other vectors are another signature.
    np.save(folder / "gt_emb.npy", vectors["gt_emb"] + 1)
    changed = run_command(*command, *asked[:-1], tmp_path / "changed", "-e", "limitr")
    assert signature not in changed.output


def test_a_row_whose_vector_is_not_finite_fails_alone(
    folder: Path, table: Path, tmp_path: Path, vectors: dict[str, np.ndarray]
) -> None:
    vectors["img_emb"][2] = np.nan
    np.save(folder / "img_emb.npy", vectors["img_emb"])
    scorer = Scorer(open_embeddings(folder, encoder="limitr"))
    columns = {"reference": "gt", "candidate": "output"}
    studies = open_studies(table, needs=scorer.needs.roles, columns=columns)
    result = vlscore.evaluate(studies, tmp_path / "out", scorer)
    assert result.frame("summary")["n"].tolist() == [ROWS - 1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda d: np.save(d / "gt_emb.npy", np.ones((ROWS + 1, DIM))),
            "different shapes",
        ),
        (lambda d: np.save(d / "gt_emb.npy", np.ones(DIM)), r"an array \(n, d\) of floats"),
        (lambda d: np.save(d / "gt_emb.npy", np.ones((ROWS, DIM), int)), "int64"),
        (lambda d: np.save(d / "gt_emb.npy", np.array([{}] * ROWS)), "without pickle"),
        (lambda d: (d / "gt_emb.npy").write_bytes(b"no array"), "without pickle"),
        (lambda d: (d / "gt_emb.npy").unlink(), r"looks at the references, but .* gt_emb\.npy"),
        (lambda d: (d / "img_emb.npy").unlink(), r"looks at the images, but .* img_emb\.npy"),
        (lambda d: (d / "output_emb.npy").unlink(), r"has no output_emb\.npy"),
    ],
)
def test_files_that_cannot_be_these_are_refused(change, said: str, folder: Path) -> None:
    change(folder)
    with pytest.raises(InvalidSetting, match=said):
        Scorer(open_embeddings(folder, encoder="limitr"))


def test_settings_that_do_not_fit_are_refused(folder: Path, table: Path, tmp_path: Path) -> None:
    found = open_embeddings(folder, encoder="limitr")
    with pytest.raises(InvalidSetting, match="vectors of 768 numbers, but those of biovil have"):
        open_embeddings(folder, encoder="biovil")
    with pytest.raises(UnknownName, match="limtr"):
        open_embeddings(folder, encoder="limtr")
    with pytest.raises(InvalidSetting, match="no metric looks at embeddings"):
        Scorer(found, metrics="rouge-l")
    with pytest.raises(InvalidSetting, match="computed elsewhere"):
        Scorer(found, weights="x.ckpt")
    with pytest.raises(InvalidSetting, match="rouge-l read texts"):
        compute("vlscore,rouge-l", embeddings=found)
    with pytest.raises(InvalidSetting, match="belong to the rows of a table"):
        Scorer(found).score(["a.png"], ["a"], ["b"])
    with table.open("a") as stream:
        stream.write("6,Clear.,Clear.\n")
    columns = {"reference": "gt", "candidate": "output"}
    studies = open_studies(table, needs={"candidate", "reference"}, columns=columns)
    with pytest.raises(InvalidSetting, match=r"vectors of 5 studies, but .* has 6 rows"):
        vlscore.evaluate(studies, tmp_path / "out", Scorer(found))
