"""Reports of two generators for phantom studies: the bundled demonstration.

`right` states every finding of the scene, in phrasings that no reference uses. `fluent` repeats
most words of the reference, but with errors. Both are extremes, drawn by a rule and a seed:

    python -m vlscore.data.phantom.demonstration FOLDER --count 100 --seed 2026
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from cyclopts import run

from vlscore.core import atomic_write
from vlscore.data.phantom.phantom_pairs import PhantomStudy, scene_at, study_record, write_png
from vlscore.data.phantom.render import render
from vlscore.data.phantom.report_errors import add_finding, count_errors
from vlscore.data.phantom.scene import KINDS, PhantomFinding, write_report

# Generator -> its table; the commands' examples read the first.
TABLES = {"right": "studies.jsonl", "fluent": "fluent.jsonl"}
ERRORS = "errors.csv"
# The bundled encoders shrink images to this side.
_SIDE = 128


def sample_generators(seed: int, count: int) -> Iterator[dict[str, PhantomStudy]]:
    """Draw `count` studies; yield generator -> the study with its report.

    Study k of a seed is the same whatever `count` is. The reference has "train" phrasings.

    - `right`: all findings of the scene, in "held_out" phrasings.
    - `fluent`: the findings that `mistaken` returns, in "train" phrasings. They are drawn with the
      seed of the reference's: most words are the same.
    """
    for position in range(count):
        scene = scene_at(seed, position)
        of_reference, of_right, of_errors = ([seed, position, stream] for stream in (1, 2, 3))
        wrong = mistaken(np.random.default_rng(of_errors), scene.findings)
        reference = write_report(np.random.default_rng(of_reference), scene.findings)
        right = write_report(np.random.default_rng(of_right), scene.findings, split="held_out")
        fluent = write_report(np.random.default_rng(of_reference), wrong)
        yield {
            name: PhantomStudy(
                scene, reference, text, claimed, count_errors(claimed, scene.findings)
            )
            for name, text, claimed in (("right", right, scene.findings), ("fluent", fluent, wrong))
        }


def mistaken(
    rng: np.random.Generator, findings: tuple[PhantomFinding, ...]
) -> tuple[PhantomFinding, ...]:
    """Give each finding another side, zone or severity; where none has any, invent a finding."""
    wrong = []
    for finding in findings:
        kind = KINDS[finding.kind]
        others = [replace(finding, side=side) for side in kind.sides if side != finding.side]
        others += [replace(finding, zone=zone) for zone in kind.zones if zone != finding.zone]
        others += [replace(finding, severity=s) for s in kind.severities if s != finding.severity]
        wrong.append(others[int(rng.integers(len(others)))] if others else finding)
    return tuple(wrong) if tuple(wrong) != findings else add_finding(rng, findings)


def write_demonstration(folder: str | Path, *, seed: int, count: int) -> None:
    """Write `count` studies: a table for each generator, their numbers of errors, and images.

    The tables have the columns of `write_dataset`; errors.csv has system, id and errors. Images are
    halved to 128 pixels and 8 bits, a few kilobytes each. The same arguments give the same bytes.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    studies = {
        f"phantom-{seed}-{position:05d}": each
        for position, each in enumerate(sample_generators(seed, count))
    }
    for id, each in studies.items():
        picture = render(each["right"].scene, 2 * _SIDE)
        halved = picture.reshape(_SIDE, 2, _SIDE, 2).mean(axis=(1, 3))
        write_png(folder / f"{id}.png", np.rint(halved / 16).clip(0, 255).astype(np.uint8))
    for name, table in TABLES.items():
        with atomic_write(folder / table) as stream:
            for id, each in studies.items():
                stream.write(json.dumps(study_record(id, f"{id}.png", each[name])) + "\n")
    with atomic_write(folder / ERRORS) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("system", "id", "errors"))
        for name in TABLES:
            writer.writerows((name, id, each[name].errors.total) for id, each in studies.items())


if __name__ == "__main__":
    run(write_demonstration)
