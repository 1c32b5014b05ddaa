"""Text of a methods section: sentences on metrics and intervals, citations, LaTeX and BibTeX."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from vlscore.core import RECORD, Signature, printable
from vlscore.errors import VLScoreError
from vlscore.metrics import metric_from_file
from vlscore.stats import DEMONSTRATION, Result, escaped

REFERENCES = "references.bib"

_ENTRY = re.compile(r"^@\w+\{(?P<key>[^,]+),.*?^\}\n", re.MULTILINE | re.DOTALL)
_KEYWORDS = re.compile(r"^  keywords = \{(?P<names>[^}]*)\},\n", re.MULTILINE)
_CITED = re.compile(r" \[(?P<keys>@[^\]]+)\]")
# A name or value of somebody's stands within the text between two letters that no text has.
_BEGIN, _END = "\ue000", "\ue001"
_DATA = re.compile(f"{_BEGIN}([^{_END}]*){_END}")
_MARKDOWN = re.compile(r"[\\`*\[\]<>@#|~^$]|(?<!\w)_|_(?!\w)")


@dataclass(frozen=True)
class MethodsText:
    """A paragraph to paste.

    Attributes:
        marked: text with citations as in [@papineni2002bleu], and names and values of others as
            `data` marks them.
    """

    marked: str

    @property
    def text(self) -> str:
        """Return the text as it is read, with citations as in [@papineni2002bleu]."""
        return _DATA.sub(r"\1", self.marked)

    @property
    def markdown(self) -> str:
        """Return the text for Markdown, with citations as pandoc reads them."""
        return _DATA.sub(lambda found: _MARKDOWN.sub(r"\\\g<0>", found[1]), self.marked)

    @property
    def latex(self) -> str:
        """Return the text for LaTeX, with \\\\cite."""

        def cite(found: re.Match[str]) -> str:
            keys = found["keys"].replace("@", "").replace("; ", ",")
            return rf"~\cite{{{keys}}}"

        # Every second part is data, in which nothing is a citation.
        parts = _DATA.split(self.marked.rstrip("\n"))
        for k, part in enumerate(parts):
            pieces = [part] if k % 2 else re.split(r"( \[@[^\]]+\])", part)
            parts[k] = "".join(
                _CITED.sub(cite, piece) if not k % 2 and _CITED.fullmatch(piece) else escaped(piece)
                for piece in pieces
            )
        return "".join(parts) + "\n"

    @property
    def bibtex(self) -> str:
        """Return the BibTeX entries of what is cited, in the order of their keys."""
        text = _DATA.sub("", self.marked)
        cited = set(re.findall(r"@([\w-]+)", " ".join(_CITED.findall(text))))
        return "\n".join(entry for key, (entry, _) in _entries().items() if key in cited)


def data(value: object) -> str:
    """Return a name or value of somebody's, marked so that it is printed as it is."""
    text = printable(str(value), one_line=True)
    return _BEGIN + text.replace(_BEGIN, "").replace(_END, "") + _END


def on_metrics(
    result: Result, titles: Mapping[str, str] = MappingProxyType({}), corpus: Collection[str] = ()
) -> list[str]:
    """Return sentences on the metrics of a result, and on the encoder where there is one.

    Args:
        titles: metric -> its printed name; others are not named. Empty: all are, as papers do.
        corpus: metrics of which the value of the whole corpus is shown.
    """
    shown: list[str] = []
    sections: list[str] = []
    encoders: dict[str, dict[str, str | None]] = {}
    is_demonstration = False
    for name, text in result.signatures.items():
        if titles and name not in titles:
            continue
        try:
            signature = Signature.parse(text)
        except VLScoreError:
            continue
        facts = dict(signature.facts)
        shown.append(_metric(result.folder, name, facts, titles.get(name), name in corpus))
        if facts.get("enc"):
            encoders[str(facts["enc"])] = facts
        if section := facts.get("txt"):
            sections.append(section)
        is_demonstration |= "DEMONSTRATION" in text
    sentences = [f"Metrics were {'; '.join(shown)}."]
    for encoder, facts in encoders.items():
        weights, _, digest = encoder.partition("@")
        how = [f"weights {data(digest)}"] if digest else []
        how += [f"C = {data(facts['C'])}"] if facts.get("C") else []
        how += [f"views: {data(facts['views'])}"] if facts.get("views") else []
        cited = cite(weights)
        sentences.append(f"The encoder was {data(weights)} {cited} ({', '.join(how)}).")
    for section in dict.fromkeys(sections):
        what = "whole reports" if section == "all" else f"the part {data(section)} of the reports"
        sentences.append(f"Metrics read {what}.")
    if is_demonstration:
        sentences.append(DEMONSTRATION)
    return sentences


def _metric(
    folder: Path, name: str, facts: Mapping[str, str | None], title: str | None, of_corpus: bool
) -> str:
    """Return a metric with its citation, library and version, or that it uses our rules."""
    try:
        metric = metric_from_file(name, folder / RECORD)
        library = metric.library
        title = title or metric.printed()
        cited = cite(metric.name)
    except VLScoreError:
        # A user's own that is not registered here, or values that were computed elsewhere.
        by = (
            f"own metric, version {data(facts['own'])}"
            if facts.get("own")
            else "computed elsewhere"
        )
        return f"{data(title or name)} ({by})"
    version = facts.get(library)
    by = f"by {library} {data(version)}" if version else f"by {library}"
    if facts.get("model"):
        by = f"by the language model {data(facts['model'])}"
    elif library == "own":
        by = f"own metric, version {data(version)}"
    elif metric.uses_findings:
        by = "by rules of vlscore"
    # Only the idea is the publication's: a reader must not take our number for the authors'.
    if cited and (metric.uses_findings or metric.name == "composite"):
        by, cited = f"{by}, after {cited}", ""
    parts = [by, *(["of the whole corpus"] if of_corpus else [])]
    return f"{data(title)} {cited} ({', '.join(parts)})"


def on_intervals(resamples: int, patients: str | None) -> str:
    """Return a sentence on the intervals; `patients` is the column of patients, or None."""
    whom = "studies" if patients is None else "patients"
    return (
        f"Intervals are 95 % percentile bootstrap intervals over {whom} {cite('bootstrap')} "
        f"({resamples:,} resamples)."
    )


def on_missing(counts: Sequence[int], studies: int, who: str) -> list[str]:
    """Return a sentence on the studies that numbers are over, where these are not all.

    Args:
        counts: n of each number.
        who: as in "every system has", which is followed by "a value".
    """
    few, most = int(min(counts, default=studies)), int(max(counts, default=studies))
    if few == studies:
        return []
    n = str(few) if few == most else f"{few} to {most}"
    return [f"Numbers are over the studies for which {who} a value (n = {n})."]


def joined(parts: Iterable[str]) -> str:
    """Return the sentences as one paragraph."""
    # What has no citation leaves two blanks.
    return re.sub(r" +", " ", " ".join(parts)) + "\n"


def cite(name: str) -> str:
    """Return the citation of a metric, encoder or method; empty where it has none."""
    keys = [key for key, (_, names) in _entries().items() if name in names]
    return f"[{'; '.join(f'@{key}' for key in keys)}]" if keys else ""


@cache
def _entries() -> dict[str, tuple[str, frozenset[str]]]:
    """Return key -> (entry without keywords, names in its keywords) of references.bib."""
    text = files("vlscore.evaluation").joinpath(REFERENCES).read_text(encoding="utf-8")
    found = {}
    for match in _ENTRY.finditer(text):
        keywords = _KEYWORDS.search(match[0])
        names = keywords["names"].split(", ") if keywords else []
        found[match["key"]] = (_KEYWORDS.sub("", match[0]), frozenset(names))
    return dict(sorted(found.items()))
