"""Evidence of an image on findings: probes, and calibration cases that show what they are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.claims.array_file import DamagedFile, read_arrays, write_arrays
from vlscore.claims.claim import group_of, is_finding, whole_of
from vlscore.claims.conformal import conformal_p_values
from vlscore.claims.probes import LEAST_SPREAD, Probes, Values, fit_probes, likelihood_ratios
from vlscore.core import file_digest
from vlscore.errors import InvalidSetting
from vlscore.stats import Interval, auc_interval

FORMAT = "vlscore evidence 3"
#: Cases of either kind that a finding needs: for a regression, and to be calibrated.
LEAST_FITTED, LEAST_CALIBRATED = 10, 5
#: Chosen on the part "choose" of docs/real.md, by the mean area under the curve.
PENALTY = 0.3
#: Area under the ROC curve of a score that says nothing.
CHANCE = 0.5
#: No vector, score or weight is larger; larger ones would be infinite in a product.
LARGEST = 1e12


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

    def of_present_parts(self) -> "Cases":
        """Return the same cases, with parts of a finding unknown where it is not known to be there.

        A part whose finding has no labels keeps its own.
        """
        labels = dict(self.labels)
        for name, values in self.labels.items():
            if (whole := self.labels.get(whole_of(name) or "")) is not None:
                labels[name] = np.where(whole == 1, values, np.nan)
        return Cases(self.vectors, labels, self.groups)

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

    A part of a finding (its side, its change; `whole_of`) has evidence among the cases that have
    the finding. It is unknown in the others: a false side is mostly the side of a finding that is
    there, and looks more like the true one than an image without the finding does.

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

    @cached_property
    def wholes(self) -> Mapping[int, int]:
        """Return number of a part -> number of its finding."""
        names = {k: whole_of(finding) for k, finding in enumerate(self.findings)}
        return {k: self.column[name] for k, name in names.items() if name is not None}

    def calibration(self, k: int) -> tuple[Values, Values]:
        """Return the scores of the calibration cases with finding k, and of those without it."""
        return self.scores[self.truth[:, k] == 1, k], self.scores[self.truth[:, k] == 0, k]

    @cached_property
    def areas(self) -> tuple[Interval, ...]:
        """Return the area under the ROC curve of each finding on the calibration cases."""
        return tuple(auc_interval(*self.calibration(k)) for k in range(len(self.findings)))

    @cached_property
    def is_above_chance(self) -> NDArray[np.bool_]:
        """Return (k,) whether the interval of a finding's area lies above .5; its finding's, too,
        for a part."""
        own = np.array([area.low > CHANCE for area in self.areas], bool)
        found: NDArray[np.bool_] = own & own[[self.wholes.get(k, k) for k in range(len(own))]]
        return found

    def p_values(self, scores: Values) -> tuple[Values, Values]:
        """Return p values (n, k) of scores: against absence of a finding, and against presence.

        A part is absent where its finding is, or is elsewhere. So the first p value of a part is
        the larger one of both, which is valid against either (intersection-union test; Berger 1982,
        Technometrics 24).
        """
        present, absent = np.ones_like(scores), np.ones_like(scores)
        for k in range(len(self.findings)):
            with_it, without = self.calibration(k)
            present[:, k] = conformal_p_values(scores[:, k], without)
            absent[:, k] = conformal_p_values(-scores[:, k], -with_it)
        for part, whole in self.wholes.items():
            present[:, part] = np.maximum(present[:, part], present[:, whole])
        return present, absent

    @cached_property
    def least_p_values(self) -> tuple[Values, Values]:
        """Return (k,) smallest p values that `p_values` can give, of either kind."""
        present, absent = (1 / ((self.truth == value).sum(0) + 1.0) for value in (0, 1))
        for part, whole in self.wholes.items():
            present[part] = max(present[part], present[whole])
        return present, absent

    @cached_property
    def _ratios(self) -> tuple[Values, Values]:
        """Return (k,) slopes and offsets of log likelihood ratios."""
        return likelihood_ratios(self.scores, self.truth)

    def log_likelihood_ratios(self, scores: Values) -> Values:
        """Return (n, k) how much the images change the log odds of the findings; 0: not at all.

        Those of a part are for an image that has the finding.
        """
        slopes, offsets = self._ratios
        return scores * slopes + offsets

    def probabilities(self, scores: Values) -> Values:
        """Return probabilities (n, k) that findings are there, where they are as frequent as in the
        calibration cases."""
        from scipy.special import expit  # takes a while to import

        present, absent = ((self.truth == value).sum(0) for value in (1, 0))
        found: Values = expit(np.log(present / absent) + self.log_likelihood_ratios(scores))
        for part, whole in self.wholes.items():
            found[:, part] *= found[:, whole]
        return found

    def save(self, path: str | Path) -> None:
        """Write a file that `read_evidence` reads; it has no code, and no text but names.

        Raises: InvalidSetting for contradicting evidence: `read_evidence` would refuse its file.
        """
        if (fault := _fault_of(self)) is not None:
            raise InvalidSetting(f"{path}: this evidence cannot be written: {fault}")
        about = {"format": FORMAT, "findings": self.findings, "signature": self.signature}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        write_arrays(Path(path), about, {**arrays, **vars(self.probes)})


_ARRAYS, _PROBES = ("scores", "truth", "fitted"), tuple(each.name for each in fields(Probes))


def read_evidence(path: str | Path, signature: str | None = None) -> ImageEvidence:
    """Read what `ImageEvidence.save` wrote, and check it as a whole.

    Args: signature: of the vectors that are judged; None: not compared.
    Raises: InvalidSetting for any other file, and for evidence of other vectors.
    """
    try:
        about, arrays = read_arrays(Path(path), (*_ARRAYS, *_PROBES))
        made = _evidence_of(about, arrays)
        if (fault := _fault_of(made)) is not None:
            raise DamagedFile(fault)
    except (OSError, DamagedFile) as error:
        raise _no_evidence(path, getattr(error, "strerror", None) or error) from None
    if signature not in (None, made.signature):
        raise InvalidSetting(
            f"{path} was fitted to embeddings of {made.signature}, but these are of {signature}: "
            "use the same encoder, weights and views, or fit again (vlscore claims --fit)"
        )
    return made


def _evidence_of(about: Mapping[str, Any], arrays: Mapping[str, Values]) -> ImageEvidence:
    """Return the evidence in a file; raise DamagedFile for a header of another kind."""
    if about.get("format") != FORMAT:
        raise DamagedFile("it is of another version of vlscore")
    findings, signature = about.get("findings"), about.get("signature")
    if not isinstance(findings, list) or not all(isinstance(name, str) for name in findings):
        raise DamagedFile("its findings are not a list of texts")
    if not isinstance(signature, str):
        raise DamagedFile("its signature is not a text")
    return ImageEvidence(
        findings=tuple(findings),
        probes=Probes(**{name: arrays[name] for name in _PROBES}),
        signature=signature,
        **{name: arrays[name] for name in _ARRAYS},
    )


def _fault_of(evidence: ImageEvidence) -> str | None:
    """Return what makes the parts of evidence contradict each other, or None."""
    names, probes, truth = evidence.findings, evidence.probes, evidence.truth
    if not names or len(set(names)) != len(names):
        return "it has no finding, or one twice"
    if unknown := [name for name in names if not is_finding(name)]:
        return f"{unknown[0][:60]!r} is not the name of a finding"
    if lacking := [n for n in names if (w := whole_of(n)) is not None and w not in names]:
        return f"it has {lacking[0]!r}, and not the finding"
    m, d, k = len(truth), len(probes.mean), len(names)
    shapes = {"scores": (m, k), "truth": (m, k), "fitted": (k,), "mean": (d,), "spread": (d,)}
    shapes |= {"weights": (d, k), "directions": (d, k)}
    shapes |= dict.fromkeys(("bias", "shift", "scale", "share"), (k,))
    values = {name: getattr(evidence, name) for name in _ARRAYS} | vars(probes)
    for name, shape in shapes.items():
        if values[name].shape != shape:
            return f"{name} has the shape {values[name].shape}, and {shape} fits the others"
        known = values[name][~np.isnan(truth)] if name == "truth" else values[name]
        if not (np.abs(known) <= LARGEST).all():
            return f"{name} has values that are not numbers, or are too large"
    if not np.isin(truth[~np.isnan(truth)], (0, 1)).all():
        return "a label is neither 0, 1 nor unknown"
    if not (((truth == 1).sum(0) >= 1) & ((truth == 0).sum(0) >= 1)).all():
        return "a finding has no calibration case with it, or none without it"
    if (evidence.fitted < 0).any() or (evidence.fitted % 1).any():
        return "fitted has values that are not counts (whole numbers from 0)"
    if (probes.spread < LEAST_SPREAD).any() or (probes.scale <= 0).any():
        return "a spread or a scale is too small"
    return None


def evidence_digest(path: str | Path) -> str:
    """Return the first digits of the sha256 of an evidence file, for signatures.

    Raises: InvalidSetting where it cannot be read.
    """
    try:
        return file_digest(Path(path))[:12]
    except OSError as error:
        raise _no_evidence(path, error.strerror or error) from None


def _no_evidence(path: str | Path, reason: object) -> InvalidSetting:
    return InvalidSetting(
        f"{path} is no evidence that `vlscore claims --fit` wrote, or is damaged: {reason}. Fit it "
        "again (vlscore claims --fit)"
    )


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

    A part of a finding is fitted and calibrated with the cases that have the finding, and only
    where the finding is.

    Raises: InvalidSetting where a patient is in both, or no finding has enough cases.
    """
    if both := set(fitting.groups) & set(calibrating.groups):
        raise InvalidSetting(
            f"{len(both)} patients are in the table to fit and in the table to calibrate, such as "
            f"{min(both)}: the error rate holds only if different patients calibrate"
        )
    fitting, calibrating = (each.of_present_parts() for each in (fitting, calibrating))
    calibrating = calibrating.one_each(seed)
    unknown = np.full(len(fitting.groups), np.nan)
    names = []
    for name, values in calibrating.labels.items():
        present, absent = np.sum(values == 1), np.sum(values == 0)
        known = fitting.labels.get(name, unknown)
        is_fitted = min(np.sum(known == 1), np.sum(known == 0)) >= LEAST_FITTED
        if absent >= LEAST_CALIBRATED and present >= (1 if is_fitted else LEAST_CALIBRATED):
            names.append(name)
    names = [name for name in names if whole_of(name) is None or whole_of(name) in names]
    if not names:
        raise InvalidSetting(
            f"no finding is absent in {LEAST_CALIBRATED} of {len(calibrating.groups)} images to "
            f"calibrate and present in as many, or in {LEAST_FITTED} images to fit: use a larger "
            "table"
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
