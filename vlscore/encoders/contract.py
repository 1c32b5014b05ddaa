"""What every joint encoder must keep, as checks that run on any of them.

>>> from vlscore.encoders import load_encoder
>>> from vlscore.encoders.contract import check_encoder
>>> check_encoder(load_encoder("phantom"))  # doctest: +SKIP
"""

import pickle
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.encoders.base import JointEncoder, Precision, check_ready, inference
from vlscore.encoders.card import EncoderCard
from vlscore.errors import BrokenContract, InvalidReport, UnreadableImage
from vlscore.images import ImagePolicy, Radiograph, as_radiograph

INDEPENDENCE = 1e-5
CPU_AND_GPU = 1e-4
HALF_PRECISION = 0.1
_UNIT_LENGTH = 1e-5
_CHECKSUM_LENGTH = 64

REPORTS = (
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

Check = Callable[[JointEncoder], None]


def check_encoder(encoder: JointEncoder) -> None:
    """Run every check of this module on an encoder, one's own or a published one.

    Raises: BrokenContract, which lists everything that is wrong.
    """
    problems = []
    for check in encoder_checks():
        try:
            check(encoder)
        except BrokenContract as problem:
            problems.append(str(problem))
        except Exception as error:  # a check may run into any fault of the model
            problems.append(
                f"{encoder.card.name}: {check.__name__}: {type(error).__name__}: {error}"
                f"{_line_of(error)}"
            )
    if problems:
        raise BrokenContract("\n".join(problems))


def encoder_checks() -> tuple[Check, ...]:
    """The checks one by one, for test parameters."""
    checks: tuple[Check, ...] = (
        check_card,
        check_checksum,
        check_pixels,
        check_sixteen_bits,
        check_pipeline_travels,
        check_image_embeddings,
        check_report_embeddings,
        check_padding,
        check_unusual_reports,
        check_truncation,
        check_bad_input,
        check_half_precision,
    )
    return (*checks, check_devices) if torch.cuda.is_available() else checks


def check_card(encoder: JointEncoder) -> None:
    """The card states everything, and the model is ready to embed."""
    card = encoder.card
    for field in fields(EncoderCard):
        value = getattr(card, field.name)
        if field.type == "str" or isinstance(value, str):
            _require(bool(value), encoder, f"its card states no {field.name}")
    for name in ("dim", "image_size", "max_tokens"):
        _require(getattr(card, name) > 0, encoder, f"its card's {name} is {getattr(card, name)}")
    _require(card.C is None or card.C > 0, encoder, f"its card's C is {card.C}")
    check_ready(encoder)


def check_checksum(encoder: JointEncoder) -> None:
    """The checksum is a sha256 and does not change."""
    checksum = encoder.checksum
    hexadecimal = set(checksum) <= set("0123456789abcdef")
    _require(
        hexadecimal and len(checksum) == _CHECKSUM_LENGTH,
        encoder,
        f"its checksum {checksum!r} is no sha256",
    )
    _require(encoder.checksum == checksum, encoder, "its checksum changes")


def check_pixels(encoder: JointEncoder) -> None:
    """Images of every size become float32 pixels of one shape, the same each time."""
    pixels = [_pixels(encoder, _picture(*size)) for size in ((1, 1), (300, 200), (4000, 5000))]
    for found in pixels:
        _require(found.dtype == torch.float32, encoder, f"pixels are {found.dtype}")
        _require(found.ndim == 3, encoder, f"pixels have the shape {tuple(found.shape)}")
        _require(found.shape == pixels[0].shape, encoder, "pixels have different shapes")
        _require(bool(found.isfinite().all()), encoder, "pixels are not finite")
    again = _pixels(encoder, _picture(300, 200))
    _require(torch.equal(pixels[1], again), encoder, "preprocessing is not deterministic")
    for size in ((2, 3000), (3000, 2)):
        try:
            found = _pixels(encoder, _picture(*size))
        except UnreadableImage:
            continue
        _require(found.shape == pixels[0].shape, encoder, f"an image of {size} has its own shape")


def check_sixteen_bits(encoder: JointEncoder) -> None:
    """The same picture in 8 and in 16 bits gives nearly the same pixels."""
    picture = _picture(240, 200)
    shallow = _pixels(encoder, picture)
    deep = _pixels(encoder, picture.astype(np.uint16) * 257)
    span = float(shallow.max() - shallow.min())
    distance = float((shallow - deep).abs().mean()) / span
    _require(distance <= 0.02, encoder, f"16-bit pixels differ by {distance:.1%} of their range")


def check_pipeline_travels(encoder: JointEncoder) -> None:
    """The image pipeline can be sent to worker processes without the model."""
    sent = pickle.dumps(encoder.image_pipeline)
    _require(len(sent) < 1 << 20, encoder, f"its image pipeline weighs {len(sent) >> 20} MiB")
    radiograph = as_radiograph(_picture(90, 70), encoder.image_policy)
    same = torch.equal(pickle.loads(sent)(radiograph), encoder.image_pipeline(radiograph))
    _require(same, encoder, "its image pipeline gives other pixels in another process")


def check_image_embeddings(encoder: JointEncoder) -> None:
    """(n, d) float32, finite, as long as the card says, whatever the batch and the order."""
    pictures = [_radiograph(size) for size in ((300, 200), (1, 1), (180, 260))]
    together = encoder.encode_images(pictures)
    _check_embeddings(encoder, together, len(pictures))
    alone = encoder.encode_images(pictures[::-1], batch_size=1).flip(0)
    _check_close(encoder, alone, together, INDEPENDENCE, "images alone and in a batch")
    _require(tuple(encoder.encode_images([]).shape) == (0, encoder.card.dim), encoder, "no images")


def check_report_embeddings(encoder: JointEncoder) -> None:
    """(n, d) float32, finite, as long as the card says, whatever the batch and the order."""
    _check_each_report(encoder, REPORTS)
    together = encoder.encode_reports(REPORTS)
    _check_embeddings(encoder, together, len(REPORTS))
    _require(
        torch.equal(encoder.encode_reports(REPORTS), together), encoder, "reports twice differ"
    )
    alone = encoder.encode_reports(REPORTS[::-1], batch_size=1).flip(0)
    _check_close(encoder, alone, together, INDEPENDENCE, "reports alone and in a batch")
    none = encoder.encode_reports([])
    _require(tuple(none.shape) == (0, encoder.card.dim), encoder, "no reports have no embeddings")


def check_padding(encoder: JointEncoder) -> None:
    """A report beside a very long one has the embedding that it has alone."""
    pair = [REPORTS[0], _long_report(encoder, "")]
    tokens = encoder.tokenize(pair)
    with inference(encoder.device, "fp32"):
        beside = encoder.embed_reports(tokens.to(encoder.device)).float().cpu()[:1]
    _check_close(encoder, beside, encoder.encode_reports(pair[:1]), INDEPENDENCE, "padding")


def check_unusual_reports(encoder: JointEncoder) -> None:
    """Any characters are embedded."""
    _check_each_report(encoder, UNUSUAL_REPORTS)
    _check_embeddings(encoder, encoder.encode_reports(UNUSUAL_REPORTS), len(UNUSUAL_REPORTS))


def check_truncation(encoder: JointEncoder) -> None:
    """A report that is too long is flagged, and it is the tail that is lost."""
    reports = [
        _long_report(encoder, "Large right pneumothorax."),
        _long_report(encoder, "Mild cardiomegaly with edema."),
        "Severe cardiomegaly. " + _long_report(encoder, ""),
        REPORTS[0],
    ]
    tokens = encoder.tokenize(reports)
    flags = tokens.truncated.tolist()
    _require(flags == [True, True, True, False], encoder, f"truncation flags are {flags}")
    longest = int(tokens.lengths.max())
    limit = encoder.card.max_tokens
    _require(longest <= limit, encoder, f"{longest} tokens are kept, but the card says {limit}")
    found = encoder.encode_tokens(tokens.take([0, 1]))
    _check_close(encoder, found[1:], found[:1], INDEPENDENCE, "a tail that is cut off")
    head_counts = not torch.equal(tokens.ids[2], tokens.ids[0])
    _require(head_counts, encoder, "the beginning of a long report is not seen")


def check_bad_input(encoder: JointEncoder) -> None:
    """What is no report is refused."""
    for wrong in ([None], [3], "one text"):
        try:
            encoder.encode_reports(wrong)  # type: ignore[arg-type]
        except InvalidReport:
            continue
        _require(False, encoder, f"it embeds {wrong!r}, which is no list of texts")


def check_half_precision(encoder: JointEncoder) -> None:
    """bfloat16 stays near float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = [encoder.encode_images([_picture(300, 200)], precision=p) for p in _PRECISIONS]
        reports = [encoder.encode_reports(REPORTS[:1], precision=p) for p in _PRECISIONS]
    _check_close(encoder, images[1], images[0], HALF_PRECISION, "images in bf16 and fp32")
    _check_close(encoder, reports[1], reports[0], HALF_PRECISION, "reports in bf16 and fp32")


def check_devices(encoder: JointEncoder) -> None:
    """CPU and GPU agree in float32."""
    home = encoder.device
    pictures, reports = [_picture(300, 200), _picture(180, 260)], REPORTS[:3]
    try:
        encoder.to("cpu")
        here = encoder.encode_images(pictures), encoder.encode_reports(reports)
        encoder.to("cuda")
        there = encoder.encode_images(pictures), encoder.encode_reports(reports)
    finally:
        encoder.to(home)
    _check_close(encoder, there[0], here[0], CPU_AND_GPU, "images on CPU and GPU")
    _check_close(encoder, there[1], here[1], CPU_AND_GPU, "reports on CPU and GPU")


def _check_each_report(encoder: JointEncoder, reports: Sequence[str]) -> None:
    """Name the report that an encoder cannot take, where it cannot take all together."""
    failed = []
    for report in reports:
        try:
            encoder.encode_reports([report])
        except Exception as error:  # tokenizers and models raise many types
            shown = ascii(report) if len(report) <= 60 else f"{report[:60]!a}..."
            failed.append(f"the report {shown} ends in {_described(error)}")
    _require(not failed, encoder, "; ".join(failed))


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}{_line_of(error)}"


def _line_of(error: BaseException) -> str:
    """Where in the encoder's own file an error arose, or where in a library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    outside = [frame for frame in own if Path(frame.filename).parent != Path(__file__).parent]
    frame = (outside or frames)[-1]
    return f" ({Path(frame.filename).name}, line {frame.lineno})"


_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")


def _picture(height: int, width: int) -> NDArray[np.uint8]:
    """Soft ribs on a gradient, from black to white."""
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


def _check_embeddings(encoder: JointEncoder, found: Tensor, count: int) -> None:
    shape = (count, encoder.card.dim)
    _require(tuple(found.shape) == shape, encoder, f"embeddings have shape {tuple(found.shape)}")
    _require(found.dtype == torch.float32, encoder, f"embeddings are {found.dtype}")
    _require(found.device.type == "cpu", encoder, f"embeddings are on {found.device}")
    _require(bool(found.isfinite().all()), encoder, "embeddings are not finite")
    unit = bool(((found.norm(dim=1) - 1).abs() <= _UNIT_LENGTH).all())
    if encoder.card.normalised:
        _require(unit, encoder, "embeddings have not the unit length that the card states")


def _check_close(
    encoder: JointEncoder, found: Tensor, expected: Tensor, tolerance: float, what: str
) -> None:
    error = row_error(found, expected)
    _require(
        error <= tolerance, encoder, f"{what}: embeddings differ by {error:.1e} (> {tolerance})"
    )


def row_error(found: Tensor | Sequence[float], expected: Tensor | Sequence[float]) -> float:
    """Largest Euclidean distance of two rows, relative to the second.

    >>> row_error(torch.tensor([[3.0, 4.5]]), torch.tensor([[3.0, 4.0]]))
    0.1
    """
    found, expected = (torch.as_tensor(x, dtype=torch.float64) for x in (found, expected))
    sizes = expected.norm(dim=1).clamp_min(torch.finfo(torch.float64).tiny)
    return float(((found - expected).norm(dim=1) / sizes).max())


def _require(kept: bool, encoder: JointEncoder, problem: str) -> None:
    if not kept:
        raise BrokenContract(f"{encoder.card.name}: {problem}")
