"""Every way in which a file enters an encoder, each with an attack of its own: nothing runs.

Each attack would make the file `ran`, or ask the network. Some are shown to work where the same
files are given to the library that they are meant for.
"""

import contextlib
import json
import pickle
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from vlscore.encoders import load_encoder
from vlscore.encoders.blocks.tokenizers import refuse_code
from vlscore.errors import (
    IncompatibleCheckpoint,
    UnsafeCheckpoint,
    WeightsNotFound,
)

VISION = {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16, "head_width": 32}
TEXT = {"context_length": 16, "vocab_size": 100, "width": 64, "heads": 2, "layers": 1}
MODEL: dict[str, Any] = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TEXT}
NAME = "org/tokenizer"


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ran: Path) -> Iterator[list[Any]]:
    """Nothing may have run, and nobody may have been asked, when a test ends."""
    asked: list[Any] = []

    def connect(*arguments: Any, **_: Any) -> Any:
        asked.append(arguments)
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("VLSCORE_ENCODER", raising=False)
    monkeypatch.delenv("VLSCORE_WEIGHTS", raising=False)
    yield asked
    assert not ran.exists(), "code of the folder ran"
    assert not asked, "the network was asked"


def malicious(ran: Path) -> bytes:
    """A pickle that makes the file."""

    class Payload:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return open, (str(ran), "w")

    return pickle.dumps(Payload())


def evil_module(folder: Path, ran: Path) -> None:
    """Python that a library imports where settings ask it to."""
    (folder / "evil.py").write_text(
        f"open({str(ran)!r}, 'w').close()\n"
        "from transformers import BertConfig, BertModel, PreTrainedTokenizerFast\n"
        "class E(PreTrainedTokenizerFast): pass\n"
        "class C(BertConfig): model_type = 'evil'\n"
        "class M(BertModel): pass\n"
    )


def write_tokenizer(folder: Path, **settings: Any) -> None:
    """A tokenizer.json of words, and settings beside it."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "no", "small", "left", "pleural", "effusion"]
    pieces = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]")
    )
    pieces.pre_tokenizer = pre_tokenizers.Whitespace()
    pieces.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    pieces.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    pieces.save(str(folder / "tokenizer.json"))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named | settings))


def write_model(folder: Path, config: dict[str, Any], **settings: Any) -> Path:
    """A folder of an open_clip model with a tokenizer of the hub."""
    import open_clip

    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    tensors = open_clip.CLIP(**MODEL).state_dict()
    kept = {key: value.contiguous() for key, value in tensors.items() if key != "attn_mask"}
    save_file(kept, folder / "open_clip_model.safetensors")
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    write_tokenizer(folder, **settings)
    return folder


def changed(place: str, **settings: Any) -> dict[str, Any]:
    """A configuration with further settings at one place of it."""
    config: dict[str, Any] = json.loads(
        json.dumps({"model_cfg": MODEL, "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3}})
    )
    config["model_cfg"]["text_cfg"]["hf_tokenizer_name"] = NAME
    target = config
    for part in filter(None, place.split(".")):
        target = target[part]
    target.update(settings)
    return config


def load(folder: Path) -> Any:
    return load_encoder("openclip", weights=folder)


def test_the_honest_folder_is_read(tmp_path: Path) -> None:
    """What the attacks below are changes of."""
    encoder = load(write_model(tmp_path / "model", changed("")))
    assert encoder.encode_reports(["no pleural effusion"]).shape == (1, 16)
    assert encoder.card.max_tokens == 16


TEXTS = "model_cfg.text_cfg"
VIEWS, PIXELS = "model_cfg.vision_cfg", "preprocess_cfg"
OWN_CODE = {"auto_map": {"AutoTokenizer": "evil.E", "AutoModel": "evil.M"}}
# What it is -> where it stands, the setting, and its value.
ASKS_FOR_CODE: dict[str, tuple[str, str, Any]] = {
    "code for the tokenizer": (TEXTS, "tokenizer_kwargs", {"trust_remote_code": True}),
    "a tokenizer's own code": (TEXTS, "tokenizer_kwargs", OWN_CODE),
    "a list of merges elsewhere": (TEXTS, "tokenizer_kwargs", {"bpe_path": "/etc/passwd"}),
    "a report tower of its own": (TEXTS, "hf_model_config", OWN_CODE),
    "timm's hub": (VIEWS, "timm_model_name", "hf-hub:org/evil"),
    "timm's folder": (VIEWS, "timm_model_name", "local-dir:{folder}"),
    "a class to make": ("model_cfg", "_target_", "os.system"),
    "pipelines of its own": ("", "custom_pipelines", {"evil": {}}),
}
# Refused, or without any effect.
OTHERS: dict[str, tuple[str, str, Any]] = {
    "another class": (TEXTS, "tokenizer_kwargs", {"tokenizer_class": "evil.E"}),
    "a cleaning of its own": (TEXTS, "tokenizer_kwargs", {"clean": "__import__"}),
    "a tokenizer by its path": (TEXTS, "hf_tokenizer_name", "{folder}"),
    "a tokenizer by a path upwards": (TEXTS, "hf_tokenizer_name", "../model"),
    "a report tower by its path": (TEXTS, "hf_model_name", "{folder}"),
    "a report tower to download": (TEXTS, "hf_model_name", "org/evil"),
    "another pooler": (TEXTS, "hf_pooler_type", "evil"),
    "another mode": (TEXTS, "tokenizer_mode", "clips"),
    "no name of timm's": (VIEWS, "timm_model_name", "os.system"),
    "any block": (VIEWS, "block_type", "evil.Block"),
    "unknown of the pictures": (PIXELS, "transform", "evil"),
    "a text for a group": ("model_cfg", "vision_cfg", "evil"),
}


def attacked(folder: Path, ran: Path, place: str, setting: str, value: Any) -> Path:
    """A model's folder with one changed setting, and code that it could ask for."""
    text = json.dumps({setting: value}).replace("{folder}", str(folder))
    write_model(folder, changed(place, **json.loads(text)))
    (folder / "config.json").write_text(json.dumps({"model_type": "evil"} | OWN_CODE))
    (folder / "pytorch_model.bin").write_bytes(malicious(ran))
    evil_module(folder, ran)
    return folder


@pytest.mark.parametrize("attack", ASKS_FOR_CODE)
def test_a_configuration_that_asks_for_code_is_refused(
    attack: str, tmp_path: Path, ran: Path
) -> None:
    place, setting, value = ASKS_FOR_CODE[attack]
    folder = attacked(tmp_path / "model", ran, place, setting, value)
    with pytest.raises(UnsafeCheckpoint, match=str(folder)) as caught:
        load(folder)
    inner = list(value) if isinstance(value, dict) else []
    assert any(name in str(caught.value) for name in (setting, *inner))


@pytest.mark.parametrize("attack", OTHERS)
def test_a_configuration_is_data(attack: str, tmp_path: Path, ran: Path) -> None:
    folder = attacked(tmp_path / "model", ran, *OTHERS[attack])
    with contextlib.suppress(UnsafeCheckpoint, IncompatibleCheckpoint):
        load(folder).encode_reports(["no effusion"])


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b"[]",
        b"{",
        b"null",
        b"{}",
        b'{"model_cfg": []}',
        b'{"model_cfg": {"embed_dim": 16}}',
        b"[" * 100_000,
        b'{"model_cfg": ' + b'{"a": ' * 300 + b"1" + b"}" * 301,
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_is_no_configuration_is_named(content: bytes, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", {})
    (folder / "open_clip_config.json").write_bytes(content)
    with pytest.raises(IncompatibleCheckpoint, match=r"open_clip_config\.json"):
        load(folder)


def test_a_configuration_is_read_to_a_hundred_levels() -> None:
    nested: list[Any] = []
    for _ in range(99):
        nested = [nested]
    refuse_code({"all": nested}, "x.json")
    with pytest.raises(IncompatibleCheckpoint, match="nested too deeply"):
        refuse_code({"all": [nested]}, "x.json")


TOKENIZERS: dict[str, dict[str, Any]] = {
    "code of its own": {"auto_map": {"AutoTokenizer": ["evil.E", "evil.E"]}},
    "code in a nested setting": {"extra": [{"trust_remote_code": True}]},
}


@pytest.mark.parametrize("attack", TOKENIZERS)
def test_a_tokenizers_settings_that_ask_for_code_are_refused(
    attack: str, tmp_path: Path, ran: Path
) -> None:
    folder = write_model(tmp_path / "model", changed(""), **TOKENIZERS[attack])
    evil_module(folder, ran)
    with pytest.raises(UnsafeCheckpoint, match=r"tokenizer_config\.json sets "):
        load(folder)


def test_what_else_lies_in_a_tokenizers_folder_is_not_opened(tmp_path: Path, ran: Path) -> None:
    """Classes, chat templates (programs in jinja), pickles, pieces of other libraries."""
    template = "{{ cycler.__init__.__globals__.os.system('touch " + str(ran) + "') }}"
    folder = write_model(
        tmp_path / "model", changed(""), tokenizer_class="evil.E", chat_template=template
    )
    evil_module(folder, ran)
    (folder / "chat_template.jinja").write_text(template)
    for name in ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "tokenizer.bin"):
        (folder / name).write_bytes(malicious(ran))
    (folder / "added_tokens.json").write_bytes(malicious(ran))
    (folder / "__init__.py").write_text(f"open({str(ran)!r}, 'w')")
    (folder / "conftest.py").write_text(f"open({str(ran)!r}, 'w')")
    assert load(folder).encode_reports(["no effusion"]).isfinite().all()


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b'{"model": {"type": "evil.Model"}}', b"\x80\x04K\x01.", b"[" * 100_000],
    ids=repr,
)
def test_what_is_no_tokenizer_is_named(content: bytes, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", changed(""))
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(IncompatibleCheckpoint, match=r"tokenizer\.json"):
        load(folder)


def test_a_tokenizer_is_never_asked_of_a_hub(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", changed(""))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(WeightsNotFound, match=f'tokenizer=PATH, or tokenizer="{NAME}" to'):
        load(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_tokenizer(elsewhere)
    assert load_encoder("openclip", weights=folder, tokenizer=elsewhere).card.max_tokens == 16


def test_the_vocabulary_is_data(tmp_path: Path, ran: Path) -> None:
    torch.save({"w": torch.ones(1)}, tmp_path / "model.ckpt")
    contents = [
        malicious(ran),
        b"",
        b"\xff",
        b"a\nb",
        b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[MASK]",
    ]
    for content in contents:
        (tmp_path / "vocab.txt").write_bytes(content)
        with pytest.raises(IncompatibleCheckpoint, match=r"vocab\.txt"):
            load_encoder("gloria", weights=tmp_path / "model.ckpt")
    (tmp_path / "vocab.txt").unlink()
    pieces = {piece: n for n, piece in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))}
    for vocabulary in (None, [], pieces | {"a": 10**12}, pieces | {"a": -1}, pieces | {"a": "b"}):
        described = {"auto_map": "evil.E", "model": {"vocab": vocabulary}}
        (tmp_path / "tokenizer.json").write_text(json.dumps(described))
        with pytest.raises(IncompatibleCheckpoint, match=r"tokenizer\.json"):
            load_encoder("gloria", weights=tmp_path / "model.ckpt")
