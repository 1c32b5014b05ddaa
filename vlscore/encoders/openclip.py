"""Any open_clip model, BiomedCLIP (Zhang et al. 2023) among them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import open_clip
from open_clip.tokenizer import HFTokenizer
from torch import Tensor
from torch.nn import functional

from vlscore.encoders.base import ImagePipeline, JointEncoder
from vlscore.encoders.blocks.building import fill, without_initialisation
from vlscore.encoders.blocks.clip_tokens import CONTEXT, ClipTokenizer, whole_context
from vlscore.encoders.blocks.files import checkpoint_in, download_vocabulary, vocabulary_file
from vlscore.encoders.blocks.openclip_model import (
    CleaningWordPieces,
    HubTokenizer,
    OpenClipModel,
    OpenClipPipeline,
    build_model,
    byte_pair_tokenizer,
)
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest
from vlscore.encoders.tokens import Tokens
from vlscore.encoders.weights import find_weights
from vlscore.errors import IncompatibleCheckpoint, UnknownName, WeightsNotFound

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

Tokenizer = ClipTokenizer | CleaningWordPieces | HubTokenizer


@dataclass(frozen=True)
class _Source:
    """Where a model's configuration and checkpoint were found."""

    name: str
    config: dict[str, Any]
    checkpoint: Path


class OpenClipEncoder(JointEncoder):
    """An open_clip model; its embeddings are given unit length.

    The variant says which: a hub id ("hf-hub:org/name" or "org/name"), a folder that holds
    open_clip_config.json and the checkpoint, or one of open_clip's architectures, with the tag of
    its pretrained weights after a colon ("ViT-B-32:laion2b_s34b_b79k") or with weights=PATH. A hub
    id or a tag downloads into the hub's cache, unless weights=PATH says where the files are.
    """

    card = EncoderCard(
        name="openclip",
        title="open_clip model",
        dim=512,
        normalised=True,
        C=None,
        C_source="the paper does not use CLIP models of general images",
        image_size=224,
        max_tokens=CONTEXT,
        licence="as stated by the authors of the model named",
        citation=(
            "Ilharco et al.: OpenCLIP. Zenodo 2021; Cherti et al.: Reproducible scaling laws for "
            "contrastive language-image learning. CVPR 2023"
        ),
        reference_code="open_clip 3.3.0",
        notes=(
            "Dimensions, image size and tokens are those of the model named; shown are ViT-B-32's.",
            "Trained on photographs unless the model named says otherwise.",
        ),
    )
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
            tokenizer: vocabulary file, its folder, or a hub id; default: beside the weights, or
                what the configuration names.
            variant: which model, as above.

        Raises: the errors that `load_encoder` lists.
        """
        source = cls._find(variant or cls.default_variant, weights)
        model_config = source.config["model_cfg"]
        tensors = load_checkpoint(source.checkpoint)
        with without_initialisation():
            model = build_model(model_config, tensors)
        prefix = "module." if all(key.startswith("module.") for key in tensors) else ""
        fill(model, tensors, source=source.checkpoint, key_of=lambda name: prefix + name)
        size: int | tuple[int, int] = model.visual.image_size
        pieces = _tokenizer(model_config["text_cfg"], tokenizer, source.checkpoint)
        encoder = cls(
            model,
            OpenClipPipeline(size, source.config.get("preprocess_cfg", {})),
            pieces,
            cls._card(source.name, model_config, size, pieces.context),
        )
        encoder.checksum = tensors_digest(tensors)
        return encoder

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.tokenizer(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return functional.normalize(self.model.encode_image(pixels).float(), dim=-1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        ids = whole_context(tokens.ids, self.tokenizer.context, self.tokenizer.pad)
        return functional.normalize(self.model.encode_text(ids).float(), dim=-1)

    @classmethod
    def _find(cls, variant: str | None, weights: str | Path | None) -> _Source:
        if weights is not None:
            return cls._find_here(variant, Path(weights))
        if variant is None:
            raise WeightsNotFound(
                "openclip needs to know which model: openclip:ARCHITECTURE:TAG, "
                "openclip:hf-hub:ORG/NAME, openclip:FOLDER, or weights=FOLDER"
            )
        if Path(variant).is_dir():
            return cls._find_here(None, Path(variant))
        if cls.default_config is not None:
            return cls._find_here(variant, find_weights(cls.card.name, None, CHECKPOINT_NAMES))
        if "/" in variant:
            return _find_on_hub(variant.removeprefix(_HUB))
        return _find_pretrained(variant)

    @classmethod
    def _find_here(cls, variant: str | None, place: Path) -> _Source:
        checkpoint = checkpoint_in(place, CHECKPOINT_NAMES)
        described = checkpoint.parent / CONFIG_NAME
        if described.is_file():
            return _Source(variant or place.name, _read_config(described), checkpoint)
        if cls.default_config is not None:
            return _Source(cls.card.name, cls.default_config, checkpoint)
        if variant is None:
            raise WeightsNotFound(f"{described} is not there: it says which model this is")
        if variant.removeprefix(_HUB) == BIOMEDCLIP_ID:
            return _Source(variant, BIOMEDCLIP_CONFIG, checkpoint)
        return _Source(variant, {"model_cfg": _architecture(variant.partition(":")[0])}, checkpoint)

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

    card = EncoderCard(
        name="biomedclip",
        title="BiomedCLIP",
        dim=512,
        normalised=True,
        C=None,
        C_source="the paper does not use BiomedCLIP",
        image_size=224,
        max_tokens=256,
        licence="MIT",
        citation=(
            "Zhang et al.: BiomedCLIP: a multimodal biomedical foundation model pretrained from "
            "fifteen million scientific image-text pairs. 2023"
        ),
        reference_code="open_clip 3.3.0",
        notes=("Trained on figures of biomedical articles; radiographs are a small part.",),
    )
    default_variant = _HUB + BIOMEDCLIP_ID
    default_config = BIOMEDCLIP_CONFIG

    @classmethod
    def _card(
        cls, name: str, config: dict[str, Any], size: int | tuple[int, int], context: int
    ) -> EncoderCard:
        return cls.card


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        config["model_cfg"]["embed_dim"], config["model_cfg"]["text_cfg"]
    except (ValueError, KeyError, TypeError) as error:
        raise IncompatibleCheckpoint(f"{path} is no configuration of open_clip: {error}") from None
    return config


def _architecture(name: str) -> dict[str, Any]:
    config = open_clip.get_model_config(name)
    if config is None:
        known = ", ".join(open_clip.list_models()[:5])
        raise UnknownName(
            f"open_clip has no architecture {name!r}; it has {known}, ... "
            "(open_clip.list_models() lists all)"
        )
    return config


def _find_on_hub(hub_id: str) -> _Source:
    from huggingface_hub import hf_hub_download

    problem: Exception | None = None
    for name in CHECKPOINT_NAMES:
        try:
            config = _read_config(Path(hf_hub_download(hub_id, CONFIG_NAME)))
            checkpoint = Path(hf_hub_download(hub_id, name))
            # The user named the hub, so what the tokenizer needs may come from there as well.
            if download_vocabulary(hub_id) is None:
                download_vocabulary(config["model_cfg"]["text_cfg"].get("hf_tokenizer_name"))
            return _Source(_HUB + hub_id, config, checkpoint)
        except IncompatibleCheckpoint:
            raise
        except Exception as error:  # the hub library raises many unrelated types
            problem = error
    raise WeightsNotFound(
        f"{hub_id} could not be had from the hub ({type(problem).__name__}); download "
        f"{CONFIG_NAME} and {' or '.join(CHECKPOINT_NAMES)} and give their folder as weights="
    )


def _find_pretrained(variant: str) -> _Source:
    name, _, tag = variant.partition(":")
    config = _architecture(name)
    tags = open_clip.list_pretrained_tags_by_model(name)
    if tag not in tags:
        raise WeightsNotFound(
            f"openclip:{name} has weights under the tags {', '.join(tags) or '(none)'}: name one "
            f"(openclip:{name}:TAG), or give a checkpoint as weights="
        )
    pretrained = open_clip.get_pretrained_cfg(name, tag)
    try:
        checkpoint = Path(open_clip.download_pretrained(pretrained))
    except Exception as error:  # network and hub libraries raise many unrelated types
        raise WeightsNotFound(
            f"openclip:{variant} could not be downloaded ({type(error).__name__}: {error})"
        ) from None
    # An architecture may have weights of either activation; the tag knows which these are.
    config["quick_gelu"] = pretrained.get("quick_gelu", config.get("quick_gelu", False))
    return _Source(variant, {"model_cfg": config, "preprocess_cfg": pretrained}, checkpoint)


def _tokenizer(settings: dict[str, Any], given: str | Path | None, checkpoint: Path) -> Tokenizer:
    hub_id = settings.get("hf_tokenizer_name")
    if not hub_id:
        return byte_pair_tokenizer(settings, None if given is None else Path(given))
    context = settings.get("context_length", CONTEXT)
    options = settings.get("tokenizer_kwargs", {})
    if "bert" in hub_id.lower() and "uncased" in hub_id.lower() and not options:
        path = vocabulary_file(given, beside=checkpoint, hub_id=hub_id)
        return CleaningWordPieces(WordPieceTokenizer.from_file(path), context)
    try:
        return HubTokenizer(HFTokenizer(str(given or hub_id), context_length=context, **options))
    except OSError as error:
        raise WeightsNotFound(
            f"the tokenizer {given or hub_id} could not be had: {error}; give its folder as "
            "tokenizer=PATH"
        ) from None
