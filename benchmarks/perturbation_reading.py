"""Claim: read one by one, at most 5 % of the perturbations of real reports are wrong in each kind.

Protocol: 200 reports are drawn from the Indiana University collection (findings and impression
joined; about 70 % of its reports were at hand) by the sha256 of the drawing's name and the
report's id, leaving out every report that was read while the rules were written
(`perturbations/reading_left_out.txt`). Every kind is applied to each, seed 0, one change a kind,
and every change is read. Wrong is: the wrong sentence, broken grammar, or a meaning not changed as
the kind claims. The verdicts stand in `perturbations/reading.jsonl`: for each study the kinds
read, with a digest of the perturbed text, and what was wrong; no report's text. They are those of
the first reading of these reports; where the rules were mended for what it found, the text has
changed since, which the last column counts.

Run: python benchmarks/perturbation_reading.py --reports iu_reports.jsonl [--sheet sheet.txt]
"""

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlscore._files import atomic_write
from vlscore._resources import resource_path
from vlscore.perturb import KINDS, Perturbation, perturb
from vlscore.studies import Report, read_reports

READING = resource_path("perturbations") / "reading.jsonl"
LEFT_OUT = resource_path("perturbations") / "reading_left_out.txt"


def drawn(reports: list[Report], drawing: str, count: int, without: set[str]) -> list[Report]:
    """`count` reports in an order that the drawing's name decides."""
    fit = [report for report in reports if report.id not in without]
    return sorted(fit, key=lambda report: digest(f"{drawing} {report.id}"))[:count]


def made(reports: list[Report]) -> Iterator[Perturbation]:
    for report in reports:
        yield from perturb(report.text, study_id=report.id)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def table(verdicts: list[dict[str, Any]], perturbations: list[Perturbation] | None) -> str:
    """One row a kind; without perturbations, nothing is said of what changed since."""
    now = {(p.study_id, p.kind): digest(p.perturbed) for p in perturbations or ()}
    read: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    for record in verdicts:
        for kind, text in record["read"].items():
            read[kind] += 1
            wrong[kind] += kind in record["wrong"]
            changed[kind] += now.get((record["study_id"], kind)) != text
    lines = ["| kind | read | wrong | wrong, % | changed since |", "|---|---|---|---|---|"]
    for name in (*KINDS, "all"):
        counts = [c.total() if name == "all" else c[name] for c in (read, wrong, changed)]
        since = str(counts[2]) if perturbations is not None else ""
        share = 100 * counts[1] / counts[0] if counts[0] else float("nan")
        lines.append(f"| {name} | {counts[0]} | {counts[1]} | {share:.1f} | {since} |")
    return "\n".join(lines)


def shown(number: int, perturbation: Perturbation, around: int = 90) -> str:
    """One line for the reader: every edit in its surroundings."""
    text, parts, last = perturbation.original, [], 0
    for start, end, replacement in perturbation.edits:
        before = text[max(last, start - around) : start]
        parts.append(f"{before}⟦{text[start:end]}→{replacement}⟧")
        last = end
    parts.append(text[last : last + around])
    body = "".join(parts).replace("\n", "\\n")
    return f"{number} {perturbation.study_id} {perturbation.kind} {perturbation.rule} | {body}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=Path, help="table of the reports; not part of vlscore")
    parser.add_argument("--drawing", default="tally-4")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--sheet", type=Path, help="write what is to be read here, and no table")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    perturbations = None
    if options.reports is not None:
        reports = [row for row in read_reports(options.reports) if isinstance(row, Report)]
        without = set(LEFT_OUT.read_text().split())
        perturbations = list(made(drawn(reports, options.drawing, options.count, without)))
    if options.sheet is not None:
        with atomic_write(options.sheet) as stream:
            for number, perturbation in enumerate(perturbations or ()):
                stream.write(shown(number, perturbation) + "\n")
        return
    verdicts = [json.loads(line) for line in READING.read_text().splitlines()]
    report = table(verdicts, perturbations)
    for record in verdicts:
        for kind, reason in record["wrong"].items():
            report += f"\n\n{record['study_id']}, {kind}: {reason}"
    print(report)
    if options.out is not None:
        with atomic_write(options.out) as stream:
            stream.write(report + "\n")


if __name__ == "__main__":
    main()
