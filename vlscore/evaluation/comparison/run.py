"""Comparing systems over files, resumably, into a folder of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    Signature,
    file_digest,
    frame,
    no_progress,
    run_record,
    stamps,
)
from vlscore.data import (
    BadRow,
    ColumnNames,
    ReportTable,
    StudyImages,
    TextPolicy,
    has_headings,
    headings_note,
    open_studies,
    select,
)
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, VLScoreError
from vlscore.evaluation.baselines.frequent_reports import (
    CONSTANT,
    NORMAL,
    RANDOM,
    constant_report,
    random_reports,
)
from vlscore.evaluation.baselines.nearest_image import NEAREST, nearest_reports
from vlscore.evaluation.comparison.comparison_figures import draw_comparison
from vlscore.evaluation.comparison.known import EXTENDS, KnownValues, check_extension, read_numbers
from vlscore.evaluation.comparison.paper_table import TableSettings, check_table, paper_table
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
    read_given,
)
from vlscore.evaluation.comparison.systems import (
    Source,
    Systems,
    join,
    open_sources,
    patients_of,
    read_values,
    signatures_of,
    table_with_images,
)
from vlscore.evaluation.comparison.tables import (
    CONTENT,
    RESULTS,
    VALUES,
    cautions,
    families,
    first_failures,
    read_chunk,
    write_chunk,
    write_paper_table,
    write_results,
)
from vlscore.evaluation.methods_section import METHODS, REFERENCES, methods
from vlscore.evaluation.row_chunks import ChunkWriter, chunks_of_kind
from vlscore.evaluation.study_vectors import StudyVectors, embed_in_chunks, embedded_in
from vlscore.metrics import Item, Metric, Scorer
from vlscore.perturb import standard_normal_of
from vlscore.stats import FAILURES, Failure, Run, TextTable, check_drawable, write_changed

if TYPE_CHECKING:
    import pandas


_STUDIES_IN_CHUNK = 512

OnPhase = Callable[[str, int | None], OnProgress]


@dataclass(frozen=True)
class ComparisonRun(Run):
    """A comparison and its files; docs/comparing.md describes them.

    Attributes:
        result: the numbers; None where the run had ended before.
        taken_up: how many columns of an earlier comparison in the folder were used again, a column
            being the values of one system in one metric.
    """

    content_file = CONTENT
    results = RESULTS

    result: Comparison | None = None
    taken_up: int = 0

    @property
    def failed(self) -> int:
        """Values that are lacking."""
        return sum(sum(counts.values()) for counts in self.content["failed"].values())

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a system and number: value, its bounds, n, support. Needs pandas."""
        return frame(
            {
                "system": system,
                "metric": each["name"],
                "value": each["values"][system],
                "n": each["count"],
                "support": each["support"].get(system),
                "higher_is_better": each["higher_is_better"],
            }
            for each in self.content["measured"]
            for system in self.content["systems"]
        )

    def table(self, settings: TableSettings | None = None) -> TextTable:
        """Return the one table of the comparison; see `TableSettings`."""
        return paper_table(self.content, settings)

    def first_failures(self, count: int | None = None) -> list[Failure]:
        """The first values that are lacking, each reason once; `row` is the system."""
        return first_failures(self.folder / FAILURES)[:count]


def compare(
    systems: Sequence[str | Path | Source],
    out: str | Path,
    scorer: Scorer | None = None,
    *,
    columns: ColumnNames | None = None,
    image_root: str | Path | None = None,
    baselines: bool = False,
    train: ReportTable | None = None,
    values: str | Path | None = None,
    lower_is_better: Sequence[str] = (),
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
    ignore_blanks: bool = False,
    patient_column: str | None = None,
    against: str | None = None,
    table: TableSettings | None = None,
    figure: str | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
    on_phase: OnPhase | None = None,
) -> ComparisonRun:
    """Compare systems that wrote reports for the same studies, and write tables and values.

    Every image and every reference is embedded once for all systems. All systems' texts and
    numbers are held in memory.

    Called again after a stop with the same arguments, a run goes on where it was. Called again
    when it has ended, it changes nothing. Called with other metrics or systems, it computes those
    that are new alone, and writes the tables of what was asked for.

    Args:
        systems: tables of studies with candidates, folders of finished evaluations, "name=path",
            or what `open_sources` returned. Images are read from the first table that has them,
            and only where a metric looks at them.
        out: folder for the results.
        scorer: the metrics; None where all systems are finished evaluations, whose metrics are
            then those of the first.
        columns: other names of columns in the tables.
        image_root: folder that image paths start from; default: that of their table.
        baselines: put a constant report, the standard normal report, random reports and those of
            the nearest images beside the systems.
        train: reports that the baselines take instead of other studies' references, and that
            candidates may have copied.
        values: table of values of metrics that were computed elsewhere, for the same studies; see
            `read_given`.
        lower_is_better: columns of it of which smaller values are better.
        resamples, permutations, seed: of intervals and tests; `seed` of random reports too.
        ignore_blanks: take references that differ in white space alone for the same; those of the
            first table are used. Values of finished evaluations stay as they are.
        patient_column: of the first table that has it: whose study a row is. Intervals and tests
            then resample and permute whole patients.
        against: name of the system that is tested against each other one; default: every two are.
        table: how the one table is printed; also of a run that has ended.
        figure: "png", "svg" or "pdf": also draw the table's numbers, their paired differences
            and the systems' ranks; also of a run that has ended.
        workers: processes that decode images.
        overwrite: compute anew, and replace results when the new ones are complete.
        on_progress: called with (rows done, values lacking), where there is no `on_phase`.
        on_phase: called at the beginning of each phase with (what is done, how many in all);
            returns what is called with (done, failed).

    Raises: InvalidTable where studies or references differ; InvalidSetting where signatures do, or
        metrics are lacking; FolderInUse.
    """
    if figure is not None:
        check_drawable(figure)
    sources = _sources(systems, columns)
    images = None
    computes = scorer is not None and (baselines or any(s.run is None for s in sources))
    if computes and scorer is not None and scorer.plan.needs.images:
        holder = table_with_images(sources)
        images = open_studies(
            holder.table.path,
            needs={"image"},
            image_root=image_root,
            columns=holder.table.columns,
        )
    joined = join(sources, images, ignores_blanks=ignore_blanks)
    if scorer is not None and scorer.plan.needs_fit:
        scorer = scorer.fit(
            Item("", study.reference, None, study.parts) for study in joined.studies
        )
    _check_against(against, sources, baselines)
    patients = None
    if patient_column is not None:
        patients = patients_of(patient_column, sources, [study.id for study in joined.studies])
    signatures = _signatures(sources, scorer, baselines)
    given, said = read_given(
        values,
        [source.name for source in sources],
        [study.id for study in joined.studies],
        lower_is_better=lower_is_better,
        computed=[name for metric in signatures for name in metric.columns],
    )
    run = _ComparisonJob(
        sources, joined, signatures, scorer, images is not None, baselines, train, seed
    )
    key = {
        "systems": {
            source.name: {
                "table_sha256": source.table.sha256,
                "columns": source.table.columns.to_dict(),
                "evaluation": source.run.digests if source.run is not None else None,
            }
            for source in sources
        },
        "images_sha256": images.sha256 if images is not None else None,
        "image_root": str(images.root.resolve()) if images is not None else None,
        "metrics": {str(metric): str(s) for metric, s in signatures.items()},
        "baselines": baselines,
        "train_sha256": train.sha256 if train is not None else None,
        "resamples": resamples,
        "permutations": permutations,
        "seed": seed,
        **({} if patient_column is None else {"patient_column": patient_column}),
        **({"ignore_blanks": True} if ignore_blanks else {}),
        **({} if against is None else {"against": against}),
        **({} if values is None else {"values": [file_digest(values), sorted(lower_is_better)]}),
    }

    def compute(folder: ResumableFolder) -> dict[str, Any]:
        if folder.previous is not None:
            check_extension(folder.out, folder.previous.key, folder.key)
        run.take_up(read_numbers(folder.previous, key, signatures, joined.studies))
        begin: OnPhase = on_phase or (lambda what, total: no_progress)
        computing = begin(*run.work()) if on_phase else on_progress or no_progress
        rows = run.compute(folder, workers, computing)
        found = run.values(folder)
        run.notes += said
        if patients is not None:
            run.notes.append(
                f"intervals and tests resample and permute the {len(set(patients))} patients of "
                f"the column {patient_column}, not the studies"
            )
        if against is not None:
            run.notes.append(
                f"{against} is tested against each other system, and p is adjusted "
                "over these tests alone"
            )
        result = compare_values(
            found,
            run.texts(found),
            signatures,
            given=given,
            notes=run.notes,
            resamples=resamples,
            permutations=permutations,
            seed=seed,
            patients=patients,
            against=against,
            on_progress=begin("intervals and tests", count_numbers(signatures, given)),
        )

        run.notes += families(result.measured, result.tested)
        run.notes += cautions(result.measured, result.tested)
        run.notes += same_text_notes(result.texts)
        result = replace(result, notes=tuple(run.notes))

        def write(place: Path) -> dict[str, Any]:
            write_results(place, result, found, run.systems.studies, signatures, given, run.images)
            tables = {source.name: str(source.table.path.resolve()) for source in sources}
            return run_record(tables=tables, notes=list(run.notes))

        folder.finish(write, rows=rows)
        return {"result": result, "taken_up": run.taken_up}

    check_table(table or TableSettings(), signatures, [each.name for each in given], against)
    ended = ComparisonRun.make(out, key, compute, overwrite=overwrite, extends=EXTENDS)
    write_paper_table(ended.folder, ended.content, table or TableSettings())
    described = methods(ended.folder)
    write_changed(ended.folder / METHODS, described.markdown)
    write_changed(ended.folder / REFERENCES, described.bibtex)
    if figure is not None:
        shown = table.columns if table is not None else ()
        draw_comparison(ended.folder, ended.content, figure, shown, VALUES)
    return ended


class _ComparisonJob:
    """Systems and baselines on their way to values."""

    def __init__(
        self,
        sources: Sequence[Source],
        systems: Systems,
        signatures: Mapping[Metric, Signature],
        scorer: Scorer | None,
        has_images: bool,
        baselines: bool,
        train: ReportTable | None,
        seed: int,
    ) -> None:
        self.systems = systems
        self.notes = list(self.systems.notes)
        self._signatures, self._scorer, self._seed = signatures, scorer, seed
        self._policy = scorer.text_policy if scorer is not None else TextPolicy()
        self._has_images = has_images
        self._references = [self._reference(k) for k in range(len(self.systems.studies))]
        self._train = self._read_train(train)
        self.notes += self._headings()
        self._computed = {
            source.name: read_values(source.run, signatures, self.systems.studies)
            for source in sources
            if source.run is not None
        }
        self._candidates: dict[str, Sequence[str | None]] = dict(self.systems.candidates)
        self._baselines: dict[str, Sequence[str | None]] = {}
        # Before any of them is read, so that one that is replaced meanwhile is noticed later.
        self.images = stamps(
            path
            for found in systems.images.values()
            if isinstance(found, StudyImages)
            for path in found.images
        )
        self._known = KnownValues()
        if baselines:
            self._add_baselines()

    def take_up(self, known: KnownValues) -> None:
        """Use what an earlier comparison computed."""
        self._known = known

    @property
    def taken_up(self) -> int:
        """Columns that an earlier comparison had computed, and that count in this one."""
        systems = {*self._candidates, *self._baselines} - set(self._computed)
        return sum(system in systems for system, _ in self._known.blocks)

    def work(self) -> tuple[str, int]:
        """What `compute` works through, and how many rows that are."""
        shown = self._shown()
        computes = set(self._computed) != {*self._candidates, *self._baselines}
        studies = len(self.systems.studies) if computes else 0
        return "images and studies" if shown else "studies", len(shown) + studies

    def _shown(self) -> dict[str, StudyImages]:
        """The images that are embedded, by study."""
        if not self._needs_vectors():
            return {}
        return {
            study.id: found
            for study in self.systems.studies
            if isinstance(found := self.systems.images.get(study.id), StudyImages)
        }

    def compute(self, folder: ResumableFolder, workers: int, on_progress: OnProgress) -> int:
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

    def values(self, folder: ResumableFolder) -> dict[str, SystemValues]:
        """The values of all systems, from all chunks and from finished evaluations."""
        chunks = [read_chunk(chunk.path) for chunk in chunks_of_kind(folder, "values")]
        found = dict(self._computed)
        for name in chunks[0] if chunks else ():
            found[name] = SystemValues.joined([chunk[name] for chunk in chunks])
        return {name: found[name] for name in (*self._candidates, *self._baselines)}

    def texts(self, values: Mapping[str, SystemValues]) -> dict[str, TextFacts]:
        """What the candidates of every system are like."""
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
        """Whether embeddings of images are looked at, or all that is made of them is known."""
        return bool(self._baselines) or any(
            metric.uses_image
            for name in self._candidates
            if name not in self._computed
            for metric in self._known.missing(name, tuple(self._signatures))
        )

    def _values_of(self, rows: slice, vectors: StudyVectors | None) -> dict[str, SystemValues]:
        """Of what is not computed already, system after system, so that references are met again
        while the embedder remembers them.
        """
        assert self._scorer is not None
        if self._scorer.embedder is not None:
            # Vectors differ in the last digit with their batch: a stop must not show in it.
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
        if not self._has_images:
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
        # First: it says what is wrong where there are no reports to take.
        drawn = random_reports(self._references, self._train, self._seed)
        report, times = constant_report(pool)
        whose = "of the training table" if self._train is not None else "of the references"
        self.notes.append(
            f"{CONSTANT} is the most frequent {whose}, {times} of {len(pool)}: {report!r}"
        )
        normal = standard_normal_of(pool)
        self.notes.append(f"{NORMAL} is the standard normal report {whose}: {normal!r}")
        self._baselines = {CONSTANT: [report] * count, NORMAL: [normal] * count, RANDOM: drawn}
        if self._train is None:
            self.notes.append(
                "baselines take the references of the studies that are compared, which no system "
                "has seen; a training table makes them fair"
            )
        if not self._has_images:
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
        """What the text policy takes of a reference; None where it takes nothing."""
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


def _check_against(against: str | None, sources: Sequence[Source], baselines: bool) -> None:
    """Refuse a name that no system has, before anything is computed; raises InvalidSetting."""
    names = [source.name for source in sources]
    is_baseline = baselines and against in (CONSTANT, NORMAL, RANDOM, NEAREST)
    if against is not None and against not in names and not is_baseline:
        raise InvalidSetting(f"no system is called {against}; there are {', '.join(names)}")


def _sources(
    systems: Sequence[str | Path | Source], columns: ColumnNames | None
) -> tuple[Source, ...]:
    given = [each for each in systems if not isinstance(each, Source)]
    opened = iter(open_sources(given, columns))
    sources = tuple(each if isinstance(each, Source) else next(opened) for each in systems)
    if not sources:
        raise InvalidSetting("no system is given")
    return sources


def _signatures(
    sources: Sequence[Source], scorer: Scorer | None, baselines: bool
) -> dict[Metric, Signature]:
    if scorer is not None:
        return {metric: scorer.signatures[str(metric)] for metric in scorer.metrics}
    first = sources[0].run
    if first is None or any(source.run is None for source in sources) or baselines:
        raise InvalidSetting("tables and baselines need metrics: give a Scorer")
    return signatures_of(first)
