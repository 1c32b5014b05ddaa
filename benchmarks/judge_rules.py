"""Claim: the judge by rules follows radiologists at least as closely as other offline metrics.

Protocol, five parts.

1. RadPref (rajpurkarlab/CRIMSON): each case has a reference, two generated candidates, and of
three radiologists a rating (1 to 5) and errors by finding. Cases are sorted by the sha256 of their
id: the tables of the judge were tuned on the first 25 of the 50 ("development"); the other 25
("final") are scored only with --final. Reported: tau_b with the mean rating and with the mean
number of errors (false, wrong in an attribute, or missed, each counted once), over all candidates
and within each generator; 95 % intervals of the judge, 1,000 resamples of cases; beside it every
free metric that runs here; and the raters' own ceiling: mean tau_b between two raters, and of one
rater with the mean of the other two. Other metrics know no age and no indication; "no patient" is
the judge without them.

2. RadJudge: 30 small cases, each with orders of its candidates; a case counts where every order
holds (equal: by less than 1e-9). All 30 were looked at while the rules were written: an in-sample
upper bound.

3. Phantoms, whose errors are known: scenes of seed 20262, candidates with 0 to 5 errors, both
reports in held-out phrasings. An error is found where category and kind of finding are right.
Micro precision, recall and F1 for each category.

4. Perturbations of real reports (Indiana collection, findings and impression joined), one of each
kind a report, seed 0: the reference is the report, the candidate its changed copy. Confusion of
the kind's category with those that the judge names; a change is right where its own category is
the only one named (for kinds without an error: none). The perturbations come from the same
extraction: what both misread is not seen here. And corrections: the share of candidates of real
generators that the judge finds without a difference after `apply_corrections`.

5. Speed: candidates a second of one process, each distinct pair once, by the processor's time of
the process. No report was read before; a reference that several candidates have is read once.

6. Pairs read for errors, and pairs with planted errors (--read): a language model read or wrote
them under a protocol, not radiologists. Studies are divided by the first byte of the sha256 of
their id: sentences of the even half ("tuned on") were looked at, of the odd half ("not looked at")
numbers only, but repeatedly. Precision, recall and F1 of errors (judge_read.py) and tau_b of every
free metric with the rating, by half; by style or generator; and the confusion of categories, where
the words of an error overlap.

Run: python benchmarks/judge_rules.py --radpref FOLDER --reports iu_reports.jsonl
         --generated vlm_final.jsonl ... --read read.jsonl planted.jsonl [--final]
         [--out benchmarks/results/judge_rules.md]
"""

import argparse
import gc
import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data import GENERATED, INDIANA_REPORTS, RADPREF, describe_file
from judge_read import agreement_row, confused, read_pairs, rows_of
from machine import describe_machine, publish

from vlscore.data import PhantomFinding, Report, corrupt, count_errors, open_reports, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.metrics import (
    SCORES,
    Metric,
    Patient,
    RuleJudge,
    apply_corrections,
    compute,
    patient_of,
    usable_metrics,
)
from vlscore.perturb import ErrorCategory, perturb_report
from vlscore.stats import TextTable, correlation_interval, kendall_tau_b

DEVELOPMENT_CASES = 25
GENERATORS = ("gpt", "medgemma")
PHANTOM_SEED, PHANTOMS = 20262, 500
MOST_REPORTS = 400
#: Concepts of the judge -> kinds of the phantom.
PHANTOM_KINDS = {
    "pleural effusion": "effusion",
    "airspace disease": "consolidation",
    "pneumonia": "consolidation",
    "infiltrate": "consolidation",
    "aspiration": "consolidation",
    "hemothorax or empyema": "effusion",
    "heart failure": "edema",
    "emphysema": "hyperinflation",
    "COPD": "hyperinflation",
    "mass": "nodule",
    "central line": "central_line",
    "endotracheal tube": "endotracheal_tube",
    "gastric tube": "nasogastric_tube",
    "chest tube": "chest_tube",
}


@dataclass(frozen=True)
class RatedCandidate:
    """One candidate of RadPref."""

    case: str
    generator: str
    reference: str
    candidate: str
    patient: Patient
    ratings: tuple[float, ...]
    counts: tuple[float, ...]


def table_of(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return TextTable("", tuple(head), tuple(map(tuple, lines)), "").markdown()


def other_metrics() -> list[Metric]:
    """Free metrics of texts that can run here, but the judge."""
    usable, _ = usable_metrics()
    return [m for m in usable if m.uses_reference and not m.uses_embeddings and m.name != "judge"]


def read_radpref(folder: Path) -> list[RatedCandidate]:
    """Every candidate, development cases first."""
    cases = json.loads((folder / "preference_data.json").read_text(encoding="utf-8"))
    raters = [
        json.loads((folder / f"user_{k}.json").read_text(encoding="utf-8"))["annotations"]
        for k in (1, 2, 3)
    ]
    cases.sort(key=lambda case: hashlib.sha256(case["id"].encode()).hexdigest())
    rows = []
    for case in cases:
        for name in ("C1", "C2"):
            said = [rater[case["id"]][name] for rater in raters]
            rows.append(
                RatedCandidate(
                    case["id"],
                    case[f"{name}_source"],
                    case["ground_truth_report"],
                    case[f"{name}_report"],
                    patient_of(case["PatientAge"], case["Indication"]),
                    tuple(float(s["rating"]) for s in said),
                    tuple(
                        float(len(s["finding_errors"]) + len(s["missing_findings"])) for s in said
                    ),
                )
            )
    return rows


def scores_of(rows: Sequence[RatedCandidate], judge: RuleJudge) -> dict[str, list[float]]:
    """Name -> larger is better, one number a candidate: the judge's scores, then other metrics."""
    judged = [judge.judge(r.candidate, r.reference, r.patient) for r in rows]
    scores = {f"judge, {name}": [score(j) for j in judged] for name, score in SCORES.items()}
    plain = [judge.judge(r.candidate, r.reference) for r in rows]
    scores["judge, rating, no patient"] = [SCORES["rating"](j) for j in plain]
    candidates, references = [r.candidate for r in rows], [r.reference for r in rows]
    for metric in other_metrics():
        values = compute([metric], candidates, references)[str(metric)]
        scores[str(metric)] = list(values * metric.sign)
    return scores


def radpref_table(rows: Sequence[RatedCandidate], judge: RuleJudge, title: str) -> str:
    """tau_b of every score with ratings and counts."""
    rating = np.array([np.mean(r.ratings) for r in rows])
    errors = -np.array([np.mean(r.counts) for r in rows])
    masks = {"all": np.ones(len(rows), bool)} | {
        name: np.array([r.generator == name for r in rows]) for name in GENERATORS
    }
    groups = np.array([r.case for r in rows])
    lines = []
    for name, values in scores_of(rows, judge).items():
        own = np.array(values)
        cells = [name]
        for target in (rating, errors):
            for which, mask in masks.items():
                cell = f"{kendall_tau_b(own[mask], target[mask]):.3f}"
                if which == "all" and name.startswith("judge"):
                    found = correlation_interval(own, target, groups=groups, resamples=1000)
                    cell += f" [{found.low:.2f}, {found.high:.2f}]"
                cells.append(cell)
        lines.append(cells)
    for name, ceiling in (("two raters", _between), ("one rater, mean of others", _with_others)):
        cells = [f"*{name}*"]
        for values in ([r.ratings for r in rows], [r.counts for r in rows]):
            table = np.array(values)
            cells += [f"{ceiling(table[mask]):.3f}" for mask in masks.values()]
        lines.append(cells)
    head = ["score", *(f"{t}, {m}" for t in ("rating", "errors") for m in masks)]
    return f"## RadPref, {title}\n\n{len(rows)} candidates.\n\n{table_of(head, lines)}\n"


def _between(table: Any) -> float:
    """Mean tau_b of two raters."""
    pairs = ((0, 1), (0, 2), (1, 2))
    return float(np.mean([kendall_tau_b(table[:, i], table[:, j]) for i, j in pairs]))


def _with_others(table: Any) -> float:
    """Mean tau_b of one rater with the mean of the others."""
    columns = range(table.shape[1])
    return float(
        np.mean([kendall_tau_b(table[:, i], np.delete(table, i, 1).mean(1)) for i in columns])
    )


def radjudge_table(path: Path, judge: RuleJudge) -> str:
    """Cases whose orders hold, by what they test, for the judge and every other free metric."""
    groups = json.loads(path.read_text(encoding="utf-8"))["RANKING_TESTS"]
    others = other_metrics()
    held: Counter[tuple[str, str]] = Counter()
    for group in groups:
        for case in group["tests"]:
            scores = {"judge": {}} | {str(m): {} for m in others}
            for name, candidate in case["candidates"].items():
                context = candidate.get("context", {})
                patient = patient_of(context.get("age"), context.get("indication"))
                judgement = judge.judge(candidate["text"], case["ground_truth"], patient)
                scores["judge"][name] = SCORES["rating"](judgement)
            names = list(case["candidates"])
            texts = [case["candidates"][name]["text"] for name in names]
            for m in others:
                values = compute([m], texts, [case["ground_truth"]] * len(texts))[str(m)] * m.sign
                scores[str(m)] = dict(zip(names, values, strict=True))
            for name, own in scores.items():
                held[name, group["category"]] += _orders_hold(case["expected_ranking"], own)
    kinds = [group["category"] for group in groups]
    names = ["judge", *(str(m) for m in others)]
    totals = {name: sum(held[name, kind] for kind in kinds) for name in names}
    lines = [
        [name, *(str(held[name, kind]) for kind in kinds), str(totals[name])] for name in names
    ]
    return f"## RadJudge, in-sample\n\n{table_of(['score', *kinds, 'all 30'], lines)}\n"


def _orders_hold(orders: str | list[str], scores: Mapping[str, float]) -> bool:
    for order in [orders] if isinstance(orders, str) else orders:
        first, sign, second = order.split()
        apart = scores[first] - scores[second]
        if not (apart > 1e-9 if sign == ">" else abs(apart) < 1e-9):
            return False
    return True


def phantom_errors(
    stated: Sequence[PhantomFinding], true: Sequence[PhantomFinding]
) -> Counter[tuple[str, str]]:
    """(category, kind) of each error."""
    errors: Counter[tuple[str, str]] = Counter()
    for kind in {f.kind for f in (*stated, *true)}:
        own, other = ([f for f in side if f.kind == kind] for side in (stated, true))
        for category, count in count_errors(own, other).to_dict().items():
            errors[category, kind] += count
    return +errors


def phantom_table(judge: RuleJudge) -> str:
    """Precision, recall and F1 of each category, and the most frequent mistakes."""
    right, extra, missed = Counter[str](), Counter[str](), Counter[str]()
    for place in range(PHANTOMS):
        scene = scene_at(PHANTOM_SEED, place)
        rng = np.random.default_rng([PHANTOM_SEED, place, 1])
        stated = corrupt(rng, scene.findings, int(rng.integers(0, 6)))
        reference = write_report(rng, scene.findings, split="held_out")
        candidate = write_report(rng, stated, split="held_out")
        true = phantom_errors(stated, scene.findings)
        found = Counter(
            (str(e.category), PHANTOM_KINDS.get(e.finding, e.finding))
            for e in judge.judge(candidate, reference).errors
        )
        for counts, pairs in ((right, found & true), (extra, found - true), (missed, true - found)):
            for (category, _), count in pairs.items():
                counts[category] += count
    lines = [_shares(str(c), right[c], extra[c], missed[c]) for c in ErrorCategory]
    lines.append(_shares("all", right.total(), extra.total(), missed.total()))
    head = ["category", "errors", "precision", "recall", "F1"]
    return f"## Phantoms, held-out phrasings\n\n{PHANTOMS} pairs.\n\n{table_of(head, lines)}\n"


def _shares(name: str, right: int, extra: int, missed: int) -> list[str]:
    f1 = 2 * right / (2 * right + extra + missed)
    return [
        name.replace("_", " "),
        str(right + missed),
        f"{right / max(right + extra, 1):.3f}",
        f"{right / max(right + missed, 1):.3f}",
        f"{f1:.3f}",
    ]


def texts_of(reports: Path) -> list[str]:
    """Distinct reports, a sample of them by hash."""
    rows = (r for r in open_reports(reports) if isinstance(r, Report))
    texts = dict.fromkeys(r.text for r in rows)
    return sorted(texts, key=lambda t: hashlib.sha256(t.encode()).hexdigest())


def perturbation_table(texts: Sequence[str], judge: RuleJudge) -> str:
    """Kinds of change by the categories that the judge names."""
    columns = [*(str(c) for c in ErrorCategory), "none", "several"]
    table: dict[tuple[str, str], Counter[str]] = {}
    for text in texts:
        for change in perturb_report(text):
            own = str(change.category) if change.category else "none"
            named = sorted({str(e.category) for e in judge.judge(change.perturbed, text).errors})
            cell = "none" if not named else named[0] if len(named) == 1 else "several"
            table.setdefault((change.kind, own), Counter())[cell] += 1
    lines = []
    for (kind, own), cells in sorted(table.items()):
        shown = [str(cells[c]) for c in columns]
        lines.append([kind, own.replace("_", " "), *shown, f"{cells[own] / cells.total():.3f}"])
    right = sum(cells[own] for (_, own), cells in table.items())
    errors = [(own, cells) for (_, own), cells in table.items() if own != "none"]
    share = sum(c[own] for own, c in errors) / sum(c.total() for _, c in errors)
    total = sum(cells.total() for cells in table.values())
    head = ["kind", "category", *(c.replace("_", " ") for c in columns), "right"]
    return (
        f"## Perturbations of {len(texts)} real reports\n\n{table_of(head, lines)}\n\n"
        f"Right: {right / total:.3f} of {total}; of the kinds with an error {share:.3f}.\n"
    )


def read_tables(path: Path, judge: RuleJudge) -> str:
    """Errors and agreement on both halves of read pairs, by style, and confused categories."""
    pairs = read_pairs(path)
    parts = [f"## {path.name}\n"]
    for half, name in enumerate(("tuned on", "not looked at")):
        some = [p for p in pairs if hashlib.sha256(p["id"].encode()).digest()[0] % 2 == half]
        judged = [judge.judge(p["candidate"], p["reference"]) for p in some]
        columns = ["half", "category", "precision", "recall", "F1", "errors read"]
        parts.append(f"### {name}\n\n{table_of(columns, rows_of(name, some, judged))}\n")
        columns = ["metric", "tau_b of ratings", "tau_b of numbers of errors", "pairs"]
        parts.append(table_of(columns, _agreements(some, judged)) + "\n")
        styles = Counter(_style(p) for p in some)
        lines = []
        for style in sorted(styles):
            own = [k for k, p in enumerate(some) if _style(p) == style]
            of_style = [some[k] for k in own], [judged[k] for k in own]
            whole = rows_of(style, *of_style)[:1] or [(style, *"-" * 5)]
            ratings = [SCORES["rating"](j) for j in of_style[1]]
            tau = kendall_tau_b(ratings, [p["rating"] for p in of_style[0]])
            lines.append([style, str(styles[style]), *whole[0][2:5], f"{tau:.3f}"])
        parts.append(
            table_of(["style", "pairs", "precision", "recall", "F1", "tau_b"], lines) + "\n"
        )
        counts = confused(some, judged)
        named = [*(str(c) for c in ErrorCategory), "nothing"]
        lines = [[row, *(str(counts[row, c]) for c in named)] for row in named]
        parts.append(f"Rows: read; columns: the judge.\n\n{table_of(['', *named], lines)}\n")
    return "\n".join(parts)


def _style(pair: Mapping[str, Any]) -> str:
    return str(pair.get("style") or pair.get("generator") or "")


def _agreements(pairs: Sequence[dict[str, Any]], judged: Sequence[Any]) -> list[Sequence[str]]:
    """The judge's agreement with the ratings, and that of every other free metric."""
    lines: list[Sequence[str]] = [
        agreement_row(f"judge, {name}", pairs, judged, SCORES[name]) for name in ("rating", "grade")
    ]
    read = np.array([p["rating"] for p in pairs], dtype=float)
    counted = -np.array([len(p["errors"]) for p in pairs], dtype=float)
    candidates, references = [p["candidate"] for p in pairs], [p["reference"] for p in pairs]
    for metric in other_metrics():
        values = compute([metric], candidates, references)[str(metric)] * metric.sign
        taus = [f"{kendall_tau_b(values, target):.3f}" for target in (read, counted)]
        lines.append((str(metric), *taus, str(len(pairs))))
    return lines


def correction_line(pairs: Sequence[tuple[str, str]], judge: RuleJudge) -> str:
    """Share of candidates without a difference after their corrections."""
    clean = significant = wrong = 0
    for candidate, reference in pairs:
        judgement = judge.judge(candidate, reference)
        if judgement.errors:
            wrong += 1
            left = apply_corrections(candidate, reference, judgement, judge=judge).remaining
            clean += not left
            significant += not any(e.is_significant for e in left)
    return (
        f"## Corrections\n\nOf {wrong} candidates with errors, {clean / wrong:.3f} differ in "
        f"nothing after `apply_corrections`, {significant / wrong:.3f} in nothing significant.\n"
    )


def speed_line(pairs: Sequence[tuple[str, str]]) -> str:
    """Candidates a second of processor time, the memory of read reports empty at first."""
    judge = RuleJudge()
    judge.judge("No effusion.", "Effusion.")
    # Start-up is left out: what it made is not searched for garbage while the time is taken.
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    for candidate, reference in pairs:
        judge.judge(candidate, reference)
    taken = time.process_time() - begin
    return (
        f"## Speed\n\n{len(pairs)} distinct pairs in {taken:.2f} s of processor time: "
        f"{len(pairs) / taken:.0f} judged candidates a second and core, "
        f"{2 * len(pairs) / taken:.0f} reports read a second.\n"
    )


def candidates_of(path: Path) -> list[tuple[str, str]]:
    """Distinct (candidate, reference) of a table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return list(dict.fromkeys((r["candidate"], r["reference"]) for r in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the judge by rules.")
    parser.add_argument("--radpref", type=Path, required=True)
    parser.add_argument("--reports", type=Path, required=True)
    parser.add_argument("--generated", type=Path, required=True, nargs="+")
    parser.add_argument("--read", type=Path, nargs="*", default=[])
    parser.add_argument("--final", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sources = [entry.check(options.radpref / name) for name, entry in RADPREF.items()]
    sources.append(INDIANA_REPORTS.check(options.reports))
    sources += [GENERATED[path.stem].check(path) for path in options.generated]
    sources += [f"Data: {describe_file(path)}." for path in options.read]
    pairs = list(dict.fromkeys(pair for path in options.generated for pair in candidates_of(path)))
    speed = speed_line(pairs)
    judge = RuleJudge()
    rows = read_radpref(options.radpref)
    development, final = rows[: 2 * DEVELOPMENT_CASES], rows[2 * DEVELOPMENT_CASES :]
    parts = ["# The judge by rules\n", describe_machine() + "\n", "\n".join(sources) + "\n"]
    parts.append(f"Judge: `{judge.name}`.\n")
    parts.append(radpref_table(development, judge, "development (the tables were tuned on these)"))
    if options.final:
        parts.append(radpref_table(final, judge, "final (kept aside while tuning)"))
    parts.append(radjudge_table(options.radpref / "radjudge.json", judge))
    parts += [read_tables(path, judge) for path in options.read]
    parts.append(phantom_table(judge))
    parts.append(perturbation_table(texts_of(options.reports)[:MOST_REPORTS], judge))
    parts += [correction_line(pairs[:MOST_REPORTS], judge), speed]
    publish("\n".join(parts), options.out)


if __name__ == "__main__":
    main()
