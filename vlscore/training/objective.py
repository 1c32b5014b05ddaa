"""Objective: base class of losses over the features of one batch of image-report pairs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of n pairs; row k of each tensor belongs to pair k.

    With several processes these are the pairs of all of them, gathered, so that an objective
    need not know how many there are.

    Attributes:
        images: (n, d) global vectors of the images.
        reports: (n, d) global vectors of the reports.
        same: (n, n) bool, True where two rows are of one study or have the same report, the
            diagonal included; such rows are not negatives of each other.
        patches: (n, P, k) vectors of places, where the objective is `local`.
        words: (n, W, k) vectors of words, where the objective is `local`.
        is_word: (n, W) bool, False after a report's last word.
        labels: (n, L) float, 1 present, 0 absent or not mentioned, -1 uncertain; where the
            objective has `needs_labels`.
        is_patch: (n, P) bool, False where a place is missing; None where all are there.
        patch_weights: (n, P), as `ImageFeatures.patch_weights`; None where the tower has none.
        word_weights: (n, W), as `ReportFeatures.word_weights`; None where the tower has none.
        copies: (n, K, d) vectors of K changed copies of each report, where the objective has
            `copies`; see `vlscore.training.copies`.
        copy_changes: (n, K) float, how many significant changes each copy has; -1 where the report
            allows no such copy, whose vector then does not count.
        copy_visible: (n, K) bool, whether one image can show that the copy is changed.
    """

    images: Tensor
    reports: Tensor
    same: Tensor
    patches: Tensor | None = None
    words: Tensor | None = None
    is_word: Tensor | None = None
    labels: Tensor | None = None
    is_patch: Tensor | None = None
    patch_weights: Tensor | None = None
    word_weights: Tensor | None = None
    copies: Tensor | None = None
    copy_changes: Tensor | None = None
    copy_visible: Tensor | None = None


class Objective(nn.Module, ABC):
    """Base class of training losses; a learned temperature or projection is a module parameter.

    Settings are keywords of the constructor, with the values of the paper as defaults. A
    constructor that needs the length of the vectors has a keyword `dim` (of global vectors) or
    `local_dim` (of places and words); `find_objective` passes both if they exist.

    It is called outside of autocast, on float32 or float64, because half precision is too coarse
    for similarities times ten. An objective may draw random numbers in training mode (LIMITR's
    dropout); processes need the same seed to compute the same loss.

    Attributes:
        name: its name for `vlscore train --objective`.
        citation: the paper, and the authors' code if it was consulted.
        local: whether it uses vectors of patches and words.
        needs_labels: whether it uses finding labels of the reports.
        copies: whether it uses changed copies of the reports.
        left_out: a kind of change that these copies do not have, as in
            `vlscore.training.copies.SIGNIFICANT`; "" for none.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    local: bool = False
    needs_labels: bool = False
    copies: bool = False
    left_out: str = ""

    @abstractmethod
    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        """Return the parts of the loss by name, each a scalar; training minimises their sum.

        Raises: InvalidSetting if the pairs lack features that the objective needs.
        """
