"""Claim: on phantoms, whose errors are known, `vlscore align` tells which metrics follow them.

Protocol: a rated set of 100 phantom studies (seed 501, which no training uses) with 4 candidates of
0 to 5 errors each, reference and candidates in held-out phrasings, written in the layout that
`vlscore align` reads for any user's ratings; the true errors stand in the raters' place, by
category and by significance (the rule is significant_errors.py, a convention, for nobody
treats a phantom). `run_alignment` computes every metric that runs offline, and tau_b against all
and against significant errors, 95 % bootstrap intervals over studies (1,000 resamples). The table
is Table 1 of the VLScore paper (Dawidowicz et al. 2024): there with radiologists' ratings of real
reports, here synthetic throughout.

phantom learned from pairs of image and report alone. "untrained" is the same network with random
weights (seed 0), a control that knows nothing; C, which it lacks, is the largest area on this set,
as the paper sets it. The composite is of text metrics alone, cross-validated over studies. METEOR
runs only where it is installed.

Run: python benchmarks/phantom_ratings.py [--out benchmarks/results/phantom_ratings.md]
"""

import argparse
import math
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from machine import describe_machine, publish
from phantom_set import write_rated_set

from vlscore.embedding import StudyEmbedder
from vlscore.encoders import JointEncoder, SmallEncoder, load_encoder
from vlscore.errors import DemonstrationEncoderWarning
from vlscore.evaluation import AlignmentSettings, RatedPairs, align, read_ratings
from vlscore.metrics import METRICS, Scorer, usable_metrics
from vlscore.stats import Interval, Result, TextTable, interval, markdown, number

SEED, STUDIES, CANDIDATES, RESAMPLES = 501, 100, 4, 1000
RATINGS = ("total errors", "significant errors")
# Larger than any area, so that no value is cut off at 0 before C is known.
_BEYOND = 1e9
_CAPTION = (
    "tau_b with the true errors, larger is more agreement; - where all values are equal; 95 % "
    "bootstrap intervals over studies."
)


def untrained() -> JointEncoder:
    """The network and vocabulary of phantom with random weights."""
    phantom = load_encoder("phantom")
    assert isinstance(phantom, SmallEncoder)
    torch.manual_seed(0)
    encoder = SmallEncoder(phantom.tokenizer.words, phantom.settings)
    encoder.checksum = encoder.weights_digest = "random-weights-seed-0"
    encoder.card = replace(encoder.card, name="untrained", C=None)
    return encoder.eval()


def aligned(
    pairs: RatedPairs, folder: Path, metrics: list[str], encoder: JointEncoder | None = None, **more
) -> Result:
    """One run of `vlscore align`."""
    embedder = None if encoder is None else StudyEmbedder(encoder)
    scorer = Scorer(embedder, metrics=metrics)
    return align(pairs, folder, scorer, AlignmentSettings(resamples=RESAMPLES, **more))


def largest_area(pairs: RatedPairs, encoder: JointEncoder, folder: Path) -> float:
    """The largest area of a pair, which the paper takes for C."""
    metric = METRICS["vlscore"](C=_BEYOND)
    aligned(pairs, folder, [str(metric)], encoder)
    return float((1 - pd.read_csv(folder / "values.csv")[str(metric)]).max() * _BEYOND)


def tau_of(row: Mapping[str, Any], name: str = "tau_b") -> Interval:
    """A correlation with its interval, from the row of a frame."""
    return Interval(*(float(row[f"{name}{end}"]) for end in ("", ".low", ".high")))


def row_of(name: str, run: Result, metric: str, direction: str) -> list[str]:
    found = {e["rating"]: e for e in agreements(run) if e["metric"] == metric}
    cells = [interval(tau_of(found[rating])) for rating in RATINGS]
    by_pair = interval(tau_of(found[RATINGS[0]], "tau_b by pair"))
    return [name, direction, str(found[RATINGS[0]]["n"]), *cells, by_pair]


def agreements(run: Result) -> list[dict[str, Any]]:
    return run.frame("agreements").to_dict("records")


def by_tau(tau: float) -> float:
    return math.inf if math.isnan(tau) else -tau


def table_1(texts: Result, embedded: dict[str, Result]) -> TextTable:
    """Every metric, best first."""
    ranked: list[tuple[float, list[str]]] = []
    for encoder, run in {"": texts, **embedded}.items():
        for each in agreements(run):
            if each["rating"] == RATINGS[0]:
                called = each["metric"]
                name = f"{called}, {encoder}" if encoder else called
                metric = METRICS.find(called.split("(")[0])
                # Without C, which is one number for all pairs.
                name = name.replace(called, metric.name)
                looks = "image" if metric.uses_image else "text"
                ranked.append((by_tau(each["tau_b"]), row_of(name, run, called, looks)))
    fitted = texts.frame("composite").to_dict("records")
    (fit,) = (row for row in fitted if row["metric"].endswith("cross-validated"))
    name = "composite of the text metrics, cross-validated"
    composite = [name, "text", str(fit["n"]), "-", interval(tau_of(fit)), "-"]
    ranked.append((-fit["tau_b"], composite))
    columns = ("metric", "looks at", "n", *RATINGS, "total errors, over pairs")
    rows = tuple(tuple(row) for _, row in sorted(ranked, key=lambda each: each[0]))
    ceilings = texts.frame("ceilings").set_index("rating")["ties"]
    ties = {rating: number(ceilings[rating]) for rating in RATINGS}
    limits = ", ".join(f"{rating} {value}" for rating, value in ties.items())
    caption = f"{_CAPTION} The largest that values without ties can reach: {limits}."
    return TextTable("Table 1: metrics", columns, rows, caption)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DemonstrationEncoderWarning)
    encoders = {"phantom (pairs alone)": load_encoder("phantom"), "untrained": untrained()}
    texts = [str(metric) for metric in usable_metrics()[0] if metric.uses_reference]
    similarities = [
        name for name, metric in METRICS.items() if metric.uses_embeddings and not metric.missing()
    ]
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        ratings = write_rated_set(out, seed=SEED, studies=STUDIES, candidates=CANDIDATES)
        pairs = read_ratings(ratings)
        of_texts = aligned(pairs, out / "texts", texts, fit=RATINGS[1])
        embedded = {}
        for k, (name, encoder) in enumerate(encoders.items()):
            metrics = similarities
            if encoder.card.C is None:
                C = largest_area(pairs, encoder, out / f"area-{k}")
                metrics = [f"vlscore(C={C!r})" if m == "vlscore" else m for m in similarities]
            embedded[name] = aligned(pairs, out / str(k), metrics, encoder)
        counts = ", ".join(
            f"{int(pairs.means[name].sum())} {name.replace(' errors', '')}"
            for name in ("significant errors", "insignificant errors")
        )
        report = "\n\n".join(
            [
                "# Alignment with known errors, on phantoms",
                f"Synthetic throughout: {len(pairs)} candidates for {STUDIES} studies, with "
                f"{counts} errors. {describe_machine()}",
                markdown([table_1(of_texts, embedded), of_texts.tables[0]]),
            ]
        )
        publish(report, options.out)


if __name__ == "__main__":
    main()
