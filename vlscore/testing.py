"""Checks of the contract of encoders, metrics and kinds of perturbation, also of a user's own.

`check_encoder`, `check_metric` and `check_kind` run all checks of a family and raise BrokenContract
with a list of everything that is wrong. The contract test of a family in `tests/` calls them with
every registered member. Data sets have `vlscore.data.check_dataset`, which needs a folder of files.

>>> from vlscore.encoders import load_encoder
>>> from vlscore.testing import check_encoder, check_kind, check_metric
>>> check_encoder(load_encoder("phantom"))  # doctest: +SKIP
>>> check_metric("rouge-l")
>>> from vlscore.perturb import KINDS
>>> check_kind(KINDS["change-location"])
"""

import pickle
import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import broken_checks
from vlscore.data import ImagePolicy, Radiograph, as_radiograph
from vlscore.encoders import EncoderCard, JointEncoder, Precision, check_ready, inference
from vlscore.errors import BrokenContract, InvalidReport, UnreadableImage
from vlscore.metrics import (
    METRICS,
    Batch,
    Bounds,
    EmbeddingTriples,
    Metric,
    MetricValues,
    Plan,
    find_metric,
)
from vlscore.perturb import (
    Expected,
    Kind,
    Perturbation,
    ReadReport,
    apply_edits,
    default_standard_normal,
    perturbations_of,
    why_nothing,
)

INDEPENDENCE = 1e-5
CPU_AND_GPU = 1e-4
HALF_PRECISION = 0.1
_UNIT_LENGTH = 1e-5
_CHECKSUM_LENGTH = 64

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

EncoderCheck = Callable[[JointEncoder], None]


def check_encoder(encoder: JointEncoder) -> None:
    """Run every check of encoders on one: your own or a published one, with weights loaded.

    Raises: BrokenContract, which lists everything that is wrong.
    """

    def fault(check: EncoderCheck, error: Exception) -> str:
        return f"{encoder.card.name}: {check.__name__}: {_described(error)}"

    if problems := broken_checks(encoder_checks(), encoder, fault=fault):
        raise BrokenContract("\n".join(problems))


def encoder_checks() -> tuple[EncoderCheck, ...]:
    """Return the checks one by one, for test parameters."""
    checks: tuple[EncoderCheck, ...] = (
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
    """Check that the card is complete, and that the model is ready to embed."""
    card = encoder.card
    for field in fields(EncoderCard):
        value = getattr(card, field.name)
        if field.type == "str" or isinstance(value, str):
            _require_of(bool(value), encoder, f"its card has no {field.name}")
    for name in ("dim", "image_size", "max_tokens"):
        _require_of(getattr(card, name) > 0, encoder, f"its card's {name} is {getattr(card, name)}")
    _require_of(card.C is None or card.C > 0, encoder, f"its card's C is {card.C}")
    check_ready(encoder)


def check_checksum(encoder: JointEncoder) -> None:
    """Check that the checksum is a sha256 and does not change."""
    checksum = encoder.checksum
    hexadecimal = set(checksum) <= set("0123456789abcdef")
    _require_of(
        hexadecimal and len(checksum) == _CHECKSUM_LENGTH,
        encoder,
        f"its checksum {checksum!r} is not a sha256",
    )
    _require_of(encoder.checksum == checksum, encoder, "its checksum changes")


def check_pixels(encoder: JointEncoder) -> None:
    """Check that images of every size become float32 pixels of one shape, the same each time."""
    pixels = [_pixels(encoder, _picture(*size)) for size in ((1, 1), (300, 200), (4000, 5000))]
    for found in pixels:
        _require_of(found.dtype == torch.float32, encoder, f"pixels are {found.dtype}")
        _require_of(found.ndim == 3, encoder, f"pixels have the shape {tuple(found.shape)}")
        _require_of(found.shape == pixels[0].shape, encoder, "pixels have different shapes")
        _require_of(bool(found.isfinite().all()), encoder, "pixels are not finite")
    again = _pixels(encoder, _picture(300, 200))
    _require_of(torch.equal(pixels[1], again), encoder, "preprocessing is not deterministic")
    for size in ((2, 3000), (3000, 2)):
        try:
            found = _pixels(encoder, _picture(*size))
        except UnreadableImage:
            continue
        _require_of(
            found.shape == pixels[0].shape,
            encoder,
            f"pixels of an image of {size} have a different shape",
        )


def check_sixteen_bits(encoder: JointEncoder) -> None:
    """Check that the same image in 8 and in 16 bits gives nearly the same pixels."""
    picture = _picture(240, 200)
    shallow = _pixels(encoder, picture)
    deep = _pixels(encoder, picture.astype(np.uint16) * 257)
    span = float(shallow.max() - shallow.min())
    distance = float((shallow - deep).abs().mean()) / span
    _require_of(distance <= 0.02, encoder, f"16-bit pixels differ by {distance:.1%} of their range")


def check_pipeline_travels(encoder: JointEncoder) -> None:
    """Check that the image pipeline can be sent to worker processes without the model."""
    sent = pickle.dumps(encoder.image_pipeline)
    _require_of(
        len(sent) < 1 << 20, encoder, f"its pickled image pipeline has {len(sent) >> 20} MiB"
    )
    radiograph = as_radiograph(_picture(90, 70), encoder.image_policy)
    same = torch.equal(pickle.loads(sent)(radiograph), encoder.image_pipeline(radiograph))
    _require_of(same, encoder, "its image pipeline gives other pixels in another process")


def check_image_embeddings(encoder: JointEncoder) -> None:
    """Check that images become (n, d) float32, finite, the same in any batch and order."""
    pictures = [_radiograph(size) for size in ((300, 200), (1, 1), (180, 260))]
    together = encoder.encode_images(pictures)
    _check_embeddings(encoder, together, len(pictures), "images")
    alone = encoder.encode_images(pictures[::-1], batch_size=1).flip(0)
    _check_close(encoder, alone, together, INDEPENDENCE, "images alone and in a batch")
    _require_of(
        tuple(encoder.encode_images([]).shape) == (0, encoder.card.dim),
        encoder,
        "encode_images([]) does not have the shape (0, d)",
    )


def check_report_embeddings(encoder: JointEncoder) -> None:
    """Check that reports become (n, d) float32, finite, the same in any batch and order."""
    together = _encode_named(encoder, ENCODER_REPORTS)
    _check_embeddings(encoder, together, len(ENCODER_REPORTS), "reports")
    _require_of(
        torch.equal(encoder.encode_reports(ENCODER_REPORTS), together),
        encoder,
        "two calls with the same reports give different embeddings",
    )
    alone = encoder.encode_reports(ENCODER_REPORTS[::-1], batch_size=1).flip(0)
    _check_close(encoder, alone, together, INDEPENDENCE, "reports alone and in a batch")
    none = encoder.encode_reports([])
    _require_of(
        tuple(none.shape) == (0, encoder.card.dim),
        encoder,
        "encode_reports([]) does not have the shape (0, d)",
    )


def check_padding(encoder: JointEncoder) -> None:
    """Check that a report in a batch with a very long one has the same embedding as alone."""
    pair = [ENCODER_REPORTS[0], _long_report(encoder, "")]
    tokens = encoder.tokenize(pair)
    with inference(encoder.device, "fp32"):
        beside = encoder.embed_reports(tokens.to(encoder.device)).float().cpu()[:1]
    _check_close(encoder, beside, encoder.encode_reports(pair[:1]), INDEPENDENCE, "padding")


def check_unusual_reports(encoder: JointEncoder) -> None:
    """Check that texts of any characters can be embedded, also halves of surrogate pairs."""
    found = _encode_named(encoder, UNUSUAL_REPORTS)
    _check_embeddings(encoder, found, len(UNUSUAL_REPORTS), "unusual reports")


def check_truncation(encoder: JointEncoder) -> None:
    """Check that a report that is too long is flagged, and that its tail is cut off."""
    reports = [
        _long_report(encoder, "Large right pneumothorax."),
        _long_report(encoder, "Mild cardiomegaly with edema."),
        "Severe cardiomegaly. " + _long_report(encoder, ""),
        ENCODER_REPORTS[0],
    ]
    tokens = encoder.tokenize(reports)
    flags = tokens.truncated.tolist()
    _require_of(flags == [True, True, True, False], encoder, f"truncation flags are {flags}")
    longest = int(tokens.lengths.max())
    limit = encoder.card.max_tokens
    _require_of(longest <= limit, encoder, f"it reads {longest} tokens, but its card says {limit}")
    found = encoder.encode_tokens(tokens.take([0, 1]))
    _check_close(encoder, found[1:], found[:1], INDEPENDENCE, "a tail that is cut off")
    head_counts = not torch.equal(tokens.ids[2], tokens.ids[0])
    _require_of(head_counts, encoder, "the beginning of a long report has no effect")


def check_bad_input(encoder: JointEncoder) -> None:
    """Check that values that are not reports are refused."""
    for wrong in ([None], [3], "one text"):
        try:
            encoder.encode_reports(wrong)  # type: ignore[arg-type]
        except InvalidReport:
            continue
        _require_of(False, encoder, f"it embeds {wrong!r}, which is not a list of texts")


def check_half_precision(encoder: JointEncoder) -> None:
    """Check that embeddings in bfloat16 are near those in float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = [encoder.encode_images([_picture(300, 200)], precision=p) for p in _PRECISIONS]
        reports = [encoder.encode_reports(ENCODER_REPORTS[:1], precision=p) for p in _PRECISIONS]
    _check_close(encoder, images[1], images[0], HALF_PRECISION, "images in bf16 and fp32")
    _check_close(encoder, reports[1], reports[0], HALF_PRECISION, "reports in bf16 and fp32")


def check_devices(encoder: JointEncoder) -> None:
    """Check that CPU and GPU agree in float32."""
    home = encoder.device
    pictures, reports = [_picture(300, 200), _picture(180, 260)], ENCODER_REPORTS[:3]
    try:
        encoder.to("cpu")
        here = encoder.encode_images(pictures), encoder.encode_reports(reports)
        encoder.to("cuda")
        there = encoder.encode_images(pictures), encoder.encode_reports(reports)
    finally:
        encoder.to(home)
    _check_close(encoder, there[0], here[0], CPU_AND_GPU, "images on CPU and GPU")
    _check_close(encoder, there[1], here[1], CPU_AND_GPU, "reports on CPU and GPU")


def _encode_named(encoder: JointEncoder, reports: Sequence[str]) -> Tensor:
    """Embed reports; where this fails, one by one, to name the reports that cannot be embedded."""
    try:
        return encoder.encode_reports(reports)
    except Exception:
        _check_each_report(encoder, reports)
        raise


def _check_each_report(encoder: JointEncoder, reports: Sequence[str]) -> None:
    """Embed reports one by one, and name those that the encoder cannot embed."""
    failed = []
    for report in reports:
        try:
            encoder.encode_reports([report])
        except Exception as error:  # tokenizers and models raise many types
            shown = ascii(report) if len(report) <= 60 else f"{report[:60]!a}..."
            failed.append(f"the report {shown} ends in {_described(error)}")
    _require_of(not failed, encoder, "; ".join(failed))


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}{_line_of(error)}"


def _line_of(error: BaseException) -> str:
    """Return where in the encoder's own file an error arose, or where in a library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    outside = [
        frame for frame in own if not Path(frame.filename).is_relative_to(Path(__file__).parent)
    ]
    frame = (outside or frames)[-1]
    return f" ({Path(frame.filename).name}, line {frame.lineno})"


_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")


@lru_cache(maxsize=8)
def _picture(height: int, width: int) -> NDArray[np.uint8]:
    """Return an image of soft ribs on a gradient, from black to white."""
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
    shape = (count, encoder.card.dim)
    of = f"embeddings of {what}"
    _require_of(tuple(found.shape) == shape, encoder, f"{of} have shape {tuple(found.shape)}")
    _require_of(found.dtype == torch.float32, encoder, f"{of} are {found.dtype}")
    _require_of(found.device.type == "cpu", encoder, f"{of} are on {found.device}")
    _require_of(bool(found.isfinite().all()), encoder, f"{of} are not finite")
    if encoder.card.normalised:
        lengths = found.norm(dim=1)
        wrong = ((lengths - 1).abs() > _UNIT_LENGTH).nonzero()[:, 0].tolist()
        _require_of(
            not wrong,
            encoder,
            f"{of} do not have the unit length that the card states: "
            + ", ".join(f"number {k} of {count} has {lengths[k]:.4g}" for k in wrong[:3]),
        )


def _check_close(
    encoder: JointEncoder, found: Tensor, expected: Tensor, tolerance: float, what: str
) -> None:
    error = row_error(found, expected)
    _require_of(
        error <= tolerance, encoder, f"{what}: embeddings differ by {error:.1e} (> {tolerance})"
    )


def row_error(found: Tensor | Sequence[float], expected: Tensor | Sequence[float]) -> float:
    """Return the largest Euclidean distance of two rows, relative to the second's norm.

    >>> row_error(torch.tensor([[3.0, 4.5]]), torch.tensor([[3.0, 4.0]]))
    0.1
    """
    # A copy: torch warns of arrays that cannot be written, such as those of a cache.
    found, expected = (
        torch.as_tensor(x.copy() if isinstance(x, np.ndarray) else x, dtype=torch.float64)
        for x in (found, expected)
    )
    sizes = expected.norm(dim=1).clamp_min(torch.finfo(torch.float64).tiny)
    return float(((found - expected).norm(dim=1) / sizes).max())


def _require_of(kept: bool, encoder: JointEncoder, problem: str) -> None:
    if not kept:
        raise BrokenContract(f"{encoder.card.name}: {problem}")


REFERENCES = (
    "There is a small left pleural effusion. The heart is normal in size.",
    "No focal consolidation, effusion or pneumothorax. The lungs are clear.",
    "Large right pneumothorax with collapse of the right lung. Chest tube in place.",
    "Mild cardiomegaly. Vascular congestion without overt pulmonary edema is seen.",
    "A 2.5 cm nodule projects over the right upper lobe; CT is recommended.",
)
# Reports about something else, so that a metric of agreement prefers the references themselves.
OTHERS = (*REFERENCES[2:], *REFERENCES[:2])
UNUSUAL = ("", "x", "effusion " * 50, "\x00 \u00e9 \U0001f600", "... !!")
_DIM = 16
_SAME = 1e-12
# A network adds up in float32, and in another order where a text is padded to a longer neighbour.
_SAME_OF_MODELS = 1e-5

MetricCheck = Callable[[Metric], None]


def check_metric(metric: str | Metric) -> None:
    """Run every check of metrics on one, by its name or as an object.

    Raises: BrokenContract, which lists everything that is wrong; MissingDependency where the
        metric cannot run here; UnknownName.
    """
    found = find_metric(metric)
    Plan([found]).require()
    if problems := broken_checks(metric_checks(), found):
        raise BrokenContract(f"{found}: " + "\n".join(problems))


def metric_checks() -> tuple[MetricCheck, ...]:
    """Return the checks one by one, for test parameters."""
    return (
        check_columns,
        check_bounds,
        check_reference,
        check_repeats,
        check_neighbours,
        check_nothing,
        check_uses,
        check_statistics,
        check_signature,
        check_name,
    )


def check_columns(metric: Metric) -> None:
    """Check that each candidate has one finite number for each output."""
    values = _values(metric, OTHERS, REFERENCES)
    for name, column in values.columns.items():
        _require(column.shape == (len(REFERENCES),), f"{name} has the shape {column.shape}")
        _require(bool(np.isfinite(column).all()), f"{name} is not finite for ordinary reports")


def check_bounds(metric: Metric) -> None:
    """Check that no value lies outside the bounds, for any text."""
    texts = (*REFERENCES, *UNUSUAL)
    for reference in texts:
        values = _values(metric, texts, [reference] * len(texts))
        for name, output in zip(metric.columns, metric.outputs, strict=True):
            found = values.columns[name]
            is_inside = _is_inside(found[np.isfinite(found)], output.bounds)
            _require(is_inside, f"{name} has values outside its bounds {output.bounds}")


def check_reference(metric: Metric) -> None:
    """Check that a candidate equal to its reference scores best, if the metric promises it."""
    if not metric.reference_scores_best:
        return
    itself = metric.sign * _values(metric, REFERENCES, REFERENCES).headline
    other = metric.sign * _values(metric, OTHERS, REFERENCES).headline
    empty = metric.sign * _values(metric, [""] * len(REFERENCES), REFERENCES).headline
    _require(bool((itself > other).all()), "another report scores as well as the reference itself")
    _require(bool((itself > empty).all()), "an empty report scores as well as the reference itself")


def check_repeats(metric: Metric) -> None:
    """Check that the same reports get the same numbers again, bit for bit."""
    first = _numbers(metric, OTHERS, REFERENCES)
    again = _numbers(metric, OTHERS, REFERENCES)
    _require(first.tobytes() == again.tobytes(), "its values differ from call to call")


def check_neighbours(metric: Metric) -> None:
    """Check that a pair's numbers do not depend on the order or on the other pairs."""
    together = _numbers(metric, OTHERS, REFERENCES)
    backwards = _numbers(metric, OTHERS[::-1], REFERENCES[::-1])[:, ::-1]
    _require(_are_close(backwards, together, metric), "its values depend on the order")
    for row, (candidate, reference) in enumerate(zip(OTHERS, REFERENCES, strict=True)):
        alone = _numbers(metric, [candidate], [reference])
        _require(
            _are_close(alone, together[:, [row]], metric),
            "the value of a pair depends on other pairs of the batch",
        )


def check_nothing(metric: Metric) -> None:
    """Check that an empty batch gives no values, and no error."""
    _require(_numbers(metric, [], []).shape[1] == 0, "it returns values for an empty batch")


def check_uses(metric: Metric) -> None:
    """Check that a metric uses exactly the inputs that it declares."""
    if not metric.uses_embeddings:
        _require(
            not metric.uses_image or bool(metric.inputs),
            "it has uses_image=True, but receives no image: images come as "
            'artefacts=("embeddings",)',
        )
        usual = _numbers(metric, OTHERS, REFERENCES).tobytes()
        # In several orders: some metrics see no more of a text than its length, or its findings.
        changed = (REFERENCES[::-1], (*REFERENCES[1:], REFERENCES[0]), OTHERS)
        moves = any(_numbers(metric, OTHERS, other).tobytes() != usual for other in changed)
        _require(moves == metric.uses_reference, _says_otherwise(moves, "references"))
        return
    triples = _embedded(OTHERS, REFERENCES)
    noise = np.random.default_rng(6).normal(size=np.shape(triples.images))
    before = Plan([metric]).values(Batch(OTHERS, REFERENCES, triples))[metric].headline
    for name, used in (("images", metric.uses_image), ("references", metric.uses_reference)):
        parts = {part: getattr(triples, part) for part in ("images", "candidates", "references")}
        moved = EmbeddingTriples(**{**parts, name: noise}, signature=triples.signature, C=triples.C)
        after = Plan([metric]).values(Batch(OTHERS, REFERENCES, moved))[metric].headline
        moves = before.tobytes() != after.tobytes()
        _require(moves == used, _says_otherwise(moves, name))


def check_statistics(metric: Metric) -> None:
    """Check that corpus values come from sums: a corpus counted twice has the same value."""
    values = _values(metric, OTHERS, REFERENCES)
    if not metric.corpus:
        _require(values.statistics is None, "it returns statistics, but defines no corpus value")
        return
    statistics = values.statistics
    _require(
        statistics is not None and statistics.shape == (len(REFERENCES), metric.statistics),
        f"it states {metric.statistics} statistics a candidate",
    )
    plan = Plan([metric])
    once = plan.corpus(values)
    twice = plan.corpus(values, np.full((1, len(REFERENCES)), 2.0))
    for output in metric.corpus:
        # Undefined values, of an observation that no report mentions, have no bounds.
        defined = once[output.name][~np.isnan(once[output.name])]
        is_inside = _is_inside(defined, output.bounds)
        _require(is_inside, f"{output.name} has values outside its bounds {output.bounds}")
        same = np.allclose(once[output.name], twice[output.name], rtol=1e-9, equal_nan=True)
        _require(bool(same), f"{output.name} changes when every report is counted twice")


def check_signature(metric: Metric) -> None:
    """Check that the signature names the metric, its settings, and vlscore's version."""
    signature = _values(metric, OTHERS, REFERENCES).signature
    _require(signature.subject == metric.name, f"its signature begins with {signature.subject}")
    _require(signature.has("v"), "its signature has no version")
    for name, value in metric.settings.items():
        stated = signature.has(name) or value is None
        _require(stated, f"its signature does not name its parameter {name}")
    _require(
        signature.has("enc") == metric.uses_embeddings,
        "its signature must name the encoder where embeddings are used, and only there",
    )


def check_name(metric: Metric) -> None:
    """Check that a metric has a description, and that its printed name finds it if registered."""
    _require(bool(metric.description.strip()), "it has no description")
    if metric.name in METRICS:
        _require(
            find_metric(str(metric)) == metric,
            f"the registry does not find it by its name {metric}",
        )


def _values(metric: Metric, candidates: Sequence[str], references: Sequence[str]) -> MetricValues:
    embedded = _embedded(candidates, references)
    # A fitted metric is fitted once, as in a run; its numbers may not depend on the batch either.
    plan = Plan([metric]).fit(REFERENCES)
    return plan.values(Batch(list(candidates), list(references), embedded))[metric]


def _numbers(
    metric: Metric, candidates: Sequence[str], references: Sequence[str]
) -> NDArray[np.float64]:
    """Return the numbers of a metric, (outputs, n)."""
    return np.stack(list(_values(metric, candidates, references).columns.values()))


def _are_close(one: NDArray[np.float64], other: NDArray[np.float64], metric: Metric) -> bool:
    same = _SAME_OF_MODELS if metric.cost == "model" else _SAME
    return bool(np.allclose(one, other, rtol=same, equal_nan=True))


def _is_inside(values: NDArray[np.float64], bounds: Bounds) -> bool:
    low, high = bounds
    return bool((low is None or (values >= low).all()) and (high is None or (values <= high).all()))


def _says_otherwise(moves: bool, name: str) -> str:
    return f"it {'uses' if moves else 'ignores'} the {name}, but its definition says the opposite"


def _embedded(candidates: Sequence[str], references: Sequence[str]) -> EmbeddingTriples:
    """Return triples in which each image lies near its reference, and other texts far from both."""
    towards = np.random.default_rng(5).normal(size=_DIM) * 0.05
    r = np.array([_vector(text) for text in references]).reshape(-1, _DIM)
    g = np.array([_vector(text) for text in candidates]).reshape(-1, _DIM)
    return EmbeddingTriples(r + towards, g, r, "enc:test", C=1.0)


def _vector(text: str) -> NDArray[np.float64]:
    seed = int.from_bytes(text.encode("utf-8")[:40].ljust(40, b"\0"), "little")
    direction = np.random.default_rng(seed).normal(size=_DIM)
    return np.asarray(direction / np.linalg.norm(direction))


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise BrokenContract(problem)


KIND_REPORTS = (
    "There is a small left pleural effusion, stable. The heart is normal in size.",
    "The heart is normal in size. The lungs are clear. There is no pleural effusion or "
    "pneumothorax. No acute bony abnormality.",
    "PA and lateral views. The heart is moderately enlarged. Mild edema. No pneumothorax.",
    "FINDINGS: There is consolidation in the right lower lobe. No pleural effusion.\n\n"
    "IMPRESSION: Right lower lobe pneumonia.",
    "1. Small left pleural effusion.\n2. Mild cardiomegaly.\n3. No pneumothorax.",
    "the heart is mildly enlarged . there is a small right pleural effusion . no pneumothorax .",
    "THERE IS A LARGE LEFT PLEURAL EFFUSION. THE HEART IS NORMAL IN SIZE. NO PNEUMOTHORAX.",
    "Pneumothorax: None.\nEffusion: Small left.\nHeart: Normal.",
    "XXXX view of the chest. There is XXXX left pleural effusion.",
    "左侧少量胸腔积液。心影不大。",
    " \n\t ",
    "",
)

# Slips of typesetting and grammar that a change must not bring into a report.
SLIPS = {
    "two spaces": re.compile(r"(?<=\S)  +(?=\S)"),
    "space at the end of a line": re.compile(r"[ \t]+$", re.MULTILINE),
    "space at the beginning of a line": re.compile(r"^[ \t]+", re.MULTILINE),
    "space before a stop": re.compile(r"\s[.,;:](?=\s|$)"),
    "two stops": re.compile(r"[.,;]\s*[,;]|[,;]\s*\.|\.\s*\.(?!\w)"),
    "'a' before a vowel": re.compile(r"\ba [aeio](?!ne\b|ne-|u)\w+", re.IGNORECASE),
    "'an' before a consonant": re.compile(r"\ban [bcdgjklpqtvwyz]\w+", re.IGNORECASE),
    "a word twice": re.compile(r"\b([a-z]+) \1\b", re.IGNORECASE),
    "no capital after a stop": re.compile(r"(?:^|[^.\d][.!?]\s+)[a-z]"),
    "an empty list item": re.compile(r"^\s*(?:\d+[.)]|-)\s*$|\d\. \d\. ", re.MULTILINE),
}


def check_kind(kind: Kind, reports: Iterable[str] = KIND_REPORTS) -> None:
    """Run every check of kinds of perturbation on one: your own or a registered one.

    Args:
        reports: texts to perturb. Add texts in which your kind changes something: most checks are
            about changes.

    Raises: BrokenContract, which lists everything that is wrong.
    """
    problems = _problems(check_description, kind)
    for report in reports:
        problems += _problems(check_report, kind, report)
    if problems:
        raise BrokenContract("\n".join(dict.fromkeys(problems)))


def check_description(kind: Kind) -> None:
    """Check a kind's name and texts, which `vlscore perturb --list-kinds` and the card show."""
    name = getattr(kind, "name", "")
    _require(
        re.fullmatch(r"[a-z]+(?:-[a-z]+)*", name),
        "its name must have the form of 'change-location'",
    )
    _require(
        re.fullmatch(r"[A-Z].*\.", kind.description, re.DOTALL),
        "its description must be a sentence",
    )
    _require(kind.origin, "it has no origin, which says where it was published")
    _require(
        kind.nothing and not kind.nothing.endswith("."),
        "its attribute `nothing`, the reason why a report allows no such change, must be a text "
        "without a period at the end",
    )
    _require(kind.expected in Expected, "`expected` must be significant or insignificant")
    _require(
        kind.category is None or kind.expected is Expected.SIGNIFICANT,
        "it has an error category and is expected to be insignificant",
    )


def check_report(kind: Kind, report: str, seed: int = 0) -> list[Perturbation]:
    """Check the perturbations that a kind makes of one report, and return them."""
    read = ReadReport.read(report, default_standard_normal())
    found = list(perturbations_of(read, kind, seed, 5, "s"))
    for perturbation in found:
        check_perturbation(perturbation, kind, report)
        check_slips(perturbation)
    texts = [squeezed(perturbation.perturbed) for perturbation in found]
    _require(len(set(texts)) == len(texts), "two changes of a report are equal")
    # A report is parsed once for all kinds: a kind that modifies it would change later results.
    fresh = ReadReport.read(report, default_standard_normal())
    for again in (read, fresh):
        _require(
            list(perturbations_of(again, kind, seed, 5, "s")) == found,
            "it makes other changes in a second run; only `chance` may be random",
        )
    _require(
        list(perturbations_of(fresh, kind, seed, 1, "s")) == found[:1],
        "its first change depends on how many are wanted",
    )
    _require(found or why_nothing(read, kind), "it changes nothing and gives no reason")
    return found


def check_perturbation(perturbation: Perturbation, kind: Kind, report: str) -> None:
    """Check that the record agrees with the texts, and with the kind that made it."""
    original, perturbed = perturbation.original, perturbation.perturbed
    _require(original == report, "it changes the original")
    _require(perturbation.edits, "a change without an edit")
    for before, after in pairwise(perturbation.edits):
        _require(
            before.start < after.start and before.end <= after.start,
            "its edits overlap or are out of order",
        )
    for start, end, replacement in perturbation.edits:
        _require(0 <= start <= end <= len(original), "an edit is outside the text")
        _require(original[start:end] != replacement, "an edit that changes nothing")
    _require(
        apply_edits(original, perturbation.edits) == perturbed,
        "its edits do not turn the original into the changed report",
    )
    _require(squeezed(perturbed), "its changed report is empty")
    _require(squeezed(perturbed) != squeezed(original), "it only changes white space")
    _require(perturbation.rule, "a change without a rule")
    told = (perturbation.kind, perturbation.expected, perturbation.category)
    _require(
        told == (kind.name, kind.expected, kind.category),
        "the record names another kind, expectation or category",
    )


def check_slips(perturbation: Perturbation) -> None:
    """Check that the change added no slip that the report did not have before."""
    original, perturbed = perturbation.original, perturbation.perturbed
    for name, slip in SLIPS.items():
        before = {squeezed(match.group()) for match in slip.finditer(original)}
        after = {squeezed(match.group()) for match in slip.finditer(perturbed)}
        if before and name in ("no capital after a stop", "space before a stop"):
            continue  # The report is written so: in lower case, or in tokens.
        _require(after <= before, f"{name}: {sorted(after - before)} in {perturbed!r}")


def squeezed(text: str) -> str:
    """Return the text with every run of white space as one blank."""
    return " ".join(text.split())


def _problems(check: Callable[..., object], kind: Kind, *report: str) -> list[str]:
    where = f" (report: {report[0][:60]!r})" if report else ""
    name = getattr(kind, "name", type(kind).__name__)
    problems = broken_checks(
        [check], kind, *report, fault=lambda _, error: f"{type(error).__name__}: {error}"
    )
    return [f"{name}: {problem}{where}" for problem in problems]
