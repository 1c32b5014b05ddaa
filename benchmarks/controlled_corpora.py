"""Claim: metrics of shared words hardly tell sentences that agree on a finding from others.

Protocol: `vlscore controlled` on the reports of the Indiana collection (data.py): its distinct
sentences, grouped by our own rules for six observations of CheXpert; areas under the ROC curve, as
docs/controlled.md says, with the command's own sampling (50 references with 20 candidates each,
seed 0). Metrics that read reports by the rules which grouped the sentences are named as told the
answer. `cosine` is that of the bundled encoder, which was trained on synthetic reports and has
never seen these. Matrices are left out for length. METEOR runs only where it is installed.

Run: python benchmarks/controlled_corpora.py REPORTS
         [--out benchmarks/results/controlled_corpora.md]
"""

import argparse
import tempfile
import warnings
from pathlib import Path

from data import INDIANA_REPORTS
from machine import describe_machine, publish

from vlscore.data import open_reports
from vlscore.errors import DemonstrationEncoderWarning
from vlscore.evaluation import controlled
from vlscore.metrics import Scorer, usable_metrics
from vlscore.stats import markdown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", type=Path, help="the file named in data.py")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    source = INDIANA_REPORTS.check(options.reports)
    warnings.simplefilter("ignore", DemonstrationEncoderWarning)
    metrics = [m for m in usable_metrics()[0] if m.uses_reference]
    scorer = Scorer(metrics=[*metrics, "cosine"])
    with tempfile.TemporaryDirectory() as place:
        run = controlled(open_reports(options.reports), place, scorer)
    report = "\n\n".join(
        [
            "# Sentences whose meaning is known",
            f"{run.record['sentences']} distinct sentences, labelled by "
            f"{run.record['labelled_by']}. {describe_machine()}",
            source,
            markdown(run.tables[: run.record["areas"]], run.signatures.values()),
        ]
    )
    publish(report, options.out)


if __name__ == "__main__":
    main()
