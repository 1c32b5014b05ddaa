"""What each kind of change does to the words of a report.

The oracle is the text itself: which words went, which came, which sentences stayed verbatim. The
extractor, by whose reading the changes were made, has no say here; what the words mean is written
out below, by hand.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable

from vlscore.perturb import Perturbation, default_standard_normal
from vlscore.perturb.lexicons import false_findings, phrases_in, statements

Words = Counter[str]

_PLACES = (
    "left right left-sided right-sided lt rt sided side upper lower middle mid midlung midlungs "
    "lobe lobes lung lungs zone zones base bases apex apices basilar basal apical bibasilar "
    "bibasal biapical bilateral perihilar suprahilar infrahilar lingula lingular levoscoliosis "
    "dextroscoliosis levocurvature dextrocurvature levoconvex dextroconvex levoconvexity "
    "dextroconvexity levo dextro scoliosis leftward rightward lll lul rll rul rml"
)
_GRADES = (
    "minimal minimally slight slightly mild mildly moderate moderately severe severely marked "
    "markedly advanced extreme extremely pronounced borderline trace tiny small little minute "
    "punctate subcentimeter large massive huge big sizable substantial sized moderate-sized "
    "medium-sized medium extensive faint vague hazy subtle dense very low grade to "
    "mild-to-moderate moderate-to-severe"
)
_COMPARING = (
    "stable unchanged persistent new worsening worsened increasing improved improving decreasing "
    "enlarging grossly appearing unchanging resolving progressive again seen noted identified "
    "demonstrated since from the prior previous study exam examination radiograph compared "
    "comparison with to when as interval in size and but which is are has remains remain "
    "appears appear redemonstration of increase improvement decrease development no change "
    "that studies examinations position significant number appearance extent degree prominence "
    "on a an xxxx"
)
# What a denial says and a statement does not.
_LOST = (
    "no not there is are evidence of a an definite obvious visible significant significantly "
    "discrete overt convincing gross suspicious sizable radiographic definable measurable evident "
    "appreciable other visualized"
)
_ARTICLES = frozenset(("a", "an"))
_ROOM = frozenset(("other", "otherwise", "another"))
_DENYING = re.compile(
    r"\b(?:no|not|nil|without|negative|neither|nor|clear|normal|normally|intact|"
    r"unremarkable|within|free|midline|sharp|aerated|inflated|expanded|artifactual)\b"
)
# "No change in the effusion" states one; "no effusion" and "no change" alone do not.
_MERELY_DENYING = re.compile(r"no (?!(?:interval |significant |definite )*change\b)(?!.* with )")


def words(text: str) -> Words:
    """The words of a text in lower case, without punctuation around them."""
    return Counter(re.findall(r"[a-z0-9]+(?:['-][a-z0-9]+)*", text.lower()))


def sentences(text: str) -> list[str]:
    """Its sentences in lower case, without numbers, titles and punctuation around them."""
    text = re.sub(r"\s*\n\s*(?=[a-z])", " ", re.sub("[\u200b\ufeff]", "", text))
    parts = re.split(r"(?<=[.!?;])\s+|\n|(?<=[a-z])\.(?=[A-Z])|:", text)
    plain = (re.sub(r"^(?:\W|\d+[.)])+|\W+$", "", part.lower()) for part in parts)
    return [" ".join(part.split()) for part in plain if re.search(r"[a-z]", part)]


def gone(p: Perturbation) -> Words:
    return words(p.original) - words(p.perturbed)


def come(p: Perturbation) -> Words:
    return words(p.perturbed) - words(p.original)


def edited(p: Perturbation) -> list[tuple[str, str]]:
    """(before, after) of every edit that makes no room, in lower case."""
    pairs = ((p.original[e.start : e.end].lower(), e.replacement.lower()) for e in p.edits)
    return [(old, new) for old, new in pairs if not _makes_room(old, new)]


def _makes_room(old: str, new: str) -> bool:
    return bool(_ROOM & words(new).keys()) or (set(words(old)) <= _ROOM and bool(words(old)))


def _only(found: Iterable[str], allowed: Iterable[str]) -> bool:
    return set(found) <= set(allowed)


def stays_verbatim(p: Perturbation) -> bool:
    """Every sentence of the changed report stood in the original, in this order; but numbers."""
    before = iter([re.sub(r"\botherwise,? ?", "", s).strip() for s in sentences(p.original)])
    after = [re.sub(r"\botherwise,? ?", "", s).strip() for s in sentences(p.perturbed)]
    return all(sentence in before for sentence in after)


def removes_sentences(p: Perturbation) -> bool:
    """Whole sentences went and nothing came; each went for what the rule names."""
    is_shorter = len(sentences(p.perturbed)) < len(sentences(p.original))
    return is_shorter and stays_verbatim(p) and _only(come(p), map(str, range(100)))


def removes_statements(p: Perturbation) -> bool:
    """As `removes_sentences`; and something that went was no mere denial."""
    left = Counter(sentences(p.original)) - Counter(sentences(p.perturbed))
    return removes_sentences(p) and any(not _MERELY_DENYING.match(sentence) for sentence in left)


def removes_denials(p: Perturbation) -> bool:
    """Each sentence that went denies or states what is normal, by its words."""
    left = Counter(sentences(p.original)) - Counter(sentences(p.perturbed))
    # "Rt. base clear." is cut after its abbreviation.
    return removes_sentences(p) and all(_DENYING.search(s) or len(s) <= 2 for s in left)


def moves_places(p: Perturbation) -> bool:
    """Words for places become other words for places, and no other word changes."""
    allowed = {*_PLACES.split(), *_ARTICLES}
    pairs = edited(p)
    places = [(o, n) for o, n in pairs if set(words(o)) - _ARTICLES]
    return (
        bool(places)
        and _only(gone(p), allowed)
        and _only(come(p), allowed)
        and all(words(old) != words(new) for old, new in places)
    )


def moves_grades(p: Perturbation) -> bool:
    """Words for grades become other words for grades; no other word changes but to make room."""
    grades = {word for old, _ in edited(p) for word in words(old)} - _ARTICLES
    parts = {part for word in (*gone(p), *come(p)) for part in word.split("-")}
    return bool(grades) and _only(parts, {*_GRADES.split(), *_ARTICLES, *_ROOM})


def masks_one_word(p: Perturbation) -> bool:
    """One word of the list becomes [UNK]."""
    ((old, new),) = edited(p)
    return new == "[unk]" and "uninformative" in phrases_in(old)


def is_the_standard(p: Perturbation) -> bool:
    """The changed report is the standard normal report, in the manner of the original."""
    return words(p.perturbed) == words(default_standard_normal())


def denies(p: Perturbation) -> bool:
    """A negation came, in one sentence; what went are articles, grades and the like."""
    came = come(p)
    others = Counter(sentences(p.original)) - Counter(sentences(p.perturbed))
    one = [s for s in others if not s.startswith("otherwise") and " otherwise " not in f" {s} "]
    negations = came["no"] + came["not"]
    return negations == 1 and _only(came, {"no", "not"}) and len(one) <= 1


def affirms(p: Perturbation) -> bool:
    """A negation went, in one sentence, and no denial came."""
    went, came = gone(p), come(p)
    pairs = edited(p)
    negations = went["no"] + went["not"]
    allowed = {"there", "is", "are", "a", "an", "evidence", "of"} | _ROOM
    lost = _LOST.split()
    return negations == 1 and len(pairs) == 1 and _only(came, allowed) and _only(went, lost)


def adds_one_sentence(p: Perturbation) -> bool:
    """One of the sentences of the table came, whole; the others stay but to make room."""
    ((old, new),) = edited(p)
    known = {
        " ".join(s.lower().rstrip(".").split())
        for f in false_findings().values()
        for s in f.sentences
    }
    said = " ".join(new.replace(".", " ").split())
    return not old and said in known and not gone(p) - Counter({"an": 1, "a": 1})


def drops_comparing_words(p: Perturbation) -> bool:
    """Only words that compare went, and a copula or "seen" may have come; or a whole sentence."""
    if p.rule == "sentence:comparison":
        return removes_sentences(p)
    return (
        bool(gone(p))
        and _only(gone(p), _COMPARING.split())
        and _only(come(p), {"is", "are", "seen", "an", "a"})
    )


def adds_a_comparison(p: Perturbation) -> bool:
    """A comparison with a prior examination stands at the end of one sentence, and no more came."""
    pairs = edited(p)
    pattern = r"(?: ,|,) (?:new|increased|decreased|unchanged|stable) since the prior examination"
    one = len(pairs) == 1 and not pairs[0][0] and re.fullmatch(pattern, pairs[0][1])
    return bool(one) and not gone(p) - Counter({"an": 1, "a": 1})


def keeps_the_words(p: Perturbation) -> bool:
    """The same words, and the same sentences, in another order."""
    same = Counter(sentences(p.original)) == Counter(sentences(p.perturbed))
    return words(p.original) == words(p.perturbed) and same and p.original != p.perturbed


def swaps_equivalents(p: Perturbation) -> bool:
    """A phrase of the table became another one of its group."""
    pairs = [(old.strip(), new.strip()) for old, new in edited(p) if old.strip() not in _ARTICLES]
    groups = [set(group.phrases) for group in statements().paraphrase.group]
    return len(pairs) == 1 and any(set(pairs[0]) <= group for group in groups)


LAWS: dict[str, Callable[[Perturbation], bool]] = {
    "remove-pathology": removes_statements,
    "remove-insignificant": removes_sentences,
    "change-location": moves_places,
    "change-severity": moves_grades,
    "replace-uninformative": masks_one_word,
    "standard-normal": is_the_standard,
    "negate-finding": denies,
    "affirm-finding": affirms,
    "add-false-finding": adds_one_sentence,
    "drop-comparison": drops_comparing_words,
    "invent-comparison": adds_a_comparison,
    "shuffle-sentences": keeps_the_words,
    "paraphrase": swaps_equivalents,
    "unmention-negatives": removes_denials,
}


def broken(perturbations: Iterable[Perturbation]) -> list[Perturbation]:
    """Those that do to the words what their kind must not."""
    return [p for p in perturbations if p.kind in LAWS and not LAWS[p.kind](p)]
