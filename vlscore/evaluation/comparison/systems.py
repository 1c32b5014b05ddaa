"""Systems that wrote reports for the same studies, joined, and what compares them.

Tables whose studies or references differ are refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from vlscore.core import Signature, first_of, with_noun
from vlscore.data import (
    Study,
    StudyTable,
    TextPolicy,
    how_ids_differ,
    select,
    shared_ids_note,
    split_failures,
)
from vlscore.errors import Failure, InvalidSetting, InvalidTable, VLScoreError
from vlscore.evaluation.baselines.baseline_base import OWN_REPORT
from vlscore.evaluation.comparison.comparison_settings import ComparisonSettings
from vlscore.evaluation.comparison.sources import (
    Source,
    column_notes,
    column_of,
    image_notes,
    open_images,
    training_images,
)
from vlscore.evaluation.precomputed import read_precomputed
from vlscore.evaluation.scored import BASELINE, Scored, signatures_in
from vlscore.evaluation.scoring.row_facts import (
    SILENT,
    SUSPICIOUS,
    check_groups,
    noticed_notes,
    section_counts,
    section_notes,
    silent_references,
    suspicious_counts,
)
from vlscore.metrics import Item, Metric, Plan, Scorer

# Of studies without an entry.
NO_GROUP = "(none)"


@dataclass(frozen=True)
class Systems:
    """The candidates of k systems for the same n studies, and what compares them.

    Attributes:
        sources: the systems' tables.
        studies: id, reference and its parts of each study, in the order of the first table.
        candidates: name of the system -> n candidates.
        image_table: the table that images are read from; None where none are.
        images: study id -> the study with its images, or why it has none; empty if none are read.
        failures: rows that cannot be used, with the name of their system as `row`.
        notes: what a user should know, one sentence each.
        scorer: of the systems without values; fitted. None where all have them.
        signatures: what the numbers of each metric depend on.
        precomputed: values that were computed elsewhere, for each system and study.
        patients: whose each study is.
        groups: column -> the group of each study, by the columns of `by`.
        train: selected sections of the training reports.
        train_images: the training table with its images; None where it has none, or none are read.
    """

    sources: Sequence[Source]
    studies: tuple[Study, ...]
    candidates: Mapping[str, Sequence[str]]
    image_table: StudyTable | None = None
    images: Mapping[str, Study | Failure] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    scorer: Scorer | None = None
    signatures: Mapping[Metric, Signature] = field(default_factory=dict)
    precomputed: Scored | None = None
    patients: Sequence[str] | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    train: Sequence[str] | None = None
    train_images: StudyTable | None = None

    @property
    def ids(self) -> list[str]:
        """Return the n ids."""
        return [study.id for study in self.studies]

    @property
    def policy(self) -> TextPolicy:
        """Return which sections of the reports are scored."""
        return TextPolicy() if self.scorer is None else self.scorer.text_policy

    @cached_property
    def references(self) -> list[str | None]:
        """Return n selected sections; None where there is none."""
        found: list[str | None] = []
        for study in self.studies:
            try:
                found.append(replace(study, candidate=None).selected(self.policy).reference)
            except VLScoreError:
                found.append(None)
        return found

    def section(self, text: str, role: Literal["reference", "candidate"]) -> str:
        """Return the section of a text that is scored; all of it where it lacks the section."""
        try:
            return select(text, self.policy, role)
        except VLScoreError:
            return text

    @property
    def key(self) -> dict[str, Any]:
        """Return what the values depend on."""
        return {
            "systems": {
                each.name: {**each.table.key, "evaluation": each.run and each.run.digests}
                for each in self.sources
            },
            "images": self.image_table and self.image_table.key,
            **({"train_images": self.train_images.key} if self.train_images is not None else {}),
            "metrics": {str(metric): str(s) for metric, s in self.signatures.items()},
        }

    def image_files(self) -> Iterator[Path]:
        """Yield the path of every image that is read."""
        for study in self.images.values():
            if isinstance(study, Study):
                yield from study.files
        if self.train_images is not None:
            yield from self.train_images.image_files()


def read_systems(
    sources: Sequence[Source],
    scorer: Scorer | None,
    settings: ComparisonSettings,
    image_root: str | Path | None,
) -> Systems:
    """Read and join all tables, and prepare the scorer. Raises as `compare`."""
    names = [source.name for source in sources]
    against, column = settings.against, settings.patient_column
    if against is not None and against not in names and not against.startswith(BASELINE):
        raise InvalidSetting(f"no system is called {against}; there are {', '.join(names)}")
    images = None
    computes = settings.baselines or any(source.run is None for source in sources)
    if scorer is not None and computes and scorer.needs.images:
        images = open_images(sources, image_root)
    systems = join(sources, images, ignores_blanks=settings.ignore_blanks)
    ids, notes = systems.ids, list(systems.notes)
    if scorer is not None:
        items = [Item("", study.reference, None, study.parts) for study in systems.studies]
        scorer = scorer.prepared(items, images)
        signatures = {metric: scorer.signatures[str(metric)] for metric in scorer.metrics}
    else:
        runs = [source.run for source in sources if source.run is not None]
        if len(runs) < len(sources) or settings.baselines:
            raise InvalidSetting("tables and baselines need metrics: pass a Scorer")
        signatures = signatures_in(runs[0])
    if (scorer or Plan(list(signatures))).needs.images:
        notes += image_notes(sources, ids, image_root)
    precomputed = read_precomputed(
        settings.values,
        {"system": [name for name in names for _ in ids], "id": ids * len(names)},
        lower_is_better=settings.lower_is_better,
        computed=[column for metric in signatures for column in metric.columns],
        row_name="system and study compared",
    )
    systems = replace(systems, scorer=scorer, signatures=signatures, precomputed=precomputed)
    train = train_images = None
    if (table := settings.train) is not None:
        reports, bad = split_failures(table.selected(systems.policy))
        if not reports:
            why = f"; row {bad[0].row}: {bad[0].reason}" if bad else ""
            raise InvalidTable(f"{table.path}: holds no report that can be used{why}")
        train = [report.text for report in reports]
        notes += [f"{table.path}: {len(bad)} reports cannot be used"] if bad else []
        theirs = (report.id for report in reports)
        notes += shared_ids_note(sources[0].table, ids, table, theirs, OWN_REPORT)
        if settings.baselines and images is not None:
            train_images = training_images(table, images, image_root)
    patients = None
    if column is not None:
        found = column_of(column, sources, ids)
        # A study without an entry is a patient of its own.
        patients = [found.get(name, f"\0{name}") for name in ids]
        known = len({found[name] for name in ids if name in found})
        notes.append(
            f"intervals and tests resample and permute the {known} patients of the column "
            f"{column}, not the studies"
        )
        if alone := [name for name in ids if name not in found]:
            notes.append(
                f"the column {column} is empty for {_ids(alone)}: each of them counts as a patient "
                "of its own"
            )
    notes += column_notes([*([column] if column else []), *settings.by], sources)
    notes += [*_text_notes(systems), *_scoring_notes(systems)]
    notes += precomputed.notes if precomputed is not None else ()
    groups = {column: _groups(column, sources, ids) for column in settings.by}
    return replace(
        systems,
        train=train,
        train_images=train_images,
        patients=patients,
        groups=groups,
        notes=tuple(notes),
    )


def _text_notes(systems: Systems) -> Iterator[str]:
    """Yield notes on reports that stand for a missing text, or state nothing."""
    studies, scorer = systems.studies, systems.scorer
    found = {}
    for name, own in systems.candidates.items():
        pairs = (replace(s, candidate=text) for s, text in zip(studies, own, strict=True))
        found[name] = suspicious_counts(pairs)
    if own_counts := [f"{name} {n['candidate']}" for name, n in found.items() if n["candidate"]]:
        yield f"{SUSPICIOUS.format('candidate')}: {', '.join(own_counts)}"
    counts = {SUSPICIOUS.format("reference"): next(iter(found.values()))["reference"]}
    counts[SILENT] = 0 if scorer is None else silent_references(studies, scorer)
    yield from noticed_notes(counts)


def _scoring_notes(systems: Systems) -> Iterator[str]:
    """Yield notes on presets, the language of the reports, the encoder and headings."""
    scorer, studies = systems.scorer, systems.studies
    if scorer is None:
        return
    yield from scorer.preset_notes
    texts = {f"candidates of {name}": own for name, own in systems.candidates.items()}
    yield from scorer.language_notes({"references": [s.reference for s in studies], **texts})
    yield from scorer.notes if systems.image_table is not None else ()
    pairs = (
        replace(study, candidate=text)
        for own in systems.candidates.values()
        for study, text in zip(studies, own, strict=True)
    )
    count = len(studies)
    counts = section_counts(studies, pairs, scorer)
    yield from section_notes(counts, count, count * len(systems.candidates))


def join(
    sources: Sequence[Source], images: StudyTable | None = None, *, ignores_blanks: bool = False
) -> Systems:
    """Read all tables and join them by study id.

    Where only the first rows of the first table are read, the others have the same studies.

    Args:
        images: opened for images alone.
        ignores_blanks: take references that differ in white space alone for the same; those of
            the first table are used, and a note says of how many studies.

    Raises: InvalidTable where studies or references differ, saying in what.
    """
    first, *others = sources
    limit, known = first.table.limit, set[str]()
    studies, bad = {}, {}
    failures: list[Failure] = []
    notes = [note for source in sources for note in source.table.notes]
    for source in sources:
        own, unread = _rows_of(source)
        if source is first:
            known = {*own, *(row.id for row in unread if row.id)}
        elif limit is not None:
            own = {name: study for name, study in own.items() if name in known}
            unread = [
                row for row in unread if (row.id in known if row.id else int(row.row or 0) <= limit)
            ]
        studies[source.name], bad[source.name] = own, unread
        failures += [Failure(source.name, r.id, f"row {r.row}: {r.reason}") for r in unread]
        if unread:
            name = f" ({unread[0].id})" if unread[0].id else ""
            notes.append(
                f"{source.table.path}: {with_noun(len(unread), 'row')} left out that cannot be "
                f"used; the first is row {unread[0].row}{name}: {unread[0].reason}"
            )
    for other in others:
        if unlike := _require_same(first, other, studies, bad, ignores_blanks):
            notes.append(
                f"the references of {_ids(unlike)} differ in blanks alone between "
                f"{first.table.path} and {other.table.path}; those of the first are used"
            )
    if not studies[first.name]:
        row = bad[first.name][0]
        raise InvalidTable(f"{first.table.path}: no row can be used; row {row.row}: {row.reason}")
    found: dict[str, Study | Failure] = {}
    for image in images if images is not None else ():
        # Of rows with one id the last can be the study; an unreadable one never replaces it.
        if isinstance(image, Study) or (image.id is not None and image.id not in found):
            found[str(image.id)] = image
    return Systems(
        sources,
        tuple(studies[first.name].values()),
        {
            source: [own[name].candidate or "" for name in studies[first.name]]
            for source, own in studies.items()
        },
        images,
        found,
        tuple(failures),
        tuple(notes),
    )


def _rows_of(source: Source) -> tuple[dict[str, Study], list[Failure]]:
    studies: dict[str, Study] = {}
    bad: list[Failure] = []
    for row in source.table:
        if isinstance(row, Study):
            studies[row.id] = row
        elif row.id in studies:
            raise InvalidTable(f"{source.table.path}, row {row.row}: {row.reason}")
        else:
            bad.append(row)
    return studies, bad


def _require_same(
    first: Source,
    other: Source,
    studies: Mapping[str, Mapping[str, Study]],
    bad: Mapping[str, Sequence[Failure]],
    ignores_blanks: bool,
) -> list[str]:
    """Return the studies whose references differ in blanks alone, where that is ignored.

    Args: studies, bad: of each system, those by id, and the rows that cannot be used.
    Raises: InvalidTable where studies or references differ. It has no text of a report.
    """
    mine, theirs = studies[first.name], studies[other.name]
    differences = []
    alone = [[n for n in mine if n not in theirs], [n for n in theirs if n not in mine]]
    for one, two, lacking in ((first, other, alone[1]), (other, first, alone[0])):
        if lacking:
            reasons = sorted({row.reason for row in bad[one.name] if row.id in set(lacking)})
            because = f" ({'; '.join(reasons)})" if reasons else ""
            paths = f"{one.table.path} lacks {_ids(lacking)} of {two.table.path}"
            differences.append(f"{paths}{because}")
    if any(alone):
        differences.append(
            "leave such studies out of the other table, or add them with an empty candidate, which "
            "is scored as an empty report"
        )
    if all(alone) and (near := how_ids_differ(*alone)):
        differences.append(near)
    texts = {
        name: (study.reference or "", theirs[name].reference or "")
        for name, study in mine.items()
        if name in theirs
    }
    unlike = {name: both for name, both in texts.items() if both[0] != both[1]}
    blank = [name for name, (one, two) in unlike.items() if _solid(one) == _solid(two)]
    wrong = [name for name in unlike if name not in set(blank)]
    if blank and not ignores_blanks:
        differences.append(
            f"the references of {_ids(blank)} differ only in blanks; --ignore-blanks "
            f"(ignore_blanks=True) uses those of {first.table.path} for all"
        )
    if wrong:
        pairs = enumerate(zip_longest(*texts[wrong[0]]), start=1)
        start = next(number for number, (one, two) in pairs if one != two)
        differences.append(
            f"the references of {_ids(wrong)} differ between {first.table.path} and "
            f"{other.table.path}: of {wrong[0]}, from character {start} on"
        )
    if differences:
        raise InvalidTable(
            "systems are compared over the same studies with the same references; "
            + "; ".join(differences)
        )
    return blank


def _solid(text: str) -> str:
    return "".join(text.split())


def _ids(names: Sequence[str]) -> str:
    return f"{with_noun(len(names), 'study')} ({first_of(names)})"


def _groups(column: str, sources: Sequence[Source], ids: Sequence[str]) -> list[str]:
    """Return the group of each study. Raises: InvalidTable; InvalidSetting for too many groups."""
    found = column_of(column, sources, ids)
    check_groups(column, found.values())
    return [found.get(name, NO_GROUP) for name in ids]
