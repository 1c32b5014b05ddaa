"""Checks of the installation on this machine, with advice for what is missing.

Nothing here uses a network. Only the check of the device imports torch. Whatever may be missing is
imported where it is used, so that the other checks run without it.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, NamedTuple

from vlscore.core import name_conflict, open_cache, usable_cores
from vlscore.errors import VLScoreError

_GIB = 1 << 30
_TORCH_ADVICE = "pip install --force-reinstall torch torchvision"


class Check(NamedTuple):
    """One fact of the installation.

    Attributes:
        topic: Package, Libraries, Extras, Device, Encoders, Networks, Metrics or Cache.
        fact: what was found, or what is absent.
        advice: what to do; "" where nothing is to do.
        is_needed: whether no command can do without it. Only such a check can fail.
    """

    topic: str
    fact: str
    advice: str = ""
    is_needed: bool = False

    @property
    def has_failed(self) -> bool:
        """Return whether something is missing that every command needs."""
        return self.is_needed and bool(self.advice)


def doctor() -> list[Check]:
    """Return what is installed, what was found, and what to do about the rest.

    Encoders and metrics that cannot be used, and extras that are not installed, have advice. They
    do not make an installation unready.
    """
    topics: dict[str, Callable[[], Iterator[Check]]] = {
        "Package": _package,
        "Libraries": _libraries,
        "Device": _device,
        "Encoders": _encoders,
        "Networks": _networks,
        "Metrics": _metrics,
        "Cache": _cache,
    }
    found: list[Check] = []
    for topic, checks in topics.items():
        try:
            found += checks()
        except ImportError as error:
            advice = "install the libraries that are missing"
            found.append(Check(topic, f"cannot be examined: {error}", advice, is_needed=True))
    shell = "of commands and options in your shell"
    return [*found, Check("Completion", shell, "vlscore --install-completion")]


def _package() -> Iterator[Check]:
    """Check that no other package of the same name has overwritten files."""
    if (conflict := name_conflict()) is not None:
        yield Check("Package", *conflict, is_needed=True)
        return
    try:
        other = distribution("vlscore-cxr")
    except PackageNotFoundError:
        return
    yield Check(
        "Package",
        f"vlscore-cxr {other.version}, which is imported as vlscore, too, is installed in another "
        "folder; Python imports the first one on its path",
        "pip uninstall -y vlscore-cxr",
    )


def _libraries() -> Iterator[Check]:
    """Check what pyproject.toml requires, then each extra."""
    try:
        requirements = distribution("vlscore").requires or []
    except PackageNotFoundError:
        yield Check("Libraries", "vlscore is not installed here", "pip install vlscore", True)
        return
    from packaging.requirements import Requirement

    extras: dict[str, list[str]] = {}
    found, missing = [], []
    for requirement in map(Requirement, requirements):
        problem = _problem(requirement)
        extra = re.search(r'extra == "([\w-]+)"', str(requirement.marker or ""))
        if extra is not None:
            extras.setdefault(extra[1], []).extend([problem] if problem else [])
        elif problem:
            advice = f"pip install '{requirement.name}{requirement.specifier}'"
            missing.append(Check("Libraries", problem, advice, is_needed=True))
        else:
            found.append(f"{requirement.name} {version(requirement.name)}")
    yield Check("Libraries", ", ".join(found) or "none", is_needed=True)
    yield from missing
    for name in sorted(extras.keys() - {"dev", "docs"}):
        advice = f"pip install 'vlscore[{name}]'" if extras[name] else ""
        yield Check("Extras", f"{name}: {', '.join(extras[name]) or 'installed'}", advice)


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
        yield Check("Device", f"PyTorch cannot be imported: {error}", _TORCH_ADVICE, True)
        return
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        facts = torch.cuda.get_device_properties(number)
        yield Check("Device", f"cuda:{number}, {facts.name}, {facts.total_memory / _GIB:.0f} GiB")
    if not torch.cuda.is_available():
        yield Check("Device", f"cpu, {usable_cores()} cores; PyTorch finds no GPU")
        if Path("/dev/nvidiactl").exists() and torch.version.cuda is None:
            fact = "this machine has an NVIDIA GPU; PyTorch was built without CUDA"
            yield Check("Device", fact, f"{_TORCH_ADVICE}, from an index with CUDA's build")


def _encoders() -> Iterator[Check]:
    """Check which encoders can be loaded without naming a checkpoint."""
    from vlscore.encoders import published_weights

    place = os.environ.get("VLSCORE_WEIGHTS", "").strip()
    if place and not Path(place).exists():
        yield Check("Encoders", f"VLSCORE_WEIGHTS is {place}", "there is no such file or folder")
    kinds = {}
    for name, entry in published_weights().items():
        if name != "openclip":
            there = "bundled" if entry.status == "bundled" else "found"
            kinds[name] = there, "not found" if entry.hub is None else "can be downloaded"
    yield from _files("Encoders", kinds)


def _networks() -> Iterator[Check]:
    """Check which networks of metrics are on this machine."""
    from vlscore.encoders import network_cards

    yield from _files("Networks", dict.fromkeys(network_cards(), ("found", "can be downloaded")))


def _files(topic: str, kinds: Mapping[str, tuple[str, str]]) -> Iterator[Check]:
    """Check which files of weights are here; args: name -> what it is where it is here, or not."""
    from vlscore.encoders import is_here

    found: dict[str, list[str]] = {}
    for name, (there, absent) in kinds.items():
        try:
            found.setdefault(there if is_here(name) else absent, []).append(name)
        except VLScoreError as error:
            yield Check(topic, name, str(error))
    advice = {
        "can be downloaded": "vlscore weights fetch NAME",
        "not found": "vlscore weights list says how to get each",
    }
    for kind, names in found.items():
        yield Check(topic, f"{kind}: {', '.join(names)}", advice.get(kind, ""))


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
        free = shutil.disk_usage(existing).free / _GIB
        yield Check("Cache", f"{folder}, {free:.0f} GiB free")
    else:
        yield Check("Cache", f"{folder} cannot be written", "set VLSCORE_CACHE to another folder")
