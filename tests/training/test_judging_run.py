"""Training by copies of reports: exact in micro-batches, resumed alike, and it learns lengths."""

import json

import cv2
import numpy as np
import pytest
import torch

from tests.training.conftest import opened
from tests.training.toys import ToyEncoder
from vlscore.data import sample_studies
from vlscore.encoders import load_encoder
from vlscore.training import Start, TrainingSettings, train
from vlscore.training.copies import ReportCopies, find_copies
from vlscore.training.minibatches import BatchSource
from vlscore.training.processes import TrainingProcesses
from vlscore.training.registry import find_objective
from vlscore.training.step import Step, Towers
from vlscore.training.training_pairs import prepare

COUNT = 24


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Reports of phantoms beside images of noise: the report side is what is learned here."""
    folder = tmp_path_factory.mktemp("studies")
    generator = np.random.default_rng(0)
    lines = []
    for number, study in enumerate(sample_studies(4, COUNT)):
        name = f"s{number}.png"
        cv2.imwrite(str(folder / name), generator.integers(0, 255, (16, 16)).astype(np.uint8))
        lines.append({"id": f"s{number}", "image": name, "reference": study.reference})
    path = folder / "studies.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pairs(table, tmp_path_factory):
    return prepare(opened(table), tmp_path_factory.mktemp("pairs"))


def gradients(pairs, micro_batch):
    encoder = ToyEncoder().double().train()
    objective = find_objective("judging", dim=6, local_dim=None).double()
    source = BatchSource(
        pairs,
        np.arange(12),
        encoder,
        TrainingSettings(batch_size=12),
        copies=find_copies(pairs.texts),
    )
    batch = next(source.training(0, 1))
    assert len(batch.tokens) == 12 * (1 + ReportCopies.COUNT)
    towers = Towers(encoder, local=False, precision="fp32")
    step = Step(towers, objective, TrainingProcesses(), micro_batch=micro_batch)
    parts = step(batch, 3, pairs.ids[:12])
    return parts, {name: p.grad for name, p in encoder.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("micro_batch", [1, 5])
def test_micro_batches_give_the_gradients_of_the_whole_batch(pairs, micro_batch):
    whole, expected = gradients(pairs, 0)
    parts, found = gradients(pairs, micro_batch)
    assert parts == pytest.approx(whole, rel=1e-13)
    assert all(part > 0 for part in parts.values())
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-10, atol=1e-12)


def run(table, out, **options):
    settings = {"batch_size": 12, "epochs": 10, "learning_rate": 2e-3, "select": "loss"}
    start = options.pop("start", Start(style="judging"))
    return train(
        opened(table),
        out,
        TrainingSettings(**{"objective": "judging", **settings, "validation_share": 0.5}),
        start,
        device="cpu",
        **options,
    )


@pytest.mark.slow
def test_a_run_learns_lengths_and_goes_on_where_it_was_stopped(table, tmp_path):
    done = run(table, tmp_path / "whole")
    losses = (tmp_path / "whole" / "log.csv").read_text().splitlines()
    column = losses[0].split(",").index("loss")
    found = [float(line.split(",")[column]) for line in losses[1:]]
    assert sum(found[-3:]) < 0.8 * sum(found[:3])
    encoder = load_encoder(done.encoder, weights=str(done.folder))
    assert encoder.card.dim == 256
    # A report is the sum of its sentences.
    one, other = "Small left effusion.", "The heart is enlarged."
    parts = encoder.encode_reports([one, other, f"{other} {one}"])
    torch.testing.assert_close(parts[0] + parts[1], parts[2], rtol=1e-4, atol=1e-5)

    def stop(shown):
        if shown.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(table, tmp_path / "stopped", on_step=stop, keep_seconds=0)
    run(table, tmp_path / "stopped")
    names = ("model.safetensors", "vocabulary.json")
    for name in names:
        contents = [(tmp_path / folder / name).read_bytes() for folder in ("whole", "stopped")]
        assert contents[0] == contents[1], name
