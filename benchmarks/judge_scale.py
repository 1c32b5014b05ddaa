"""Claim: a scale for the judge's number, so that "is .55 good?" has an answer.

Protocol: references are the abnormal reports (a finding stated, no device alone) of the studies of
the Indiana University collection, findings and impression joined, equal texts once. Each anchor is
a candidate made of the reference with one known fault: a copy; one change by vlscore.perturb
(harmless: shuffled sentences, a paraphrase, a finding called unchanged;
errors: the effusion left out, another side, another severity, an invented finding, an invented
change since an earlier image, a negation); the standard normal report of the collection, for
reports of which it misses a significant finding (severity 3 to 5, as the judge counts) and for the
others; the report of another study, drawn once. An anchor takes every reference that allows it, one
change each. With --generators, real generators' reports of the same studies are anchors, too. The
changes and the judge share one extraction of findings, so what both misread is not seen here: the
order of magnitude is what counts.

Run: python benchmarks/judge_scale.py IU/studies.jsonl [--generators FOLDER] [--write]
         [--out benchmarks/results/judge_scale.md]
--write puts the table into docs/judge.md between its marks, and the picture into
docs/judge_scale.svg.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np
from machine import describe_machine, publish

from vlscore.core import atomic_write
from vlscore.findings import extract
from vlscore.metrics import RuleJudge, compute
from vlscore.perturb import perturb_report, standard_normal_of
from vlscore.stats import TextTable, figure_style, finish, new_figure

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- scale: begin -->", "<!-- scale: end -->"
NUMBER = "judge"
GRADE = f"{NUMBER}.grade"
METRICS = (NUMBER, "findings-f1", "rouge-l")
#: Anchor -> kind of perturbation, and the start of its rule where only some changes count.
CHANGED = {
    "sentences in another order": ("shuffle-sentences", ""),
    "paraphrased": ("paraphrase", ""),
    "one finding called unchanged": ("invent-comparison", ("compared:st", "compared:unch")),
    "one change over time invented": (
        "invent-comparison",
        ("compared:new", "compared:increased", "compared:decreased"),
    ),
    "one severity wrong": ("change-severity", ""),
    "one side wrong": ("change-location", "side:"),
    "one finding invented": ("add-false-finding", ""),
    "one finding denied": ("negate-finding", ""),
    "the effusion missed": ("remove-pathology", "sentence:pleural_effusion"),
}
Pairs = list[tuple[str, str]]


def references_of(path: Path) -> dict[str, str]:
    """Return id -> report of the abnormal studies, equal texts once."""
    found: dict[str, str] = {}
    texts: set[str] = set()
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        text = " ".join(filter(None, (row["findings"], row["impression"])))
        if text not in texts and any(
            f.is_present and f.chexpert != "Support Devices" for f in extract(text)
        ):
            found[row["id"]] = text
            texts.add(text)
    return found


def anchors(references: dict[str, str], everyone: Sequence[str]) -> Iterator[tuple[str, Pairs]]:
    """Yield name of an anchor -> (candidate, reference) of every reference that allows it."""
    texts = list(references.values())
    yield "a copy", [(text, text) for text in texts]
    for name, (kind, rule) in CHANGED.items():
        pairs = []
        for text in texts:
            made = perturb_report(text, [kind], per_report=8)
            fitting = (p.perturbed for p in made if p.rule.startswith(rule))
            pairs += [(candidate, text) for candidate in [next(fitting, None)] if candidate]
        yield name, pairs
    normal = standard_normal_of(everyone)
    judge = RuleJudge()
    minor: dict[bool, Pairs] = {True: [], False: []}
    for text in texts:
        minor[judge.judge(normal, text).significant == 0].append((normal, text))
    yield "a boilerplate normal report, a significant finding missed", minor[False]
    yield "a boilerplate normal report, minor findings missed", minor[True]
    order = np.random.default_rng(0).permutation(len(texts))
    others = [texts[k] for k in np.roll(order, 1)]
    yield (
        "the report of another study",
        [(other, texts[k]) for k, other in zip(order, others, strict=True)],
    )


def generators(folder: Path, references: dict[str, str]) -> Iterator[tuple[str, Pairs]]:
    """Yield the reports of each real generator for these studies."""
    for path in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        pairs = [(r["candidate"], r["reference"]) for r in rows if r["id"] in references]
        if pairs:
            yield f"generator {path.stem}", pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", type=Path)
    parser.add_argument("--generators", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    references = references_of(arguments.studies)
    rows = [json.loads(line) for line in arguments.studies.read_text("utf-8").splitlines()]
    everyone = [" ".join(filter(None, (r["findings"], r["impression"]))) for r in rows]
    found = list(anchors(references, everyone))
    if arguments.generators is not None:
        found += generators(arguments.generators, references)
    values = {
        name: compute(",".join(METRICS), *map(list, zip(*pairs, strict=True)))
        for name, pairs in found
        if pairs
    }
    order = sorted(values, key=lambda name: -float(np.median(values[name][NUMBER])))
    table = TextTable(
        "",
        (
            *("candidate", "n", "judge: median", "middle half", "grade: median"),
            *(f"{m}: median" for m in METRICS[1:]),
        ),
        tuple(
            (
                name,
                str(len(values[name][NUMBER])),
                f"{np.median(values[name][NUMBER]):.2f}",
                "{:.2f} to {:.2f}".format(*np.percentile(values[name][NUMBER], [25, 75])),
                f"{np.median(values[name][GRADE]):.0f}",
                *(f"{np.median(values[name][m]):.2f}" for m in METRICS[1:]),
            )
            for name in order
        ),
    )
    text = (
        f"{table.markdown().strip()}\n\n{len(references)} abnormal reports; "
        f"`benchmarks/judge_scale.py`, {date.today()}."
    )
    report = (
        f"# A scale for the judge's number\n\n{describe_machine()}\n\n"
        f"Judge: `{RuleJudge().name}`.\n\n{text}\n"
    )
    publish(report, arguments.out)
    if arguments.write:
        page = DOCS / "judge.md"
        before, rest = page.read_text("utf-8").split(BEGIN)
        with atomic_write(page) as stream:
            stream.write(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
        draw({name: values[name][NUMBER] for name in order}, DOCS / "judge_scale.svg")


def draw(values: dict[str, "np.ndarray[tuple[int], np.dtype[np.float64]]"], path: Path) -> None:
    """Draw one box an anchor."""
    with figure_style():
        figure = new_figure(len(values) + 2)
        axes = figure.subplots()
        axes.boxplot(
            list(values.values()), orientation="horizontal", whis=(5, 95), showfliers=False
        )
        axes.set_yticks(range(1, len(values) + 1), list(values))
        axes.invert_yaxis()
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("judge (rating)")
        note = "Box: quartiles; whiskers: 5 % and 95 % of the pairs."
        finish(figure, path, "What a report with one fault has", note)


if __name__ == "__main__":
    main()
