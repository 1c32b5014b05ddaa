"""Claim: an index build that is killed goes on, and ends with the index it would have made.

Protocol: `vlscore index build` embeds a table of reports with the bundled encoder, undisturbed. In
each round the same command, for another folder, is ended with SIGKILL again and again: three times
at a random moment after its first write, twice within 4 ms of the beginning of a part's writing,
twice within 30 ms of that of the index's own files. Then it is left to end, unless a kill found it
on its way out, its work done. The round's folder must hold the undisturbed one's files, byte for
byte, and nothing else, and `vlscore index verify` must find it whole. A second part does the same
to `vlscore index add`, where the first half of the table is the index and the whole table is added:
half of it is there already. Printed: the kills by what they interrupted, as the folder shows it
after the kill, and how many rounds ended with equal bytes.

The table is --table (any table of reports; its digest is printed), or --reports synthetic reports.

Run: OMP_NUM_THREADS=1 python benchmarks/oracle_resume.py [--table FILE.jsonl | --reports 6000]
    [--rounds 4] [--seed 0] [--out FILE]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from data import describe_file
from machine import describe_machine, publish

from vlscore.data import write_report
from vlscore.data.phantom.phantom_pairs import scene_at

COMMAND = [sys.executable, "-m", "vlscore", "index"]
MOMENTS = (*["at random"] * 3, *["in a part"] * 2)
LAST_MOMENTS = ("in a file", "in a file")
_POLL = 0.0002


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*COMMAND, *arguments], stdout=quiet, stderr=quiet)


def must_end_well(process: subprocess.Popen[bytes]) -> None:
    if process.wait() != 0:
        raise SystemExit(f"{process.args} ended with status {process.returncode}")


def names(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir()}
    except FileNotFoundError:
        return set()


def snapshot(folder: Path) -> set[str]:
    """Everything in the folder by name; its parts by inode too, for each is `new` at first."""
    parts = set()
    for name in names(folder / ".parts"):
        with suppress(FileNotFoundError):
            parts.add(f".parts/{name}@{(folder / '.parts' / name).stat().st_ino}")
    return names(folder) | parts


def is_part(name: str) -> bool:
    return name.startswith(".parts/new@")


def is_file(name: str) -> bool:
    return "/" not in name and name[0] == "." and name.endswith((".tmp", ".faiss"))


def wait_for_new(
    wanted: Callable[[str], bool], folder: Path, before: set[str], process: subprocess.Popen[bytes]
) -> None:
    """Wait until something of that name is new in the folder, or the process has ended."""
    while not any(map(wanted, snapshot(folder) - before)) and process.poll() is None:
        time.sleep(_POLL)


def kill_at(
    moment: str, arguments: list[str], folder: Path, seconds: float, rng: np.random.Generator
) -> str | None:
    """Start the command and kill it; what that interrupted, None where it ended before."""
    before = snapshot(folder)
    process = start(arguments)
    if moment == "at random":
        wait_for_new(is_part, folder, before, process)
        time.sleep(rng.uniform(0, seconds / 3))
    elif moment == "in a part":
        wait_for_new(is_part, folder, before, process)
        time.sleep(rng.uniform(0, 0.004))
    else:
        wait_for_new(is_file, folder, before, process)
        time.sleep(rng.uniform(0, 0.03))
    process.kill()
    if process.wait() >= 0:
        if process.returncode:
            raise SystemExit(f"{process.args} ended with status {process.returncode}")
        return None
    new = snapshot(folder) - before
    if any(map(is_file, new)):
        return "a file of the index half written"
    if any(map(is_part, new)):
        return "a part half written"
    return "between two writes"


def undisturbed(arguments: list[str], folder: Path) -> float:
    """Run to the end; seconds of work, from the first part's end on."""
    before = snapshot(folder)
    process = start(arguments)
    wait_for_new(is_part, folder, before, process)
    began = time.perf_counter()
    must_end_well(process)
    return time.perf_counter() - began


def is_same(folder: Path, wanted: Path) -> bool:
    """Equal files, byte for byte; the lock file may or may not be there."""
    there, here = names(wanted) - {".lock"}, names(folder) - {".lock"}
    return there == here and all(
        (folder / name).read_bytes() == (wanted / name).read_bytes() for name in there
    )


def rounds(
    title: str,
    command: Callable[[Path], list[str]],
    prepare: Callable[[Path], None],
    work: Path,
    count: int,
    rng: np.random.Generator,
) -> str:
    """Run the rounds of one part; a line of the table."""
    whole = work / f"{title}-undisturbed"
    prepare(whole)
    seconds = undisturbed(command(whole), whole)
    kills: Counter[str] = Counter()
    equal = 0
    for number in range(count):
        folder = work / f"{title}-{number}"
        prepare(folder)
        has_ended = False
        for moment in (*rng.permutation(MOMENTS), *LAST_MOMENTS):
            interrupted = kill_at(moment, command(folder), folder, seconds, rng)
            if has_ended := interrupted is None:
                break
            kills[interrupted] += 1
            # Killed on its way out, its work done: another `add` would be another change.
            if has_ended := is_same(folder, whole):
                break
        if not has_ended:
            must_end_well(start(command(folder)))
        must_end_well(start(["verify", str(folder)]))
        equal += is_same(folder, whole)
    shown = ", ".join(f"{kills[kind]} {kind}" for kind in sorted(kills))
    return f"| `index {title}` | {seconds:.1f} s | {kills.total()}: {shown} | {equal} of {count} |"


def write_synthetic(path: Path, count: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            rng = np.random.default_rng([1, number])
            report = write_report(rng, scene_at(0, number).findings)
            stream.write(json.dumps({"id": str(number), "report": report}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path)
    parser.add_argument("--reports", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        table = work / "table.jsonl"
        if options.table is None:
            write_synthetic(table, options.reports)
            source = "synthetic reports"
        else:
            shutil.copyfile(options.table, table)
            source = f"rows of {describe_file(options.table)}"
        lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
        half = work / "half.jsonl"
        half.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")

        def build(path: Path) -> list[str]:
            return ["build", str(table), "--keep-going", "--out", str(path)]

        def add(path: Path) -> list[str]:
            return ["add", str(table), "--keep-going", "--index", str(path)]

        must_end_well(start(["build", str(half), "--keep-going", "--out", str(work / "base")]))
        parts = [
            rounds("build", build, lambda path: None, work, options.rounds, rng),
            rounds(
                "add",
                add,
                lambda path: shutil.copytree(work / "base", path),
                work,
                options.rounds,
                rng,
            ),
        ]
    text = "\n".join(
        [
            "# Killed builds of an index",
            "",
            f"{len(lines):,} {source}, bundled encoder, seed {options.seed}. {describe_machine()}",
            "",
            "| command | work after the first part | SIGKILLs, and what they left | equal bytes |",
            "|---|---|---|---|",
            *parts,
            "",
        ]
    )
    publish(text, options.out)


if __name__ == "__main__":
    main()
