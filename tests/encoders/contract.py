"""The contract of encoders: `check_encoder` raises AssertionError for the first broken promise."""

import pickle
import warnings
from dataclasses import fields
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.encoders.goldens import row_error
from vlscore.data import ImagePolicy, Radiograph, as_radiograph
from vlscore.encoders import EncoderCard, JointEncoder, Precision, check_ready, inference
from vlscore.errors import InvalidReport, UnreadableImage

INDEPENDENCE = 1e-5
CPU_AND_GPU = 1e-4
HALF_PRECISION = 0.1
UNIT_LENGTH = 1e-5

ENCODER_REPORTS = (
    "Small left pleural effusion. No pneumothorax.",
    "",
    "The heart is mildly enlarged. There is a 2.5 cm nodule in the right upper lobe, unchanged "
    "since the prior study. No focal consolidation, pleural effusion or pneumothorax is seen.",
    "No acute cardiopulmonary process.",
    "   \n\t ",
)
UNUSUAL_REPORTS = (
    "na\u00efve \u00b5m \u00bd \u2265 5 \u2014 \u201cquoted\u201d",
    "\u80ba\u90e8\u6e05\u6670 \u0644\u0627 \u062a\u0648\u062c\u062f \U0001fac1",
    "e\u0301\u0300 \u200b\u202e zero\x00 bell\x07 \ud800 \ufffd",
    "[CLS] [SEP] [PAD] [MASK] <|endoftext|> <s> ___",
    "x" * 5000,
    "1. 2. 3. ... !!! ???",
)


def check_encoder(encoder: JointEncoder) -> None:
    check_card(encoder)
    check_pixels(encoder)
    check_image_embeddings(encoder)
    check_truncation(encoder)
    check_padding(encoder)
    check_report_embeddings(encoder)
    check_bad_input(encoder)
    check_half_precision(encoder)
    if torch.cuda.is_available():
        check_devices(encoder)


def check_card(encoder: JointEncoder) -> None:
    """The card is complete, the model is ready to embed, the checksum is a sha256 that stays."""
    card = encoder.card
    for field in fields(EncoderCard):
        value = getattr(card, field.name)
        if field.type == "str" or isinstance(value, str):
            assert value, f"its card has no {field.name}"
    for name in ("dim", "image_size", "max_tokens"):
        assert getattr(card, name) > 0, f"its card's {name} is {getattr(card, name)}"
    assert card.C is None or card.C > 0, f"its card's C is {card.C}"
    check_ready(encoder)
    checksum = encoder.checksum
    assert len(checksum) == 64
    assert set(checksum) <= set("0123456789abcdef"), "its checksum is not a sha256"
    assert encoder.checksum == checksum, "its checksum changes"


def check_pixels(encoder: JointEncoder) -> None:
    """Images of every size and depth become float32 pixels of one shape, in any process."""
    pixels = [_pixels(encoder, _picture(*size)) for size in ((1, 1), (300, 200), (4000, 5000))]
    for found in pixels:
        assert found.dtype == torch.float32
        assert found.ndim == 3
        assert found.shape == pixels[0].shape, "pixels have different shapes"
        assert found.isfinite().all(), "pixels are not finite"
    again = _pixels(encoder, _picture(300, 200))
    assert torch.equal(pixels[1], again), "preprocessing is not deterministic"
    for size in ((2, 3000), (3000, 2)):
        try:
            found = _pixels(encoder, _picture(*size))
        except UnreadableImage:
            continue
        assert found.shape == pixels[0].shape
    picture = _picture(240, 200)
    shallow, deep = _pixels(encoder, picture), _pixels(encoder, picture.astype(np.uint16) * 257)
    span = float(shallow.max() - shallow.min())
    assert float((shallow - deep).abs().mean()) / span <= 0.02, "16-bit pixels differ"
    sent = pickle.dumps(encoder.image_pipeline)
    assert len(sent) < 1 << 20, "its image pipeline is too large for worker processes"
    radiograph = _radiograph((90, 70))
    assert torch.equal(pickle.loads(sent)(radiograph), encoder.image_pipeline(radiograph))


def check_image_embeddings(encoder: JointEncoder) -> None:
    """Images become (n, d) float32, finite, the same in any batch and order."""
    pictures = [_radiograph(size) for size in ((300, 200), (1, 1), (180, 260))]
    together = encoder.encode_images(pictures)
    _check_embeddings(encoder, together, len(pictures), "images")
    assert not torch.equal(together[0], together[2]), "it ignores the image: two have one embedding"
    alone = encoder.encode_images(pictures[::-1], batch_size=1).flip(0)
    _check_close(alone, together, INDEPENDENCE, "images alone and in a batch")
    assert tuple(encoder.encode_images([]).shape) == (0, encoder.card.dim)


def check_report_embeddings(encoder: JointEncoder) -> None:
    """Reports become (n, d) float32, finite, the same in any batch and order; so any characters."""
    together = encoder.encode_reports(ENCODER_REPORTS)
    _check_embeddings(encoder, together, len(ENCODER_REPORTS), "reports")
    assert not torch.equal(together[0], together[2]), "it ignores the text: two have one embedding"
    again = encoder.encode_reports(ENCODER_REPORTS)
    assert torch.equal(again, together), "two calls with the same reports differ"
    alone = encoder.encode_reports(ENCODER_REPORTS[::-1], batch_size=1).flip(0)
    _check_close(alone, together, INDEPENDENCE, "reports alone and in a batch")
    assert tuple(encoder.encode_reports([]).shape) == (0, encoder.card.dim)
    unusual = encoder.encode_reports(UNUSUAL_REPORTS)
    _check_embeddings(encoder, unusual, len(UNUSUAL_REPORTS), "unusual reports")


def check_padding(encoder: JointEncoder) -> None:
    """A report in a batch with a very long one has the same embedding as alone."""
    pair = [ENCODER_REPORTS[0], _long_report(encoder, "")]
    tokens = encoder.tokenize(pair)
    with inference(encoder.device, "fp32"):
        beside = encoder.embed_reports(tokens.to(encoder.device)).float().cpu()[:1]
    _check_close(beside, encoder.encode_reports(pair[:1]), INDEPENDENCE, "padding")


def check_truncation(encoder: JointEncoder) -> None:
    """A report that is too long is flagged, its tail is cut off, its beginning counts."""
    reports = [
        _long_report(encoder, "Large right pneumothorax."),
        _long_report(encoder, "Mild cardiomegaly with edema."),
        "Severe cardiomegaly. " + _long_report(encoder, ""),
        ENCODER_REPORTS[0],
    ]
    tokens = encoder.tokenize(reports)
    flags = tokens.truncated.tolist()
    assert flags == [True, True, True, False], f"truncation flags are {flags}"
    longest, limit = int(tokens.lengths.max()), encoder.card.max_tokens
    assert longest <= limit, f"it reads {longest} tokens, but its card says {limit}"
    found = encoder.encode_tokens(tokens.take([0, 1]))
    _check_close(found[1:], found[:1], INDEPENDENCE, "a tail that is cut off")
    assert not torch.equal(tokens.ids[2], tokens.ids[0])


def check_bad_input(encoder: JointEncoder) -> None:
    """Values that are not reports are refused."""
    for wrong in ([None], [3], "one text"):
        try:
            encoder.encode_reports(wrong)  # type: ignore[arg-type]
        except InvalidReport:
            continue
        raise AssertionError(f"it embeds {wrong!r}, which is not a list of texts")


def check_half_precision(encoder: JointEncoder) -> None:
    """Embeddings in bfloat16 are near those in float32."""
    precisions: tuple[Precision, ...] = ("fp32", "bf16")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = [encoder.encode_images([_picture(300, 200)], precision=p) for p in precisions]
        reports = [encoder.encode_reports(ENCODER_REPORTS[:1], precision=p) for p in precisions]
    _check_close(images[1], images[0], HALF_PRECISION, "images in bf16 and fp32")
    _check_close(reports[1], reports[0], HALF_PRECISION, "reports in bf16 and fp32")


def check_devices(encoder: JointEncoder) -> None:
    """CPU and GPU agree in float32."""
    home = encoder.device
    pictures, reports = [_picture(300, 200), _picture(180, 260)], ENCODER_REPORTS[:3]
    try:
        encoder.to("cpu")
        here = encoder.encode_images(pictures), encoder.encode_reports(reports)
        encoder.to("cuda")
        there = encoder.encode_images(pictures), encoder.encode_reports(reports)
    finally:
        encoder.to(home)
    _check_close(there[0], here[0], CPU_AND_GPU, "images on CPU and GPU")
    _check_close(there[1], here[1], CPU_AND_GPU, "reports on CPU and GPU")


@lru_cache(maxsize=8)
def _picture(height: int, width: int) -> NDArray[np.uint8]:
    """An image of soft ribs on a gradient, from black to white."""
    rows, columns = np.linspace(0, 1, height)[:, None], np.linspace(0, 1, width)
    values = rows + 0.5 * np.sin(20 * columns + 5 * rows) + columns**2
    span = values.max() - values.min()
    found: NDArray[np.uint8] = ((values - values.min()) / (span or 1) * 255).astype(np.uint8)
    return found


def _radiograph(size: tuple[int, int]) -> Radiograph:
    # One pixel shows nothing, but an encoder must take it.
    return as_radiograph(_picture(*size), ImagePolicy(other_modalities="accept"))


def _pixels(encoder: JointEncoder, picture: NDArray[np.generic]) -> Tensor:
    return encoder.preprocess(as_radiograph(picture, ImagePolicy(other_modalities="accept")))


def _long_report(encoder: JointEncoder, tail: str) -> str:
    return "No pleural effusion is seen. " * encoder.card.max_tokens + tail


def _check_embeddings(encoder: JointEncoder, found: Tensor, count: int, what: str) -> None:
    shape = tuple(found.shape)
    assert shape == (count, encoder.card.dim), f"embeddings of {what} have shape {shape}"
    assert found.dtype == torch.float32
    assert found.device.type == "cpu"
    assert found.isfinite().all(), f"embeddings of {what} are not finite"
    if encoder.card.normalised:
        lengths = found.norm(dim=1)
        far = float((lengths - 1).abs().max())
        assert far <= UNIT_LENGTH, f"embeddings of {what} do not have the unit length of its card"


def _check_close(found: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    error = row_error(found, expected)
    assert error <= tolerance, f"{what}: embeddings differ by {error:.1e} (> {tolerance})"
