"""What was embedded once is not embedded again, and nothing is taken for something else."""

import shutil
import sqlite3

import numpy as np
import pytest
import torch
from PIL import Image

from tests.data.images.writing import chest, save
from tests.doubles import BrightnessPipeline, HashEncoder, KeptEncoder
from vlscore.core import open_cache
from vlscore.data import stored_view
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.encoders import load_encoder

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
    cache.close()


def embedder_of(encoder=None, **options):
    return StudyEmbedder(encoder or KeptEncoder(), batch_size=2, **options)


def embedded(embedder, images, texts=TEXTS):
    i = embedder.embed_studies([StudyViews([path]) for path in images])
    g = embedder.embed_texts(texts)
    assert not i.failures
    return i.vectors.numpy().tobytes() + g.vectors.numpy().tobytes() + bytes(g.truncated.tolist())


def computed(embedder):
    work = embedder.work.to_dict()
    return {name: work[name] for name in NOTHING}


@pytest.mark.usefixtures("cache")
def test_a_second_embedder_computes_nothing_and_gives_the_same_bytes(images):
    cold, warm = embedder_of(), embedder_of()
    first = embedded(cold, images)
    assert computed(cold) == {"images_decoded": 5, "images_embedded": 5, "reports_embedded": 3}
    assert embedded(warm, images) == first
    assert computed(warm) == NOTHING
    assert (warm.encoder.image_rows, warm.encoder.report_rows) == (0, 0)
    found = warm.work
    assert (found.images_from_cache, found.reports_from_cache) == (5, 3)
    # The encoder's numbers depend on their company, so that another order would show.
    assert embedded(embedder_of(cache=False), images[::-1], TEXTS[::-1]) != first


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
    assert other.work.images_embedded == 5
    assert other.work.reports_embedded == 3


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
    assert third.work.images_decoded == 1


def test_weights_that_are_trained_or_were_not_loaded_by_name_use_no_cache(images, cache):
    encoder = load_encoder("phantom")
    embedder = embedder_of(encoder)
    first = embedded(embedder, images)
    kept, _ = cache.size()
    weight = next(encoder.parameters())
    weight.requires_grad_(True)
    with torch.no_grad():
        weight.mul_(1.5)
    assert embedded(embedder, images, ["another text"]) != first
    assert computed(embedder)["images_embedded"] == 10
    own = KeptEncoder()
    own.is_as_loaded = False
    embedded(embedder_of(own), images)
    assert cache.size()[0] == kept


def test_code_that_nobody_vouches_for_is_not_kept(images, cache):
    embedder = embedder_of(HashEncoder())
    for _ in range(2):
        embedded(embedder, images)
    assert embedder.work.images_from_cache == embedder.work.reports_from_cache == 0


def test_a_pipeline_that_nobody_vouches_for_keeps_no_images(images, cache):
    encoder = KeptEncoder()
    encoder.image_pipeline = BrightnessPipeline()
    for number in range(2):
        embedder = embedder_of(encoder)
        embedded(embedder, images)
        found = embedder.work
        assert (found.images_from_cache, found.reports_from_cache) == (0, 3 * number)


@pytest.mark.usefixtures("cache")
def test_a_damaged_entry_is_computed_anew(images, cache):
    first = embedded(embedder_of(), images)
    with sqlite3.connect(cache.path) as db:
        db.execute(
            "UPDATE entries SET value = zeroblob(32) WHERE rowid = (SELECT max(rowid) FROM entries)"
        )
    db.close()
    again = embedder_of()
    with pytest.warns(RuntimeWarning, match="1 damaged"):
        found = embedded(again, images)
    assert len(found) == len(first)
    assert again.work.images_embedded + again.work.reports_embedded == 1
    assert embedded(embedder_of(), images) == found


def test_an_image_that_changes_while_it_is_read_is_not_kept(images, cache, monkeypatch):
    embedder = embedder_of()
    with embedder.decoder() as decoder:
        study = embedder.begin(StudyViews(images[:1]), decoder)
        write_image(images[0], 99)
        replaced = embedder.embed_studies([study]).vectors
    assert embedder_of().begin(StudyViews(images[:1])).frontal[0].embedding is None
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
    again = embedder_of(Broken())
    again.embed_texts(TEXTS)
    again.embed_studies([StudyViews([path]) for path in images])
    assert again.work.images_from_cache == again.work.reports_from_cache == 0


def test_nothing_that_names_a_file_or_a_text_is_written(images, cache):
    embedded(embedder_of(), images)
    embedded(embedder_of(load_encoder("phantom")), images)
    cache.close()
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


def test_a_view_is_read_once_while_the_file_does_not_change(tmp_path, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 4096, (8, 8), dtype=np.uint16)
    path = save(chest(pixels, ViewPosition="LL"), tmp_path / "a.dcm")
    other = tmp_path / "b.dcm"
    shutil.copy(path, other)
    for reads in (1, 0):
        asked = []

        def counted(image, asked=asked):
            asked.append(image)
            return stored_view(image)

        monkeypatch.setattr("vlscore.embedding.embedder.stored_view", counted)
        embedder = embedder_of(cache=tmp_path / "cache")
        found = embedder.embed_studies([StudyViews([path]), StudyViews([other])])
        assert len(asked) == reads
        assert all("lateral view" in str(error) for error in found.failures.values())
        assert list(found.failures) == [0, 1]
