"""open_clip models from a configuration, without a hub: towers, pixels, tokens."""

import contextlib
import copy
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import open_clip
import torch
from open_clip.tokenizer import HFTokenizer, basic_clean, whitespace_clean
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from torch import Tensor
from transformers import BertConfig

from vlscore.encoders.base import ImagePipeline
from vlscore.encoders.blocks.clip_tokens import CONTEXT, ClipTokenizer
from vlscore.encoders.blocks.pixels import too_elongated
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.tokens import Tokens
from vlscore.errors import UnreadableImage, WeightsNotFound
from vlscore.images import Radiograph

OpenClipModel: TypeAlias = open_clip.CLIP | open_clip.CustomTextCLIP | open_clip.CoCa

_MOST_ELONGATED = 1000
_BERT_KEY = "text.transformer.embeddings.{}_embeddings.weight"


def build_model(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> OpenClipModel:
    """The model of an open_clip configuration, its weights not yet set.

    Args:
        config: the "model_cfg" of an open_clip_config.json.
        tensors: its checkpoint, from whose shapes a BERT report tower is sized.

    Raises: WeightsNotFound where a report tower of another kind needs its configuration from
        the hub, and the hub cannot be asked.
    """
    settings = copy.deepcopy(dict(config))
    report_settings = settings["text_cfg"]
    is_hub_tower = "hf_model_name" in report_settings
    settings["vision_cfg"].pop("timm_model_pretrained", None)
    if is_hub_tower:
        report_settings["hf_model_pretrained"] = False
    if settings["vision_cfg"].get("timm_model_name"):
        settings["vision_cfg"]["timm_model_pretrained"] = False
    kind: type[OpenClipModel] = open_clip.CLIP
    if "multimodal_cfg" in settings:
        kind = open_clip.CoCa
    elif settings.pop("custom_text", False) or is_hub_tower:
        kind = open_clip.CustomTextCLIP
    with _bert_configuration(report_settings, tensors) if is_hub_tower else _nothing():
        try:
            return kind(**settings)
        except OSError as error:
            raise WeightsNotFound(
                f"the report tower {report_settings.get('hf_model_name')} needs its configuration "
                f"from the hub: {error}"
            ) from None


class OpenClipPipeline(ImagePipeline):
    """The evaluation transform that the model's configuration asks for.

    Args:
        size: height and width of the model's input.
        settings: the "preprocess_cfg" of an open_clip_config.json.
    """

    def __init__(self, size: int | tuple[int, int], settings: Mapping[str, Any]) -> None:
        known = {k: v for k, v in settings.items() if k in PreprocessCfg.__dataclass_fields__}
        self._transform = image_transform_v2(PreprocessCfg(**{**known, "size": size}), False)

    def __call__(self, radiograph: Radiograph) -> Tensor:
        return self._tensor(Image.fromarray(radiograph.to_uint8()), radiograph.name)

    def as_authors(self, path: Path) -> Tensor:
        try:
            with Image.open(path) as image:
                return self._tensor(image, str(path))
        except (OSError, SyntaxError, ValueError) as error:
            raise UnreadableImage(
                f'{path}: Pillow, which the image policy "authors" reads with, cannot read it '
                f"({error}); use the default image policy"
            ) from None

    def _tensor(self, image: Image.Image, name: str) -> Tensor:
        if max(image.size) > _MOST_ELONGATED * min(image.size):
            raise too_elongated(image.height, image.width, name)
        return self._transform(image)


class CleaningWordPieces:
    """A BERT tokenizer after open_clip's cleaning of the text (ftfy, HTML entities, spaces)."""

    def __init__(self, tokenizer: WordPieceTokenizer, context: int) -> None:
        self._tokenizer = tokenizer
        self.pad = tokenizer.pad
        self.context = context

    def __call__(self, texts: Sequence[str]) -> Tokens:
        clean = [whitespace_clean(basic_clean(text)) for text in texts]
        return self._tokenizer(clean, max_tokens=self.context, pad_to=self.context)


class HubTokenizer:
    """Any other tokenizer of the hub, as open_clip runs it."""

    def __init__(self, tokenizer: HFTokenizer) -> None:
        self._tokenizer = tokenizer
        self.pad = int(tokenizer.tokenizer.pad_token_id or 0)
        self.context = int(tokenizer.context_length)

    def __call__(self, texts: Sequence[str]) -> Tokens:
        ids = self._tokenizer(list(texts)) if texts else torch.zeros(0, self.context).long()
        clean = [self._tokenizer.clean_fn(text) for text in texts]
        full_lengths = [len(self._tokenizer.tokenizer(text).input_ids) for text in clean]
        kept = torch.tensor(full_lengths, dtype=torch.long).clamp(max=self.context)
        mask = (torch.arange(self.context) < kept[:, None]).long()
        return Tokens(ids, mask, torch.tensor(full_lengths, dtype=torch.long))


def byte_pair_tokenizer(settings: Mapping[str, Any], vocabulary: Path | None) -> ClipTokenizer:
    """CLIP's tokenizer as a "text_cfg" asks for it."""
    return ClipTokenizer(
        vocabulary,
        context=settings.get("context_length", CONTEXT),
        **settings.get("tokenizer_kwargs", {}),
    )


@contextlib.contextmanager
def _bert_configuration(settings: dict[str, Any], tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Point a BERT report tower at a configuration written from its checkpoint's shapes."""
    name = settings["hf_model_name"].lower()
    words, positions, kinds = (
        tensors.get(_BERT_KEY.format(part)) for part in ("word", "position", "token_type")
    )
    if "bert" not in name or "roberta" in name or words is None or positions is None:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        layers = {key.split(".")[4] for key in tensors if ".encoder.layer." in key}
        feed_forward = tensors["text.transformer.encoder.layer.0.intermediate.dense.weight"]
        BertConfig(
            vocab_size=len(words),
            hidden_size=words.shape[1],
            num_hidden_layers=len(layers),
            num_attention_heads=words.shape[1] // 64,
            intermediate_size=len(feed_forward),
            max_position_embeddings=len(positions),
            type_vocab_size=2 if kinds is None else len(kinds),
        ).save_pretrained(folder)
        settings["hf_model_name"] = folder
        yield


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield
