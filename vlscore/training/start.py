"""The encoder before the first step: a new small one, or one that is loaded.

encoder = loaded_encoder(Start("limitr", weights="limitr.pth"))
encoder = small_encoder(Start(style="convirt"), reports, seed=1)
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from vlscore.encoders import (
    JointEncoder,
    check_ready,
    checkpoint_in,
    load_checkpoint,
    load_encoder,
    load_state_dict,
    timm_names,
)
from vlscore.errors import IncompatibleCheckpoint
from vlscore.training.settings import Start

_FILES = ("model.safetensors", "pytorch_model.bin")
# Endings of a tensor name that identify EfficientNet-Lite0 with timm's names, and with those of
# efficientnet_lite_pytorch; the part before the ending is the prefix of all its tensors.
_LANDMARKS = ("blocks.6.0.conv_pwl.weight", "_blocks.15._project_conv.weight")
_CLASSIFIER = ("conv_head.", "bn2.", "classifier.")


def loaded_encoder(start: Start) -> JointEncoder | None:
    """Return the encoder before the first step; None for a small one, which needs reports.

    Raises: those of `load_encoder`; BrokenContract for an encoder that is in training mode.
    """
    if start.is_small:
        return None
    if isinstance(start.encoder, JointEncoder):
        check_ready(start.encoder)
        return start.encoder
    return load_encoder(start.encoder, weights=start.weights, tokenizer=start.tokenizer)


def small_encoder(
    start: Start, reports: Sequence[str], seed: int, *, lateral: bool = False
) -> JointEncoder:
    """Return a new small encoder with the words of the training reports.

    Args: lateral: whether it reads lateral views too.
    Raises: IncompatibleCheckpoint, WeightsNotFound and UnsafeCheckpoint for image weights.
    """
    from vlscore.encoders import READINGS, STYLES, SmallEncoder, SmallSettings

    settings = SmallSettings(**start.small_settings(), lateral=lateral)
    options = asdict(settings) | {"dim": STYLES[settings.style].dim}
    words = READINGS[settings.reading].vocabulary_of(reports)
    encoder = SmallEncoder.new(words, seed=seed, **options).eval()
    if start.image_weights is not None:
        path, tensors = Path(start.image_weights), image_tensors(str(start.image_weights))
        load_state_dict(encoder.image_trunk, tensors, source=path, what="EfficientNet-Lite0")
    return encoder


def loaded_modules(start: Start) -> tuple[str, ...]:
    """Return the names of the encoder's modules that start from loaded weights."""
    if not start.is_small:
        return ("",)
    return ("image_trunk",) if start.image_weights is not None else ()


@lru_cache(1)
def image_tensors(weights: str) -> Mapping[str, Tensor]:
    """Return EfficientNet-Lite0's tensors with timm's names, without the classifier.

    Args: weights: a file, or a folder with one, which may hold the network inside a larger model.
    Raises: WeightsNotFound, UnsafeCheckpoint; IncompatibleCheckpoint without such a network.
    """
    path = checkpoint_in(Path(weights), _FILES)
    tensors = load_checkpoint(path)
    for landmark in _LANDMARKS:
        found = [key for key in tensors if f".{key}".endswith(f".{landmark}")]
        if len(found) == 1:
            prefix = found[0].removesuffix(landmark)
            own = {
                key.removeprefix(prefix): value
                for key, value in tensors.items()
                if key.startswith(prefix)
            }
            named = timm_names(own).items()
            return {name: value for name, value in named if not name.startswith(_CLASSIFIER)}
    raise IncompatibleCheckpoint(
        f"{path} does not hold one EfficientNet-Lite0 with timm's or efficientnet_lite_pytorch's "
        f"names: one of its {len(tensors)} tensors must be called {' or '.join(_LANDMARKS)}"
    )


def own_copy(encoder: JointEncoder) -> JointEncoder:
    """Return the encoder itself, with its tensors copied to new memory and its digests cleared.

    The tensors of a checkpoint may lie in the mapped file, which training must not write to.
    """
    for tensor in (*encoder.parameters(), *encoder.buffers()):
        tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
    # These digests describe the weights that training is about to change.
    for name in ("weights_digest", "checksum"):
        vars(encoder).pop(name, None)
    encoder.is_as_loaded = False
    return encoder
