"""What each kind of change does to the findings of a report, as another reading of it tells."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

from vlscore.findings import Finding, Polarity, extract
from vlscore.perturb import Perturbation
from vlscore.perturb.lexicons import noninformative

Facts = Counter[tuple[object, ...]]

_read = lru_cache(extract)


def _facts(text: str, facts: Callable[[Finding], tuple[object, ...]]) -> Facts:
    return Counter(facts(finding) for finding in _read(text))


def polarities(text: str) -> Facts:
    """(observation, polarity) of all mentions."""
    return _facts(text, lambda f: (f.observation, f.polarity))


def sides(text: str) -> Facts:
    """(observation, polarity, side) of all mentions."""
    return _facts(text, lambda f: (f.observation, f.polarity, f.side))


def places(text: str) -> Facts:
    """(observation, polarity, side, zones) of all mentions."""
    return _facts(text, lambda f: (f.observation, f.polarity, f.side, f.zones))


def severities(text: str) -> Facts:
    """(observation, polarity, severity) of all mentions."""
    return _facts(text, lambda f: (f.observation, f.polarity, f.severity))


def present(text: str) -> Facts:
    """(observation, side) of what the patient has."""
    return Counter((f.observation, f.side) for f in _read(text).present)


def named(perturbation: Perturbation) -> set[str]:
    """The observations that the rule names, as in "denied:cardiomegaly"."""
    return set(perturbation.rule.split()[-1].split(":")[-1].split("+"))


def removes_a_pathology(p: Perturbation) -> bool:
    """All that the rule names is gone, some of it the patient had, and nothing came."""
    lost = polarities(p.original) - polarities(p.perturbed)
    told = {observation for observation, polarity in lost if polarity is not Polarity.NEGATIVE}
    has_lost = present(p.original) - present(p.perturbed)
    return bool(has_lost) and not places(p.perturbed) - places(p.original) and told >= named(p)


def removes_no_finding(p: Perturbation) -> bool:
    return sides(p.perturbed) == sides(p.original)


def changes_places_alone(p: Perturbation) -> bool:
    """Other places, of the same findings with the same polarity and severity."""
    return (
        polarities(p.perturbed) == polarities(p.original)
        and severities(p.perturbed) == severities(p.original)
        and places(p.perturbed) != places(p.original)
    )


def changes_severities_alone(p: Perturbation) -> bool:
    return severities(p.perturbed) != severities(p.original) and places(p.perturbed) == places(
        p.original
    )


def denies(p: Perturbation) -> bool:
    """One finding that was stated is denied, and nothing else changed."""
    (observation,) = named(p)
    expected = Counter(polarities(p.original))
    expected[observation, Polarity.POSITIVE] -= 1
    expected[observation, Polarity.NEGATIVE] += 1
    return polarities(p.perturbed) == +expected


def affirms(p: Perturbation) -> bool:
    """One finding that was denied is stated, and nothing else changed."""
    (observation,) = named(p)
    expected = Counter(polarities(p.original))
    expected[observation, Polarity.NEGATIVE] -= 1
    expected[observation, Polarity.POSITIVE] += 1
    return polarities(p.perturbed) == +expected


def adds_what_it_names(p: Perturbation) -> bool:
    """The finding is present now, was not mentioned before, and nothing is lost."""
    (observation,) = named(p)
    told = {f.observation for f in _read(p.original)}
    now = {f.observation for f in _read(p.perturbed).present}
    return observation in now - told and not sides(p.original) - sides(p.perturbed)


def compared(text: str) -> int:
    """How many comparisons the report makes."""
    return sum(len(sentence.changes) for sentence in _read(text).sentences)


def drops_a_comparison(p: Perturbation) -> bool:
    return compared(p.perturbed) < compared(p.original) and sides(p.perturbed) == sides(p.original)


def invents_a_comparison(p: Perturbation) -> bool:
    return compared(p.perturbed) > compared(p.original) and sides(p.perturbed) == sides(p.original)


def keeps_the_findings(p: Perturbation) -> bool:
    return sides(p.perturbed) == sides(p.original)


def keeps_the_words(p: Perturbation) -> bool:
    """The findings stay, and the words in another order; a last period may come."""
    return keeps_the_findings(p) and _words(p.original) == _words(p.perturbed)


def _words(text: str) -> Counter[str]:
    return Counter(text.replace(".", " ").split())


def masks_one_idle_word(p: Perturbation) -> bool:
    """One word of the list becomes [UNK], and it is no part of a finding's name."""
    (edit,) = p.edits
    word = p.original[edit.start : edit.end]
    is_named = any(f.cue.start < edit.end and edit.start < f.cue.end for f in _read(p.original))
    return edit.replacement == "[UNK]" and word.lower() in noninformative() and not is_named


def keeps_what_is_present(p: Perturbation) -> bool:
    """Denials went, and nothing that the patient has."""
    lost = polarities(p.original) - polarities(p.perturbed)
    gained = polarities(p.perturbed) - polarities(p.original)
    return not gained and {polarity for _, polarity in lost} <= {Polarity.NEGATIVE}


def states_nothing(p: Perturbation) -> bool:
    return not _read(p.perturbed).present and not _read(p.original).present


LAWS: dict[str, Callable[[Perturbation], bool]] = {
    "remove-pathology": removes_a_pathology,
    "remove-insignificant": removes_no_finding,
    "change-location": changes_places_alone,
    "change-severity": changes_severities_alone,
    "replace-uninformative": masks_one_idle_word,
    "standard-normal": states_nothing,
    "negate-finding": denies,
    "affirm-finding": affirms,
    "add-false-finding": adds_what_it_names,
    "drop-comparison": drops_a_comparison,
    "invent-comparison": invents_a_comparison,
    "shuffle-sentences": keeps_the_words,
    "paraphrase": keeps_the_findings,
    "unmention-negatives": keeps_what_is_present,
}


def broken(perturbations: Iterable[Perturbation]) -> list[Perturbation]:
    """Those that do to the findings what their kind must not."""
    return [p for p in perturbations if not LAWS[p.kind](p)]
