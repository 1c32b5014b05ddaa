"""Read many damaged copies of indexes whose digests are right; a process that may die of it.

Run as a program, `mutants.py COUNT INDEX...`: prints, as json, a list with one item an index, how
many of its copies were read and refused.
"""

import collections
import json
import random
import shutil
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from vlscore.errors import VLScoreError
from vlscore.retrieval import (
    ApproximateIndex,
    Corpus,
    Oracle,
    load_index,
    read_manifest,
    verify_index,
)
from vlscore.retrieval.index_folder import MANIFEST, record_file, write_manifest

NUMBERS = (0, 1, -1, 2**31 - 1, 2**31, 2**40, 2**62, 41, 1_000)
WORDS = ("null", "-1", "1e400", "[]", "{}", '"\\ud800"', '"\\u001b[2J"', "true", "9" * 30, '"../x"')


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """Bytes, whole numbers or a stretch changed, mostly where headers and footers are."""
    content = bytearray(raw)
    for _ in range(chance.choice([1, 1, 2, 5])):
        size = len(content)
        if not size:
            break
        place = chance.choice(
            [
                chance.randrange(min(size, 600)),
                size - 1 - chance.randrange(min(size, 900)),
                chance.randrange(size),
            ]
        )
        match chance.randrange(5):
            case 0:
                content[place] = chance.randrange(256)
            case 1:
                content[place] ^= 1 << chance.randrange(8)
            case 2:
                width = chance.choice([2, 4, 8])
                number = chance.choice(NUMBERS) % 256**width
                content[place : place + width] = number.to_bytes(width, "little")
            case 3:
                del content[place : place + chance.choice([1, 8, 64])]
            case 4:
                content = content[: place + 1]
    return bytes(content)


def mutated_manifest(raw: bytes, chance: random.Random) -> bytes:
    """One value replaced by what does not belong there."""
    text = raw.decode()
    values = [place for place, letter in enumerate(text) if letter == ":"]
    place = chance.choice(values) + 1
    end = min(k for k in (text.find(",", place), text.find("\n", place)) if k > 0)
    return (text[:place] + chance.choice(WORDS) + text[end:]).encode()


def read_all(folder: Path) -> None:
    """What commands read of an index: everything, and an approximate search."""
    load_index(folder, check=False)
    index = verify_index(folder)
    if "approximate" in index.manifest.files:
        corpus = Corpus(index.vectors)
        approximate = ApproximateIndex(index.file("approximate"), corpus)
        rows = index.vectors[:5].astype(np.float64)
        Oracle(corpus, C=1.0, approximate=approximate).search(rows + 0.1, rows, k=3)


def read_mutants(original: Path, count: int) -> collections.Counter[str]:
    """Read damaged copies of one index; returns how often each outcome occurred."""
    manifest = read_manifest(original)
    read_all(original)
    results: collections.Counter[str] = collections.Counter()
    folder = original.parent / "mutant"
    names = [record.name for record in manifest.files.values()]
    for seed in range(count):
        chance = random.Random(seed)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(original, folder)
        name = (*names, MANIFEST)[seed % (len(names) + 1)]
        print(original, seed, name, file=sys.stderr, flush=True)
        raw = (folder / name).read_bytes()
        if name == MANIFEST:
            change = chance.choice([mutated, mutated_manifest])
            (folder / name).write_bytes(change(raw, chance))
        else:
            (folder / name).write_bytes(mutated(raw, chance))
            files = {role: record_file(folder / r.name) for role, r in manifest.files.items()}
            write_manifest(folder, replace(manifest, files=files))
        try:
            read_all(folder)
            results["read"] += 1
        except VLScoreError as error:
            results[type(error).__name__ if str(error).isprintable() else repr(error)] += 1
    return results


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps([read_mutants(Path(each), int(sys.argv[1])) for each in sys.argv[2:]]))
