"""On a Ray cluster the same results come out, and a lost process costs only time."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.evaluation.samples import results_of, write_table
from vlscore._resources import resource_path
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.evaluation import evaluate
from vlscore.evaluation.on_ray import OnRay
from vlscore.scorer import Scorer
from vlscore.studies import open_studies

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"


def make_scorer(C=None):
    """In this process and in the actors."""
    metrics = "vlscore,bleu-1"
    return Scorer("phantom", device="cpu", metrics=metrics, batch_size=1, C=C, cache=False)


@pytest.fixture
def table(tmp_path):
    """The bundled studies a few times over; two rows cannot be used."""
    records = [json.loads(line) for line in DEMO.read_text().splitlines()]
    rows = [
        record | {"id": f"{turn}-{record['id']}", "image": str(DEMO.parent / record["image"])}
        for turn in range(6)
        for record in records
    ]
    rows[5]["image"] = "absent.dcm"
    rows[20]["reference"] = ""
    return open_studies(write_table(tmp_path / "studies.jsonl", rows))


def test_without_ray_it_is_said_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=r"pip install 'vlscore\[ray\]'"):
        OnRay(table, make_scorer(), make_scorer)


@pytest.fixture(scope="module")
def cluster():
    """Ray on this machine, with two processors whatever there are."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'vlscore[ray]'")
    ray.init(
        num_cpus=3,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"OMP_NUM_THREADS": "1"}},
    )
    yield ray
    ray.shutdown()


@pytest.fixture
def one_thread():
    """As many threads here as in an actor: with others sums are rounded otherwise."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pids(name):
    """Processes of Ray of that name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if name in (folder / "cmdline").read_text():
                found.append(int(folder.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_the_results_are_those_of_one_process_even_where_an_actor_is_killed(
    table, cluster, one_thread, tmp_path
):
    evaluate(table, tmp_path / "one", make_scorer())
    killed = []

    def kill_an_actor(done, failed):
        if done and not killed:
            (victim, *_) = pids("ray::_Actor")
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    elsewhere = OnRay(table, make_scorer(), make_scorer, actors=2)
    result = evaluate(
        table, tmp_path / "ray", make_scorer(), elsewhere=elsewhere, on_progress=kill_an_actor
    )
    assert killed
    assert (result.summary.rows, result.summary.failed) == (72, 2)
    assert results_of(tmp_path / "ray") == results_of(tmp_path / "one")


def test_actors_that_make_another_scorer_are_refused(table, cluster, tmp_path):
    elsewhere = OnRay(table, make_scorer(), lambda: make_scorer(C=9.0), actors=1)
    with pytest.raises(InvalidSetting, match="actor 0 does not do what process 0 does: metrics"):
        evaluate(table, tmp_path / "out", make_scorer(), elsewhere=elsewhere)
