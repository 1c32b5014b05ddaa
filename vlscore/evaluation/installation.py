"""Checks of the installation on this machine, with advice for what is missing.

Nothing here uses a network. Only the check of the device imports torch. Whatever may be missing is
imported where it is used, so that the other checks run without it.
"""

import os
import platform
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from vlscore.core import __version__, open_cache, usable_cores
from vlscore.errors import VLScoreError

_GIB = 1 << 30


@dataclass(frozen=True)
class Check:
    """One fact of the installation.

    Attributes:
        topic: Libraries, Extras, Device, Encoders, Metrics or Cache.
        fact: what was found, or what is absent.
        advice: what to do; "" where nothing is to do.
        is_needed: whether no command can do without it. Only such a check can fail.
    """

    topic: str
    fact: str
    advice: str = ""
    is_needed: bool = False


@dataclass(frozen=True)
class Installation:
    """All checks of `doctor`, in the order in which they are printed."""

    checks: tuple[Check, ...]

    @property
    def is_ready(self) -> bool:
        """Return whether everything is there that every command needs."""
        return not any(check.is_needed and check.advice for check in self.checks)

    def text(self, width: int = 80) -> str:
        """Return the checks as lines; advice is indented below its fact."""
        lines = [f"vlscore {__version__}, Python {platform.python_version()}, {_system()}"]
        topic = ""
        for check in self.checks:
            heading = check.topic if check.topic != topic else ""
            topic = check.topic
            lines += _filled(check.fact, f"{heading:<11}", width)
            lines += _filled(check.advice, " " * 13, width) if check.advice else []
        end = "Every command can run." if self.is_ready else "Something is missing: see above."
        return "\n".join([*lines, "", end])

    def to_dict(self) -> dict[str, Any]:
        """Return the checks as plain values for json."""
        checks = [asdict(check) for check in self.checks]
        system = {"vlscore": __version__, "python": platform.python_version(), "system": _system()}
        return {**system, "is_ready": self.is_ready, "checks": checks}


def doctor() -> Installation:
    """Return what is installed, what was found, and what to do about the rest.

    Encoders and metrics that cannot be used, and extras that are not installed, have advice. They
    do not make an installation unready.
    """
    topics = {
        "Libraries": _libraries,
        "Device": _device,
        "Encoders": _encoders,
        "Metrics": _metrics,
        "Cache": _cache,
        "Completion": _completion,
    }
    return Installation(
        tuple(check for topic, checks in topics.items() for check in _examined(topic, checks))
    )


def _examined(topic: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Yield the checks of a topic; a failed one where a library is missing that they need."""
    try:
        yield from checks()
    except ImportError as error:
        advice = "install the libraries that are missing"
        yield Check(topic, f"cannot be examined: {error}", advice, is_needed=True)


def _libraries() -> Iterator[Check]:
    """Check what pyproject.toml requires, then each extra."""
    try:
        requirements = distribution("vlscore").requires or []
    except PackageNotFoundError:
        yield Check("Libraries", "vlscore is not installed here", "pip install vlscore", True)
        return
    from packaging.requirements import Requirement

    parsed = [Requirement(text) for text in requirements]
    needed = [each for each in parsed if _extra(each) is None]
    problems = {each.name: problem for each in needed if (problem := _problem(each))}
    found = [f"{each.name} {version(each.name)}" for each in needed if each.name not in problems]
    yield Check("Libraries", ", ".join(found) or "none", is_needed=True)
    for name, problem in problems.items():
        wanted = next(each for each in needed if each.name == name)
        advice = f"pip install '{wanted.name}{wanted.specifier}'"
        yield Check("Libraries", problem, advice, is_needed=True)
    for extra in sorted({each for each in map(_extra, parsed) if each} - {"dev", "docs"}):
        its_own = [each for each in parsed if _extra(each) == extra]
        missing = [problem for each in its_own if (problem := _problem(each))]
        fact = f"{extra}: {', '.join(missing) or 'installed'}"
        yield Check("Extras", fact, f"pip install 'vlscore[{extra}]'" if missing else "")


def _extra(requirement: Any) -> str | None:
    """Return the extra that a requirement belongs to; None for what every command needs."""
    found = re.search(r'extra == "([\w-]+)"', str(requirement.marker or ""))
    return found and found[1]


def _problem(requirement: Any) -> str | None:
    """Return what is wrong with an installed library; None if nothing is."""
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(found, prereleases=True):
        return f"{requirement.name} {found} is not {requirement.specifier}"
    return None


def _device() -> Iterator[Check]:
    """Check which device an encoder would use."""
    try:
        import torch
    except (ImportError, OSError) as error:
        # A wheel for another processor, or a library of the system that is absent.
        advice = "pip install --force-reinstall torch torchvision"
        yield Check("Device", f"PyTorch cannot be imported: {error}", advice, is_needed=True)
        return
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(number)
            yield Check(
                "Device", f"cuda:{number}, {facts.name}, {facts.total_memory / _GIB:.0f} GiB"
            )
        return
    yield Check("Device", f"cpu, {usable_cores()} cores; PyTorch finds no GPU")
    if Path("/dev/nvidiactl").exists() and torch.version.cuda is None:
        advice = "pip install --force-reinstall torch torchvision, from an index with CUDA's build"
        yield Check(
            "Device", "this machine has an NVIDIA GPU; PyTorch was built without CUDA", advice
        )


def _encoders() -> Iterator[Check]:
    """Check which encoders can be loaded without naming a checkpoint."""
    from vlscore.encoders import is_here, published_weights

    place = os.environ.get("VLSCORE_WEIGHTS", "").strip()
    if place and not Path(place).exists():
        yield Check("Encoders", f"VLSCORE_WEIGHTS is {place}", "there is no such file or folder")
    found: dict[str, list[str]] = {}
    for name, entry in published_weights().items():
        if name == "openclip":
            continue
        try:
            if is_here(name):
                kind = "bundled" if entry.status == "bundled" else "found"
            else:
                kind = "not found" if entry.hub is None else "can be downloaded"
        except VLScoreError as error:
            yield Check("Encoders", name, str(error))
            continue
        found.setdefault(kind, []).append(name)
    advice = {
        "can be downloaded": "vlscore weights fetch NAME",
        "not found": "vlscore weights list says how to get each",
    }
    for kind, names in found.items():
        yield Check("Encoders", f"{kind}: {', '.join(names)}", advice.get(kind, ""))


def _metrics() -> Iterator[Check]:
    """Check which metrics can run with their default parameters."""
    from vlscore.metrics import METRICS

    # A composite is a file of the user's.
    known = {name: metric for name, metric in METRICS.items() if name != "composite"}
    reasons = {name: metric.missing() for name, metric in known.items()}
    lacking = {name: reason for name, reason in reasons.items() if reason}
    yield Check("Metrics", f"{len(known) - len(lacking)} of {len(known)} can run")
    groups: dict[str, list[str]] = {}
    for name, reason in lacking.items():
        first = [each for each in lacking if f"{each}: " in reason]
        if first:
            reason = f"can run when {', '.join(first)} can"
        # Metrics of one library have one message, which names the metric in an example.
        groups.setdefault(reason.replace(name, "METRIC"), []).append(name)
    for reason, names in groups.items():
        yield Check("Metrics", ", ".join(names), reason.replace("METRIC", names[0]))


def _cache() -> Iterator[Check]:
    """Check whether results can be stored between runs."""
    cache = open_cache()
    if cache is None:
        yield Check("Cache", "off, by VLSCORE_CACHE or because there is no home folder")
        return
    folder = cache.folder
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        import shutil

        free = shutil.disk_usage(existing).free / _GIB
        yield Check("Cache", f"{folder}, {free:.0f} GiB free")
    else:
        yield Check("Cache", f"{folder} cannot be written", "set VLSCORE_CACHE to another folder")


def _completion() -> Iterator[Check]:
    yield Check(
        "Completion", "of commands and options in your shell", "vlscore --install-completion"
    )


def _system() -> str:
    return f"{platform.system()} {platform.machine()}"


def _filled(text: str, beginning: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=beginning,
        subsequent_indent=" " * len(beginning),
        break_long_words=False,
        break_on_hyphens=False,
    )
