"""Values of systems and baselines for the same studies: computed, or read from evaluations."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, difference
from vlscore.data import Study
from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.evaluation.command_settings import ComparisonSettings
from vlscore.evaluation.comparison.inputs import Inputs
from vlscore.evaluation.score_table import Row, score_table
from vlscore.evaluation.scoring.scored_rows import ERROR, ID, ScoredRows
from vlscore.metrics import Item, Scorer

_TRUNCATED = "candidate_truncated"

Array = NDArray[np.float64]


@dataclass
class SystemValues:
    """Values of k systems for n studies.

    Attributes:
        columns: name -> (k, n), nan where a study has no value.
        sums: metric -> (k, n, s) of its corpus values.
        reasons: (system, study) -> why a value is missing.
        truncated: (k, n) whether the encoder did not read a candidate's end; None without one.
    """

    columns: dict[str, Array]
    sums: dict[str, Array]
    reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    truncated: NDArray[np.bool_] | None = None

    @classmethod
    def joined(cls, parts: Sequence["SystemValues"]) -> "SystemValues":
        """Return the values of all systems, one part after the other."""
        starts = np.cumsum([0, *(len(next(iter(p.columns.values()))) for p in parts)]).tolist()
        flags = [part.truncated for part in parts if part.truncated is not None]
        return cls(
            {n: np.concatenate([p.columns[n] for p in parts]) for n in parts[0].columns},
            {n: np.concatenate([p.sums[n] for p in parts]) for n in parts[0].sums},
            {
                (start + k, row): reason
                for start, part in zip(starts, parts, strict=False)
                for (k, row), reason in part.reasons.items()
            },
            np.concatenate(flags) if len(flags) == len(parts) else None,
        )


def baseline_reports(
    inputs: Inputs, settings: ComparisonSettings, workers: int
) -> tuple[dict[str, Sequence[str | None]], list[str]]:
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

    references = inputs.references()
    pool = inputs.train if inputs.train is not None else [t for t in references if t is not None]
    count = len(references)
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
    inputs: Inputs,
    baselines: Mapping[str, Sequence[str | None]],
    workers: int,
    on_progress: OnProgress,
) -> SystemValues:
    """Return the values of all systems, then of the baselines: read, or computed."""
    runs = {source.name: source.run for source in inputs.sources}
    to_score = {
        name: texts for name, texts in inputs.systems.candidates.items() if runs[name] is None
    }
    computed: dict[str, SystemValues] = {}
    if inputs.scorer is not None and (to_score or baselines):
        # The sections of baselines are selected already.
        policy = inputs.scorer.text_policy
        other = copy(inputs.scorer)
        other.text_policy = replace(policy, candidate_section="all")
        groups = [(to_score, inputs.scorer), (baselines, other)]
        if policy.section_of("candidate") == "all":
            groups = [({**to_score, **baselines}, inputs.scorer)]
        for group, scorer in groups:
            if group:
                computed |= _scored(inputs, group, scorer, workers, on_progress)
    parts = []
    for name in [*inputs.systems.candidates, *baselines]:
        run = runs.get(name)
        parts.append(computed[name] if run is None else _read(inputs, name))
    return SystemValues.joined(parts)


def _scored(
    inputs: Inputs,
    candidates: Mapping[str, Sequence[str | None]],
    scorer: Scorer,
    workers: int,
    on_progress: OnProgress,
) -> dict[str, SystemValues]:
    """Return the values of each system, computed; a study's systems are scored together."""
    count, systems = len(inputs.systems.studies), len(candidates)
    items: list[Row] = [
        InvalidStudy("the baseline has no report for this study")
        if texts[row] is None
        else _item(inputs, row, str(texts[row]))
        for row in range(count)
        for texts in candidates.values()
    ]
    table = score_table(items, scorer, workers=workers, on_progress=on_progress)

    def of(column: NDArray[Any], k: int) -> NDArray[Any]:
        return column.reshape(count, systems, *column.shape[1:])[None, :, k]

    reasons: dict[int, dict[tuple[int, int], list[str]]] = {k: {} for k in range(systems)}
    for values in table.values.values():
        for place, error in values.failures.items():
            row, k = divmod(place, systems)
            reasons[k].setdefault((0, row), []).append(str(error))
    flags = table.geometry.get(_TRUNCATED)
    return {
        name: SystemValues(
            {name: of(table.columns[name], k) for m in table.metrics for name in m.columns},
            {
                str(metric): of(each.statistics, k)
                for metric, each in table.values.items()
                if each.statistics is not None and metric.corpus
            },
            {place: "; ".join(dict.fromkeys(found)) for place, found in reasons[k].items()},
            None if flags is None else of(flags, k),
        )
        for k, name in enumerate(candidates)
    }


def _item(inputs: Inputs, row: int, candidate: str) -> Item:
    """Return what is scored of a study; one without an image fails where a metric needs it."""
    study = inputs.systems.studies[row]
    item = Item(candidate, study.reference, None, study.parts)
    if inputs.image_table is None:
        return item
    from vlscore.embedding import StudyViews

    found = inputs.systems.images.get(study.id)
    if isinstance(found, Study):
        item.shown = StudyViews(found.images, found.views, found.prior)
    else:
        reason = f"study {study.id}: no image is given for it" if found is None else found.reason
        item.shown = StudyViews((), error=InvalidStudy(reason))
    return item


def _read(inputs: Inputs, name: str) -> SystemValues:
    """Return the values of a finished evaluation.

    Raises: InvalidSetting where it lacks a metric, or has it with another signature.
    """
    run = next(source.run for source in inputs.sources if source.name == name)
    assert run is not None
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
    places = {str(study): k for k, study in enumerate(found.scores[ID])}
    rows = [places[study.id] for study in inputs.systems.studies]
    scores = found.scores.iloc[rows]
    columns = [name for metric in inputs.signatures for name in metric.columns]
    errors = scores[ERROR].where(scores[ERROR].notna(), None).tolist()
    return SystemValues(
        {name: scores[name].to_numpy(dtype=np.float64)[None] for name in columns},
        {str(m): found.sums[str(m)][rows][None] for m in inputs.signatures if m.corpus},
        {(0, k): str(reason) for k, reason in enumerate(errors) if reason is not None},
        scores[_TRUNCATED].to_numpy(dtype=bool)[None] if _TRUNCATED in scores else None,
    )


def precomputed_values(inputs: Inputs, names: Sequence[str]) -> dict[str, Array]:
    """Return name -> (k, n) of metrics computed elsewhere; baselines have no values of them."""
    if inputs.precomputed is None:
        return {}
    count = len(inputs.systems.studies)
    found = {}
    for name, column in inputs.precomputed.values.items():
        values = np.full((len(names), count), np.nan)
        values[: len(inputs.sources)] = column.reshape(len(inputs.sources), count)
        found[name] = values
    return found
