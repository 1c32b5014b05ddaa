"""The number of attention heads, which no tensor shows, against a config.json."""

import json

import pytest

from tests.metrics.networks.constructed import write_chexbert
from vlscore.errors import IncompatibleCheckpoint
from vlscore.metrics import CheXbert


def _config(folder, **content):
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")


def test_another_number_of_heads_is_refused(tmp_path):
    path = write_chexbert(tmp_path)
    folder = path if path.is_dir() else path.parent
    hidden = CheXbert(path)._bert.hidden
    _config(folder, hidden_size=hidden, num_attention_heads=hidden // 16)
    with pytest.raises(IncompatibleCheckpoint, match=rf"{hidden // 16} attention heads"):
        CheXbert(path)
