"""Every command that writes a folder, killed at its writes: the same command ends the same way.

Each command runs once, and what lies in its folder before each write, and in the middle of one, is
stored: what a kill there would leave (one real kill a command checks this). From each of these
states the command is repeated, and the folder must hold the same bytes as without a kill, and
nothing else. By default these are every second of the last states, where results take their
places, and some before; VLSCORE_EVERY_KILL=1 takes all of them. `SCENARIOS` lists the commands,
and a test fails where one is missing.
"""

import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from tests import kill_server
from tests.command import run_command
from tests.conftest import REPOSITORY
from tests.evaluation.test_controlled import REPORTS
from tests.forked import Started
from vlscore.cli import commands
from vlscore.core import sole_writer
from vlscore.evaluation.ratings.questions import COUNTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="writes are told by /proc"),
]
LAST, BEFORE = 12, 2
QUICK = ["--resamples", "10"]
# Written into run.json beside the key and the digests: times, and what was resumed.
RECORD = "run.json"


class Scenario(NamedTuple):
    """A command, and what lies in its folder before.

    Attributes:
        command: as the user names it.
        argv: what follows; OUT stands for the folder, IN for that of the inputs.
        before: command lines that make what the folder holds before.
        is_locked: a second run into the folder is refused.
        has_limit: it fails where no file may grow; one that only replaces a small file may not.
    """

    command: str
    argv: list[str]
    before: tuple[list[str], ...] = ()
    is_locked: bool = True
    has_limit: bool = True


TEXT = ["IN/studies.jsonl", "-o", "OUT"]
ONE = ["evaluate", *TEXT, "-m", "bleu-1"]
BUILD = ["index", "build", "IN/studies.jsonl", "--out", "OUT"]
TRAIN = [
    "IN/phantom/studies.jsonl", "-e", "tests.training.toys:ToyEncoder", "--batch-size", "2",
    "--set", "validation_share=0.3", "--workers", "0", "--device", "cpu", "--out", "OUT",
    "--epochs",
]  # fmt: skip
CARD = [
    "IN/phantom/studies.jsonl",
    "-e",
    "phantom-judging",
    "--weights",
    "OUT",
    "--workers",
    "0",
]
SCENARIOS = {
    "evaluate": Scenario("evaluate", [*TEXT, "-m", "bleu-1,rouge-l", "--format", "csv"]),
    "evaluate --overwrite": Scenario(
        "evaluate", [*TEXT, "-m", "rouge-l", "--overwrite"], (ONE,)
    ),
    "compare": Scenario(
        "compare",
        ["IN/studies.jsonl", "IN/others.jsonl", "--text-only", "-m", "bleu-1", "-o", "OUT", *QUICK,
         "--permutations", "99"],
    ),
    "findings": Scenario("findings", TEXT),
    "baseline": Scenario(
        "baseline",
        ["nearest-image", "IN/phantom/studies.jsonl", "--train", "IN/phantom/studies.jsonl",
         "--workers", "0", "-o", "OUT"],
    ),
    "judge": Scenario("judge", TEXT),
    "perturb": Scenario("perturb", ["IN/studies.jsonl", "--out", "OUT"]),
    "sensitivity": Scenario(
        "sensitivity", ["-p", "IN/perturbed", "-m", "bleu-1", "-o", "OUT", *QUICK]
    ),
    "align": Scenario(
        "align", ["IN/ratings.jsonl", "-m", "bleu-1", "--fit", "total errors", "-o", "OUT", *QUICK]
    ),
    "ratings make": Scenario(
        "ratings make",
        ["IN/studies.jsonl", "IN/others.jsonl", "--ask", "preferences", "--format", "html,csv",
         "--raters", "ann,bob", "--out", "OUT"],
    ),
    "ratings read": Scenario("ratings read", ["IN/sheets", "-o", "OUT", *QUICK]),
    "failure-modes": Scenario("failure-modes", ["IN/ratings.jsonl", "-o", "OUT", *QUICK]),
    "controlled": Scenario(
        "controlled",
        ["IN/reports.jsonl", "-o", "OUT", "-m", "bleu-1", "--observations", "pleural effusion",
         *QUICK],
    ),
    "oracle": Scenario(
        "oracle",
        ["IN/studies.jsonl", "--index", "IN/index", "--k", "1", "--metric", "bleu-1",
         "--candidates", "0", "--out", "OUT"],
    ),
    "retrieval": Scenario("retrieval", ["IN/phantom/studies.jsonl", "--workers", "0", "-o", "OUT"]),
    "index build": Scenario("index build", BUILD[2:]),
    "index build --overwrite": Scenario("index build", [*BUILD[2:], "--overwrite"], (BUILD,)),
    "train": Scenario("train", [*TRAIN, "1"]),
    "calibrate --write-card": Scenario(
        "calibrate", [*CARD, "--write-card"], (["copy", "IN/judging", "OUT"],), is_locked=False,
        has_limit=False,
    ),
    "weights convert": Scenario(
        "weights convert", ["IN/model.safetensors", "OUT/copy.safetensors", "--overwrite"],
        is_locked=False,
    ),
}  # fmt: skip
# Files that grow; a run that goes on cuts off what is half written.
APPENDED = {"pairs/pixels.bin", "pairs/pairs.jsonl"}
# Commands that write no folder of results, with the reason. One that has no option for a path, and
# one argument at most, need not be listed.
OTHERS = {
    "dataset": "files of one write each: tests/data/datasets",
    "pair": "files of one write each: tests/data/studies/test_report_pairs.py",
    "draw": "figures of one write each, drawn again by the same command",
    "explain": "prints; one file of one write",
    "report": "one file of one write: tests/pages",
    "cache info": "prints",
    "cache clear": "SQLite's own transactions: tests/core/test_cache.py",
    "score": "prints",
    "weights fetch": "the hub's client writes its own cache",
    "weights verify": "prints",
}


class Server:
    """Runs commands in forks of a process that has imported all that they need."""

    def __init__(self, folder: Path) -> None:
        jobs, ours = os.pipe()
        theirs, answers = os.pipe()
        self._process = Started(
            *("-m", "tests.kill_server"), cwd=REPOSITORY, stdin=jobs, stdout=answers,
            env={**os.environ, "OMP_NUM_THREADS": "1", "VLSCORE_CACHE": "off",
                 "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        for end in (jobs, answers):
            os.close(end)
        self._jobs, self._answers = os.fdopen(ours, "w"), os.fdopen(theirs)
        assert self._answers.readline() == "ready\n"
        self._folder = folder

    def run(
        self,
        argv: list[str],
        *,
        kill_at: int = 0,
        limit: int = 0,
        states: Path | None = None,
    ) -> dict[str, Any]:
        """Run a command: {"status", "writes", "error", "states", "direct"}."""
        if argv[0] == "copy":
            shutil.copytree(*self._placed(argv[1:]), dirs_exist_ok=True)
            return {"status": 0}
        job = {
            "argv": self._placed(argv),
            "folder": str(self._folder / "out"),
            "kill_at": kill_at,
            "limit": limit,
            "states": "" if states is None else str(states),
        }
        self._jobs.write(json.dumps(job) + "\n")
        self._jobs.flush()
        answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer

    def _placed(self, argv: list[str]) -> list[str]:
        places = (("IN", self._folder / "in"), ("OUT", self._folder / "out"))
        for name, folder in places:
            argv = [
                str(folder) + part[len(name) :]
                if part == name or part.startswith(f"{name}/")
                else part
                for part in argv
            ]
        return argv

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._jobs.close()
        self._answers.close()


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the inputs of all commands in `in`."""
    folder = tmp_path_factory.mktemp("kills")
    inputs = folder / "in"
    (inputs / "phantom").mkdir(parents=True)
    rows = [
        {"id": f"s{k}", "reference": f"Small left effusion {k}.", "report": f"Small effusion {k}.",
         "candidate": f"No effusion. Edema {k}."}
        for k in range(4)
    ]  # fmt: skip
    _jsonl(inputs / "studies.jsonl", rows)
    _jsonl(
        inputs / "others.jsonl",
        [
            {**row, "candidate": "Clear lungs.", "report": f"Clear lungs {row['id']}."}
            for row in rows
        ],
    )
    _jsonl(inputs / "reports.jsonl", [{"id": f"r{k}", "report": t} for k, t in enumerate(REPORTS)])
    rng = np.random.default_rng(3)
    for k, row in enumerate(rows):
        pixels = rng.integers(0, 256, (64, 64), dtype=np.uint8)
        Image.fromarray(pixels).save(inputs / "phantom" / f"{k}.png")
        row["image"] = f"{k}.png"
    _jsonl(inputs / "phantom" / "studies.jsonl", rows)
    ratings = [
        {"study_id": f"s{k}", "candidate_id": c, "rater": "ann", "rating": k + (c == "y"),
         "category": "1 false finding", "reference": f"Small left effusion {k}.",
         "candidate": f"Small {'left' if c == 'x' else 'right'} effusion {k % 2}."}
        for k in range(6) for c in "xy"
    ]  # fmt: skip
    _jsonl(inputs / "ratings.jsonl", ratings)
    (inputs / "sheets").mkdir()
    items = [{"item": f"i{k}", "study_id": f"s{k // 2}", "candidate_id": "xy"[k % 2],
              "reference": "Edema.", "candidate": f"No edema {k}."} for k in range(6)]  # fmt: skip
    _csv(inputs / "sheets" / "key.csv", items)
    for rater in ("ann", "bob"):
        rows = [
            {"item": each["item"], **dict.fromkeys(COUNTS, k % 3)} for k, each in enumerate(items)
        ]
        _csv(inputs / "sheets" / f"sheet-{rater}.csv", rows)
    save_file({"a": np.zeros((3, 3), np.float32)}, inputs / "model.safetensors")
    shutil.copytree(REPOSITORY / "weights" / "phantom-judging", inputs / "judging")
    return folder


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    """The server, and what earlier commands make for later ones."""
    running = Server(place)
    try:
        for made in (
            ["perturb", "IN/studies.jsonl", "--out", "IN/perturbed"],
            ["index", "build", "IN/studies.jsonl", "--out", "IN/index"],
            ["oracle", "IN/studies.jsonl", "--index", "IN/index", "--k", "1", "--metric", "bleu-1",
             "--candidates", "0", "--out", "IN/oracle"],
        ):  # fmt: skip
            done = running.run(made)
            assert done["status"] == 0, (made, done)
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def begin(place: Path, server: Server) -> Callable[[Scenario], None]:
    """Brings the folder into the state before the command."""
    made: list[tuple[list[str], ...]] = []

    def begin(scenario: Scenario) -> None:
        out, before = place / "out", scenario.before
        shutil.rmtree(out, ignore_errors=True)
        if not before:
            return
        if before not in made:
            for argv in before:
                done = server.run(argv)
                assert done["status"] == 0, done
            made.append(before)
            shutil.copytree(out, place / f"before{len(made)}")
            return
        shutil.copytree(place / f"before{made.index(before) + 1}", out)

    return begin


@pytest.fixture(scope="module")
def undisturbed(
    place: Path, server: Server, begin: Callable[[Scenario], None]
) -> Callable[..., dict[str, Any]]:
    """Returns what a command writes when nothing disturbs it; each command runs once."""
    found: dict[str, dict[str, Any]] = {}

    def content(name: str, states: Path | None = None) -> dict[str, Any]:
        if name not in found or states is not None:
            begin(SCENARIOS[name])
            whole = server.run(_argv(SCENARIOS[name]), states=states)
            assert whole["status"] == 0, whole
            found[name] = {**whole, "content": _content(place / "out")}
        return found[name]

    return content


def _content(folder: Path) -> dict[str, Any]:
    """Name -> bytes of all that lies in a folder, strays included; of a record what repeats."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == ".lock":
            continue
        if path.is_dir():
            found[name] = "folder"
        elif path.name == RECORD:
            record = json.loads(path.read_text(encoding="utf-8"))
            found[name] = {each: record.get(each) for each in ("key", "results")}
            # A digest of a file that holds times of the run is compared with the file left out.
        else:
            found[name] = path.read_bytes()
    return found


def _named(content: dict[str, Any]) -> dict[str, Any]:
    """The same without the part of temporary names that chance chooses."""
    return {re.sub(r"\.\w{8}\.tmp$", ".tmp", name): data for name, data in content.items()}


def _argv(scenario: Scenario) -> list[str]:
    return [*scenario.command.split(), *scenario.argv]


@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_anywhere_and_repeated_it_ends_the_same(
    name: str,
    place: Path,
    server: Server,
    begin: Callable[[Scenario], None],
    undisturbed: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    scenario, out = SCENARIOS[name], place / "out"
    argv = _argv(scenario)
    whole = undisturbed(name, tmp_path)
    # A file that is written under its last name is half there for a while.
    assert set(whole["direct"]) <= APPENDED
    expected, states = whole["content"], whole["states"]
    assert len(states) >= 8 or name == "weights convert" or not scenario.is_locked, states
    begin(scenario)
    at_end = next(each for each in reversed(states) if each.isdecimal())
    assert server.run(argv, kill_at=int(at_end))["status"] == kill_server.KILLED
    assert _named(_content(out)) == _named(_content(tmp_path / at_end))
    if not os.environ.get("VLSCORE_EVERY_KILL"):
        earlier = states[:-LAST]
        chosen = {earlier[k * len(earlier) // BEFORE] for k in range(BEFORE) if earlier}
        states = [*chosen, *states[: -LAST - 1 : -2]]
    wrong = []
    for state in states:
        shutil.rmtree(out)
        shutil.copytree(tmp_path / state, out)
        again = server.run(argv)
        found = _content(out)
        if again["status"] != 0:
            wrong.append((state, "again", again))
        elif found != expected:
            differing = {
                each for each in {**found, **expected} if found.get(each) != expected.get(each)
            }
            wrong.append((state, "differs", sorted(differing)))
    assert not wrong, f"{name}, of {whole['writes']} writes: {wrong}"


@pytest.mark.parametrize("name", [name for name, each in SCENARIOS.items() if each.has_limit])
def test_where_the_disk_is_full_it_says_so_and_goes_on_later(
    name: str,
    place: Path,
    server: Server,
    begin: Callable[[Scenario], None],
    undisturbed: Callable[..., dict[str, Any]],
) -> None:
    scenario, out = SCENARIOS[name], place / "out"
    expected = undisturbed(name)["content"]
    begin(scenario)
    full = server.run(_argv(scenario), limit=40)
    assert full["status"] not in (0, kill_server.TRACEBACK), full["error"]
    again = server.run(_argv(scenario))
    assert again["status"] == 0, again
    assert _content(out) == expected


@pytest.mark.parametrize("name", [name for name, each in SCENARIOS.items() if each.is_locked])
def test_a_second_run_into_the_folder_is_refused_and_changes_nothing(
    name: str, place: Path, server: Server, begin: Callable[[Scenario], None]
) -> None:
    scenario, out = SCENARIOS[name], place / "out"
    begin(scenario)
    before = _content(out) if out.exists() else {}
    with sole_writer(out):
        refused = server.run(_argv(scenario))
    assert (refused["status"], refused["error"][:11]) == (2, "FolderInUse"), refused
    assert _content(out) == before


def test_a_file_that_is_half_there_for_a_while_is_noticed(
    place: Path, server: Server, tmp_path: Path
) -> None:
    """The walk above can fail: it finds a file that is written under its last name."""
    out = place / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    code = """
import os, pathlib
folder = pathlib.Path(FOLDER)
for name in ("a.txt", "b.tmp"):
    with open(folder / name, "w") as stream:
        stream.write("0123456789")
os.replace(folder / "b.tmp", folder / "b.txt")
os.mkdir(folder / "ended")
"""
    done = server.run(["python", code.replace("FOLDER", repr(str(out)))], states=tmp_path)
    assert done["status"] == 0, done
    assert done["direct"] == ["a.txt"]
    found = [sorted(_content(tmp_path / each).items()) for each in done["states"]]
    whole, half = b"0123456789", b"01234"
    assert found == [
        [("a.txt", half)],
        [("a.txt", whole)],
        [("a.txt", whole), ("b.tmp", half)],
        [("a.txt", whole), ("b.tmp", whole)],
        [("a.txt", whole), ("b.txt", whole)],
    ]


def _names_a_place(name: str) -> bool:
    """Whether a command may write where the user says: an option for a path, or two arguments."""
    shown = run_command(*name.split(), "--help").stdout
    arguments = re.search(r"Arguments:\n((?:  .+\n)+)", shown)
    count = len(re.findall(r"^  [A-Z]", arguments[1], re.MULTILINE)) if arguments else 0
    return bool(re.search(r"^  .*--[\w-]+ PATH", shown, re.MULTILINE)) or count > 1


def test_no_command_is_missing() -> None:
    """A new command that may write is walked, or its entry in OTHERS has the reason why not."""
    known = commands()
    walked = {scenario.command for scenario in SCENARIOS.values()}
    assert walked | OTHERS.keys() <= known.keys()
    missing = {name for name in known if _names_a_place(name)} - walked
    assert missing <= OTHERS.keys(), missing - OTHERS.keys()
    assert missing >= {"pair", "report"}


def test_a_function_that_writes_results_is_called_like_its_command() -> None:
    """`vlscore index build` calls `vlscore.retrieval.index_build`."""
    packages = ("data", "perturb", "retrieval", "evaluation", "training", "pages")
    offered = {name for package in packages for name in import_module(f"vlscore.{package}").__all__}
    writing = {scenario.command for scenario in SCENARIOS.values()}
    writing |= {"dataset", "draw", "methods", "pair", "report"}
    # It only converts a checkpoint.
    writing -= {"weights convert"}
    assert {command for command in writing if re.sub("[ -]", "_", command) not in offered} == set()
