"""The code of docs/own_encoder.md, run as printed."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "own_encoder.md"


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    torch.manual_seed(0)
    names: dict[str, Any] = {"image": np.random.default_rng(0).integers(0, 255, (60, 50), np.uint8)}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)
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
