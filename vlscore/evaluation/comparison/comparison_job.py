"""Computation of a comparison: values of all systems and baselines, then intervals and tests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import (
    OnPhase,
    OnProgress,
    ResumableFolder,
    Signature,
    no_phase,
    no_progress,
    run_record,
    stamps,
)
from vlscore.data import (
    BadRow,
    ColumnNames,
    ReportTable,
    StudyImages,
    StudyTable,
    TextPolicy,
    has_headings,
    headings_note,
    open_studies,
    select,
)
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, VLScoreError
from vlscore.evaluation.baselines.training_reports import (
    CONSTANT,
    NEAREST,
    NORMAL,
    RANDOM,
    constant_report,
    nearest_reports,
    random_reports,
)
from vlscore.evaluation.command_settings import ComparisonSettings
from vlscore.evaluation.comparison.known import KnownValues, check_extension, read_numbers
from vlscore.evaluation.comparison.statistics import (
    Comparison,
    TextFacts,
    compare_values,
    count_numbers,
    same_text_notes,
    same_words,
    text_facts,
)
from vlscore.evaluation.comparison.system_values import (
    NumberLayout,
    SystemValues,
    compute_values,
    read_chunk,
    read_elsewhere,
    write_chunk,
)
from vlscore.evaluation.comparison.systems import (
    Source,
    join,
    open_sources,
    patients_of,
    read_values,
    signatures_of,
    table_with_images,
)
from vlscore.evaluation.comparison.tables import cautions, families, write_results
from vlscore.evaluation.row_chunks import ChunkWriter, chunks_of_kind
from vlscore.evaluation.study_vectors import StudyVectors, embed_in_chunks, embedded_in
from vlscore.metrics import Item, Metric, Scorer
from vlscore.perturb import standard_normal_of

_STUDIES_IN_CHUNK = 512


class ComparisonJob:
    """Systems and baselines, their values, and the comparison of these.

    Attributes:
        systems: the joined systems.
        signatures: what the numbers of each metric depend on.
        given: metrics that were computed elsewhere.
        notes: what a user should know, one sentence each.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        scorer: Scorer | None,
        settings: ComparisonSettings,
        image_root: str | Path | None,
    ) -> None:
        self._sources, self._settings = sources, settings
        self._image_table = _image_table(sources, scorer, settings, image_root)
        self.systems = join(sources, self._image_table, ignores_blanks=settings.ignore_blanks)
        if scorer is not None and scorer.plan.needs_fit:
            scorer = scorer.fit(
                Item("", study.reference, None, study.parts) for study in self.systems.studies
            )
        _check_against(settings.against, sources, settings.baselines)
        ids = [study.id for study in self.systems.studies]
        column = settings.patient_column
        self._patients = None if column is None else patients_of(column, sources, ids)
        self.signatures = _signatures(sources, scorer, settings.baselines)
        self.given, self._notes_of_elsewhere = read_elsewhere(
            settings.values,
            [source.name for source in sources],
            ids,
            lower_is_better=settings.lower_is_better,
            computed=[name for metric in self.signatures for name in metric.columns],
        )
        self.notes = list(self.systems.notes)
        if self._image_table is not None and scorer is not None:
            self.notes += scorer.notes
        self._scorer = scorer
        self._policy = scorer.text_policy if scorer is not None else TextPolicy()
        self._references = [self._reference(k) for k in range(len(ids))]
        self._train = self._read_train(settings.train)
        self.notes += self._headings()
        self._computed = {
            source.name: read_values(source.run, self.signatures, self.systems.studies)
            for source in sources
            if source.run is not None
        }
        self._candidates: dict[str, Sequence[str | None]] = dict(self.systems.candidates)
        self._baselines: dict[str, Sequence[str | None]] = {}
        # Recorded before any image is read, so that a file replaced meanwhile is noticed later.
        self.images = stamps(
            path
            for found in self.systems.images.values()
            if isinstance(found, StudyImages)
            for path in found.images
        )
        self._known = KnownValues()
        if settings.baselines:
            self._add_baselines()

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before a stopped run can be resumed."""
        images = self._image_table
        return {
            "systems": {
                source.name: {
                    "table_sha256": source.table.sha256,
                    "columns": source.table.columns.to_dict(),
                    "evaluation": source.run.digests if source.run is not None else None,
                }
                for source in self._sources
            },
            "images_sha256": images.sha256 if images is not None else None,
            "image_root": str(images.root.resolve()) if images is not None else None,
            "metrics": {str(metric): str(s) for metric, s in self.signatures.items()},
            **self._settings.key(),
        }

    def compare(
        self,
        folder: ResumableFolder,
        workers: int,
        on_progress: OnProgress | None,
        on_phase: OnPhase | None,
    ) -> Comparison:
        """Compute what the folder lacks, compare the systems, and write the results."""
        if folder.previous is not None:
            check_extension(folder.out, folder.previous.key, folder.key)
        self._known = read_numbers(
            folder.previous, self.key(), self.signatures, self.systems.studies
        )
        begin = on_phase or no_phase
        computing = begin(*self._work()) if on_phase else on_progress or no_progress
        rows = self._compute(folder, workers, computing)
        found = self._values(folder)
        result = self._compared(found, begin)

        def write(place: Path) -> dict[str, Any]:
            write_results(
                place, result, found, self.systems.studies, self.signatures, self.given, self.images
            )
            tables = {each.name: str(each.table.path.resolve()) for each in self._sources}
            return run_record(tables=tables, notes=list(result.notes))

        folder.finish(write, rows=rows)
        return result

    def _compared(self, found: Mapping[str, SystemValues], begin: OnPhase) -> Comparison:
        """Return intervals, tests and notes of the values of all systems."""
        settings = self._settings
        self.notes += self._notes_of_elsewhere
        if self._patients is not None:
            self.notes.append(
                f"intervals and tests resample and permute the {len(set(self._patients))} patients "
                f"of the column {settings.patient_column}, not the studies"
            )
        if settings.against is not None:
            self.notes.append(
                f"{settings.against} is tested against each other system, and p is adjusted "
                "over these tests alone"
            )
        result = compare_values(
            found,
            self._texts(found),
            self.signatures,
            given=self.given,
            notes=self.notes,
            resamples=settings.resamples,
            permutations=settings.permutations,
            seed=settings.seed,
            patients=self._patients,
            against=settings.against,
            on_progress=begin("intervals and tests", count_numbers(self.signatures, self.given)),
        )
        self.notes += families(result.measured, result.tested)
        self.notes += cautions(result.measured, result.tested)
        self.notes += same_text_notes(result.texts)
        return replace(result, notes=tuple(self.notes))

    @property
    def taken_up(self) -> int:
        """Return how many columns of an earlier comparison are used again."""
        systems = {*self._candidates, *self._baselines} - set(self._computed)
        return sum(system in systems for system, _ in self._known.blocks)

    def _work(self) -> tuple[str, int]:
        """Return what `_compute` works through, and how many rows that are."""
        shown = self._shown()
        computes = set(self._computed) != {*self._candidates, *self._baselines}
        studies = len(self.systems.studies) if computes else 0
        return "images and studies" if shown else "studies", len(shown) + studies

    def _shown(self) -> dict[str, StudyImages]:
        """Return the images that are embedded, by study."""
        if not self._needs_vectors():
            return {}
        return {
            study.id: found
            for study in self.systems.studies
            if isinstance(found := self.systems.images.get(study.id), StudyImages)
        }

    def _compute(self, folder: ResumableFolder, workers: int, on_progress: OnProgress) -> int:
        """Compute what no chunk holds yet; returns rows of all chunks: images, then studies."""
        chunks, shown = ChunkWriter(folder, on_progress), self._shown()
        if self._scorer is not None and self._scorer.embedder is not None:
            embed_in_chunks(chunks, self._scorer.embedder, shown, workers=workers)
        vectors = self._vectors(folder)
        self._add_nearest(vectors)
        if set(self._computed) == {*self._candidates, *self._baselines}:
            return chunks.done
        count = len(self.systems.studies)
        for start in range(chunks.done - len(shown), count, _STUDIES_IN_CHUNK):
            rows = slice(start, min(start + _STUDIES_IN_CHUNK, count))
            values = self._values_of(rows, vectors)
            lacking = sum(len(each.failures) for each in values.values())
            with chunks.append(rows.stop - start, lacking, kind="values") as place:
                write_chunk(place, values)
        return chunks.done

    def _values(self, folder: ResumableFolder) -> dict[str, SystemValues]:
        """Return the values of all systems, from all chunks and from finished evaluations."""
        chunks = [read_chunk(chunk.path) for chunk in chunks_of_kind(folder, "values")]
        found = dict(self._computed)
        for name in chunks[0] if chunks else ():
            found[name] = SystemValues.joined([chunk[name] for chunk in chunks])
        return {name: found[name] for name in (*self._candidates, *self._baselines)}

    def _texts(self, values: Mapping[str, SystemValues]) -> dict[str, TextFacts]:
        """Return facts about the candidates of every system as texts."""
        known = {same_words(text) for text in self._references if text is not None}
        known |= {same_words(text) for text in self._train or ()}
        facts = {}
        for name in values:
            flags = values[name].truncated
            cut = float(np.mean(flags)) if flags is not None else None
            if name in self._baselines:
                texts = [text or "" for text in self._baselines[name]]
            else:
                texts = [self._candidate(text or "") for text in self._candidates[name]]
            facts[name] = text_facts(texts, known, cut)
        return facts

    def _needs_vectors(self) -> bool:
        """Return whether embeddings of images are needed for a value that is not known."""
        return bool(self._baselines) or any(
            metric.uses_image
            for name in self._candidates
            if name not in self._computed
            for metric in self._known.missing(name, tuple(self.signatures))
        )

    def _values_of(self, rows: slice, vectors: StudyVectors | None) -> dict[str, SystemValues]:
        """Compute missing values, system by system: the embedder then remembers the references."""
        assert self._scorer is not None
        if self._scorer.embedder is not None:
            # Vectors differ in the last digit with their batch: a stop must not change the batch.
            self._scorer.embedder.engine.forget()
        studies = self.systems.studies[rows]
        found = {}
        for group, is_selected in ((self._candidates, False), (self._baselines, True)):
            for name, candidates in group.items():
                if name in self._computed:
                    continue
                computed = None
                if missing := self._known.missing(name, self._scorer.metrics):
                    scorer = self._scorer
                    if len(missing) < len(scorer.metrics):
                        scorer = scorer.of_some(missing)
                    shown = vectors if scorer.plan.needs.images else None
                    computed = compute_values(
                        scorer, studies, candidates[rows], shown, is_selected=is_selected
                    )
                layout = NumberLayout(self._scorer.metrics)
                found[name] = self._known.joined(name, layout, rows, computed)
        return found

    def _vectors(self, folder: ResumableFolder) -> StudyVectors | None:
        if self._image_table is None:
            return None
        vectors = embedded_in(folder)
        for name, found in self.systems.images.items():
            if isinstance(found, BadRow):
                vectors.failures[name] = InvalidStudy(found.reason)
        return vectors

    def _add_baselines(self) -> None:
        usable = [text for text in self._references if text is not None]
        pool = self._train if self._train is not None else usable
        count = len(self._references)
        # First, because it raises a clear error where there are no reports.
        drawn = random_reports(self._references, self._train, self._settings.seed)
        report, times = constant_report(pool)
        whose = "of the training table" if self._train is not None else "of the references"
        normal = standard_normal_of(pool)
        # Without the texts: reports are patients' data, and notes reach the logs of a cluster.
        self.notes.append(
            f"{CONSTANT} is the most frequent report {whose} ({times} of {len(pool)} have it), "
            f"{NORMAL} their most frequent normal sentences"
        )
        self._baselines = {CONSTANT: [report] * count, NORMAL: [normal] * count, RANDOM: drawn}
        if self._train is None:
            self.notes.append(
                "baselines take the references of the compared studies, which the systems do not "
                "know; name a training table for a fair comparison"
            )
        if self._image_table is None:
            self.notes.append(
                f"{NEAREST} is left out: no metric looks at images, so none are embedded"
            )

    def _add_nearest(self, vectors: StudyVectors | None) -> None:
        if vectors is None or not self._baselines or self._scorer is None:
            return
        assert self._scorer.embedder is not None
        ids = [study.id for study in self.systems.studies]
        rows, _ = vectors.rows(ids, self._scorer.embedder.dim)
        self._baselines[NEAREST] = nearest_reports(rows, self._references)

    def _reference(self, row: int) -> str | None:
        """Return the selected section of a reference; None if there is none."""
        try:
            return (
                replace(self.systems.studies[row], candidate=None).selected(self._policy).reference
            )
        except VLScoreError:
            return None

    def _headings(self) -> tuple[str, ...]:
        if self._policy.section_of("reference") != "all" or self._scorer is None:
            return ()
        whole = [s for s in self.systems.studies if s.parts is None and s.reference]
        count = sum(has_headings(study.reference or "") for study in whole)
        return headings_note(count, len(self.systems.studies))

    def _candidate(self, text: str) -> str:
        try:
            return select(text, self._policy, "candidate")
        except VLScoreError:
            return text

    def _read_train(self, table: ReportTable | None) -> list[str] | None:
        if table is None:
            return None
        texts, bad = [], 0
        for row in table:
            try:
                if isinstance(row, BadRow):
                    raise InvalidStudy(row.reason)
                texts.append(row.selected(self._policy).text)
            except VLScoreError:
                bad += 1
        if bad:
            self.notes.append(f"{table.path}: {bad} reports cannot be used")
        if not texts:
            raise InvalidTable(f"{table.path}: holds no report that can be used")
        return texts


def _image_table(
    sources: Sequence[Source],
    scorer: Scorer | None,
    settings: ComparisonSettings,
    image_root: str | Path | None,
) -> StudyTable | None:
    """Open the first table with images, where values of images are computed."""
    computes = settings.baselines or any(source.run is None for source in sources)
    if scorer is None or not computes or not scorer.plan.needs.images:
        return None
    table = table_with_images(sources).table
    return open_studies(table.path, needs={"image"}, image_root=image_root, columns=table.columns)


def _check_against(against: str | None, sources: Sequence[Source], baselines: bool) -> None:
    """Refuse a name that no system has, before anything is computed; raises InvalidSetting."""
    names = [source.name for source in sources]
    is_baseline = baselines and against in (CONSTANT, NORMAL, RANDOM, NEAREST)
    if against is not None and against not in names and not is_baseline:
        raise InvalidSetting(f"no system is called {against}; there are {', '.join(names)}")


def open_systems(
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
    return signatures_of(first)
