"""Sentences grouped by the polarity of an observation: read by our rules, or labelled by others.

Labels are those of the CheXpert labeller: 1 stated, -1 uncertain, 0 denied, and -2 here where the
observation is not mentioned.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import plain_name
from vlscore.data import checked_limit, columns_of, is_missing, read_rows, text_of
from vlscore.errors import Failure, InvalidSetting, InvalidStudy, InvalidTable
from vlscore.findings import CHEXPERT_LABELS, chexpert_labels
from vlscore.text import split_sentences

if TYPE_CHECKING:
    from pandas import DataFrame

UNMENTIONED, DENIED, UNCERTAIN, STATED = -2, 0, -1, 1
GROUPS = {UNMENTIONED: "unmentioned", DENIED: "denied", UNCERTAIN: "uncertain", STATED: "stated"}
SENTENCE_COLUMN = "sentence"
# Those of Pino 2022: CheXpert's competition, and Lung Opacity.
OBSERVATIONS = (
    "Cardiomegaly",
    "Consolidation",
    "Edema",
    "Pleural Effusion",
    "Atelectasis",
    "Lung Opacity",
)
OWN_RULES = "rules of vlscore.findings"


@dataclass(frozen=True, eq=False)
class LabelledSentences:
    """n distinct sentences, and the label of each for some observations.

    Attributes:
        sentences: distinct texts.
        labels: n rows of int8, a column an observation; each is one of GROUPS.
        labelled_by: who made the labels.
        bad: rows that could not be used, with the reason.
    """

    sentences: tuple[str, ...]
    labels: "DataFrame"
    labelled_by: str
    bad: tuple[Failure, ...] = ()

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def sha256(self) -> str:
        """Return the hexadecimal digest of sentences and labels."""
        digest = hashlib.sha256(json.dumps([self.sentences, list(self.labels)]).encode("utf-8"))
        for name in self.labels:
            digest.update(self.labels[name].to_numpy().tobytes())
        return digest.hexdigest()

    def table(self) -> "DataFrame":
        """Return one row a sentence, as `read_labelled` reads them."""
        table = self.labels.astype(object).where(self.labels != UNMENTIONED, None)
        table.insert(0, SENTENCE_COLUMN, self.sentences)
        return table

    def places(self, observation: str, *groups: int) -> NDArray[np.intp]:
        """Return places of the sentences of some groups."""
        return np.flatnonzero(self.labels[observation].isin(groups))


def label_sentences(
    reports: Iterable[str], observations: Sequence[str] | None = None
) -> LabelledSentences:
    """Return the distinct sentences of reports, each labelled alone by our rules.

    Args: observations: names of CheXpert's, in any spelling; default: OBSERVATIONS.
    Raises: InvalidSetting for an unknown observation.
    """
    chosen = _chosen(observations, [name for name in CHEXPERT_LABELS if name != "No Finding"])
    found: dict[str, dict[str, int | None]] = {}
    for report in reports:
        for sentence in split_sentences(report):
            text = " ".join(sentence.text.split())
            if text and text not in found:
                found[text] = chexpert_labels(text)
    rows = {text: [labels[name] for name in chosen] for text, labels in found.items()}
    return _labelled(rows, chosen, OWN_RULES)


def read_labelled(
    path: str | Path,
    observations: Sequence[str] | None = None,
    *,
    sentence_column: str = SENTENCE_COLUMN,
    limit: int | None = None,
) -> LabelledSentences:
    """Return a table with one sentence a row and one column an observation: 1, 0, -1, or empty.

    That is how the CheXpert labeller writes its labels; -2 is read as empty. Of a sentence that
    is in several rows, the first row counts.

    Args:
        observations: names of columns; default: those of CheXpert's observations.
        limit: read only so many rows, the first ones; None for all.

    Raises: InvalidTable where columns are absent or no row can be used; InvalidSetting.
    """
    path = Path(path)
    columns = columns_of(path)
    if sentence_column not in columns:
        raise InvalidTable(
            f"{path}: no column {sentence_column}; found: {', '.join(columns)}. Name it with "
            "--rename sentence=NAME"
        )
    others = [name for name in columns if name != sentence_column]
    wanted = observations
    if wanted is None:
        known = {plain_name(name) for name in CHEXPERT_LABELS if name != "No Finding"}
        wanted = [name for name in others if plain_name(name) in known]
        if not wanted:
            raise InvalidTable(
                f"{path}: no column has the name of an observation of CheXpert; found: "
                f"{', '.join(others)}. Name the columns with --observations"
            )
    chosen = _chosen(wanted, others)
    found: dict[str, list[int | None]] = {}
    bad: list[Failure] = []
    for number, record in islice(read_rows(path), checked_limit(limit)):
        try:
            if isinstance(record, str):
                raise InvalidStudy(record)
            text = " ".join((text_of(record[sentence_column], sentence_column) or "").split())
            if not text:
                raise InvalidStudy(f'column "{sentence_column}" is empty')
            labels = [_label(record.get(name), name) for name in chosen]
            found.setdefault(text, labels)
        except InvalidStudy as error:
            bad.append(Failure(number, "", str(error)))
    if not found:
        first = f"; row {bad[0].row}: {bad[0].reason}" if bad else ""
        raise InvalidTable(f"{path}: no sentence could be read{first}")
    which = "" if limit is None else f", its first {limit} rows"
    return _labelled(found, chosen, f"table {path.name}{which}", tuple(bad))


def _labelled(
    found: Mapping[str, Sequence[int | None]],
    names: Sequence[str],
    labelled_by: str,
    bad: tuple[Failure, ...] = (),
) -> LabelledSentences:
    """Return sentences; args: sentence -> its label for each of the named observations."""
    from pandas import DataFrame

    labels = DataFrame(list(found.values()), columns=names, dtype=float)
    labels = labels.fillna(UNMENTIONED).astype(np.int8)
    return LabelledSentences(tuple(found), labels, labelled_by, bad)


def _chosen(wanted: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Return the registered names for names in any spelling."""
    spelt = {plain_name(name): name for name in known}
    found = []
    for name in OBSERVATIONS if wanted is None else wanted:
        if plain_name(name) not in spelt:
            raise InvalidSetting(f"no observation is called {name!r}; known: {', '.join(known)}")
        found.append(spelt[plain_name(name)])
    return list(dict.fromkeys(found))


def _label(value: Any, column: str) -> int | None:
    if is_missing(value):
        return None
    try:
        number = float(value)
        if number in GROUPS:
            return int(number)
    except (TypeError, ValueError):
        pass
    raise InvalidStudy(
        f'column "{column}" holds {value!r}; a label is 1, 0, -1, or empty for unmentioned'
    )
