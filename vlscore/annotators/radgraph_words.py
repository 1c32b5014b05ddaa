"""Words of a report as RadGraph's models were trained on them.

Equal to preprocess_reports of the package radgraph 0.1.18.
"""

import re
from typing import Literal

Splitting = Literal["radgraph", "radgraph-xl"]

# In the authors' class of characters ",-," is a range of one comma, so a hyphen is no mark.
_MARKS = r"[/,-,:,.,!?()]"
_BESIDE_MARKS = re.compile(f"(?<! )(?={_MARKS})|(?<={_MARKS})(?! )")
_WORD_OR_MARKS = re.compile(r"\w+|[^\w\s]+")
# Escapes that stand as two or more characters in reports read from raw json.
_ESCAPES = (("\\n", "  "), ("\\f", "  "), ("\\u2122", "      "), ("\n", " "), ('\\"', "``"))
_CLUSTERS = ((").", ") ."), ("%.", "% ."), (".'", ". '"), ("%,", "% ,"), ("%)", "% )"))


def words_of(report: str, splitting: Splitting) -> list[str]:
    """The words and marks of a report.

    >>> words_of("No effusion. (2.5cm)", "radgraph")
    ['No', 'effusion', '.', '(', '2', '.', '5cm', ')']
    >>> words_of("5%). It's", "radgraph-xl")
    ['5', '%', ')', '.', 'It', "'", 's']
    """
    if splitting == "radgraph":
        return _BESIDE_MARKS.sub(" ", report).split()
    text = report
    for escape, replacement in _ESCAPES:
        text = text.replace(escape, replacement)
    text = " ".join(_WORD_OR_MARKS.findall(re.sub(r"\s+", " ", text)))
    for cluster, replacement in _CLUSTERS:
        text = text.replace(cluster, replacement)
    return text.split()
