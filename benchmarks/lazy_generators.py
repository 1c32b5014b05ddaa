"""Claim: no metric is won by a generator that says nothing; how many metrics a generator wins that
looks at no image depends on the share of normal studies.

Protocol. The reports of five real generators for 273 test studies of the Indiana collection
(data.py), with the references of these files, beside generators that look at nothing:

- empty: no text;
- always normal: the most frequent normal sentences of the references (`standard_normal_of`);
- most frequent: the reference that most studies have;
- other study: the report of another study, drawn without repetition (seed 0), as a copied prior;
- repeated words: "the lungs" 20 times.

These know the references' wording, as a generator does that has seen the training reports. Every
metric of texts that needs no download, each number that compares two reports and of which higher is
better: means over studies, and corpus values where the name says so. A first table is over all
studies, a second over those whose reference states a finding: it affirms or suspects one of
CheXpert's observations but support devices, by the rules of vlscore. These rules also compute
findings-f1, MIRQI and the judge.

Run: python benchmarks/lazy_generators.py FOLDER [--out benchmarks/results/lazy_generators.md]
with FOLDER/generated/*.jsonl
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from data import GENERATED
from machine import describe_machine, publish

from vlscore.findings import chexpert_labels
from vlscore.metrics import Batch, Plan, corpus_name, corpus_of_sums
from vlscore.perturb import standard_normal_of
from vlscore.stats import TextTable, markdown, number

METRICS = "bleu-1,bleu-2,bleu-3,bleu-4,rouge-l,chrf,chrf++,cider-d,findings-f1,mirqi,judge"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    paths = {name: options.folder / "generated" / f"{name}.jsonl" for name in GENERATED}
    sources = [GENERATED[name].check(path) for name, path in paths.items()]
    rows = {
        name: list(map(json.loads, path.open(encoding="utf-8"))) for name, path in paths.items()
    }
    references = [row["reference"] for row in next(iter(rows.values()))]
    real = {name: [row["candidate"] for row in each] for name, each in rows.items()}
    systems = {**lazy(references), **real}
    stated = np.array([states_a_finding(reference) for reference in references])
    tables = [
        table(f"All {len(references)} studies", systems, references, np.ones(len(stated), bool)),
        table(f"The {stated.sum()} studies with a finding", systems, references, stated),
    ]
    parts = [
        "# What a lazy generator gets",
        describe_machine(),
        str(__doc__).split("\n\nRun:")[0],
        "\n".join(f"- {line}" for line in sources),
        markdown(tables),
    ]
    publish("\n\n".join(parts), options.out)


def lazy(references: Sequence[str]) -> dict[str, list[str]]:
    count = len(references)
    (frequent, _), *_ = Counter(references).most_common(1)
    order = np.random.default_rng(0).permutation(count)
    others = dict(zip(order.tolist(), np.roll(order, 1).tolist(), strict=True))
    return {
        "empty": [""] * count,
        "always normal": [standard_normal_of(references)] * count,
        "most frequent": [frequent] * count,
        "other study": [references[others[k]] for k in range(count)],
        "repeated words": ["the lungs " * 20] * count,
    }


def states_a_finding(report: str) -> bool:
    labels = chexpert_labels(report)
    return any(labels[name] for name in labels if name not in ("No Finding", "Support Devices"))


def table(
    title: str, systems: Mapping[str, list[str]], references: list[str], chosen: np.ndarray
) -> TextTable:
    """Return one row a number, one column a system; the best of a row are bold."""
    values = {name: numbers(texts, references, chosen) for name, texts in systems.items()}
    shown, best = [], []
    for row, name in enumerate(next(iter(values.values()))):
        cells = [number(each[name]) for each in values.values()]
        largest = max(cells)
        best += [(row, k + 1) for k, cell in enumerate(cells) if cell == largest]
        shown.append((name, *cells))
    return TextTable(title, ("number", *values), tuple(shown), best=tuple(best))


def numbers(texts: list[str], references: list[str], chosen: np.ndarray) -> dict[str, float]:
    plan = Plan(METRICS)
    plan.fit(references)
    found = {}
    for metric, values in plan.values(Batch(texts, references)).items():
        columns = zip(metric.columns, metric.outputs, values.columns, strict=True)
        for name, output, column in columns:
            if output.higher_is_better:
                found[name] = float(column[chosen].mean())
        if metric.corpus:
            of_corpus = corpus_of_sums(metric, values.statistics[chosen].sum(0)[None])
            for name, value in of_corpus.items():
                mark = " (primary)" if name == metric.primary else ""
                found[corpus_name(metric, name) + mark] = float(value[0])
    return found


if __name__ == "__main__":
    main()
