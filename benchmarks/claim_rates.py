"""Claim: of the verdicts on claims that are printed as one total, no larger share is wrong than the
stated rate, whether a finding is claimed once or often; errors that a generator shares with the
encoder break this.

Protocol. Scores with known truth, REPEATS repetitions each, judged by the library's own code
(`ImageEvidence` and `verdicts_at` of vlscore.claims). There are 60 findings, in equal parts as
frequent as .02, .05, .1, .2 and .4. In each repetition 300 new patients calibrate. The score of an
image is 0 without the finding and d with it, with a normal deviation of 1, of which .3 of the
variance is common to all findings of an image; AUC = Phi(d / sqrt 2). Encoders read all findings
equally well here.

- once: each finding is stated once; .1 or .5 of the statements are true.
- generator: as a real one (a vision-language model) states 509 times 108 findings, 49 of them once;
  here 49 findings once and 11 findings 460 times in all. .35 of the statements are true.
- often: 20 findings, each stated on 25 images; .1 or .5 are true.
- sides: 10 findings, as frequent as .4, each stated on 25 images, with a side; .9 of the images
  have the finding, in half of them on the other side. 1,000 patients calibrate. The distance
  between the sides is that of the finding.
- half read: as "often, 0.5 true", and the encoder sees every second finding at AUC .5.
- small: 4 findings, as frequent as .4, each stated on 15 images; .5 are true, the encoder sees two
  of the findings at AUC .5, and 60 patients calibrate.
- seen: a generator that reads 100 images with AUC .8 states each finding where it looks most
  likely, as often as it is there, and denies it on a quarter of the other images. Its errors
  correlate with those of the encoder by 0, .3, .5 or .8.

"Wrong" is the mean over repetitions of the share of wrong claims in the printed total, which is 0
without any: the false discovery rate. "Pooled" is all wrong claims of all repetitions by all
decided ones. "Expected" is the mean of the share that is printed beside the total, over repetitions
with a decided claim. "Decided" is a mean of counts. Standard errors of "wrong" are at most .011.

Run: python benchmarks/claim_rates.py [--out benchmarks/results/claim_rates.md]
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from machine import describe_machine, out_of, publish
from numpy.typing import NDArray

from vlscore.claims import ImageEvidence, Probes, verdicts_at, what_images_say
from vlscore.stats import TextTable, markdown, number

Array = NDArray[np.float64]
RATES = (0.05, 0.1, 0.2)
AREAS = (0.7, 0.8, 0.85, 0.9, 0.95, 0.98)
TABLE_AREAS = (0.8, 0.9, 0.95)
CORRELATIONS = (0.0, 0.3, 0.5, 0.8)
REPEATS, POWER_REPEATS = 2000, 200
FREQUENCIES = np.tile([0.02, 0.05, 0.1, 0.2, 0.4], 12)
PATIENTS, IMAGES, COMMON = 300, 100, 0.3
SIDED, SIDED_PATIENTS = np.full(10, 0.4), 1000
FEW, FEW_PATIENTS = np.full(4, 0.4), 60
GENERATOR_AREA = 0.8


class Claims(NamedTuple):
    """Claims on images: (n,) number of the finding's column, score, family, and what is true.

    Attributes:
        rows, columns: (n,) of the scores.
        scores: (images, k).
        stated: (n,) False for a denial.
        is_true: (n,) whether the claim is true.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    scores: Array
    stated: NDArray[np.bool_]
    is_true: NDArray[np.bool_]


class Total(NamedTuple):
    """One printed total of one repetition: decided, wrong among them, and expected wrong."""

    decided: int
    wrong: int
    expected: float


Totals = dict[tuple[str, str, float], list[Total]]


def main() -> None:
    began = time.perf_counter()
    out = out_of(str(__doc__))
    totals = {area: of_encoder(area, REPEATS) for area in TABLE_AREAS}
    tables = [rates_table(totals), shared_table(totals), power_table()]
    seconds = f"{time.perf_counter() - began:.0f} seconds on one core."
    parts = ["# The rate of verdicts on claims", describe_machine(), seconds, protocol()]
    publish("\n\n".join([*parts, markdown(tables)]), out)


def protocol() -> str:
    return str(__doc__).split("\n\nRun:")[0]


def distance(area: float) -> float:
    """Return the distance of two normal densities of deviation 1 whose ROC curve has this area."""
    return float(np.sqrt(2) * NormalDist().inv_cdf(area))


def noise(rng: np.random.Generator, images: int, findings: int) -> Array:
    """Return normal deviations (images, findings), of which a part is common to an image."""
    common = rng.standard_normal((images, 1))
    return np.sqrt(COMMON) * common + np.sqrt(1 - COMMON) * rng.standard_normal((images, findings))


def evidence_of(
    rng: np.random.Generator,
    apart: float | Array,
    patients: int,
    frequencies: Array,
    sides: bool = False,
) -> ImageEvidence:
    """Return evidence whose score of an image is its vector: calibrated on new patients.

    Args:
        apart: distance of scores with and without a finding; (k,) or one for all.
        sides: whether the findings are followed by "left" of each, known where the finding is.
    """
    k = len(frequencies)
    truth = (rng.random((patients, k)) < frequencies).astype(float)
    # A finding without a case has no evidence in the library; one case is put in.
    truth[0] = 1
    scores = noise(rng, patients, k) + apart * truth
    names = [f"finding {column}" for column in range(k)]
    if sides:
        left = (rng.random((patients, k)) < 0.5).astype(float)
        left[0], left[1] = 1, 0
        truth[1] = 1
        side = noise(rng, patients, k) + apart / 2 * (2 * left - 1) * truth
        scores = np.concatenate([scores, side], axis=1)
        truth = np.concatenate([truth, np.where(truth == 1, left, np.nan)], axis=1)
        names += [f"finding {column}, left" for column in range(k)]
    count = len(names)
    ones, zeros = np.ones(count), np.zeros(count)
    square = np.zeros((count, count))
    probes = Probes(zeros, ones, np.eye(count), zeros, square, zeros, ones, zeros)
    return ImageEvidence(tuple(names), probes, scores, truth, "", (truth == 1).sum(0).astype(float))


def of_counts(
    rng: np.random.Generator, apart: float | Array, counts: Sequence[int], share: float
) -> Claims:
    """Return statements: so many of each finding, on different images, of which a share is true."""
    images = max(max(counts), len(counts))
    columns = np.repeat(np.arange(len(counts)), counts)
    rows = np.concatenate([rng.permutation(images)[:count] for count in counts])
    is_true = rng.random(len(rows)) < share
    there = np.zeros((images, len(counts)))
    there[rows, columns] = is_true
    scores = noise(rng, images, len(counts)) + apart * there
    return Claims(rows, columns, scores, np.ones(len(rows), bool), is_true)


def of_sides(rng: np.random.Generator, apart: float, share: float) -> Claims:
    """Return statements that a finding is on the left: of a share of them it is there."""
    k, count = len(SIDED), 25
    there = rng.random((count, k)) < share
    left = rng.random((count, k)) < 0.5
    whole = noise(rng, count, k) + apart * there
    side = noise(rng, count, k) + apart / 2 * np.where(left, 1, -1) * there
    rows, columns = np.divmod(np.arange(count * k), k)
    is_true = (there & left)[rows, columns]
    scores = np.concatenate([whole, side], axis=1)
    return Claims(rows, columns + k, scores, np.ones(len(rows), bool), is_true)


def of_generator(rng: np.random.Generator, apart: float, correlation: float) -> Claims:
    """Return what a generator states and denies that shares errors with the encoder."""
    k = len(FREQUENCIES)
    there = rng.random((IMAGES, k)) < FREQUENCIES
    errors = noise(rng, IMAGES, k)
    own = correlation * errors + np.sqrt(1 - correlation**2) * noise(rng, IMAGES, k)
    looks = own + distance(GENERATOR_AREA) * there
    # 0 for the image on which a finding looks most likely.
    places = np.argsort(np.argsort(-looks, axis=0), axis=0)
    stated = places < np.rint(IMAGES * FREQUENCIES)
    denied = ~stated & (rng.random(stated.shape) < 0.25)
    rows, columns = np.nonzero(stated | denied)
    states = stated[rows, columns]
    scores = errors + apart * there
    return Claims(rows, columns, scores, states, there[rows, columns] == states)


def judge(totals: Totals, name: str, evidence: ImageEvidence, claims: Claims) -> None:
    """Add the printed totals of the claims at each rate."""
    families = claims.stated.tolist()
    said = what_images_say(evidence, claims.scores, claims.rows, claims.columns, claims.stated)
    for rate in RATES:
        verdicts = verdicts_at(said, families, rate)
        for is_statement, kind in ((True, "stated"), (False, "denied")):
            for is_support, verdict in ((True, "supported"), (False, "contradicted")):
                is_decided = (verdicts == verdict) & (claims.stated == is_statement)
                wrong = is_decided & (claims.is_true != is_support)
                likely = said.probability[is_decided]
                mean = float(likely.mean()) if len(likely) else float("nan")
                expected = 1 - mean if is_support else mean
                total = Total(int(is_decided.sum()), int(wrong.sum()), expected)
                totals[name, f"{kind}, {verdict}", rate].append(total)


GENERATOR_COUNTS = (*np.full(49, 1), *np.rint(460 * np.arange(11, 0, -1) / 66).astype(int))


def of_encoder(area: float, repeats: int) -> Totals:
    """Return the totals of all settings for an encoder with this area under the curve."""
    totals: Totals = defaultdict(list)
    rng = np.random.default_rng(round(1000 * area))
    apart, k = distance(area), len(FREQUENCIES)
    half, few = apart * (np.arange(20) % 2), apart * (np.arange(4) % 2)
    for _ in range(repeats):
        evidence = evidence_of(rng, apart, PATIENTS, FREQUENCIES)
        for share in (0.1, 0.5):
            claims = of_counts(rng, apart, [1] * k, share)
            judge(totals, f"once, {share:g} true", evidence, claims)
            claims = of_counts(rng, apart, [25] * 20 + [0] * 40, share)
            judge(totals, f"often, {share:g} true", evidence, claims)
        claims = of_counts(rng, apart, GENERATOR_COUNTS, 0.35)
        judge(totals, "generator", evidence, claims)
        for correlation in CORRELATIONS:
            judge(totals, f"{correlation:g}", evidence, of_generator(rng, apart, correlation))
        read = evidence_of(rng, half, PATIENTS, FREQUENCIES[:20])
        judge(totals, "half read", read, of_counts(rng, half, [25] * 20, 0.5))
        read = evidence_of(rng, few, FEW_PATIENTS, FEW)
        judge(totals, "small", read, of_counts(rng, few, [15] * 4, 0.5))
        sided = evidence_of(rng, apart, SIDED_PATIENTS, SIDED, sides=True)
        judge(totals, "sides", sided, of_sides(rng, apart, 0.9))
    return totals


def cells_of(each: Sequence[Total]) -> tuple[str, ...]:
    """Return wrong, pooled, expected and decided of one printed total."""
    decided, wrong, expected = np.array(each).T
    shares = wrong / np.maximum(decided, 1)
    any_decided = decided.sum() > 0
    return (
        number(float(shares.mean()), 3),
        number(float(wrong.sum() / decided.sum()), 3) if any_decided else "-",
        number(float(np.nanmean(expected)), 3) if any_decided else "-",
        number(float(decided.mean()), 1),
    )


CELLS = ("wrong", "pooled", "expected", "decided")


def rates_table(totals: dict[float, Totals]) -> TextTable:
    names = ("once, 0.1 true", "once, 0.5 true", "generator", "often, 0.1 true", "often, 0.5 true")
    rows = [
        (name, f"{area:g}", f"{rate:g}", *cells_of(totals[area][name, "stated, supported", rate]))
        for name in (*names, "half read", "small", "sides")
        for area in TABLE_AREAS
        for rate in RATES
    ]
    return TextTable("Statements: supported", ("statements", "AUC", "rate", *CELLS), tuple(rows))


def shared_table(totals: dict[float, Totals]) -> TextTable:
    """Return the share wrong of a generator that shares errors with the encoder."""
    kinds = [f"{k}, {v}" for k in ("stated", "denied") for v in ("supported", "contradicted")]
    rows = []
    for area in TABLE_AREAS:
        for correlation in CORRELATIONS:
            for kind in kinds:
                cells = [cells_of(totals[area][f"{correlation:g}", kind, rate]) for rate in RATES]
                shown = [f"{wrong} ({decided})" for wrong, _, _, decided in cells]
                rows.append((f"{area:g}", f"{correlation:g}", kind, *shown))
    columns = ("AUC", "errors correlate by", "total", *(f"wrong at {rate:g}" for rate in RATES))
    caption = "In brackets: claims decided."
    return TextTable("A generator that sees the image", columns, tuple(rows), caption)


def power_table() -> TextTable:
    return TextTable(
        "How good an encoder must be: share of the true statements that are supported",
        ("AUC", "patients", *(f"rate {rate:g}" for rate in RATES)),
        tuple(power_rows()),
        f'Setting "seen" without shared errors, {POWER_REPEATS} repetitions.',
    )


def power_rows() -> Iterator[tuple[str, ...]]:
    for area in AREAS:
        for patients in (300, 1000):
            rng, totals, true = np.random.default_rng(patients), defaultdict(list), 0
            for _ in range(POWER_REPEATS):
                claims = of_generator(rng, distance(area), 0.0)
                true += int((claims.stated & claims.is_true).sum())
                evidence = evidence_of(rng, distance(area), patients, FREQUENCIES)
                judge(totals, "seen", evidence, claims)
            shares = []
            for rate in RATES:
                decided, wrong, _ = np.array(totals["seen", "stated, supported", rate]).T
                shares.append(number(float((decided - wrong).sum() / true), 3))
            yield (f"{area:g}", str(patients), *shares)


if __name__ == "__main__":
    main()
