"""Telling a colour photograph from a radiograph."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import UnreadableImage
from vlscore.images.policy import LEAVE_OR_ACCEPT

_SAMPLES = 256
_TONES = 64
# Mean distance, of 1, between a pixel's colour and the mean colour of pixels as bright as it.
# Tinted films stay below 0.005 and films with coloured marks at 0.01; photographs exceed 0.03.
_MOST_COLOUR = 0.025


def require_no_photograph(colours: NDArray[Any], name: str) -> None:
    """Refuse pictures whose colours tell more than their brightness does.

    A radiograph may be stored in colour, tinted as film is, or carry a coloured mark; its colours
    still follow from its brightness. Those of photographs, screenshots and false-colour pictures
    do not.

    Args:
        colours: (height, width, 3 or more), integers of 8 or 16 bits, or floats in [0, 1].
    Raises: UnreadableImage.
    """
    if colour_beyond_brightness(colours) > _MOST_COLOUR:
        raise UnreadableImage(
            f"{name}: shows many colours, as a photograph or screenshot does and no radiograph; "
            + LEAVE_OR_ACCEPT
        )


def colour_beyond_brightness(colours: NDArray[Any]) -> float:
    """How far, of 1, pixels lie on average from the mean colour of the pixels as bright as they."""
    height, width = colours.shape[:2]
    rows, columns = max(1, height // _SAMPLES), max(1, width // _SAMPLES)
    sample = colours[::rows, ::columns, :3].reshape(-1, 3)
    whole = np.issubdtype(colours.dtype, np.integer)
    scaled = sample.astype(np.float64) / (np.iinfo(colours.dtype).max if whole else 1)
    tone = np.minimum((scaled.mean(axis=1) * _TONES).astype(np.intp), _TONES - 1)
    # What a tint adds is the same at one brightness: remove it, keeping each pixel's chroma.
    chroma = scaled - scaled.mean(axis=1, keepdims=True)
    counts = np.maximum(np.bincount(tone, minlength=_TONES), 1)
    means = np.stack(
        [np.bincount(tone, chroma[:, c], minlength=_TONES) / counts for c in range(3)], axis=1
    )
    return float(np.abs(chroma - means[tone]).mean())
