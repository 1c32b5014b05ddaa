"""Token ids of a batch of reports, and what was cut from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tokens:
    """Token ids of n reports, padded at the end to a common length L.

    Attributes:
        ids: (n, L) int64.
        mask: (n, L) int64, 1 at tokens and 0 at padding.
        full_lengths: (n,) int64, the number of tokens (special tokens included) that each whole
            report has; larger than the number kept where the report was truncated.
    """

    ids: Tensor
    mask: Tensor
    full_lengths: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Tensor:
        """(n,) int64, the number of tokens kept."""
        return self.mask.sum(dim=1)

    @property
    def truncated(self) -> Tensor:
        """(n,) bool, True where the tail of the report does not reach the encoder."""
        return self.full_lengths > self.lengths

    def take(self, rows: Sequence[int]) -> "Tokens":
        """The named rows, trimmed to the longest of them."""
        index = torch.as_tensor(rows, dtype=torch.long)
        mask = self.mask[index]
        longest = max(int(mask.sum(dim=1).max()), 1) if len(index) else 0
        return Tokens(self.ids[index, :longest], mask[:, :longest], self.full_lengths[index])

    def to(self, device: torch.device | str) -> "Tokens":
        return Tokens(self.ids.to(device), self.mask.to(device), self.full_lengths)
