"""Registry of objectives. A new objective is one file under `objectives` and one line here.

This file imports torch only when an objective is used.
"""

import inspect
from typing import TYPE_CHECKING, Any

from vlscore.core import Registry, split_call
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.training.objective import Objective


def _check_member(member: Any) -> None:
    from vlscore.training.objective import Objective

    if not (isinstance(member, type) and issubclass(member, Objective)):
        raise InvalidSetting(
            f"{member!r} is no objective: give a subclass of vlscore.training.objective.Objective"
        )


OBJECTIVES = Registry["type[Objective]"](
    "objective", group="vlscore.objectives", check=_check_member
)
for _name, _target in (
    ("convirt", "contrastive:Convirt"),
    ("siglip", "contrastive:Siglip"),
    ("gloria", "local_losses:Gloria"),
    ("limitr", "limitr_loss:Limitr"),
    ("mgca", "mgca_loss:Mgca"),
    ("biovil", "contrastive:Biovil"),
    ("medclip", "contrastive:Medclip"),
    ("judging", "judging:Judging"),
):
    OBJECTIVES.register(f"vlscore.training.objectives.{_target}", _name)


def find_objective(name: str, *, dim: int, local_dim: int | None = None) -> "Objective":
    """Return an objective by name, made for vectors of these lengths.

    Args:
        name: a name in `OBJECTIVES`, "package.module:Class" for a user's own, or either with
            settings in parentheses: "convirt(temperature=0.07)".
        dim: length of the encoder's global vectors.
        local_dim: length of its vectors of places and words; None if it has none.

    Raises: UnknownName; InvalidSetting for an unknown setting or an invalid value, and for a local
        objective if the encoder has no local vectors.
    """
    plain_name, written = split_call(name)
    member = OBJECTIVES.find(plain_name)
    keywords = dict(inspect.signature(member).parameters)
    # Set by the encoder, so they are not settings of the user.
    lengths = {"dim": dim, "local_dim": local_dim}
    sizes = {key: value for key, value in lengths.items() if keywords.pop(key, None) is not None}
    if local_dim is None and (member.local or "local_dim" in sizes):
        raise InvalidSetting(
            f"the objective {name} compares places with words, but this encoder gives one vector "
            "for an image and one for a report: choose another encoder, or convirt, siglip, "
            "medclip, biovil or judging"
        )
    for key in written:
        if key not in keywords:
            raise InvalidSetting(
                f"the objective {member.name} has no setting {key!r}; it has {', '.join(keywords)}"
            )
    options = {key: _value(member.name, keywords[key], text) for key, text in written.items()}
    return member(**options, **sizes)


def _value(name: str, keyword: inspect.Parameter, text: str) -> Any:
    """Convert a setting from its text to the type of its default."""
    default = keyword.default
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        return type(default)(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(type(default))
        raise InvalidSetting(
            f"{name}'s {keyword.name} is {kind or type(default).__name__}, not {text!r}"
        ) from None
