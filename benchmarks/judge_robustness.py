"""Claim: a judge gives the same answer about the same findings in another order or other words.

Protocol, after FineRadScore (Huang et al. 2024), which shuffles the sentences of the reference and
paraphrases the candidate. Pairs: phantoms of seed 20264 whose candidates have 0 to 5 errors, or
with --table a table with `reference` and `candidate`. Each pair is judged as it is; with the
sentences of its reference shuffled, those of its candidate shuffled, and its candidate paraphrased
(kinds "shuffle-sentences" and "paraphrase" of vlscore.perturb; the paper's paraphrases were written
by a language model, and change more). Reported over the pairs for which a change exists: share
with the same number of errors in every category, share with the same sum of severities, mean
absolute change of the sum, mean sum before, and tau_b of the sums before and after. A judge by a
language model is also asked with the reports in the other order. The rule judge and the changes
share one extraction of findings, so what both misread is not seen here.

Run: python benchmarks/judge_robustness.py [--table T] [--model NAME [--endpoint URL]
         [--send-to HOST]] [--out benchmarks/results/judge_robustness.md]
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from machine import describe_machine, publish

from vlscore.data import corrupt, open_studies, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.metrics import EndpointModel, JudgeCase, Judgement, ModelJudge, RuleJudge
from vlscore.perturb import perturb_report
from vlscore.stats import TextTable, kendall_tau_b

SEED, PHANTOMS = 20264, 300


def phantoms() -> Iterator[JudgeCase]:
    """Pairs of synthetic reports, the candidate with 0 to 5 errors."""
    for number in range(PHANTOMS):
        rng = np.random.default_rng([SEED, number])
        findings = scene_at(SEED, number).findings
        stated = corrupt(rng, findings, int(rng.integers(0, 6)))
        reference = write_report(rng, findings, split="held_out")
        yield JudgeCase(write_report(rng, stated, split="held_out"), reference)


def pairs_of(table: Path) -> Iterator[JudgeCase]:
    """Pairs of a table; rows that cannot be read are left out."""
    for row in open_studies(table, needs=("reference", "candidate")):
        if hasattr(row, "candidate"):
            yield JudgeCase(row.candidate or "", row.reference or "")


def changed(report: str, kind: str) -> str | None:
    """The report after one change of a kind; None where the kind changes nothing."""
    found = next(perturb_report(report, [kind]), None)
    return None if found is None else found.perturbed


def variants(case: JudgeCase) -> Iterator[tuple[str, JudgeCase]]:
    """Name of a change -> the pair with it."""
    if (reference := changed(case.reference, "shuffle-sentences")) is not None:
        yield "reference shuffled", case._replace(reference=reference)
    if (candidate := changed(case.candidate, "shuffle-sentences")) is not None:
        yield "candidate shuffled", case._replace(candidate=candidate)
    if (candidate := changed(case.candidate, "paraphrase")) is not None:
        yield "candidate paraphrased", case._replace(candidate=candidate)


def row_of(name: str, before: Sequence[Judgement], after: Sequence[Judgement]) -> tuple[str, ...]:
    """One row of the table."""
    sums = np.array([[j.sum for j in before], [j.sum for j in after]], dtype=float)
    totals = np.mean([a.totals == b.totals for a, b in zip(before, after, strict=True)])
    return (
        name,
        str(len(before)),
        f"{totals:.3f}",
        f"{np.mean(sums[0] == sums[1]):.3f}",
        f"{np.mean(np.abs(sums[0] - sums[1])):.3f}",
        f"{np.mean(sums[0]):.2f}",
        f"{kendall_tau_b(sums[0], sums[1]):.3f}",
    )


def rows_for(
    judge: RuleJudge | ModelJudge, other: ModelJudge | None, cases: Sequence[JudgeCase]
) -> Iterator[tuple[str, ...]]:
    """Rows of the table, one for each change."""
    whole = [outcome.judgement for outcome in judge.judge_all(cases)]
    groups: dict[str, list[tuple[int, JudgeCase]]] = {}
    for number, case in enumerate(cases):
        for name, variant in variants(case):
            groups.setdefault(name, []).append((number, variant))
    judged = {
        name: ([n for n, _ in found], judge.judge_all([variant for _, variant in found]))
        for name, found in groups.items()
    }
    if other is not None:
        judged["reports in the other order"] = list(range(len(cases))), other.judge_all(cases)
    for name, (numbers, outcomes) in judged.items():
        both = [
            (one, outcome.judgement)
            for one, outcome in zip((whole[n] for n in numbers), outcomes, strict=True)
            if one is not None and outcome.judgement is not None
        ]
        yield row_of(name, [one for one, _ in both], [two for _, two in both])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--endpoint")
    parser.add_argument("--send-to", default="")
    parser.add_argument("--prompt", default="few-shot")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    judge: RuleJudge | ModelJudge = RuleJudge()
    other = None
    if arguments.model:
        hosts = arguments.send_to.split(",")
        model = EndpointModel(arguments.model, arguments.endpoint, send_to=hosts)
        judge = ModelJudge(model, prompt=arguments.prompt)
        other = ModelJudge(model, prompt=arguments.prompt, order="reference-first")
    cases = list(phantoms() if arguments.table is None else pairs_of(arguments.table))
    table = TextTable(
        f"{len(cases)} pairs of {'phantoms' if arguments.table is None else arguments.table.name}",
        ("change", "pairs", "same categories", "same sum", "change of sum", "sum before", "tau_b"),
        tuple(rows_for(judge, other, cases)),
    )
    report = (
        f"# Robustness of a judge\n\n{describe_machine()}\n\nJudge: `{judge.name}`.\n\n"
        f"{table.markdown()}"
    )
    publish(report, arguments.out)


if __name__ == "__main__":
    main()
