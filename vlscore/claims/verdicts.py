"""Verdicts of images on claims, at a false discovery rate."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlscore.claims.claim import Claim, claims_of
from vlscore.claims.conformal import check_rate, decided, rows_by_family
from vlscore.claims.evidence import ImageEvidence
from vlscore.claims.probes import Values

if TYPE_CHECKING:
    import pandas

SUPPORTED, CONTRADICTED, CANNOT_TELL = VERDICTS = ("supported", "contradicted", "cannot tell")
#: Probability at which a claim is as likely true as false.
EVEN = 0.5


class ClaimOfImage(NamedTuple):
    """A claim about one image.

    Attributes:
        image: number of the image.
        report: what made the claim ("candidate", "reference").
        claim: the claim.
    """

    image: int
    report: str
    claim: Claim


def claims_of_reports(
    image: int, candidate: str | None, reference: str | None
) -> list[ClaimOfImage]:
    """Return the claims of both reports of a study about its image; None makes no claim."""
    return [
        ClaimOfImage(image, role, claim)
        for role, text in (("candidate", candidate), ("reference", reference))
        for claim in claims_of(text or "")
    ]


def verdicts_of(
    evidence: ImageEvidence,
    vectors: Values,
    claims: Sequence[ClaimOfImage],
    *,
    rate: float,
    has_prior: Sequence[bool] = (),
) -> "pandas.DataFrame":
    """Return the verdict on each claim.

    A claim is *supported* where the image shows what it says at the rate, *contradicted* where it
    shows the opposite, else *cannot tell*; see `verdicts_at`. All statements of a report role are
    one family, and all its denials another: of each of the four totals of a role (statements or
    denials, supported or contradicted), an expected share of at most `rate` is wrong.

    A finding without evidence of its own has no verdict; its group, which is a claim of its own,
    may have one. A claim of change needs an earlier image.

    Args:
        vectors: (n, d) of the images.
        rate: false discovery rate.
        has_prior: (n,) whether an image's vector also shows an earlier image; empty: none does.

    Returns: a row for each claim: image, report, finding, claim ("stated", "denied"), start and
        end of its words, has_evidence, verdict,
        probability that the claim is true (where findings are as frequent as in the calibration
        cases; nan without evidence), p_supported and p_contradicted (nan without evidence).
    Raises: InvalidSetting for a rate outside (0, 1).
    """
    import pandas

    rows = np.array([each.image for each in claims], int)
    stated = np.array([each.claim.stated for each in claims], bool)
    columns = np.array([_column_of(evidence, each, has_prior) for each in claims], int)
    of_images = what_images_say(evidence, evidence.probes(vectors), rows, columns, stated)
    families = [(each.report, each.claim.stated) for each in claims]
    verdict = verdicts_at(of_images, families, rate)
    return pandas.DataFrame(
        {
            "image": rows,
            "report": [each.report for each in claims],
            "finding": [each.claim.finding for each in claims],
            "claim": np.where(stated, "stated", "denied"),
            "start": [each.claim.span.start for each in claims],
            "end": [each.claim.span.end for each in claims],
            "has_evidence": columns >= 0,
            "verdict": verdict,
            "probability": of_images.probability,
            "p_supported": of_images.p_supported,
            "p_contradicted": of_images.p_contradicted,
        }
    )


class ImageProbabilities(NamedTuple):
    """What images say about n claims; nan without evidence.

    Attributes:
        probability: (n,) that the claim is true.
        p_supported, p_contradicted: (n,) conformal p values against a false and a true claim.
        least_supported, least_contradicted: (n,) smallest p values that the calibration can give.
        is_above_chance: (n,) whether the evidence on the finding is better than chance.
    """

    probability: Values
    p_supported: Values
    p_contradicted: Values
    least_supported: Values
    least_contradicted: Values
    is_above_chance: NDArray[np.bool_]


def what_images_say(
    evidence: ImageEvidence,
    scores: Values,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    stated: NDArray[np.bool_],
) -> ImageProbabilities:
    """Return what images say about n claims.

    Args:
        scores: (images, k) of the evidence's probes.
        rows: (n,) image of each claim.
        columns: (n,) number of its finding in the evidence; -1 without evidence.
        stated: (n,) False for a denial.
    """
    known = columns >= 0

    def of_claims(values: Values) -> Values:
        found = np.full(len(rows), np.nan)
        found[known] = values[rows[known], columns[known]]
        return found

    there = of_claims(evidence.probabilities(scores))
    least = [np.broadcast_to(each, scores.shape) for each in evidence.least_p_values]
    present, absent, least_present, least_absent = (
        of_claims(each) for each in (*evidence.p_values(scores), *least)
    )
    above = np.zeros(len(rows), bool)
    above[known] = evidence.is_above_chance[columns[known]]
    return ImageProbabilities(
        np.where(stated, there, 1 - there),
        np.where(stated, present, absent),
        np.where(stated, absent, present),
        np.where(stated, least_present, least_absent),
        np.where(stated, least_absent, least_present),
        above,
    )


def verdicts_at(
    of_images: ImageProbabilities, families: Sequence[Hashable], rate: float
) -> NDArray[np.object_]:
    """Return the verdict (n,) on each of n claims.

    Both verdicts are decided over all claims of a family, by two rules:

    1. Benjamini and Hochberg's procedure, so that an expected share of at most `rate` is wrong,
       whatever share of the claims is true. A claim whose probability is on the other side of 1/2
       counts with the p value 1: a larger p value is valid, too. In no family is a claim whose
       evidence is not better than chance, or whose calibration cases are too few for a p value of
       `rate`: neither could be decided.
    2. Of the claims that are left, the most probable are decided: as many as have a mean
       probability of being wrong of at most `rate`. Then no total has an expected share
       (`expected_wrong`) above the rate.

    Args: families: (n,) family of each claim; claims of one family are printed as one total.
    Raises: InvalidSetting for a rate outside (0, 1).
    """
    check_rate(rate)
    verdict = np.full(len(families), CANNOT_TELL, dtype=object)
    for name, p, least, wrong in (
        (SUPPORTED, of_images.p_supported, of_images.least_supported, 1 - of_images.probability),
        (
            CONTRADICTED,
            of_images.p_contradicted,
            of_images.least_contradicted,
            of_images.probability,
        ),
    ):
        counted = np.where(wrong < EVEN, p, 1.0)
        counted[~((least <= rate) & of_images.is_above_chance)] = np.nan
        chosen = np.flatnonzero(decided(counted, families, rate))
        theirs = [families[int(k)] for k in chosen]
        verdict[chosen[_most_probable(wrong[chosen], theirs, rate)]] = name
    return verdict


def _most_probable(wrong: Values, families: Sequence[Hashable], rate: float) -> NDArray[np.bool_]:
    """Return (n,) the claims of each family that are least likely to be wrong, with a mean
    probability of at most `rate`; claims of one probability are chosen together."""
    found = np.zeros(len(wrong), bool)
    for rows in rows_by_family(families).values():
        in_order = np.sort(wrong[rows])
        means = np.cumsum(in_order) / np.arange(1, len(rows) + 1)
        count = int(np.searchsorted(means, rate, side="right"))
        found[rows] = wrong[rows] < in_order[count] if count < len(rows) else True
    return found


def expected_wrong(rows: "pandas.DataFrame", verdict: str) -> float | None:
    """Return the expected share of wrong ones among the claims with a verdict; None without any.

    It is the mean probability of being wrong. The probability believes no report: it is that of a
    finding as frequent as in the calibration cases, whether a report names it or not. So the share
    is too large for reports that are better than chance, and too small for errors that reports and
    encoder have in common.

    Args: rows: of `verdicts_of`.
    """
    own = rows.loc[rows["verdict"] == verdict, "probability"]
    if not len(own):
        return None
    mean = float(own.mean())
    return 1 - mean if verdict == SUPPORTED else mean


def _column_of(evidence: ImageEvidence, each: ClaimOfImage, has_prior: Sequence[bool]) -> int:
    """Return the number of the finding in the evidence; -1 without evidence."""
    if each.claim.needs_prior and not (len(has_prior) and has_prior[each.image]):
        return -1
    return evidence.column.get(each.claim.finding, -1)
