"""Claim: the reports that metrics of shared words take for the best have false and missed findings.

Protocol (Yu et al. 2023, "Failure modes of metrics"): for each of 60 phantom studies, the report
of a corpus of 600 other phantom reports that a metric scores best is the metric's oracle report.
Studies (seed 401), corpus (seed 402) and encoders (trained on seed 1) share no scene; reports are
in held-out phrasings. No raters are needed: `vlscore.data.split_errors` counts the true errors
by category, and calls them significant by its stated rule. `vlscore.evaluation.failure_modes` then
compares the oracles: mean errors by category with intervals over studies, one-sided paired t tests
over all ordered pairs of metrics, Benjamini-Hochberg at 1 %. "chance" is a random report of the
corpus; "fewest errors" the best there is. `phantom` learned from pairs of image and report alone;
`phantom-supervised` was trained on the numbers of errors between phantom reports: its metrics are
upper bounds, told the answer. METEOR runs only where WordNet is installed.

Run: python benchmarks/phantom_failures.py [--out benchmarks/results/phantom_failures.md]
"""

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np
from machine import describe_machine, publish
from phantom_set import TOLD, rows_of_errors

from vlscore.data import PhantomFinding, pair_errors, render, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.encoders import load_encoder
from vlscore.evaluation import failure_modes_of, read_ratings
from vlscore.evaluation.alignment.failures import failure_tables
from vlscore.metrics import METRICS, EmbeddingTriples, Metric, compute, usable_metrics
from vlscore.retrieval import TextSearch
from vlscore.stats import markdown

STUDIES, CORPUS = 60, 600
STUDY_SEED, CORPUS_SEED = 401, 402
ENCODERS = {"phantom": "pairs alone", "phantom-supervised": TOLD}


def described(seed: int, count: int) -> tuple[list[tuple[PhantomFinding, ...]], list[str]]:
    """Findings and reports of the scenes of one seed."""
    findings = [scene_at(seed, k).findings for k in range(count)]
    reports = [
        write_report(np.random.default_rng([seed, k, 1]), each, split="held_out")
        for k, each in enumerate(findings)
    ]
    return findings, reports


def oracles_of_texts(metric: Metric, references: list[str], corpus: list[str]) -> list[int]:
    """Row of the best report for each reference."""
    found = TextSearch(metric, corpus).search(references, k=1)
    return [ranked[0][0] for ranked in found]


def oracles_of_embeddings(
    name: str, label: str, references: list[str], corpus: list[str]
) -> dict[str, list[int]]:
    """The same for every metric of embeddings, by the bundled encoder of that name."""
    encoder = load_encoder(name)
    pictures = [
        render(scene_at(STUDY_SEED, k)).astype(np.float32) / np.float32(4095)
        for k in range(len(references))
    ]
    i = encoder.encode_images(pictures)
    r, g = encoder.encode_reports(references), encoder.encode_reports(corpus)
    signature = f"enc:{encoder.card.name}@{encoder.checksum[:12]}"
    metrics = [metric for metric in METRICS.values() if metric.uses_embeddings]
    found: dict[str, list[int]] = {f"{metric} ({label})": [] for metric in metrics}
    count = len(corpus)
    for row in range(len(references)):
        triples = EmbeddingTriples(i[[row] * count], g, r[[row] * count], signature, encoder.card.C)
        values = compute(metrics, corpus, [references[row]] * count, embeddings=triples)
        for metric in metrics:
            best = int(np.argmax(metric.sign * values[str(metric)]))
            found[f"{metric} ({label})"].append(best)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    findings, references = described(STUDY_SEED, STUDIES)
    stated, corpus = described(CORPUS_SEED, CORPUS)
    metrics = [metric for metric in usable_metrics()[0] if metric.uses_reference]
    chosen = {str(metric): oracles_of_texts(metric, references, corpus) for metric in metrics}
    for name, label in ENCODERS.items():
        chosen |= oracles_of_embeddings(name, label, references, corpus)
    rng = np.random.default_rng(0)
    chosen["chance"] = rng.integers(CORPUS, size=STUDIES).tolist()
    errors = pair_errors([*stated, *findings])[:CORPUS, CORPUS:]
    chosen["fewest errors"] = errors.argmin(axis=0).tolist()
    rows = [
        row
        for name, best in chosen.items()
        for study, place in enumerate(best)
        for row in rows_of_errors(str(study), name, stated[place], findings[study])
    ]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "counted.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        found = failure_modes_of(read_ratings(path))
    tables = [t for t in failure_tables(found) if not t.title.startswith("More errors")]
    worse = [
        f"- {which} errors: {sum(t.is_worse for t in found.tests if t.which == which)} of "
        f"{sum(t.which == which for t in found.tests)} one-sided tests at 1 %"
        for which in ("all", "significant", "insignificant")
    ]
    report = "\n\n".join(
        [
            "# Failure modes of metrics, on phantoms",
            f"{STUDIES} studies, a corpus of {CORPUS} reports. {describe_machine()}",
            markdown(tables),
            "Which oracle's reports have more errors of a category than another's:",
            "\n".join(worse),
        ]
    )
    publish(report + "\n", options.out)


if __name__ == "__main__":
    main()
