"""Held-out pairs: parted by study or patient, judged by retrieval, and when training ends."""

import json
import math

import numpy as np
import pytest
import torch

from tests.training.conftest import opened
from tests.training.toys import Global, ToyEncoder, write_table
from vlscore.errors import InvalidSetting
from vlscore.training import TrainingSettings
from vlscore.training.loop import Validation, split
from vlscore.training.minibatches import BatchSource
from vlscore.training.state import Progress
from vlscore.training.step import Towers
from vlscore.training.training_pairs import prepare


def test_groups_stay_together(tmp_path):
    table = write_table(tmp_path, 24)
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    for number, row in enumerate(rows):
        row["patient"] = number % 8
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = prepare(opened(table, group_column="patient"), tmp_path / "pairs")
    train, held = split(pairs, 0.25, seed=3)
    assert sorted([*train, *held]) == list(range(24))
    assert len(held) == 6
    assert {k % 8 for k in held} & {k % 8 for k in train} == set()
    assert not np.array_equal(held, split(pairs, 0.25, seed=4)[1])
    assert len(split(pairs, 0.0, seed=3)[1]) == 0


class Knowing(ToyEncoder):
    """Image k and report k of the table have the k-th unit vector, but for a few rows."""

    def __init__(self, pairs, wrong=()):
        super().__init__()
        self._pairs, self._wrong = pairs, wrong
        self.card = type(self.card)("knowing", "K", len(pairs), False, None, "", 8, 40, "", "", "")

    def tokenize(self, reports):
        tokens = super().tokenize(reports)
        found = [list(self._pairs.texts).index(report) for report in reports]
        return type(tokens)(torch.tensor(found)[:, None], torch.ones(len(found), 1).long(),
                            torch.ones(len(found)).long())  # fmt: skip

    def report_features(self, tokens):
        found = super().report_features(type(tokens)(tokens.ids * 0 + 1, tokens.mask, tokens.mask))
        return type(found)(torch.eye(len(self._pairs))[tokens.ids[:, 0]])

    def image_features(self, pixels):
        found = super().image_features(pixels)
        whole = torch.stack([self.preprocess_of(k) for k in range(len(self._pairs))])
        rows = [int((whole - p).abs().sum((1, 2, 3)).argmin()) for p in pixels]
        turned = [(row + 1) % len(self._pairs) if row in self._wrong else row for row in rows]
        return type(found)(torch.eye(len(self._pairs))[turned])

    def preprocess_of(self, pair):
        from vlscore.training.training_pairs import as_radiograph

        return self.preprocess(as_radiograph(self._pairs.image(pair), "x"))


def _validate(pairs, encoder, rows, batch_size=5):
    settings = TrainingSettings(batch_size=batch_size)
    source = BatchSource(pairs, np.asarray(rows), encoder, settings)
    validation = Validation(source, batch_size=batch_size, micro_batch=2)
    towers = Towers(encoder, local=False, precision="fp32")
    return validation(towers, Global(), 7)


def test_recall_is_the_share_of_right_answers(pairs):
    perfect = _validate(pairs, Knowing(pairs), range(10))
    assert perfect.recall["image to text R@1"] == perfect.recall["text to image R@1"] == 1
    assert perfect.mean_recall == 1
    assert perfect.median_rank == (1, 1)
    wrong = _validate(pairs, Knowing(pairs, wrong={2, 6}), range(10))
    assert wrong.recall["image to text R@1"] == pytest.approx(0.8)
    assert wrong.step == 7


def test_the_loss_is_the_mean_over_whole_batches(pairs):
    encoder = ToyEncoder()
    found = _validate(pairs, encoder, range(13), batch_size=5)
    source = BatchSource(pairs, np.arange(13), encoder, TrainingSettings())
    from vlscore.training.objective import PairFeatures

    losses = []
    for start in (0, 5):
        batch = source.plain(np.arange(start, start + 5))
        images = encoder.embed_images(batch.pixels)
        reports = encoder.embed_reports(batch.tokens)
        parts = Global()(PairFeatures(images, reports, batch.same))
        losses.append(float(sum(parts.values()).detach()))
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-6)
    assert math.isnan(_validate(pairs, encoder, range(4)).loss)


def test_progress_remembers_the_best_and_counts_what_came_since():
    progress = Progress(step=10).validated(0.5, {"loss": 1.0})
    assert (progress.score, progress.best_step, progress.waited) == (0.5, 10, 0)
    later = Progress(**{**vars(progress), "step": 20})
    worse = later.validated(0.5, {}).validated(math.nan, {})
    assert (worse.score, worse.best_step, worse.waited) == (0.5, 10, 2)
    assert worse.validated(0.6, {}).best_step == 20


def test_training_ends_when_patience_does(run_toy, tmp_path):
    """With a rate of almost nothing, no validation is better than the first."""
    options = {"learning_rate": 1e-12, "patience": 2, "epochs": 9, "select": "recall"}
    result = run_toy(tmp_path / "out", **options)
    assert result.record["steps"] == 9  # three epochs of three steps
    assert result.record["best_step"] == 3


def test_the_result_are_the_weights_that_did_best(run_toy, tmp_path):
    best = run_toy(tmp_path / "best", epochs=6)
    run_toy(tmp_path / "last", epochs=6, select="last")
    rows = (tmp_path / "best" / "validation.csv").read_text().splitlines()
    recalls = {int(r.split(",")[0]): float(r.split(",")[2]) for r in rows[1:]}
    step = best.record["best_step"]
    assert recalls[step] == max(recalls.values())
    assert step == min(s for s, value in recalls.items() if value == max(recalls.values()))
    found, last = (ToyEncoder.load(tmp_path / name).rows.weight for name in ("best", "last"))
    assert torch.equal(found, last) == (step == 18)


def test_a_validation_table_of_its_own(run_toy, tmp_path):
    other = write_table(tmp_path, 8, seed=5)
    result = run_toy(tmp_path / "out", validation=opened(other))
    assert result.record["pairs"] == 24
    assert result.record["validation_pairs"] == 8
    assert (tmp_path / "out" / "pairs-validation" / "pixels.bin").is_file()


def test_no_validation_at_all(run_toy, tmp_path):
    result = run_toy(tmp_path / "out", validation_share=0.0)
    assert result.record["validation_pairs"] == 0
    assert result.record["best_step"] is None
    assert not (tmp_path / "out" / "validation.csv").exists()
    assert result.tables == []


def test_selection_by_a_loss_needs_a_batch_of_pairs(run_toy, tmp_path):
    with pytest.raises(InvalidSetting, match="a whole batch of 6 validation pairs; there are 5"):
        run_toy(tmp_path / "out", select="loss")
    result = run_toy(tmp_path / "ok", select="loss", validation_share=0.3)
    assert result.record["best_validation"]["loss"] > 0
