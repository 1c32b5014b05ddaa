"""The judge asks the image: what each error weighs, by hand and by Bayes' rule."""

import numpy as np
import pytest

from vlscore.claims import Cases, claims_of, fit_evidence
from vlscore.core import Signature
from vlscore.errors import InvalidSetting
from vlscore.metrics import EmbeddingTriples, RuleJudge, compute, find_metric, rating
from vlscore.metrics.judge.image_answers import (
    ask_image_judge,
    candidate_is_right,
    findings_seen,
    rating_with_image,
)

CERTAIN = {"pneumothorax": (np.log(81), 0.01, 1.0)}
DENIED = {"pneumothorax": (-np.log(81), 1.0, 0.01)}
UNKNOWN = {"pneumothorax": (0.0, 0.5, 0.5)}


def answers_of(candidate, reference, seen):
    judgement = RuleJudge().judge(candidate, reference)
    found = ask_image_judge(
        judgement, claims_of(candidate), claims_of(reference), seen, trust=0.9, level=0.1
    )
    return judgement, found


@pytest.mark.parametrize(
    ("seen", "side", "probability"),
    [
        # Odds of the reference 9, of the image 1 / 81: 9 / 81 = 1 / 9.
        (CERTAIN, "candidate", 0.1),
        (DENIED, "reference", 9 * 81 / (9 * 81 + 1)),
        (UNKNOWN, "cannot tell", 0.9),
        ({}, "cannot tell", 0.9),
    ],
)
def test_a_false_finding(seen, side, probability):
    judgement, (only,) = answers_of("Large right pneumothorax.", "Clear lungs.", seen)
    assert [str(e.category) for e in judgement.errors] == ["false_finding"]
    assert only.supports == side
    assert only.reference_is_right == pytest.approx(probability)


@pytest.mark.parametrize("candidate", ["Normal heart size.", "No pneumothorax. Normal heart size."])
def test_an_omission_is_weighed_the_other_way(candidate):
    reference = "Large right pneumothorax. Normal heart size."
    for seen, side in ((CERTAIN, "reference"), (DENIED, "candidate"), (UNKNOWN, "cannot tell")):
        judgement, (only,) = answers_of(candidate, reference, seen)
        assert [str(e.category) for e in judgement.errors] == ["omitted_finding"]
        assert only.supports == side
        value = rating_with_image(judgement, [only], 0.9)
        plain = rating(judgement)
        assert {"reference": value < plain, "candidate": value > plain}.get(
            side, value == pytest.approx(plain)
        )


def test_a_wrong_side_is_weighed_by_the_evidence_for_sides():
    seen = {
        "pneumothorax": (5.0, 0.01, 1.0),
        "pneumothorax, left": (-2.0, 1.0, 0.02),
        "pneumothorax, right": (1.0, 0.3, 0.6),
    }
    _, (only,) = answers_of("Large left pneumothorax.", "Large right pneumothorax.", seen)
    # For the candidate's side -2, for the reference's +1: together -3 for the candidate.
    assert only.reference_is_right == pytest.approx(1 / (1 + np.exp(-np.log(9) - 3)))
    assert (only.supports, only.finding) == ("reference", "pneumothorax, left")


def test_an_error_of_severity_is_not_the_images():
    _, found = answers_of("Large right pneumothorax.", "Tiny right pneumothorax.", CERTAIN)
    assert found
    assert {each.supports for each in found} == {"cannot tell"}


@pytest.mark.parametrize(
    ("candidate", "reference", "categories"),
    [
        (
            "The left upper lobe shows minimal atelectasis.",
            "Extensive atelectasis of the right base.",
            ["wrong_location", "wrong_severity"],
        ),
        (
            "Increased left atelectasis.",
            "Unchanged right atelectasis.",
            ["false_comparison", "wrong_location"],
        ),
    ],
)
def test_evidence_of_a_side_counts_once(candidate, reference, categories):
    """The words of a wrong side may have a wrong severity or change, which no probe was fitted to:
    by Bayes' rule their odds stay as they were."""
    seen = {"atelectasis, left": (-2.0, 1.0, 0.02), "atelectasis, right": (1.0, 0.3, 0.6)}
    judgement, found = answers_of(candidate, reference, seen)
    assert sorted(str(e.category) for e in judgement.errors) == sorted(categories)
    by_category = {str(e.category): t for e, t in zip(judgement.errors, found, strict=True)}
    side = by_category.pop("wrong_location")
    assert side.reference_is_right == pytest.approx(1 / (1 + np.exp(-np.log(9) - 3)))
    (other,) = by_category.values()
    assert other == ("cannot tell", 0.9, None)


def test_an_image_supports_nobody_against_its_own_evidence_or_by_chance():
    """A p value may be small where the likelihood ratio is for the other report."""
    rare = {"pneumothorax": (-1.0, 0.08, 0.4)}
    _, (only,) = answers_of("Large right pneumothorax.", "Clear lungs.", rare)
    assert only.supports == "cannot tell"
    assert only.reference_is_right > 0.9
    rng = np.random.default_rng(0)
    there = (rng.random(400) < 0.4).astype(float)
    vectors = rng.normal(size=(400, 4))
    vectors[:, 0] += 5 * there
    labels = {"pneumothorax": there, "edema": (rng.random(400) < 0.4).astype(float)}
    cases = Cases(vectors, labels, [str(k) for k in range(400)])
    seen = findings_seen(fit_evidence(*cases.split(0.5, 0)), rng.normal(size=(200, 4)) * 3)
    assert {each["edema"][1:] for each in seen} == {(1.0, 1.0)}
    assert len({each["pneumothorax"][1:] for each in seen}) > 5


def test_the_image_alone_multiplies_the_evidence_for_all_that_differs():
    seen = {
        "pneumothorax": (np.log(8), 0.01, 1.0),
        "cardiomegaly": (-np.log(2), 0.6, 0.2),
        "pleural effusion": (9.0, 0.01, 1.0),
        "pleural effusion, left": (np.log(3), 0.1, 0.9),
    }

    def odds(candidate, reference, trust=0.5):
        share = candidate_is_right(claims_of(candidate), claims_of(reference), seen, trust)
        return share / (1 - share)

    # Both state the effusion; the candidate a pneumothorax as well, the reference cardiomegaly.
    candidate = "Pneumothorax. Pleural effusion."
    reference = "Pleural effusion. Cardiomegaly."
    assert odds(candidate, reference) == pytest.approx(8 * 2)
    assert odds(reference, candidate) == pytest.approx(1 / 16)
    assert odds(candidate, reference, 0.8) == pytest.approx(16 / 4)
    # A side alone; and what one denies and the other leaves out is no difference.
    assert odds("Left pleural effusion.", "Pleural effusion.") == pytest.approx(3)
    assert odds("No pneumothorax. Fracture.", "Fracture. No pleural effusion.") == 1


@pytest.fixture
def evidence(tmp_path):
    """Evidence of images whose first number shows pneumothorax."""
    rng = np.random.default_rng(0)
    there = (rng.random(400) < 0.4).astype(float)
    vectors = rng.normal(size=(400, 4))
    vectors[:, 0] += 5 * there
    cases = Cases(vectors, {"pneumothorax": there}, [str(k) for k in range(400)])
    path = tmp_path / "evidence.npz"
    fit_evidence(*cases.split(0.5, 0), signature="embeddings|enc:x").save(path)
    return path


def test_the_metric_prefers_what_the_image_shows(evidence):
    images = np.array([[5.0, 0, 0, 0], [0.0, 0, 0, 0]])
    same = np.zeros((2, 4))
    triples = EmbeddingTriples(images, same, same, Signature.parse("embeddings|enc:x"))
    name = f"judge-image(evidence={evidence})"
    found = compute(
        ["judge", name],
        ["Large right pneumothorax."] * 2,
        ["No acute disease."] * 2,
        embeddings=triples,
    )
    plain, asked = found["judge"], found[name]
    assert plain[0] == plain[1]
    assert asked[0] > plain[0] > asked[1]
    image = str(find_metric(f"judge-image(evidence={evidence},score=image)"))
    alone = compute(
        [image], ["Large right pneumothorax."] * 2, ["No acute disease."] * 2, embeddings=triples
    )[image]
    assert alone[0] > 0.9 > 0.1 > alone[1]
    assert found[f"{name}.candidate"].tolist() == [1, 0]
    assert found[f"{name}.reference"].tolist() == [0, 1]


def test_evidence_of_another_encoder_is_refused(evidence):
    triples = EmbeddingTriples(*np.zeros((3, 1, 4)), "enc:y")
    with pytest.raises(InvalidSetting, match="was fitted to embeddings of"):
        compute([f"judge-image(evidence={evidence})"], ["a"], ["b"], embeddings=triples)
    assert "needs evidence" in find_metric("judge-image").missing()
