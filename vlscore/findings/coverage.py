"""Which findings belong to which region of the chest, from `coverage.toml`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from vlscore.errors import InvalidLexicon


@dataclass(frozen=True)
class Coverage:
    """What a denial of each region denies, and the words that name the regions.

    `any` and `acute` give, by region, the observations that "normal" and "no acute disease" deny.
    """

    any: Mapping[str, frozenset[str]]
    acute: Mapping[str, frozenset[str]]
    of_subject: Mapping[str, tuple[str, ...]]
    of_word: Mapping[str, tuple[str, ...]]
    nouns: frozenset[str]
    joints: frozenset[str]
    run_words: frozenset[str]
    words_of_time: frozenset[str]


def load_coverage(
    data: dict[str, Any], observations: Collection[str], subjects: Collection[str]
) -> Coverage:
    """Coverage from the parsed file. Raises InvalidLexicon where a name is unknown or left out."""
    covered: dict[str, frozenset[str]] = {}
    of_subject: dict[str, tuple[str, ...]] = {}
    of_word: dict[str, tuple[str, ...]] = {}
    for entry in data["scope"]:
        name = entry["name"]
        own = set(entry.get("observations", ()))
        for part in entry.get("parts", ()):
            if part not in covered:
                raise InvalidLexicon(f"coverage.toml: {name!r} has an unknown part {part!r}")
            own |= covered[part]
        covered[name] = frozenset(own)
        for subject in entry.get("subjects", ()):
            if subject not in subjects:
                raise InvalidLexicon(f"coverage.toml: {name!r} has an unknown subject {subject!r}")
            of_subject[subject] = (*of_subject.get(subject, ()), name)
        for word in entry["words"]:
            of_word[word] = (*of_word.get(word, ()), name)
    lasting, outside = frozenset(data["time"]["lasting"]), set(data["time"]["outside"])
    named = outside.union(lasting, *covered.values())
    if unknown := sorted(named - set(observations)):
        raise InvalidLexicon(f"coverage.toml: no such observation: {', '.join(unknown)}")
    if missing := sorted(set(observations) - outside.union(*covered.values())):
        raise InvalidLexicon(
            f"coverage.toml: {', '.join(missing)}: in no scope; give it one, or list it as outside"
        )
    joints, fillers = frozenset(data["joints"]), frozenset(data["fillers"])
    return Coverage(
        any=covered,
        acute={name: found - lasting for name, found in covered.items()},
        of_subject=of_subject,
        of_word=of_word,
        nouns=frozenset(data["nouns"]),
        joints=joints,
        run_words=joints | fillers | of_word.keys(),
        words_of_time=frozenset(data["acute"]),
    )
