"""Cuts this folder's slices out of the whole material of goldens.

python -m tests.encoders.data.make FOLDER, where FOLDER holds inputs_public, vocab, and one folder
an encoder with its manifests and goldens. The goldens were made by the encoders' authors' code on
pseudo-random weights; SPEC.md of that material says how. Kept are one image of four, three reports
of six and, of long vectors, every fourth number.
"""

import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.encoders.goldens import DATA, SALT, STEP, VOCABULARIES

IMAGE = 2
TEXTS = (0, 2, 3)
ENCODERS = (
    "biomedclip", "biovil", "biovil_t", "chexzero", "convirt", "convirt_mgca", "gloria", "limitr",
    "medclip_resnet", "medclip_vit", "mgca_resnet50", "mgca_vit",
)  # fmt: skip
# Words of the other tests of these encoders.
_MORE_WORDS = (
    "lungs", "are", "clear", "cl", "##ear", "##are", "lung", "##s", "normal", "no", "effusion",
    "large",
)  # fmt: skip
# The vectors that tests compare; those of MedCLIP's reports are the ones that depend on no batch.
_VECTORS = {
    "image": ("img_global",),
    "image_raw": ("img_global_raw",),
    "report": ("txt_global_single", "txt_global"),
    "report_raw": ("txt_global_raw",),
}


def manifests_of(folder: Path) -> dict[str, list[list[Any]]]:
    """Key, shape and type of every tensor of the authors' files, by manifest."""
    return {
        path.name: [
            [entry["key"], entry["shape"], entry["dtype"]]
            for entry in json.loads(path.read_text(encoding="utf-8"))["tensors"]
        ]
        for path in sorted(folder.glob("manifest*.json"))
    }


def slices_of(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / f"golden_{SALT}.npz") as stored:
        whole = dict(stored)
    kept = whole.get("text_index", np.arange(6)).tolist()
    rows = [kept.index(text) for text in TEXTS]
    found = {
        "pix_sha256": whole["pix_sha256"][[IMAGE]],
        "input_ids": whole["input_ids"][rows].astype(np.int32),
    }
    if "attention_mask" in whole:
        found["attention_mask"] = whole["attention_mask"][rows].astype(np.int8)
    for name, sources in _VECTORS.items():
        source = next((key for key in sources if key in whole), None)
        is_raw_used = not name.endswith("raw") or folder.name == "convirt_mgca"
        if source is not None and is_raw_used:
            chosen = [IMAGE] if name.startswith("image") else rows
            vectors = whole[source][chosen]
            found[name] = vectors[:, ::STEP] if vectors.shape[1] > 128 else vectors
    return found


def pieces_of(vocabulary: Path, ids: set[int]) -> dict[str, Any]:
    """The word pieces that the goldens need, by number, and how many there are in all."""
    lines = vocabulary.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    wanted = [
        [number, piece]
        for number, piece in enumerate(lines)
        if number in ids or len(piece.removeprefix("##")) == 1 or piece in _MORE_WORDS
        if number in ids or piece.isascii()
    ]
    return {"size": len(lines), "pieces": wanted}


def main(material: Path) -> None:
    texts = json.loads((material / f"inputs_{SALT}" / "texts.json").read_text(encoding="utf-8"))
    arrays: dict[str, np.ndarray] = {}
    ids: dict[str, set[int]] = {name: set(range(5)) | {100, 101, 102, 103} for name in VOCABULARIES}
    for name in ENCODERS:
        for key, value in slices_of(material / name).items():
            arrays[f"{name}/{key}"] = value
        with np.load(material / name / f"golden_{SALT}.npz") as stored:
            for vocabulary, encoders in VOCABULARIES.items():
                if name in encoders:
                    ids[vocabulary] |= set(stored["input_ids"].ravel().tolist())
    described = {
        "texts": [texts[number] for number in TEXTS],
        "manifests": {name: manifests_of(material / name) for name in ENCODERS},
        "vocabularies": {
            name: pieces_of(material / "vocab" / name / "vocab.txt", ids[name])
            for name in VOCABULARIES
        },
    }
    content = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
    (DATA / "described.json.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
    np.savez_compressed(DATA / "goldens.npz", **arrays)
    (DATA / "film.png").write_bytes((material / f"inputs_{SALT}" / f"img{IMAGE}.png").read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
