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

    @classmethod
    def padded(
        cls,
        rows: Sequence[Sequence[int]],
        *,
        max_tokens: int,
        pad: int = 0,
        pad_to: int | None = None,
    ) -> "Tokens":
        """Token ids of whole reports, special tokens included; what is too long is cut.

        Args:
            max_tokens: longest sequence kept; a longer one loses tokens before its last, which
                is the end token.
            pad: id of padding.
            pad_to: common length; default: that of the longest sequence kept.

        >>> Tokens.padded([[2, 7, 8, 9, 3], [2, 3]], max_tokens=4).ids.tolist()
        [[2, 7, 8, 3], [2, 3, 0, 0]]
        """
        kept = [
            row if len(row) <= max_tokens else [*row[: max_tokens - 1], row[-1]] for row in rows
        ]
        length = pad_to or max(map(len, kept), default=0)
        ids = torch.full((len(kept), length), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for number, row in enumerate(kept):
            ids[number, : len(row)] = torch.tensor(row, dtype=torch.long)
            mask[number, : len(row)] = 1
        return cls(ids, mask, torch.tensor([len(row) for row in rows], dtype=torch.long))

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

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Tokens":
        """The same with ids and mask on a device; `non_blocking` as in `torch.Tensor.to`."""
        ids, mask = (each.to(device, non_blocking=non_blocking) for each in (self.ids, self.mask))
        return Tokens(ids, mask, self.full_lengths)
