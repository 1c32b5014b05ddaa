"""Trials of a better training on real films, measured on the part "choose"; none was clear enough.

Protocol. Each trial is the encoder "convirt" of real_encoders.py, seed 0, with one change, compared
with it on the part "choose" (real_data.py). The changes of code are in this file, because no
trial is part of the project:

- "part of reports": half of the reports, drawn anew in every epoch, have a random part of their
  sentences; the findings of these reports are not learned from them.
- "stronger, longer": 20 epochs, the augmentation "medclip", and reports with equal findings are no
  negatives of each other.
- "averaged": a moving average of the weights with a decay of 0.98 a step.
- "joined": the encoders of the lines above, as one encoder (real_joined.py).

Mean log rank: of each film's report among 900 reports, as "R@10 of 900" in real_encoders.py; the
difference is paired by study, 95 % bootstrap interval; below 0 is better. Areas under the curve are
means over the findings with at least 3 studies. Film: share of imperfect references whose right
candidate has the better clipscore with the right film, less that with another study's.

Run: python benchmarks/real_trials.py DATA WORK [--out benchmarks/results/real_trials.md]
after real_encoders.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from machine import describe_machine, publish
from real_data import (
    CHOOSE,
    CONCEPTS,
    TRAIN,
    Array,
    Part,
    RealData,
    open_encoder,
    parser_of,
    vectors_of,
)
from real_encoders import Measured, Recipe, fit, measure
from real_imperfect import (
    OTHER,
    RIGHT,
    Case,
    collect_phrases,
    make_cases,
    preferences,
    share_of,
    weights_of,
)
from real_joined import join, load_joined
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

from vlscore.embedding import StudyEmbedder
from vlscore.findings import CHEXPERT_LABELS
from vlscore.stats import TextTable, auc, bootstrap_mean, interval, markdown
from vlscore.training import run
from vlscore.training.loop import Training
from vlscore.training.minibatches import BatchSource, _sentences
from vlscore.training.objective import PairFeatures
from vlscore.training.objectives.finding_labels import WithFindings

_SHORTENED = 0.5
_OWN = 9


class PartOfReports(BatchSource):
    """Batches in which half of the reports have a random part of their sentences."""

    def _text(self, pair: int, epoch: int | None) -> str:
        sentences = _sentences(self.pairs.texts[pair])
        if epoch is None or len(sentences) < 2 or not self._is_short(pair, epoch):
            return super()._text(pair, epoch)
        chance = self._chance(epoch, pair, 2)
        count = int(chance.integers(1, len(sentences) + 1))
        return " ".join(sentences[k] for k in chance.permutation(len(sentences))[:count])

    def _is_short(self, pair: int, epoch: int) -> bool:
        key = [self._settings.seed, epoch, int(pair), _OWN]
        return bool(np.random.default_rng(key).random() < _SHORTENED)

    def _made(self, rows: Any, share: slice, epoch: int | None, pool: Any) -> Any:
        """Add a column to the labels: 1 where the report may be shortened."""
        batch = super()._made(rows, share, epoch, pool)
        short = [0.0 if epoch is None else float(self._is_short(pair, epoch)) for pair in rows]
        column = torch.tensor(short)[:, None]
        return replace(batch, labels=torch.cat([batch.labels, column], 1))


class WithPartOfReports(WithFindings):
    """Findings as a second aim, except those of shortened reports."""

    def forward(self, pairs: PairFeatures) -> dict[str, torch.Tensor]:
        assert pairs.labels is not None
        short = pairs.labels[:, -1:]
        whole = super().forward(replace(pairs, labels=pairs.labels[:, :-1]))
        labels = pairs.labels[:, len(CHEXPERT_LABELS) : -1]
        labels = torch.cat([labels, (labels <= 0).all(1, keepdim=True).to(labels)], 1)
        directions = functional.normalize(self.directions, dim=1)
        cosines = functional.normalize(pairs.reports, dim=1) @ directions.T
        losses = functional.binary_cross_entropy_with_logits(
            self.log_scale.exp() * cosines + self.biases[1],
            labels.clamp(min=0),
            reduction="none",
        )
        of_short = (losses * (labels >= 0) * short).sum(1).mean()
        name = "findings_of_reports"
        return {**whole, name: whole[name] - self.weight * of_short}


class EqualFindingsApart(BatchSource):
    """Batches in which reports with equal findings are no negatives of each other."""

    def _made(self, rows: Any, share: slice, epoch: int | None, pool: Any) -> Any:
        batch = super()._made(rows, share, epoch, pool)
        labels = batch.labels[:, len(CHEXPERT_LABELS) :]
        equal = (labels[:, None] == labels[None]).all(-1)
        return replace(batch, same=batch.same | equal)


class Averaging(Training):
    """Training that also averages the weights; the last average stays in `averages`."""

    averages: list[AveragedModel] = []  # noqa: RUF012  one training at a time

    def _update(self, rate: float, number: int, ids: list[str]) -> float:
        norm = super()._update(rate, number, ids)
        if number == 0:
            self.averages[:] = [AveragedModel(self.encoder, avg_fn=_average)]
        if self.averages:
            self.averages[0].update_parameters(self.encoder)
        return norm


def _average(average: torch.Tensor, new: torch.Tensor, steps: Any) -> torch.Tensor:
    """Return a moving average with a decay of 0.98, less in the first steps."""
    return average + (new - average) * max(0.02, 9 / (float(steps) + 10))


@dataclass(frozen=True)
class Trial:
    """One change of the training: settings, and classes of `vlscore.training.run`."""

    settings: dict[str, Any] = field(default_factory=dict)
    classes: Mapping[str, type] = field(default_factory=dict)


TRIALS = {
    "part of reports": Trial(
        classes={"BatchSource": PartOfReports, "WithFindings": WithPartOfReports}
    ),
    "stronger, longer": Trial(
        {"epochs": 20, "augmentation": "medclip"}, {"BatchSource": EqualFindingsApart}
    ),
}


def train_trials(data: RealData) -> dict[str, Path]:
    """Train every trial unless it is there; return the folder of each encoder by its name."""
    found = {"as chosen": data.work / "encoders" / "convirt-seed0"}
    for name, trial in TRIALS.items():
        out = data.work / "trials" / name.replace(",", "").replace(" ", "-")
        averaged = out.with_name(f"{out.name}-averaged")
        if not (averaged / "card.json").is_file():
            with patch.multiple(run, Training=Averaging, **trial.classes):
                fit(data, Recipe("convirt", "convirt", trial.settings), out, 0)
            Averaging.averages[0].module.save(averaged, {"C": None, "C_source": "not measured"})
        found |= {name: out, f"{name}, averaged": averaged}
    return found


# ---------------------------------------------------------------- table


def mean_area(values: Mapping[str, Array], part: Part) -> float:
    """Return the mean area under the curve over the findings with at least 3 studies."""
    areas = []
    for finding in CONCEPTS:
        truth = part.coded(finding)[part.usable]
        if truth.sum() >= 3 and finding in values:
            mine = values[finding][part.usable]
            areas.append(auc(mine[truth], mine[~truth]))
    return float(np.mean(areas))


def row_of(
    name: str,
    measured: Measured,
    chosen: Measured,
    film: str,
    part: Part,
) -> tuple[str, ...]:
    """Return the cells of one encoder."""
    ranks, others = np.log(measured.ranks), np.log(chosen.ranks)
    difference = "-" if measured is chosen else interval(bootstrap_mean(ranks - others))
    return (
        name,
        f"{measured.hits.mean():.3f}",
        f"{ranks.mean():.3f}",
        difference,
        f"{mean_area(measured.image_probe, part):.3f}",
        f"{mean_area(measured.zero_shot, part):.3f}",
        film,
    )


def film_gain(cases: list[Case], part: Part, embedder: StudyEmbedder, folder: Path) -> str:
    """Return how much more often clipscore prefers the right candidate with the right film."""
    vectors = vectors_of(embedder, part, folder / f"vectors-{CHOOSE}.npz")
    films = preferences(cases, part, embedder, vectors, embedder.C or 1.0)["clipscore"]
    rows = [case.row for case in cases]
    return interval(share_of(films[RIGHT] - films[OTHER], weights_of(cases), rows))


def main() -> None:
    options = parser_of(__doc__).parse_args()
    torch.set_num_threads(1)
    data = RealData(options.data, options.work)
    folders = train_trials(data)
    train_part, choose = data.part(TRAIN), data.part(CHOOSE)
    cases = make_cases(choose, collect_phrases(train_part.pairs.texts))
    cases = [c for c, w in zip(cases, weights_of(cases), strict=True) if w > 0]
    alone = [folder for name, folder in folders.items() if "averaged" not in name]
    title, joined = join("these", alone, data.work / "joined")
    rows: list[tuple[str, ...]] = []
    chosen: Measured | None = None
    for name, folder in {**folders, title: joined}.items():
        embedder = load_joined(folder) if folder == joined else open_encoder(folder)
        measured = measure(embedder, train_part, choose, folder, CHOOSE)
        chosen = chosen or measured
        film = film_gain(cases, choose, embedder, folder)
        rows.append(row_of(name, measured, chosen, film, choose))
    columns = (
        "encoder", "R@10 of 900", "mean log rank", "less that of the chosen one", "probe",
        "zero-shot", "film",
    )  # fmt: skip
    report = [
        "# Trials of a better training on real films",
        f"Part: {CHOOSE}, {len(choose.pairs)} studies. {describe_machine()}",
        data.describe(),
        "`python benchmarks/real_trials.py` says what each trial and each column is.",
        markdown([TextTable("Trials", columns, tuple(rows))], []),
    ]
    publish("\n\n".join(report) + "\n", options.out)


if __name__ == "__main__":
    main()
