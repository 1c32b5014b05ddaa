"""Evidence of an image on findings: probes, and calibration cases that show what they are worth."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.claims.claim import group_of
from vlscore.claims.conformal import conformal_p_values
from vlscore.claims.probes import Probes, Values, fit_probes, likelihood_ratios
from vlscore.core import atomic_write, file_digest
from vlscore.errors import InvalidSetting

FORMAT = "vlscore evidence 2"
#: Cases of either kind that a finding needs: for a regression, and to be calibrated.
LEAST_FITTED, LEAST_CALIBRATED = 10, 5
#: Chosen on the part "choose" of docs/real.md, by the mean area under the curve.
PENALTY = 0.3


@dataclass(frozen=True, eq=False)
class Cases:
    """Images with labels of findings.

    Attributes:
        vectors: (n, d) float64.
        labels: finding -> (n,) 1, 0, or nan where it is unknown.
        groups: (n,) patients; images of one patient never stand on both sides of a split.
    """

    vectors: Values
    labels: Mapping[str, Values]
    groups: Sequence[str]

    def take(self, rows: Sequence[int]) -> "Cases":
        """Return some of the cases."""
        labels = {finding: values[list(rows)] for finding, values in self.labels.items()}
        return Cases(self.vectors[list(rows)], labels, [self.groups[row] for row in rows])

    def split(self, share: float, seed: int) -> tuple["Cases", "Cases"]:
        """Return two parts without a common patient; `share` of the patients are in the second.

        Raises: InvalidSetting unless both parts have a case.
        """
        names = np.unique(np.asarray(self.groups, str))
        order = np.random.default_rng(seed).permutation(len(names))
        second = set(names[order[: round(share * len(names))]].tolist())
        parts = tuple(
            self.take([row for row, group in enumerate(self.groups) if (group in second) is wanted])
            for wanted in (False, True)
        )
        if not all(len(part.groups) for part in parts):
            raise InvalidSetting(f"{len(names)} patients cannot be split with a share of {share}")
        return parts[0], parts[1]

    def one_each(self, seed: int) -> "Cases":
        """Return one case of each patient, drawn at random: those are exchangeable."""
        order = np.random.default_rng(seed).permutation(len(self.groups)).tolist()
        rows = {self.groups[row]: row for row in order}
        return self.take(sorted(rows.values()))


@dataclass(frozen=True, eq=False)
class ImageEvidence:
    """Probes of k findings with m calibration cases, none of whose patients they were fitted to.

    Attributes:
        findings: names, in order.
        probes: the regressions.
        scores: (m, k) scores of the calibration cases.
        truth: (m, k) their labels: 1, 0, nan.
        signature: what the vectors depend on; empty where nothing is known.
        fitted: (k,) positive cases in the fit.
    """

    findings: tuple[str, ...]
    probes: Probes
    scores: Values
    truth: Values
    signature: str
    fitted: Values

    @cached_property
    def column(self) -> Mapping[str, int]:
        """Return finding -> its number."""
        return {finding: k for k, finding in enumerate(self.findings)}

    def calibration(self, k: int) -> tuple[Values, Values]:
        """Return the scores of the calibration cases with finding k, and of those without it."""
        return self.scores[self.truth[:, k] == 1, k], self.scores[self.truth[:, k] == 0, k]

    def p_values(self, scores: Values) -> tuple[Values, Values]:
        """Return p values (n, k) of scores: against absence of a finding, and against presence."""
        present, absent = np.ones_like(scores), np.ones_like(scores)
        for k in range(len(self.findings)):
            with_it, without = self.calibration(k)
            present[:, k] = conformal_p_values(scores[:, k], without)
            absent[:, k] = conformal_p_values(-scores[:, k], -with_it)
        return present, absent

    @cached_property
    def _ratios(self) -> tuple[Values, Values]:
        """Return (k,) slopes and offsets of log likelihood ratios."""
        return likelihood_ratios(self.scores, self.truth)

    def log_likelihood_ratios(self, scores: Values) -> Values:
        """Return (n, k) how much the images change the log odds of the findings; 0: not at all."""
        slopes, offsets = self._ratios
        return scores * slopes + offsets

    def log_odds(self, scores: Values) -> Values:
        """Return log odds (n, k) that findings are there, where they are as frequent as in the
        calibration cases."""
        present, absent = ((self.truth == value).sum(0) for value in (1, 0))
        base: Values = np.log(present / absent)
        return base + self.log_likelihood_ratios(scores)

    def save(self, path: str | Path) -> None:
        """Write a file that `read_evidence` reads; it has no code, and no text but names."""
        about = {"format": FORMAT, "findings": self.findings, "signature": self.signature}
        arrays = {name: getattr(self, name) for name in ("scores", "truth", "fitted")}
        stored = io.BytesIO()
        header = np.frombuffer(json.dumps(about).encode(), np.uint8)
        np.savez(stored, header=header, **arrays, **vars(self.probes))
        with atomic_write(Path(path), "wb") as stream:
            stream.write(stored.getvalue())


def read_evidence(path: str | Path, signature: str | None = None) -> ImageEvidence:
    """Read what `ImageEvidence.save` wrote.

    Args: signature: of the vectors that are judged; None: not compared.
    Raises: InvalidSetting for any other file, and for evidence of other vectors.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            found: dict[str, Any] = {name: stored[name] for name in stored.files}
        about = json.loads(found.pop("header").tobytes())
        if about["format"] != FORMAT:
            raise ValueError("another format")
        probes = Probes(**{each.name: found.pop(each.name) for each in fields(Probes)})
        made = ImageEvidence(
            findings=tuple(map(str, about["findings"])),
            probes=probes,
            signature=str(about["signature"]),
            **found,
        )
        if made.scores.shape != made.truth.shape or made.scores.shape[1] != len(made.findings):
            raise ValueError("shapes differ")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InvalidSetting(
            f"{path} is no evidence that `vlscore claims --fit` wrote ({type(error).__name__})"
        ) from None
    if signature not in (None, made.signature):
        raise InvalidSetting(
            f"{path} was fitted to vectors of {made.signature}, and these are of {signature}: take "
            "the same encoder, weights and views, or fit again (vlscore claims --fit)"
        )
    return made


def evidence_digest(path: str | Path) -> str:
    """Return the first digits of the sha256 of an evidence file, for signatures."""
    return file_digest(Path(path))[:12]


def fit_evidence(
    fitting: Cases,
    calibrating: Cases,
    *,
    directions: Mapping[str, Values] | None = None,
    penalty: float = PENALTY,
    signature: str = "",
    seed: int = 0,
) -> ImageEvidence:
    """Fit probes on some cases, and calibrate them on others.

    Of each patient one case is drawn to calibrate, because several are not exchangeable.

    Args:
        fitting, calibrating: without a common patient.
        directions: finding -> (d,) for zero-shot: words that state it less words that deny it.
        penalty: of the regressions; see `fit_probes`.
        signature: what the vectors depend on.

    Raises: InvalidSetting where a patient is in both, or no finding has enough cases.
    """
    if both := set(fitting.groups) & set(calibrating.groups):
        raise InvalidSetting(
            f"{len(both)} patients are among the cases to fit and those to calibrate, such as "
            f"{min(both)}: the error rate needs patients that the probes have not seen"
        )
    calibrating = calibrating.one_each(seed)
    unknown = np.full(len(fitting.groups), np.nan)
    names = []
    for name, values in calibrating.labels.items():
        present, absent = np.sum(values == 1), np.sum(values == 0)
        is_fitted = _least(fitting.labels.get(name, unknown)) >= LEAST_FITTED
        if absent >= LEAST_CALIBRATED and present >= (1 if is_fitted else LEAST_CALIBRATED):
            names.append(name)
    if not names:
        raise InvalidSetting(
            f"no finding is absent in {LEAST_CALIBRATED} of {len(calibrating.groups)} images to "
            f"calibrate, and present in as many, or in {LEAST_FITTED} to fit: give a larger table"
        )
    labels = np.column_stack([fitting.labels.get(name, unknown) for name in names])
    ways = None
    if directions is not None:
        nothing = np.zeros(fitting.vectors.shape[1])
        ways = np.column_stack([directions.get(name, nothing) for name in names])
    column = {name: k for k, name in enumerate(names)}
    groups = {k: column[g] for name, k in column.items() if (g := group_of(name)) in column}
    probes = fit_probes(fitting.vectors, labels, ways, penalty, LEAST_FITTED, groups)
    return ImageEvidence(
        tuple(names),
        probes,
        probes(calibrating.vectors),
        np.column_stack([calibrating.labels[name] for name in names]),
        signature,
        np.nansum(labels == 1, axis=0).astype(float),
    )


def _least(values: Values) -> int:
    """Return the number of cases with a finding, or without it, whichever is smaller."""
    return int(min(np.sum(values == 1), np.sum(values == 0)))
