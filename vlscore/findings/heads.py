"""Lines that say something of what stands below them: heads of lists, titles of columns, labels.

"Absent:" heads a list of what is absent, "Heart" what is said of the heart, "Finding | Right |
Left" the rows of a table, and "Pneumothorax", alone on its line, its answer: "None."
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Token
from vlscore.findings.types import Span
from vlscore.text import BLANK_LINE

#: Layers of the words that name a finding or a part of the chest.
NAMING = frozenset(("mention", "subject"))
_COLUMNS = ("sides", "answers_yes", "answers_no")
_LONGEST_ANSWER = 8
_CELL = re.compile(r"(?<![^\S\t\n])[^\S\t\n]*+[|\t]|(?<=[^\s|])[^\S\n]{3,}(?=[^\s|])")
# Below the titles of a table's columns stands a line of markdown.
_NEXT_ITEM = re.compile(r"[ \t\r|]*\n(?:[ \t|:+-]*\n)?[^\n:]*")
#: Characters of a line that is no more than the name of a part of the chest.
_LONGEST_HEAD = 40


def cells_of(text: str) -> list[Span]:
    """Return the cells of a table row, at their characters; none where the text is no row."""
    if "\n" in text.strip() or _CELL.search(text) is None:
        return []
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    cuts = [cut.span() for cut in _CELL.finditer(text, start + (text[start] == "|"), end)]
    begins, ends = [start, *(last for _, last in cuts)], [*(first for first, _ in cuts), end]
    cells = [Span(*cell) for cell in zip(begins, ends, strict=True)]
    return cells if cells[-1].start < cells[-1].end else cells[:-1]


def head_of(line: str, lexicon: Lexicon, is_heading: bool = False) -> str | None:
    """Return what a line says of the items of the list below it; None where it heads none.

    It is "no" of "Absent:" with its first item, "heart" of a line with this word alone, a whole
    line of titles of columns, and "" of "Present:".

    Args: is_heading: whether the line is marked as one, and needs no colon.
    """
    if columns_of(line, lexicon):
        return line
    label, colon, rest = line.partition(":")
    if len(label) > 2 * _LONGEST_HEAD or cells_of(line):
        return None
    tokens = [t for t in lexicon.tokenize(label) if t.form[0].isalnum()]
    if rest.lstrip(" \t").startswith("\n") or (is_heading and not rest.strip()):
        if len(tokens) == 1 and tokens[0].form in lexicon.lists["sides"]:
            return label
        if (verdict := verdict_of(tokens, lexicon)) is not None or colon:
            return verdict or ""
    named = lexicon.trie.find(tokens).get("subject", ())
    is_part = any(m.last - m.first == len(tokens) for m in named)
    return label if is_part and not rest.strip() else None


def verdict_of(label: Sequence[Token], lexicon: Lexicon) -> str | None:
    """Return what a label says of the findings behind it: that they are absent, in doubt, or there.

    >>> from vlscore.findings import load_lexicon, tokenize
    >>> labels = map(tokenize, ("absent findings", "what is not seen", "present", "heart"))
    >>> [verdict_of(label, load_lexicon()) for label in labels]
    ['no', 'no', '', None]
    """
    said = {"absence": "absent", "doubt": "doubt", "presence": ""}
    lists = {name: lexicon.lists[f"labels_of_{name}"] for name in said}
    forms = [t.form for t in label if t.form[0].isalnum()]
    found = lexicon.trie.find(label)
    plain = [form for form in forms if form not in lexicon.coverage.nouns]
    possible = [forms, plain]
    if NAMING.isdisjoint(found):
        possible += [forms[-count:] for count in (3, 2, 1)]
    for words in possible:
        for name, verdict in said.items():
            if " ".join(words) in lists[name]:
                return lexicon.stands_for.get(verdict, "")
    return None


def columns_of(line: str, lexicon: Lexicon) -> tuple[str, ...]:
    """Return the sides and answers that the columns of a table are for; () for another line.

    >>> from vlscore.findings import load_lexicon
    >>> columns_of("Finding | Right | Left | Size", load_lexicon())
    ('right', 'left', '')
    """
    cells = cells_of(line)
    if not cells or not lexicon.trie.find(lexicon.tokenize(line)).keys().isdisjoint(NAMING):
        return ()
    known = frozenset[str]().union(*(lexicon.lists[name] for name in _COLUMNS))
    forms = [[t.form for t in lexicon.tokenize(cell.of(line))] for cell in cells]
    titles = tuple(next((form for form in each if form in known), "") for each in forms)
    return titles[not titles[0] :] if any(titles) else ()


def headed(head: str, tokens: list[Token], lexicon: Lexicon) -> list[Token]:
    """Return an item of a list behind what its head says, unless it names a part itself."""
    names = NAMING & lexicon.trie.find(tokens).keys()
    said = {lexicon.stands_for["absent"], lexicon.stands_for["doubt"], *lexicon.lists["sides"]}
    if names and head.strip().lower() not in said:
        return tokens
    at = tokens[0]
    return [*(at._replace(form=token.form) for token in lexicon.tokenize(head)), *tokens]


# What an answer to the name of a finding may begin with, besides "no" and "yes".
_ANSWERING = ("severity", "place", "change")
_ANSWERING_EFFECTS = ("negated", "uncertain", "probable")


def answers_line(line: str, below: str, lexicon: Lexicon) -> bool:
    """Return whether a line names a finding alone, and the sentence below says what of it.

    >>> from vlscore.findings import load_lexicon
    >>> [answers_line("Edema", each, load_lexicon()) for each in ("Not seen.", "Mass.", "Heart ok")]
    [True, False, False]
    """
    if len(line) > 2 * _LONGEST_HEAD:
        return False
    label, answer = lexicon.tokenize(line), lexicon.tokenize(below[: 2 * _LONGEST_HEAD])
    is_question = line.endswith("?")
    named = [
        m
        for m in lexicon.trie.find(label).get("mention", ())
        if is_question or m.last - m.first == len(label)
    ]
    if not named or not answer:
        return False
    found = lexicon.trie.find(answer)
    if "mention" in found:
        return not is_question and any(m.entry == named[0].entry for m in found["mention"])
    if is_question and any(m.entry.effect in _ANSWERING_EFFECTS for m in found.get("trigger", ())):
        return NAMING.isdisjoint(found)
    forms, lists = {t.form for t in answer}, lexicon.lists
    is_of_more = (
        not found.keys().isdisjoint(("subject", "statement")) or len(forms) > _LONGEST_ANSWER
    )
    if is_of_more or not forms.isdisjoint(lexicon.coverage.nouns | lists["contrasts"]):
        return False
    return (
        answer[0].form in lists["answers_no"] | lists["answers_yes"] | lists["answers_doubt"]
        or any(m.first == 0 or is_question for layer in _ANSWERING for m in found.get(layer, ()))
        or any(
            m.first == 0 and m.entry.effect in _ANSWERING_EFFECTS for m in found.get("trigger", ())
        )
    )


def is_next_item(between: str, is_heading: bool = False) -> bool:
    """Return whether the text between two sentences leads to the next item of a list.

    Args: is_heading: whether a heading is above, below which a line may be empty.
    """
    is_near = is_heading or BLANK_LINE.search(between) is None
    return is_near and _NEXT_ITEM.fullmatch(between) is not None


# A word of a line in front of a sentence; a number or letter of a list is none.
_FILLED = re.compile(r"[^\W\d_]{2}")
# So many characters before a heading show whether it is marked as one: "## ", "**", "<h3>".
_MARK = 3


def with_answers(
    report: str, statements: Sequence[tuple[int, int]], read: str, lexicon: Lexicon
) -> Iterator[tuple[int, int, int]]:
    """Yield where each statement begins and ends, and where in it a name with its answer ends.

    The name of a finding that stands alone on its line, and the statement below that says what of
    it, are one. In others the third number is 0. Below a heading, a line may be empty.

    Args: read: the report as it is read.
    """
    is_answer = False
    for (start, end), below in zip_longest(statements, statements[1:]):
        if is_answer:
            is_answer = False
            continue
        if below is None:
            yield start, end, 0
            continue
        between = read[end : below[0]]
        if is_question := read[end - 1] == "?":
            may_be = BLANK_LINE.search(between) is None
        elif may_be := read[end - 1].isalnum() and "\n" in between:
            before = slice(max(0, start - _MARK), start)
            may_be = (
                (report[before] != read[before] or is_next_item(between))
                and not _FILLED.search(read[read.rfind("\n", 0, start) + 1 : start])
                and not _FILLED.search(between)
                and read[below[1] - 1] != ":"
            )
        is_answer = may_be and answers_line(read[start:end], read[slice(*below)], lexicon)
        yield (start, below[1], 0 if is_question else end) if is_answer else (start, end, 0)
