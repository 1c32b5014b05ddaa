"""Findings that a denial of each region of the chest denies, as `coverage.toml` lists them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from vlscore.errors import InvalidLexicon


def require_known(file: str, name: str, subject: str, subjects: Collection[str]) -> str:
    """Return the subject, or raise InvalidLexicon if it is unknown."""
    if subject not in subjects:
        raise InvalidLexicon(f"{file}: {name!r} has an unknown subject {subject!r}")
    return subject


@dataclass(frozen=True)
class Coverage:
    """Observations that a denial of each region denies, and the words for the regions.

    `whole` is the region that has all others. `any` and `acute` give, by region, the observations
    that "normal" and "no acute disease" deny.
    """

    whole: str
    any: Mapping[str, frozenset[str]]
    acute: Mapping[str, frozenset[str]]
    of_subject: Mapping[str, tuple[str, ...]]
    of_word: Mapping[str, tuple[str, ...]]
    nouns: frozenset[str]
    joints: frozenset[str]
    run_words: frozenset[str]
    words_of_time: frozenset[str]


def load_coverage(
    data: Mapping[str, Any],
    observations: Collection[str],
    subjects: Collection[str],
    regions: Mapping[str, str],
    lasting: frozenset[str],
) -> Coverage:
    """Coverage from the parsed file. Raises InvalidLexicon where a name is unknown or left out.

    Args:
        regions: the scope, or "outside", that the entry of an observation names.
        lasting: observations that a denial of acute disease leaves open.
    """
    scopes = [entry["name"] for entry in data["scope"]]
    for name, region in regions.items():
        if region not in (*scopes, "outside"):
            raise InvalidLexicon(
                f"observations.toml: {name!r} has an unknown region {region!r}; known: "
                f"{', '.join(scopes)}, outside"
            )
    covered: dict[str, frozenset[str]] = {}
    of_subject: dict[str, tuple[str, ...]] = {}
    of_word: dict[str, tuple[str, ...]] = {}
    for entry in data["scope"]:
        name = entry["name"]
        own = {*entry.get("observations", ()), *(o for o, r in regions.items() if r == name)}
        for part in entry.get("parts", ()):
            if part not in covered:
                raise InvalidLexicon(f"coverage.toml: {name!r} has an unknown part {part!r}")
            own |= covered[part]
        covered[name] = frozenset(own)
        for subject in entry.get("subjects", ()):
            require_known("coverage.toml", name, subject, subjects)
            of_subject[subject] = (*of_subject.get(subject, ()), name)
        for word in entry["words"]:
            of_word[word] = (*of_word.get(word, ()), name)
    outside = {o for o, r in regions.items() if r == "outside"}
    named = outside.union(lasting, *covered.values())
    if unknown := sorted(named - set(observations)):
        raise InvalidLexicon(
            f"coverage.toml: these observations do not exist: {', '.join(unknown)}"
        )
    if missing := sorted(set(observations) - outside.union(*covered.values())):
        raise InvalidLexicon(
            f"coverage.toml: these observations have no scope: {', '.join(missing)}; "
            f"give the entry of each a region: {', '.join(scopes)}, or outside"
        )
    joints, fillers = frozenset(data["joints"]), frozenset(data["fillers"])
    return Coverage(
        whole=scopes[-1],
        any=covered,
        acute={name: found - lasting for name, found in covered.items()},
        of_subject=of_subject,
        of_word=of_word,
        nouns=frozenset(data["nouns"]),
        joints=joints,
        run_words=joints | fillers | of_word.keys(),
        words_of_time=frozenset(data["acute"]),
    )
