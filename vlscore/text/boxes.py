"""Boxes to tick, as templates have them: "[x]", "( )", "☑"; signs of yes and no: "(+)", "❌"."""

import re

from vlscore.text.tables import WORDS, any_of

_GAP = r"[^\S\n]{0,3}"
_YES, _NO = "✓✔✅☑☒■◼👍", "✗✘✖❌🚫👎"
_AFFIRMING = f"(?i:{any_of(WORDS.lines.affirming)})"
_REFUTING = rf"[-–—✗✘✖❌]|(?i:{any_of(WORDS.lines.refuting)})"
#: A box or sign; a named group holds what ticks it, or what says no. An empty box has none.
BOX = re.compile(
    rf"\[{_GAP}(?:(?P<square>[xX*✓✔✅+]|{_AFFIRMING})|(?P<no>{_REFUTING}))?{_GAP}\]"
    rf"|\({_GAP}(?:(?P<round>[xX✓✔✅+]|{_AFFIRMING})|(?P<minus>{_REFUTING}))?{_GAP}\)"
    rf"|(?P<yes>[{_YES}])|(?P<cross>[{_NO}])|[☐□▢◻]"
    r"|(?<=[^\W_] )(?:(?P<plus>\+{1,3})|(?P<dash>-))(?=[^\S\n]*(?:[,;.]|/(?!-)|$))"
)
#: Pattern of a box, without groups.
BOX_SIGN = re.sub(r"\?P<\w+>", "?:", BOX.pattern).join(("(?:", ")"))
_TICKED, _CROSSED = ("square", "round", "yes", "plus"), ("no", "minus", "cross", "dash")


def box_of(match: re.Match[str]) -> bool | None:
    """Return what a box says: yes, no, or nothing where it is empty."""
    if any(map(match.group, _TICKED)):
        return True
    return False if any(map(match.group, _CROSSED)) else None
