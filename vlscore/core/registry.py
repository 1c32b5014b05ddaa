"""Registry of a family that users extend: metrics, encoders, kinds of perturbation.

A member is found by name, alias, or as itself. Names are written in any case, with hyphens,
underscores or blanks alike. A member may be registered as "package.module:attribute", which is
imported on first use. A user's member can be named by such a text without being registered.
Packages of users register members by an entry point of the family's group.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from vlscore.core.caller_warning import warn_caller
from vlscore.errors import InvalidSetting, UnknownName, VLScoreError

Member = TypeVar("Member")

_CALL = re.compile(r"\s*([^()]*[^()\s])\s*(?:\((.*)\))?\s*", re.DOTALL)
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_COMMAS_OUTSIDE = re.compile(r",(?![^(]*\))")


class Registry(Generic[Member]):
    """The members of one family by name, in the order in which they were registered.

    Args:
        noun: word for a member in messages, as in "encoder".
        group: group of entry points, as in "vlscore.encoders"; None if users cannot add members.
        check: function that raises InvalidSetting for an object that is no member of the family.
        made: function that returns what `find` returns of a member, such as an object of a class.
        listed_by: command that lists all members, as in "vlscore encoders". The message about an
            unknown name then names it; without it, the message lists all members.

    >>> fruits = Registry[int]("fruit")
    >>> _ = fruits.register(3, "red-cox", aliases=("cox",))
    >>> fruits.find("Red_Cox"), fruits.find("COX")
    (3, 3)
    >>> fruits.find("redcox")
    Traceback (most recent call last):
    vlscore.errors.UnknownName: no fruit is called 'redcox'; did you mean red-cox? Known: red-cox
    """

    def __init__(
        self,
        noun: str,
        *,
        group: str | None = None,
        check: Callable[[Any], None] = lambda member: None,
        made: Callable[[Any], Member] = lambda member: member,
        listed_by: str | None = None,
    ) -> None:
        self._noun, self._group, self._check, self._made = noun, group, check, made
        self._listed_by = listed_by
        self._members: dict[str, Member | str] = {}
        self._plain: dict[str, str] = {}
        self._has_entry_points = False

    @property
    def noun(self) -> str:
        """Word for a member in messages."""
        return self._noun

    def register(
        self, member: Member | str, name: str | None = None, *, aliases: Iterable[str] = ()
    ) -> Member | str:
        """Add a member, or the text "package.module:attribute" that names its place.

        Args:
            name: default: the member's own `name`.
            aliases: other names that find it.

        Returns: the member, so that a class can be registered where it is written.
        Raises: InvalidSetting if a name is taken, or the object is no member of the family.
        """
        if not isinstance(member, str):
            self._check(member)
        known = name if name is not None else getattr(member, "name", None)
        if not isinstance(known, str) or not known:
            raise InvalidSetting(f"a {self._noun} needs a name, a text")
        for each in (known, *aliases):
            holder = self._plain.get(plain_name(each))
            if holder is not None and holder != known:
                raise InvalidSetting(f"the name {each!r} belongs to the {self._noun} {holder}")
        if known in self._members and self._members[known] is not member:
            raise InvalidSetting(f"a {self._noun} called {known!r} is registered already")
        self._members[known] = member
        self._plain.update({plain_name(each): known for each in (known, *aliases)})
        return member

    def unregister(self, name: str) -> None:
        """Remove a member and its aliases. Raises: UnknownName."""
        known = self.name_of(name)
        del self._members[known]
        self._plain = {key: holder for key, holder in self._plain.items() if holder != known}

    def find(self, name: "str | Member | type[Any]") -> Member:
        """Return the member of that name, or the object itself.

        Raises: UnknownName with similar names; InvalidSetting for an object, or a
            "package.module:attribute", that is no member of the family.
        """
        if not isinstance(name, str):
            self._check(name)
            return self._made(name)
        try:
            known = self.name_of(name)
        except UnknownName:
            if _TARGET.fullmatch(name.strip()) is None:
                raise
            return self._made(self._imported(name.strip()))
        found = self._members[known]
        if isinstance(found, str):
            found = self._members[known] = self._imported(found)
        return self._made(found)

    def name_of(self, name: str) -> str:
        """Return the registered name of a name or alias in any spelling. Raises: UnknownName."""
        self._load_entry_points()
        known = self._plain.get(plain_name(name))
        if known is None:
            raise UnknownName(self._unknown(name))
        return known

    def similar_to(self, name: str) -> list[str]:
        """Return the names, four at most, that a wrong name may mean: the likeliest first."""
        self._load_entry_points()
        from difflib import get_close_matches

        wrong = plain_name(name)
        close = get_close_matches(wrong, self._plain, n=3, cutoff=0.6)
        # Two members begin with "medclip"; both are returned.
        starts = [key for key in self._plain if wrong and key.startswith(wrong)]
        return list(dict.fromkeys(self._plain[key] for key in (*starts, *close)))[:4]

    def names(self) -> list[str]:
        """Return all names, in the order of registration; users' members come last."""
        self._load_entry_points()
        return list(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        self._load_entry_points()
        return isinstance(name, str) and plain_name(name) in self._plain

    def __getitem__(self, name: str) -> Member:
        """Return the member of a name, as `find`. Raises: UnknownName, not KeyError."""
        return self.find(name)

    def values(self) -> list[Member]:
        """Return all members, as `items`."""
        return [member for _, member in self.items()]

    def items(self) -> list[tuple[str, Member]]:
        """Return (name, member) of all; imports those that were not imported yet.

        A member that cannot be imported, or is not of the family, is left out with a warning: a
        broken package of a user does not affect the others.
        """
        found = []
        for name in self.names():
            try:
                found.append((name, self.find(name)))
            except VLScoreError as error:
                warn_caller(f"{self._noun} {name} is left out: {error}")
        return found

    def _imported(self, target: str) -> Any:
        module, _, attribute = target.partition(":")
        try:
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except VLScoreError:
            raise
        except Exception as error:
            # A user's module may fail in any way while it is imported.
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, ImportError | AttributeError):
                reason = str(error)
            raise UnknownName(
                f"no {self._noun} is called {target!r}, and it cannot be imported either: {reason}"
                '. Write a registered name, or "package.module:attribute" of a module that Python '
                "finds (its folder may need to be in PYTHONPATH)"
            ) from None
        self._check(found)
        return found

    def _load_entry_points(self) -> None:
        if self._has_entry_points or self._group is None:
            return
        self._has_entry_points = True
        # Imported here: every command loads this file, and few need what takes long to import.
        from importlib.metadata import entry_points

        for point in entry_points(group=self._group):
            # A user's package may not replace a member of this package.
            if plain_name(point.name) not in self._plain:
                self.register(point.value, point.name)

    def _unknown(self, name: str) -> str:
        meant = self.similar_to(name)
        hint = f"did you mean {' or '.join(meant)}? " if meant else ""
        if self._listed_by is not None:
            every = f"`{self._listed_by}` lists all names"
        else:
            every = f"Known: {', '.join(self._members)}"
        return f"no {self._noun} is called {name!r}; {hint}{every}"


def check_derived(noun: str, base: type, name: str) -> Callable[[Any], None]:
    """Return a check that a member is a subclass of a class, or an object of one.

    Args:
        noun: word for a member in the message.
        base: the class.
        name: its name in the message, with its package.
    """

    def check(member: Any) -> None:
        is_class = isinstance(member, type) and issubclass(member, base)
        if not is_class and not isinstance(member, base):
            raise InvalidSetting(
                f"{member!r} is no {noun}: it must be of a class derived from {name}"
            )

    return check


def registered_name(family: Registry[Any], name: object, source: str | Path, option: str) -> str:
    """Return the registered name of a member that a file names.

    Every name that is read from a file goes through this function. The file may be by somebody
    else, so it must not choose code: `Registry.find` would import "package.module:attribute".

    Args:
        source: the file, for the message.
        option: option by which users name a member of their own, as in "--encoder".

    Raises: UnknownName if no member of that name is registered; nothing is imported.

    >>> fruits = Registry[int]("fruit")
    >>> _ = fruits.register(3, "red-cox")
    >>> registered_name(fruits, "Red_Cox", "shop.json", "--fruit")
    'red-cox'
    """
    if isinstance(name, str) and name in family:
        return family.name_of(name)
    raise unregistered(family.noun, name, source, option)


def unregistered(noun: str, name: object, source: str | Path, option: str) -> UnknownName:
    """Return the error for a name in a file that is not registered."""
    return UnknownName(
        f"{source} names the {noun} {name!r}, which is not a registered name. Files can only name "
        "registered ones, because any other name could run code or download a model. If you trust "
        f"it, name it with {option}"
    )


def plain_name(name: str) -> str:
    """Normalize a name for comparison: lower case, hyphens for underscores and blanks.

    >>> plain_name(" Image_Centred cosine ")
    'image-centred-cosine'
    """
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())


def split_call(text: str) -> tuple[str, dict[str, str]]:
    """Split a text into a name and the parameters in parentheses after it.

    Raises: InvalidSetting if the text has another form.

    >>> split_call("bleu-4( smoothing=exp )")
    ('bleu-4', {'smoothing': 'exp'})
    """
    written = _CALL.fullmatch(text)
    if written is None:
        raise InvalidSetting(f'{text!r} is no name; parameters are written "name(setting=value)"')
    values: dict[str, str] = {}
    for part in filter(str.strip, (written[2] or "").split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidSetting(f'parameters are written "name=value", not {part.strip()!r}')
        values[name.strip()] = value.strip()
    return written[1], values


def split_names(text: str) -> list[str]:
    """Split names at commas; commas inside parentheses separate parameters.

    >>> split_names("vlscore, bleu-4(smoothing=exp,tokens=cxr)")
    ['vlscore', 'bleu-4(smoothing=exp,tokens=cxr)']
    """
    return [name.strip() for name in _COMMAS_OUTSIDE.split(text) if name.strip()]
