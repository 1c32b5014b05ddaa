"""Controlled corpora: does a metric separate sentences that agree from sentences that do not?

Pino 2022 (thesis, section 5.3; github.com/pdpino/medical-ai, nlp_in_chexpert_groups): sentences are
grouped by the label of one observation. A metric compares candidates of one group with references
of another; a good one gives its best values where the groups are the same. The area under the ROC
curve measures how well its values separate pairs that agree on whether the finding is there (stated
or uncertain, against denied or unmentioned) from pairs that do not.

Departures from his code, each for a reason: a sentence is not compared with itself, because that is
no evidence; areas take as many pairs that agree as pairs that do not, which changes no expectation
and needs fewer pairs; a cell is the mean of its pairs' values, where he has the corpus value of
BLEU.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnPhase, checked_arguments, frame, no_phase, plain, with_noun
from vlscore.data import ReportTable, TextPolicy, split_failures
from vlscore.errors import InvalidSetting
from vlscore.evaluation.command_settings import IN_SAMPLE, ControlledSettings
from vlscore.evaluation.controlled_sentences.labelled_sentences import (
    DENIED,
    GROUPS,
    OWN_RULES,
    STATED,
    UNCERTAIN,
    UNMENTIONED,
    LabelledSentences,
    label_sentences,
)
from vlscore.evaluation.score_table import score_table
from vlscore.metrics import Item, Metric, Scorer, find_metric
from vlscore.stats import (
    NOTHING,
    Content,
    Presentation,
    Result,
    TextTable,
    crossed,
    grouped_auc,
    grouped_mean,
    interval_cells,
    number,
    text_table,
)

if TYPE_CHECKING:
    from pandas import DataFrame

# Both sides of the 2 x 2 matrix, and of the areas.
SIDES = {"absent": (UNMENTIONED, DENIED), "present": (UNCERTAIN, STATED)}
# Task -> the references' side; None for any reference.
TASKS: dict[str, str | None] = {"recall": "present", "specificity": "absent", "all": None}

_AREAS = (
    "Area under the ROC curve of the metric's values for whether candidate and reference agree "
    "that the finding is there; 0.5 is chance. recall: references that state the finding or are "
    "uncertain. specificity: references that deny it or do not mention it. 95 % bootstrap "
    "intervals over references; n: pairs of sentences."
)
_MATRIX = (
    "Mean value of candidates (columns) against references (rows), n pairs in parentheses. {way} "
    "A good metric has its best values on the diagonal. result.json has the intervals."
)
_SIDES = "absent: denied or not mentioned; present: stated or uncertain."


@checked_arguments
def controlled(
    source: ReportTable | LabelledSentences,
    out: str | Path,
    scorer: Scorer,
    *,
    observations: tuple[str, ...] | None = None,
    text_policy: TextPolicy | str | None = None,
    settings: ControlledSettings | None = None,
    overwrite: bool = False,
    on_phase: OnPhase = no_phase,
) -> Result:
    """Compare labelled sentences of reports under every metric, and write tables and numbers.

    Args:
        source: reports, whose sentences our rules label; or sentences that others labelled.
        out: folder for the results.
        scorer: the metrics, none of which looks at images.
        observations: of the reports' sentences.
        text_policy: which section of a report counts.
        settings: number of pairs from which every number is computed.
        overwrite: replace earlier results.
        on_phase: called at the beginning of each phase: pairs of sentences, resampling.

    Returns: frames "separations" (a metric, observation and task: auc), "cells" (of the matrices:
        mean) and "counts" (sentences by observation and label); sentences.csv has the labels.
    Raises: InvalidSetting, FolderInUse.
    """
    settings, policy = settings or ControlledSettings(), TextPolicy.named(text_policy)
    key = {
        "command": "controlled",
        "sha256": source.sha256,
        **(source.limit_key if isinstance(source, ReportTable) else {}),
        "columns": source.sources if isinstance(source, ReportTable) else None,
        "observations": observations,
        "section": policy.signature(),
        "metrics": {name: str(s) for name, s in scorer.signatures.items()},
        "sampling": plain(settings),
    }

    def compute(folder: Path) -> Content:
        if isinstance(source, LabelledSentences):
            sentences, bad, notes = source, list(source.bad), tuple[str, ...]()
        else:
            reports, bad = split_failures(source.selected(policy))
            sentences = label_sentences((report.text for report in reports), observations)
            notes = source.notes
        frames, further, signatures = compare_sentences(
            scorer, sentences, settings, on_phase=on_phase
        )
        known = reading_by_own_rules(scorer) if sentences.labelled_by == OWN_RULES else set()
        return Content(
            frames,
            {"sentences.csv": sentences.table()},
            bad,
            signatures,
            [*notes, *further],
            {
                "sentences": len(sentences),
                "labelled_by": sentences.labelled_by,
                "in_sample": sorted(known),
            },
        )

    return Result.make(out, key, compute, overwrite=overwrite)


def compare_sentences(
    scorer: Scorer,
    sentences: LabelledSentences,
    settings: ControlledSettings | None = None,
    *,
    on_phase: OnPhase = no_phase,
) -> "tuple[dict[str, DataFrame], list[str], dict[str, Any]]":
    """Compute matrices and areas of every metric of a scorer.

    Args:
        sentences: with labels; see `label_sentences` and `read_labelled`.
        on_phase: called at the beginning of each phase.

    Returns: the frames of `controlled`, notes, and the metrics' signatures.
    Raises: InvalidSetting for a metric that looks at images, for sentences have none, or where no
        observation has sentences to compare.
    """
    settings = settings or ControlledSettings()
    if scorer.needs.images:
        named = ", ".join(str(metric) for metric in scorer.metrics if metric.uses_image)
        raise InvalidSetting(
            f"{named or 'these metrics'} use images, and sentences have none; name text metrics. "
            "`vlscore sensitivity` tests metrics that use the image"
        )
    pairs = _drawn_pairs(sentences, settings)
    used = list(dict.fromkeys(pairs["observation"]))
    notes = [
        f"{name} is left out: no two sentences state it, or no two do not"
        for name in sentences.labels
        if name not in used
    ]
    # Each pair of sentences is scored once.
    rows = pairs.groupby(["candidate", "reference"], sort=False).ngroup().to_numpy()
    texts = sentences.sentences
    distinct = pairs[["candidate", "reference"]].drop_duplicates().itertuples(index=False)
    items = [Item(texts[candidate], texts[reference]) for candidate, reference in distinct]
    on_pairs = on_phase("pairs of sentences", len(items))
    table = score_table(items, scorer.prepared(sentences.sentences), on_progress=on_pairs)
    cells, separations = [], []
    options = {"resamples": settings.resamples, "seed": settings.seed}
    resampling = on_phase("resampling metrics", len(table.values))
    for done, (metric, values) in enumerate(table.values.items(), start=1):
        if lacking := int((~np.isfinite(values.columns[0])).sum()):
            notes.append(f"without a value of {metric}: {with_noun(lacking, 'pair')}")
        scored = pairs.assign(value=values.columns[0][rows])
        scored = scored[np.isfinite(scored["value"])]
        groups = scored.groupby(["observation", "task", "of", "with"], sort=False)
        for (name, task, of, with_), group in groups:
            references = group["reference"].astype(str).tolist()
            found = {"metric": str(metric), "observation": name}
            counts = {"n": len(group), "references": len(set(references))}
            if not task:
                mean = grouped_mean(group["value"], references, **options)
                better = {"higher_is_better": metric.higher_is_better}
                pair = {"reference": of, "candidate": with_}
                cells.append({**found, **better, **pair, **counts, "mean": mean})
            elif group["agrees"].nunique() == 2:
                signed = metric.sign * group["value"]
                area = grouped_auc(signed, group["agrees"].astype(bool), references, **options)
                separations.append({**found, "task": task, **counts, "auc": area})
            else:
                notes.append(f"{name}, {task} is left out: its pairs all agree, or none does")
        resampling(done, 0)
    counts_of = [
        {"observation": name}
        | {label: len(sentences.places(name, group)) for group, label in GROUPS.items()}
        for name in sentences.labels
    ]
    frames = {"separations": separations, "cells": cells, "counts": counts_of}
    notes = list(dict.fromkeys(notes))
    return {k: frame(each) for k, each in frames.items()}, notes, table.signatures


def reading_by_own_rules(scorer: Scorer) -> set[str]:
    """Return the metrics that read texts by the rules of `vlscore.findings`, directly or not."""

    def reads(metric: Metric) -> bool:
        inputs = (find_metric(each) for each in metric.inputs)
        return metric.uses_findings or any(map(reads, inputs))

    return {str(metric) for metric in scorer.metrics if reads(metric)}


def _drawn_pairs(sentences: LabelledSentences, settings: ControlledSettings) -> "DataFrame":
    """Draw the pairs of sentences that are compared.

    Returns: observation; task, "" for a cell of the matrices; of and with, the cell's groups of
        reference and candidate; reference and candidate, positions of sentences; agrees.
    """
    from pandas import DataFrame

    rows: list[tuple[Any, ...]] = []
    for number_of, name in enumerate(sentences.labels):
        rng = np.random.default_rng([settings.seed, number_of])
        groups = {label: sentences.places(name, group) for group, label in GROUPS.items()}
        sides = {side: sentences.places(name, *labels) for side, labels in SIDES.items()}
        if any(len(side) < 2 for side in sides.values()):
            continue
        for places in (groups, sides):
            for of, references in places.items():
                for with_, candidates in places.items():
                    rows += [
                        (name, "", of, with_, r, g, 0)
                        for r in _some(rng, references, settings.references)
                        for g in _some(rng, candidates[candidates != r], settings.candidates)
                    ]
        half = max(settings.candidates // 2, 1)
        present = set(sides["present"].tolist())
        for task, side_of in TASKS.items():
            references = np.concatenate(list(sides.values())) if side_of is None else sides[side_of]
            rows += [
                (name, task, "", "", r, g, (side == "present") == (r in present))
                for r in _some(rng, references, settings.references)
                for side, candidates in sides.items()
                for g in _some(rng, candidates[candidates != r], half)
            ]
    if not rows:
        raise InvalidSetting(
            f"of {len(sentences)} sentences, fewer than two state "
            f"{', '.join(sentences.labels)}, or fewer than two do not; name other observations "
            "(--observations), or give more reports"
        )
    columns = ["observation", "task", "of", "with", "reference", "candidate", "agrees"]
    return DataFrame(rows, columns=columns)


def _some(rng: np.random.Generator, places: NDArray[np.intp], most: int) -> list[int]:
    """Return at most `most` of the places, without replacement, in random order."""
    chosen: list[int] = rng.permutation(places)[:most].tolist()
    return chosen


def _tables(run: Result) -> list[TextTable]:
    """Return the tables of areas, and the matrices of every metric."""
    tables: list[TextTable] = []
    rows, cells = run.frames["separations"], run.frames["cells"]
    for name, own in rows.groupby("observation", sort=False) if len(rows) else ():
        records: dict[str, dict[str, str]] = {}
        shown = zip(own["metric"], own["task"], interval_cells(own, "auc"), own["n"], strict=True)
        for metric, task, area, n in shown:
            empty = {h: c for each in TASKS for h, c in ((each, NOTHING), (f"n ({each})", "0"))}
            record = records.setdefault(metric, {"metric": _named(metric, run), **empty})
            record |= {task: area, f"n ({task})": str(n)}
        tables.append(text_table(f"Do sentences agree? {name}", records.values(), _AREAS))
    if not len(cells):
        return tables
    texts = [f"{number(m)} ({n})" for m, n in zip(cells["mean"], cells["n"], strict=True)]
    cells = cells.assign(cell=texts)
    for (metric, name), own in cells.groupby(["metric", "observation"], sort=False):
        title = f"{_named(str(metric), run)}: {name}"
        way = "Higher is better." if own["higher_is_better"].iloc[0] else "Lower is better."
        for groups, more in ((list(SIDES), f"{_SIDES} {way}"), (list(GROUPS.values()), way)):
            part = own[own["reference"].isin(groups) & own["candidate"].isin(groups)]
            if len(part):
                wide = crossed(part, "reference", "candidate", "cell").set_index("reference")
                order = [group for group in groups if group in wide.index]
                wide = wide.reindex(index=order, columns=groups, fill_value=NOTHING).reset_index()
                tables.append(text_table(title, wide, _MATRIX.format(way=more)))
    return tables


def _named(metric: str, run: Result) -> str:
    """Return the name of a metric, with a mark if it reads by the rules which labelled."""
    return f"{metric} ({IN_SAMPLE})" if metric in run.record["in_sample"] else metric


PRESENTATION = Presentation(_tables)
