"""Registry of objectives. A new objective is one file under `objectives` and one line here.

This file imports torch only when an objective is used.
"""

import inspect
from typing import TYPE_CHECKING, Any

from vlscore.core import Registry, split_call
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.training.objective import Objective


# Set by the encoder, so they are not settings of the user.
_DIMENSIONS = ("dim", "local_dim")


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
    ("biovil", "local_losses:Biovil"),
    ("medclip", "contrastive:Medclip"),
    ("judging", "judging:Judging"),
):
    OBJECTIVES.register(f"vlscore.training.objectives.{_target}", _name)


def find_objective(
    name: "str | Objective", *, dim: int, local_dim: int | None = None, **settings: Any
) -> "Objective":
    """Return an objective by name, made for vectors of these lengths; or the objective itself.

    Args:
        name: a name in `OBJECTIVES`, "package.module:Class" for a user's own, or either with
            settings in parentheses: "convirt(temperature=0.07)".
        dim: length of the encoder's global vectors.
        local_dim: length of its vectors of places and words; None if it has none.
        settings: keywords of the objective, instead of parentheses.

    Raises: UnknownName; InvalidSetting for an unknown setting or an invalid value, and for a local
        objective if the encoder has no local vectors.
    """
    if not isinstance(name, str):
        if settings:
            raise InvalidSetting(
                f"the objective {name.name} is made already; leave out {', '.join(settings)}"
            )
        objective = name
    else:
        plain_name, written = split_call(name)
        member = OBJECTIVES.find(plain_name)
        keywords = inspect.signature(member).parameters
        given = {"dim": dim, "local_dim": local_dim}
        chosen = {key: _value(member.name, keywords, key, text) for key, text in written.items()}
        for key in settings:
            _known(member.name, keywords, key)
        options = chosen | settings | {key: given[key] for key in _DIMENSIONS if key in keywords}
        if local_dim is None and "local_dim" in keywords:
            raise _no_local_vectors(member.name)
        objective = member(**options)
    if objective.local and local_dim is None:
        raise _no_local_vectors(objective.name)
    return objective


def _no_local_vectors(name: str) -> InvalidSetting:
    return InvalidSetting(
        f"the objective {name} compares places with words, but this encoder gives one vector for "
        "an image and one for a report: choose another encoder, or convirt, siglip, medclip, "
        "biovil or judging"
    )


def _known(name: str, keywords: Any, key: str) -> inspect.Parameter:
    found: inspect.Parameter | None = None if key in _DIMENSIONS else keywords.get(key)
    if found is None:
        known = ", ".join(keyword for keyword in keywords if keyword not in _DIMENSIONS)
        raise InvalidSetting(f"the objective {name} has no setting {key!r}; it has {known}")
    return found


def _value(name: str, keywords: Any, key: str, text: str) -> Any:
    """Convert a setting from its text to the type of its default."""
    default = _known(name, keywords, key).default
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        return type(default)(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(type(default))
        raise InvalidSetting(
            f"{name}'s {key} is {kind or type(default).__name__}, not {text!r}"
        ) from None
