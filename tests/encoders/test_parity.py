"""Published encoders against what their authors' code returned, on full-size pseudo-random weights.

Every encoder's pixels and tokens are compared in each run; vectors of one encoder a family, and of
all in a slow run, which also has all inputs of ../shared.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import normalize

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same,
    assert_same_pixels,
    assert_same_tokens,
    forget_foreign_classes,
    load_as_authors,
    omegaconf_dict,
    row_error,
    save_lightning,
    sha256,
)
from tests.encoders.vlscore_cxr import SCORES, PackageGolden, assert_equals_package
from vlscore import LIMITREncoder, VLscore
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.encoders import (
    JointEncoder,
    PublishedEncoder,
    WordPieceTokenizer,
    entry_of,
    find_encoder,
    load_encoder,
)
from vlscore.encoders.blocks.pixels import read_with_opencv
from vlscore.encoders.blocks.tokenizers import ClipTokenizer
from vlscore.encoders.models.chexzero import CanvasPipeline, ChexzeroEncoder
from vlscore.encoders.models.openclip import BIOMEDCLIP_CONFIG, BiomedClipEncoder
from vlscore.encoders.models.openclip_parts import CleaningWordPieces, OpenClipPipeline
from vlscore.errors import IncompatibleCheckpoint, UnknownName, WeightsNotFound

slow = pytest.mark.slow
QUICK = ("limitr:repository", "biovil-t", "medclip-vit", "mgca-vit", "chexzero")
OTHERS = (
    "gloria", "biovil", "medclip-resnet", "mgca-resnet50", "convirt", "convirt-mgca", "biomedclip",
)  # fmt: skip


@dataclass(frozen=True)
class Built:
    """An encoder that was loaded from a folder with its authors' files and a vocabulary."""

    encoder: JointEncoder
    golden: Golden
    folder: Path

    def pixels(self) -> torch.Tensor:
        """Pixels (n, 3, h, w) of the golden's images, read as the authors read them."""
        read = self.encoder.image_pipeline.as_authors
        return torch.stack([read(path) for path in self.golden.images])


@pytest.fixture(scope="module", params=[*QUICK, *(pytest.param(x, marks=slow) for x in OTHERS)])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    name = request.param
    golden, folder = Golden.of(name), tmp_path_factory.mktemp(name)
    manifests = ("manifest_image.json", "manifest_text.json")
    files = entry_of(name.partition(":")[0]).weights.files
    for file, manifest in zip(
        files, manifests if len(files) == 2 else ("manifest.json",), strict=True
    ):
        tensors = golden.tensors(manifest)
        if file.name.endswith(".ckpt"):
            save_lightning(folder / file.name, tensors, omegaconf_dict())
            forget_foreign_classes()
        else:
            torch.save(tensors, folder / file.name)
    if name != "chexzero":
        golden.vocabulary(folder)
    return Built(load_as_authors(name, folder, None), golden, folder)


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("built", names, indirect=True)


@pytest.fixture
def whole(built: Built, shared: Path) -> Built:
    """The same with all inputs of ../shared."""
    return Built(built.encoder, built.golden.whole(shared), built.folder)


def test_parity(built: Built) -> None:
    assert_same(built.encoder, built.golden)


def test_what_is_known_of_an_encoder_needs_no_network(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, encoder = type(built.encoder), built.encoder
    if not issubclass(kind, PublishedEncoder):
        pytest.skip("its network says how reports and images are read")
    monkeypatch.setattr("vlscore.encoders.published.load_checkpoint", None)
    paths = kind.find_files(built.folder)
    variant = encoder.variant if isinstance(encoder, PublishedEncoder) else None
    known = kind.without_network(paths, None, variant, encoder.weights_digest)
    assert not list(known.parameters())
    assert (known.card, known.checksum) == (encoder.card, encoder.checksum)
    assert known.image_pipeline.identity() == encoder.image_pipeline.identity()
    assert (known.has_lateral_tower, known.takes_prior) == (
        encoder.has_lateral_tower,
        encoder.takes_prior,
    )
    assert_same_tokens(known, built.golden)


@only("limitr:repository")
def test_a_second_run_from_the_cache_builds_no_network(
    built: Built, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("vlscore.core.files._NANOSECONDS_OF_A_CHANGE", 0)
    study, texts = StudyViews(PackageGolden.slice().paths), PackageGolden.slice().texts[:3]

    def run(text: str) -> tuple[bytes, str]:
        embedder = StudyEmbedder(
            "limitr", weights=str(built.folder), cache=tmp_path / "cache", device="cpu"
        )
        found = embedder.embed_studies([study]), embedder.embed_texts([*texts, text])
        return b"".join(each.vectors.numpy().tobytes() for each in found), str(embedder.signature)

    first = run(texts[0])
    with monkeypatch.context() as context:
        for part in ("load_checkpoint", "load_state_dict"):
            context.setattr(f"vlscore.encoders.published.{part}", None)
        context.setattr("vlscore.encoders.models.limitr.EnlargedResNet", None)
        assert run(texts[0]) == first
        # The network is needed for a new report.
        with pytest.raises(TypeError):
            run("no such report before")


@slow
def test_parity_on_all_inputs(whole: Built) -> None:
    assert_same(whole.encoder, whole.golden)


@only("limitr:repository")
def test_limitr_is_as_in_the_authors_package(built: Built) -> None:
    encoder = load_encoder("limitr", weights=built.folder)
    assert_equals_package(encoder, PackageGolden.slice())
    assert encoder.weights_digest == built.encoder.weights_digest
    assert encoder.checksum != built.encoder.checksum
    assert encoder.card.C == built.encoder.card.C


@only("limitr:repository")
def test_scores_by_the_names_of_the_authors_package(built: Built) -> None:
    golden = PackageGolden.slice()
    _, candidates, references = golden.triples.T
    metric = VLscore(built.folder, tokenizer=built.folder, show_progress=False)
    with pytest.warns(UserWarning, match="1 texts have more than 97 tokens"):
        found = metric.compute(
            golden.paths * len(golden.triples),
            gt=[golden.texts[row] for row in references],
            output=[golden.texts[row] for row in candidates],
        )
    assert np.abs(found - golden.score).max() <= SCORES


@only("limitr:repository")
def test_a_checkpoint_that_the_authors_package_downloaded_is_found(
    built: Built, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the hub's cache, or in the folder that was its cache_dir; the vocabulary is there, too."""
    checkpoint = entry_of("limitr").weights.files[0].name
    held = {"Gefenda/LIMITR": checkpoint, "emilyalsentzer/Bio_ClinicalBERT": "vocab.txt"}
    for number, (hub, name) in enumerate(held.items()):
        for cache in ("hub", "own") if number == 0 else ("hub",):
            folder = tmp_path / cache / f"models--{hub.replace('/', '--')}"
            (folder / "refs").mkdir(parents=True)
            (folder / "refs" / "main").write_text("0" * 40)
            (folder / "snapshots" / ("0" * 40)).mkdir(parents=True)
            (folder / "snapshots" / ("0" * 40) / name).symlink_to(built.folder / name)
    monkeypatch.delenv("VLSCORE_WEIGHTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert load_encoder("limitr").weights_digest == built.encoder.weights_digest
    (tmp_path / "hub" / "models--Gefenda--LIMITR").rename(tmp_path / "away")
    with pytest.raises(WeightsNotFound, match="vlscore weights fetch limitr"):
        load_encoder("limitr")
    found = LIMITREncoder(cache_dir=tmp_path / "own", show_progress=False)
    assert found.embedder.encoder.weights_digest == built.encoder.weights_digest


@slow
@only("limitr:repository")
def test_limitr_is_as_in_the_authors_package_on_all_inputs(built: Built, shared: Path) -> None:
    encoder = load_encoder("limitr", weights=built.folder)
    assert_equals_package(encoder, PackageGolden.whole(shared))


def without_weights(name: str, folder: Path) -> JointEncoder:
    """An encoder that reads images and reports, and has no numbers in its towers."""
    if name == "chexzero":
        with torch.device("meta"):
            return ChexzeroEncoder(ClipTokenizer())
    pieces = WordPieceTokenizer.from_file(Golden.of(name).vocabulary(folder))
    kind, variant = find_encoder(name)
    assert isinstance(kind, type)
    if issubclass(kind, PublishedEncoder):
        with torch.device("meta"):
            return kind(pieces, variant)
    assert issubclass(kind, BiomedClipEncoder)
    pipeline = OpenClipPipeline(224, BIOMEDCLIP_CONFIG["preprocess_cfg"])
    model: Any = torch.nn.Identity()
    return kind(model, pipeline, CleaningWordPieces(pieces, 256), kind.card)


@pytest.mark.parametrize("name", [*QUICK, *OTHERS])
def test_pixels_and_tokens(name: str, tmp_path: Path) -> None:
    encoder, golden = without_weights(name, tmp_path), Golden.of(name)
    assert_same_pixels(encoder.image_pipeline, golden)
    assert_same_tokens(encoder, golden)


def test_convirt_deletes_line_feeds_and_flags_long_reports(tmp_path: Path) -> None:
    encoder = without_weights("convirt", tmp_path)
    joined, divided = encoder.tokenize(["lungs\nare clear", "lungsare clear"]).ids
    assert joined.tolist() == divided.tolist()
    tokens = encoder.tokenize(["lungs are clear. " * 200, "clear"])
    assert (tokens.lengths.tolist(), tokens.truncated.tolist()) == ([512, 3], [True, False])


@slow
@only("gloria", "limitr:repository")
def test_words(whole: Built) -> None:
    """Sums of word pieces, [CLS] first; the losses leave out [SEP], the last of the authors'."""
    golden = whole.golden
    tokens = whole.encoder.tokenize(golden.texts)
    assert tokens.truncated.tolist() == [False, True] + 4 * [False]
    with torch.inference_mode():
        found = whole.encoder.report_features(tokens)
    assert found.is_word.sum(1).tolist() == (golden["n_words"] - 1).tolist()
    expected, means = golden["txt_local_slice"], golden["txt_local_mean"]
    for row, count in enumerate((golden["n_words"] - 1).tolist()):
        words = found.words[row, :count]
        first = expected[row, :, :count].T
        assert row_error(words[: len(first), :16], first) <= TOLERANCE
        np.testing.assert_allclose(words.mean(1), means[row, :count], atol=1e-6)


@slow
@only("gloria", "limitr:repository", "biovil", "biovil-t")
def test_patches(whole: Built) -> None:
    golden, step = whole.golden, 5 if "biovil" in whole.encoder.card.name else 6
    with torch.inference_mode():
        places = whole.encoder.image_features(whole.pixels()).patches
    patches = places.transpose(1, 2).reshape(tuple(golden["img_local_shape"]))
    assert row_error(patches.mean((2, 3)), golden["img_local_mean"]) <= TOLERANCE
    assert row_error(patches[:, :8, ::step, ::step], golden["img_local_slice"]) <= TOLERANCE


@only("limitr:repository")
def test_frontal_and_lateral_mean(whole: Built) -> None:
    pixels, encoder = whole.pixels(), whole.encoder
    with torch.inference_mode():
        lateral = encoder.embed_lateral_images(pixels.roll(-1, dims=0))
        lateral[torch.from_numpy(whole.golden["lateral_missing"])] = 0
        both = (encoder.embed_images(pixels) + lateral) / 2
    assert row_error(both, whole.golden["img_global_lateral"]) <= TOLERANCE


@only("biovil-t")
def test_earlier_image(whole: Built) -> None:
    pixels, golden = whole.pixels(), whole.golden
    prior = pixels[torch.from_numpy(golden["previous_index"])]
    with torch.inference_mode():
        found = whole.encoder.embed_images_with_prior(pixels, prior)
    expected = torch.from_numpy(golden["img_global_raw_with_previous"])
    assert row_error(found, normalize(expected, dim=-1)) <= TOLERANCE


@only("limitr:repository")
def test_report_without_words(built: Built) -> None:
    tokens = built.encoder.tokenize(["", " 1. ", "."])
    assert tokens.lengths.tolist() == [2, 2, 2]
    assert built.encoder.encode_tokens(tokens).isfinite().all()


@only("biovil-t")
def test_files_of_another_model_are_refused(built: Built, tmp_path: Path) -> None:
    """BioViL has the same files but for the image tower's."""
    image, text = (file.name for file in entry_of("biovil-t").weights.files)
    for name in ("vocab.txt", text):
        (tmp_path / name).symlink_to(built.folder / name)
    with pytest.raises(WeightsNotFound, match="biovil_image_resnet50_proj_size_128"):
        load_as_authors("biovil", tmp_path, None)
    (tmp_path / entry_of("biovil").weights.files[0].name).symlink_to(built.folder / image)
    with pytest.raises(IncompatibleCheckpoint, match="missing_previous_emb"):
        load_as_authors("biovil", tmp_path, None)


@slow
@only("mgca-vit", "convirt-mgca")
def test_before_normalisation(built: Built) -> None:
    """The output of the last batch normalisation."""
    name, golden = built.encoder.card.name, built.golden
    raw = load_as_authors(f"{name}:raw", built.folder, None)
    assert (raw.card.normalised, raw.card.name) == (False, f"{name}:raw")
    images, reports = raw.encode_images(golden.images), raw.encode_reports(golden.texts)
    assert row_error(normalize(images), golden["image"]) <= TOLERANCE
    if "image_raw" in golden.arrays:
        assert golden.compare(images, "image_raw") <= TOLERANCE
        assert golden.compare(reports, "report_raw") <= TOLERANCE
    with pytest.raises(UnknownName, match=f"no variant 'cooked'; there is {name}:raw"):
        load_encoder(f"{name}:cooked", weights=built.folder)


@only("chexzero")
def test_stored_canvas(whole: Built) -> None:
    expected = whole.golden["h5_320_u8_sha256"]
    for path, digest in zip(whole.golden.images, expected, strict=True):
        canvas = CanvasPipeline.canvas(Image.fromarray(read_with_opencv(path, colour=True)))
        assert sha256(torch.from_numpy(canvas.copy())) == digest
