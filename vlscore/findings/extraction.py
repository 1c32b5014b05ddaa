"""From a report to its findings: split it, read each sentence, follow "this" back."""

from dataclasses import replace
from functools import lru_cache

from vlscore.errors import InvalidReport
from vlscore.findings.attributes import places_of
from vlscore.findings.classify import Sections
from vlscore.findings.lexicon import Lexicon, load_lexicon
from vlscore.findings.reading import read_sentence
from vlscore.findings.setting import PLAIN, ends_block, is_detail, with_details
from vlscore.findings.tokens import tokenize
from vlscore.findings.types import Layout, ReportFindings, Sentence, Span
from vlscore.reports.sentences import split_sentences

# Characters that hold the first two words of a sentence which speaks of the one before.
_OPENING = 40
_REMEMBERED = 16_384


def extract(report: str, lexicon: Lexicon | None = None) -> ReportFindings:
    """Sentences and findings of a report. Never fails on text, of any language or length.

    Time is linear in the length of the report. Raises InvalidReport if `report` is not a str.

    >>> found = extract("Small left pleural effusion. No pneumothorax.")
    >>> [(f.observation, f.polarity.value, f.severity) for f in found]
    [('pleural_effusion', 'positive', 'small'), ('pneumothorax', 'negative', None)]
    >>> found.findings[0].side.value
    'left'
    """
    if not isinstance(report, str):
        raise InvalidReport(f"a report must be a str, not {type(report).__name__}")
    lexicon = lexicon or load_lexicon()
    sentences: list[Sentence] = []
    sections = Sections(report, lexicon)
    setting = PLAIN
    anchor: int | None = None
    end = 0
    for index, found in enumerate(split_sentences(report)):
        between = report[end : found.start]
        span = Span(found.start, found.end)
        setting = setting.across(between)
        category = sections.category(end, span)
        sentence = read_sentence(found.text, category, lexicon, setting).at(index, found.start)
        setting = setting.after(found.text, bool(sentence.findings), lexicon)
        if sentence.layout is not Layout.PROSE and is_detail(found.text, lexicon):
            if anchor is not None and not sentence.findings and not ends_block(between):
                sentences[anchor] = with_details(report, sentences[anchor], span, lexicon)
        else:
            anchor = index if sentence.findings else None
        if sentences:
            sentence = _with_antecedent(report, sentence, sentences[-1], lexicon)
        sentences.append(sentence)
        end = found.end
    return ReportFindings(report, tuple(sentences))


@lru_cache(_REMEMBERED)
def _refers_back(opening: str, lexicon: Lexicon) -> bool:
    """Whether a sentence that begins so speaks of the finding of the one before."""
    words = [t.form for t in tokenize(opening)[:2]]
    return not {" ".join(words), *words[:1]}.isdisjoint(lexicon.grammar["anaphors"])


def _with_antecedent(text: str, sentence: Sentence, before: Sentence, lexicon: Lexicon) -> Sentence:
    """The sentence, its placeless findings at the place of the finding that "this" refers to."""
    if not sentence.findings or not before.findings:
        return sentence
    start, end = sentence.span
    if not _refers_back(text[start : min(end, start + _OPENING)], lexicon):
        return sentence
    places = next((p for f in reversed(before.findings) if (p := places_of(f.attributes))), [])
    inherited = tuple(a._replace(inherited=True) for a in places)
    findings = tuple(
        f
        if places_of(f.attributes) or f.normal or f.observation in lexicon.midline
        else replace(f, attributes=(*inherited, *f.attributes))
        for f in sentence.findings
    )
    return replace(sentence, findings=findings)
