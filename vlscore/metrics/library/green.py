"""GREEN: matched findings / (matched findings + significant errors), by a language model.

The model runs on this machine, or a table has the answers that it gave before.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.errors import InvalidSetting, InvalidTable, MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.file_metric import FileMetric, path_parameter
from vlscore.metrics.memo import loaded_once, name_and_digest
from vlscore.metrics.metric import Output
from vlscore.metrics.networks.categories import CATEGORIES
from vlscore.metrics.networks.model_files import (
    check_model_folder,
    device_of_annotators,
    files_of_model,
    read_template,
)

if TYPE_CHECKING:
    from vlscore.metrics.networks.green_model import GreenAnswer

MODEL_VARIABLE = "VLSCORE_GREEN"


def _counts(kind: str) -> list[Output]:
    outputs = {kind: f"clinically {kind} errors"}
    outputs |= {f"{kind}-{name}": f"{kind}: {what}" for name, what in CATEGORIES.items()}
    return [Output(name, what, False, (0.0, None)) for name, what in outputs.items()]


# The columns of a table of answers; the second names are those of the package green_score.
_CANDIDATE, _REFERENCE = ("candidate", "predictions", "prediction"), ("reference",)
_ANSWER = ("answer", "green_analysis")
_RELEASED = "d72c195"

_Pair = tuple[str, str]


class Green(FileMetric):
    """Judges each distinct pair once; an unreadable answer is a failure."""

    name = "green"
    title = "GREEN"
    description = (
        "findings of both reports, of those and the clinically significant errors, as a "
        "language model counts them"
    )
    citation = "Ostmeier et al. 2024, GREEN, EMNLP Findings"
    bounds = (0.0, 1.0)
    further = (
        Output("matched", "findings that both reports have", bounds=(0.0, None)),
        *_counts("significant"),
        *_counts("insignificant"),
    )
    library = "transformers"

    model: str | None = path_parameter(
        "folder of the language model, such as GREEN-radllama2-7b, with the released question "
        f"as green_prompt.txt beside it; default: {MODEL_VARIABLE}; nothing is fetched"
    )
    answers: str | None = path_parameter(
        "in place of a model: a table of its answers, with columns candidate, reference and "
        "answer, or as the package green_score returns it"
    )

    def compute(self, batch: Batch) -> Computed:
        from vlscore.metrics.networks.green_model import UnreadableAnswer, read_green_answer

        found = np.full((len(self.columns), len(batch)), np.nan)
        failures: dict[int, VLScoreError] = {}
        for row, answer in enumerate(self._answers(batch)):
            if isinstance(answer, VLScoreError):
                failures[row] = answer
                continue
            try:
                found[:, row] = _numbers(read_green_answer(answer))
            except UnreadableAnswer as error:
                failures[row] = UnreadableAnswer(f"GREEN's answer cannot be read: {error}")
        return Computed(list(found), failures=failures)

    def missing(self) -> str | None:
        answers = self._table()
        if answers is not None:
            return None if answers.is_file() else f"{answers}: there is no such table of answers"
        reason = super().missing()
        if reason is None or self.model is not None:
            return reason
        return f"{reason}. Or use a table of its answers: {self.name}(answers=FILE)"

    def facts(self) -> dict[str, Any]:
        answers = self._table()
        if answers is not None:
            if (reason := self.missing()) is not None:
                raise MissingDependency(reason)
            return {"answers": name_and_digest(answers), "parser": f"green@{_RELEASED}"}
        from vlscore.metrics.networks.green_model import LONGEST, precision_on

        (model,) = self.present_files()
        return {
            "model": name_and_digest(model, files_of_model(model)),
            "prompt": read_template(model)[1],
            "longest": str(LONGEST),
            "precision": precision_on(device_of_annotators()),
            **super().facts(),
        }

    def files(self) -> tuple[Path, ...]:
        what = "a folder with GREEN's language model, such as GREEN-radllama2-7b,"
        folder = check_model_folder(self.path_of("model", MODEL_VARIABLE, what))
        read_template(folder)
        return (folder,)

    def _answers(self, batch: Batch) -> "Sequence[str | VLScoreError]":
        table = self._table()
        if table is None:
            from vlscore.metrics.networks.green_model import known_answers

            return known_answers(batch.memo, self.files()[0], batch.pairs())
        known = _read_answers(table)
        absent = VLScoreError(f"{table} has no answer for these two reports")
        return [known.get(_key(*pair), absent) for pair in batch.pairs()]

    def _table(self) -> Path | None:
        if self.answers is None:
            return None
        if self.model is not None:
            raise InvalidSetting(
                "green reads its answers from a model or from a table, not from both: leave out one"
            )
        return Path(self.answers).expanduser()


def _numbers(answer: "GreenAnswer") -> list[float]:
    """Return the numbers of an answer in the order of the metric's columns."""
    found = [answer.score, float(answer.matched)]
    for counts in (answer.significant, answer.insignificant):
        found += [np.nan] * 7 if counts is None else [float(sum(counts)), *map(float, counts)]
    return found


def _key(candidate: str, reference: str) -> _Pair:
    return " ".join(candidate.split()), " ".join(reference.split())


@loaded_once(lambda path: (path,), maxsize=2)
def _read_answers(path: Path) -> Mapping[_Pair, str | VLScoreError]:
    """Read the answers of a table.

    Raises: InvalidTable that names a missing column, or the row of a second answer.
    """
    from vlscore.data import columns_of, read_rows
    from vlscore.metrics.networks.green_model import explanation_removed

    columns = columns_of(path)
    names = []
    for known in (_CANDIDATE, _REFERENCE, _ANSWER):
        named = next((name for name in known if name in columns), None)
        if named is None:
            raise InvalidTable(
                f"{path} has no column {' or '.join(known)}; its columns are {', '.join(columns)}"
            )
        names.append(named)
    found: dict[_Pair, str | VLScoreError] = {}
    for number, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {number}: {record}")
        candidate, reference, answer = (str(record.get(name) or "") for name in names)
        key, text = _key(candidate, reference), explanation_removed(answer)
        if found.setdefault(key, text) != text:
            raise InvalidTable(
                f"{path}, row {number}: an earlier row has another answer about the same two "
                "reports"
            )
    return found
