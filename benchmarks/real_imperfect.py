"""Claim: on real images, a score of image and reference prefers what the image supports more often
than with another study's image; metrics of texts cannot.

Protocol. Studies of the part "report" (real_data.py) that are coded by hand. A reference is wrong
about one finding that the coding confirms; one candidate is right about it, the other is as long
and wrong. The share of studies is measured in which a score prefers the right candidate: with the
study's image, with the image of another study, and with a black one.

- omits: the reference's sentences about findings A and B are removed. A is coded, B is neither
  coded nor stated. The right candidate adds a sentence that states A, the wrong one a sentence
  that states B.
- denies: the reference denies A and B. The right candidate states A and denies B, the wrong one
  denies A and states B.
- wrong side: the coding has A on one side. The reference's sentences about A are removed. The
  right candidate adds a sentence with A on that side, the wrong one the same sentence with the
  other side.

Added sentences are those of training reports, and state or deny one finding. Texts are balanced:
for every two findings, studies with A and without B count as much in sum as studies with B and
without A, and the same sentences are added to both; likewise for left and right. So a score that
always prefers one sentence has a share near .500, and a metric of texts is near .500 by
construction, because reference and candidates say nothing about the image. The difference of the
shares with the right image and with another study's is due to images alone.

Intervals: 95 %, bootstrap over studies (2,000 resamples), the mean over an encoder's seeds;
"joined" is all seeds as one encoder (real_joined.py). No choice was made on this part.

Run: python benchmarks/real_imperfect.py DATA WORK [--out benchmarks/results/real_imperfect.md]
after real_encoders.py, which trains the encoders. `make real DATA=FOLDER` runs both.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import describe_machine, publish
from real_data import (
    CONCEPTS,
    REPORT,
    TRAIN,
    Array,
    Part,
    RealData,
    Vectors,
    is_coded,
    open_encoder,
    parser_of,
    text_vectors,
    vectors_of,
)
from real_joined import joined_encoders, load_joined, trained

from vlscore.core import Signature, write_json
from vlscore.embedding import StudyEmbedder
from vlscore.findings import Axis, Polarity, ReportFindings, Sentence, extract
from vlscore.metrics import METRICS, EmbeddingTriples, Metric, compute, find_metric, usable_metrics
from vlscore.stats import Interval, TextTable, bootstrap_interval, interval, markdown

OMITS, DENIES, SIDE = FORMS = ("omits", "denies", "wrong side")
RIGHT, OTHER, BLACK = IMAGES = ("right image", "another study's", "black image")
RESAMPLES = 2000
# Sentences of each finding, the most frequent of the training reports.
_SENTENCES = 12
_MOST_WORDS = 12
_SIDE = re.compile(r"/(left|right)(?=/|$)")
_WORD = re.compile(r"\b(left|right)\b", re.IGNORECASE)


# Score -> image -> (n,) preferences of the cases.
Preferences = dict[str, dict[str, Array]]


@dataclass(frozen=True)
class Case:
    """A wrong reference of one study, and two candidates.

    Attributes:
        row: number of the study in its part.
        form: one of FORMS.
        group, direction: cases of a group are balanced over its two directions.
        reference, right, wrong: texts; `right` is the candidate that the image supports.
    """

    row: int
    form: str
    group: str
    direction: str
    reference: str
    right: str
    wrong: str


# ---------------------------------------------------------------- texts


@dataclass(frozen=True, eq=False)
class Phrases:
    """Sentences of training reports about one finding: stating it, with a side, and denying it."""

    stating: Mapping[str, Sequence[str]]
    sided: Mapping[str, Sequence[str]]
    denying: Mapping[str, Sequence[str]]


def concept_of(observation: str) -> str | None:
    """Return the finding of the benchmark that an observation belongs to."""
    return next(
        (name for name, c in CONCEPTS.items() if observation in c.observations.split()), None
    )


def collect_phrases(reports: Iterable[str]) -> Phrases:
    """Collect the sentences with one finding, the most frequent first."""
    kinds = ("stating", "sided", "denying")
    counts: dict[str, dict[str, Counter[str]]] = {k: defaultdict(Counter) for k in kinds}
    for report in dict.fromkeys(reports):
        found = extract(report)
        for sentence in found.sentences:
            kind, name = _kind_of(sentence)
            text = " ".join(sentence.span.of(found.text).split())
            if kind and len(text.split()) <= _MOST_WORDS and "XXXX" not in text:
                counts[kind][name][f"{text[:1].upper()}{text[1:].rstrip('. ')}."] += 1
    chosen = {
        kind: {name: [text for text, _ in _first(each)] for name, each in by_name.items()}
        for kind, by_name in counts.items()
    }
    return Phrases(chosen["stating"], chosen["sided"], chosen["denying"])


def _first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_SENTENCES]


def _kind_of(sentence: Sentence) -> tuple[str, str]:
    """Return what a sentence is good for, and its finding; two empty texts if for nothing."""
    names = {concept_of(each.observation) for each in sentence.findings}
    name = names.pop() if len(names) == 1 else None
    if name is None or sentence.changes:
        return "", ""
    findings = sentence.findings
    if all(each.polarity is Polarity.NEGATIVE for each in findings):
        return "denying", name
    if len(findings) != 1 or not findings[0].is_present or findings[0].on(Axis.CHANGE):
        return "", ""
    sides = findings[0].on(Axis.SIDE)
    if not sides:
        return "stating", name
    one = len(sides) == 1 and sides[0].value in ("left", "right") and not sides[0].inherited
    return ("sided", name) if one else ("", "")


def without(report: ReportFindings, names: Sequence[str]) -> str | None:
    """Return the report without its sentences on some findings; None if nothing is left."""
    observations = {each for name in names for each in CONCEPTS[name].observations.split()}
    kept = [
        sentence.span.of(report.text).strip()
        for sentence in report.sentences
        if observations.isdisjoint(each.observation for each in sentence.findings)
        and not any(denial.observations & observations for denial in sentence.denials)
    ]
    return " ".join(kept) or None


def other_side(sentence: str) -> str:
    """Return a sentence with left for right, and right for left.

    >>> other_side("Small left effusion.")
    'Small right effusion.'
    """

    def swapped(found: re.Match[str]) -> str:
        word = "left" if found[0].lower() == "right" else "right"
        return word.capitalize() if found[0][0].isupper() else word

    return _WORD.sub(swapped, sentence)


def side_of(mesh: str, name: str) -> str | None:
    """Return the side of a coded finding; None if there is none, or both."""
    terms = [term for term in mesh.split(";") if is_coded(term, CONCEPTS[name])]
    sides = {side for term in terms for side in _SIDE.findall(term)}
    # A term without a side may be about the other one.
    if len(sides) != 1 or not all(_SIDE.search(term) for term in terms):
        return None
    return str(sides.pop())


# ---------------------------------------------------------------- cases


def make_cases(part: Part, phrases: Phrases, seed: int = 0) -> list[Case]:
    """Return every case of a part; the sentences are drawn by `seed`."""
    coded = {name: part.coded(name) for name in CONCEPTS}
    reports = [extract(text) for text in part.pairs.texts]
    found: list[Case] = []
    for row, report in enumerate(reports):
        if not part.usable[row]:
            continue
        stated = {concept_of(each.observation) for each in report if each.polarity != "negative"}
        chance = np.random.default_rng([seed, row])
        absent = [n for n in CONCEPTS if not coded[n][row] and n not in stated]
        for name in (name for name in CONCEPTS if coded[name][row]):
            for other in absent:
                found += _pairs(row, report, name, other, phrases, chance)
            found += _sides(row, report, name, part.mesh[row], phrases, chance)
    return found


def _pairs(
    row: int,
    report: ReportFindings,
    name: str,
    other: str,
    phrases: Phrases,
    chance: np.random.Generator,
) -> Iterator[Case]:
    rest = without(report, (name, other))
    if rest is None or not (phrases.stating.get(name) and phrases.stating.get(other)):
        return
    group = " / ".join(sorted((name, other)))
    states, false = (_pick(phrases.stating[each], chance) for each in (name, other))
    yield Case(row, OMITS, group, name, rest, f"{states} {rest}", f"{false} {rest}")
    if phrases.denying.get(name) and phrases.denying.get(other):
        denies, rightly = (_pick(phrases.denying[each], chance) for each in (name, other))
        yield Case(
            row,
            DENIES,
            group,
            name,
            f"{denies} {rightly} {rest}",
            f"{states} {rightly} {rest}",
            f"{denies} {false} {rest}",
        )


def _sides(
    row: int,
    report: ReportFindings,
    name: str,
    mesh: str,
    phrases: Phrases,
    chance: np.random.Generator,
) -> Iterator[Case]:
    side, rest = side_of(mesh, name), without(report, (name,))
    if side is None or rest is None or not phrases.sided.get(name):
        return
    sentence = _pick(phrases.sided[name], chance)
    wrong = other_side(sentence)
    if not re.search(rf"\b{side}\b", sentence, re.IGNORECASE):
        sentence, wrong = wrong, sentence
    yield Case(row, SIDE, name, side, rest, f"{sentence} {rest}", f"{wrong} {rest}")


def _pick(options: Sequence[str], chance: np.random.Generator) -> str:
    return options[int(chance.integers(len(options)))]


def weights_of(cases: Sequence[Case]) -> Array:
    """Return (n,) weights, with equal sums over both directions of a group; 0 if one is empty."""
    count = Counter((case.form, case.group, case.direction) for case in cases)
    directions = defaultdict(set)
    for form, group, direction in count:
        directions[form, group].add(direction)
    found = []
    for case in cases:
        both = [count[case.form, case.group, d] for d in directions[case.form, case.group]]
        least = min(both) if len(both) == 2 else 0
        found.append(least / count[case.form, case.group, case.direction])
    return np.array(found, np.float64)


def other_films(part: Part, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return (n,) numbers of the study whose image each study gets; nobody gets its own."""
    order = np.random.default_rng(seed).permutation(len(part.pairs))
    found = np.empty_like(order)
    found[order] = np.roll(order, 1)
    return found


# ---------------------------------------------------------------- scores


def image_metrics() -> list[Metric]:
    """Return every metric of embeddings in the registry."""
    names = [
        name
        for name, metric in METRICS.items()
        if metric.uses_embeddings and metric.missing() is None
    ]
    names += ["image-gain-distance(image=2.0)", "image-gain-cosine(image=2.0)"]
    return [find_metric(name) for name in names]


def preferences(
    cases: Sequence[Case], part: Part, embedder: StudyEmbedder, vectors: Vectors, C: float | None
) -> dict[str, dict[str, Array]]:
    """Return metric -> image -> (n,) 1 where the right candidate has the better score, .5 for ties.

    Args: C: constant of VLScore, for an encoder whose card has none.
    """
    rows = np.array([case.row for case in cases])
    texts = [(case.reference, case.right, case.wrong) for case in cases]
    flat = text_vectors(embedder, [text for each in texts for text in each])
    reference, right, wrong = np.moveaxis(flat.reshape(len(cases), 3, -1), 1, 0)
    shown = {
        RIGHT: vectors.images[rows],
        OTHER: vectors.images[other_films(part)[rows]],
        BLACK: np.tile(vectors.black, (len(rows), 1)),
    }
    found: dict[str, dict[str, Array]] = {}
    for metric in image_metrics():
        found[str(metric)] = {}
        for name, images in shown.items():
            better, worse = (
                _values(metric, images, candidate, reference, embedder, C)
                for candidate in (right, wrong)
            )
            found[str(metric)][name] = np.sign(better - worse) / 2 + 0.5
    return found


def _values(
    metric: Metric,
    images: Array,
    candidates: Array,
    references: Array,
    embedder: StudyEmbedder,
    C: float | None,
) -> Array:
    signature = Signature("embeddings").plus(enc=embedder.encoder.card.name)
    constant = embedder.C if embedder.C is not None else C
    triples = EmbeddingTriples(images, candidates, references, signature, constant)
    empty = [""] * len(candidates)
    values: Array = metric.sign * compute([metric], empty, empty, embeddings=triples)[str(metric)]
    return values


def text_preferences(cases: Sequence[Case], cache: Path) -> dict[str, dict[str, Array]]:
    """Return the same of every metric of texts that looks at the reference and can run here.

    Args: cache: file with the values of the same cases, from an earlier call.
    """
    metrics = [m for m in usable_metrics()[0] if m.uses_reference and not m.uses_embeddings]
    key = hashlib.sha256(repr((cases, list(map(str, metrics)))).encode()).hexdigest()
    if cache.is_file():
        stored = json.loads(cache.read_text(encoding="utf-8"))
        if stored["key"] == key:
            return {name: {RIGHT: np.array(each)} for name, each in stored["shares"].items()}
    references = [case.reference for case in cases]
    shares = {}
    for metric in metrics:
        right, wrong = (
            metric.sign * compute([metric], candidates, references)[str(metric)]
            for candidates in ([c.right for c in cases], [c.wrong for c in cases])
        )
        shares[str(metric)] = np.sign(right - wrong) / 2 + 0.5
    write_json(cache, {"key": key, "shares": {name: x.tolist() for name, x in shares.items()}})
    return {name: {RIGHT: each} for name, each in shares.items()}


def share_of(values: Array, weights: Array, rows: Sequence[int], seed: int = 0) -> Interval:
    """Return the weighted mean, with a 95 % bootstrap interval over studies."""
    names, code = np.unique(np.asarray(rows), return_inverse=True)
    sums = np.bincount(code, weights * values, len(names))
    totals = np.bincount(code, weights, len(names))
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES)
    estimates = (drawn @ sums) / np.maximum(drawn @ totals, 1e-12)
    estimates = np.append(sums.sum() / totals.sum(), estimates)
    return bootstrap_interval(estimates, len(names))


# ---------------------------------------------------------------- tables


def rows_of(
    name: str, found: Mapping[str, Mapping[str, Array]], cases: Sequence[Case], form: str | None
) -> list[tuple[str, ...]]:
    """Return a row for each metric of an encoder, or of texts."""
    chosen = np.array([form is None or case.form == form for case in cases])
    weights = weights_of(cases)[chosen]
    rows = [case.row for case, is_chosen in zip(cases, chosen, strict=True) if is_chosen]
    table = []
    for metric, images in found.items():
        values = {image: each[chosen] for image, each in images.items()}
        cells = [
            interval(share_of(values[image], weights, rows)) for image in IMAGES if image in values
        ]
        if OTHER in values:
            moved = share_of(values[RIGHT] - values[OTHER], weights, rows)
            table.append((name, metric, *cells, interval(moved)))
        else:
            table.append((name, metric, cells[0], "same", "same", "0 by construction"))
    return table


COLUMNS = ("encoder", "score", *IMAGES, "right less another's")


def mean_over_seeds(
    found: Sequence[Mapping[str, Mapping[str, Array]]],
) -> dict[str, dict[str, Array]]:
    """Return the mean preference of encoders that differ in their seed alone."""
    return {
        metric: {
            image: np.mean([each[metric][image] for each in found], axis=0) for image in images
        }
        for metric, images in found[0].items()
    }


def seeds_table(by_seed: Mapping[str, Preferences], cases: Sequence[Case]) -> TextTable:
    """Return what the image changes in each seed's preferences, for every score."""
    weights = weights_of(cases)
    rows = []
    for score in next(iter(by_seed.values())):
        each = [found[score] for found in by_seed.values()]
        moved = [np.average(images[RIGHT] - images[OTHER], weights=weights) for images in each]
        rows.append((score, *(f"{value:.3f}" for value in moved)))
    return TextTable(
        "Right image less another study's, each seed", ("score", *by_seed), tuple(rows)
    )


def count_table(cases: Sequence[Case]) -> TextTable:
    """Return how many cases and studies there are."""
    weights = weights_of(cases)
    rows = []
    for form in FORMS:
        mine = [c for c, w in zip(cases, weights, strict=True) if c.form == form and w > 0]
        names = {c.group for c in mine}
        rows.append((form, str(len(mine)), str(len({c.row for c in mine})), str(len(names))))
    return TextTable("Cases", ("form", "cases", "studies", "pairs of findings"), tuple(rows))


def measure(
    data: RealData, part_name: str
) -> tuple[list[Case], dict[str, Preferences], dict[str, Preferences]]:
    """Return the cases, and the preferences of encoders and of texts, and of each seed, by name."""
    part = data.part(part_name)
    cases = make_cases(part, collect_phrases(data.part(TRAIN).pairs.texts))
    cases = [c for c, w in zip(cases, weights_of(cases), strict=True) if w > 0]
    found: dict[str, Preferences] = {}
    by_seed: dict[str, Preferences] = {}
    for name, folders in trained(data.work).items():
        seeds = []
        for folder in folders:
            embedder = open_encoder(folder)
            vectors = vectors_of(embedder, part, folder / f"vectors-{part_name}.npz")
            seeds.append(preferences(cases, part, embedder, vectors, None))
            by_seed[folder.name] = seeds[-1]
        found[name] = mean_over_seeds(seeds)
        print(f"{name}: {len(seeds)} seeds", flush=True)
    for title, folder in joined_encoders(data.work).items():
        embedder = load_joined(folder)
        vectors = vectors_of(embedder, part, folder / f"vectors-{part_name}.npz")
        found[title] = preferences(cases, part, embedder, vectors, None)
    found["texts alone"] = text_preferences(cases, data.work / f"texts-{part_name}.json")
    return cases, found, by_seed


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--part", default=REPORT)
    options = parser.parse_args()
    data = RealData(options.data, options.work)
    cases, found, by_seed = measure(data, options.part)
    tables = [count_table(cases), seeds_table(by_seed, cases)]
    for title, form in (("All forms", None), *((form, form) for form in FORMS)):
        rows = [row for name, each in found.items() for row in rows_of(name, each, cases, form)]
        tables.append(
            TextTable(f"Preference for the right candidate: {title}", COLUMNS, tuple(rows))
        )
    report = [
        "# Imperfect references on real images",
        f"Part: {options.part}. {describe_machine()}",
        data.describe(),
        "`python benchmarks/real_imperfect.py` says what each table is.",
        markdown(tables, []),
    ]
    publish("\n\n".join(report) + "\n", options.out)


if __name__ == "__main__":
    main()
