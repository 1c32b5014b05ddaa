"""Claims of phantoms' candidates with planted errors, by the bundled encoder; truth is the scene.

Phantoms show no change over time, so claims of change are left out.
"""

import numpy as np
import pytest

from vlscore.claims import (
    CANNOT_TELL,
    SUPPORTED,
    Cases,
    ClaimOfImage,
    claims_of,
    fit_evidence,
    verdicts_of,
)
from vlscore.data import render, sample_studies
from vlscore.embedding import StudyEmbedder, StudyViews

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::vlscore.errors.DemonstrationEncoderWarning"),
]
# Kinds of phantom findings that extraction calls by another name.
NAMES = {"effusion": "pleural effusion"}
KINDS = ("effusion", "pneumothorax", "edema", "nodule", "cardiomegaly", "fracture", "pacemaker")
COUNT, RATE = 900, 0.1


def labels_of_scene(study):
    """Findings of the scene, with their sides."""
    found = set()
    for finding in study.scene.findings:
        name = NAMES.get(finding.kind, finding.kind)
        sides = ("left", "right") if finding.side == "bilateral" else (finding.side,)
        found |= {name, *(f"{name}, {side}" for side in sides if side)}
    return found


@pytest.fixture(scope="module")
def phantoms():
    studies = list(sample_studies(23, COUNT))
    embedder = StudyEmbedder("phantom-judging", device="cpu", cache=False)
    vectors = []
    for first in range(0, COUNT, 64):
        shown = [StudyViews([render(s.scene, 128) / 4095]) for s in studies[first : first + 64]]
        vectors.append(embedder.embed_studies(shown).vectors.double().numpy())
    return studies, np.concatenate(vectors)


def test_the_rate_is_held_with_power(phantoms):
    studies, vectors = phantoms
    truth = [labels_of_scene(study) for study in studies]
    names = [NAMES.get(kind, kind) for kind in KINDS]
    names += [f"{name}, {side}" for name in names for side in ("left", "right")]
    columns = {name: np.array([name in each for each in truth], float) for name in names}
    columns = {name: each for name, each in columns.items() if each.any()}
    cases = Cases(vectors, columns, [str(k) for k in range(COUNT)])
    shares, decided = [], {}
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(COUNT)
        fit, calibrate, test = np.array_split(order, 3)
        evidence = fit_evidence(cases.take(fit), cases.take(calibrate), seed=seed)
        claims = [
            ClaimOfImage(image, "candidate", claim)
            for image, k in enumerate(test)
            for claim in claims_of(studies[k].candidate)
            if claim.finding in columns
        ]
        right = np.array(
            [(c.claim.finding in truth[test[c.image]]) == c.claim.stated for c in claims]
        )
        rows = verdicts_of(evidence, vectors[test], claims, rate=RATE)
        told = (rows.verdict != CANNOT_TELL).to_numpy()
        wrong = np.where(rows.verdict == SUPPORTED, ~right, right)[told]
        shares.append(wrong.mean())
        for finding, own in rows.groupby("finding"):
            decided.setdefault(finding, []).append((own.verdict != CANNOT_TELL).mean())
    assert np.mean(shares) <= RATE
    power = {finding: np.mean(each) for finding, each in decided.items()}
    for finding in ("pleural effusion", "cardiomegaly", "pneumothorax"):
        assert power[finding] > 0.7, power
    # One family of all statements decides fewer of a rare finding than a family of its own would.
    assert power["pacemaker"] > 0.3, power
    assert power["nodule"] < power["cardiomegaly"]
