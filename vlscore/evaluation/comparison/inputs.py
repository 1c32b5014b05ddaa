"""What a comparison reads before any value is computed: systems, metrics, training reports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.core import Signature
from vlscore.data import (
    BadRow,
    ColumnNames,
    ReportTable,
    Study,
    StudyTable,
    TextPolicy,
    headings_note,
    open_studies,
)
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, VLScoreError
from vlscore.evaluation.baselines.baseline_base import BASELINE
from vlscore.evaluation.command_settings import ComparisonSettings
from vlscore.evaluation.comparison.systems import (
    Source,
    Systems,
    column_of,
    join,
    open_sources,
    patients_of,
    table_with_images,
)
from vlscore.evaluation.precomputed import Precomputed, check_names, read_precomputed
from vlscore.evaluation.scoring.scored_rows import ScoredRows, count_headings
from vlscore.metrics import Item, Metric, Scorer

# Of studies without an entry.
NO_GROUP = "(none)"
_MOST_GROUPS = 50


@dataclass(frozen=True)
class Inputs:
    """What is compared, before any value is computed.

    Attributes:
        sources, systems: the systems, and their studies joined.
        scorer: of the systems without values; fitted. None where all have them.
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
    signatures: Mapping[Metric, Signature]
    image_table: StudyTable | None
    precomputed: Precomputed | None
    patients: Sequence[str] | None
    groups: Mapping[str, Sequence[str]]
    train: Sequence[str] | None
    notes: Sequence[str]

    @classmethod
    def read(
        cls,
        sources: Sequence[Source],
        scorer: Scorer | None,
        settings: ComparisonSettings,
        image_root: str | Path | None,
    ) -> "Inputs":
        """Read and join all tables. Raises as `compare`."""
        image_table = _image_table(sources, scorer, settings, image_root)
        systems = join(sources, image_table, ignores_blanks=settings.ignore_blanks)
        if scorer is not None and image_table is not None:
            scorer = scorer.for_table(image_table)
        if scorer is not None and scorer.needs_fit:
            scorer = scorer.fit(
                Item("", study.reference, None, study.parts) for study in systems.studies
            )
        names = [source.name for source in sources]
        against = settings.against
        if against is not None and against not in names and not against.startswith(BASELINE):
            raise InvalidSetting(f"no system is called {against}; there are {', '.join(names)}")
        ids = [study.id for study in systems.studies]
        signatures = _signatures(sources, scorer, settings.baselines)
        precomputed = _precomputed(settings, names, ids, signatures)
        policy = scorer.text_policy if scorer is not None else TextPolicy()
        notes = list(systems.notes)
        train = None
        if settings.train is not None:
            train, unread = _training_reports(settings.train, policy)
            notes += unread
        patients = None
        if settings.patient_column is not None:
            patients = patients_of(settings.patient_column, sources, ids)
            notes.append(
                f"intervals and tests resample and permute the {len(set(patients))} patients of "
                f"the column {settings.patient_column}, not the studies"
            )
        if scorer is not None:
            texts = {f"candidates of {name}": own for name, own in systems.candidates.items()}
            references = [study.reference for study in systems.studies]
            notes += scorer.language_notes({"references": references, **texts})
            notes += scorer.notes if image_table is not None else ()
            notes += headings_note(count_headings(systems.studies, scorer), len(ids))
        notes += precomputed.notes if precomputed is not None else ()
        return cls(
            sources,
            systems,
            scorer,
            signatures,
            image_table,
            precomputed,
            patients,
            {column: _groups(column, sources, ids) for column in settings.by},
            train,
            notes,
        )

    def key(self, settings: ComparisonSettings) -> dict[str, Any]:
        """Return what the results depend on."""
        images = self.image_table
        return {
            "command": "compare",
            "systems": {
                source.name: {
                    "table_sha256": source.table.sha256,
                    "columns": source.table.columns.to_dict(),
                    "evaluation": source.run.digests if source.run is not None else None,
                }
                for source in self.sources
            },
            "images_sha256": images.sha256 if images is not None else None,
            "image_root": str(images.root.resolve()) if images is not None else None,
            "metrics": {str(metric): str(s) for metric, s in self.signatures.items()},
            **settings.key(),
        }

    @property
    def policy(self) -> TextPolicy:
        """Return which sections of the reports are scored."""
        return self.scorer.text_policy if self.scorer is not None else TextPolicy()

    def references(self) -> list[str | None]:
        """Return the selected section of each reference; None where there is none."""

        def selected(study: Study) -> str | None:
            try:
                return replace(study, candidate=None).selected(self.policy).reference
            except VLScoreError:
                return None

        return [selected(study) for study in self.systems.studies]


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
    texts, bad = [], 0
    for row in table:
        try:
            if isinstance(row, BadRow):
                raise InvalidStudy(row.reason)
            texts.append(row.selected(policy).text)
        except VLScoreError:
            bad += 1
    if not texts:
        raise InvalidTable(f"{table.path}: holds no report that can be used")
    return texts, [f"{table.path}: {bad} reports cannot be used"] if bad else []


def _precomputed(
    settings: ComparisonSettings,
    names: Sequence[str],
    ids: Sequence[str],
    metrics: Iterable[Metric],
) -> Precomputed | None:
    """Return the values of the table of values, for each system and study; None without one."""
    if settings.values is None:
        check_names(None, settings.lower_is_better)
        return None
    return read_precomputed(
        settings.values,
        {"system": [name for name in names for _ in ids], "id": list(ids) * len(names)},
        lower_is_better=settings.lower_is_better,
        computed=[column for metric in metrics for column in metric.columns],
        row_name="system and study compared",
    )


def _image_table(
    sources: Sequence[Source],
    scorer: Scorer | None,
    settings: ComparisonSettings,
    image_root: str | Path | None,
) -> StudyTable | None:
    """Open the first table with images, where values of images are computed."""
    computes = settings.baselines or any(source.run is None for source in sources)
    if scorer is None or not computes or not scorer.needs.images:
        return None
    table = table_with_images(sources).table
    return open_studies(table.path, needs={"image"}, image_root=image_root, columns=table.columns)


def opened_systems(
    systems: Sequence[str | Path | Source], columns: ColumnNames | None
) -> tuple[Source, ...]:
    """Return the systems; what is only named is opened. Raises InvalidSetting without a system."""
    given = [each for each in systems if not isinstance(each, Source)]
    opened = iter(open_sources(given, columns))
    sources = tuple(each if isinstance(each, Source) else next(opened) for each in systems)
    if not sources:
        raise InvalidSetting("no system to compare: name at least one")
    return sources


def _signatures(
    sources: Sequence[Source], scorer: Scorer | None, baselines: bool
) -> dict[Metric, Signature]:
    if scorer is not None:
        return {metric: scorer.signatures[str(metric)] for metric in scorer.metrics}
    first = sources[0].run
    if first is None or any(source.run is None for source in sources) or baselines:
        raise InvalidSetting("tables and baselines need metrics: pass a Scorer")
    return dict(ScoredRows.read(first).metrics)
