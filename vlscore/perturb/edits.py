"""Edits and perturbations as plain values, helpers that make edits, and reproducible choices.

- `Perturbation` records one change of one report, which can be checked against the original.
- `replaced` and `removed` make edits with correct capitals, articles and spaces.
- `Chance` makes random choices that are equal on any machine and with any library version.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

from vlscore.core import check_settings
from vlscore.errors import InvalidSetting
from vlscore.perturb.lexicons import statements


@dataclass(frozen=True, kw_only=True)
class PerturbationSettings:
    """Settings of a set of perturbed reports.

    Attributes:
        seed: Seed of every choice, which also depends on the study's id and the kind.
        kinds: Kinds of changes, with commas between them, as in remove-pathology,change-location;
            package.module:MyKind is one of your own. Default: all.
        per_report: Largest number of changes of each kind from one report.

    Raises: InvalidSetting that names the first invalid setting.
    """

    seed: int = 0
    kinds: Any = None
    per_report: int = 1

    def __post_init__(self) -> None:
        check_settings(self, per_report=1)
        if not isinstance(self.seed, Integral):
            raise InvalidSetting(f"seed is a whole number, not {self.seed!r}")


class Expected(StrEnum):
    """Expectation: should a good metric notice the change?"""

    SIGNIFICANT = "significant"
    INSIGNIFICANT = "insignificant"


class ErrorCategory(StrEnum):
    """The six error categories of ReXVal (Yu et al. 2023)."""

    FALSE_FINDING = "false_finding"
    OMITTED_FINDING = "omitted_finding"
    WRONG_LOCATION = "wrong_location"
    WRONG_SEVERITY = "wrong_severity"
    FALSE_COMPARISON = "false_comparison"
    OMITTED_COMPARISON = "omitted_comparison"


class Effect(StrEnum):
    """Effect of a change on the meaning of a report; `consistency` has a rule for each."""

    STATED = "stated"
    LEFT_OUT = "left out"
    DENIED = "denied"
    MOVED = "moved"
    REGRADED = "regraded"
    COMPARED = "compared"
    NOT_COMPARED = "not compared"


class Meaning(NamedTuple):
    """Intended meaning of a change, for the check of the rest of the report.

    Attributes:
        effect: effect of the change.
        observations: its observations, as in `vlscore.findings.Finding.observation`.
        old, new: the side, zone, grade or comparison before and after, if it has one.
    """

    effect: Effect
    observations: tuple[str, ...] = ()
    old: str | None = None
    new: str | None = None


class Edit(NamedTuple):
    """Edit: characters [start, end) of the original, in code points, become `replacement`."""

    start: int
    end: int
    replacement: str


class Change(NamedTuple):
    """Change proposed by a kind: its edits, and the rule that fired.

    `meaning` decides how the rest of the report is checked. If it is None, because the change does
    not alter the meaning, only the layout is checked.
    """

    edits: tuple[Edit, ...]
    rule: str
    meaning: Meaning | None = None


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A report and a changed copy of it.

    Attributes:
        study_id: whose report it is.
        kind: of perturbation, as in "remove-pathology".
        expected: whether a good metric should notice.
        category: ReXVal's error category; None where the change is no error.
        original, perturbed: the report before and after; they differ in more than white space.
        edits: `apply_edits(original, edits)` is `perturbed`.
        rule: what chose the edits, as in "side:left->right pleural_effusion".
    """

    study_id: str
    kind: str
    expected: Expected
    category: ErrorCategory | None
    original: str
    perturbed: str
    edits: tuple[Edit, ...]
    rule: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for json."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        content["edits"] = [edit._asdict() for edit in self.edits]
        return content


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with its edits made.

    Raises ValueError where an edit lies outside the text, overlaps or precedes the one before.

    >>> apply_edits("left effusion", [Edit(0, 4, "right")])
    'right effusion'
    """
    parts = []
    done = 0
    for edit in edits:
        if not done <= edit.start <= edit.end <= len(text):
            raise ValueError(f"{edit} overlaps the edit before it or leaves the text")
        parts += [text[done : edit.start], edit.replacement]
        done = edit.end
    return "".join([*parts, text[done:]])


_WORD = re.compile(r"[^\W_]+")


def in_case_of(word: str, model: str) -> str:
    """Return `word` with the capitals of `model`: none, a first one, or all.

    >>> in_case_of("right", "Left"), in_case_of("apex", "BASE"), in_case_of("RUL", "rll")
    ('Right', 'APEX', 'rul')
    """
    letters = [character for character in model if character.isalpha()]
    if len(letters) > 1 and all(character.isupper() for character in letters):
        return word.upper()
    lowered = word.lower()
    if letters and letters[0].isupper():
        return lowered[:1].upper() + lowered[1:]
    return lowered


def article_for(words: str) -> str:
    """Return the indefinite article before some words.

    >>> article_for("apical opacity"), article_for("unilateral effusion"), article_for("RLL mass")
    ('an', 'a', 'an')
    """
    table = statements().article
    return table.of_vowel if re.match(table.vowel, words) else table.of_consonant


def replaced(text: str, start: int, end: int, words: str) -> list[Edit]:
    """Return edits that replace text[start:end] by `words`, and correct the article before it."""
    table, offset = statements().article, max(0, start - 6)
    article = re.search(table.words, text[offset:start], re.IGNORECASE)
    edits = [Edit(start, end, words)]
    following = f"{words}{text[end : end + 20]}".lstrip()
    is_known = _WORD.match(following) and not following.lower().startswith(table.masks)
    if article is None or not is_known:
        return edits
    old, wanted = article.group(1), article_for(following)
    if old.lower() != wanted:
        new = wanted.upper() if text.isupper() else with_capital(wanted, like=old)
        edits.insert(0, Edit(offset + article.start(1), offset + article.end(1), new))
    return edits


def removed(text: str, start: int, end: int, *, opens: bool = False) -> list[Edit]:
    """Return edits that remove text[start:end] and one of the spaces around it.

    Args:
        opens: the words open a sentence, so that the next word takes over their capital.
    """
    while end < len(text) and text[end] in " \t":
        end += 1
    if opens and text[start].isupper() and end < len(text):
        return [Edit(start, end + 1, text[end].upper())]
    return replaced(text, start, end, "")


def with_capital(words: str, *, like: str) -> str:
    """Return `words` with the case of the first letter of `like`.

    >>> with_capital("no effusion.", like="Small effusion.")
    'No effusion.'
    """
    if not like[:1].isupper():
        return words[:1].lower() + words[1:]
    return words[:1].upper() + words[1:]


Option = TypeVar("Option")


class Chance:
    """Stream of random choices that depends on its key alone.

    numpy and the standard library promise a stable stream for few of their methods; a hash in
    counter mode needs no promise.
    """

    def __init__(self, *key: object) -> None:
        digest = hashlib.blake2b(digest_size=32)
        for part in key:
            encoded = str(part).encode("utf-8", "surrogatepass")
            digest.update(f"{len(encoded)}:".encode() + encoded)
        self._key = digest.digest()
        self._drawn = 0

    def below(self, count: int) -> int:
        """Return an integer in [0, count); its bias is below count / 2⁶⁴."""
        block = hashlib.blake2b(self._drawn.to_bytes(8, "big"), key=self._key, digest_size=8)
        self._drawn += 1
        return int.from_bytes(block.digest(), "big") * count >> 64

    def pick(self, options: Sequence[Option]) -> Option:
        """Return one of the options, each as likely."""
        return options[self.below(len(options))]

    def shuffled(self, options: Iterable[Option]) -> list[Option]:
        """Return the options in random order, each order as likely (Fisher and Yates)."""
        order = list(options)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
