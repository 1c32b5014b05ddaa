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

from vlscore.encoders import load_encoder
from vlscore.errors import BrokenContract
from vlscore.testing import check_encoder

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


def test_the_batch_changes_nothing(namespace: dict[str, Any]) -> None:
    encoder = namespace["encoder"]
    reports = ["no pleural effusion", "left", "small right pneumothorax " * 60, ""]
    together = encoder.encode_reports(reports)
    alone = encoder.encode_reports(reports, batch_size=1)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
    assert encoder.tokenize(reports).truncated.tolist() == [False, False, True, False]


def test_the_page_checks_its_encoder_and_a_fault_would_be_found(namespace: dict[str, Any]) -> None:
    assert "check_encoder(encoder)" in BLOCKS[2]
    encoder = namespace["encoder"]
    encoder.train()
    with pytest.raises(BrokenContract, match="training mode"):
        check_encoder(encoder)
    encoder.eval()


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
