"""What the encoder of docs/own_encoder.md promises; tests/test_docs.py runs the page as well."""

import contextlib
import shutil
from typing import Any

import pytest
import torch

from tests.conftest import REPOSITORY
from tests.pages import blocks

PAGE = REPOSITORY / "docs" / "own_encoder.md"


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("own_encoder")
    (film,) = (REPOSITORY / "weights" / "phantom" / "demo").glob("*-00000.dcm")
    shutil.copyfile(film, folder / "chest.dcm")
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        for block in blocks(PAGE):
            if block.language == "python":
                exec(compile(block.text, str(PAGE), "exec"), names)
    return names


def test_it_scores(namespace: dict[str, Any]) -> None:
    assert 0 <= float(namespace["result"]) <= 1
    assert "mine" in str(namespace["result"].signature)


def test_the_batch_changes_nothing(namespace: dict[str, Any]) -> None:
    encoder = namespace["encoder"]
    reports = ["no pleural effusion", "left", "small right pneumothorax " * 60, ""]
    together = encoder.encode_reports(reports)
    alone = encoder.encode_reports(reports, batch_size=1)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
    assert encoder.tokenize(reports).truncated.tolist() == [False, False, True, False]
