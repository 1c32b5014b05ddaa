"""On phantoms, whose findings are known, every change makes the error that its kind promises.

The oracle reads the changed report by the phantom's own closed vocabulary, and counts the errors
against the scene, as `vlscore.data.phantom` does for its candidates. The extractor has no part
in it.
"""

import re
from collections import Counter, defaultdict

import pytest

from tests.perturb.contract import BUILT_KINDS, made, read
from vlscore.data import KINDS as PHANTOM_KINDS
from vlscore.data import PhantomFinding, count_errors, sample_studies
from vlscore.data.phantom.scene import phrasings
from vlscore.perturb import KINDS, Perturbation

DENIAL = re.compile(
    r"\b(?:no|not|neither|clear|normal|intact|within normal limits)\b", re.IGNORECASE
)
SIDES = {
    "bilateral": r"\b(?:bilateral|bilaterally|both sides)\b",
    "left": r"\bleft",
    "right": r"\bright(?! heart)",
}
ZONES = {
    "upper": r"\b(?:upper|apex|apical)\b",
    "middle": r"\b(?:mid|midlung|middle)\b",
    "lower": r"\b(?:lower|base|basilar)\b",
}
# The kinds of perturbation put "minimal" for "slight", and the like: the scale is the same.
GRADES = {
    1: r"\b(?:small|tiny|trace|mild|mildly|minimal|minimally|slight|slightly|subcentimeter)\b",
    2: r"\b(?:moderate|moderately|moderate-sized|medium-sized)\b",
    3: r"\b(?:large|massive|severe|severely|marked|markedly|extensive|sizable)\b",
}
CHANGES = {
    "new": r"\b(?:new|newly|not present on the prior)\b",
    "increased": r"\b(?:(?:has )?increased (?:since|from|compared)|worse|worsened|larger)\b",
    "decreased": r"\b(?:(?:has )?decreased (?:since|from|compared)|improved|smaller)\b",
    "unchanged": r"\b(?:unchanged|stable|similar|without change)\b",
}
OF_ITS_OWN = {
    "cardiomegaly": r"(?:heart|size|silhouette|shadow) .*(?:enlarged|increased)|"
    r"enlargement of (?:the|\[unk\]) (?:heart|cardiac)",
    "hyperinflation": r"lungs .*hyper(?:inflated|expanded)",
}
# Few phantoms compare one finding alone.
FEW = {"drop-comparison": 3}
ERROR = {
    "remove-pathology": "omitted_finding",
    "negate-finding": "omitted_finding",
    "affirm-finding": "false_finding",
    "add-false-finding": "false_finding",
    "change-location": "wrong_location",
    "change-severity": "wrong_severity",
    "drop-comparison": "omitted_comparison",
    "invent-comparison": "false_comparison",
}


def _first(table: dict, said: str):
    return next((value for value, words in table.items() if re.search(words, said)), None)


def stated(report: str) -> list[PhantomFinding]:
    """The findings that a report states, by the phantom's vocabulary."""
    found = []
    for sentence in re.split(r"(?<=[A-Za-z])\.(?:\s+|$)", report):
        said = sentence.lower()
        if DENIAL.search(re.sub(r"not present on|normal position", "", said)):
            continue
        kind = _kind_of(said)
        if kind is None:
            continue
        of = PHANTOM_KINDS[kind]
        found.append(
            PhantomFinding(
                kind,
                _first(SIDES, said) if of.sides else None,
                _first(ZONES, said) if of.zones else None,
                _first(GRADES, said) if of.severities else None,
                _first(CHANGES, said),
            )
        )
    return found


def _kind_of(said: str) -> str | None:
    """The kind that is named; of several nouns the longest, and the one of the finding itself."""
    named = [
        (len(noun), kind)
        for kind in PHANTOM_KINDS
        for noun in phrasings()[kind]["nouns"]
        if re.search(rf"\b{_pattern(noun)}s?\b", said.replace("air space", "airspace"))
    ]
    own = [kind for kind, words in OF_ITS_OWN.items() if re.search(words, said)]
    return max(named)[1] if named else next(iter(own), None)


def _pattern(noun: str) -> str:
    """The noun, of whose small words one may be masked."""
    return re.sub(r"\b(of|the)\b", r"(?:\1|\\[unk\\])", noun.lower())


@pytest.fixture(scope="module")
def studies():
    """(the findings of the scene, the report that states them)."""
    return [(study.scene.findings, study.reference) for study in sample_studies(31, 120)]


def test_the_oracle_reads_what_the_scene_holds(studies):
    for findings, report in studies:
        assert count_errors(stated(report), findings).total == 0, report


@pytest.fixture(scope="module")
def changes(studies) -> dict[str, list[tuple[tuple[PhantomFinding, ...], Perturbation]]]:
    found = defaultdict(list)
    for findings, report in studies:
        source = read(report)
        for name, kind in KINDS.items():
            found[name] += [(findings, p) for p in made(kind, source, per_report=2)]
    return found


@pytest.mark.parametrize("name", ERROR)
def test_the_error_is_made_and_no_other(name, changes):
    """An added hernia, or the place of an edema, the phantom does not know: it counts no error."""
    assert len(changes[name]) >= FEW.get(name, 10)
    right = 0
    for findings, p in changes[name]:
        errors = Counter(count_errors(stated(p.perturbed), findings).to_dict())
        known = errors.pop(ERROR[name])
        assert not +errors, (p.rule, p.perturbed)
        right += known > 0
    least = {"add-false-finding": 0.3, "change-location": 0.95}.get(name, 1.0)
    assert right >= least * len(changes[name])


@pytest.mark.parametrize("name", sorted(set(BUILT_KINDS) - set(ERROR) - {"standard-normal"}))
def test_no_error_is_made_where_none_is_promised(name, changes):
    assert len(changes[name]) >= 10
    for findings, p in changes[name]:
        errors = count_errors(stated(p.perturbed), findings)
        assert errors.total == 0, (p.rule, p.perturbed, errors)


def test_only_reports_of_empty_scenes_are_called_normal(changes):
    assert changes["standard-normal"]
    for findings, p in changes["standard-normal"]:
        assert not findings
        assert not stated(p.perturbed)
