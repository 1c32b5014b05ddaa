"""Baselines by name; a new one is a subclass of Baseline and one line here."""

from typing import Any

from vlscore.core import Registry
from vlscore.errors import InvalidSetting
from vlscore.evaluation.baselines.baseline_base import Baseline, BaselineSettings

AnyBaseline = str | Baseline | type[Baseline]


def _check(member: Any) -> None:
    is_class = isinstance(member, type) and issubclass(member, Baseline)
    if not is_class and not isinstance(member, Baseline):
        raise InvalidSetting(
            f"{member!r} is no baseline: it must be of a class derived from "
            "vlscore.evaluation.Baseline"
        )


BASELINES: Registry[Any] = Registry("baseline", group="vlscore.baselines", check=_check)

for _name, _target in (
    ("constant", "frequent_reports:Constant"),
    ("normal", "frequent_reports:Normal"),
    ("random", "frequent_reports:Random"),
    ("top-words", "frequent_reports:TopWords"),
    ("top-sentences", "frequent_reports:TopSentences"),
    ("nearest-image", "nearest_image:NearestImage"),
    ("templates", "report_templates:Templates"),
):
    BASELINES.register(f"vlscore.evaluation.baselines.{_target}", _name)


def find_baseline(name: AnyBaseline, settings: BaselineSettings | None = None) -> Baseline:
    """Return the baseline of that name with its settings, or the object itself.

    Raises: UnknownName with similar names; InvalidSetting where a setting is not one of its own.

    >>> find_baseline("Top_Words").facts()
    {'seed': '0', 'first': '100'}
    """
    found = BASELINES.find(name)
    if isinstance(found, Baseline):
        return found
    chosen = settings or BaselineSettings()
    chosen.used(found.uses, found.name)
    made: Baseline = found(chosen)
    return made
