"""Parts of a table and actors of a Ray cluster give the results of one process."""

import json
import os
import pickle
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from tests.doubles import KeptEncoder
from tests.evaluation.samples import BATCH, CHUNK, make_table, results_of, write_table
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.evaluation import OnRay, evaluate, join_parts
from vlscore.evaluation.scoring import engines
from vlscore.metrics import Scorer


def kept_scorer(**options):
    """Its embeddings depend on what is computed together: any other batch shows."""
    options = {"batch_size": BATCH, "cache": False, **options}
    return Scorer(KeptEncoder("kept encoder"), metrics="vlscore,bleu-2,cider-d", **options)


@pytest.fixture
def table(tmp_path):
    """Images and reports that come again in near and far rows, and rows that fail."""
    path, records = make_table(tmp_path / "table", 6 * CHUNK + 3)
    for k, record in enumerate(records):
        record["reference"] += f" {k % 7}"
        record["patient"] = f"p{k % 9}"
        if k % 5 == 4:
            record |= {name: records[k - 4 - k % 3][name] for name in ("candidate", "image")}
        if k % 17 == 16:
            record["image"] = [record["image"], f"{k - 1}.png"]
    (path.parent / "3.png").write_bytes(b"no image")
    (path.parent / "21.png").unlink()
    records[6]["candidate"] = records[40]["candidate"] = "untokenizable"
    records[9]["reference"] = ""
    records[30]["candidate"] = None
    return write_table(path, records)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_joined_parts_are_the_files_of_one_run(table, tmp_path, format):
    own = {"by": ["patient"], "patient": "patient"}
    one = evaluate(table, tmp_path / "one", kept_scorer(), format=format, **own)
    parts = [tmp_path / f"part{k}" for k in (1, 2, 3)]
    for k, folder in enumerate(parts, start=1):
        evaluate(table, folder, kept_scorer(), part=f"{k}/3", **own)
    joined = join_parts(parts[::-1], tmp_path / "joined", format=format)
    ours, theirs = results_of(joined.folder), results_of(one.folder)
    assert joined.content["frames"] == one.content["frames"]
    assert joined.record["key"] == one.record["key"]
    for name in (f"scores.{format}", "sums.parquet", "failures.csv"):
        assert ours[name] == theirs[name]
    assert join_parts(parts, tmp_path / "joined", format=format).unchanged
    # The joined folder is the run's: the whole command finds nothing to do there.
    assert evaluate(table, tmp_path / "joined", kept_scorer(), format=format, **own).unchanged


def test_a_part_without_rows_is_joined_too(tmp_path):
    images, _ = make_table(tmp_path / "films", 3)
    scorer, parts = Scorer(KeptEncoder(), metrics="vlscore"), []
    for part in ("1/2", "2/2"):
        parts.append(evaluate(images, tmp_path / part[0], scorer, part=part).folder)
    assert not (parts[1] / "images.parquet").exists()
    joined = join_parts(parts, tmp_path / "joined")
    whole = evaluate(images, tmp_path / "whole", scorer)
    for name in ("images.parquet", "scores.parquet"):
        assert joined.rows(name).equals(whole.rows(name))


def test_parts_that_do_not_belong_together_are_refused(table, tmp_path):
    scorer = Scorer(metrics="bleu-1")
    for k in (1, 2):
        evaluate(table, tmp_path / f"part{k}", scorer, part=f"{k}/3")
    parts = [tmp_path / "part1", tmp_path / "part2"]
    with pytest.raises(InvalidSetting, match="and 3/3 is absent"):
        join_parts(parts, tmp_path / "joined")
    evaluate(table, tmp_path / "part3", Scorer(metrics="rouge-l"), part="3/3")
    with pytest.raises(InvalidSetting, match=r"a part of another run than .*: metrics"):
        join_parts([*parts, tmp_path / "part3"], tmp_path / "joined")
    with pytest.raises(InvalidSetting, match=r"has no run\.json: name the folder that a finished"):
        join_parts([tmp_path / "table"], tmp_path / "joined")
    for part in ("4/3", "0/2", "1", "a/b"):
        with pytest.raises(InvalidSetting, match="a part is K/N, as in 1/4"):
            evaluate(table, tmp_path / "x", scorer, part=part)


# --- Ray ------------------------------------------------------------------------------------------


class Local:
    """What `OnRay` asks of Ray, done at once in this process; everything travels as bytes."""

    class exceptions:
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            def __init__(self, cause):
                super().__init__(cause)
                self.cause = cause

    class Pool:
        """As `ray.util.ActorPool`, with one value for each submitted task, in their order."""

        def __init__(self, actors):
            self.actors, self.done, self.given = actors, [], 0

        def submit(self, function, value):
            self.done.append(function(self.actors[self.given % len(self.actors)], value))
            self.given += 1

        def has_next(self):
            return bool(self.done)

        def get_next(self):
            found = self.done.pop(0)
            if isinstance(found, Exception):
                raise found
            return pickle.loads(found)

    def __init__(self):
        self.killed = 0
        self.util = SimpleNamespace(ActorPool=self.Pool)

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return {"CPU": 4.0}

    def put(self, value):
        return value

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
                call = partial(self._call, made.score)
                return SimpleNamespace(score=SimpleNamespace(remote=call))

            return SimpleNamespace(remote=make)

        return wrapped


@pytest.fixture
def local(monkeypatch):
    ray = Local()
    monkeypatch.setattr(engines, "_ray", lambda: ray)
    return ray


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=r"pip install 'vlscore\[ray\]'"):
        OnRay(kept_scorer)


def test_actors_give_the_results_and_the_counts_of_one_process(table, local, tmp_path):
    one = evaluate(table, tmp_path / "one", kept_scorer())
    result = evaluate(table, tmp_path / "ray", kept_scorer(), engine=OnRay(kept_scorer, workers=0))
    assert results_of(tmp_path / "ray") == results_of(tmp_path / "one")
    assert result.record["work"] == one.record["work"]
    # One actor for two processors, and none of them stays.
    assert local.killed == 2


def other_scorer():
    return kept_scorer(C=9.0)


def broken_scorer():
    raise InvalidSetting("no such weights here")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (other_scorer, "an actor does not compute what this process does"),
        (broken_scorer, "no such weights here"),
    ],
)
def test_actors_that_cannot_do_the_same_are_refused(table, local, tmp_path, recipe, message):
    with pytest.raises(InvalidSetting, match=message):
        evaluate(table, tmp_path / "out", kept_scorer(), engine=OnRay(recipe, actors=1))
    assert not (tmp_path / "out" / "run.json").exists()
    assert local.killed == 1


@pytest.mark.slow
def test_a_cluster_on_this_machine_gives_the_same(table, tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'vlscore[ray]'")
    own = {"num_cpus": 3, "num_gpus": 0, "include_dashboard": False}
    here = "RAY_ADDRESS" not in os.environ
    ray.init(log_to_driver=False, logging_level="ERROR", **(own if here else {}))
    try:
        one = evaluate(table, tmp_path / "one", kept_scorer())
        result = evaluate(table, tmp_path / "ray", kept_scorer(), engine=OnRay(kept_scorer))
    finally:
        ray.shutdown()
    assert json.loads((tmp_path / "ray" / "result.json").read_text()) == one.content
    assert result.failures == one.failures
