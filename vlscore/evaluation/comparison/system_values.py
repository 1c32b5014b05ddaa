"""Values of systems for some studies: computed, with each reference embedded once, or read.

Values are read from chunks, or from tables of values computed elsewhere.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vlscore.data import Study, columns_of
from vlscore.embedding import EmbeddedRows, StudyEmbedder
from vlscore.errors import InvalidStudy, InvalidTable, VLScoreError
from vlscore.evaluation.alignment.rating_builder import missing_columns
from vlscore.evaluation.command_settings import check_elsewhere
from vlscore.evaluation.row_chunks import read_arrays, write_arrays
from vlscore.evaluation.study_vectors import StudyVectors
from vlscore.metrics import Batch, EmbeddingTriples, Metric, Scorer, ValueColumns

# Columns of a table of values that name its rows.
_ID_COLUMNS = ("system", "id")


@dataclass(frozen=True)
class NumberLayout:
    """Positions of each metric's numbers in a row of numbers.

    Attributes:
        metrics: in order.
    """

    metrics: tuple[Metric, ...]

    @property
    def width(self) -> int:
        """Return the length of a row: columns of every metric, and sums for its corpus values."""
        return sum(len(metric.columns) + metric.statistics for metric in self.metrics)

    def columns(self, metric: Metric) -> slice:
        """Return the positions of a metric's columns."""
        start = self._start(metric)
        return slice(start, start + len(metric.columns))

    def statistics(self, metric: Metric) -> slice:
        """Return the positions of the sums from which a metric's corpus values are computed."""
        start = self._start(metric) + len(metric.columns)
        return slice(start, start + metric.statistics)

    def _start(self, metric: Metric) -> int:
        before = self.metrics[: self.metrics.index(metric)]
        return sum(len(each.columns) + each.statistics for each in before)


@dataclass(eq=False)
class SystemValues:
    """Values of one system for n studies.

    Attributes:
        numbers: (n, layout.width); nan where a study has no value.
        truncated: (n,) whether the encoder did not read the candidate's end; None without one.
        failures: study -> {metric: why it has no value}.
    """

    numbers: NDArray[np.float64]
    truncated: NDArray[np.bool_] | None = None
    failures: dict[int, dict[str, str]] = field(default_factory=dict)

    def written_failures(self) -> dict[str, dict[str, str]]:
        """Return the failures as json has them: keys are texts."""
        return {str(row): reasons for row, reasons in self.failures.items()}

    @classmethod
    def joined(cls, parts: Sequence["SystemValues"]) -> "SystemValues":
        """Return the values of consecutive stretches of studies."""
        starts = np.cumsum([0, *(len(part.numbers) for part in parts)]).tolist()
        flags = [part.truncated for part in parts if part.truncated is not None]
        return cls(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate(flags) if len(flags) == len(parts) else None,
            {
                start + k: reasons
                for start, part in zip(starts, parts, strict=False)
                for k, reasons in part.failures.items()
            },
        )


def write_chunk(place: Path, values: Mapping[str, SystemValues]) -> None:
    """Write the values of all systems for some studies into a chunk."""
    arrays = {"numbers": np.stack([each.numbers for each in values.values()])}
    flags = [each.truncated for each in values.values() if each.truncated is not None]
    if len(flags) == len(values):
        arrays["truncated"] = np.stack(flags)
    write_arrays(place, {name: each.written_failures() for name, each in values.items()}, **arrays)


def read_chunk(place: Path) -> dict[str, SystemValues]:
    """Return what `write_chunk` wrote."""
    arrays, failed = read_arrays(place)
    numbers = arrays["numbers"]
    flags = arrays.get("truncated", [None] * len(numbers))
    return {
        name: SystemValues(
            numbers[k], flags[k], {int(row): reasons for row, reasons in found.items()}
        )
        for k, (name, found) in enumerate(failed.items())
    }


def compute_values(
    scorer: Scorer,
    studies: Sequence[Study],
    candidates: Sequence[str | None],
    images: StudyVectors | None,
    *,
    is_selected: bool = False,
) -> SystemValues:
    """Compute the values of one system; failures are listed, never raised.

    Args:
        candidates: of the n studies; None where the system has none.
        images: embedded already; None where no metric looks at them.
        is_selected: the text policy was applied to the candidates already.
    """
    layout = NumberLayout(scorer.metrics)
    failures: dict[int, VLScoreError] = {}
    rows, chosen = [], []
    for row, (study, candidate) in enumerate(zip(studies, candidates, strict=True)):
        try:
            if candidate is None:
                raise InvalidStudy("the baseline has no report for this study")
            given = replace(study, candidate=None if is_selected else candidate)
            if not scorer.plan.needs.references:
                given = replace(given, reference=None, parts=None)
            given = given.selected(scorer.text_policy)
            chosen.append(replace(given, candidate=candidate) if is_selected else given)
            rows.append(row)
        except VLScoreError as error:
            failures[row] = error
    texts = [study.candidate or "" for study in chosen]
    against = None
    if scorer.plan.needs.references:
        against = [study.reference or "" for study in chosen]
    triples, truncated = None, None
    if scorer.embedder is not None:
        triples, flags = _embed(scorer.embedder, chosen, texts, against, images)
        truncated = np.zeros(len(studies), dtype=bool)
        truncated[rows] = flags
    found = scorer.plan.values(Batch(texts, against, triples))
    numbers = np.full((len(studies), layout.width), np.nan)
    names = [str(metric) for metric in scorer.metrics]
    reasons = {row: dict.fromkeys(names, str(error)) for row, error in failures.items()}
    for metric, values in found.items():
        numbers[rows, layout.columns(metric)] = np.stack(list(values.columns.values()), axis=1)
        if values.statistics is not None:
            numbers[rows, layout.statistics(metric)] = values.statistics
        for k, reason in values.failures.items():
            reasons.setdefault(rows[k], {})[str(metric)] = str(reason)
    return SystemValues(numbers, truncated, reasons)


def _embed(
    embedder: StudyEmbedder,
    studies: Sequence[Study],
    texts: Sequence[str],
    references: Sequence[str] | None,
    images: StudyVectors | None,
) -> tuple[EmbeddingTriples, NDArray[np.bool_]]:
    failures: dict[int, VLScoreError] = {}
    g = embedder.embed_texts(texts)
    r: EmbeddedRows | None = None
    if references is not None:
        r = embedder.embed_texts(references)
    for part in (g, r):
        failures |= part.failures if part is not None else {}
    i = None
    if images is not None:
        i, missing = images.rows([study.id for study in studies], embedder.dim)
        failures |= missing
    triples = EmbeddingTriples(
        i, g.vectors, None if r is None else r.vectors, embedder.signature, embedder.C, failures
    )
    return triples, g.truncated.numpy()


@dataclass(frozen=True, eq=False)
class MetricElsewhere:
    """One column of a table of values.

    Attributes:
        name: of the column.
        higher_is_better: direction.
        values: system -> (n,) values of the studies, nan where there is none.
        signature: names the file that they were read from.
    """

    name: str
    higher_is_better: bool
    values: Mapping[str, NDArray[np.float64]]
    signature: str


def read_elsewhere(
    path: str | Path | None,
    systems: Collection[str],
    studies: Sequence[str],
    *,
    lower_is_better: Collection[str] = (),
    computed: Collection[str] = (),
) -> tuple[list[MetricElsewhere], list[str]]:
    """Read metrics, and notes, from a table of one row a system and study, one column a metric.

    Directions and cells that are no numbers are treated as `ValueColumns` does.

    Args:
        path: of the table; None where there is none, and so no metrics.
        computed: names that columns must not have, for they are computed here.
        systems, studies: those that are compared; rows of others are left out and counted in a
            note.

    Raises:
        InvalidTable: the file cannot be read, has not the columns, names a study of a system
            twice, or has no row that is compared.
        InvalidSetting: a name in `lower_is_better` is no column, or a column is computed here.
    """
    check_elsewhere(path, lower_is_better)
    if path is None:
        return [], []
    path = Path(path)
    found = columns_of(path)
    missing_columns(path, found, _ID_COLUMNS)
    names = [name for name in found if name not in _ID_COLUMNS]
    if not names:
        raise InvalidTable(f"{path}: has no column of values besides {', '.join(_ID_COLUMNS)}")
    check_elsewhere(path, lower_is_better, names, computed)
    columns = ValueColumns(path, names, lower_is_better)
    place = {study: k for k, study in enumerate(studies)}
    values = {name: {s: np.full(len(studies), np.nan) for s in systems} for name in names}
    seen: set[tuple[str, str]] = set()
    for number, (system, study), record in columns.rows(*_ID_COLUMNS):
        if system not in systems or study not in place:
            columns.pass_over()
            continue
        if (system, study) in seen:
            raise InvalidTable(
                f"{path}, row {number}: {system!r} has an earlier row of study {study!r}"
            )
        seen.add((system, study))
        for name in names:
            values[name][system][place[study]], _ = columns.value(number, record[name], name)
    if not seen:
        raise InvalidTable(
            f"{path}: none of its rows is of a system ({', '.join(systems)}) and study compared"
        )
    signature = str(columns.signature)
    metrics = [
        MetricElsewhere(name, columns.is_higher_better(name), values[name], signature)
        for name in names
    ]
    return metrics, columns.notes("system and study compared")
