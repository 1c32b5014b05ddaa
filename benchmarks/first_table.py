"""Time from an installed package to the first LaTeX table and to the first page, by the tutorial.

Protocol: the tables and the commands of docs/tutorial.md, as printed, in an empty folder; each
command is a process of its own, as on a terminal, and the cache is empty. The time to write or read
anything is not counted. Wall seconds depend on other programs, so processor seconds are printed,
too. The median of three rounds counts.

    python benchmarks/first_table.py --out benchmarks/results/first_table.md
"""

import re
import statistics
import tempfile
from pathlib import Path

import machine

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
ROUNDS = 3
# Command -> what is there after it.
STEPS = {"compare": "table.tex, table.md and the picture", "report": "report.html"}


def tutorial() -> tuple[list[str], list[list[str]]]:
    """Return the tables of the tutorial, and the words of its commands that make the results."""
    text = PAGE.read_text(encoding="utf-8")
    tables = re.findall(r"^```csv\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    commands = [line.split()[1:] for line in re.findall(r"^vlscore .*$", text, re.MULTILINE)]
    return tables, [words for words in commands if words[0] in STEPS]


def main() -> None:
    """Run the tutorial, and print the table."""
    out = machine.out_of(__doc__)
    tables, commands = tutorial()
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            for file, table in zip(("first.csv", "second.csv"), tables, strict=True):
                (Path(name) / file).write_text(table, encoding="utf-8")
            folder = Path(name)
            rounds.append(
                [
                    machine.timed_command(["-m", "vlscore", *words], folder / "cache", folder)
                    for words in commands
                ]
            )
    lines = ["| command | then there is | wall, s | processor, s |", "|---|---|---:|---:|"]
    for number, words in enumerate(commands):
        wall, used = (statistics.median(each[number][k] for each in rounds) for k in (0, 1))
        lines.append(f"| `vlscore {words[0]}` | {STEPS[words[0]]} | {wall:.1f} | {used:.1f} |")
    sums = [sum(step[0] for step in each) for each in rounds]
    last = (
        f"Both commands together: {statistics.median(sums):.1f} s of wall time; more than on a "
        "quiet machine where the load average above exceeds 1."
    )
    head = "# Time to the first table and the first page\n\n" + machine.describe_machine()
    protocol = (
        "The tables and commands of [the tutorial](../../docs/tutorial.md), each command a process "
        f"of its own; medians of {ROUNDS} rounds. Installing, writing and reading are not counted."
    )
    machine.publish("\n\n".join([head, protocol, "\n".join(lines), last]) + "\n", out)


if __name__ == "__main__":
    main()
