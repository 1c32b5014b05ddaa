"""The built data set is what `make perturbations` makes of the lexicons as they are."""

import json
import re
import shlex

import pytest

from tests.conftest import REPOSITORY
from tests.perturb.contract import BUILT_KINDS
from vlscore.core import RECORD
from vlscore.data.phantom.phantom_pairs import write_dataset
from vlscore.evaluation import read_pairs
from vlscore.perturb import KINDS, Edit, apply_edits, perturb
from vlscore.perturb.run import PERTURBATIONS_FILE, SKIPPED_FILE

BUILT = REPOSITORY / "perturbations" / "phantom"


@pytest.fixture(scope="module")
def records():
    lines = (BUILT / PERTURBATIONS_FILE).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_it_is_made_again_byte_for_byte(tmp_path):
    (recipe,) = re.findall(r"-m vlscore\.data\.phantom (.*)$", _makefile(), re.MULTILINE)
    options = dict(zip(*[iter(shlex.split(recipe)[1:])] * 2, strict=True))
    table = write_dataset(
        tmp_path / "phantom",
        seed=int(options["--seed"]),
        count=int(options["--studies"]),
        split=options["--phrasings"],
        size=32,
    )
    made = perturb(table, tmp_path / "made", kinds=BUILT_KINDS).folder
    there, here = ({path.name for path in folder.iterdir()} for folder in (BUILT, made))
    assert there - {".lock"} == here - {".lock"}
    for name in (PERTURBATIONS_FILE, SKIPPED_FILE, RECORD):
        stale = f"{name} is not what the lexicons make; run: make perturbations"
        assert (made / name).read_bytes() == (BUILT / name).read_bytes(), stale


def _makefile() -> str:
    return (REPOSITORY / "Makefile").read_text(encoding="utf-8")


def test_every_kind_is_there_and_every_edit_right(records):
    assert {record["kind"] for record in records} == set(BUILT_KINDS) <= set(KINDS)
    for record in records:
        edits = [Edit(**edit) for edit in record["edits"]]
        assert apply_edits(record["original"], edits) == record["perturbed"]
        assert record["original"].split() != record["perturbed"].split()
    keys = {(r["study_id"], r["kind"], r["perturbed"]) for r in records}
    assert len(keys) == len(records)


def test_the_benchmark_reads_it(records):
    pairs = read_pairs(BUILT)
    columns = ["study_id", "kind", "perturbed"]
    assert pairs[columns].to_dict("records") == [{c: r[c] for c in columns} for r in records]
