"""Tokenizers described by json, against open_clip's own way of running them."""

import json
from pathlib import Path

import pytest
import torch
from open_clip.tokenizer import HFTokenizer

from tests.encoders.test_attacks import write_tokenizer
from vlscore.encoders.blocks.tokenizers import JsonTokenizer

TEXTS = [
    "No  small\npleural effusion!",
    "",
    "left " * 40,
    "small &amp; left, na\u00efve \u80ba",
    "pleural effusion",
]


@pytest.mark.parametrize("clean", ["whitespace", "lower", "canonicalize"])
@pytest.mark.parametrize("strip", [False, True])
def test_it_gives_what_open_clip_gives(clean: str, strip: bool, tmp_path: Path) -> None:
    write_tokenizer(tmp_path, sep_token="[SEP]", cls_token="[CLS]")
    theirs = HFTokenizer(str(tmp_path), context_length=12, clean=clean, strip_sep_token=strip)
    ours = JsonTokenizer(tmp_path / "tokenizer.json", 12, clean=clean, strip_sep_token=strip)
    tokens = ours(TEXTS)
    assert torch.equal(tokens.ids, theirs(TEXTS))
    assert tokens.truncated.tolist() == [False, False, True, False, False]
    assert tokens.lengths.tolist()[:3] == [tokens.full_lengths[0], 2, 12]
    assert ours([]).ids.shape == (0, 12)


def test_padding_is_named_in_any_of_three_places(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, pad_token={"content": "left"})
    assert JsonTokenizer(tmp_path / "tokenizer.json", 4).pad == 6
    (tmp_path / "tokenizer_config.json").unlink()
    assert JsonTokenizer(tmp_path / "tokenizer.json", 4).pad == 0
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": "small"}')
    assert JsonTokenizer(tmp_path / "tokenizer.json", 4).pad == 5
    (tmp_path / "special_tokens_map.json").unlink()
    described = json.loads((tmp_path / "tokenizer.json").read_text())
    described["padding"] = {
        "strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 7, "pad_type_id": 0, "pad_token": "pleural",
    }  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(described))
    assert JsonTokenizer(tmp_path / "tokenizer.json", 4).pad == 7
