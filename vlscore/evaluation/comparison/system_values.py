"""Values of systems and baselines for the same studies: computed, or read from evaluations."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

from vlscore.core import FinishedRun, OnProgress, difference
from vlscore.data import Study
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.comparison.comparison_settings import ComparisonSettings
from vlscore.evaluation.comparison.systems import Systems
from vlscore.evaluation.score_table import score_table
from vlscore.evaluation.scored import BASELINE, ID, Scored
from vlscore.metrics import Item, Scorer

SYSTEM, TRUNCATED = "system", "candidate_truncated"

# A report is None where a baseline has none for a study.
Reports = Mapping[str, Sequence[str | None]]


def baseline_reports(
    systems: Systems, settings: ComparisonSettings, workers: int
) -> tuple[Reports, list[str]]:
    """Return name -> reports of the baselines, whose sections are selected already; and notes."""
    if not settings.baselines:
        return {}, []
    # They load torch, which comparisons of texts do without.
    from vlscore.evaluation.baselines.baseline_base import (
        Baseline,
        BaselineSettings,
        Case,
        TrainingReports,
    )
    from vlscore.evaluation.baselines.baseline_candidates import training_reports
    from vlscore.evaluation.baselines.training_reports import Constant, NearestImage, Normal, Random

    known = [k for k, text in enumerate(systems.references) if text is not None]
    own = TrainingReports(
        [text for text in systems.references if text is not None],
        own={k: place for place, k in enumerate(known)},
    )
    if systems.train is None and len(known) < 2:
        raise InvalidSetting(
            "baselines learn from the references of other studies, and there are none; give a "
            "table of reports (--train), or leave the baselines out"
        )
    training = own if systems.train is None else TrainingReports(systems.train)
    given = BaselineSettings(seed=settings.seed)
    constant, normal, random = Constant(given), Normal(given), Random(given)
    baselines: list[Baseline] = [constant, normal, random]
    for each in baselines:
        each.fit(training, None)
    whose = "of the training table" if systems.train is not None else "of the references"
    # Without the texts: reports are patients' data, and notes reach the logs of a cluster.
    notes = [
        f"{BASELINE}{constant.name} is the most frequent report {whose} ({constant.times} of "
        f"{len(training.reports)} have it), {BASELINE}{normal.name} their most frequent normal "
        "sentences"
    ]
    if systems.train is None:
        notes.append(
            "baselines take the references of the compared studies, which the systems do not "
            "know; name a training table for a fair comparison"
        )
    cases = [Case(k, study.id) for k, study in enumerate(systems.studies)]
    nearest = NearestImage(given)
    embedder = systems.scorer.embedder if systems.scorer is not None else None
    if systems.image_table is None or embedder is None:
        notes.append(
            f"{BASELINE}{nearest.name} is left out: no metric looks at images, so none are embedded"
        )
    elif settings.train is not None and systems.train_images is None:
        notes.append(
            f"{BASELINE}{nearest.name} is left out: {settings.train.path} has no column of images"
        )
    else:
        items = (_item(systems, k, "") for k in range(len(cases)))
        with embedder.decoder(workers) as decoder:
            shown = [embedder.begin(item.shown, decoder) for item in items if item.shown]
            images = embedder.embed_studies(shown).vectors.float().numpy()
        cases = [replace(case, image=images[case.position]) for case in cases]
        try:
            if systems.train_images is None:
                learnt = replace(own, images=images[known])
            else:
                learnt, _, further = training_reports(
                    systems.train_images, systems.policy, embedder, workers
                )
                notes += further
            nearest.fit(learnt, embedder)
            baselines.append(nearest)
        except InvalidTable as error:
            notes.append(f"{BASELINE}{nearest.name} is left out: {error}")
    return {
        f"{BASELINE}{each.name}": [
            None if isinstance(text, InvalidStudy) else text for text in each.candidates(cases)
        ]
        for each in baselines
    }, notes


def values_of(
    systems: Systems, baselines: Reports, workers: int, on_progress: OnProgress
) -> Scored:
    """Return the values of all systems, then of the baselines: read, or computed.

    A row is a study of a system: one system after the other. Values of the table of values are
    among the columns; baselines have none of them.
    """
    known: dict[str, Scored] = {}
    to_score: dict[str, Sequence[str | None]] = {}
    for source in systems.sources:
        if source.run is None:
            to_score[source.name] = systems.candidates[source.name]
        else:
            known[source.name] = _read(systems, source.run)
    if systems.scorer is not None:
        # The sections of baselines are selected already.
        policy, other = systems.scorer.text_policy, copy(systems.scorer)
        other.text_policy = replace(policy, candidate_section="all")
        groups = [(to_score, systems.scorer), (baselines, other)]
        if policy.section_of("candidate") == "all":
            groups = [({**to_score, **baselines}, systems.scorer)]
        for reports, scorer in groups:
            if reports:
                known |= _score(systems, reports, scorer, workers, on_progress)
    names = [*systems.candidates, *baselines]
    found = Scored.joined([_of_system(systems, name, known[name]) for name in names])
    if (read := systems.precomputed) is None:
        return found
    # A system without any value of a metric is not compared by it, and has no failures.
    count = len(systems.studies)
    given = {
        (first, name)
        for first in range(0, len(read.rows), count)
        for name, has_any in read.rows[first : first + count].notna().any().items()
        if has_any
    }
    return found.filled(
        replace(
            read,
            rows=read.rows.reindex(found.rows.index),
            signatures={name: each.of("values") for name, each in read.signatures.items()},
            failures={
                (row, name): why
                for (row, name), why in read.failures.items()
                if (row - row % count, name) in given
            },
        )
    )


def _of_system(systems: Systems, name: str, scored: Scored) -> Scored:
    """Return the numbers that are compared, named by system and study."""
    wanted = [column for metric in systems.signatures for column in metric.columns]
    rows = scored.rows[[*wanted, *([TRUNCATED] if TRUNCATED in scored.rows else [])]].copy()
    rows.insert(0, ID, systems.ids)
    rows.insert(0, SYSTEM, name)
    sums = {str(metric): scored.sums[str(metric)] for metric in systems.signatures if metric.corpus}
    return replace(scored, rows=rows, signatures=systems.signatures, sums=sums)


def _score(
    systems: Systems,
    reports: Reports,
    scorer: Scorer,
    workers: int,
    on_progress: OnProgress,
) -> dict[str, Scored]:
    """Compute the values of some systems; a study's systems are scored together."""
    count = len(systems.studies)
    items = [
        InvalidStudy("the baseline has no report for this study")
        if (text := texts[row]) is None
        else _item(systems, row, text)
        for row in range(count)
        for texts in reports.values()
    ]
    table = score_table(items, scorer, workers=workers, on_progress=on_progress)
    scored = Scored.of(table, {})
    return {name: scored.at(range(k, len(items), len(reports))) for k, name in enumerate(reports)}


def _item(systems: Systems, row: int, candidate: str) -> Item:
    """Return what is scored of a study; one without an image fails where a metric needs it."""
    study = systems.studies[row]
    item = Item(candidate, study.reference, None, study.parts)
    if systems.image_table is None:
        return item
    from vlscore.embedding import StudyViews

    found = systems.images.get(study.id)
    if isinstance(found, Study):
        item.shown = StudyViews.of(found)
    else:
        reason = f"study {study.id}: no image is given for it" if found is None else found.reason
        item.shown = StudyViews((), error=InvalidStudy(reason))
    return item


def _read(systems: Systems, run: FinishedRun) -> Scored:
    """Read the values of a finished evaluation.

    Raises: InvalidSetting where it lacks a metric, or has it with another signature.
    """
    found = Scored.read(run, systems.signatures)
    for metric, wanted in systems.signatures.items():
        signature = found.signatures.get(metric)
        if signature is None:
            raise InvalidSetting(
                f"{run.folder} has no values of {metric}; it has "
                f"{', '.join(map(str, found.signatures))}. Give its table instead of the folder"
            )
        if signature != wanted:
            raise InvalidSetting(
                f"{run.folder} holds {metric} computed in another way than the others: "
                f"{difference(signature, wanted)}. Values of different signatures are not compared"
            )
    # Of rows with one id only the last can be a study; the others could not be read.
    last = {str(study): k for k, study in enumerate(found.rows[ID])}
    return found.at([last[study.id] for study in systems.studies])
