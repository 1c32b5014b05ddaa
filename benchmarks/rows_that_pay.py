"""Count for each row of the lexicons how often it fires on a set of reports, and what it changes.

Protocol: equal reports count once. A row with a pattern ([[compose]] of change.toml and
context.toml) fires where it decides what words mean. It changes a report if findings, CheXpert's
labels or changes are others without it. Phrases of the tables are counted by the reports in which
one of them is found, in any layer. What fires nowhere, and has no source in the literature, may go.
The page holds no word of a report.

Run: python benchmarks/rows_that_pay.py REPORTS ... [--text COLUMN] [--phrases CSV] [--out FILE]

REPORTS is a folder of .txt files or a table of reports.
"""

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

from machine import describe_machine, publish

from vlscore.core import atomic_write
from vlscore.data import Report, open_reports
from vlscore.findings import (
    Lexicon,
    changes_of,
    chexpert_labels,
    extract,
    extraction_name,
    load_lexicon,
)
from vlscore.findings.compositions import Composed, PatternMatcher, PatternRule
from vlscore.findings.lexicon_files import read_tables
from vlscore.findings.phrases import parse
from vlscore.findings.sentence_reading import read_sentence
from vlscore.findings.types import Category
from vlscore.text import split_sentences

KEYS = ("phrases", "mentions", "states", "starts", "contains")


def texts_of(paths: Iterable[Path], column: str | None) -> Iterator[str]:
    """Return the reports of folders and tables."""
    for path in paths:
        if path.is_dir():
            yield from (file.read_text(encoding="utf-8") for file in sorted(path.glob("*.txt")))
        else:
            rows = open_reports(path, text_column=column)
            yield from (row.text for row in rows if isinstance(row, Report))


def reading(text: str, lexicon: Lexicon) -> tuple[Any, ...]:
    """Return what a report is read as."""
    found = extract(text, lexicon)
    return found.findings, changes_of(found), chexpert_labels(found)


def without(lexicon: Lexicon, table: str, head: str, rule: PatternRule) -> Lexicon:
    """Return a lexicon that lacks one row."""
    rest = [each for each in lexicon.rules[table][head] if each is not rule]
    return replace(lexicon, rules={**lexicon.rules, table: {**lexicon.rules[table], head: rest}})


def fired_in(texts: list[str], lexicon: Lexicon) -> dict[int, list[int]]:
    """Return the reports in which each row decides, by the identity of its rule."""
    fired: defaultdict[int, list[int]] = defaultdict(list)
    deciding: set[int] = set()
    fitting = PatternMatcher.fitting

    def noted(matcher: PatternMatcher, table: Any) -> Iterator[Composed]:
        for made in fitting(matcher, table):
            deciding.add(id(made.rule))
            yield made

    with patch.object(PatternMatcher, "fitting", noted):
        for number, text in enumerate(texts):
            deciding.clear()
            # A sentence that was read before is remembered, and would fire no row again.
            for sentence in split_sentences(text):
                read_sentence(sentence.text + " " * 401, Category.CLINICAL, lexicon)
            for rule in deciding:
                fired[rule].append(number)
    return fired


def rows_of(texts: list[str], lexicon: Lexicon) -> Iterator[tuple[str, str, int, int]]:
    """Return table, pattern, reports in which the row fires, and reports that it changes."""
    fired = fired_in(texts, lexicon)
    read = [reading(text, lexicon) for text in texts]
    for table, heads in lexicon.rules.items():
        for head, rules in heads.items():
            for rule in rules:
                reports = fired.get(id(rule), [])
                ablated = without(lexicon, table, head, rule)
                changed = sum(reading(texts[k], ablated) != read[k] for k in reports)
                yield table, rule.row.pattern, len(reports), changed


def patterns_of(content: Any) -> Iterator[str]:
    """Return the phrases of a table, at any depth."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from value if key in KEYS else patterns_of(value)
    elif isinstance(content, list):
        for each in content:
            yield from patterns_of(each)


def phrases_of(texts: list[str], lexicon: Lexicon) -> dict[tuple[str, str], int]:
    """Return for each (table, phrase pattern) the reports in which one of its phrases is found."""
    named: defaultdict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
    counts: dict[tuple[str, str], int] = {}
    for table, content in read_tables().items():
        for pattern in patterns_of(content):
            counts[table, pattern] = 0
            for parts in product(*parse(pattern)):
                named[tuple(form for part in parts for form in part)].add((table, pattern))
    for text in texts:
        tokens = lexicon.tokenize(text)
        found = set()
        for matches in lexicon.trie.find(tokens).values():
            for match in matches:
                forms = tuple(token.form for token in tokens[match.first : match.last])
                found |= named.get(forms, set())
        for each in found:
            counts[each] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--text", help="column of the reports, where it is not found by its name")
    parser.add_argument("--phrases", type=Path, help="write the count of every phrase as CSV")
    parser.add_argument("--out", type=Path, help="write the page to a file instead")
    options = parser.parse_args()
    texts = list(dict.fromkeys(texts_of(options.reports, options.text)))
    lexicon = load_lexicon()
    rows = sorted(rows_of(texts, lexicon), key=lambda row: (row[0], -row[3], -row[2]))
    counts = phrases_of(texts, lexicon)
    lines = [
        "# What each row of the lexicons pays",
        "",
        f"`benchmarks/rows_that_pay.py {' '.join(path.name for path in options.reports)}`: "
        f"{describe_machine()}",
        "",
        f"{len(texts)} different reports, extraction {extraction_name()}.",
        "",
        "| table | pattern | fires in | changes |",
        "|---|---|---:|---:|",
        *(f"| {t} | `{p.replace('|', '¦')}` | {n} | {m} |" for t, p, n, m in rows),
        "",
        "| table | phrases | found nowhere |",
        "|---|---:|---:|",
    ]
    for table, total in Counter(table for table, _ in counts).items():
        absent = sum(n == 0 for (of, _), n in counts.items() if of == table)
        lines.append(f"| {table} | {total} | {absent} |")
    publish("\n".join(lines), options.out)
    if options.phrases is not None:
        with atomic_write(options.phrases) as stream:
            writer = csv.writer(stream)
            writer.writerow(("table", "phrase", "reports"))
            ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1]))
            writer.writerows((*key, count) for key, count in ordered)


if __name__ == "__main__":
    main()
