"""A named encoder is read when a vector is computed, and its checkpoint's digest is remembered."""

import copy
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.doubles import DIM, QuarterPipeline
from tests.embedding.test_cached import write_image
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.encoders import PublishedEncoder, WordPieceTokenizer, load_checkpoint, tensors_digest
from vlscore.errors import (
    ChecksumMismatch,
    IncompatibleCheckpoint,
    InvalidSetting,
    UnsafeCheckpoint,
    WeightsNotFound,
)

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "no", "effusion", "nodule"]
TEXTS = ["no effusion", "nodule"]
NAME = f"{__name__}:Tiny"


class Tiny(PublishedEncoder):
    """Two linear maps under the card of ConVIRT; counts how often they were built."""

    name = "convirt"
    vocabulary_size = len(PIECES)
    cache_version = "1"
    built = 0

    def __init__(self, tokenizer, variant=None):
        super().__init__(tokenizer, variant)
        Tiny.built += 1
        self.image_tower = nn.Linear(DIM, self.card.dim)
        self.report_tower = nn.Embedding(len(PIECES), self.card.dim)

    def make_pipeline(self):
        return QuarterPipeline()

    def embed_images(self, pixels):
        return self.image_tower(pixels.flatten(1))

    def embed_reports(self, tokens):
        return (self.report_tower(tokens.ids) * tokens.mask[..., None]).sum(1)


class Other(Tiny):
    """The same files, but a network with another tower."""

    def __init__(self, tokenizer, variant=None):
        super().__init__(tokenizer, variant)
        self.third_tower = nn.Linear(2, 2)


class WithoutVocabulary(Tiny):
    takes_tokenizer = False


def write_weights(path, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = Tiny(WordPieceTokenizer({piece: n for n, piece in enumerate(PIECES)}))
    tensors = {key: value.contiguous() for key, value in encoder.state_dict().items()}
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


@pytest.fixture(params=["model.safetensors", "model.pt"])
def weights(request, tmp_path, cache_folder, monkeypatch):
    """A checkpoint that counts as old, so that its digest is remembered."""
    monkeypatch.setattr("vlscore.core.files._NANOSECONDS_OF_A_CHANGE", 0)
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    path = write_weights(tmp_path / request.param, 1)
    monkeypatch.setattr(Tiny, "built", 0)
    return path


@pytest.fixture
def image(tmp_path):
    return write_image(tmp_path / "image.png", 3)


def embedder_of(weights, name=NAME, **options):
    return StudyEmbedder(name, weights=str(weights), device="cpu", **options)


def vectors_of(embedder, image, texts=TEXTS):
    images = embedder.embed_studies([StudyViews([image])])
    reports = embedder.embed_texts(texts)
    assert not images.failures
    assert not reports.failures
    return torch.cat([images.vectors, reports.vectors]).numpy()


def refuse(path, *_):
    raise AssertionError(f"{path} was read")


def test_a_run_from_the_cache_builds_no_network_and_reads_no_checkpoint(
    weights, image, monkeypatch
):
    first = embedder_of(weights)
    expected = vectors_of(first, image)
    assert Tiny.built == 1
    with monkeypatch.context() as context:
        context.setattr("vlscore.encoders.published.load_checkpoint", refuse)
        second = embedder_of(weights)
        assert vectors_of(second, image).tobytes() == expected.tobytes()
        assert str(second.signature) == str(first.signature)
        assert (second.C, second.dim, second.card) == (first.C, first.dim, first.card)
        assert second.device == torch.device("cpu")
    assert Tiny.built == 1
    # A text that is new needs the network, once.
    new = second.embed_texts(["nodule no"]).vectors
    second.embed_texts(["no nodule effusion"])
    assert Tiny.built == 2
    plain = embedder_of(weights, cache=False).embed_texts(["nodule no"]).vectors
    assert torch.equal(new, plain)


def test_whoever_asks_for_the_encoder_gets_a_module_with_its_weights(weights, image):
    vectors_of(embedder_of(weights), image)
    sent = pickle.dumps(embedder_of(weights))
    for again in (embedder_of(weights), pickle.loads(sent)):
        encoder = copy.copy(again).encoder
        assert encoder is again.encoder
        assert not encoder.training
        assert tensors_digest(encoder.state_dict()) == tensors_digest(load_checkpoint(weights))
        assert encoder.checksum == again.checksum
        # Vectors of a network that is trained from here on come from no cache.
        next(encoder.parameters()).requires_grad_(True)
        vectors_of(again, image)
        assert again.work.reports_embedded == len(TEXTS)


def test_a_copy_for_another_machine_needs_no_checkpoint(weights, image):
    expected = vectors_of(embedder_of(weights), image)
    sent = pickle.dumps(embedder_of(weights))
    weights.unlink()
    copied = pickle.loads(sent)
    copied.cache = None
    # Where in memory weights lie changes the last bit on some processors.
    np.testing.assert_allclose(vectors_of(copied, image), expected, rtol=0, atol=1e-6)


def replace_in_place(path, other):
    """The content of another file, with size and times as before."""
    status = path.stat()
    assert other.stat().st_size == status.st_size
    with path.open("r+b") as stream:
        stream.write(other.read_bytes())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_renaming(path, other):
    status = path.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, path)


@pytest.mark.parametrize("replace", [replace_in_place, replace_by_renaming])
def test_a_replaced_checkpoint_is_noticed(weights, image, tmp_path, replace):
    before = embedder_of(weights)
    expected = vectors_of(before, image)
    (tmp_path / "other").mkdir()
    replace(weights, write_weights(tmp_path / "other" / weights.name, 2))
    after = embedder_of(weights)
    assert after.checksum != before.checksum
    assert after.encoder.weights_digest == tensors_digest(load_checkpoint(weights))
    assert np.abs(vectors_of(after, image) - expected).max() > 1e-3


def test_a_checkpoint_that_is_replaced_within_a_run_ends_it(weights, image, tmp_path):
    vectors_of(embedder_of(weights), image)
    late = embedder_of(weights)
    write_weights(weights, 2)
    with pytest.raises(ChecksumMismatch, match="a file was replaced meanwhile"):
        late.embed_texts(["nodule no"])


def test_a_checkpoint_that_is_damaged_after_it_was_read_is_refused_at_once(weights, image):
    vectors_of(embedder_of(weights), image)
    weights.write_bytes(weights.read_bytes()[:-40])
    with pytest.raises(UnsafeCheckpoint, match="damaged"):
        embedder_of(weights)
    weights.unlink()
    with pytest.raises(WeightsNotFound):
        embedder_of(weights)


def test_the_digest_belongs_to_the_class_that_read_the_file(weights, image):
    vectors_of(embedder_of(weights), image)
    with pytest.raises(IncompatibleCheckpoint, match="third_tower"):
        embedder_of(weights, f"{__name__}:Other")
    with pytest.raises(InvalidSetting, match="brings its own"):
        embedder_of(weights, f"{__name__}:WithoutVocabulary", tokenizer=str(weights.parent))


def test_another_vocabulary_or_card_is_read_again(weights, image):
    before = embedder_of(weights)
    vectors_of(before, image)
    pieces = [*PIECES[:-2], *reversed(PIECES[-2:])]
    (weights.parent / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    (weights.parent / "card.json").write_text('{"encoder": "convirt", "C": 7.5}')
    after = embedder_of(weights)
    assert after.checksum != before.checksum
    assert after.C == after.encoder.card.C == 7.5
    assert np.abs(vectors_of(after, image) - vectors_of(before, image))[2].max() > 1e-3


def test_a_file_of_this_moment_is_not_remembered(weights, image, monkeypatch):
    monkeypatch.setattr("vlscore.core.files._NANOSECONDS_OF_A_CHANGE", 10**18)
    for number in (1, 2):
        vectors_of(embedder_of(weights), image)
        assert Tiny.built == number


def test_without_a_cache_nothing_is_remembered(weights: Path, cache_folder: Path):
    for number in (1, 2):
        embedder_of(weights, cache=False)
        assert Tiny.built == number
    assert not list(cache_folder.glob("*"))
