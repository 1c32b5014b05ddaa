"""Claims against simulated images whose findings are known: the stated rate is held, with power."""

import numpy as np
import pytest
import torch

from vlscore.claims import (
    CANNOT_TELL,
    CONTRADICTED,
    SUPPORTED,
    Cases,
    Claim,
    ClaimOfImage,
    conformal_p_values,
    decided,
    fit_evidence,
    fit_probes,
    likelihood_ratios,
    read_evidence,
    verdicts_of,
)
from vlscore.errors import InvalidSetting
from vlscore.findings import Span

# Images show the first well, the second faintly, and the third not at all.
FINDINGS = {"cardiomegaly": 4.0, "edema": 1.5, "fracture": 0.0}
NOWHERE = Span(0, 1)


def images(seed, count, per_patient=1, prevalence=0.3):
    """Vectors of 12 numbers: a finding moves one of them, by so many deviations."""
    rng = np.random.default_rng(seed)
    truth = {name: (rng.random(count) < prevalence).astype(float) for name in FINDINGS}
    vectors = rng.normal(size=(count, 12))
    for axis, (name, strength) in enumerate(FINDINGS.items()):
        vectors[:, axis] += strength * truth[name]
    groups = [f"{seed}-{k // per_patient}" for k in range(count)]
    return Cases(vectors, truth, groups)


def claims_about(cases, seed):
    """Claims about each finding of each image, of which about a third are false."""
    rng = np.random.default_rng(seed)
    found, right = [], []
    for image in range(len(cases.groups)):
        for name in FINDINGS:
            is_true = rng.random() > 0.33
            stated = bool(cases.labels[name][image]) == is_true
            found.append(ClaimOfImage(image, "candidate", Claim(name, stated, NOWHERE)))
            right.append(is_true)
    return found, np.array(right)


def test_p_values_by_hand():
    assert conformal_p_values([9, 2, 0, np.nan], [1, 2, 3]).tolist() == [0.25, 0.75, 1.0, 1.0]
    assert conformal_p_values([1.0], []).tolist() == [1.0]


def test_p_values_of_the_null_are_no_smaller_than_uniform():
    rng = np.random.default_rng(0)
    p = np.concatenate([conformal_p_values(rng.random(1), rng.random(19)) for _ in range(4000)])
    for level in (0.05, 0.1, 0.5):
        # Exact: with 19 cases and distinct scores, P(p <= level) is level.
        assert abs((p <= level + 1e-9).mean() - level) < 4 * np.sqrt(level * (1 - level) / 4000)


def test_each_family_is_decided_by_itself():
    p, families = [0.01, 0.04, 0.04, 0.9], ["a", "b", "b", "b"]
    # By hand: b has three claims, and 3 / 2 * 0.04 = 0.06.
    assert decided(p, families, 0.06).tolist() == [True, True, True, False]
    assert decided(p, families, 0.05).tolist() == [True, False, False, False]
    with pytest.raises(InvalidSetting, match="between 0 and 1"):
        decided(p, families, 1.0)


@pytest.mark.parametrize("rate", [0.1, 0.2])
def test_the_rate_is_held_over_repeated_splits(rate):
    """The mean share of wrong ones among the decided, of each family, is at most the rate."""
    wrong = {}
    for seed in range(25):
        cases = images(seed, 900, per_patient=2)
        evidence = fit_evidence(*cases.split(0.5, seed), seed=seed)
        test = images(1000 + seed, 150)
        claims, right = claims_about(test, seed)
        found = verdicts_of(evidence, test.vectors, claims, rate=rate)
        is_wrong = np.where(found.verdict == SUPPORTED, ~right, right)
        for verdict in (SUPPORTED, CONTRADICTED):
            for (finding, claim), rows in found.groupby(["finding", "claim"]).groups.items():
                these = [k for k in rows if found.verdict[k] == verdict]
                key = finding, claim, verdict
                wrong.setdefault(key, []).append(is_wrong[these].mean() if these else 0.0)
    for key, shares in wrong.items():
        error = np.std(shares) / np.sqrt(len(shares))
        assert np.mean(shares) <= rate + 3 * error, key
    assert len(wrong) == 12


def test_power_follows_what_the_image_shows():
    cases = images(1, 1200)
    evidence = fit_evidence(*cases.split(0.5, 0))
    test = images(2, 300)
    claims, _ = claims_about(test, 0)
    found = verdicts_of(evidence, test.vectors, claims, rate=0.1)
    share = (found.verdict != CANNOT_TELL).groupby(found.finding).mean()
    assert share["cardiomegaly"] > 0.8 > share["edema"] > 0.05 > share["fracture"]
    probable = found.probability.groupby([found.finding, found.verdict]).mean()
    assert probable["cardiomegaly", SUPPORTED] > 0.9 > 0.1 > probable["cardiomegaly", CONTRADICTED]


def test_a_finding_is_not_judged_by_its_group():
    """Nodules may be the faint ones among lung lesions: the group's p values are not theirs."""
    evidence = fit_evidence(*images(1, 1200).split(0.5, 0))
    vectors = images(2, 300).vectors
    nodule = Claim("nodule", True, NOWHERE, group="cardiomegaly")
    claims = [ClaimOfImage(image, "candidate", nodule) for image in range(300)]
    found = verdicts_of(evidence, vectors, claims, rate=0.1)
    assert set(found.verdict) == {CANNOT_TELL}
    assert found.probability.isna().all()


def test_a_change_needs_an_earlier_image():
    cases = images(1, 1200)
    evidence = fit_evidence(*cases.split(0.5, 0))
    claim = Claim("cardiomegaly", True, NOWHERE, needs_prior=True)
    claims = [ClaimOfImage(image, "candidate", claim) for image in range(200)]
    vectors = images(2, 200).vectors
    alone = verdicts_of(evidence, vectors, claims, rate=0.1)
    assert set(alone.verdict) == {CANNOT_TELL}
    assert not alone.has_evidence.any()
    both = verdicts_of(evidence, vectors, claims, rate=0.1, has_prior=[True] * 200)
    assert {SUPPORTED, CONTRADICTED} <= set(both.verdict)


def test_no_patient_is_fitted_and_calibrated():
    cases = images(1, 100, per_patient=4)
    fitting, calibrating = cases.split(0.5, 0)
    assert not set(fitting.groups) & set(calibrating.groups)
    assert len(fitting.groups) + len(calibrating.groups) == 100
    one = calibrating.one_each(0)
    assert sorted(one.groups) == sorted(set(calibrating.groups))
    with pytest.raises(InvalidSetting, match="in the table to fit and"):
        fit_evidence(cases, calibrating)
    few = images(1, 8)
    with pytest.raises(InvalidSetting, match="no finding is absent in 5 of 8 images"):
        fit_evidence(few, images(2, 8))


def test_evidence_is_written_and_read(tmp_path):
    cases = images(1, 400)
    evidence = fit_evidence(*cases.split(0.5, 0), signature="embeddings|enc:x")
    evidence.save(tmp_path / "evidence.npz")
    again = read_evidence(tmp_path / "evidence.npz")
    test = images(2, 50)
    claims, _ = claims_about(test, 0)
    first, second = (
        verdicts_of(each, test.vectors, claims, rate=0.1) for each in (evidence, again)
    )
    assert first.equals(second)
    assert again.signature == "embeddings|enc:x"
    (tmp_path / "no.npz").write_bytes(b"PK")
    for name in ("no.npz", "absent.npz"):
        with pytest.raises(InvalidSetting, match="is no evidence"):
            read_evidence(tmp_path / name)


def test_likelihood_ratios():
    """Of two normal densities with one deviation: known; with few cases: between own and common."""
    rng = np.random.default_rng(0)
    truth = np.zeros((40_000, 3))
    truth[:9000, 0] = truth[:1, 1] = truth[:9000, 2] = 1
    scores = rng.normal(1.0, 2.0, truth.shape) + 3 * truth
    scores[:9000, 2] -= 6
    slopes, offsets = likelihood_ratios(scores, truth)
    # (x - 1)² / 8 - (x - 4)² / 8 = 0.75 x - 1.875
    assert slopes[0] == pytest.approx(0.75, rel=0.05)
    assert offsets[0] == pytest.approx(-1.875, rel=0.07)
    assert 0 < slopes[1] < 2 * slopes[0]
    # A score that is larger without the finding says nothing.
    assert (slopes[2], offsets[2]) == pytest.approx((0, 0), abs=1e-4)


def test_words_alone_are_evidence_for_a_finding_too_rare_to_fit():
    """Zero-shot: the direction of the finding's words, without any positive case in the fit."""
    cases = images(1, 800)
    fitting, calibrating = cases.split(0.5, 0)
    without = Cases(fitting.vectors, {}, fitting.groups)
    direction = {"cardiomegaly": np.eye(12)[0]}
    evidence = fit_evidence(without, calibrating, directions=direction)
    test = images(2, 300)
    claims = [
        ClaimOfImage(k, "candidate", Claim("cardiomegaly", True, NOWHERE)) for k in range(300)
    ]
    found = verdicts_of(evidence, test.vectors, claims, rate=0.1)
    supported = found.verdict == SUPPORTED
    assert supported.mean() > 0.1
    assert 1 - test.labels["cardiomegaly"][supported].mean() <= 0.2


def test_a_finding_of_a_group_is_drawn_to_the_groups_weights():
    """Three infiltrates, and two hundred lung opacities that look alike."""
    rng = np.random.default_rng(0)
    opacity = (rng.random(1000) < 0.2).astype(float)
    vectors = rng.normal(size=(1000, 8))
    vectors[:, 0] += 2 * opacity
    infiltrate = np.zeros(1000)
    infiltrate[np.flatnonzero(opacity)[:3]] = 1
    labels = np.column_stack([infiltrate, opacity])

    def correlation(**groups):
        scores = fit_probes(vectors, labels, None, 0.3, 3, **groups)(vectors)
        return np.corrcoef(scores[:, 0], vectors[:, 0])[0, 1]

    assert correlation(groups={0: 1}) > 0.95 > correlation()
    # Other opacities are no counter-examples of an infiltrate: they do not count.
    labels[opacity == 1, 0] = np.nan
    labels[np.flatnonzero(infiltrate), 0] = 1
    unknown, counted = (
        fit_probes(vectors, each, None, 0.3, 3, {0: 1})
        for each in (labels, np.column_stack([infiltrate, opacity]))
    )
    assert np.allclose(unknown.weights, counted.weights, atol=1e-6)


def test_the_regression_minimises_its_loss():
    """PyTorch's own loss and gradient at the solution, where the gradient is 0."""
    cases = images(3, 300)
    truth = cases.labels["edema"]
    probes = fit_probes(cases.vectors, truth[:, None], None, 0.1, 5)
    scaled = (cases.vectors - cases.vectors.mean(0)) / cases.vectors.std(0)
    weights = torch.tensor([*probes.weights[:, 0], probes.bias[0]], requires_grad=True)
    odds = torch.from_numpy(scaled) @ weights[:-1] + weights[-1]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(odds, torch.from_numpy(truth))
    (loss + 0.05 * (weights[:-1] ** 2).sum()).backward()
    assert weights.grad.abs().max() < 1e-4
