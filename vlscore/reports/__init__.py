"""Free-text reports: sections, sentences, cleaning."""

from vlscore.reports.policy import SECTIONS, TextPolicy, select, select_from_parts
from vlscore.reports.sections import ReportSections, Section, split_sections
from vlscore.reports.sentences import SentenceSpan, split_sentences

__all__ = [
    "SECTIONS",
    "ReportSections",
    "Section",
    "SentenceSpan",
    "TextPolicy",
    "select",
    "select_from_parts",
    "split_sections",
    "split_sentences",
]
