"""The built data set is what `make perturbations` makes of the lexicons as they are.

A new word that no report of the data set holds changes nothing but the lexicons' digest in
run.json, which stays that of the day when the data set was made.
"""

import json
import re
import shlex

from tests.conftest import REPOSITORY
from tests.perturb.contract import BUILT_KINDS
from vlscore.core import RECORD
from vlscore.data.phantom.phantom_pairs import write_dataset
from vlscore.perturb import PerturbationSettings, perturb
from vlscore.perturb.perturbed_table import PERTURBATIONS_FILE, SKIPPED_FILE

BUILT = REPOSITORY / "perturbations" / "phantom"


def test_it_is_made_again_byte_for_byte(tmp_path):
    (recipe,) = re.findall(r"-m vlscore\.data\.phantom (.*)$", _makefile(), re.MULTILINE)
    options = dict(zip(*[iter(shlex.split(recipe)[1:])] * 2, strict=True))
    table = write_dataset(
        tmp_path / "phantom",
        seed=int(options["--seed"]),
        count=int(options["--count"]),
        split=options["--split"],
        size=32,
    )
    made = perturb(table, tmp_path / "made", PerturbationSettings(kinds=BUILT_KINDS)).folder
    there, here = ({path.name for path in folder.iterdir()} for folder in (BUILT, made))
    assert there - {".lock"} == here - {".lock"}
    stale = "it is not what the lexicons make; run: make perturbations"
    for name in (PERTURBATIONS_FILE, SKIPPED_FILE):
        assert (made / name).read_bytes() == (BUILT / name).read_bytes(), f"{name}: {stale}"
    records = [json.loads((folder / RECORD).read_text()) for folder in (made, BUILT)]
    for record in records:
        del record["lexicons_sha256"], record["key"]["lexicons_sha256"]
    assert records[0] == records[1], f"{RECORD}: {stale}"


def _makefile() -> str:
    return (REPOSITORY / "Makefile").read_text(encoding="utf-8")
