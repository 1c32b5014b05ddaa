"""Signature of a number: all that it depends on, in one line that a paper can print."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vlscore.errors import InvalidSetting

Facts = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class Signature:
    """Everything that must be equal for two numbers to be comparable.

    Attributes:
        subject: what was computed: a metric with its parameters, or "embeddings".
        facts: name and value of everything the number depends on, in the order of printing; a
            value of None marks a flag such as DEMONSTRATION-ENCODER.

    >>> signature = Signature("vlscore").plus(C=3.35, enc="phantom@906f").flagged("DEMONSTRATION")
    >>> print(signature)
    vlscore|C:3.35|enc:phantom@906f|DEMONSTRATION
    >>> Signature.parse(str(signature)) == signature
    True
    >>> print(signature.without("C"))
    vlscore|enc:phantom@906f|DEMONSTRATION
    """

    subject: str
    facts: Facts = ()

    def __post_init__(self) -> None:
        for text in (self.subject, *(part for fact in self.facts for part in fact if part)):
            if "|" in text or "\n" in text:
                raise InvalidSetting(f"a signature holds no '|' and no line break: {text!r}")
        for name, _ in self.facts:
            if ":" in name:
                raise InvalidSetting(f"a fact's name holds no ':': {name!r}")

    def plus(
        self, facts: "Mapping[str, Any] | Signature | None" = None, **more: Any
    ) -> "Signature":
        """Return the signature with further facts; values of None are left out.

        A fact that exists already gets the new value at the same position. Flags stay at the end.
        """
        if isinstance(facts, Signature):
            added = list(facts.facts)
        else:
            further = {**(facts or {}), **more}
            added = [(name, written(value)) for name, value in further.items() if value is not None]
        known = dict(self.facts)
        known.update(added)
        in_order = sorted(known.items(), key=lambda fact: fact[1] is None)
        return Signature(self.subject, tuple(in_order))

    def flagged(self, *flags: str) -> "Signature":
        """Return the signature with flags at its end."""
        return Signature(self.subject, tuple({**dict(self.facts), **dict.fromkeys(flags)}.items()))

    def without(self, *names: str) -> "Signature":
        """Return the signature without some facts or flags."""
        return Signature(self.subject, tuple(fact for fact in self.facts if fact[0] not in names))

    def of(self, subject: str) -> "Signature":
        """Return the same facts for another subject."""
        return Signature(subject, self.facts)

    def get(self, name: str) -> str | None:
        """Return the value of a fact; None if it is absent or a flag."""
        return dict(self.facts).get(name)

    def has(self, name: str) -> bool:
        """Return True if the signature has this fact or flag."""
        return any(known == name for known, _ in self.facts)

    def __iter__(self) -> Iterator[tuple[str, str | None]]:
        return iter(self.facts)

    def __str__(self) -> str:
        shown = [name if value is None else f"{name}:{value}" for name, value in self.facts]
        return "|".join([self.subject, *shown])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json; the value of a flag is true."""
        facts = {name: True if value is None else value for name, value in self.facts}
        return {"subject": self.subject, **facts, "signature": str(self)}

    @classmethod
    def parse(cls, text: str) -> "Signature":
        """Read a printed signature."""
        subject, *parts = text.split("|")
        facts = [part.partition(":") for part in parts]
        return cls(subject, tuple((n, value if colon else None) for n, colon, value in facts))


def difference(one: Signature, other: Signature) -> str:
    """Return the facts in which two signatures differ, in words; empty if they are equal.

    >>> difference(Signature("a").plus(C=1), Signature("a").plus(C=2, v="3"))
    'C: 1 against 2; v: nothing against 3'
    """
    mine, theirs = (
        {"": s.subject, **{name: "yes" if value is None else value for name, value in s.facts}}
        for s in (one, other)
    )
    names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    return "; ".join(
        f"{name or 'of'}: {mine.get(name, 'nothing')} against {theirs.get(name, 'nothing')}"
        for name in names
    )


def written(value: Any) -> str:
    """Format a value for signatures and names of metrics; different numbers get different texts.

    >>> written(20.0), written(1 / 3), written(True), written("exp")
    ('20', '0.3333333333333333', 'true', 'exp')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.10g}"
    return short if float(short) == value else repr(value)
