"""Claim: one command compares five real generators under every metric of texts; in the mean
findings-f1 of a study, none of them beats a report that is always normal.

Protocol: the reports of five generators for the same 273 test studies of the Indiana collection,
each against the study's reference (files and digests in data.py), by `vlscore compare` with
`--text-only --baselines`: every free metric of texts that can run, corpus values as papers print
them, 95 % bootstrap intervals over studies (2,000 resamples), paired permutation tests (9,999) of
every two systems with Benjamini and Hochberg's correction over all of them. The baselines are made
from the references of these very studies, which no generator has seen: the constant and the normal
report are thus stronger than ones from a training set would be. METEOR runs only where WordNet is
installed; the signatures say what ran.

Run: python benchmarks/generators.py FOLDER [--out benchmarks/results/generators.md]
"""

import argparse
import tempfile
from pathlib import Path

from data import GENERATED
from machine import describe_machine, publish

from vlscore.evaluation import compare
from vlscore.metrics import Scorer, usable_metrics
from vlscore.stats import markdown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with the five files named in data.py")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    paths = {name: options.folder / f"{name}.jsonl" for name in GENERATED}
    sources = [GENERATED[name].check(path) for name, path in paths.items()]
    found, left_out = usable_metrics()
    with tempfile.TemporaryDirectory() as place:
        run = compare(list(paths.values()), place, Scorer(metrics=found), baselines=True)
    lacking = [f"- {name} is left out: {reason}" for name, reason in left_out.items()]
    report = "\n\n".join(
        [
            "# Five generators and three baselines",
            f"{run.content['studies']} studies. {describe_machine()}",
            "\n".join(f"- {line}" for line in sources),
            markdown(run.tables, run.signatures),
            "\n".join(lacking),
        ]
    )
    publish(report + "\n", options.out)


if __name__ == "__main__":
    main()
