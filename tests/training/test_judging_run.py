"""Training by copies of reports: exact in micro-batches, with the words of the copies."""

import json

import cv2
import numpy as np
import pytest
import torch

from tests.training.conftest import opened
from tests.training.toys import ToyEncoder
from vlscore.data import sample_studies
from vlscore.encoders import load_encoder, vocabulary_of
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


def test_a_run_reads_the_words_of_copies(table, tmp_path):
    settings = TrainingSettings("judging", batch_size=8, epochs=1, validation_share=0.3)
    done = train(opened(table), tmp_path, settings, Start(style="judging"))
    parts = {f"loss_{name}" for name in ("significant", "insignificant", "preference", "gap")}
    assert parts <= set(done.to_pandas())
    reports = [json.loads(line)["reference"] for line in table.read_text().splitlines()]
    words = set(load_encoder(done.encoder, weights=tmp_path).tokenizer.words)
    assert words > set(vocabulary_of(reports))


def test_each_report_is_followed_by_its_copies(pairs):
    encoder, settings = ToyEncoder(), TrainingSettings(batch_size=6)
    copies = find_copies(pairs.texts)
    source = BatchSource(pairs, np.arange(6), encoder, settings, copies=copies)
    batch = next(source.training(0, 1))
    found = Towers(encoder, local=False, precision="fp32")(batch, slice(2, 5))
    expected = encoder.embed_reports(batch.tokens).unflatten(0, (6, -1))[2:5]
    torch.testing.assert_close(found["reports"], expected[:, 0])
    torch.testing.assert_close(found["copies"], expected[:, 1:])
