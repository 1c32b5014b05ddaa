"""Extraction of findings from a report.

`extract` splits a report into sentences, reads each by `read_sentence`, and resolves references
such as "this" to an earlier finding. What counts as CheXpert's labels is here, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from vlscore.errors import InvalidReport
from vlscore.findings import context
from vlscore.findings.attributes import places_of
from vlscore.findings.change_words import WORDS_OF_CHANGE
from vlscore.findings.changes import referred, speaks_of_earlier
from vlscore.findings.heads import NAMING, head_of, is_next_item, with_answers
from vlscore.findings.lexicon import CHEXPERT_LABELS, Lexicon, load_lexicon
from vlscore.findings.sentence_categories import Sections
from vlscore.findings.sentence_reading import as_gone, compares, read_sentence
from vlscore.findings.types import (
    Category,
    Comparison,
    Finding,
    Polarity,
    ReportFindings,
    Sentence,
    Span,
    Status,
    TemporalChange,
    shifted,
)
from vlscore.text import BLANKS, plain_text, split_sentences, with_doubts


def assert_span(
    sentence: str, span: Span, lexicon: Lexicon | None = None
) -> tuple[Polarity, Status]:
    """Polarity and status that ConText's rules give to any words of one sentence.

    >>> assert_span("The patient denies chest pain.", Span(19, 29))[0].value
    'negative'
    """
    lexicon = lexicon or load_lexicon()
    tokens = lexicon.tokenize(sentence)
    inside = [i for i, t in enumerate(tokens) if t.start < span.end and span.start < t.end]
    if not inside:
        raise InvalidReport(f"the sentence has no word at characters {span}")
    triggers = context.find_triggers(tokens, lexicon.trie.find(tokens), lexicon)
    outside = [t for t in triggers if t.last <= inside[0] or t.first > inside[-1]]
    scopes = context.scopes(tokens, outside, lexicon)
    assertion = context.assess(scopes, inside[0], inside[-1] + 1)
    return assertion.polarity, assertion.status


def _deny_gone(sentences: list[Sentence], comparisons: Sequence[Comparison]) -> None:
    """Deny the findings of earlier sentences of which a further one says that they have gone."""
    for topic, change, words, _ in comparisons:
        if change is not TemporalChange.RESOLVED:
            continue
        for finding in referred(sentences, topic, words):
            before = sentences[finding.sentence]
            findings = tuple(as_gone(f, words) if f is finding else f for f in before.findings)
            sentences[finding.sentence] = replace(before, findings=findings)


# Characters of a remark about what stands before it, and layers of words that compare.
_LONGEST_REMARK = 60
_COMPARING = WORDS_OF_CHANGE - {"time", "unseen"}
_OPENINGS = frozenset(("opening", "pattern"))
_JOINTS = frozenset((".", ";"))
# Characters that contain a sentence's first words, which may refer to the previous sentence.
_OPENING = 40


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
        raise InvalidReport(f"a report must be a text, not a {type(report).__name__}")
    lexicon = lexicon or load_lexicon()
    sentences: list[Sentence] = []
    for index, (start, words, category, head) in enumerate(_placed(report, lexicon)):
        sentence = shifted(read_sentence(words, category, lexicon, head), index, start)
        if sentences and sentence.findings and report[sentences[-1].span.end - 1] == "?":
            sentences[-1] = _answered(sentences[-1], sentence)
        _deny_gone(sentences, sentence.comparisons)
        if sentences and sentences[-1].findings and _opens_with(words, lexicon.lists["anaphors"]):
            sentences[-1] = _with_more(sentence, sentences[-1])
            sentence = _with_antecedent(sentence, sentences[-1], lexicon)
        sentences.append(sentence)
    return ReportFindings(report, tuple(sentences))


def refers_to_earlier(report: str, lexicon: Lexicon | None = None) -> bool:
    """Return what `speaks_of_earlier` says of a report, in less time.

    Only sentences that state a change or name an earlier time are read, up to the first that
    decides, and the one before each.

    >>> [refers_to_earlier(text) for text in ("Stable nodule.", "No prior study. Old fracture.")]
    [True, False]
    """
    lexicon = lexicon or load_lexicon()
    both: list[tuple[str, Category, str]] = []
    for _, words, category, head in _placed(report, lexicon):
        # "This was not there before" is about the sentence before.
        both = [*both[-1:], (words, category, head)]
        if compares(words, head, lexicon):
            read = (read_sentence(text, of, lexicon, above) for text, of, above in both)
            sentences = tuple(shifted(each, index, 0) for index, each in enumerate(read))
            if speaks_of_earlier(ReportFindings(report, sentences)):
                return True
    return False


def _placed(report: str, lexicon: Lexicon) -> Iterator[tuple[int, str, Category, str]]:
    """Yield where each sentence begins, and its words, section and the head of its list."""
    sections, (plain, cuts) = Sections(report, lexicon), plain_text(report)
    head, above, end, is_item = "", "", 0, False
    statements, read = _statements(report, with_doubts(plain), lexicon)
    for start, stop, label_end in with_answers(report, statements, read, lexicon):
        words = read[start:stop]
        if label_end:
            words = f"{read[start:label_end]}:{read[label_end + 1 : stop]}"
        is_numbered = bool(plain[end:start].strip(BLANKS))
        is_heading = any(end <= cut < start for cut in cuts) or (is_numbered and not is_item)
        is_item = is_numbered
        if not is_next_item(plain[end:start], is_heading):
            head = ""
        elif (stated := head_of(above, lexicon, is_heading)) is not None:
            head = stated
        yield start, words, sections.category(end, Span(start, stop)), head
        above, end = words, stop


def _statements(report: str, read: str, lexicon: Lexicon) -> tuple[list[tuple[int, int]], str]:
    """Return where sentences begin and end, and how the report is read then.

    A sentence with "so too the drain" goes on, and so does an answer for one side with a semicolon:
    "Effusion, right: none; left: small". Before a remark ("Effusion; smaller"), and before what
    takes up a finding ("Right effusion. Smaller one on the left"), a comma is read.
    """
    statements: list[tuple[int, int]] = []
    joints: list[int] = []
    for words, start, stop in split_sentences(report):
        label, colon, _ = words.partition(":")
        is_of_side = colon and label.strip().lower() in lexicon.lists["sides"]
        sign = statements[-1][1] - 1 if statements else 0
        is_part = statements and read[sign] == ";"
        if (is_part and _is_remark(read[start:stop], lexicon)) or (
            statements and read[sign] in _JOINTS and _takes_up(read[start:stop], lexicon)
        ):
            joints.append(sign)
            start = statements.pop()[0]
        elif (is_part and is_of_side) or (
            statements and _opens_with(read[start:stop], lexicon.lists["continuing"])
        ):
            start = statements.pop()[0]
        statements.append((start, stop))
    if joints:
        signs = list(read)
        for at in joints:
            signs[at] = ","
        read = "".join(signs)
    return statements, read


def _is_remark(words: str, lexicon: Lexicon) -> bool:
    """Return whether words compare, or deny, what they do not name: "slightly smaller", "none"."""
    if len(words) > _LONGEST_REMARK or _opens_with(words, lexicon.lists["anaphors"]):
        return False
    tokens = lexicon.tokenize(words)
    found = lexicon.trie.find(tokens)
    patterns = (m.entry for layer in _OPENINGS for m in found.get(layer, ()))
    if not NAMING.isdisjoint(found) or any(p.category is Category.RECOMMENDATION for p in patterns):
        return False
    denies = tokens[:1] and tokens[0].form in lexicon.lists["answers_no"]
    return bool(denies) or not _COMPARING.isdisjoint(found)


def _takes_up(words: str, lexicon: Lexicon) -> bool:
    """Return whether words take up a finding and say where: "a smaller one on the left"."""
    opening = words[:_OPENING].lower().split(None, 3)[1:3]
    if lexicon.lists["taking_up"].isdisjoint(opening):
        return False
    found = lexicon.trie.find(lexicon.tokenize(words))
    return "mention" not in found and "place" in found and _OPENINGS.isdisjoint(found)


def _opens_with(words: str, openings: frozenset[str]) -> bool:
    """Return whether a sentence opens with one of certain words, or with two or three of them."""
    opening = words[:_OPENING].lower().split(None, 3)[:3]
    if not opening or opening[0] not in _first_words(openings):
        return False
    return any(" ".join(opening[:count]) in openings for count in (1, 2, 3))


@lru_cache(8)
def _first_words(openings: frozenset[str]) -> frozenset[str]:
    return frozenset(opening.split()[0] for opening in openings)


def _answered(question: Sentence, sentence: Sentence) -> Sentence:
    """Return a question without the findings of which the sentence behind it speaks."""
    said = {finding.observation for finding in sentence.findings}
    findings = tuple(f for f in question.findings if f.observation not in said)
    return replace(question, findings=findings)


def _with_more(sentence: Sentence, before: Sentence) -> Sentence:
    """Return the sentence before with what "It measures 9 mm." adds to its last finding."""
    *others, last = before.findings
    known = {a.axis for a in last.attributes}
    new = tuple(a._replace(inherited=True) for a in sentence.loose if a.axis not in known)
    if not new or last.polarity is Polarity.NEGATIVE:
        return before
    last = replace(last, attributes=last.attributes + new)
    return replace(before, findings=(*others, last))


def _with_antecedent(sentence: Sentence, before: Sentence, lexicon: Lexicon) -> Sentence:
    """Return the sentence with findings at the place of the finding to which "this" refers."""
    places = next((p for f in reversed(before.findings) if (p := places_of(f.attributes))), [])
    if not places:
        return sentence
    inherited = tuple(a._replace(inherited=True) for a in places)
    findings = tuple(
        f
        if places_of(f.attributes) or f.normal or f.observation in lexicon.midline
        else replace(f, attributes=(*inherited, *f.attributes))
        for f in sentence.findings
    )
    return replace(sentence, findings=findings)


_OUTSIDE_NO_FINDING = frozenset({"No Finding", "Support Devices"})


def chexpert_labels(report: str | ReportFindings) -> dict[str, int | None]:
    """Return CheXpert's 14 labels: 1 affirmed, -1 uncertain, 0 denied, None not mentioned.

    A label takes the strongest of its mentions: affirmed over uncertain over denied (Irvin et al.
    2019, section 3). A borderline finding is uncertain. "No Finding" is 1 if the report states
    anything, and affirms or suspects no other label but support devices; else None. Findings of no
    label, such as scoliosis, do not count. A report that states nothing, such as an empty one, has
    no label at all. Only current findings of this patient count.

    >>> labels = chexpert_labels("Possible pneumonia. No effusion. PICC line in place.")
    >>> labels["Pneumonia"], labels["Pleural Effusion"], labels["Support Devices"]
    (-1, 0, 1)
    >>> chexpert_labels("Clear lungs.")["No Finding"], chexpert_labels("")["No Finding"]
    (1, None)
    """
    findings = report if isinstance(report, ReportFindings) else extract(report)
    labels: dict[str, int | None] = dict.fromkeys(CHEXPERT_LABELS)
    for finding in findings:
        if finding.chexpert is None or finding.status is not Status.CURRENT:
            continue
        value = _value(finding)
        known = labels[finding.chexpert]
        if known is None or _STRENGTH[value] > _STRENGTH[known]:
            labels[finding.chexpert] = value
    abnormal = any(labels[name] for name in CHEXPERT_LABELS if name not in _OUTSIDE_NO_FINDING)
    if findings.states_anything and not abnormal:
        labels["No Finding"] = 1
    return labels


_STRENGTH = {0: 0, -1: 1, 1: 2}


def _value(finding: Finding) -> int:
    if finding.polarity is Polarity.NEGATIVE:
        return 0
    borderline = finding.severity == "borderline"
    return -1 if finding.polarity is Polarity.UNCERTAIN or borderline else 1
