"""Claim: on real reports and images, scores notice changes of meaning; few of them use the image.

Protocol. Every kind of `vlscore.perturb` changes the reports of the part "report" (real_data.py),
one change of each kind a report, seed 0; the original is the reference. These are the paper's
Tables 2 and 3 on the images of real_imperfect.py, with the encoders of real_encoders.py (seed 0).
The swap audit computes every score that looks at the image again with another study's image, and
with a black one. Metrics of texts score the same pairs. Intervals: 95 %, bootstrap over studies.

Run: python benchmarks/real_sensitivity.py DATA WORK [--out benchmarks/results/real_sensitivity.md]
"""

from pathlib import Path

import torch
from machine import describe_machine, publish
from phantom_sensitivity import noticed, pairs_of
from real_data import REPORT, RealData, open_encoder, parser_of
from real_joined import trained

from vlscore.data import Study, open_studies
from vlscore.metrics import Scorer

METRICS = ["vlscore", "cosine", "clipscore", "refclipscore", "image-gain-distance"]
METRICS += ["image-gain-cosine", "bleu-4", "rouge-l", "findings-f1"]


def images_of(table: Path) -> dict[str, Study]:
    """Return the images of each study of a part's table."""
    found = open_studies(table, needs={"image"})
    return {each.id: each for each in found if isinstance(each, Study)}


def main() -> None:
    options = parser_of(__doc__).parse_args()
    torch.set_num_threads(1)
    data = RealData(options.data, options.work)
    part = data.part(REPORT)
    reports = dict(zip(part.pairs.ids, part.pairs.texts, strict=True))
    images = images_of(data.table(REPORT))
    pairs = pairs_of(reports)
    parts = [
        "# What metrics notice, on real images",
        f"{len(pairs):,} changes of {len(reports)} studies. {describe_machine()}",
        data.describe(),
    ]
    for name, folders in trained(data.work).items():
        scorer = Scorer(open_encoder(folders[0]), metrics=METRICS)
        parts += [f"## With `{name}`", noticed(pairs, scorer, images)]
    publish("\n\n".join(parts) + "\n", options.out)


if __name__ == "__main__":
    main()
