"""How well a model in training does on pairs that it does not learn from."""

from dataclasses import dataclass

import numpy as np
import torch

from vlscore.meta.retrieval import CUTS, evaluate_retrieval
from vlscore.training.batches import BatchSource, Rows
from vlscore.training.objective import Objective
from vlscore.training.pairs import Pairs
from vlscore.training.step import Towers, joined, loss_of

WAYS = ("image to text", "text to image")
_VECTORS = ("images", "reports")


def split(pairs: Pairs, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on and rows to validate on; groups (studies, patients) stay together.

    Returns: the first as many groups as come closest to `1 - share`, in the table's order.
    """
    groups = sorted(set(pairs.groups))
    order = np.random.default_rng([seed, len(groups)]).permutation(len(groups))
    held = {groups[k] for k in order[: round(share * len(groups))]}
    is_held = np.array([group in held for group in pairs.groups])
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


@dataclass(frozen=True)
class Validated:
    """One validation.

    Attributes:
        step: steps done before it.
        loss: mean over whole batches; nan where there are fewer pairs than one batch.
        recall: "image to text R@1" and so on -> share.
        median_rank: of images among reports, and of reports among images.
    """

    step: int
    loss: float
    recall: dict[str, float]
    median_rank: tuple[float, float]

    @property
    def mean_recall(self) -> float:
        """Mean of R@1, R@5 and R@10 in both directions."""
        return sum(self.recall.values()) / len(self.recall)

    def row(self) -> dict[str, float]:
        """One row of a table."""
        ranks = dict(zip((f"{way} median rank" for way in WAYS), self.median_rank, strict=True))
        recall = {"mean recall": self.mean_recall, **self.recall}
        return {"step": self.step, "loss": self.loss, **recall, **ranks}


class Validation:
    """The held-out pairs, and the one way to look at them.

    Args:
        source: of the held-out pairs.
        batch_size: pairs of one loss, as many as in training.
        micro_batch: pairs that go through the towers at once.
    """

    def __init__(self, source: BatchSource, *, batch_size: int, micro_batch: int) -> None:
        self._source, self.pairs, self.rows = source, source.pairs, source.rows
        self._batch_size = batch_size
        self._micro_batch = micro_batch or batch_size

    def __call__(self, towers: Towers, objective: Objective, step: int) -> Validated:
        """Evaluate the model as it is; it is in training mode again afterwards."""
        encoder = towers.encoder
        encoder.eval()
        objective.eval()
        try:
            with torch.no_grad():
                return self._validated(towers, objective, step)
        finally:
            towers.train()
            objective.train()

    def vectors(self, towers: Towers, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, d) of the images and of the reports of some pairs, by an encoder that is ready."""
        found = []
        with torch.no_grad():
            for start in range(0, len(rows), self._micro_batch):
                batch = self._source.plain(rows[start : start + self._micro_batch])
                found.append(towers(batch, slice(0, len(batch.rows))))
        images, reports = (torch.cat([each[name] for each in found]) for name in _VECTORS)
        return images.float().cpu(), reports.float().cpu()

    def _validated(self, towers: Towers, objective: Objective, step: int) -> Validated:
        images, reports, losses = [], [], []
        for start in range(0, len(self.rows), self._batch_size):
            batch = self._source.plain(self.rows[start : start + self._batch_size])
            count = len(batch.rows)
            found = [
                towers(batch, slice(first, min(first + self._micro_batch, count)))
                for first in range(0, count, self._micro_batch)
            ]
            features = joined(found)
            images.append(features["images"].cpu())
            reports.append(features["reports"].cpu())
            if count == self._batch_size:
                parts = loss_of(objective, features, batch)
                losses.append(sum(float(part) for part in parts.values()))
        texts = [self.pairs.texts[row] for row in self.rows]
        ways = evaluate_retrieval(
            torch.cat(images).double().numpy(), torch.cat(reports).double().numpy(), texts
        )
        recall = {
            f"{way} R@{k}": found.recall[k].estimate
            for way, found in zip(WAYS, ways, strict=True)
            for k in CUTS
        }
        ranks = (ways[0].median_rank.estimate, ways[1].median_rank.estimate)
        return Validated(step, float(np.mean(losses)) if losses else float("nan"), recall, ranks)
