"""Stores the bundled encoder's embeddings of the demonstration's studies: demo.npz.

python -m tests.encoders.data.make_demo, after the bundled weights were trained again.
"""

import json

import numpy as np

from tests.encoders.goldens import DATA
from vlscore._resources import resource_path
from vlscore.encoders import load_encoder


def main() -> None:
    folder = resource_path("weights", "phantom") / "demo"
    rows = (folder / "studies.jsonl").read_text(encoding="utf-8").splitlines()
    studies = [json.loads(row) for row in rows]
    encoder = load_encoder("phantom")
    np.savez_compressed(
        DATA / "demo.npz",
        checksum=np.array(encoder.checksum),
        image=encoder.encode_images([folder / study["image"] for study in studies]).numpy(),
        reference=encoder.encode_reports([study["reference"] for study in studies]).numpy(),
        candidate=encoder.encode_reports([study["candidate"] for study in studies]).numpy(),
    )


if __name__ == "__main__":
    main()
