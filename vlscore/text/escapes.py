"""Characters that programs write out: escapes, entities, quoted strings, pieces of words."""

import html
import re
import sys
from collections.abc import Callable
from functools import partial

from vlscore.text.encodings import without_byte_numbers, without_rich_text
from vlscore.text.records import (
    with_bare_names,
    with_bars,
    without_keys,
    without_quotes,
    without_segments,
    without_turns,
)
from vlscore.text.stand_ins import BLANK, JOINER, hidden, line_end, shown_as, titled
from vlscore.text.tables import WORDS, any_of
from vlscore.text.tags import without_brackets, without_tags, without_thoughts

# Each takes the line end behind it with it.
_RETURN = re.compile(r"\r+\n?")
_ESCAPE = re.compile(
    r"\\{1,4}(?:(?P<line>r\\{1,4}n|n|(?:r|f|v|par|line|newline|item)(?![a-z])|\.(?:br|sp|ce)\\|"
    r"X0[DAda](?:0[DAda])?\\|x0[adAD]|012|015|u000[aAdD]|u202[89])"
    r"|(?P<tab>t(?![a-z]))|u(?P<unicode>[0-9a-fA-F]{4}|\{[0-9a-fA-F]{2,6}\})"
    r"|x(?P<byte>[0-9a-fA-F]{2})|(?P<hl7>[TFSREHN])\\|(?P<sign>[\"'/*#\-+.()\[\]!`>~|{}_&%$;:,?=]))"
    r"|<?U\+(?P<point>[0-9a-fA-F]{4,5})>?"
)
_LATEX_LINE = re.compile(r"\\\\(?=\s|$|[A-Z][a-z])")
_HL7 = {"T": "&", "F": "|", "S": "^", "R": "~", "E": "\\", "H": " ", "N": " "}
# Line ends as spreadsheets, editors, addresses and mails write them, and signs that stand for one.
_SIGN_OF_LINE = re.compile(
    r"(?:_x000[DdAa]_|\^M)\n?|(?:[%=]0[DdAa])+|(?<=[.!?;:\s])/n(?=[A-Z\d\s]|$)"
    r"|(?<=[^|\n])\|\|(?=[^|\n])|‖|(?<=\s)//(?=\s)"
)
# Signs between statements where they part no cells: "edema~mass", "edema=0&mass=1".
_BETWEEN = re.compile(
    r"(?<=[^\W\d_])[ \t]*~[ \t]*(?=[^\W\d_])|(?<=[.!?;:)])[ \t]*~(?!\d)|&(?=[\w.%+-]{1,40}=)"
)
_ENTITY = re.compile(
    r"&\s?(?:amp\s?;\s?)*(#\s?(?:[xX]\s?[\da-fA-F]{1,6}|\d{1,7})|[A-Za-z]\w{1,30})\s?;"
    r"|&(?:amp;)*(#\d{2,5})(?!\d)"
    r"|&(?:amp;)*(nbsp|lt|gt|amp|quot|apos)\b"
)
_LATEX_TITLE = re.compile(
    r"\\(?:(?:sub)*section|(?:sub)?paragraph|chapter)\*?\{([^{}\n]{1,60})\}:?"
)
_LATEX_WORDS = re.compile(r"\\(?:text|emph|under|over|math)[a-z]*\{([^{}\n]*)\}")
_PIECE = re.compile(r"(?<=[^\W_]) +##(?=[^\W_])|(?<=[^\W_])@@ (?=[^\W_])")
_SEVERAL = 2
# Signs of yes and no that stick to names: "-ptx, +effusion".
_STUCK = re.compile(r"(?:^|(?<=[\s(]))(?:(?P<plus>\+)|-)(?=[A-Za-z]{3})")
_STUCK_IN_LIST = re.compile(r"[,;:][ \t]*[-+](?=[A-Za-z]{3})")
_MOSES = re.compile(r" @([-,./])@ ")
_TREEBANK = re.compile(r"-([LR])[RSC]B-", re.IGNORECASE)


def _without_commands(text: str) -> str:
    """Return the text without commands of LaTeX, with a colon behind the titles of sections."""
    if "{tabular" in text:
        text = text.replace("&", "|")
    text = _LATEX_TITLE.sub(lambda match: titled(match[1], match), text)
    text = _LATEX_WORDS.sub(lambda match: f"{match[1]} ".rjust(len(match[0])), text)
    return _LATEX_LINE.sub(line_end, text)


#: What people dictate for the end of a sentence or line.
DICTATED = tuple(f" {words}" for words in WORDS.dictated.stops)
_DICTATED = re.compile(
    rf"[ \t]*,?[ \t](?:(?P<stop>{any_of(WORDS.dictated.stops)})"
    rf"|(?:{any_of(WORDS.dictated.pauses)}))(?![\w-])",
    re.IGNORECASE,
)


def _without_dictated(text: str) -> str:
    """Return the text with line ends and commas for the words that stand for them.

    They do where they stand several times, or where no sentence has a full stop.
    """
    found = sum(bool(match["stop"]) for match in _DICTATED.finditer(text))
    if found < _SEVERAL and "." in text:
        return text
    return _DICTATED.sub(lambda m: line_end(m) if m["stop"] else ",".ljust(len(m[0])), text)


def _with_signs(text: str) -> str:
    """Return the text with signs of yes and no for "+" and "-" before names, which are no bullets.

    >>> _with_signs("+edema -effusion"), _with_signs("-edema\\n-effusion").split()
    ('✓edema ✗effusion', ['-edema', '-effusion'])
    """
    plus = [bool(match["plus"]) for match in _STUCK.finditer(text)]
    if (all(plus) or not any(plus)) and _STUCK_IN_LIST.search(text) is None:
        return text
    return _STUCK.sub(lambda match: "✓" if match["plus"] else "✗", text)


def _without_pieces(text: str) -> str:
    """Return the text with whole words for pieces, and brackets for those of treebanks."""
    text = _PIECE.sub(hidden, text)
    text = _MOSES.sub(lambda match: f"{JOINER * 2}{match[1]}{JOINER * 2}", text)
    return _TREEBANK.sub(lambda m: ("(" if m.group(1) in "Ll" else ")") + BLANK * 4, text)


def _unescaped(match: re.Match[str]) -> str:
    if match["line"]:
        return line_end(match)
    if match["tab"]:
        return BLANK * (match.end() - match.start() - 1) + "\t"
    if match["hl7"]:
        return shown_as(_HL7[match["hl7"]], match)
    if match["sign"]:
        sign, width = match["sign"], match.end() - match.start()
        return sign + (JOINER if sign in "'_" else BLANK) * (width - 1)
    point = int((match["unicode"] or match["byte"] or match["point"]).strip("{}"), 16)
    if chr(point) == "<":
        return shown_as("<", match)[1:].replace(JOINER, BLANK) + "<"
    return shown_as(chr(point), match) if point <= sys.maxunicode else match.group()


def _entity(match: re.Match[str]) -> str:
    name: str = next(filter(None, match.groups())).replace(" ", "")
    characters = html.unescape(f"&{name};")
    return match.group() if characters == f"&{name};" else shown_as(characters, match)


#: Each step and the signs without which it finds nothing, in the order in which programs nest them.
STEPS: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
    (("\r",), partial(_RETURN.sub, line_end)),
    (("OBX|", "NTE|", "MSH|"), without_segments),
    (("</", "<!--"), without_thoughts),
    (('"', "'", "}"), without_quotes),
    (("\\",), without_rich_text),
    (("%", "=", "\\", ".+"), without_byte_numbers),
    (("\\",), _without_commands),
    (("\\", "U+"), partial(_ESCAPE.sub, _unescaped)),
    (("_x000", "^M", "%0", "=0", "/n", "||", "‖", "//"), partial(_SIGN_OF_LINE.sub, line_end)),
    ((";", ",", "~", "&", "   "), with_bars),
    (("~", "&"), partial(_BETWEEN.sub, line_end)),
    (("<", "lt;"), without_tags),
    (("]",), without_brackets),
    (("&",), partial(_ENTITY.sub, _entity)),
    (("##", "@", "B-", "b-"), _without_pieces),
    (DICTATED, _without_dictated),
    (("+", ", -", "; -", ": -"), _with_signs),
    (("_", "!!", "has", "is", "'", '"'), with_bare_names),
    ((":", "="), without_keys),
    (("?",), without_turns),
)
