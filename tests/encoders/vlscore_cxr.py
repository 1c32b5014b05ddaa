"""What the authors' package vlscore-cxr 0.1.2 returns on the pseudo-random weights of `goldens`.

data/vlscore_cxr.npz holds a slice of it: one image, 52 texts with every sixteenth number of their
vectors, and the scores of that image. The whole is compared too where ../shared is present.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.encoders.goldens import DATA, SALT
from vlscore.data import ImagePolicy, clean_limitr
from vlscore.encoders import JointEncoder
from vlscore.metrics import vlscore

VECTORS, SCORES = 2e-5, 1e-5
# Files deeper than 8 bits, which the package reads as white, and one with an EXIF rotation.
READ_OTHERWISE = ("img3.png", "variant_12in16bit.png", "variant_16bit.png", "variant_16bit.tiff",
                  "variant_exif_rotated.jpg")  # fmt: skip


@dataclass(frozen=True)
class PackageGolden:
    """Inputs and results of the package.

    Attributes:
        paths: n images.
        image: (n, 768) float32, their vectors.
        pixels: (n, 28, 28), every eighth pixel of a channel after preprocessing.
        texts, clean: m texts, as given and as the package cleans them.
        report: (m, 768) or, of the slice, (m, 48) float32.
        triples: (k, 3): image, candidate, reference.
        score: (k,), VLScore with C = 890.
    """

    paths: list[Path]
    image: NDArray[np.float32]
    pixels: NDArray[np.float32]
    texts: list[str]
    clean: list[str]
    report: NDArray[np.float32]
    triples: NDArray[np.int64]
    score: NDArray[np.float64]

    @classmethod
    def slice(cls) -> "PackageGolden":
        with np.load(DATA / "vlscore_cxr.npz") as stored:
            found = dict(stored)
        triples = found["triples"].copy()
        triples[:, 0] = 0
        return cls(
            [DATA / "film.png"], found["image"][None], found["pixels"][None],
            found["texts"].tolist(), found["clean_text"].tolist(), found["txt_global"],
            triples, found["vlscore"],
        )  # fmt: skip

    @classmethod
    def whole(cls, shared: Path) -> "PackageGolden":
        with np.load(shared / "encoders" / "vlscore_cxr" / f"golden_{SALT}.npz") as stored:
            found = dict(stored)
        return cls(
            [shared.parent / name for name in found["images"].tolist()], found["img_global"],
            found["pix_channel0_slice"], found["texts"].tolist(), found["clean_text"].tolist(),
            found["txt_global"], found["triples"], found["vlscore"],
        )  # fmt: skip


def assert_equals_package(encoder: JointEncoder, golden: PackageGolden) -> None:
    """Pixels exactly, vectors and scores to the tolerances, as the package reads every file."""
    authors = ImagePolicy(as_authors=True)
    usual = [n for n, path in enumerate(golden.paths) if path.name not in READ_OTHERWISE]
    for policy, rows in ((authors, range(len(golden.paths))), (ImagePolicy(), usual)):
        for row in rows:
            pixels = encoder.image_pipeline.load(golden.paths[row], policy)[0].numpy()
            name = golden.paths[row].name
            np.testing.assert_array_equal(pixels[::8, ::8], golden.pixels[row], err_msg=name)
    encoder.image_policy = authors
    images = encoder.encode_images(golden.paths).numpy()
    assert np.abs(images - golden.image).max() <= VECTORS * np.abs(golden.image).max()
    # Odd letters may be read otherwise: of the two lower cases of one, or a digit above the line.
    alike = [n for n, text in enumerate(golden.texts) if clean_limitr(text) == golden.clean[n]]
    assert not any(t.isascii() for n, t in enumerate(golden.texts) if n not in alike)
    reports = encoder.encode_reports(golden.texts).numpy()
    stored = reports[:, :: reports.shape[1] // golden.report.shape[1]]
    error = np.abs(stored - golden.report).max(1)
    assert error[alike].max() <= VECTORS * np.abs(golden.report).max()
    image, candidate, reference = golden.triples.T
    found = vlscore(images[image], reports[candidate], reports[reference], 890.0).numpy()
    both = np.isin(candidate, alike) & np.isin(reference, alike)
    assert both.any()
    assert np.abs(found - golden.score)[both].max() <= SCORES
