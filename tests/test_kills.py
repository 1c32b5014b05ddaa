"""Commands that are really killed at random moments: run again, they give the same bytes.

That a folder of results appears complete or not at all is proven at each operation of the system in
`tests/core/test_result_folder.py`, and that an evaluation goes on after each pass of its encoder in
`tests/evaluation/test_evaluate.py`. Here whole processes are killed: `watch`, and `judge` with a
service.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.evaluation.watches.test_watch import tables
from tests.metrics.judge.endpoint_server import Answer, running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")

# Another moment with each run of the tests, and nine that are always the same in the long version.
MOMENTS = [pytest.param(0), *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))]


def chance_of(number: int) -> random.Random:
    """Random numbers of a seed; of another one with each run for 0. A test that fails shows it."""
    seed = number or random.SystemRandom().randrange(10, 10**6)
    print(f"seed {seed}")
    return random.Random(seed)


def started(*arguments: object, cache: Path) -> subprocess.Popen[bytes]:
    """Start `vlscore` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "vlscore", *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "VLSCORE_CACHE": str(cache),
             "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def files_of(folder: Path) -> dict[str, object]:
    """Name -> bytes of all that lies in a folder; of run.json what does not name times."""
    found: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "run.json")
    }
    record = json.loads((folder / "run.json").read_text())
    return {**found, "run.json": (record["key"], record["results"])}


@pytest.mark.parametrize("number", MOMENTS)
def test_a_watch(number, tmp_path):
    """Killed between or within days; the page and all tables are then those of one call."""
    days = tables(tmp_path / "days", 6)

    def command(store):
        return ("watch", *days, "--out", tmp_path / store, "-q", "--report")

    began = time.monotonic()
    assert started(*command("whole"), cache=tmp_path / "cache").wait(300) == 0
    seconds = time.monotonic() - began
    run = started(*command("store"), cache=tmp_path / "cache")
    time.sleep(seconds * chance_of(number).uniform(0.3, 1.0))
    run.kill()
    assert run.wait() in (-signal.SIGKILL, 0)
    assert started(*command("store"), cache=tmp_path / "cache").wait(300) == 0
    whole, again = (files_of(tmp_path / store) for store in ("whole", "store"))
    # The page names its folder and the time.
    assert whole.pop("report.html") is not None
    assert again.pop("report.html") is not None
    assert whole == again


@pytest.mark.parametrize("number", MOMENTS)
def test_a_judge_that_asks_a_service(number, tmp_path):
    """Killed while an answer is under way; answers that came before are not asked for again."""
    count, at_once = 24, 2
    moment = chance_of(number).randint(2, count - 1)
    rows = [f"{k},Clear lungs {k}.,Left effusion {k}." for k in range(count)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["id,reference,candidate", *rows]) + "\n")

    def behave(asked, body):
        error = {"category": "false_finding", "severity": 3, "finding": "effusion",
                 "candidate_line": 1, "reference_line": None, "correction": "",
                 "reason": body["messages"][-1]["content"][:40]}  # fmt: skip
        text = json.dumps({"errors": [error], "correct": []})
        return Answer(text, seconds=10.0 if asked == moment and not is_undisturbed else 0.0)

    def command(out):
        return ("judge", table, "--out", out, "--model", "fake", "--endpoint", endpoint.url,
                "--in-flight", at_once, "--prompt", "zero-shot")  # fmt: skip

    is_undisturbed = False
    with running(behave) as endpoint:
        run = started(*command(tmp_path / "out"), cache=tmp_path / "cache")
        while len(endpoint.requests) <= moment and run.poll() is None:
            time.sleep(0.01)
        run.kill()
        assert run.wait() == -signal.SIGKILL
        before = endpoint.questions()
        assert started(*command(tmp_path / "out"), cache=tmp_path / "cache").wait(300) == 0
        again = endpoint.questions()[len(before) :]
        is_undisturbed = True
        assert started(*command(tmp_path / "whole"), cache=tmp_path / "other").wait(300) == 0
    assert len(set(before) & set(again)) <= at_once
    assert len(set(before) | set(again)) == count
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")
