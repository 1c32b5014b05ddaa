"""Boxes to tick, as templates have them: "[x]", "( )", "☑"."""

import re

_TICK = "xX*✓✔"
_GAP = r"[^\S\n]{0,3}"
#: Pattern of a box, without groups.
BOX_SIGN = rf"(?:\[{_GAP}[{_TICK}-]?{_GAP}\]|\({_GAP}[xX✓✔]?{_GAP}\)|[☑☒■◼✓✔]|[☐□▢◻✗✘])"
#: A box; one of its groups holds what ticks it.
BOX = re.compile(
    rf"\[{_GAP}(?:([{_TICK}])|-)?{_GAP}\]|\({_GAP}([xX✓✔]?){_GAP}\)|([☑☒■◼✓✔])|[☐□▢◻✗✘]"
)
