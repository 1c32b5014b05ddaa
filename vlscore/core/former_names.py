"""Former names, and warnings that point to the user's line.

Importing a room or module by its former name works and raises a DeprecationWarning: `from
vlscore.scorer import Scorer` finds `vlscore.metrics.Scorer`.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Former name below `vlscore` -> module that has its names now.
FORMER_NAMES = {
    "alignment": "evaluation",
    "annotators": "metrics",
    "cache": "core",
    "calibration": "evaluation",
    "comparison": "evaluation",
    "display": "stats",
    "images": "data",
    "index": "retrieval",
    "labelling": "evaluation",
    "meta": "evaluation",
    "oracle": "retrieval",
    "phantom": "data",
    "reports": "data",
    "scorer": "metrics",
    "search": "retrieval",
    "similarity": "metrics",
    "studies": "data",
    "encoders.biovil": "encoders.models.biovil",
    "encoders.chexzero": "encoders.models.chexzero",
    "encoders.contract": "testing",
    "encoders.convirt": "encoders.models.convirt",
    "encoders.features": "encoders.base",
    "encoders.gloria": "encoders.models.gloria",
    "encoders.in_space": "encoders.models.in_space",
    "encoders.limitr": "encoders.models.limitr",
    "encoders.medclip": "encoders.models.medclip",
    "encoders.mgca": "encoders.models.mgca",
    "encoders.openclip": "encoders.models.openclip",
    "encoders.phantom": "encoders.models.small",
    "encoders.phantom_supervised": "encoders.models.phantom_supervised",
    "encoders.small": "encoders.models.small",
    "images.views": "data.images.dicom_header",
    "metrics.contract": "testing",
    "perturb.contract": "testing",
    "phantom.__main__": "data.phantom.__main__",
    "phantom.corpus": "data.phantom.phantom_pairs",
    "phantom.dataset": "data.phantom.phantom_pairs",
    "phantom.render": "data.phantom.render",
    "reports.cleaning": "data.sentences",
    "training.starting": "training.start",
}
_PACKAGE = "vlscore."


def find_former_names() -> None:
    """Let Python's import find modules by their former names."""
    if not any(isinstance(finder, FormerNameFinder) for finder in sys.meta_path):
        sys.meta_path.append(FormerNameFinder())  # type: ignore[arg-type]


class FormerNameFinder:
    """Finder of modules by former names; Python asks it last, after all other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        former = fullname.removeprefix(_PACKAGE)
        if not fullname.startswith(_PACKAGE) or former not in FORMER_NAMES:
            return None
        now = _PACKAGE + FORMER_NAMES[former]
        if former.endswith("__main__"):
            # `python -m` runs the file itself.
            from importlib.util import find_spec, spec_from_file_location

            found = find_spec(now)
            return spec_from_file_location(fullname, found.origin) if found else None
        loader: Any = _FormerNameLoader(now)
        return ModuleSpec(fullname, loader, is_package="." not in former)


class _FormerNameLoader:
    def __init__(self, now: str) -> None:
        self._now = now

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        now = self._now
        warnings.warn(
            f"{module.__name__} is now {now}; the next release removes the former name",
            DeprecationWarning,
            stacklevel=2,
        )

        def find_name(name: str) -> Any:
            return getattr(import_module(now), name)

        module.__getattr__ = find_name  # type: ignore[method-assign]


# Room -> former name of a class or function -> its name today.
FORMER_CLASSES = {
    "data": {"Kind": "FindingKind", "pair_reports": "pair", "write_dataset": "dataset"},
    "evaluation": {
        "judge_table": "judge",
        "label_table": "findings",
        "make_sheets": "ratings_make",
        "read_reading_study": "ratings_read",
        "retrieve": "retrieval",
        "run_alignment": "align",
        "run_controlled": "controlled",
        "run_failure_modes": "failure_modes",
        "run_sensitivity": "sensitivity",
    },
    "findings": {"Change": "TemporalChange"},
    "perturb": {"perturb_table": "perturb"},
    "retrieval": {
        "Objective": "SearchObjective",
        "Sought": "SearchTarget",
        "add_to_index": "index_add",
        "build_index": "index_build",
        "find_oracles": "oracle",
    },
    "training": {"Shown": "StepProgress"},
}


def with_former_names(room: str, find_name: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a room that also finds names of earlier releases.

    Args:
        room: name of the package, as in "vlscore.data".
        find_name: the room's `__getattr__`.
    """
    former = FORMER_CLASSES[room.removeprefix(_PACKAGE)]

    def find(name: str) -> Any:
        if name in former:
            warnings.warn(
                f"{room}.{name} is now {room}.{former[name]}; the next release removes the former "
                "name",
                DeprecationWarning,
                stacklevel=2,
            )
            name = former[name]
        return find_name(name)

    return find


def with_former_calls(
    is_former: Callable[..., bool], former: Callable[..., Any]
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator of a function whose name belonged to another one in earlier releases.

    A call that was meant for the other function raises a DeprecationWarning and is passed on to it.

    Args:
        is_former: decides by the arguments of a call whether it was meant for the other function.
        former: the other function.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(function)
        def called(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
            if not is_former(*args, **keywords):
                return function(*args, **keywords)
            warn_caller(
                f"{function.__name__} with these arguments is now {former.__name__}; the next "
                f"release removes the former name, and {function.__name__} writes a folder",
                DeprecationWarning,
            )
            found: Result = former(*args, **keywords)
            return found

        return called

    return decorate


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside this package.

    Python shows a warning once for each line that it points to: a line inside the package would
    show the first user's warning and hide all later ones.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "vlscore"
