"""Claims: a second run over the same studies costs almost nothing, a second generator its texts.

Protocol. STUDIES studies of full-size grey JPEGs (3056 x 2544, made up), reports drawn from the
phantom's grammar, each distinct; LIMITR's layout with random weights, written to a file and loaded
through `load_encoder`, as time does not depend on the weights' values. One process after another,
each timed as a whole by the processor's time of it and of its decoding process, start and loading
included, into a new folder: cold (an empty cache), warm (the same command), second (other
candidates), and without a cache. Rounds are interleaved; medians. Checked: the result files of cold
and warm are equal byte for byte, and the counters of run.json.

Run: python benchmarks/cache_warm.py --vocabulary VOCAB [--studies 48] [--out FILE]
     VOCAB: Bio_ClinicalBERT's vocab.txt
"""

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from image_preprocessing import chest, jpeg
from machine import describe_machine, publish, timed_command

from vlscore.data import corrupt, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.encoders import WordPieceTokenizer
from vlscore.encoders.models.limitr import LimitrEncoder

ROUNDS, SEED = 3, 12


def write_checkpoint(folder: Path, vocabulary: Path) -> Path:
    torch.manual_seed(SEED)
    shutil.copyfile(vocabulary, folder / "vocab.txt")
    encoder = LimitrEncoder(WordPieceTokenizer.from_file(vocabulary))
    path = folder / "limitr.ckpt"
    torch.save({"state_dict": {f"limitr.{k}": v for k, v in encoder.state_dict().items()}}, path)
    return path


def write_tables(folder: Path, studies: int) -> dict[str, Path]:
    rng = np.random.default_rng(SEED)
    scenes = [scene_at(SEED, k).findings for k in range(studies)]
    for k in range(studies):
        (folder / f"{k}.jpg").write_bytes(jpeg(chest(k)))
    references = [f"{write_report(rng, scene)} Study {k}." for k, scene in enumerate(scenes)]
    tables = {}
    for generator in ("first", "second"):
        tables[generator] = folder / f"{generator}.jsonl"
        with tables[generator].open("w", encoding="utf-8") as stream:
            for k, scene in enumerate(scenes):
                candidate = f"{write_report(rng, corrupt(rng, scene, 1))} By {generator} of {k}."
                row = {"id": k, "image": f"{k}.jpg", "reference": references[k]}
                stream.write(json.dumps({**row, "candidate": candidate}) + "\n")
    return tables


def work_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "run.json").read_text())["work"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--studies", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint = write_checkpoint(folder, options.vocabulary)
        tables = write_tables(folder, options.studies)
        times: dict[str, list[tuple[float, ...]]] = {}
        for turn in range(options.rounds):
            cache = folder / f"cache{turn}"
            for run, table, extra in (
                ("without a cache", "first", ("--no-cache",)),
                ("cold", "first", ()),
                ("warm", "first", ()),
                ("second generator", "second", ()),
            ):
                out = folder / f"{run}{turn}"
                command = ["-m", "vlscore", "evaluate", tables[table], "--out", out, "--quiet"]
                command += ["--encoder", "limitr", "--weights", checkpoint, "--workers", 1, *extra]
                times.setdefault(run, []).append(timed_command(command, cache)[::-1])
            cold, warm = (folder / f"{run}{turn}" for run in ("cold", "warm"))
            for file in ("scores.parquet", "summary.json", "details.parquet", "failures.csv"):
                if (cold / file).read_bytes() != (warm / file).read_bytes():
                    raise SystemExit(f"{file} of the warm run differs")
        held = sum(file.stat().st_size for file in (folder / "cache0").iterdir())
        cells = {
            run: [statistics.median(column) for column in zip(*found, strict=True)]
            for run, found in times.items()
        }
        lines = [
            "# A second run with the cache",
            "",
            describe_machine(),
            "",
            f"{options.studies} studies of full-size JPEGs, LIMITR's layout, medians of "
            f"{options.rounds} rounds; whole commands, start and loading of the checkpoint "
            "included. Times of the clock are taken beside other work where the load says so.",
            "",
            "| run | s of the processor | of cold | s of the clock | decoded | images embedded "
            "| reports embedded |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for run, (spent, clock) in cells.items():
            work = work_of(folder / f"{run}0")
            lines.append(
                f"| {run} | {spent:.1f} | {spent / cells['cold'][0]:.2f} | {clock:.1f} "
                f"| {work['images_decoded']} | {work['images_embedded']} "
                f"| {work['reports_embedded']} |"
            )
        lines += [
            "",
            "Result files of cold and warm runs are equal byte for byte. The cache holds "
            f"{held / 2**20:.1f} MiB after the second generator.",
        ]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
