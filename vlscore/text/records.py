"""Fields of records, and questions with their answers, as the lines "name: answer".

Objects of JSON and YAML say of what they speak and what they say of it under keys ("name",
"present"), messages of HL7 in fields, and models in turns ("Q: Pneumothorax? A: No.").
"""

import re
from functools import partial

from vlscore.text.stand_ins import BLANK, LINE
from vlscore.text.tables import ANSWERS, WORDS, any_of

_KEYS, _TURNS = WORDS.keys, WORDS.turns
_REFUTED = re.compile(rf"(?:{any_of(WORDS.lines.refuting)})\b|-|0(?:\.[0-4]|\b)", re.IGNORECASE)
_DENYING = rf"(?:{any_of(WORDS.lines.denying)})(?![\w-]| \w)"
_SHORT = rf"{_DENYING}|(?!(?:{any_of(WORDS.lines.denying)})\b)(?:{any_of(ANSWERS)})\b"

# An object, or several strings, with signs between that part them.
_OBJECT = re.compile(
    r"""[\[{(]\s*["'\[{(].*["'\]}\w]\s*[\]})]|\{\s*\w[^{}\n:]{0,40}:.*\}""", re.DOTALL
)
_QUOTED = re.compile(r"""\s*(?:"[^"]*"(?:\s*,\s*"[^"]*")+|'[^']*'(?:\s*,\s*'[^']*')+)\s*""")
_STRING = re.compile(
    r"""(?<![\w.])"((?:[^"\\]|\\.)*)"|(?<![\w.])'((?:[^'\\]|\\.|(?<=\w)'(?=\w))*)'"""
    r"""|[{}\[\]()]|,(?=\s*(?:["'\[{(]|\w[\w ]{0,40}:))|(?<=["'\]})]),"""
)
# A pair in a list: ["edema", "absent"].
_PAIR = re.compile(
    rf"""(?<=[\[(])(\s*["'][^"'\n]{{1,60}}["']\s*),(?=\s*["']?(?i:{_SHORT})["']?\s*[\])])"""
)
_TOKEN = re.compile(r"""["'](?:##\w+|[.,])["']""")


def without_quotes(text: str) -> str:
    """Return lines "key: value" for an object of JSON or YAML, and lines for a list of strings."""
    found = _QUOTED.fullmatch(text) or _OBJECT.search(text)
    if found is None:
        return text
    start, end = found.span()
    text = _PAIR.sub(r"\1:", text)
    # A list of tokens is one text.
    joint = BLANK if _TOKEN.search(found.group()) else LINE
    return text[:start] + _STRING.sub(partial(_unquoted, joint), text[start:end]) + text[end:]


def _unquoted(joint: str, match: re.Match[str]) -> str:
    if len(match.group()) == 1:
        return joint
    return f" {match.group(1) or match.group(2) or ''} "


_YAML_TYPE = r"!!(?:bool|str|int|float|null|seq|map)\b(?=\s)"
# What programs put before a name ("has_edema", "isPresent"), and YAML around a value.
_AROUND = re.compile(
    rf"(?<![^\W_])(?:{any_of(_KEYS.prefixes)})(?:_(?=[A-Za-z])|(?=[A-Z][a-z]))"
    rf"|(?<=[:=])[ \t]*(?:{_YAML_TYPE}[ \t]+)?(?P<quote>[\"'])(?P<value>[^\"'\n]{{1,80}})(?P=quote)"
    rf"|{_YAML_TYPE}"
)


def with_bare_names(text: str) -> str:
    """Return the text without "has_" before names, and without types and quotes of values."""
    return _AROUND.sub(
        lambda match: f"{match['value'] or ''} ".rjust(match.end() - match.start()), text
    )


_HEADER = re.compile(rf"^[\"']?(?:{any_of(_KEYS.naming)})[\"']?[ \t]*[;,~&]", re.M | re.I)
_FIXED = re.compile(r"\S+(?: \S+)*")
_CELL = re.compile(rf"[\"' ]*(?:{_SHORT}|-?[01](?:\.\d+)?)[\"' ]*", re.IGNORECASE)
# A line of answers alone, below the names of findings.
_VALUES = re.compile(rf"^{_CELL.pattern}[;,~&]{_CELL.pattern}(?:[;,~&]|$)", re.M | re.I)
_TICK = {True: "✓", False: "✗"}


def with_bars(text: str) -> str:
    """Return a table whose cells other signs part, or blanks, with bars between them.

    >>> with_bars("Finding;Present\\nEdema;0").split()
    ['Finding|Present', 'Edema|0']
    """
    lines = text.split("\n")
    for sign in ";,~&":
        if sign in text:
            _put_bars(lines, sign)
    if "   " in text:
        _put_bars_at_columns(lines)
    return "\n".join(lines)


def _put_bars(lines: list[str], sign: str) -> None:
    """Write bars between the cells of tables, and answers behind names that stand above them."""
    columns = 0
    for at, line in enumerate(lines):
        cells = [cell.strip(" \"'").lower() for cell in line.split(sign)]
        below = lines[at + 1].split(sign) if at + 1 < len(lines) else []
        if len(cells) > 1 and len(below) == len(cells) != columns:
            if cells[0] in _KEYS.naming:
                columns = len(cells)
            elif all(map(_CELL.fullmatch, below)) and not any(map(_CELL.fullmatch, cells)):
                ticks = [_TICK[not _REFUTED.match(cell.strip(" \"'"))] for cell in below]
                signed = "".join(map("".join, zip(line.split(sign), ticks, strict=True)))
                lines[at : at + 2] = [signed + BLANK * len(lines[at + 1])]
                continue
        columns = columns if len(cells) == columns else 0
        if columns:
            lines[at] = line.replace(sign, "|")


def _put_bars_at_columns(lines: list[str]) -> None:
    """Write bars before the columns of tables that have them at the same places."""
    starts: list[int] = []
    for at, line in enumerate(lines):
        cells = [(match.start(), match.group().lower()) for match in _FIXED.finditer(line)]
        named = [start for start, cell in cells if cell in _KEYS.columns]
        if len(named) > 1 and len(cells) - len(named) <= 1:
            starts = named
        elif not line.strip() or not starts:
            starts = []
            continue
        ends = [place - 1 for place in starts]
        if all(line[end : end + 1] in ("", BLANK) for end in ends):
            row = list(line)
            for end in ends:
                row[end : end + 1] = "|" if end < len(row) else ""
            lines[at] = "".join(row)


_FIELD = re.compile(
    rf"(?P<before>^|(?<=:)|[\n,;{{(\[|]|(?<!\S)[-*•](?=[ \t]))[\s,;{{(\[\"'|*•-]*"
    rf"(?:(?P<naming>{any_of(_KEYS.naming)})|(?P<stating>{any_of(_KEYS.stating)})"
    rf"|(?P<describing>{any_of(_KEYS.describing)})|(?P<other>[A-Za-z]\w{{0,24}}))"
    r"[\"']?[ \t]*[:=]+[ \t]*[\"']?(?=[^\s\"'])(?P<value>[^\n,;\"'{}\[\]()|]*)[\"')]*",
    re.IGNORECASE,
)
# So many names of fields are those of records, also where nothing is said of them.
_SEVERAL = 2
# Characters that hold a key, with signs around it.
_LONGEST_KEY = 24
_MARKING = frozenset((*_KEYS.stating, *_TURNS.answering))
_ANSWER = re.compile(rf"(?:{_SHORT}|[01])(?![\w-]| \w)", re.IGNORECASE)


def without_keys(text: str) -> str:
    """Return lines "name: answer, side" for the fields of records.

    >>> without_keys("- name: edema\\n  status: present\\n  side: left").split()
    ['edema:', 'present,', 'left']
    """
    fields = list(_FIELD.finditer(text))
    is_answered = any(each["stating"] and _ANSWER.match(each["value"]) for each in fields)
    if not is_answered and sum(bool(each["naming"]) for each in fields) < _SEVERAL:
        return text
    parts: list[str] = []
    end, before = 0, None
    for each in fields:
        between, (begin, last) = text[end : each.start()], each.span("value")
        # Behind the name, a field of any other name may hold the answer.
        is_beside = before is not None and not between.strip()
        if each["other"] and not (is_beside and _ANSWER.match(each["value"])):
            before = None
            continue
        joint = LINE
        if not each["naming"]:
            is_named = before is None or before["naming"] or not is_beside
            joint = ":" if is_named else ","
        parts += [between, joint, BLANK * (begin - each.start() - 1), each["value"]]
        parts.append(BLANK * (each.end() - last))
        end, before = each.end(), each
    return "".join(parts) + text[end:]


def may_have_records(text: str) -> bool:
    """Return whether a key of records, or a name of who answers, stands before a sign."""
    if "\n" in text and ("   " in text or _HEADER.search(text) or _VALUES.search(text)):
        return True
    if "?" in text and _TURN.search(text) is not None:
        return True
    if ":" not in text:
        return False
    before = (part[-_LONGEST_KEY:].split() for part in text.split(":")[:-1])
    words = [found[-1].lower().strip("\"'{([,-*•|;") for found in before if found]
    is_marked = any(word in _MARKING for word in words)
    return is_marked or sum(word in _KEYS.naming for word in words) >= _SEVERAL


_TURN = re.compile(
    rf"(?:^|(?<=[\n.!?;|>]))(?P<asker>[\s*]*(?i:{any_of(_TURNS.asking)})[ \t]?\d*[ \t]?[:.)\]-]+"
    rf"[\s*\"]*)?(?P<question>[^?\n]{{1,160}}\?)(?P<answerer>[\s*\"|]*"
    rf"(?i:{any_of(_TURNS.answering)})[ \t]?\d*[ \t]?[:.)\]>-]+[\s*]*)"
)


def without_turns(text: str) -> str:
    """Return questions and answers without the names of those who ask and answer.

    >>> without_turns("Q1. Edema? A1. No. Q2: Is it clear? A2: Yes.").split()
    ['Edema?', 'No.', 'Is', 'it', 'clear?', 'Yes.']
    """
    return _TURN.sub(_without_speakers, text)


def _without_speakers(match: re.Match[str]) -> str:
    asker = match["asker"] or ""
    lines = LINE + BLANK * (len(asker) - 1) if asker else ""
    return lines + match["question"] + BLANK * len(match["answerer"])


# A line end that a program wrote out may stand between segments.
_SEGMENT = re.compile(
    r"(?:^|(?<=\\[rn]))(?P<kind>[A-Z][A-Z\d]{2})\|(?:(?!\\[rn][A-Z][A-Z\d]{2}\|)[^\n])*",
    re.MULTILINE,
)
_MESSAGE = re.compile(r"(?:^|(?<=\\[rn]))(?:MSH|OBX|OBR|NTE|PID)\|", re.MULTILINE)
# The fields in which an observation has its name and its value, and a note its words.
_SHOWN, _NAME = {"OBX": (3, 5), "NTE": (3,)}, 3


def without_segments(text: str) -> str:
    """Return what the observations and notes of a message of HL7 say, and nothing else of it.

    >>> without_segments("OBX|1|CE|1^Edema||0^Absent|").split()
    ['Edema:', 'Absent']
    """
    return _SEGMENT.sub(_fields_shown, text) if _MESSAGE.search(text) else text


def _fields_shown(match: re.Match[str]) -> str:
    kind, *fields = match.group().split("|")
    shown = [BLANK * len(kind)]
    wanted, sign = _SHOWN.get(kind, ()), BLANK
    for at, field in enumerate(fields, start=1):
        # Of a code ("1^Edema^L"), its name.
        code, *names = field.split("^")
        words = next(filter(None, names), code)
        is_name = at == _NAME and len(wanted) > 1
        before = BLANK * field.index(words)
        shown.append(sign + (before + words if at in wanted else "").ljust(len(field)))
        sign = ":" if is_name else BLANK
    return "".join(shown)
