"""Size of a result page, and how long a browser takes to open it, by number of studies.

Protocol: phantom reports, right and wrong, are repeated with new ids up to each number of studies
and scored by ROUGE-L and the judge by rules; `report` makes their page. With --reports, a table of
real reports is used instead. A repeated report is too far from its last copy for gzip to profit
(more than 32 kB). A headless Chromium opens the page from a file, in three fresh profiles; the
median counts. "Drawn" is the time from the start of the navigation until list and charts are in
the document; "sorted" and "searched" are what the page takes to list the studies again after a
click on a header, and after the first search for a word of the reports; "rows drawn" are the rows
of the list that are in the document.

    python benchmarks/report_page.py --out benchmarks/results/report_page.md
"""

import argparse
import contextlib
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import machine

from vlscore.data import FORMS, Study, imperfect_studies, open_studies
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer
from vlscore.pages import report

COUNTS = (100, 1_000, 10_000)
SEED, DISTINCT, ROUNDS = 20267, 1_000, 3
SORT = "document.querySelector('[data-sort=rouge-l]').click()"
SEARCH = (
    "const box = document.querySelector('input[type=search]'); box.value = 'pneumothorax';"
    "box.dispatchEvent(new Event('input'))"
)
LISTED = "return performance.getEntriesByName('listed').pop().duration"


def pairs_of(reports: Path | None) -> list[tuple[str, str]]:
    """Return (reference, candidate) of the phantoms, or of a table."""
    if reports is not None:
        rows = open_studies(reports, needs=("reference", "candidate"))
        return [(str(r.reference), str(r.candidate)) for r in rows if isinstance(r, Study)]
    studies = imperfect_studies(SEED, DISTINCT, next(iter(FORMS)))
    return [(s.reference, (s.false, s.copied, s.true)[s.position % 3]) for s in studies]


def write_table(path: Path, pairs: Sequence[tuple[str, str]], count: int) -> None:
    """Write a table of this many studies."""
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            reference, candidate = pairs[number % len(pairs)]
            row = {"id": f"study-{number:05d}", "reference": reference, "candidate": candidate}
            stream.write(json.dumps(row) + "\n")


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Start a headless Chromium with a fresh profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def open_once(page: Path) -> dict[str, float]:
    """Open the page, sort it and search it; return milliseconds."""
    with browser() as driver:
        driver.get(page.as_uri())
        while driver.execute_script("return document.documentElement.dataset.ready") is None:
            time.sleep(0.02)
        drawn = driver.execute_script("return performance.getEntriesByName('drawn')[0].startTime")
        rows = driver.execute_script("return document.querySelectorAll('.row').length")
        driver.execute_script(SORT)
        ordered = driver.execute_script(LISTED)
        driver.execute_script(SEARCH)
        # The page waits 0.12 s for further letters.
        driver.execute_async_script("setTimeout(arguments[0], 3000)")
        found = driver.execute_script(LISTED)
    return {"drawn": drawn, "sorted": ordered, "searched": found, "rows": rows}


def measure(folder: Path, pairs: Sequence[tuple[str, str]], count: int) -> list[str]:
    """Return a row of the table for one number of studies."""
    table = folder / f"{count}.jsonl"
    write_table(table, pairs, count)
    scored = folder / f"scored-{count}"
    evaluate(table, scored, Scorer(metrics="rouge-l,judge"))
    began = time.perf_counter()
    page = report(scored)
    made = time.perf_counter() - began
    rounds = [open_once(page.path) for _ in range(ROUNDS)]
    median = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    times = [f"{median[name]:.0f}" for name in ("drawn", "sorted", "searched", "rows")]
    return [f"{count:,}", f"{page.bytes / 1e6:.2f}", f"{made:.1f}", *times]


def main() -> None:
    """Measure every number of studies, and print or write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--reports", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    arguments = parser.parse_args()
    pairs = pairs_of(arguments.reports)
    with tempfile.TemporaryDirectory() as place:
        rows = [measure(Path(place), pairs, count) for count in arguments.counts]
    name = "phantoms" if arguments.reports is None else arguments.reports.name
    letters = statistics.mean(len(one) + len(other) for one, other in pairs)
    head = ["studies", "MB", "made, s", "drawn, ms", "sorted, ms", "searched, ms", "rows drawn"]
    lines = [
        "# Result pages: size and opening time",
        "",
        machine.describe_machine(),
        "",
        f"Reports: {name}; {letters:.0f} letters for each study, reference and candidate together.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + " ---: |" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    machine.publish("\n".join(lines) + "\n", arguments.out)


if __name__ == "__main__":
    main()
