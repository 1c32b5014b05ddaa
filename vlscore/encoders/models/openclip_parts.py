"""Parts of open_clip models: configuration, towers, pixels and tokens, without a hub.

Configurations are read as data: one that asks to run code is refused, and no name in it that the
libraries would look up on a hub is passed on.
"""

import copy
import json
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

from vlscore.encoders.base import Tokens
from vlscore.encoders.blocks.pixels import (
    Grey,
    Uint8Pipeline,
    normalise,
    open_with_pillow,
    to_unit_range,
    too_elongated,
)
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer, read_json, refuse_code
from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint


def read_config(path: Path) -> dict[str, Any]:
    """Read an open_clip_config.json.

    Raises:
        UnsafeCheckpoint: it asks to run code, or names a model of timm's on a hub.
        IncompatibleCheckpoint: it is no such configuration.
    """
    config = read_json(path, "configuration of open_clip")
    refuse_code(config, str(path))
    model = config.get("model_cfg")
    towers = ("vision_cfg", "text_cfg")
    if not isinstance(model, dict) or not all(isinstance(model.get(key), dict) for key in towers):
        raise IncompatibleCheckpoint(
            f"{path} is no configuration of open_clip: model_cfg must hold {' and '.join(towers)}"
        )
    name = model["vision_cfg"].get("timm_model_name")
    if ":" in str(name):
        raise UnsafeCheckpoint(f"{path} sets timm_model_name to {name!r}, which timm would look up")
    if model["text_cfg"].get("tokenizer_mode"):
        raise IncompatibleCheckpoint(f"{path} sets tokenizer_mode, which vlscore does not support")
    return config


OpenClipModel: TypeAlias = open_clip.CLIP | open_clip.CustomTextCLIP | open_clip.CoCa

_LAYER = ".encoder.layer."
_TOWER = "text.transformer."
BERT_WORDS = f"{_TOWER}embeddings.word_embeddings.weight"


def build_model(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], *, source: str = "open_clip"
) -> OpenClipModel:
    """Build the model of an open_clip configuration, without its weights.

    Args:
        config: the "model_cfg" of an open_clip_config.json that `read_config` read.
        tensors: its checkpoint, whose shapes give the sizes of a BERT report tower.
        source: the checkpoint, for messages.

    Raises: IncompatibleCheckpoint, also for a report tower of transformers that is no BERT.
    """
    settings = copy.deepcopy(dict(config))
    text = settings["text_cfg"]
    # Weights come from the checkpoint alone; these would be downloaded.
    text["hf_model_pretrained"] = settings["vision_cfg"]["timm_model_pretrained"] = False
    kind: type[OpenClipModel] = open_clip.CLIP
    if settings.get("multimodal_cfg"):
        kind = open_clip.CoCa
    elif settings.pop("custom_text", False) or text.get("hf_model_name"):
        kind = open_clip.CustomTextCLIP
    with tempfile.TemporaryDirectory() as folder:
        if text.get("hf_model_name"):
            tower = json.dumps(_bert_config(tensors, source))
            (Path(folder) / "config.json").write_text(tower, encoding="utf-8")
            # The library reads nothing but what was written there now.
            text["hf_model_name"] = folder
        try:
            return kind(**settings)
        except Exception as error:  # open_clip, timm and transformers raise any type on bad sizes
            raise IncompatibleCheckpoint(
                f"{source}: its configuration describes no model that open_clip can build "
                f"({type(error).__name__}: {error})"
            ) from None


def _bert_config(tensors: Mapping[str, Tensor], source: str) -> dict[str, Any]:
    """Return the config.json of a BERT report tower from the shapes of its tensors."""
    words = tensors.get(BERT_WORDS)
    if words is None or words.ndim != 2 or not any(_LAYER in key for key in tensors):
        raise IncompatibleCheckpoint(
            f"{source}: its report tower is no BERT; vlscore takes open_clip's own towers, and BERT"
        )
    sizes = {
        "max_position_embeddings": f"{_TOWER}embeddings.position_embeddings.weight",
        "type_vocab_size": f"{_TOWER}embeddings.token_type_embeddings.weight",
        "intermediate_size": f"{_TOWER}encoder.layer.0.intermediate.dense.weight",
    }
    return {
        "model_type": "bert",
        "vocab_size": len(words),
        "hidden_size": words.shape[1],
        "num_hidden_layers": len({key.split(".")[4] for key in tensors if _LAYER in key}),
        "num_attention_heads": max(words.shape[1] // 64, 1),
        **{setting: len(tensors[key]) for setting, key in sizes.items() if key in tensors},
    }


_MOST_ELONGATED = 1000


class OpenClipPipeline(Uint8Pipeline):
    """The evaluation transform that the model's configuration asks for.

    Its uint8 pixels are those before torchvision's ToTensor and Normalize: one channel of a
    radiograph, three of a file that is read as the authors read it.

    Args:
        size: height and width of the model's input.
        settings: the "preprocess_cfg" of an open_clip_config.json.
    """

    def __init__(self, size: int | tuple[int, int], settings: Mapping[str, Any]) -> None:
        known = {k: v for k, v in settings.items() if k in PreprocessCfg.__dataclass_fields__}
        self._settings = {**known, "size": size}
        transform = image_transform_v2(PreprocessCfg(**self._settings), False)
        *self._steps, _, scaling = transform.transforms
        self._mean, self._std = tuple(scaling.mean), tuple(scaling.std)

    def identity(self) -> str:
        return f"{type(self).__name__}({sorted(self._settings.items())})"

    @staticmethod
    def read_as_authors(path: Path) -> Image.Image:
        with open_with_pillow(path) as image:
            image.load()
        return image

    def from_stored(self, stored: Tensor) -> Tensor:
        return normalise(to_unit_range(stored), self._mean, self._std)

    def uint8_pixels(self, picture: Grey | Image.Image, name: str) -> Grey:
        image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
        if max(image.size) > _MOST_ELONGATED * min(image.size):
            raise too_elongated(image.height, image.width, name)
        for step in self._steps:
            image = step(image)
        found = np.asarray(image, dtype=np.uint8).transpose(2, 0, 1)
        # The three channels of a grey picture are equal.
        return np.array(found[:1] if isinstance(picture, np.ndarray) else found, order="C")


class CleaningWordPieces:
    """A BERT tokenizer after open_clip's cleaning of the text (ftfy, HTML entities, spaces)."""

    def __init__(self, tokenizer: WordPieceTokenizer, context: int) -> None:
        self._tokenizer = tokenizer
        self.context = context
        self.pad, self.digest, self.size = tokenizer.pad, tokenizer.digest, tokenizer.size

    def __call__(self, texts: Sequence[str]) -> Tokens:
        clean = [whitespace_clean(basic_clean(text)) for text in texts]
        return self._tokenizer(clean, max_tokens=self.context, pad_to=self.context)
