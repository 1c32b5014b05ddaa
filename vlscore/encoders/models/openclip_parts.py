"""Parts of open_clip models: configuration, towers, pixels and tokens, without a hub.

Configurations are read as data, and a setting that is not listed here is refused by name. A
configuration can ask the libraries behind open_clip to import code, from its folder or from a hub,
or to unpickle a file. No setting that could do so is in the list, and no value that names a file or
hub is passed on.
"""

import copy
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import open_clip
from open_clip.tokenizer import basic_clean, whitespace_clean
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from torch import Tensor
from transformers import AutoConfig, BertConfig, PretrainedConfig

from vlscore.core import stable_class
from vlscore.data import Radiograph
from vlscore.encoders.base import Tokens
from vlscore.encoders.blocks.bert import by_onednn
from vlscore.encoders.blocks.pixels import (
    Grey,
    LevelsPipeline,
    normalise,
    open_with_pillow,
    to_unit_range,
    too_elongated,
)
from vlscore.encoders.blocks.tokenizers import (
    CONTEXT,
    ClipTokenizer,
    WordPieceTokenizer,
    read_json,
    refuse_code,
)
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound

CONFIG_NAME = "open_clip_config.json"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_TIMM_NAME = re.compile(r"[a-z0-9_]+(\.\w+)?")

Check: TypeAlias = Callable[[Any], bool]
Allowed: TypeAlias = "Check | dict[str, Allowed]"


def read_config(path: Path) -> dict[str, Any]:
    """Read an open_clip_config.json, all of whose settings must be in the list below.

    Raises:
        UnsafeCheckpoint: it asks to run code.
        IncompatibleCheckpoint: it is no such configuration, or has an unlisted setting or value.
    """
    config = read_json(path, "configuration of open_clip")
    check_config(config, str(path))
    return config


def check_config(config: Mapping[str, Any], source: str) -> None:
    """Check a configuration. Raises: as `read_config`."""
    refuse_code(config, source)
    model = config.get("model_cfg")
    required = ("embed_dim", "vision_cfg", "text_cfg")
    if not isinstance(model, Mapping) or not all(model.get(key) for key in required):
        raise IncompatibleCheckpoint(
            f"{source} is no configuration of open_clip: model_cfg must hold {', '.join(required)}"
        )
    _check(config, _ALLOWED, source, "")


def check_fits(config: Mapping[str, Any], tensors: Mapping[str, Tensor], source: Path) -> None:
    """Refuse a configuration of a larger model than its checkpoint can fill, before building it.

    Raises: IncompatibleCheckpoint.
    """
    held = sum(tensor.numel() for tensor in tensors.values())
    vision, text = config["vision_cfg"], config["text_cfg"]
    needed = 0
    if not vision.get("timm_model_name"):
        layers, width = vision.get("layers", 12), vision.get("width", 768)
        patch = vision.get("patch_size") or 16
        size = vision.get("image_size", 224)
        height, breadth = (size, size) if isinstance(size, int) else size
        blocks = sum(layers) if isinstance(layers, list) else layers
        needed += blocks * width**2 + (height // patch) * (breadth // patch)
    for tower in (text, config.get("multimodal_cfg")):
        if tower is not None and not tower.get("hf_model_name"):
            width = tower.get("width", 512)
            needed += tower.get("layers", 12) * width**2
            needed += (tower.get("vocab_size", 49408) + tower.get("context_length", 77)) * width
    if needed > held:
        raise IncompatibleCheckpoint(
            f"{source}: its configuration describes a model of at least {needed:,} numbers, but "
            f"the checkpoint holds {held:,}; is it the configuration of another model?"
        )


def _check(value: Any, allowed: Allowed, source: str, place: str) -> None:
    if not isinstance(allowed, dict):
        if not allowed(value):
            shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
            raise IncompatibleCheckpoint(
                f"{source}: {place} is {shown}, which is none of the values that vlscore takes"
            )
        return
    if value is None and place:
        return
    if not isinstance(value, Mapping):
        raise IncompatibleCheckpoint(f"{source}: {place} is no group of settings")
    for key, inner in value.items():
        if key not in allowed:
            raise IncompatibleCheckpoint(
                f"{source}: the setting {f'{place}.{key}'.lstrip('.')!r} is none that vlscore knows"
            )
        _check(inner, allowed[key], source, f"{place}.{key}".lstrip("."))


def _whole(highest: int, lowest: int = 1) -> Check:
    return lambda value: type(value) is int and lowest <= value <= highest


def _number(lowest: float, highest: float) -> Check:
    return lambda value: (
        type(value) in (int, float) and math.isfinite(value) and lowest <= value <= highest
    )


def _one_of(*words: str) -> Check:
    return lambda value: isinstance(value, str) and value in words


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _none(value: Any) -> bool:
    return value is None


def _list(check: Check, *lengths: int) -> Check:
    return lambda value: (
        isinstance(value, list | tuple) and len(value) in lengths and all(map(check, value))
    )


def _or(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def _hub_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _timm_name(value: Any) -> bool:
    import timm

    # Not "hf-hub:..." or "local-dir:...", which timm would follow.
    is_plain = isinstance(value, str) and _TIMM_NAME.fullmatch(value) is not None
    return is_plain and timm.is_model(value)


_BLOCK: dict[str, Allowed] = {
    "act_kwargs": {"approximate": _one_of("none", "tanh")},
    "norm_kwargs": {"eps": _number(0, 1)},
    "ls_init_value": _or(_none, _number(0, 10)),
    "mlp_ratio": _number(0, 64),
    "block_type": _or(_none, _one_of("default", "custom")),
    "qk_norm": _flag,
    "scaled_cosine_attn": _flag,
    "scale_heads": _flag,
    "scale_attn_inner": _flag,
    "scale_attn": _flag,
    "scale_fc": _flag,
    "final_ln_after_pool": _flag,
    "output_tokens": _flag,
}
_SIZE = _or(_whole(4096), _list(_whole(4096), 2))
_VISION: dict[str, Allowed] = _BLOCK | {
    "layers": _or(_whole(512), _list(_whole(512), 4)),
    "width": _whole(16384),
    "head_width": _whole(1024),
    "patch_size": _or(_none, _whole(512)),
    "image_size": _SIZE,
    "patch_dropout": _number(0, 1),
    "attentional_pool": _or(_flag, _one_of("parallel", "cascade")),
    "attn_pooler_queries": _whole(4096),
    "attn_pooler_heads": _whole(512),
    "no_ln_pre": _flag,
    "pos_embed_type": _one_of("learnable", "sin_cos_2d"),
    "pool_type": _one_of("tok", "avg", "none"),
    "timm_model_name": _or(_none, _timm_name),
    "timm_model_pretrained": _flag,
    "timm_pool": _one_of("", "avg", "token", "map", "abs_attn", "rot_attn", "max", "avgmax"),
    "timm_proj": _or(_none, _one_of("", "linear", "mlp", "none")),
    "timm_proj_bias": _flag,
    "timm_drop": _number(0, 1),
    "timm_drop_path": _or(_none, _number(0, 1)),
}
_TEXT: dict[str, Allowed] = _BLOCK | {
    "context_length": _whole(4096),
    "vocab_size": _whole(5_000_000),
    "width": _whole(16384),
    "heads": _whole(512),
    "layers": _whole(512),
    "embed_cls": _flag,
    "pad_id": _whole(5_000_000, 0),
    "eos_id": _whole(5_000_000, 0),
    "no_causal_mask": _flag,
    "pool_type": _one_of("first", "last", "argmax", "eos", "none"),
    "proj_bias": _flag,
    "proj_type": _one_of("linear", "none"),
    "hf_model_name": _or(_none, _hub_name),
    "hf_model_pretrained": _flag,
    "hf_proj_type": _or(_none, _one_of("linear", "mlp")),
    "hf_pooler_type": _or(
        _none,
        _one_of("mean_pooler", "max_pooler", "cls_pooler", "cls_last_hidden_state_pooler"),
    ),
    "hf_tokenizer_name": _or(_none, _hub_name),
    "tokenizer_mode": _none,
    "tokenizer_kwargs": {
        "clean": _one_of("whitespace", "lower", "canonicalize"),
        "strip_sep_token": _flag,
    },
}
_ALLOWED: dict[str, Allowed] = {
    "model_cfg": {
        "embed_dim": _whole(65536),
        "vision_cfg": _VISION,
        "text_cfg": _TEXT,
        "multimodal_cfg": _TEXT
        | {
            "dim_head": _whole(1024),
            "n_queries": _whole(4096),
            "attn_pooler_heads": _whole(512),
        },
        "custom_text": _flag,
        "quick_gelu": _flag,
        "init_logit_scale": _number(-100, 100),
        "init_logit_bias": _or(_none, _number(-100, 100)),
        "nonscalar_logit_scale": _flag,
        "pad_id": _whole(5_000_000, 0),
    },
    "preprocess_cfg": {
        "size": _SIZE,
        "mode": _one_of("RGB"),
        "mean": _list(_number(-10, 10), 3),
        "std": _list(_number(1e-6, 10), 3),
        "interpolation": _one_of("bicubic", "bilinear"),
        "resize_mode": _one_of("shortest", "longest", "squash"),
        "fill_color": _whole(255, 0),
    },
}


OpenClipModel: TypeAlias = open_clip.CLIP | open_clip.CustomTextCLIP | open_clip.CoCa

_MOST_ELONGATED = 1000
_LAYER = ".encoder.layer."
BERT_WORDS = "text.transformer.embeddings.word_embeddings.weight"
_BERT_KEYS = (
    BERT_WORDS,
    "text.transformer.embeddings.position_embeddings.weight",
    "text.transformer.embeddings.token_type_embeddings.weight",
    "text.transformer.encoder.layer.0.intermediate.dense.weight",
)
# Kinds of report towers in open_clip, and the settings that are read from their config.json.
_REPORT_TOWERS = ("bert", "roberta", "xlm-roberta", "mt5", "m2m_100")
_REPORT_LAYERS = ("num_hidden_layers", "num_layers", "encoder_layers", "decoder_layers")
_REPORT_SETTINGS = (
    *_REPORT_LAYERS,
    "vocab_size",
    "hidden_size",
    "d_model",
    "num_attention_heads",
    "num_heads",
    "intermediate_size",
    "d_ff",
    "d_kv",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "num_decoder_layers",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "hidden_act",
    "activation_function",
    "feed_forward_proj",
    "is_encoder_decoder",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "decoder_start_token_id",
    "relative_attention_num_buckets",
    "scale_embedding",
    "relative_attention_max_distance",
    "tie_word_embeddings",
)


def build_model(
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    described: Path | None = None,
    *,
    source: str = "open_clip",
) -> OpenClipModel:
    """Build the model of an open_clip configuration, without its weights.

    Args:
        config: the "model_cfg" of an open_clip_config.json that passed `check_config`.
        tensors: its checkpoint, whose shapes give the sizes of a BERT report tower.
        described: the config.json of a report tower of another kind.
        source: the checkpoint, for messages.

    Raises: WeightsNotFound where a report tower needs a config.json and there is none;
        IncompatibleCheckpoint; UnsafeCheckpoint.
    """
    settings = copy.deepcopy(dict(config))
    report_settings = settings["text_cfg"]
    is_hub_tower = bool(report_settings.get("hf_model_name"))
    # Weights come from the checkpoint alone; these would be downloaded.
    report_settings["hf_model_pretrained"] = False
    settings["vision_cfg"]["timm_model_pretrained"] = False
    kind: type[OpenClipModel] = open_clip.CLIP
    if settings.get("multimodal_cfg"):
        kind = open_clip.CoCa
    elif settings.pop("custom_text", False) or is_hub_tower:
        kind = open_clip.CustomTextCLIP
    with tempfile.TemporaryDirectory() as folder:
        if is_hub_tower:
            _write_report_configuration(report_settings, tensors, described, folder)
            # The library reads nothing but what was written there now.
            report_settings["hf_model_name"] = folder
        try:
            return by_onednn(kind(**settings))
        except Exception as error:  # open_clip, timm and transformers raise any type on bad sizes
            raise IncompatibleCheckpoint(
                f"{source}: its configuration describes no model that open_clip can build "
                f"({type(error).__name__}: {error})"
            ) from None


class OpenClipPipeline(LevelsPipeline):
    """The evaluation transform that the model's configuration asks for.

    Its levels are those before torchvision's ToTensor and Normalize: one channel of a radiograph,
    three of a file that is read as the authors read it.

    Args:
        size: height and width of the model's input.
        settings: the "preprocess_cfg" of an open_clip_config.json.
    """

    stable_name = "vlscore.encoders.blocks.openclip_model:OpenClipPipeline"

    def __init__(self, size: int | tuple[int, int], settings: Mapping[str, Any]) -> None:
        known = {k: v for k, v in settings.items() if k in PreprocessCfg.__dataclass_fields__}
        self._settings = {**known, "size": size}
        transform = image_transform_v2(PreprocessCfg(**self._settings), False)
        *self._steps, _, scaling = transform.transforms
        self._mean, self._std = tuple(scaling.mean), tuple(scaling.std)

    def identity(self) -> str:
        return f"{stable_class(type(self))}({sorted(self._settings.items())})"

    def levels(self, radiograph: Radiograph) -> Grey:
        # The three channels of a grey picture are equal.
        return self._levels(Image.fromarray(radiograph.to_uint8()), radiograph.name)[:1].copy()

    def levels_as_authors(self, path: Path) -> Grey:
        with open_with_pillow(path) as image:
            return self._levels(image, str(path))

    def from_stored(self, stored: Tensor) -> Tensor:
        return normalise(to_unit_range(stored), self._mean, self._std)

    def _levels(self, image: Image.Image, name: str) -> Grey:
        """Shape (3, height, width) of the model's input."""
        if max(image.size) > _MOST_ELONGATED * min(image.size):
            raise too_elongated(image.height, image.width, name)
        for step in self._steps:
            image = step(image)
        return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


class CleaningWordPieces:
    """A BERT tokenizer after open_clip's cleaning of the text (ftfy, HTML entities, spaces)."""

    def __init__(self, tokenizer: WordPieceTokenizer, context: int) -> None:
        self._tokenizer = tokenizer
        self.pad = tokenizer.pad
        self.context = context
        self.digest = tokenizer.digest
        self.size = tokenizer.size

    def __call__(self, texts: Sequence[str]) -> Tokens:
        clean = [whitespace_clean(basic_clean(text)) for text in texts]
        return self._tokenizer(clean, max_tokens=self.context, pad_to=self.context)


def byte_pair_tokenizer(settings: Mapping[str, Any], vocabulary: Path | None) -> ClipTokenizer:
    """CLIP's tokenizer as a "text_cfg" asks for it."""
    options = settings.get("tokenizer_kwargs") or {}
    if "strip_sep_token" in options:
        raise IncompatibleCheckpoint("the configuration asks CLIP's tokenizer for strip_sep_token")
    return ClipTokenizer(vocabulary, context=settings.get("context_length", CONTEXT), **options)


def _write_report_configuration(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor], described: Path | None, folder: str
) -> None:
    """Write the configuration of a report tower of the transformers library, for it to read back.

    A BERT's is taken from its checkpoint's shapes, another's from `described`, a config.json, of
    which only the settings in the list below are read.
    """
    name = settings["hf_model_name"]
    words, positions, kinds, feed_forward = (tensors.get(key) for key in _BERT_KEYS)
    if "bert" in name.lower() and "roberta" not in name.lower() and feed_forward is not None:
        if words is None or positions is None:
            raise IncompatibleCheckpoint(f"the checkpoint holds no embeddings of a {name}")
        config: PretrainedConfig = BertConfig(
            vocab_size=len(words),
            hidden_size=words.shape[1],
            num_hidden_layers=len({key.split(".")[4] for key in tensors if _LAYER in key}),
            num_attention_heads=max(words.shape[1] // 64, 1),
            intermediate_size=len(feed_forward),
            max_position_embeddings=len(positions),
            type_vocab_size=2 if kinds is None else len(kinds),
        )
    elif described is None:
        raise WeightsNotFound(
            f"the report tower {name} needs its config.json: put the one of {name} beside the "
            "checkpoint"
        )
    else:
        config = _read_report_configuration(described, tensors)
    config.save_pretrained(folder)


def _read_report_configuration(path: Path, tensors: Mapping[str, Tensor]) -> PretrainedConfig:
    described = read_json(path, "configuration of a report tower")
    refuse_code(described, str(path))
    kind = described.get("model_type")
    if kind not in _REPORT_TOWERS:
        raise IncompatibleCheckpoint(
            f"{path}: the report tower is a {kind!r}; vlscore takes {', '.join(_REPORT_TOWERS)}"
        )
    chosen: dict[str, Any] = {}
    for key in _REPORT_SETTINGS:
        value = described.get(key)
        if isinstance(value, bool | int | float):
            if not -1 <= value <= 5_000_000:
                raise IncompatibleCheckpoint(f"{path}: {key} is {value}")
            chosen[key] = value
        elif isinstance(value, str) and re.fullmatch(r"[\w-]{1,40}", value):
            chosen[key] = value
    width = chosen.get("hidden_size") or chosen.get("d_model") or 0
    layers = max(chosen.get(key) or 0 for key in _REPORT_LAYERS)
    held = sum(tensor.numel() for tensor in tensors.values())
    if layers * width**2 + (chosen.get("vocab_size") or 0) * width > held:
        raise IncompatibleCheckpoint(f"{path} describes a larger model than the checkpoint holds")
    return AutoConfig.for_model(kind, **chosen)
