"""What a tower gives while it learns: global vectors, and local ones where an objective asks."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """What n images become.

    Attributes:
        vectors: (n, d), the embeddings that `embed_images` gives.
        patches: (n, P, k), one vector for each of P places; None where the encoder has none.
        is_patch: (n, P) bool, False where a place is missing, as those of a lateral view that was
            not taken; None where all are there.
        patch_weights: (n, P), how much the tower itself attends to each place, at least 0, without
            gradient; None where the tower does not say, as convolutions do not.
    """

    vectors: Tensor
    patches: Tensor | None = None
    is_patch: Tensor | None = None
    patch_weights: Tensor | None = None


@dataclass(frozen=True, eq=False)
class ReportFeatures:
    """What n reports become.

    Attributes:
        vectors: (n, d), the embeddings that `embed_reports` gives.
        words: (n, W, k), one vector for each word, in the space of `ImageFeatures.patches`; zeros
            after a report's last word; None where the encoder has none. Whether special tokens
            such as [CLS] count as words is the encoder's to say, as its authors' loss has it.
        is_word: (n, W) bool, False after a report's last word.
        word_weights: (n, W), how much the tower itself attends to each word, at least 0, without
            gradient, 0 after the last word; None where the tower does not say.
    """

    vectors: Tensor
    words: Tensor | None = None
    is_word: Tensor | None = None
    word_weights: Tensor | None = None
