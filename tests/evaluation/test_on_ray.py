"""On a Ray cluster the same results come out, and a lost process costs only time."""

import contextlib
import json
import os
import pickle
import shutil
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.doubles import KeptEncoder
from tests.evaluation.samples import BATCH, CHUNK, make_table, results_of, write_table
from vlscore.cli.command_line import app
from vlscore.core import resource_path
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.evaluation import OnRay, evaluate
from vlscore.evaluation.scoring import parallel as on_ray
from vlscore.evaluation.scoring.executor import Job
from vlscore.evaluation.scoring.parallel import ChunkActor, written_job
from vlscore.metrics import Scorer

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"
DONE = ("images_decoded", "images_embedded", "reports_embedded")


def make_scorer(C=None, cache=False):
    """In this process and in the actors."""
    metrics = "vlscore,bleu-1"
    return Scorer("phantom", device="cpu", metrics=metrics, batch_size=1, C=C, cache=cache)


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

    def get(self, future):
        if isinstance(future, Exception):
            raise future
        return pickle.loads(future)

    def kill(self, actor):
        self.killed += 1

    def _call(self, function, *arguments):
        given = pickle.loads(pickle.dumps(arguments))
        try:
            return pickle.dumps(function(*given))
        except Exception as error:
            return self.exceptions.RayTaskError(error)

    def remote(self, **options):
        def wrapped(member):
            def make(*arguments):
                made = member(*pickle.loads(pickle.dumps(arguments)))
                methods = {
                    name: SimpleNamespace(remote=partial(self._call, getattr(made, name)))
                    for name in ("facts", "chunk")
                }
                return SimpleNamespace(**methods)

            return SimpleNamespace(remote=make)

        return wrapped


@pytest.fixture
def local(monkeypatch):
    ray = Local()
    monkeypatch.setattr(on_ray, "_ray", lambda: ray)
    return ray


def test_without_a_cache_the_results_are_the_same(table, local, tmp_path):
    one = evaluate(table, tmp_path / "one", make_scorer())
    elsewhere = OnRay(table, scorer := make_scorer(), make_scorer, workers=0)
    result = evaluate(table, tmp_path / "ray", scorer, elsewhere=elsewhere)
    assert (result.summary.rows, result.summary.failed) == (72, 2)
    assert results_of(tmp_path / "ray") == results_of(tmp_path / "one")
    assert work_of(result) == work_of(one)
    # One actor for two processors, and none of them stays.
    assert local.killed == 2


def work_of(result):
    return json.loads(result.record.read_text())["work"]


def kept_scorer(encoder="kept encoder", **options):
    """Its embeddings depend on what is computed together: any other batch shows."""
    return Scorer(KeptEncoder(encoder), metrics="vlscore,bleu-1", batch_size=BATCH, **options)


@pytest.fixture
def mixed_table(tmp_path):
    """Images and reports that come again in near and far chunks, and rows that fail."""
    path, records = make_table(tmp_path / "table", 6 * CHUNK + 3)
    for k, record in enumerate(records):
        record["reference"] += f" {k % 7}"
        if k % 5 == 4:
            record |= {name: records[k - 4 - k % 3][name] for name in ("candidate", "image")}
        if k % 11 == 10:
            record["candidate"] = records[max(0, k - CHUNK)]["candidate"]
        if k % 13 == 12:
            # The same content under another name.
            copy = path.parent / f"copy {k}.png"
            shutil.copy(path.parent / records[max(0, k - CHUNK)]["image"], copy)
            record["image"] = copy.name
        if k % 17 == 16:
            record["image"] = [record["image"], f"{k - 1}.png"]
            record["view"] = ["PA", "LATERAL"]
    (path.parent / "3.png").write_bytes(b"no image")
    (path.parent / "21.png").unlink()
    records[6]["candidate"] = records[40]["candidate"] = "untokenizable"
    records[9]["reference"] = ""
    records[30]["candidate"] = None
    return open_studies(write_table(path, records))


@pytest.mark.parametrize("views", ["first-frontal", "frontal+lateral"])
def test_with_a_filled_cache_work_and_bytes_are_those_of_one_process(
    mixed_table, local, tmp_path, cache_folder, views
):
    recipe = partial(kept_scorer, views=views)
    evaluate(mixed_table, tmp_path / "filling", recipe())
    one = evaluate(mixed_table, tmp_path / "one", recipe())
    elsewhere = OnRay(mixed_table, scorer := recipe(), recipe, workers=0)
    warm = evaluate(mixed_table, tmp_path / "warm", scorer, elsewhere=elsewhere)
    assert results_of(tmp_path / "warm") == results_of(tmp_path / "one")
    assert work_of(warm) == work_of(one)
    assert (work_of(warm)["images_embedded"], work_of(warm)["reports_embedded"]) == (0, 0)


def test_what_the_actors_compute_is_cached(local, tmp_path, cache_folder):
    path, _ = make_table(tmp_path / "table", 3 * CHUNK)
    for out in ("cold", "warm"):
        table = open_studies(path)
        elsewhere = OnRay(table, scorer := kept_scorer(), kept_scorer, workers=0)
        work = work_of(evaluate(table, tmp_path / out, scorer, elsewhere=elsewhere))
        expected = (3 * CHUNK, 3 * CHUNK, 3 * CHUNK + 3) if out == "cold" else (0, 0, 0)
        assert tuple(work[name] for name in DONE) == expected
    assert (work["images_from_cache"], work["pixels_from_cache"]) == (3 * CHUNK, 0)
    assert results_of(tmp_path / "warm") == results_of(tmp_path / "cold")


def test_a_restarted_actor_goes_on_with_the_chunk_that_it_is_asked_for(table):
    """Ray repeats a call whose process was lost; the new process has computed nothing yet."""
    job = written_job(Job())
    one = ChunkActor(table, make_scorer, 0, None)
    chunks = [one.chunk(job, number, 2) for number in (1, 3, 5)]
    other = ChunkActor(table, make_scorer, 0, None)
    assert other.chunk(job, 3, 2)[0] == chunks[1][0]
    assert other.chunk(job, 5, 2)[0] == chunks[2][0]
    assert other.chunk(job, 1, 2)[0] == chunks[0][0]
    assert chunks[0][0] != chunks[1][0]
    assert one.chunk(job, 1001, 2)[0] == b""


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
            if (folder / "cmdline").read_text().startswith(name):
                found.append(int(folder.name))
    return found


@contextlib.contextmanager
def killing(*names):
    """Kill one process of each name, in the middle of its work; yields those that were."""
    killed, has_ended = {}, threading.Event()

    def kill():
        while len(killed) < len(names) and not has_ended.wait(0.002):
            for name in names:
                if name not in killed and (victims := pids(name)):
                    os.kill(victims[0], signal.SIGKILL)
                    killed[name] = victims[0]

    killer = threading.Thread(target=kill)
    killer.start()
    yield killed
    has_ended.set()
    killer.join()


@pytest.fixture
def large_images(tmp_path):
    """Radiographs that are at least some time in decoding; every second row repeats one."""
    records = [json.loads(line) for line in DEMO.read_text().splitlines()]
    rows = []
    for k in range(48):
        name = tmp_path / f"{k // 16 * 8 + k % 8}.png"
        if not name.exists():
            noise = np.random.default_rng(k).integers(0, 255, (900, 900), np.uint8)
            Image.fromarray(noise).save(name, compress_level=1)
        rows.append(records[k % len(records)] | {"id": str(k), "image": name.name})
    rows[5]["image"] = "absent.png"
    rows[20]["reference"] = ""
    return write_table(tmp_path / "studies.jsonl", rows)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
@pytest.mark.usefixtures("cluster", "one_thread")
def test_the_command_on_a_cluster_loses_processes_and_nothing_else(
    large_images, tmp_path, monkeypatch
):
    def run(out, *options):
        command = ["evaluate", str(large_images), "--out", str(tmp_path / out), "--batch-size", "1"]
        metrics = ["--metrics", "vlscore,bleu-1", "--quiet"]
        found = CliRunner().invoke(app, [*command, *metrics, "--workers", "0", *options])
        assert found.exit_code == 1, found.output  # two rows have no value
        return json.loads((tmp_path / out / "run.json").read_text())["work"]

    one = run("one", "--no-cache")
    with killing("ray::ChunkActor.chunk") as killed:
        many = run("many", "--engine", "ray", "--no-cache")
    assert len(killed) == 1
    assert results_of(tmp_path / "many") == results_of(tmp_path / "one")
    # What the lost process had done is not in the counts: at most some images more were decoded.
    assert [many[name] for name in DONE[1:]] == [one[name] for name in DONE[1:]]
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache"))
    cold, warm = run("cold", "--engine", "ray"), run("warm", "--engine", "ray")
    assert [warm[name] for name in DONE] == [1, 0, 0]
    assert cold["images_embedded"] >= 24
