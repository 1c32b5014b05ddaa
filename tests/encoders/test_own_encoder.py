"""The code of docs/own_encoder.md, run as printed."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.encoders.contract import check_encoder
from vlscore.encoders import load_encoder

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "own_encoder.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def namespace() -> Iterator[dict[str, Any]]:
    assert len(BLOCKS) == 3
    torch.manual_seed(0)
    # In a module, as a reader's script is one: what travels to other processes is found by it.
    page = ModuleType("own_encoder_page")
    sys.modules[page.__name__] = page
    for block in BLOCKS:
        exec(compile(block, str(DOCUMENT), "exec"), vars(page))
    yield vars(page)
    del sys.modules[page.__name__]


def test_it_scores(namespace: dict[str, Any]) -> None:
    assert 0 <= float(namespace["result"]) <= 1
    assert "mine" in str(namespace["result"].signature)


def test_it_keeps_the_whole_contract(namespace: dict[str, Any]) -> None:
    check_encoder(namespace["encoder"])


def test_it_is_loaded_by_name(
    namespace: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page_models.py").write_text(BLOCKS[0], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    here = namespace["encoder"]
    tensors = {key: value.contiguous() for key, value in here.state_dict().items()}
    save_file(tensors, tmp_path / "mine.safetensors")
    here.tokenizer.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = load_encoder(
        "page_models:MyEncoder",
        weights=tmp_path / "mine.safetensors",
        tokenizer=tmp_path / "tokenizer.json",
    )
    reports = ["no pleural effusion", "left"]
    assert torch.equal(loaded.encode_reports(reports), here.encode_reports(reports))
    assert loaded.checksum == here.checksum
