"""The judge on phantoms, on changed reports, and on what radiologists rated.

Of RadPref only the development cases are read here: a test that looked at the others on every run
would tune the tables to them.
"""

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from vlscore.data import corrupt, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.metrics import SCORES, RuleJudge
from vlscore.perturb import perturb_report
from vlscore.stats import kendall_tau_b

REPOSITORY = Path(__file__).parents[3]
RADPREF = REPOSITORY.parent / "shared" / "data" / "radpref"
JUDGE = RuleJudge()


@pytest.fixture(scope="module")
def benchmark():
    """The module benchmarks/judge_rules.py."""
    script = REPOSITORY / "benchmarks" / "judge_rules.py"
    sys.path.insert(0, str(script.parent))
    spec = importlib.util.spec_from_file_location("judge_rules", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.path.remove(str(script.parent))
    return module


def test_errors_of_phantoms_are_found_in_other_phrasings(benchmark):
    right = wrong = 0
    for place in range(120):
        scene = scene_at(771, place)
        rng = np.random.default_rng([771, place])
        stated = corrupt(rng, scene.findings, int(rng.integers(0, 5)))
        reference = write_report(rng, scene.findings, split="held_out")
        candidate = write_report(rng, stated, split="held_out")
        true = benchmark.phantom_errors(stated, scene.findings)
        found = Counter(
            (str(e.category), benchmark.PHANTOM_KINDS.get(e.finding, e.finding))
            for e in JUDGE.judge(candidate, reference).errors
        )
        right += (found & true).total()
        wrong += (found - true).total() + (true - found).total()
    assert right > 200
    assert 2 * right / (2 * right + wrong) >= 0.95


def test_a_change_of_a_phantom_report_is_named_by_its_category():
    right = total = 0
    for place in range(60):
        scene = scene_at(772, place)
        report = write_report(np.random.default_rng([772, place]), scene.findings)
        for change in perturb_report(report):
            named = {str(e.category) for e in JUDGE.judge(change.perturbed, report).errors}
            right += named == ({str(change.category)} if change.category else set())
            total += 1
    assert total > 200
    assert right / total >= 0.9


needs_radpref = pytest.mark.skipif(not RADPREF.is_dir(), reason=f"{RADPREF} is absent")


@needs_radpref
def test_ratings_of_the_development_cases_are_followed(benchmark):
    rows = benchmark.read_radpref(RADPREF)[: 2 * benchmark.DEVELOPMENT_CASES]
    judged = [JUDGE.judge(r.candidate, r.reference, r.patient) for r in rows]
    ratings = [np.mean(r.ratings) for r in rows]
    counts = [np.mean(r.counts) for r in rows]
    assert kendall_tau_b([SCORES["rating"](j) for j in judged], ratings) >= 0.70
    assert kendall_tau_b([j.count for j in judged], counts) >= 0.75


@needs_radpref
def test_the_orders_of_radjudge_hold(benchmark):
    table = benchmark.radjudge_table(RADPREF / "radjudge.json", JUDGE)
    line = next(line for line in table.splitlines() if line.startswith("| judge"))
    assert int(line.split("|")[-2]) >= 27
