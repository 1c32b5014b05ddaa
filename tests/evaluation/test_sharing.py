"""Several processes write what one writes, and lose nothing where one of them dies."""

import contextlib
import json
import os
import queue
import signal
import sqlite3
import threading
import time

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests import forked
from tests.doubles import HashEncoder, KeptEncoder
from tests.evaluation.samples import BATCH, CHUNK, make_table, results_of, write_table
from tests.killed_process import as_torchrun_sets, started
from vlscore.cli.command_line import app
from vlscore.core import Processes, ProcessLost, resource_path
from vlscore.data import open_studies
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.evaluation import evaluate, facts_of, serve_evaluation, when_all_are_ready
from vlscore.metrics import Scorer

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"


class Threads(Processes):
    """Processes whose messages go through queues."""

    def __init__(self, rank, count, queues):
        super().__init__(rank, count)
        self.queues = queues
        self.lost = False

    def send(self, content, to=0, *, last=False):
        self.queues[self.rank, to].put(content)

    def receive(self, source=0):
        found = self.queues[source, self.rank].get(timeout=60)
        if found is None:
            raise self._lost(source)
        return found


def threads(count):
    queues = {(a, b): queue.Queue() for a in range(count) for b in range(count)}
    return [Threads(rank, count, queues) for rank in range(count)]


def scorer_of(metrics="vlscore", **options):
    return Scorer(HashEncoder(), metrics=metrics, batch_size=BATCH, **options)


@contextlib.contextmanager
def serving(table, processes, metrics="vlscore", **options):
    """The other processes at work, until the block has ended."""

    def serve(process):
        serve_evaluation(open_studies(table), scorer_of(metrics, **options), process)

    others = [threading.Thread(target=serve, args=(p,)) for p in processes[1:]]
    for thread in others:
        thread.start()
    yield processes[0]
    for thread in others:
        thread.join(60)
        assert not thread.is_alive()


def shared(table, out, count, metrics="vlscore", **options):
    with serving(table, threads(count), metrics) as first:
        return evaluate(table, out, scorer_of(metrics), processes=first, **options)


@pytest.fixture
def table(tmp_path):
    """Four chunks and three rows; some rows fail, each for a reason of its own."""
    path, records = make_table(tmp_path / "table", 4 * CHUNK + 3)
    (path.parent / "20.png").unlink()
    records[3]["reference"] = ""
    return write_table(path, records)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_any_number_of_processes_writes_what_one_writes(table, tmp_path, count):
    """With seven there are more processes than chunks."""
    one = evaluate(table, tmp_path / "one", scorer_of("vlscore,cider-d"))
    progress = []
    result = shared(
        table,
        tmp_path / "shared",
        count,
        "vlscore,cider-d",
        on_progress=lambda done, failed: progress.append((done, failed)),
    )
    assert results_of(tmp_path / "shared") == results_of(tmp_path / "one")
    assert progress[-1] == (4 * CHUNK + 3, 2)
    assert result.summary == one.summary
    keys = [
        json.loads((tmp_path / name / "run.json").read_text())["key"] for name in ("one", "shared")
    ]
    assert keys[0] == keys[1]


def test_a_stopped_run_goes_on_with_another_number_of_processes(table, tmp_path):
    class Stopped(KeyboardInterrupt):
        pass

    def stop(done, failed):
        if done:
            raise Stopped

    with pytest.raises(Stopped):
        evaluate(table, tmp_path / "out", scorer_of(), on_progress=stop)
    assert shared(table, tmp_path / "out", 3).resumed_from == CHUNK
    evaluate(table, tmp_path / "one", scorer_of())
    assert results_of(tmp_path / "out") == results_of(tmp_path / "one")
    assert shared(table, tmp_path / "out", 2).unchanged


def test_metrics_are_added_and_failed_rows_retried_by_several(table, tmp_path):
    for out, count in (("one", 1), ("shared", 3)):
        run = evaluate if count == 1 else None
        for metrics, options in (("vlscore", {}), ("vlscore,cosine", {})):
            if run:
                run(table, tmp_path / out, scorer_of(metrics), **options)
            else:
                shared(table, tmp_path / out, count, metrics, **options)
    assert results_of(tmp_path / "shared") == results_of(tmp_path / "one")
    (table.parent / "19.png").rename(table.parent / "20.png")
    result = shared(table, tmp_path / "shared", 3, "vlscore,cosine", retry_failed=True)
    evaluate(table, tmp_path / "one", scorer_of("vlscore,cosine"), retry_failed=True)
    assert result.summary.failed == 1
    assert results_of(tmp_path / "shared") == results_of(tmp_path / "one")


def test_an_error_of_the_first_process_lets_the_others_go(table, tmp_path):
    other, _ = make_table(tmp_path / "other", 3)
    evaluate(other, tmp_path / "out", scorer_of())
    with serving(table, threads(3)) as first, pytest.raises(InvalidSetting, match="differs"):
        evaluate(table, tmp_path / "out", scorer_of(), processes=first)


def test_a_process_that_dies_is_named_and_nothing_is_lost(table, tmp_path):
    first, second = threads(2)
    dies = threading.Thread(target=second.queues[1, 0].put, args=(None,))
    dies.start()
    with pytest.raises(ProcessLost, match=r"process 1 of 2 has ended.*stored in .*out\. The same"):
        evaluate(table, tmp_path / "out", scorer_of(), processes=first)
    assert shared(table, tmp_path / "out", 2).resumed_from == CHUNK


def test_rows_that_all_fail_alike_stop_several_processes_too(tmp_path):
    path, records = make_table(tmp_path / "table", 120)
    for record in records:
        record["image"] = "absent.png"
    write_table(path, records)
    first, second = threads(2)

    def serve():
        with pytest.raises(ProcessLost, match="leads the run"):
            serve_evaluation(open_studies(path), scorer_of(), second)

    other = threading.Thread(target=serve)
    other.start()
    with pytest.raises(InvalidSetting, match="all fail for one reason"):
        evaluate(path, tmp_path / "out", scorer_of(), processes=first)
    # The first process has ended: whoever waits for it hears so.
    first.queues[0, 1].put(None)
    other.join(60)
    assert not other.is_alive()


# --- with a cache ---------------------------------------------------------------------------------


def shared_by(make, table, out, count):
    """What several processes write whose scorers `make` gives."""
    first, *others = threads(count)
    serving = [
        threading.Thread(target=serve_evaluation, args=(open_studies(table), make(), process))
        for process in others
    ]
    for thread in serving:
        thread.start()
    result = evaluate(table, out, make(), processes=first)
    for thread in serving:
        thread.join(60)
        assert not thread.is_alive()
    return result


def test_who_computes_a_text_first_is_chance_but_a_second_run_finds_what_was_kept(table, tmp_path):
    """The encoder's numbers depend on the company more than any real one's do."""
    records = [json.loads(line) for line in table.read_text().splitlines()]
    for k, record in enumerate(records):
        record["candidate"] = f"candidate {k % 29}"
    write_table(table, records)

    def make():
        return Scorer(KeptEncoder(), batch_size=BATCH, cache=tmp_path / "cache")

    shared_by(make, table, tmp_path / "cold", 3)
    warm = shared_by(make, table, tmp_path / "warm", 2)
    work = json.loads(warm.record.read_text())["work"]
    # The image that is not there, and no other, is tried again.
    assert (work["images_embedded"], work["reports_embedded"]) == (0, 0)
    assert results_of(tmp_path / "warm") == results_of(tmp_path / "cold")


def kept_vectors(folder):
    """(space, content) -> embedding, of a cache's folder."""
    (file,) = folder.glob("embeddings-*.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as db:
        query = "SELECT space, content, value FROM entries"
        return {(s, c): np.frombuffer(v, "<f4").astype(float) for s, c, v in db.execute(query)}


def test_with_an_empty_cache_embeddings_are_those_of_one_process_within_the_stated_bound(tmp_path):
    records = [json.loads(line) for line in DEMO.read_text().splitlines()]
    rows = [
        record
        | {"id": str(k), "image": str(DEMO.parent / record["image"])}
        | {"candidate": f"{record['candidate']} " + "No effusion. " * (k % 9)}
        for k, record in enumerate(records * 5)
    ]
    table = write_table(tmp_path / "studies.jsonl", rows)

    def make(name):
        return Scorer("phantom", device="cpu", batch_size=1, cache=tmp_path / name)

    evaluate(table, tmp_path / "one", make("cache of one"))
    shared_by(lambda: make("cache of three"), table, tmp_path / "three", 3)
    one, three = (kept_vectors(tmp_path / f"cache of {name}") for name in ("one", "three"))
    assert one.keys() == three.keys()
    assert len(one) > 4 * len(records)
    for key, vector in one.items():
        assert np.linalg.norm(three[key] - vector) <= 2e-6 * np.linalg.norm(vector)


# --- ready ----------------------------------------------------------------------------------------


def all_ready(prepares):
    """What each process has in the end, or the error that it raises."""
    processes = threads(len(prepares))
    ends = [None] * len(prepares)

    def run(rank):
        try:
            ends[rank] = when_all_are_ready(processes[rank], prepares[rank], lambda x: {"x": x})
        except VLScoreError as error:
            ends[rank] = error

    running = [threading.Thread(target=run, args=(rank,)) for rank in range(len(prepares))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    return ends


def slip():
    raise InvalidSetting("no such folder")


def test_all_begin_where_all_are_ready():
    assert all_ready([lambda: 5] * 3) == [5, 5, 5]
    assert when_all_are_ready(Processes(), lambda: 5, lambda x: {}) == 5


def test_a_slip_that_all_meet_is_said_once():
    ends = all_ready([slip] * 3)
    assert str(ends[0]) == "no such folder"
    assert ends[1:] == [None, None]


def test_a_slip_of_one_machine_names_its_process():
    ends = all_ready([lambda: 5, lambda: 5, slip])
    assert str(ends[0]) == "process 2 of 3: no such folder"
    assert ends[1:] == [None, None]


def test_processes_that_read_different_things_do_not_begin():
    ends = all_ready([lambda: 5, lambda: 6])
    assert str(ends[0]).startswith("process 1 of 2 does not do what process 0 does: x: 6 there, 5")
    assert ends[1] is None


def test_what_must_be_equal_tells_tables_and_scorers_apart(table, tmp_path):
    other, _ = make_table(tmp_path / "other", 3)
    facts = [
        facts_of(open_studies(path), scorer)
        for path, scorer in ((table, scorer_of()), (other, scorer_of()), (table, scorer_of(C=9.0)))
    ]
    assert facts[0] == facts_of(open_studies(table), scorer_of())
    assert len({json.dumps(each) for each in facts}) == 3


# --- torchrun -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The bundled studies many times over; two rows cannot be used."""
    folder = tmp_path_factory.mktemp("demo")
    records = [json.loads(line) for line in DEMO.read_text().splitlines()]
    rows = [
        record | {"id": f"{turn}-{record['id']}", "image": str(DEMO.parent / record["image"])}
        for turn in range(12)
        for record in records
    ]
    rows[5]["image"] = "absent.dcm"
    rows[70]["reference"] = ""
    return write_table(folder / "studies.jsonl", rows)


OPTIONS = ("--workers", "0", "--batch-size", "1", "--metrics", "vlscore,bleu-1", "--quiet")


@contextlib.contextmanager
def one_thread():
    """As many threads as the processes have; with another number sums are rounded otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def alone(demo):
    """The folder of one process, and what it says."""
    out = demo.parent / "alone"
    with one_thread():
        done = CliRunner().invoke(app, ["evaluate", str(demo), "--out", str(out), *OPTIONS])
    assert done.exit_code == 1, done.output
    return out, done.stderr


def test_torchrun_writes_and_says_what_one_process_does(demo, alone, tmp_path):
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "vlscore"]
    command = ["evaluate", str(demo), "--out", str(tmp_path / "two"), *OPTIONS]
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = forked.run("-m", *torchrun, *command, env=variables, timeout=300)
    stdout, stderr = done.stdout, done.stderr
    assert done.returncode == 1, stderr
    assert results_of(tmp_path / "two") == results_of(alone[0])
    said = [line.replace(str(tmp_path / "two"), str(alone[0])) for line in stderr.splitlines()]
    for line in alone[1].splitlines():
        assert said.count(line) == 1, line
    assert stdout == ""
    record = json.loads((tmp_path / "two" / "run.json").read_text())
    assert record["processes"] == 2


def start_two(command, folder):
    """The command in two processes with the environment that torchrun gives."""
    return [
        started(command, folder / f"errors{rank}", **variables)
        for rank, variables in enumerate(as_torchrun_sets())
    ]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_ends_the_run_soon_and_the_next_call_goes_on(demo, alone, tmp_path, rank):
    out = tmp_path / "out"
    command = ("evaluate", str(demo), "--out", str(out), *OPTIONS)
    processes = start_two(command, tmp_path)
    left = processes[1 - rank]
    try:
        until = time.monotonic() + 240
        while not (out / ".parts" / "part-00000001").exists():
            assert all(process.poll() is None for process in processes)
            assert time.monotonic() < until
            time.sleep(0.01)
        processes[rank].kill()
        assert left.wait(60) != 0
    finally:
        for process in processes:
            process.kill()
    assert processes[rank].wait() == -signal.SIGKILL
    said = (tmp_path / f"errors{1 - rank}").read_text().partition("Traceback")[0]
    if rank:
        assert "stored in" in said, said
        assert "The same command resumes" in said, said
    else:
        assert "leads the run, has ended" in said, said
    with one_thread():
        last = CliRunner().invoke(app, command)
    assert last.exit_code == 1, last.output
    assert "resumed after row" in last.stderr
    assert results_of(out) == results_of(alone[0])
