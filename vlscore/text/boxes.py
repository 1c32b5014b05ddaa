"""Boxes to tick, as templates have them: "[x]", "( )", "☑"; signs of yes and no: "(+)", "❌"."""

import re

from vlscore.text.tables import WORDS, any_of

_GAP = r"[^\S\n]{0,3}"
_YES, _NO, _EMPTY = "✓✔✅☑☒■◼👍", "✗✘✖❌🚫👎", "☐□▢◻"
#: Signs that are boxes wherever they stand.
SIGNS = _YES + _NO + _EMPTY
_GROUPS = {
    "ticked": rf"[xX✓✔✅+]|(?<=\[)\*|(?i:{any_of(WORDS.lines.affirming)})",
    "no": rf"[-–—✗✘✖❌]|(?i:{any_of(WORDS.lines.refuting)})",
    "doubt": rf"\?|(?i:{any_of(WORDS.lines.doubting)})",
}
_INSIDE = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _GROUPS.items())
#: A box or sign; a named group holds what ticks it, says no, or doubts. An empty box has none.
BOX = re.compile(
    rf"[\[(]{_GAP}(?:{_INSIDE})?{_GAP}[\])]|(?P<yes>[{_YES}])|(?P<cross>[{_NO}])|[{_EMPTY}]"
    r"|(?<=[^\W_] )(?:(?P<plus>\+{1,3})|(?P<dash>-{1,2}))(?=[^\S\n]*(?:[,;.]|/(?!-)|$))"
)
#: Pattern of a box, without groups.
BOX_SIGN = re.sub(r"\?P<\w+>", "?:", BOX.pattern).join(("(?:", ")"))
_SAYING = {"yes": "ticked", "plus": "ticked", "cross": "no", "dash": "no"}


def box_of(match: re.Match[str]) -> str | None:
    """Return what a box says: "ticked", "no" or "doubt"; None where it is empty.

    >>> [box_of(box) for box in BOX.finditer("Edema [x], mass (-), nodule (?), hernia [ ]")]
    ['ticked', 'no', 'doubt', None]
    """
    said = match.lastgroup
    return _SAYING.get(said, said) if said else None
