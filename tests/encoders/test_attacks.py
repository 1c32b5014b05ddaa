"""Every way in which a file enters an encoder, each with an attack of its own: nothing runs.

Each attack would make the file `ran`, or ask the network. Some are shown to work where the same
files are given to the library that they are meant for.
"""

import gzip
import json
import pickle
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests.encoders.goldens import Golden
from vlscore.core import resource_path
from vlscore.encoders import load_encoder, verify
from vlscore.errors import (
    ChecksumMismatch,
    IncompatibleCheckpoint,
    InvalidSetting,
    UnsafeCheckpoint,
    VLScoreError,
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


def test_the_attack_works_on_the_library_it_is_meant_for(tmp_path: Path, ran: Path) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "model"
    write_model(folder, changed(""), auto_map={"AutoTokenizer": ["evil.E", "evil.E"]})
    (folder / "config.json").write_text('{"model_type": "bert"}')
    evil_module(folder, ran)
    AutoTokenizer.from_pretrained(str(folder), trust_remote_code=True)
    assert ran.exists()
    ran.unlink()


TEXTS = "model_cfg.text_cfg"
VIEWS, PIXELS = "model_cfg.vision_cfg", "preprocess_cfg"
OWN_CODE = {"auto_map": {"AutoTokenizer": "evil.E", "AutoModel": "evil.M"}}
# What it is -> where it stands, the setting, and its value.
CONFIGURATIONS: dict[str, tuple[str, str, Any]] = {
    "code for the tokenizer": (TEXTS, "tokenizer_kwargs", {"trust_remote_code": True}),
    "a tokenizer's own code": (TEXTS, "tokenizer_kwargs", OWN_CODE),
    "another class": (TEXTS, "tokenizer_kwargs", {"tokenizer_class": "evil.E"}),
    "a list of merges elsewhere": (TEXTS, "tokenizer_kwargs", {"bpe_path": "/etc/passwd"}),
    "a slow expression": (TEXTS, "tokenizer_kwargs", {"additional_special_tokens": ["(a+)+"]}),
    "a cleaning of its own": (TEXTS, "tokenizer_kwargs", {"clean": "__import__"}),
    "a tokenizer by its path": (TEXTS, "hf_tokenizer_name", "{folder}"),
    "a tokenizer by a path upwards": (TEXTS, "hf_tokenizer_name", "../model"),
    "a report tower by its path": (TEXTS, "hf_model_name", "{folder}"),
    "a report tower to download": (TEXTS, "hf_model_name", "org/evil"),
    "a report tower of its own": (TEXTS, "hf_model_config", OWN_CODE),
    "another pooler": (TEXTS, "hf_pooler_type", "evil"),
    "another mode": (TEXTS, "tokenizer_mode", "clips"),
    "timm's hub": (VIEWS, "timm_model_name", "hf-hub:org/evil"),
    "timm's folder": (VIEWS, "timm_model_name", "local-dir:{folder}"),
    "no name of timm's": (VIEWS, "timm_model_name", "os.system"),
    "any activation": (VIEWS, "act_kwargs", {"approximate": "evil"}),
    "any block": (VIEWS, "block_type", "evil.Block"),
    "unknown of the model": ("model_cfg", "_target_", "os.system"),
    "unknown at the top": ("", "custom_pipelines", {"evil": {}}),
    "unknown of the pictures": (PIXELS, "transform", "evil"),
    "any interpolation": (PIXELS, "interpolation", "evil"),
    "a million layers": (TEXTS, "layers", 10**6),
    "many layers": (TEXTS, "layers", 512),
    "wide layers": (TEXTS, "width", 16384),
    "many words": (TEXTS, "vocab_size", 5_000_000),
    "an enormous picture": (VIEWS, "image_size", 10**9),
    "a picture of no size": (VIEWS, "image_size", 0),
    "true for a number": (TEXTS, "layers", True),
    "not a number": (PIXELS, "std", [float("nan")] * 3),
    "a deviation of nothing": (PIXELS, "std", [0, 0, 0]),
    "a text for a group": ("model_cfg", "vision_cfg", "evil"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("attack", CONFIGURATIONS)
def test_a_configuration_is_data(attack: str, tmp_path: Path, ran: Path) -> None:
    place, setting, value = CONFIGURATIONS[attack]
    folder = tmp_path / "model"
    text = json.dumps({setting: value}).replace("{folder}", str(folder))
    write_model(folder, changed(place, **json.loads(text)))
    (folder / "config.json").write_text(json.dumps({"model_type": "evil"} | OWN_CODE))
    (folder / "pytorch_model.bin").write_bytes(malicious(ran))
    evil_module(folder, ran)
    with pytest.raises((UnsafeCheckpoint, IncompatibleCheckpoint), match=str(folder)) as caught:
        load(folder)
    # By name: the setting, or the file and what in it would run, or the sizes.
    inner = list(value) if isinstance(value, dict) else []
    named = (setting, *inner, "config.json sets auto_map", "describes a model of at least")
    assert any(name in str(caught.value) for name in named)


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
        b'{"model_cfg": {"embed_dim": ' + b"9" * 5000 + b"}}",
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_is_no_configuration_is_named(content: bytes, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", {})
    (folder / "open_clip_config.json").write_bytes(content)
    with pytest.raises(IncompatibleCheckpoint, match=r"open_clip_config\.json"):
        load(folder)


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


@pytest.mark.parametrize(
    "settings",
    [
        {"auto_map": {"AutoConfig": "evil.C", "AutoModel": "evil.M"}},
        {"_attn_implementation": "org/kernel"},
        {"attn_implementation": "org/kernel"},
        {"model_type": "evil"},
        {"model_type": ["roberta"]},
        {"num_hidden_layers": 10**7},
        {"hidden_size": 10**6},
        {"hidden_act": "evil"},
        {"vocab_size": -5},
    ],
    ids=str,
)
def test_a_report_towers_settings_are_data(
    settings: dict[str, Any], tmp_path: Path, ran: Path
) -> None:
    config = changed(TEXTS, hf_model_name="org/roberta", hf_pooler_type="mean_pooler")
    folder = write_model(tmp_path / "model", config)
    evil_module(folder, ran)
    (folder / "config.json").write_text(json.dumps({"model_type": "roberta"} | settings))
    with pytest.raises((UnsafeCheckpoint, IncompatibleCheckpoint)):
        load(folder)


def broken_pickle_as(name: str) -> Callable[[Path, Path], Path]:
    def write(folder: Path, ran: Path) -> Path:
        (folder / name).write_bytes(malicious(ran))
        return folder / name

    return write


def torchscript(folder: Path, ran: Path) -> Path:
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(folder / "model.pt"))  # type: ignore[no-untyped-call]
    return folder / "model.pt"


def zipped(folder: Path, ran: Path) -> Path:
    class Payload:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return open, (str(ran), "w")

    torch.save({"state_dict": {"w": torch.ones(1)}, "more": Payload()}, folder / "model.ckpt")
    return folder / "model.ckpt"


WEIGHTS = [
    broken_pickle_as("model.ckpt"),
    broken_pickle_as("model.safetensors"),
    broken_pickle_as("pytorch_model.bin"),
    zipped,
    torchscript,
]
SINGLE = ("gloria", "limitr", "convirt", "convirt-mgca", "medclip-vit", "mgca-vit", "chexzero")


@pytest.mark.parametrize("write", WEIGHTS)
def test_weights_are_data(write: Callable[[Path, Path], Path], tmp_path: Path, ran: Path) -> None:
    path = write(tmp_path, ran)
    vocabulary = Golden.of("gloria").vocabulary(tmp_path)
    for name in SINGLE:
        given = None if name == "chexzero" else vocabulary
        with pytest.raises(UnsafeCheckpoint):
            load_encoder(name, weights=path, tokenizer=given)
    for name in ("biomedclip", "openclip:ViT-B-32"):
        with pytest.raises(UnsafeCheckpoint):
            load_encoder(name, weights=path)
    with pytest.raises(UnsafeCheckpoint):
        verify(path)


@pytest.mark.parametrize("name", ["biovil", "biovil-t"])
def test_both_files_of_biovil_are_data(name: str, tmp_path: Path, ran: Path) -> None:
    Golden.of("biovil").vocabulary(tmp_path)
    image = {
        "biovil": "biovil_image_resnet50_proj_size_128.pt",
        "biovil-t": "biovil_t_image_model_proj_size_128.pt",
    }[name]
    for bad, good in ((image, "pytorch_model.bin"), ("pytorch_model.bin", image)):
        (tmp_path / bad).write_bytes(malicious(ran))
        torch.save({"w": torch.ones(1)}, tmp_path / good)
        with pytest.raises(UnsafeCheckpoint, match=bad):
            load_encoder(name, weights=tmp_path)


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


def test_a_list_of_merges_is_data(tmp_path: Path, ran: Path) -> None:
    torch.save({"w": torch.ones(1)}, tmp_path / "model.pt")
    for content in (
        malicious(ran),
        b"",
        gzip.compress(malicious(ran)),
        gzip.compress(b"a b c\n" * 100),
        gzip.compress(b"a b\n" * 20)[:-9],
        gzip.compress(b"\0" * (1 << 28)),
    ):
        (tmp_path / "merges.txt.gz").write_bytes(content)
        with pytest.raises(IncompatibleCheckpoint, match=r"merges\.txt\.gz is no list of merges"):
            load_encoder("chexzero", weights=tmp_path, tokenizer=tmp_path / "merges.txt.gz")
    with pytest.raises(InvalidSetting, match="comes with open_clip"):
        load_encoder("chexzero", weights=tmp_path, tokenizer=tmp_path / "merges.pkl")


@pytest.fixture
def phantom(tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(resource_path("weights", "phantom-supervised"), tmp_path / "phantom")
    )


def restate(folder: Path, **facts: Any) -> None:
    """Let facts.json state the sum of what lies there now, as an attacker would."""
    import hashlib

    words = (folder / "vocabulary.json").read_text()
    listed = json.loads(words)
    content = (folder / "model.safetensors").read_bytes() + "\n".join(listed).encode()
    stated = {"sha256": hashlib.sha256(content).hexdigest()} | facts
    (folder / "facts.json").write_text(json.dumps(stated))


def test_the_phantom_folder_is_data(phantom: Path, ran: Path) -> None:
    model = phantom / "model.safetensors"
    honest = model.read_bytes()
    assert load_encoder("phantom-supervised", weights=phantom).card.name == "phantom-supervised"
    model.write_bytes(malicious(ran))
    restate(phantom)
    with pytest.raises(UnsafeCheckpoint, match=r"model\.safetensors"):
        load_encoder("phantom-supervised", weights=phantom)
    model.write_bytes(honest)
    (phantom / "vocabulary.json").write_text('["only", "three", "words"]')
    restate(phantom)
    with pytest.raises(IncompatibleCheckpoint, match="mis-shaped"):
        load_encoder("phantom-supervised", weights=phantom)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("vocabulary.json", b"\x80\x04K\x01.", IncompatibleCheckpoint),
        ("vocabulary.json", b'{"a": 1}', IncompatibleCheckpoint),
        ("vocabulary.json", b'["a", 3]', IncompatibleCheckpoint),
        ("vocabulary.json", b'["\\ud800"]', IncompatibleCheckpoint),
        ("vocabulary.json", b"[" * 100_000, IncompatibleCheckpoint),
        ("facts.json", b"[]", IncompatibleCheckpoint),
        ("facts.json", b"{}", ChecksumMismatch),
        ("facts.json", None, WeightsNotFound),
        ("model.safetensors", None, WeightsNotFound),
    ],
)
def test_a_damaged_phantom_folder_is_named(
    name: str, content: bytes | None, error: type[VLScoreError], phantom: Path
) -> None:
    if content is None:
        (phantom / name).unlink()
    else:
        (phantom / name).write_bytes(content)
    with pytest.raises(error, match=str(phantom)):
        load_encoder("phantom-supervised", weights=phantom)


def test_a_checkpoint_given_to_the_bundled_encoder_says_what_to_do(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(1)}, tmp_path / "gloria.ckpt")
    for place in (tmp_path, tmp_path / "gloria.ckpt", tmp_path / "absent"):
        with pytest.raises(WeightsNotFound, match="name that one with encoder="):
            load_encoder("phantom", weights=place)


def test_a_safetensors_header_that_lies(tmp_path: Path) -> None:
    header = json.dumps(
        {"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}
    ).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
    with pytest.raises(UnsafeCheckpoint, match=r"m\.safetensors is damaged"):
        load_encoder("gloria", weights=tmp_path / "m.safetensors")
