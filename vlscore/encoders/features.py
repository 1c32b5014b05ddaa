"""What a tower gives while it learns: global vectors, and local ones where an objective asks."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """What n images become.

    Attributes:
        vectors: (n, d), the embeddings that `embed_images` gives.
        patches: (n, P, k), one vector for each of P places; None where the encoder has none.
    """

    vectors: Tensor
    patches: Tensor | None = None


@dataclass(frozen=True, eq=False)
class ReportFeatures:
    """What n reports become.

    Attributes:
        vectors: (n, d), the embeddings that `embed_reports` gives.
        words: (n, W, k), one vector for each word, in the space of `ImageFeatures.patches`; zeros
            after a report's last word; None where the encoder has none.
        is_word: (n, W) bool, False after a report's last word.
    """

    vectors: Tensor
    words: Tensor | None = None
    is_word: Tensor | None = None
