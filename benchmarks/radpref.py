"""Claim: on RadPref, which anyone may download, one command says which metrics of texts follow
three radiologists, by errors and by overall rating, and how much of that the generator alone
explains.

Protocol: RadPref's cases (reference, two generated candidates, three radiologists) as its
repository publishes them, read by `vlscore.evaluation.read_ratings`; every free metric of texts
that runs here, no network. Nothing is fitted here to these ratings. But the weights of `judge` were
tuned on 25 of the 50 cases (judge_rules.py): its agreement over all cases is an in-sample upper
bound, and the column "cases not tuned on" has the other 25 cases, for every metric. tau_b with the
mean of the raters for all errors, significant errors (urgent or actionable findings, attributes
marked significant) and the rating from 1 to 5; 95 % bootstrap intervals that resample cases (1,000
resamples); the same within each generator, because one generator is better than the other: any
value that tells the two apart agrees with raters over both. The row "generator alone" is such a
value: which of the two wrote the report, and nothing else. The raters' own agreement and the paired
tests between metrics are those of `vlscore align`. The table "Do phantoms predict the order?" has
the same metrics on the phantom set of phantom_ratings.py (400 candidates, true errors). RadJudge's
thirty orders follow (radjudge.py); all of them were read while the rules of
`judge` were written.

Run: python benchmarks/radpref.py FOLDER [--out benchmarks/results/radpref.md]
FOLDER holds preference_data.json, radiologist_annotations/ (or its files) and radjudge.json.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from data import RADPREF, describe_file
from judge_rules import DEVELOPMENT_CASES
from machine import describe_machine, publish
from phantom_set import write_rated_set
from radjudge import by_category, check_orders, read_cases
from scipy.stats import spearmanr

from vlscore.evaluation import (
    AlignmentSettings,
    RatedPairs,
    Scored,
    align,
    compare_with_raters,
    read_ratings,
)
from vlscore.evaluation.alignment.tables import ceiling_table, difference_table
from vlscore.metrics import Metric, Scorer, usable_metrics
from vlscore.stats import Interval, TextTable, interval, markdown, number, text_table

RESAMPLES = 1000
PHANTOMS = {"seed": 501, "studies": 100, "candidates": 4}
GENERATOR = "generator alone"
PREFERENCES = "preference_data.json"
BOTH, NOT_TUNED = "both generators", "cases not tuned on"
_CAPTION = (
    "tau_b with the mean of three radiologists, larger is more agreement; 95 % bootstrap intervals "
    "over cases. '-': all values are equal. `judge` was tuned on half of the cases: only the "
    f"column '{NOT_TUNED}' is a test of it."
)
_ORDERS = (
    "Cases whose every relation holds; candidates that should be equal may differ by 1e-6. In some "
    "cases the candidates come with the patient's age or indication, which no metric here reads."
)


Frames = dict[str, pd.DataFrame]


def aligned(pairs: RatedPairs, metrics: Sequence[Metric], place: Path) -> tuple[Frames, list[str]]:
    """Metrics against the raters of some pairs, by `vlscore align`'s function; and signatures."""
    settings = AlignmentSettings(resamples=RESAMPLES)
    run = align(pairs, place, Scorer(metrics=list(metrics)), settings)
    frames = {name: run.frame(name) for name in ("agreements", "differences", "ceilings")}
    return frames, list(run.signatures.values())


def generator_alone(pairs: RatedPairs) -> np.ndarray:
    """1 for the reports of the generator that raters like better, 0 for the others'."""
    means = {
        name: float(np.mean(pairs.only([name]).means["rating"])) for name in set(pairs.candidates)
    }
    best = max(means, key=lambda name: means[name])
    return np.array([float(name == best) for name in pairs.candidates])


def not_tuned_on(pairs: RatedPairs) -> RatedPairs:
    """Return the pairs of the cases that judge_rules.py did not tune the judge on."""
    cases = sorted(set(pairs.studies), key=lambda id: hashlib.sha256(id.encode()).hexdigest())
    chosen = set(cases[DEVELOPMENT_CASES:])
    return pairs.at([row for row, study in enumerate(pairs.studies) if study in chosen])


def taus(found: Frames) -> dict[tuple[str, str], str]:
    """(metric, rating) -> tau_b with its interval, as text."""
    return {
        (row["metric"], row["rating"]): interval(
            Interval(row["tau_b"], row["tau_b.low"], row["tau_b.high"])
        )
        for row in found["agreements"].to_dict("records")
    }


def table_of(found: Mapping[str, Frames], rating: str, order: Sequence[str]) -> TextTable:
    """One row a metric, one column a set of pairs."""
    cells = {name: taus(each) for name, each in found.items()}
    rows = [
        (metric, *(cells[name].get((metric, rating), "") for name in found)) for metric in order
    ]
    return TextTable(
        f"Agreement with radiologists: {rating}", ("metric", *found), tuple(rows), _CAPTION
    )


def tau_by_metric(found: Frames, rating: str) -> dict[str, float]:
    """Metric -> tau_b, the metric that agrees best first."""
    rows = found["agreements"]
    rows = rows[rows["rating"] == rating].sort_values("tau_b", ascending=False, kind="stable")
    return dict(zip(rows["metric"], rows["tau_b"], strict=True))


def beside_phantoms(found: Mapping[str, Frames], phantoms: Frames) -> TextTable:
    """tau_b with significant errors on RadPref and on phantoms, and how alike the orders are."""
    rating = "significant errors"
    columns = {BOTH: found[BOTH], NOT_TUNED: found[NOT_TUNED], "phantoms": phantoms}
    values = {name: tau_by_metric(each, rating) for name, each in columns.items()}
    made = values["phantoms"]
    names = [name for name in values[BOTH] if name in made]
    rows = tuple((name, *(number(each[name]) for each in values.values())) for name in names)

    def alike(column: str, names: Sequence[str]) -> str:
        real = values[column]
        usable = [name for name in names if np.isfinite(real[name]) and np.isfinite(made[name])]
        rho = spearmanr([real[n] for n in usable], [made[n] for n in usable]).statistic
        return f"{rho:.2f} over {len(usable)} metrics"

    others = [name for name in names if not name.startswith("judge")]
    caption = (
        f"Spearman's correlation with the column of phantoms: {BOTH} {alike(BOTH, others)} "
        f"without judge; {NOT_TUNED} {alike(NOT_TUNED, names)}, {alike(NOT_TUNED, others)} without "
        "judge. Several are relatives of each other, so that this is a description and no test."
    )
    return TextTable("Do phantoms predict the order?", ("metric", *values), rows, caption)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="RadPref's files and radjudge.json")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    source = RADPREF[PREFERENCES].check(options.folder / PREFERENCES)
    pairs = read_ratings(options.folder)
    metrics, left_out = usable_metrics()
    generators = sorted(set(pairs.candidates))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        parts = {
            BOTH: pairs,
            NOT_TUNED: not_tuned_on(pairs),
            **{f"{g} alone": pairs.only([g]) for g in generators},
        }
        runs = [aligned(part, metrics, place / str(k)) for k, part in enumerate(parts.values())]
        found = {name: frames for name, (frames, _) in zip(parts, runs, strict=True)}
        write_rated_set(place / "phantoms", **PHANTOMS)
        phantoms = aligned(read_ratings(place / "phantoms" / "ratings.csv"), metrics, place / "p")[
            0
        ]
    both = found[BOTH]
    orders = check_orders(read_cases(options.folder / "radjudge.json"), metrics)
    # Beside the metrics, so that their tests stay those of metrics.
    settings = AlignmentSettings(resamples=RESAMPLES)
    values = pd.DataFrame({GENERATOR: generator_alone(pairs)})
    alone = compare_with_raters(Scored(values, {}, {GENERATOR: True}), pairs, settings)
    with_generator = pd.concat([both["agreements"], alone["agreements"]])
    shown = {**found, BOTH: {"agreements": with_generator}}
    tables = [
        *(table_of(shown, r, [*tau_by_metric(both, r), GENERATOR]) for r in pairs.primary),
        ceiling_table(both["ceilings"]),
        *(difference_table(both, rating) for rating in pairs.primary),
        beside_phantoms(found, phantoms),
        text_table("Orders by category", by_category(orders), _ORDERS),
        text_table("Orders one by one", orders.drop(columns="category")),
    ]
    signatures = runs[0][1]
    means = ", ".join(f"{g} {np.mean(pairs.only([g]).means['rating']):.2f}" for g in generators)
    report = [
        "# RadPref and RadJudge",
        f"{len(set(pairs.studies))} cases, {len(pairs)} candidates, {len(pairs.raters)} "
        f"radiologists; mean rating: {means}. {describe_machine()}",
        f"- {source}\n- {describe_file(options.folder / 'radjudge.json')}: RadJudge, same source",
        "\n".join(f"- {note}" for note in pairs.notes),
        markdown(tables, signatures),
        "\n".join(f"- {name} is left out: {reason}" for name, reason in left_out.items()),
    ]
    publish("\n\n".join(report) + "\n", options.out)


if __name__ == "__main__":
    main()
