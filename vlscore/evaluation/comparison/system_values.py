"""Values of systems and baselines for the same studies: computed, or read from evaluations."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vlscore.core import FinishedRun, OnProgress, difference
from vlscore.data import Study
from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.evaluation.command_settings import ComparisonSettings
from vlscore.evaluation.comparison.inputs import Inputs
from vlscore.evaluation.score_table import score_table
from vlscore.evaluation.scoring.scored_rows import ERROR, ID, ScoredRows
from vlscore.metrics import Item, Scorer

_TRUNCATED = "candidate_truncated"

Array = NDArray[np.float64]
# A report is None where a baseline has none for a study.
Reports = Mapping[str, Sequence[str | None]]


@dataclass
class SystemValues:
    """Values of k systems for n studies.

    Attributes:
        names: of the systems, those of the user first, then the baselines.
        columns: name -> (k, n), nan where a study has no value.
        sums: metric -> (k, n, s) of its corpus values.
        reasons: (system, study) -> why a value is missing.
        truncated: system -> (n,) whether the encoder did not read a candidate's end.
    """

    names: Sequence[str]
    columns: dict[str, Array]
    sums: dict[str, Array]
    reasons: dict[tuple[int, int], str]
    truncated: dict[str, NDArray[np.bool_]]


def baseline_reports(
    inputs: Inputs, settings: ComparisonSettings, workers: int
) -> tuple[Reports, list[str]]:
    """Return name -> reports of the baselines, whose sections are selected already; and notes."""
    if not settings.baselines:
        return {}, []
    # They load torch, which comparisons of texts do without.
    from vlscore.evaluation.baselines.training_reports import (
        CONSTANT,
        NEAREST,
        NORMAL,
        RANDOM,
        constant_report,
        nearest_reports,
        random_reports,
    )
    from vlscore.perturb import standard_normal_of

    references, count = inputs.references, len(inputs.references)
    pool = inputs.train if inputs.train is not None else [t for t in references if t is not None]
    # First, because it raises a clear error where there are no reports.
    drawn = random_reports(references, inputs.train, settings.seed)
    report, times = constant_report(pool)
    whose = "of the training table" if inputs.train is not None else "of the references"
    # Without the texts: reports are patients' data, and notes reach the logs of a cluster.
    notes = [
        f"{CONSTANT} is the most frequent report {whose} ({times} of {len(pool)} have it), "
        f"{NORMAL} their most frequent normal sentences"
    ]
    if inputs.train is None:
        notes.append(
            "baselines take the references of the compared studies, which the systems do not "
            "know; name a training table for a fair comparison"
        )
    found: dict[str, Sequence[str | None]] = {
        CONSTANT: [report] * count,
        NORMAL: [standard_normal_of(pool)] * count,
        RANDOM: drawn,
    }
    embedder = inputs.scorer.embedder if inputs.scorer is not None else None
    if inputs.image_table is None or embedder is None:
        notes.append(f"{NEAREST} is left out: no metric looks at images, so none are embedded")
    else:
        items = (_item(inputs, k, "") for k in range(count))
        with embedder.decoder(workers) as decoder:
            shown = [embedder.begin(item.shown, decoder) for item in items if item.shown]
            vectors = embedder.embed_studies(shown).vectors
        found[NEAREST] = nearest_reports(vectors, references)
    return found, notes


def values_of(
    inputs: Inputs, baselines: Reports, workers: int, on_progress: OnProgress
) -> SystemValues:
    """Return the values of all systems, then of the baselines: read, or computed.

    Values of the table of values are among the columns; baselines have none of them.
    """
    names = [*inputs.systems.candidates, *baselines]
    shape = len(names), len(inputs.systems.studies)
    metrics = list(inputs.signatures)
    columns = {name: np.full(shape, np.nan) for metric in metrics for name in metric.columns}
    sums = {str(m): np.zeros((*shape, m.statistics)) for m in metrics if m.corpus}
    values = SystemValues(names, columns, sums, {}, {})
    to_score: dict[str, Sequence[str | None]] = {}
    for k, source in enumerate(inputs.sources):
        if source.run is None:
            to_score[source.name] = inputs.systems.candidates[source.name]
        else:
            _read(inputs, source.run, values, k)
    if inputs.scorer is not None:
        # The sections of baselines are selected already.
        policy, other = inputs.scorer.text_policy, copy(inputs.scorer)
        other.text_policy = replace(policy, candidate_section="all")
        groups = [(to_score, inputs.scorer), (baselines, other)]
        if policy.section_of("candidate") == "all":
            groups = [({**to_score, **baselines}, inputs.scorer)]
        for reports, scorer in groups:
            if reports:
                _score(inputs, reports, scorer, values, workers, on_progress)
    if inputs.precomputed is not None:
        for name, column in inputs.precomputed.values.items():
            columns[name] = np.full(shape, np.nan)
            columns[name][: len(inputs.sources)] = column.reshape(-1, shape[1])
    values.reasons = dict(sorted(values.reasons.items()))
    return values


def _score(
    inputs: Inputs,
    reports: Reports,
    scorer: Scorer,
    values: SystemValues,
    workers: int,
    on_progress: OnProgress,
) -> None:
    """Compute the values of some systems; a study's systems are scored together."""
    count, systems = len(inputs.systems.studies), [values.names.index(name) for name in reports]
    items = [
        InvalidStudy("the baseline has no report for this study")
        if (text := texts[row]) is None
        else _item(inputs, row, text)
        for row in range(count)
        for texts in reports.values()
    ]
    table = score_table(items, scorer, workers=workers, on_progress=on_progress)
    reasons: dict[tuple[int, int], dict[str, None]] = {}
    for metric, each in table.values.items():
        for name, column in zip(metric.columns, each.columns, strict=True):
            values.columns[name][systems] = column.reshape(count, -1).T
        if each.statistics is not None and metric.corpus:
            cut = each.statistics.reshape(count, len(systems), -1)
            values.sums[str(metric)][systems] = cut.transpose(1, 0, 2)
        for place, error in each.failures.items():
            row, k = divmod(place, len(systems))
            reasons.setdefault((systems[k], row), {})[str(error)] = None
    values.reasons |= {place: "; ".join(each) for place, each in reasons.items()}
    if (flags := table.geometry.get(_TRUNCATED)) is not None:
        values.truncated |= dict(zip(reports, flags.reshape(count, -1).T, strict=True))


def _item(inputs: Inputs, row: int, candidate: str) -> Item:
    """Return what is scored of a study; one without an image fails where a metric needs it."""
    study = inputs.systems.studies[row]
    item = Item(candidate, study.reference, None, study.parts)
    if inputs.image_table is None:
        return item
    from vlscore.embedding import StudyViews

    found = inputs.systems.images.get(study.id)
    if isinstance(found, Study):
        item.shown = StudyViews.of(found)
    else:
        reason = f"study {study.id}: no image is given for it" if found is None else found.reason
        item.shown = StudyViews((), error=InvalidStudy(reason))
    return item


def _read(inputs: Inputs, run: FinishedRun, values: SystemValues, system: int) -> None:
    """Read the values of a finished evaluation.

    Raises: InvalidSetting where it lacks a metric, or has it with another signature.
    """
    found = ScoredRows.read(run, inputs.signatures)
    for metric, wanted in inputs.signatures.items():
        signature = found.metrics.get(metric)
        if signature is None:
            raise InvalidSetting(
                f"{run.folder} has no values of {metric}; it has "
                f"{', '.join(map(str, found.metrics))}. Give its table instead of the folder"
            )
        if signature != wanted:
            raise InvalidSetting(
                f"{run.folder} holds {metric} computed in another way than the others: "
                f"{difference(signature, wanted)}. Values of different signatures are not compared"
            )
    # Of rows with one id only the last can be a study; the others could not be read.
    last = {str(study): k for k, study in enumerate(found.scores[ID])}
    rows = [last[study.id] for study in inputs.systems.studies]
    scores = found.scores.iloc[rows]
    for metric in inputs.signatures:
        for name in metric.columns:
            values.columns[name][system] = scores[name]
        if metric.corpus:
            values.sums[str(metric)][system] = found.sums[str(metric)][rows]
    values.reasons |= {(system, k): str(e) for k, e in enumerate(scores[ERROR]) if e == e and e}
    if _TRUNCATED in scores:
        values.truncated[values.names[system]] = scores[_TRUNCATED].to_numpy(dtype=bool)
