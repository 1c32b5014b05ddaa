"""Stores the bundled encoders' embeddings of the demonstration's studies: demo*.npz.

python -m tests.encoders.data.make_demo [phantom-judging], after its weights were trained again.
"""

import sys

import numpy as np

from tests.demonstration import demo_rows
from tests.encoders.goldens import DATA
from vlscore.encoders import load_encoder


def main() -> None:
    studies = demo_rows()
    name = sys.argv[1] if len(sys.argv) > 1 else "phantom"
    encoder = load_encoder(name)
    np.savez_compressed(
        DATA / {"phantom": "demo.npz", "phantom-judging": "demo_judging.npz"}[name],
        checksum=np.array(encoder.checksum),
        image=encoder.encode_images([study["image"] for study in studies]).numpy(),
        reference=encoder.encode_reports([study["reference"] for study in studies]).numpy(),
        candidate=encoder.encode_reports([study["candidate"] for study in studies]).numpy(),
    )


if __name__ == "__main__":
    main()
