"""open_clip models from a configuration, without a hub: towers, pixels, tokens."""

import copy
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import open_clip
from open_clip.tokenizer import basic_clean, whitespace_clean
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from torch import Tensor
from transformers import AutoConfig, BertConfig, PretrainedConfig

from vlscore._signature import stable_class
from vlscore.encoders.blocks.clip_tokens import CONTEXT, ClipTokenizer
from vlscore.encoders.blocks.json_files import read_json, refuse_code
from vlscore.encoders.blocks.levels import LevelsPipeline
from vlscore.encoders.blocks.linear import by_onednn
from vlscore.encoders.blocks.pixels import (
    Grey,
    normalise,
    open_with_pillow,
    to_unit_range,
    too_elongated,
)
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.tokens import Tokens
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound
from vlscore.images import Radiograph

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
# The kinds of report towers that open_clip knows, and what is read of their config.json.
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
    """The model of an open_clip configuration, its weights not yet set.

    Args:
        config: the "model_cfg" of an open_clip_config.json, which `check_config` let pass.
        tensors: its checkpoint, from whose shapes a BERT report tower is sized.
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
        """(3, height, width) of the model's input."""
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
