"""Where the data files that ship beside the code lie, in a checkout or in an installed wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_path(room: str, *parts: str) -> Path:
    """Path of a shipped data file; `room` is a top-level data folder (`weights`, `perturbations`).

    Raises FileNotFoundError naming both places that were searched.
    """
    candidates = [_PACKAGE / "_bundled" / room, _PACKAGE.parent / room]
    for base in candidates:
        path = base.joinpath(*parts)
        if path.exists():
            return path
    searched = " and ".join(str(base) for base in candidates)
    raise FileNotFoundError(f"{'/'.join((room, *parts))} is in neither of {searched}")
