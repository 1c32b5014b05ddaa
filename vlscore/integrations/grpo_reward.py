"""Reward of generated reports for GRPO and the other online trainers of TRL."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from vlscore.core import warn_caller
from vlscore.data import check_encodable, check_texts, select, why_missing
from vlscore.errors import InvalidReport, InvalidSetting, InvalidStudy, VLScoreError
from vlscore.metrics import DEFAULT_METRIC, Scorer, ScoreTable

# Parts of a message that are its words; others are images, thoughts, calls of tools.
_TEXT_PARTS = ("text", "output_text", "input_text")
# Marks of a model's thoughts within its text, as TRL's `think_format_reward` knows them.
_THOUGHTS, _END_OF_THOUGHTS = "<think>", "</think>"
# Names of entries that a message names.
_NAMED = 5


def fitted_scorer(scorer: Scorer | Any) -> Scorer:
    """Return a scorer, also of names of metrics. Raises: InvalidSetting if it is not fitted."""
    found = scorer if isinstance(scorer, Scorer) else Scorer(metrics=scorer)
    if found.needs_fit:
        raise InvalidSetting(
            "one of these metrics must be fitted to all references of a run: pass "
            "scorer.fit(references)"
        )
    return found


class ReportReward:
    """Reward function of TRL: a metric of vlscore, or a weighted sum of several.

    TRL calls it with the completions of a step and the columns of the data set. Larger is better:
    a metric of which lower values are better is subtracted. A call never raises an error: a row
    that cannot be scored gets the reward `failed`, is counted in `failures`, and the first row of
    each kind of error is reported in a warning. So is a completion of a form that TRL does not
    have, as a dict instead of a list of messages. A completion that is no usable report, for
    instance an empty one, or one without the section that is scored, is scored as an empty report.

    Args:
        scorer: a `Scorer`, or names of metrics, as in "vlscore,findings-f1". For metrics that are
            fitted to references (CIDEr-D), pass `scorer.fit(references)`.
        weights: weight of each metric, in their order; default: 1 for each.
        reference: column of the data set with the reference reports.
        image: column with the images or their paths; default: "image" or "images", if a metric
            looks at images. A row of several images is one study with several views.
        failed: reward of a row that cannot be scored; with None, TRL leaves the row out, and also
            prints it, with its texts, if no other reward function scores it.

    Attributes:
        scorer: what scores; its `signatures` name what the rewards depend on.
        failures: name of the error -> number of rows that could not be scored.

    Raises: InvalidSetting where weights do not fit; UnknownName, MissingDependency and others of
        `Scorer`, before the training begins.
    """

    def __init__(
        self,
        scorer: Scorer | Any = DEFAULT_METRIC,
        *,
        weights: Sequence[float] | None = None,
        reference: str = "reference",
        image: str | None = None,
        failed: float | None = None,
    ) -> None:
        self.scorer = fitted_scorer(scorer)
        names = [str(metric) for metric in self.scorer.metrics]
        self.weights = [1.0] * len(names) if weights is None else [float(w) for w in weights]
        if len(self.weights) != len(names) or not all(map(math.isfinite, self.weights)):
            raise InvalidSetting(
                f"weights must be one finite number for each metric ({', '.join(names)}), not "
                f"{weights}"
            )
        if failed is not None and not isinstance(failed, Real):
            raise InvalidSetting(f"failed is a number or None, not {failed!r}")
        self.reference, self.failed = reference, failed
        self.image_columns = ("image", "images") if image is None else (image,)
        self.failures: Counter[str] = Counter()
        # TRL prints rewards under this name.
        self.__name__ = "+".join(names)

    def __call__(
        self, prompts: Any = None, completions: Sequence[Any] = (), **columns: Any
    ) -> list[float | None]:
        """Return one reward for each completion; arguments as TRL passes them.

        Args:
            prompts: not used.
            completions: texts, or lists of messages, of which the last one's text is scored.
            columns: one list for each column of the data set, with one entry for each completion;
                and TRL's own arguments, of which only `log_metric` is used.
        """
        try:
            rewards = self._rewards(completions, columns)
        except Exception as error:  # Any error would end a training of days.
            self._count(dict.fromkeys(range(len(completions)), error))
            rewards = [None] * len(completions)
        return [self.failed if reward is None else reward for reward in rewards]

    def _rewards(
        self, completions: Sequence[Any], columns: Mapping[str, Any]
    ) -> list[float | None]:
        needs, count = self.scorer.needs, len(completions)
        failures: dict[int, Exception] = {}
        candidates: list[str] = []
        check_texts("completions", completions)
        for row, completion in enumerate(completions):
            try:
                candidates.append(self._usable(text_of_completion(completion)))
            except InvalidReport as error:
                failures[row] = error
                candidates.append("")
        references = self._column(columns, (self.reference,), count) if needs.references else None
        images = self._column(columns, self.image_columns, count) if needs.images else None
        # The scorer takes a study with several views as a tuple.
        views = images and [tuple(each) if isinstance(each, list) else each for each in images]
        for row, reference in enumerate(references or ()):
            if reason := why_missing(reference, "the reference"):
                failures[row] = InvalidReport(reason)
        rows = [row for row in range(count) if row not in failures]
        total = np.full(count, np.nan)
        if rows:
            table = self.scorer.score(
                *(
                    None if x is None else [x[k] for k in rows]
                    for x in (views, candidates, references)
                ),
                on_error="keep",
            )
            values = np.stack([each.columns[0] for each in table.values.values()], axis=1)
            signs = [metric.sign for metric in table.metrics]
            total[rows] = values @ (np.array(signs) * self.weights)
            failures |= {rows[k]: error for k, error in table.failures.items()}
            self._log(columns.get("log_metric"), table, total)
        self._count(failures)
        return [float(value) if math.isfinite(value) else None for value in total]

    def _column(self, columns: Mapping[str, Any], names: Sequence[str], count: int) -> list[Any]:
        for name in names:
            if columns.get(name) is not None:
                check_texts(f'"{name}"', columns[name])
                found = list(columns[name])
                if len(found) != count:
                    raise InvalidStudy(f'"{name}" has {len(found)} entries, not {count}')
                return found
        raise InvalidStudy(
            f'the data set has no column "{" or ".join(names)}"; name it in ReportReward '
            "(reference=..., image=...). TRL passes the columns that remove_unused_columns keeps"
        )

    def _usable(self, text: str) -> str:
        """Return the text, or an empty report if the text policy finds nothing to score in it."""
        try:
            check_encodable([text], "candidate")
            select(text, self.scorer.text_policy, "candidate")
        except VLScoreError:
            return ""
        return text

    def _log(self, log: Any, table: ScoreTable, total: Any) -> None:
        """Log the mean of each metric, and the share of failed rows, where TRL offers it."""
        if log is None:
            return
        for metric, values in table.values.items():
            if len(table.values) > 1 and np.isfinite(values.columns[0]).any():
                log(str(metric), float(np.nanmean(values.columns[0])))
        log(f"{self.__name__} failed", float(1 - np.isfinite(total).mean()))

    def _count(self, failures: Mapping[int, Exception]) -> None:
        for row, error in failures.items():
            kind = type(error).__name__
            self.failures[kind] += 1
            if self.failures[kind] == 1:
                warn_caller(
                    f"row {row} of a step has no reward ({kind}: {error}). Such rows get the "
                    f"reward {self.failed}; their number is in `failures`"
                )


def text_of_completion(completion: Any) -> str:
    """Return the text of a completion: a text, or that of the last of its messages.

    A message without content, such as a call of a tool, is an empty text, and so are None, an
    empty list and the answer of a tool. What stands in <think>...</think> is left out.

    Raises: InvalidReport for the message of a user, and for any other form: what is not understood
        must not count as a bad report.

    >>> text_of_completion([{"role": "assistant", "content": "Clear lungs."}])
    'Clear lungs.'
    >>> text_of_completion([{"content": [{"type": "text", "text": "Clear."}, {"type": "image"}]}])
    'Clear.'
    """
    if completion is None or isinstance(completion, str):
        return _without_thoughts(completion or "")
    if not isinstance(completion, list | tuple):
        raise _of_unknown_form(completion)
    if not completion:
        return ""
    message = completion[-1]
    if not isinstance(message, Mapping) or not {"content", "role", "tool_calls"} & message.keys():
        raise _of_unknown_form(message)
    role = message.get("role", "assistant")
    if role == "tool":  # The model called a tool, and wrote no report behind its answer.
        return ""
    if role != "assistant":
        raise InvalidReport(f"the last message of a completion is of the {role!r}, not assistant")
    content = message.get("content")
    if isinstance(content, list | tuple):
        return _without_thoughts(" ".join(filter(None, map(_text_of_part, content))))
    if content is None or isinstance(content, str):
        return _without_thoughts(content or "")
    raise _of_unknown_form(content)


def _without_thoughts(text: str) -> str:
    """Return what stands behind a model's thoughts; nothing if they do not end.

    >>> _without_thoughts("<think>An effusion?</think>Clear lungs."), _without_thoughts("<think>An")
    ('Clear lungs.', '')
    """
    if _END_OF_THOUGHTS in text:
        return text.rpartition(_END_OF_THOUGHTS)[2]
    return "" if text.lstrip().startswith(_THOUGHTS) else text


def _text_of_part(part: Any) -> str:
    """Return the text of a part of a message; "" for an image or a thought."""
    if not isinstance(part, Mapping) or not {"type", "text"} & part.keys():
        raise _of_unknown_form(part)
    if part.get("type", "text") not in _TEXT_PARTS:
        return ""
    if not isinstance(text := part.get("text"), str):
        raise _of_unknown_form(text)
    return text


def _of_unknown_form(found: Any) -> InvalidReport:
    names = ""
    if isinstance(found, Mapping):
        known = [name for name in found if isinstance(name, str) and name.isidentifier()]
        names = f" of {', '.join(known[:_NAMED])}" if known else ""
    return InvalidReport(
        "a completion must be a text, or a list of messages with role and content, as TRL passes "
        f"it; found a {type(found).__name__}{names}"
    )
