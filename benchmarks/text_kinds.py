"""Claim: of each kind of fault that was found with tables and texts, every tried input is now
treated rightly, or refused.

Protocol: each kind is a family of inputs made here. Joins: two files of four studies in another
order, whose common key has one of many names, joined by `vlscore pair`; a study that gets another
study's candidate is wrong, a refusal is right. Lists: what is no list of texts, in place of the
candidates of `metrics.compute`; a number is wrong. Completions: forms that no trainer is known to
send, given to `ReportReward`; a completion that gets a reward and is not counted as failed is
wrong. Rounding: samples that are equal, or tied, in exact arithmetic but not in floats; a p value
that differs from that of the exact numbers is wrong. With --before, another checkout of this
package does the same, in a process of its own.

Run: python benchmarks/text_kinds.py [--before CHECKOUT] [--out benchmarks/results/text_kinds.md]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from machine import describe_machine, publish

from vlscore.stats import TextTable

REPOSITORY = Path(__file__).resolve().parent.parent
# The same program runs in both checkouts: it prints kind -> [inputs, wrong, refused].
_TRY = """
import csv, json, os, subprocess, sys, tempfile, warnings
from fractions import Fraction
import numpy as np
warnings.simplefilter("ignore")
found = {}

def count(kind, outcome):
    row = found.setdefault(kind, [0, 0, 0])
    row[0] += 1
    row[1] += outcome == "wrong"
    row[2] += outcome == "refused"

KEYS = ["ID", "Id", "Study_ID", "study id", "StudyID", "studyid", "dicom_id", "DICOM_ID",
        "image_id", "uid", "UID", "filename", "file_name", "image", "Path_frontal",
        "StudyInstanceUID", "accession", "report_id",
        "subject_id", "case", "exam", "key", "name", "Unnamed: 0"]
STUDIES = ["x3", "x1", "x4", "x2"]
with tempfile.TemporaryDirectory() as folder:
    for number, key in enumerate(KEYS):
        texts = {s: f"Reference of {s}." for s in STUDIES}
        paths = []
        for name, column in (("r", "reference"), ("c", "candidate")):
            rows = STUDIES if name == "r" else sorted(STUDIES)
            path = os.path.join(folder, f"{name}{number}.csv")
            with open(path, "w", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerow([key, column])
                writer.writerows([s, f"{column} of {s}"] for s in rows)
            paths.append(path)
        out = os.path.join(folder, f"o{number}.csv")
        from vlscore.cli import command_line
        import contextlib, io
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = command_line(["pair", *paths, "--out", out])
        if status != 0 or not os.path.exists(out):
            count("joins by a key of another name", "refused")
            continue
        with open(out, newline="") as stream:
            rows = list(csv.DictReader(stream))
        pairs = [(r["reference"].split()[-1], r["candidate"].split()[-1]) for r in rows]
        right = len(pairs) == 4 and all(one == other for one, other in pairs)
        count("joins by a key of another name", "right" if right else "wrong")

import pandas
from vlscore.metrics import compute
references = ["Clear.", "Edema."]
LISTS = [{"a": ["Clear."], "b": ["Edema."]}, {"a": "Clear.", "b": "Edema."}, {"Clear.", "Edema."},
         frozenset(references), pandas.DataFrame({"c": references}), {"c": references}.keys(),
         pandas.DataFrame({"c": references, "d": references}), np.array([references, references]),
         np.array([["Clear."], ["Edema."]]), {"c": references}]
for value in LISTS:
    try:
        compute("rouge-l", value, references)
        count("what is no list of reports", "wrong")
    except Exception:
        count("what is no list of reports", "refused")

from vlscore.integrations.grpo_reward import ReportReward
FORMS = [{"role": "assistant", "content": "Edema."}, {"text": "Edema."}, ["Edema."], b"Edema.", 7,
         [{"from": "gpt", "value": "Edema."}], {"content": ["Edema."]}, [["Edema."]], True, 0.5,
         {"choices": [{"text": "Edema."}]}]
for form in FORMS:
    try:
        reward = ReportReward("rouge-l")
        reward(prompts=[""], completions=[form], reference=["Edema."])
        failed = getattr(reward, "failures", None)
        count("completions of an unknown form", "refused" if failed else "wrong")
    except Exception:
        count("completions of an unknown form", "refused")

from vlscore.stats import paired_p_value
TENTHS = [([3] * 6, [1, 2]), ([7] * 6, [3, 4]), ([6] * 7, [1, 5]), ([11] * 6, [4, 7]),
          ([13] * 8, [6, 7]), ([9] * 6, [2, 7]), ([12] * 6, [5, 7]), ([8] * 9, [1, 7])]
for whole, parts in TENTHS:
    sums = [sum(part / 10 for part in parts)] * len(whole)
    p = paired_p_value([each / 10 for each in whole], sums)
    count("equal except for rounding", "right" if p == 1 else "wrong")
print("FOUND " + json.dumps(found))
"""


def tried(checkout: Path) -> dict[str, list[int]]:
    """Return kind -> numbers of inputs, of wrong results and of refusals, in a checkout."""
    done = subprocess.run(
        [sys.executable, "-c", _TRY],
        env={**os.environ, "PYTHONPATH": str(checkout), "VLSCORE_CACHE": "off"},
        capture_output=True,
        text=True,
        cwd=checkout,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    if not lines:
        raise SystemExit(f"{checkout}: {done.stderr[-2000:]}")
    found: dict[str, list[int]] = json.loads(lines[-1].removeprefix("FOUND "))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    now = tried(REPOSITORY)
    before = tried(arguments.before.resolve()) if arguments.before else {}
    rows = tuple(
        (kind, str(n), str(before[kind][1]) if kind in before else "-", str(wrong), str(refused))
        for kind, (n, wrong, refused) in now.items()
    )
    table = TextTable("", ("kind", "inputs", "wrong before", "wrong now", "refused now"), rows)
    publish(
        f"# Kinds of faults with tables and texts\n\n{describe_machine()}\n\n{table.markdown()}",
        arguments.out,
    )


if __name__ == "__main__":
    main()
