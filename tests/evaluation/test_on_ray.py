"""On a Ray cluster the same results come out, and a lost process costs only time."""

import contextlib
import json
import os
import pickle
import signal
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.evaluation.samples import results_of, write_table
from vlscore._resources import resource_path
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.evaluation import evaluate, on_ray
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


class Local:
    """What `OnRay` asks of Ray, done at once in this process; everything travels as bytes."""

    class exceptions:
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            def __init__(self, cause):
                super().__init__(cause)
                self.cause = cause

    def __init__(self):
        self.killed = 0

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return {"CPU": 4.0}

    def put(self, value):
        return pickle.dumps(value)

    def get(self, future):
        if isinstance(future, Exception):
            raise future
        return pickle.loads(future)

    def kill(self, actor):
        self.killed += 1

    def _call(self, function, *arguments):
        # Whatever is given as a reference arrives as what it stands for.
        given = [pickle.loads(a) if isinstance(a, bytes) else a for a in arguments]
        given = pickle.loads(pickle.dumps(given))
        try:
            return pickle.dumps(function(*given))
        except Exception as error:
            return self.exceptions.RayTaskError(error)

    def remote(self, **options):
        def wrapped(member):
            if not isinstance(member, type):
                return SimpleNamespace(remote=lambda *a: self._call(member, *a))

            def make(*arguments):
                made = member(*pickle.loads(pickle.dumps(arguments)))
                methods = {
                    name: SimpleNamespace(remote=partial(self._call, getattr(made, name)))
                    for name in ("facts", "compute")
                }
                return SimpleNamespace(**methods)

            return SimpleNamespace(remote=make)

        return wrapped


@pytest.fixture
def local(monkeypatch):
    ray = Local()
    monkeypatch.setattr(on_ray, "_ray", lambda: ray)
    return ray


def test_decoded_elsewhere_and_embedded_elsewhere_the_results_are_the_same(table, local, tmp_path):
    evaluate(table, tmp_path / "one", make_scorer())
    elsewhere = OnRay(table, make_scorer(), make_scorer)
    result = evaluate(table, tmp_path / "ray", make_scorer(), elsewhere=elsewhere)
    assert (result.summary.rows, result.summary.failed) == (72, 2)
    assert results_of(tmp_path / "ray") == results_of(tmp_path / "one")
    # One actor for two processors, and none of them stays.
    assert local.killed == 2


def test_texts_alone_are_decoded_nowhere(table, local, tmp_path):
    def make():
        return Scorer(metrics="bleu-1,cider-d")

    evaluate(table, tmp_path / "one", make())
    evaluate(table, tmp_path / "ray", make(), elsewhere=OnRay(table, make(), texts_scorer))
    assert results_of(tmp_path / "ray") == results_of(tmp_path / "one")


def texts_scorer():
    return Scorer(metrics="bleu-1,cider-d")


def other_scorer():
    return make_scorer(C=9.0)


def broken_scorer():
    raise InvalidSetting("no such weights here")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (other_scorer, "actor 0 does not do what process 0 does: metrics"),
        (broken_scorer, "no such weights here"),
    ],
)
def test_actors_that_cannot_do_the_same_are_refused(table, local, tmp_path, recipe, message):
    elsewhere = OnRay(table, make_scorer(), recipe, actors=1)
    with pytest.raises(InvalidSetting, match=message):
        evaluate(table, tmp_path / "out", make_scorer(), elsewhere=elsewhere)


@pytest.fixture(scope="module")
def cluster():
    """Ray on this machine, with three processors whatever there are."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'vlscore[ray]'")
    own = (
        {}
        if "RAY_ADDRESS" in os.environ
        else {
            "num_cpus": 3,
            "num_gpus": 0,
            "include_dashboard": False,
        }
    )
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:  # Ray gives its own processes half a minute, and no more
        if "timed out during startup" not in str(error):
            raise
        pytest.skip("this machine is too busy for Ray to start in time")
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
