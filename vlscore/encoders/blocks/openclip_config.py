"""Configurations of open_clip models, read as data: what is not listed here is refused by name.

A configuration can ask the libraries behind open_clip to import code, from its folder or from a
hub, or to unpickle a file. No setting that could is in the list, and no value that names a place
is passed on.
"""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from torch import Tensor

from vlscore.encoders.blocks.json_files import read_json, refuse_code
from vlscore.errors import IncompatibleCheckpoint

CONFIG_NAME = "open_clip_config.json"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_TIMM_NAME = re.compile(r"[a-z0-9_]+(\.\w+)?")

Check: TypeAlias = Callable[[Any], bool]
Allowed: TypeAlias = "Check | dict[str, Allowed]"


def read_config(path: Path) -> dict[str, Any]:
    """An open_clip_config.json, every setting of which is in the list below.

    Raises:
        UnsafeCheckpoint: it asks for code to be run.
        IncompatibleCheckpoint: it is no such configuration, or has a setting or value that is not
            in the list.
    """
    config = read_json(path, "configuration of open_clip")
    check_config(config, str(path))
    return config


def check_config(config: Mapping[str, Any], source: str) -> None:
    """Raises as `read_config`."""
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
