"""What a comparison reads before any value is computed: systems, metrics, training reports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.core import Signature
from vlscore.data import (
    ReportTable,
    Study,
    StudyTable,
    TextPolicy,
    headings_note,
    open_studies,
    unlike_sections_note,
)
from vlscore.errors import Failure, InvalidSetting, InvalidTable, VLScoreError
from vlscore.evaluation.command_settings import ComparisonSettings
from vlscore.evaluation.comparison.systems import (
    Source,
    Systems,
    column_of,
    join,
    table_with_images,
)
from vlscore.evaluation.precomputed import check_names, read_precomputed
from vlscore.evaluation.scored import BASELINE, Scored, signatures_in
from vlscore.evaluation.scoring.row_facts import count_headings, count_unlike_sections
from vlscore.metrics import Item, Metric, Scorer

# Of studies without an entry.
NO_GROUP = "(none)"
_MOST_GROUPS = 50


@dataclass(frozen=True)
class Inputs:
    """What is compared, before any value is computed.

    Attributes:
        sources, systems: the systems, and their n studies joined.
        scorer: of the systems without values; fitted. None where all have them.
        policy: which sections of the reports are scored.
        references: n selected sections; None where there is none.
        signatures: what the numbers of each metric depend on.
        image_table: the table that images are read from; None where none are.
        precomputed: values that were computed elsewhere, for each system and study.
        patients: whose each study is.
        groups: column -> the group of each study, by the columns of `by`.
        train: selected sections of the training reports.
        notes: what a user should know, one sentence each.
    """

    sources: Sequence[Source]
    systems: Systems
    scorer: Scorer | None
    policy: TextPolicy
    references: Sequence[str | None]
    signatures: Mapping[Metric, Signature]
    image_table: StudyTable | None
    precomputed: Scored | None
    patients: Sequence[str] | None
    groups: Mapping[str, Sequence[str]]
    train: Sequence[str] | None
    notes: Sequence[str]

    def image_files(self) -> Iterator[Path]:
        """Yield the path of every image that is read."""
        for study in self.systems.images.values():
            if isinstance(study, Study):
                yield from study.files


def read_inputs(
    sources: Sequence[Source],
    scorer: Scorer | None,
    settings: ComparisonSettings,
    image_root: str | Path | None,
) -> Inputs:
    """Read and join all tables. Raises as `compare`."""
    names = [source.name for source in sources]
    against, column = settings.against, settings.patient_column
    if against is not None and against not in names and not against.startswith(BASELINE):
        raise InvalidSetting(f"no system is called {against}; there are {', '.join(names)}")
    image_table = None
    computes = settings.baselines or any(source.run is None for source in sources)
    if scorer is not None and computes and scorer.needs.images:
        source = table_with_images(sources)
        table = source.table
        image_table = open_studies(
            table.path,
            needs={"image"},
            image_root=source.image_root if image_root is None else image_root,
            columns=table.columns,
        )
    systems = join(sources, image_table, ignores_blanks=settings.ignore_blanks)
    studies, notes = systems.studies, list(systems.notes)
    ids = [study.id for study in studies]
    policy = scorer.text_policy if scorer is not None else TextPolicy()
    if scorer is not None:
        items = [Item("", study.reference, None, study.parts) for study in studies]
        scorer = scorer.prepared(items, image_table)
        signatures = {metric: scorer.signatures[str(metric)] for metric in scorer.metrics}
    else:
        runs = [source.run for source in sources if source.run is not None]
        if len(runs) < len(sources) or settings.baselines:
            raise InvalidSetting("tables and baselines need metrics: pass a Scorer")
        signatures = signatures_in(runs[0])
    precomputed = None
    if settings.values is None:
        check_names(None, settings.lower_is_better)
    else:
        precomputed = read_precomputed(
            settings.values,
            {"system": [name for name in names for _ in ids], "id": ids * len(names)},
            lower_is_better=settings.lower_is_better,
            computed=[column for metric in signatures for column in metric.columns],
            row_name="system and study compared",
        )
    train = None
    if settings.train is not None:
        train, unread = _training_reports(settings.train, policy)
        notes += unread
    patients = None
    if column is not None:
        found = column_of(column, sources, ids)
        # A study without an entry is a patient of its own.
        patients = [found.get(name, f"\0{name}") for name in ids]
        notes.append(
            f"intervals and tests resample and permute the {len(set(patients))} patients of "
            f"the column {column}, not the studies"
        )
    if scorer is not None:
        notes += scorer.preset_notes
        texts = {f"candidates of {name}": own for name, own in systems.candidates.items()}
        references = [study.reference for study in studies]
        notes += scorer.language_notes({"references": references, **texts})
        notes += scorer.notes if image_table is not None else ()
        notes += headings_note(count_headings(studies, scorer), len(ids))
        pairs = [
            replace(study, candidate=text)
            for own in systems.candidates.values()
            for study, text in zip(studies, own, strict=True)
        ]
        notes += unlike_sections_note(count_unlike_sections(pairs, scorer), len(pairs))
    notes += precomputed.notes if precomputed is not None else ()
    return Inputs(
        sources,
        systems,
        scorer,
        policy,
        [_reference_of(study, policy) for study in studies],
        signatures,
        image_table,
        precomputed,
        patients,
        {column: _groups(column, sources, ids) for column in settings.by},
        train,
        notes,
    )


def key_of(inputs: Inputs, settings: ComparisonSettings) -> dict[str, Any]:
    """Return what the results depend on."""
    images = inputs.image_table
    return {
        "command": "compare",
        "systems": {
            source.name: {
                **source.table.key,
                "evaluation": source.run and source.run.digests,
            }
            for source in inputs.sources
        },
        "images": images and images.key,
        "metrics": {str(metric): str(s) for metric, s in inputs.signatures.items()},
        **settings.key(),
    }


def _reference_of(study: Study, policy: TextPolicy) -> str | None:
    try:
        return replace(study, candidate=None).selected(policy).reference
    except VLScoreError:
        return None


def _groups(column: str, sources: Sequence[Source], ids: Sequence[str]) -> list[str]:
    """Return the group of each study. Raises: InvalidTable; InvalidSetting for too many groups."""
    found = column_of(column, sources, ids)
    if (count := len(set(found.values()))) > _MOST_GROUPS:
        raise InvalidSetting(
            f"the column {column} has {count} different values: --by is for groups, of which "
            f"there can be {_MOST_GROUPS}"
        )
    return [found.get(name, NO_GROUP) for name in ids]


def _training_reports(table: ReportTable, policy: TextPolicy) -> tuple[list[str], list[str]]:
    """Return the selected sections of training reports, and a note on those without."""
    texts: list[str] = []
    bad: list[Failure] = []
    for row in table.selected(policy):
        if isinstance(row, Failure):
            bad.append(row)
        else:
            texts.append(row.text)
    if not texts:
        why = f"; row {bad[0].row}: {bad[0].reason}" if bad else ""
        raise InvalidTable(f"{table.path}: holds no report that can be used{why}")
    return texts, [f"{table.path}: {len(bad)} reports cannot be used"] if bad else []
