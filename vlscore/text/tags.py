"""Tags of HTML and XML, and marks of language models."""

import re
from collections import Counter
from functools import lru_cache

from vlscore.text.stand_ins import BLANK, LINE, hidden, line_end, titled
from vlscore.text.tables import WORDS, any_of
from vlscore.text.title_names import section_of_title

_TAG = re.compile(
    r"(?:<|&(?:amp;)*lt;)\s?(?P<close>/?)\s?(?P<name>[A-Za-z][\w:.-]{0,30}|0x0[AaDd]|\|[^|<>\n]{1,40}\|)"
    r"(?P<rest>(?:\s[^<>\n]{0,200}?)?)\s?/?\s?(?:>|&(?:amp;)*gt;)",
)
_TAGS, _KEYS = WORDS.tags, WORDS.keys
_NAMES = any_of(_TAGS["thought"])
_THOUGHT = re.compile(
    rf"<({_NAMES})\b[^<>]*>.*?</\1>|<!--.*?-->|\A(?:(?!<(?:{_NAMES})\b).)*?</(?:{_NAMES})>",
    re.DOTALL | re.IGNORECASE,
)
_BRACKET = re.compile(r"\[\s?(?P<close>/?)(?P<name>[A-Za-z][A-Za-z &/]{1,30})\s?\](?!\()")
_LABELLED = re.compile(r"\[([^\W\d_][^\[\]\n:=]{1,40}[:=][^\[\]\n]{1,40})\]")

_ALL_KEYS = frozenset((*_KEYS.naming, *_KEYS.stating, *_KEYS.describing))
_NAME = re.compile(r"(?:<|lt;)/?([\w:.-]{1,40})/?(?:>|&(?:amp;)*gt;)")
# A tag that begins and one that ends.
_PAIR = 2
# The text of an element without others in it is the answer to its name, where it is short.
_LEAF = re.compile(r"[^<>\n&]{1,60}(?:<|&(?:amp;)*lt;)/")
_ATTRIBUTE = re.compile(
    rf"\b(?:(?P<naming>{any_of(_KEYS.naming)})|(?P<stating>{any_of(_KEYS.stating)})"
    rf"|(?:{any_of(_KEYS.describing)}))"
    r"\s*=\s*(?P<quote>[\"'])(?P<words>[^<>\"']*)(?P=quote)",
    re.IGNORECASE,
)


def without_thoughts(text: str) -> str:
    """Return the text without what a model thought before it answered, and without comments.

    The first mark may be missing, where a prompt ended with it.
    """
    return _THOUGHT.sub(line_end, text)


def without_tags(text: str) -> str:
    """Return the text with line ends and blanks for tags, and titles for tags of sections."""
    return _TAG.sub(_untagged, text)


def without_brackets(text: str) -> str:
    """Return the text with line ends for marks like [SEP], and titles for "[FINDINGS]"."""
    text = _LABELLED.sub(lambda match: f"{LINE}{match[1]}{LINE}", text)
    return _BRACKET.sub(_unbracketed, text)


def _untagged(match: re.Match[str]) -> str:
    name, width = match["name"].lower(), match.end() - match.start()
    if name.startswith("|"):
        title = match["name"].strip("|")
        return titled(title, match) if section_of_title(title) else line_end(match)
    if name in _TAGS["cell"]:
        return BLANK * width if match["close"] else BLANK * (width - 1) + "|"
    if name in _TAGS["inline"]:
        return hidden(match)
    if (attributes := _of_attributes(match)) is not None:
        return attributes
    if name in _TAGS["block"]:
        return line_end(match)
    title = re.sub(r"[_.-]", " ", match["name"])
    if section_of_title(title) is not None and not match["rest"].strip():
        return line_end(match) if match["close"] else titled(title, match)
    if name in _TAGS["models"] or match["close"]:
        return line_end(match)
    tags = _tags(match.string)
    if tags[name] < _PAIR:
        return match.group()
    # What several elements are called is the name of none.
    is_key = name in _ALL_KEYS and not tags.keys().isdisjoint(_KEYS.stating)
    is_named = not match["rest"] and (is_key or (name not in _ALL_KEYS and tags[name] == _PAIR))
    is_label = is_named and _LEAF.match(match.string, match.end()) is not None
    return titled(title, match) if is_label else line_end(match)


def _of_attributes(match: re.Match[str]) -> str | None:
    """Return "name: value, side" for a tag that has them as attributes; None for another tag."""
    found = list(_ATTRIBUTE.finditer(match.string, *match.span("rest")))
    names = [each.span("words") for each in found if each["naming"]]
    values = [each.span("words") for each in found if not each["naming"]]
    if not names and not any(each["stating"] for each in found):
        return None
    shown = [LINE, *BLANK * (match.end() - match.start() - 1)]
    for signs, (start, end) in (
        (":", names[-1] if names else match.span("name")),
        *((",", value) for value in values),
    ):
        at = end - match.start()
        shown[start - match.start() : at + 1] = match.string[start:end] + signs
    if values:
        shown[-1] = LINE
    return "".join(shown)


@lru_cache(4)
def _tags(text: str) -> Counter[str]:
    """Return how often the name of each tag stands in a text, where it begins or ends."""
    return Counter(name.lower() for name in _NAME.findall(text))


def _unbracketed(match: re.Match[str]) -> str:
    name, width = match["name"], match.end() - match.start()
    if name.strip().lower() in _TAGS["masks"]:
        return "_" * width
    if name.strip().lower() in _TAGS["models"]:
        return line_end(match)
    if section_of_title(name) is None or name.lower() != name.lower().strip():
        return match.group()
    if match["close"]:
        return line_end(match)
    colon = BLANK if match.string[match.end() : match.end() + 3].lstrip().startswith(":") else ":"
    return titled(name, match, colon)
