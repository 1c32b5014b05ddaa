"""The rate that is printed is the rate of what is printed: simulated scores with known truth.

The totals of `verdicts_of` are counted as they are printed: all statements, or all denials, of one
report role. The mean share of wrong ones over repetitions, 0 where none is decided, is the false
discovery rate; it may exceed the rate by three standard errors.
"""

import numpy as np
import pytest

from vlscore.claims import (
    CONTRADICTED,
    SUPPORTED,
    Cases,
    Claim,
    ClaimOfImage,
    ImageEvidence,
    Probes,
    expected_wrong,
    fit_evidence,
    verdicts_of,
)
from vlscore.findings import Span

NOWHERE = Span(0, 1)
RATES = (0.05, 0.1, 0.2)


def scored(rng, count, apart, frequency, findings=16):
    """Evidence of images whose vector is the scores, with errors that an image has in common."""
    truth = (rng.random((count, findings)) < frequency).astype(float)
    truth[0], truth[1] = 1, 0
    scores = apart * truth + noise(rng, count, findings)
    zeros, ones = np.zeros(findings), np.ones(findings)
    probes = Probes(
        zeros, ones, np.eye(findings), zeros, np.zeros((findings,) * 2), zeros, ones, zeros
    )
    names = tuple(f"finding {k}" for k in range(findings))
    return ImageEvidence(names, probes, scores, truth, "", truth.sum(0))


def noise(rng, count, findings):
    return np.sqrt(0.3) * rng.normal(size=(count, 1)) + np.sqrt(0.7) * rng.normal(
        size=(count, findings)
    )


def claimed(rng, apart, often, share_true, is_statement=True, findings=16):
    """Vectors of images, claims about each finding on so many of them, and what is true."""
    images = max(often, findings)
    there = np.zeros((images, findings))
    claims, right = [], []
    for k in range(findings):
        for image in rng.permutation(images)[:often]:
            is_true = rng.random() < share_true
            there[image, k] = is_true == is_statement
            claim = Claim(f"finding {k}", is_statement, NOWHERE)
            claims.append(ClaimOfImage(int(image), "candidate", claim))
            right.append(is_true)
    return apart * there + noise(rng, images, findings), claims, np.array(right)


@pytest.mark.parametrize(
    ("often", "share_true", "is_statement", "apart"),
    [
        (1, 0.1, True, 2.3),
        (1, 0.5, True, 2.3),
        (12, 0.1, True, 2.3),
        (12, 0.5, True, 2.3),
        (12, 0.5, False, 2.3),
        # Scores at chance: nothing can be known.
        (12, 0.5, True, 0.0),
    ],
)
def test_the_rate_is_that_of_each_printed_total(often, share_true, is_statement, apart):
    rng, repeats = np.random.default_rng(often), 80
    shares, decided = {}, {}
    for _ in range(repeats):
        evidence = scored(rng, 200, apart, np.tile([0.05, 0.1, 0.2, 0.4], 4))
        vectors, claims, right = claimed(rng, apart, often, share_true, is_statement)
        for rate in RATES:
            rows = verdicts_of(evidence, vectors, claims, rate=rate)
            for verdict, is_wrong in ((SUPPORTED, ~right), (CONTRADICTED, right)):
                these = (rows.verdict == verdict).to_numpy()
                shares.setdefault((rate, verdict), []).append(
                    is_wrong[these].mean() if these.any() else 0.0
                )
                decided.setdefault((rate, verdict), []).append(these.sum())
                assert (expected_wrong(rows, verdict) or 0.0) <= rate
                assert (
                    (rows.probability[these] > 0.5)
                    if verdict == SUPPORTED
                    else (rows.probability[these] < 0.5)
                ).all()
    for (rate, verdict), each in shares.items():
        error = np.std(each) / np.sqrt(repeats)
        assert np.mean(each) <= rate + 3 * error, (rate, verdict)
    if apart and share_true == 0.5:
        assert np.mean(decided[0.2, SUPPORTED]) > 1
    if not apart:
        assert np.mean(decided[0.2, SUPPORTED]) < 0.5


def sided(rng, count):
    """Images with an effusion in .6, on one side each; one number shows it, another the side."""
    there = rng.random(count) < 0.6
    left = rng.random(count) < 0.5
    vectors = rng.normal(size=(count, 4))
    vectors[:, 0] += 3 * there
    vectors[:, 1] += there * np.where(left, 1.2, -1.2)
    labels = {
        "pleural effusion": there.astype(float),
        "pleural effusion, left": (there & left).astype(float),
        "pleural effusion, right": (there & ~left).astype(float),
    }
    return Cases(vectors, labels, [f"{rng.integers(1 << 60)}" for _ in range(count)])


def test_a_wrong_side_of_a_finding_that_is_there_is_no_easier_than_stated():
    """False sides are mostly sides of findings that are there: the calibration is among those."""
    rng, repeats, shares, decided = np.random.default_rng(0), 60, {}, {}
    for _ in range(repeats):
        evidence = fit_evidence(sided(rng, 400), sided(rng, 500))
        test = sided(rng, 200)
        claims, right = [], []
        for image in range(200):
            for side in ("left", "right"):
                # A statement about a side in each image: also in those without an effusion.
                if side == "left" or rng.random() < 0.5:
                    name = f"pleural effusion, {side}"
                    claims.append(ClaimOfImage(image, "candidate", Claim(name, True, NOWHERE)))
                    right.append(test.labels[name][image] == 1)
        right = np.array(right)
        for rate in RATES:
            rows = verdicts_of(evidence, test.vectors, claims, rate=rate)
            for verdict, is_wrong in ((SUPPORTED, ~right), (CONTRADICTED, right)):
                these = (rows.verdict == verdict).to_numpy()
                key = rate, verdict
                shares.setdefault(key, []).append(is_wrong[these].mean() if these.any() else 0.0)
                decided.setdefault(key, []).append(these.sum())
    for (rate, verdict), each in shares.items():
        assert np.mean(each) <= rate + 3 * np.std(each) / np.sqrt(repeats), (rate, verdict)
    assert np.mean(decided[0.2, SUPPORTED]) > 10
    assert np.mean(decided[0.2, CONTRADICTED]) > 10


def test_a_part_is_calibrated_among_images_that_have_the_finding():
    cases = sided(np.random.default_rng(1), 800)
    evidence = fit_evidence(*cases.split(0.5, 0))
    whole, part = (evidence.column[name] for name in ("pleural effusion", "pleural effusion, left"))
    assert np.isnan(evidence.truth[evidence.truth[:, whole] == 0, part]).all()
    assert not np.isnan(evidence.truth[evidence.truth[:, whole] == 1, part]).any()
    # Each is there with the finding alone: its p value is no smaller, its probability no larger.
    scores = evidence.probes(cases.vectors)
    present, _ = evidence.p_values(scores)
    assert (present[:, part] >= present[:, whole]).all()
    chance = evidence.probabilities(scores)
    assert (chance[:, part] <= chance[:, whole]).all()
    with_it = cases.labels["pleural effusion, left"] == 1
    assert chance[with_it, part].mean() > 2 * chance[~with_it, part].mean()
