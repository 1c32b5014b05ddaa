"""What was embedded once is not embedded again, and nothing is taken for something else."""

import os
import shutil
import sqlite3

import numpy as np
import pytest
import torch
from PIL import Image

from tests.doubles import BrightnessPipeline, HashEncoder, KeptEncoder
from tests.tolerances import TWO_VECTORS
from vlscore.core import assure, open_cache
from vlscore.data import ImagePolicy
from vlscore.embedding import ImageDecoder, StudyEmbedder, StudyViews, Work
from vlscore.embedding.cached import Contents, cached_pixels
from vlscore.encoders import load_encoder
from vlscore.encoders.blocks.pixels import PadCropPipeline
from vlscore.encoders.models.openclip_parts import OpenClipPipeline
from vlscore.encoders.models.phantom_supervised import PhantomPipeline
from vlscore.encoders.models.small import SquarePipeline
from vlscore.errors import ChecksumMismatch
from vlscore.testing import row_error

TEXTS = ["no effusion", "heart normal", "no effusion", "left effusion " * 9]
NOTHING = {"images_decoded": 0, "images_embedded": 0, "reports_embedded": 0}


def write_image(path, seed):
    values = np.random.default_rng(seed).integers(0, 256, (8, 8), dtype=np.uint8)
    Image.fromarray(values).save(path)
    return path


@pytest.fixture
def images(tmp_path):
    return [write_image(tmp_path / f"image{k}.png", k) for k in range(5)]


@pytest.fixture
def cache(cache_folder):
    cache = open_cache()
    yield cache
    for store in cache.stores:
        store.close()


def embedder_of(encoder=None, **options):
    return StudyEmbedder(encoder or KeptEncoder(), batch_size=2, **options)


def embedded(embedder, images, texts=TEXTS):
    i = embedder.embed_studies([StudyViews([path]) for path in images])
    g = embedder.embed_texts(texts)
    assert not i.failures
    return i.vectors.numpy().tobytes() + g.vectors.numpy().tobytes() + bytes(g.truncated.tolist())


def computed(embedder):
    work = embedder.engine.work.to_dict()
    return {name: work[name] for name in NOTHING}


@pytest.mark.usefixtures("cache")
def test_a_second_embedder_computes_nothing_and_gives_the_same_bytes(images):
    cold, warm = embedder_of(), embedder_of()
    first = embedded(cold, images)
    assert computed(cold) == {"images_decoded": 5, "images_embedded": 5, "reports_embedded": 3}
    assert embedded(warm, images) == first
    assert computed(warm) == NOTHING
    assert (warm.encoder.image_rows, warm.encoder.report_rows) == (0, 0)
    found = warm.engine.work
    assert (found.images_from_cache, found.reports_from_cache) == (5, 3)
    # The encoder's numbers depend on their company, so that another order would show.
    assert embedded(embedder_of(cache=False), images[::-1], TEXTS[::-1]) != first


@pytest.mark.usefixtures("cache")
def test_the_bundled_encoder_is_cached(images):
    cold, warm = (embedder_of(load_encoder("phantom")) for _ in range(2))
    assert embedded(cold, images) == embedded(warm, images)
    assert computed(warm) == NOTHING
    fresh = embedder_of(load_encoder("phantom"), cache=False)
    there = np.frombuffer(embedded(warm, images)[: 5 * 192 * 4], np.float32)
    here = np.frombuffer(embedded(fresh, images)[: 5 * 192 * 4], np.float32)
    assert row_error(there.reshape(5, -1), here.reshape(5, -1)) <= TWO_VECTORS


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("encoder", "options"),
    [
        (lambda: KeptEncoder("other weights"), {}),
        (KeptEncoder, {"precision": "bf16"}),
        (type("Next", (KeptEncoder,), {"cache_version": "2"}), {}),
    ],
)
def test_other_encoders_and_precisions_are_not_confused(images, encoder, options):
    embedded(embedder_of(), images)
    other = embedder_of(encoder(), **options)
    embedded(other, images)
    assert other.engine.work.images_embedded == 5
    assert other.engine.work.reports_embedded == 3
    # The pixels are those of the same pipeline.
    assert other.engine.work.images_decoded == 0
    assert other.engine.work.pixels_from_cache == 5


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("policy", ["minmax", "authors", "max_pixels=10000"])
def test_other_image_policies_are_not_confused(images, policy):
    embedded(embedder_of(), images)
    other = embedder_of(image_policy=policy)
    embedded(other, images)
    assert computed(other) == {"images_decoded": 5, "images_embedded": 5, "reports_embedded": 0}


@pytest.mark.usefixtures("cache")
def test_a_policy_that_refuses_an_image_refuses_it_from_the_cache_too(images):
    embedded(embedder_of(), images)
    strict = embedder_of(image_policy="max_pixels=10")
    found = strict.embed_studies([StudyViews(images[:1])])
    assert "more than the 10 admitted" in str(found.failures[0])


@pytest.mark.usefixtures("cache")
def test_the_lateral_tower_has_vectors_of_its_own(images):
    views = [StudyViews(images[:2], ["PA", "LATERAL"]), StudyViews(images[1::-1], ["PA", "LL"])]
    both = [embedder_of(views="frontal+lateral").embed_studies(views).vectors for _ in range(2)]
    plain = embedder_of(cache=False, views="frontal+lateral").embed_studies(
        [StudyViews(each.images, each.views) for each in views]
    )
    torch.testing.assert_close(both[0], plain.vectors, rtol=1e-5, atol=1e-6)
    assert torch.equal(both[0], both[1])


@pytest.mark.usefixtures("cache")
def test_the_content_counts_and_not_the_name(images, tmp_path):
    first = embedded(embedder_of(), images)
    moved = [shutil.copy(path, tmp_path / f"renamed{k}.bin") for k, path in enumerate(images)]
    again = embedder_of()
    assert embedded(again, moved) == first
    assert computed(again) == NOTHING
    write_image(images[0], 77)
    third = embedder_of()
    assert embedded(third, images) != first
    assert third.engine.work.images_decoded == 1


def test_weights_that_changed_since_they_were_read_use_no_cache(images, cache):
    encoder = load_encoder("phantom")
    first = embedded(embedder_of(encoder), images)
    kept = [space.entries for space in cache.embeddings.info()]
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(1.5)
    trained = embedder_of(encoder)
    assert embedded(trained, images) != first
    # Pixels do not depend on the weights.
    assert computed(trained) == {"images_decoded": 0, "images_embedded": 5, "reports_embedded": 3}
    assert trained.engine.work.pixels_from_cache == 5
    assert [space.entries for space in cache.embeddings.info()] == kept
    # In the midst of a run, too.
    encoder = load_encoder("phantom")
    running = embedder_of(encoder)
    embedded(running, images)
    with torch.no_grad():
        encoder.image_head.out.bias.add_(1)
    embedded(running, images, ["another text"])
    assert computed(running) == {"images_decoded": 0, "images_embedded": 5, "reports_embedded": 1}
    assert [space.entries for space in cache.embeddings.info()] == kept


class WholePipeline(BrightnessPipeline):
    """Keeps float32 pixels, which are no levels."""

    cache_version = "1"


class WidePipeline(WholePipeline):
    """Does not keep to the type that it states."""

    def load_stored(self, image, policy):
        return super().load_stored(image, policy).astype(np.float64)


@pytest.mark.parametrize(
    ("pipeline", "kind"),
    [
        (PhantomPipeline(), "<f4"),
        (SquarePipeline(64), "<f4"),
        (WholePipeline(), "<f4"),
        (OpenClipPipeline(224, {"resize_mode": "squash"}), "|u1"),
        (PadCropPipeline(), "|u1"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("policy", ["auto", "authors"])
def test_pixels_from_the_cache_are_those_of_the_file(images, cache, pipeline, kind, policy):
    policy = ImagePolicy.named(policy)
    if policy.as_authors and kind == "<f4":
        pytest.skip("there is no reader of its authors")
    work, space = Work(), cached_pixels(cache, pipeline, policy)
    for _ in range(2):
        decoder = ImageDecoder(pipeline, policy, pixels=space, work=work)
        for path in images:
            pixels = decoder.submit(path, Contents().of(path)).result()
            assert torch.equal(pixels, pipeline.load(path, policy))
    assert (work.images_decoded, work.pixels_from_cache) == (5, 5)
    assert [info.facts["dtype"] for info in cache.pixels.info()] == [kind]


def test_pixels_that_are_not_what_the_pipeline_states_are_not_kept(images, cache):
    policy, work = ImagePolicy(), Work()
    space = cached_pixels(cache, WidePipeline(), policy)
    for _ in range(2):
        decoder = ImageDecoder(WidePipeline(), policy, pixels=space, work=work)
        assert decoder.submit(images[0], Contents().of(images[0])).stored().dtype == torch.float64
    assert work.images_decoded == 2
    assert cache.pixels.info() == []


def test_code_that_nobody_vouches_for_is_not_kept(images, cache):
    embedded(embedder_of(HashEncoder()), images)
    assert cache.embeddings.info() == cache.pixels.info() == []


def test_a_pipeline_that_nobody_vouches_for_keeps_no_images(images, cache):
    encoder = KeptEncoder()
    encoder.image_pipeline = BrightnessPipeline()
    embedded(embedder_of(encoder), images)
    assert [space.facts["holds"] for space in cache.embeddings.info()] == ["reports"]


def test_without_a_cache_no_file_is_made(images, cache_folder):
    embedded(embedder_of(cache=False), images)
    assert not cache_folder.exists()


@pytest.mark.usefixtures("cache")
def test_a_damaged_entry_is_computed_anew(images, cache):
    first = embedded(embedder_of(), images)
    with sqlite3.connect(cache.embeddings.path) as db:
        db.execute("UPDATE entries SET value = zeroblob(32) WHERE id = 2")
    db.close()
    again = embedder_of()
    with pytest.warns(RuntimeWarning, match="1 damaged"):
        found = embedded(again, images)
    assert len(found) == len(first)
    assert again.engine.work.images_embedded + again.engine.work.reports_embedded == 1
    assert embedded(embedder_of(), images) == found


def test_an_image_that_changes_while_it_is_read_is_not_kept(images, cache, monkeypatch):
    embedder = embedder_of()
    with embedder.decoder() as decoder:
        study = embedder.begin(StudyViews(images[:1]), decoder)
        write_image(images[0], 99)
        replaced = embedder.embed_studies([study]).vectors
    assert all(space.entries == 0 for store in cache.stores for space in store.info())
    assert torch.equal(embedder_of().embed_studies([StudyViews(images[:1])]).vectors, replaced)


def test_vectors_that_are_not_finite_are_not_kept(images, cache):
    class Broken(KeptEncoder):
        def embed_images(self, pixels):
            return super().embed_images(pixels) * float("nan")

        def embed_reports(self, tokens):
            return super().embed_reports(tokens) * float("inf")

    embedder = embedder_of(Broken())
    assert len(embedder.embed_studies([StudyViews([path]) for path in images]).failures) == 5
    assert len(embedder.embed_texts(TEXTS).failures) == 4
    assert sum(space.entries for space in cache.embeddings.info()) == 0


def test_nothing_that_names_a_file_or_a_text_is_written(images, cache):
    embedded(embedder_of(), images)
    embedded(embedder_of(load_encoder("phantom")), images)
    for store in cache.stores:
        store.close()
    files = [path.read_bytes() for path in cache.folder.iterdir()]
    assert sum(map(len, files)) > 10_000
    for path in images:
        for word in (path.name, str(path.parent), *TEXTS[:2]):
            assert not any(word.encode() in content for content in files)


@pytest.mark.usefixtures("cache")
def test_two_embedders_at_once_end_with_one_set_of_values(images):
    """Both have begun before either is done: what was written first stands for both."""
    one, other = embedder_of(), embedder_of()
    with one.decoder() as a, other.decoder() as b:
        studies = [one.begin(StudyViews([path]), a) for path in images]
        others = [other.begin(StudyViews([path]), b) for path in reversed(images)]
        first = one.embed_studies(studies).vectors
        assert torch.equal(other.embed_studies(others).vectors.flip(0), first)


def test_hashes_are_remembered_while_a_file_stays(images, monkeypatch):
    contents = Contents()
    first = contents.of(images[0])
    reads = []
    monkeypatch.setattr("builtins.open", lambda *args, **kwargs: reads.append(args))
    assert contents.of(str(images[0])) == first
    monkeypatch.undo()
    stamp = os.stat(images[0])
    os.utime(images[0], ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert contents.of(images[0]).state != first.state
    assert contents.of(images[0]).digest == first.digest
    assert reads == []


def test_what_is_no_file_has_no_content(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for thing in (tmp_path, tmp_path / "absent", tmp_path / "pipe", b"bytes", np.eye(3), "a\0b"):
        assert Contents().of(thing) is None


def test_nothing_is_kept_under_a_checksum_that_is_not_verified(images, cache):
    """The digest of a checkpoint is remembered between runs, and verified beside the work."""

    def fails():
        raise ChecksumMismatch("the checkpoint was changed in place")

    encoder = KeptEncoder()
    assure(encoder, fails)
    embedder = embedder_of(encoder)
    with pytest.raises(ChecksumMismatch):
        embedder.embed_texts(TEXTS)
    with pytest.raises(ChecksumMismatch):
        embedder.embed_studies([StudyViews(images[:1])])
    assert sum(space.entries for space in cache.embeddings.info()) == 0
