"""Any open_clip model, BiomedCLIP (Zhang et al. 2023) among them."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import open_clip
from torch import Tensor
from torch.nn import functional

from vlscore.encoders.base import JointEncoder, Tokens
from vlscore.encoders.blocks.tokenizers import (
    CONTEXT,
    TOKENIZER_FILES,
    ClipTokenizer,
    JsonTokenizer,
    WordPieceTokenizer,
    whole_context,
)
from vlscore.encoders.cards import EncoderCard, card_of
from vlscore.encoders.checkpoints import (
    is_mapped,
    load_checkpoint,
    tensors_digest,
    without_wrappers,
)
from vlscore.encoders.hub import download, is_hub_id
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.encoders.models.openclip_parts import (
    BERT_WORDS,
    CleaningWordPieces,
    OpenClipModel,
    OpenClipPipeline,
    build_model,
    read_config,
)
from vlscore.encoders.published import load_state_dict, without_initialisation
from vlscore.encoders.weight_files import (
    checkpoint_in,
    download_vocabulary,
    find_weights,
    vocabulary_file,
)
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting, UnknownName, WeightsNotFound

CONFIG_NAME = "open_clip_config.json"
CHECKPOINT_NAMES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
BIOMEDCLIP_ID = "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224"
_HUB = "hf-hub:"
_BIOMED_BERT = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract"

BIOMEDCLIP_CONFIG: dict[str, Any] = {
    "model_cfg": {
        "embed_dim": 512,
        "vision_cfg": {
            "timm_model_name": "vit_base_patch16_224",
            "timm_model_pretrained": False,
            "timm_pool": "",
            "timm_proj": "linear",
            "image_size": 224,
        },
        "text_cfg": {
            "hf_model_name": _BIOMED_BERT,
            "hf_tokenizer_name": _BIOMED_BERT,
            "hf_proj_type": "mlp",
            "hf_pooler_type": "cls_last_hidden_state_pooler",
            "context_length": 256,
        },
    },
    "preprocess_cfg": {
        "mean": [0.48145466, 0.4578275, 0.40821073],
        "std": [0.26862954, 0.26130258, 0.27577711],
    },
}


Tokenizer = ClipTokenizer | CleaningWordPieces | JsonTokenizer


class _ModelFiles(NamedTuple):
    name: str
    config: dict[str, Any]
    checkpoint: Path


class OpenClipEncoder(JointEncoder):
    """An open_clip model; its embeddings are scaled to unit length.

    The model is a folder with open_clip_config.json and the checkpoint (weights=FOLDER), or the
    variant names it: a hub id ("hf-hub:org/name" or "org/name"), or one of open_clip's
    architectures, with the tag of its pretrained weights after a colon
    ("ViT-B-32:laion2b_s34b_b79k") or with weights=PATH; as in open_clip, "ViT-B/32" is the same
    architecture. A hub id or a tag downloads into the hub's cache, unless weights=PATH says where
    the files are.
    """

    card = card_of("openclip")
    variants: ClassVar[tuple[str, ...] | None] = None
    default_variant: ClassVar[str | None] = None
    default_config: ClassVar[dict[str, Any] | None] = None

    def __init__(
        self, model: OpenClipModel, pipeline: ImagePipeline, tokenizer: Tokenizer, card: EncoderCard
    ) -> None:
        super().__init__()
        self.card = card
        self.model = model
        self.image_pipeline = pipeline
        self.tokenizer = tokenizer

    @classmethod
    def load(
        cls,
        weights: str | Path | None = None,
        tokenizer: str | Path | None = None,
        variant: str | None = None,
    ) -> Self:
        """Read a checkpoint, safely, and fill the model that its configuration describes.

        Args:
            weights: checkpoint file, or the folder that holds it and its configuration.
            tokenizer: vocabulary file, its folder, or a hub id; default: the weights' folder, or
                the configuration's tokenizer.
            variant: the model, as above.

        Raises: the errors that `load_encoder` lists.
        """
        source = cls._find(variant or cls.default_variant, weights)
        model_config = source.config["model_cfg"]
        stored = load_checkpoint(source.checkpoint)
        tensors = without_wrappers(stored)
        pieces = _tokenizer(model_config["text_cfg"], tokenizer, source)
        if isinstance(pieces, CleaningWordPieces) and BERT_WORDS in tensors:
            known = len(tensors[BERT_WORDS])
            if pieces.size > known:
                raise IncompatibleCheckpoint(
                    f"{source.checkpoint} knows {known} word pieces, but the vocabulary has "
                    f"{pieces.size}: give the one that it was trained with as tokenizer="
                )
        with without_initialisation():
            model = build_model(model_config, tensors, source=str(source.checkpoint))
        load_state_dict(
            model, tensors, source=source.checkpoint, share=is_mapped(source.checkpoint)
        )
        size: int | tuple[int, int] = model.visual.image_size
        encoder = cls(
            model,
            OpenClipPipeline(size, source.config.get("preprocess_cfg", {})),
            pieces,
            cls._card(source.name, model_config, size, pieces.context),
        )
        encoder.weights_digest = tensors_digest(stored)
        return encoder

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.tokenizer(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return functional.normalize(self.model.encode_image(pixels).float(), dim=-1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        ids = whole_context(tokens.ids, self.tokenizer.context, self.tokenizer.pad)
        return functional.normalize(self.model.encode_text(ids).float(), dim=-1)

    @classmethod
    def _find(cls, variant: str | None, weights: str | Path | None) -> _ModelFiles:
        if weights is not None:
            return cls._find_local(variant, Path(weights))
        if variant is None:
            raise WeightsNotFound(
                "openclip needs to know which model: openclip:ARCHITECTURE:TAG, "
                "openclip:hf-hub:ORG/NAME, or weights=FOLDER"
            )
        if cls.default_config is not None:
            return cls._find_local(variant, find_weights(cls.card.name, None, CHECKPOINT_NAMES))
        if "/" in variant and _name_and_tag(variant)[0] not in open_clip.list_models():
            return _find_on_hub(variant.removeprefix(_HUB))
        return _find_pretrained(variant)

    @classmethod
    def _find_local(cls, variant: str | None, path: Path) -> _ModelFiles:
        checkpoint = checkpoint_in(path, CHECKPOINT_NAMES)
        described = checkpoint.parent / CONFIG_NAME
        if described.is_file():
            return _ModelFiles(variant or path.name, read_config(described), checkpoint)
        if cls.default_config is not None:
            return _ModelFiles(cls.card.name, cls.default_config, checkpoint)
        if variant is None:
            raise WeightsNotFound(f"{described} is not there: it says which model this is")
        return _ModelFiles(
            variant, {"model_cfg": _architecture(_name_and_tag(variant)[0])}, checkpoint
        )

    @classmethod
    def _card(
        cls, name: str, config: dict[str, Any], size: int | tuple[int, int], context: int
    ) -> EncoderCard:
        return replace(
            cls.card,
            name=f"openclip:{name}",
            title=f"open_clip {name}",
            dim=config["embed_dim"],
            image_size=size if isinstance(size, int) else size[0],
            max_tokens=context,
            notes=cls.card.notes[1:],
        )


class BiomedClipEncoder(OpenClipEncoder):
    """BiomedCLIP: ViT-B/16 and PubMedBERT, 512 dimensions, unit length."""

    card = card_of("biomedclip")
    variants = ()
    default_variant = _HUB + BIOMEDCLIP_ID
    default_config = BIOMEDCLIP_CONFIG

    @classmethod
    def _card(
        cls, name: str, config: dict[str, Any], size: int | tuple[int, int], context: int
    ) -> EncoderCard:
        return cls.card


def _name_and_tag(variant: str) -> tuple[str, str]:
    """Return architecture and tag ("" without one) in open_clip's spelling.

    OpenAI's names have a slash where open_clip's have a hyphen, and open_clip takes both. A tag may
    follow a slash, too.
    """
    name, _, tag = variant.partition(":")
    known = open_clip.list_models()
    if not tag and name.replace("/", "-") not in known:
        before, _, last = name.rpartition("/")
        if before.replace("/", "-") in known:
            name, tag = before, last
    return name.replace("/", "-"), tag


def _architecture(name: str) -> dict[str, Any]:
    config = open_clip.get_model_config(name)
    if config is None:
        known = ", ".join(open_clip.list_models()[:5])
        raise UnknownName(
            f"open_clip has no architecture {name!r}; it has {known}, ... "
            "(open_clip.list_models() lists all)"
        )
    found: dict[str, Any] = config
    return found


def _find_on_hub(hub_id: str) -> _ModelFiles:
    if not is_hub_id(hub_id):
        raise UnknownName(f"{hub_id!r} is no hub repository (ORG/NAME) and no folder")
    try:
        config = read_config(download(hub_id, CONFIG_NAME))
        checkpoint = _first_downloaded(hub_id, CHECKPOINT_NAMES)
    except WeightsNotFound as error:
        raise WeightsNotFound(
            f"{error}; or download {CONFIG_NAME} and {' or '.join(CHECKPOINT_NAMES)} and give "
            "their folder as weights="
        ) from None
    # The user named the hub, so the tokenizer may come from there, too.
    if download_vocabulary(hub_id) is None:
        _fetch_tokenizer(config["model_cfg"]["text_cfg"])
    return _ModelFiles(_HUB + hub_id, config, checkpoint)


def _first_downloaded(hub_id: str, names: Sequence[str]) -> Path:
    """Return the first of these files that the hub has. Raises: WeightsNotFound for the last."""
    for name in names[:-1]:
        with contextlib.suppress(WeightsNotFound):
            return download(hub_id, name)
    return download(hub_id, names[-1])


def _fetch_tokenizer(settings: dict[str, Any]) -> None:
    """Download the files of a tokenizer into the hub's cache."""
    hub_id = settings.get("hf_tokenizer_name") or ""
    for name in ("vocab.txt", *TOKENIZER_FILES) if is_hub_id(hub_id) else ():
        with contextlib.suppress(WeightsNotFound):
            download(hub_id, name)


def _downloaded(variant: str, pretrained: dict[str, Any]) -> Path:
    """Return the checkpoint that open_clip lists, from the hub's cache or the network.

    open_clip's own download repeats its attempts for a minute where there is no network.
    """
    hub_id, _, name = (pretrained.get("hf_hub") or "").rpartition("/")
    names = [str(Path(name).with_suffix(".safetensors")), name] if name else CHECKPOINT_NAMES
    try:
        if hub_id:
            return _first_downloaded(hub_id, names)
        return Path(open_clip.download_pretrained(pretrained))
    except Exception as error:  # network libraries raise many unrelated types
        raise WeightsNotFound(
            f"openclip:{variant} could not be downloaded ({error}); or give its checkpoint with "
            "weights=PATH"
        ) from None


def _find_pretrained(variant: str) -> _ModelFiles:
    name, tag = _name_and_tag(variant)
    config = _architecture(name)
    tags = open_clip.list_pretrained_tags_by_model(name)
    if tag not in tags:
        raise WeightsNotFound(
            f"openclip:{name} has weights under the tags {', '.join(tags) or '(none)'}: name one "
            f"(openclip:{name}:TAG), or give a checkpoint as weights="
        )
    pretrained = open_clip.get_pretrained_cfg(name, tag)
    checkpoint = _downloaded(variant, pretrained)
    # An architecture may have weights for either activation; the tag decides.
    config["quick_gelu"] = pretrained.get("quick_gelu", config.get("quick_gelu", False))
    _fetch_tokenizer(config["text_cfg"])
    return _ModelFiles(variant, {"model_cfg": config, "preprocess_cfg": pretrained}, checkpoint)


def _tokenizer(
    settings: dict[str, Any], named: str | Path | None, source: _ModelFiles
) -> Tokenizer:
    """Read the tokenizer of a "text_cfg" as data: from `named`, the checkpoint's folder or cache.

    The configuration's name of the tokenizer is never looked up on a hub.
    """
    name = settings.get("hf_tokenizer_name")
    context = settings.get("context_length", CONTEXT)
    options = settings.get("tokenizer_kwargs") or {}
    checkpoint = source.checkpoint
    try:
        if not name:
            if named is not None:
                raise InvalidSetting(f"{named}: the tokenizer comes with open_clip; leave it out")
            return ClipTokenizer(context=context, **options)
        if not options and "bert" in name.lower() and "uncased" in name.lower():
            path = vocabulary_file(named, next_to=checkpoint, hub_id=name)
            return CleaningWordPieces(WordPieceTokenizer.from_file(path), context)
        path = vocabulary_file(named, next_to=checkpoint, hub_id=name, names=TOKENIZER_FILES[:1])
        return JsonTokenizer(path, context, **options)
    except (TypeError, AssertionError) as error:
        raise IncompatibleCheckpoint(
            f"{checkpoint}: tokenizer_kwargs of its configuration: {error}"
        ) from None
