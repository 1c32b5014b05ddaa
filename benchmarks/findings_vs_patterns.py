"""The rules beside those of the CheXpert labeller and NegBio, phrase by phrase.

Protocol. For each pattern of the CheXpert labeller (Irvin et al. 2019, github.com/stanfordmlgroup/
chexpert-labeler, folders `patterns` and `phrases`) and of NegBio (Peng et al. 2018,
github.com/ncbi-nlp/NegBio, folder `negbio/patterns`), a sentence of our own has been written that
the pattern is meant for, with the value that its authors give it: 1 stated, 0 denied, -1 uncertain,
none not mentioned. `chexpert_labels` reads the sentence. Where our rules differ on purpose, the
reason stands beside; a difference without a reason is an error and fails the tests.
The sentences were read while the triggers were written: this shows agreement, not accuracy.

    python benchmarks/findings_vs_patterns.py
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine import describe_machine, publish

from vlscore.findings import chexpert_labels

PATTERNS = Path(__file__).parents[1] / "tests" / "findings" / "data" / "published_patterns.jsonl"
RESULTS = Path(__file__).parent / "results" / "findings_vs_patterns.md"
_VALUES = {1: "stated", 0: "denied", -1: "uncertain", None: "not mentioned"}


@dataclass(frozen=True)
class Pattern:
    """One published pattern, a sentence for it, what its authors make of it and what we do."""

    source: str
    file: str
    pattern: str
    sentence: str
    label: str
    theirs: int | None
    ours: int | None
    why: str | None

    @classmethod
    def parse(cls, row: dict[str, Any]) -> "Pattern":
        wanted = row.get("ours", row["theirs"])
        known = ("source", "file", "pattern", "sentence", "label", "theirs")
        return cls(*(row[name] for name in known), wanted, row.get("why"))

    @property
    def is_kept(self) -> bool:
        """Whether the rules give the value that this table says they give."""
        return chexpert_labels(self.sentence)[self.label] == self.ours


def read_patterns(path: Path = PATTERNS) -> list[Pattern]:
    with path.open(encoding="utf-8") as lines:
        return [Pattern.parse(json.loads(line)) for line in lines]


def render(patterns: list[Pattern]) -> str:
    """Agreement by file, then every deliberate difference with its reason."""
    total, agree, kept = Counter[str](), Counter[str](), Counter[str]()
    for p in patterns:
        name = f"{p.source}, {p.file}"
        total[name] += 1
        agree[name] += p.is_kept and p.ours == p.theirs
        kept[name] += p.is_kept
    lines = [
        "# The rules beside the CheXpert labeller's and NegBio's",
        "",
        f"`benchmarks/findings_vs_patterns.py`: {describe_machine()}",
        "",
        "| patterns of | patterns | agree | differ on purpose | differ otherwise |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, count in total.items():
        purpose = kept[name] - agree[name]
        lines.append(f"| {name} | {count} | {agree[name]} | {purpose} | {count - kept[name]} |")
    lines += [
        "",
        "## Deliberate differences",
        "",
        "| pattern | sentence | label | theirs | ours | why |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {p.source}: {p.pattern} | {p.sentence} | {p.label} | {_VALUES[p.theirs]} | "
        f"{_VALUES[p.ours]} | {p.why} |"
        for p in patterns
        if p.why is not None
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    publish(render(read_patterns()), parser.parse_args().out)


if __name__ == "__main__":
    main()
