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
from vlscore.core import open_cache, resource_path
from vlscore.data import open_studies
from vlscore.embedding import kept_pixels
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.evaluation import OnRay, evaluate
from vlscore.evaluation.scoring import ray_run as on_ray
from vlscore.evaluation.scoring import ray_workers as on_workers
from vlscore.evaluation.scoring.ray_workers import Reading, choose, decode
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
                    for name in ("facts", "spaces", "embed", "score")
                }
                return SimpleNamespace(**methods)

            return SimpleNamespace(remote=make)

        return wrapped


@pytest.fixture
def local(monkeypatch):
    ray = Local()
    monkeypatch.setattr(on_ray, "_ray", lambda: ray)
    monkeypatch.setattr(on_workers, "_DECODERS", 0)
    yield ray
    on_workers.close()


def test_decoded_elsewhere_and_embedded_elsewhere_the_results_are_the_same(table, local, tmp_path):
    one = evaluate(table, tmp_path / "one", make_scorer())
    elsewhere = OnRay(table, scorer := make_scorer(), make_scorer)
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
def test_with_the_cache_work_and_bytes_are_those_of_one_process(
    mixed_table, local, tmp_path, monkeypatch, views
):
    recipe = partial(kept_scorer, views=views)

    def on_ray(out, recipe=recipe):
        elsewhere = OnRay(mixed_table, scorer := recipe(), recipe)
        return evaluate(mixed_table, tmp_path / out, scorer, elsewhere=elsewhere)

    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache of one"))
    one = evaluate(mixed_table, tmp_path / "one", recipe())
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache of many"))
    cold = on_ray("cold")
    assert results_of(tmp_path / "cold") == results_of(tmp_path / "one")
    for name in DONE[1:]:
        assert work_of(cold)[name] == work_of(one)[name] > 0
    # One file that is frontal here and lateral there is decoded once.
    assert 0 < work_of(cold)["images_decoded"] <= work_of(one)["images_decoded"]
    warm = on_ray("warm")
    assert results_of(tmp_path / "warm") == results_of(tmp_path / "one")
    work = work_of(warm)
    assert (work["images_embedded"], work["reports_embedded"]) == (0, 0)
    # What failed is tried again.
    assert work == work_of(evaluate(mixed_table, tmp_path / "warm one", recipe()))
    # Another encoder with the same images takes its pixels from the cache.
    other = partial(kept_scorer, "another encoder", views=views)
    work = work_of(on_ray("other", other))
    assert work["pixels_from_cache"] > 4 * CHUNK
    assert work["images_decoded"] == work_of(warm)["images_decoded"]


def test_without_failures_a_warm_run_reads_no_image(local, tmp_path, cache_folder):
    path, _ = make_table(tmp_path / "table", 3 * CHUNK)
    for out in ("cold", "warm"):
        table = open_studies(path)
        elsewhere = OnRay(table, scorer := kept_scorer(), kept_scorer)
        work = work_of(evaluate(table, tmp_path / out, scorer, elsewhere=elsewhere))
        expected = (3 * CHUNK, 3 * CHUNK, 3 * CHUNK + 3) if out == "cold" else (0, 0, 0)
        assert tuple(work[name] for name in DONE) == expected
    assert (work["images_from_cache"], work["pixels_from_cache"]) == (3 * CHUNK, 0)
    assert results_of(tmp_path / "warm") == results_of(tmp_path / "cold")


def test_a_file_that_was_replaced_after_it_was_hashed_is_kept_by_nobody(tmp_path, cache_folder):
    encoder = KeptEncoder()
    cache = open_cache()
    reading = Reading("run", encoder.image_pipeline, encoder.image_policy, "mean", cache.folder)
    path, _ = make_table(tmp_path, 2)
    (row, _) = list(open_studies(path))
    (chosen,) = choose([row], reading)
    (file,) = chosen.frontal
    shutil.copy(tmp_path / "1.png", tmp_path / "0.png")
    decoded = decode([file], reading)
    assert list(decoded.pixels) == [file.path]
    assert decoded.changed == {file.path}
    pixels = kept_pixels(cache, encoder.image_pipeline, encoder.image_policy)
    assert not pixels.get([file.digest])


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

    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache of one"))
    one = run("one")
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache of many"))
    with killing("ray::decode", "ray::Embedding.embed") as killed:
        cold = run("cold", "--engine", "ray")
    assert len(killed) == 2
    assert results_of(tmp_path / "cold") == results_of(tmp_path / "one")
    assert cold == one
    warm = run("warm", "--engine", "ray")
    assert results_of(tmp_path / "warm") == results_of(tmp_path / "one")
    # The file that is not there is looked for again.
    assert [warm[name] for name in DONE] == [1, 0, 0]
