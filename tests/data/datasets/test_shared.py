"""Real data sets, where the folder `shared` beside the checkout has them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import REPOSITORY
from vlscore.data import check_dataset, dataset, open_studies, read_dataset

IU = REPOSITORY.parent / "shared" / "data" / "iu"
pytestmark = pytest.mark.skipif(
    not (IU / "studies.jsonl").is_file(), reason=f"{IU} has no real films; it is not public"
)


def test_every_study_of_the_indiana_collection_is_read():
    studies = list(read_dataset("squared-films", IU))
    assert Counter(study.split for study in studies) == {"train": 2125, "validate": 388}
    views = Counter(film.view for study in studies for film in study.films)
    assert views == {"frontal": 2604, "lateral": 2370}


def test_the_contract_holds_on_real_files():
    check_dataset("squared-films", IU)


def test_real_films_get_their_proportions_back(tmp_path: Path):
    lines = (IU / "studies.jsonl").read_text(encoding="utf-8").splitlines()[:20]
    (tmp_path / "studies.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "iu.parquet"
    dataset(
        "squared-films", tmp_path / "studies.jsonl", out, films=IU, proportions=tmp_path / "films"
    )
    found = {study.id: study for study in open_studies(out, needs={"image", "reference"})}
    # iu-6: 2828 rows, 2320 columns as its original has them; the picture is 256 x 256.
    frontal, lateral = (Image.open(path) for path in found["iu-6"].images)
    assert frontal.size == (256, 312)
    assert lateral.size == (256, 256)
    assert np.asarray(frontal).std() > 10
