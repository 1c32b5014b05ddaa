"""Files of the Hugging Face hub: those in its cache, and downloads that fail at once offline."""

import contextlib
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from vlscore.errors import WeightsNotFound

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SECONDS_TO_CONNECT = 5.0


def is_hub_id(name: str) -> bool:
    """Whether a name has the form organisation/repository.

    >>> is_hub_id("microsoft/BiomedVLP-BioViL-T"), is_hub_id("../vocab"), is_hub_id("/a/b")
    (True, False, False)
    """
    return _HUB_ID.fullmatch(name) is not None


def cached_file(hub_id: str, name: str, *, revision: str | None = None) -> Path | None:
    """A file that the hub's cache holds already; nothing is asked of the network.

    Reads the cache's folders itself: importing the hub's client takes longer than the answer.
    """
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{hub_id.replace('/', '--')}"
    revision = revision or "main"
    reference = folder / "refs" / revision
    try:
        commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
        found = folder / "snapshots" / commit / name
        return found if found.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def download(hub_id: str, name: str, *, revision: str | None = None) -> Path:
    """A file of the hub, now in its cache.

    Raises: WeightsNotFound, at once where the hub cannot be reached.
    """
    from huggingface_hub import constants, hf_hub_download

    found = cached_file(hub_id, name, revision=revision)
    if found is not None:
        return found
    if constants.HF_HUB_OFFLINE or not _is_reachable(constants.ENDPOINT):
        raise WeightsNotFound(
            f"{name} could not be had from huggingface.co/{hub_id}: {reason_offline()}"
        )
    try:
        with _hushed():
            return Path(hf_hub_download(hub_id, name, revision=revision))
    except Exception as error:  # the hub library raises many unrelated types
        raise WeightsNotFound(
            f"{name} could not be had from huggingface.co/{hub_id} ({type(error).__name__}): "
            f"{reason_offline()}"
        ) from None


def reason_offline() -> str:
    """What to look at where the hub cannot be reached."""
    return "is the network there, and HF_HUB_OFFLINE unset? HF_ENDPOINT names a mirror"


def _is_reachable(endpoint: str) -> bool:
    """The hub's client tries again for most of a minute; one connection tells as much."""
    address = urlsplit(endpoint)
    if getproxies().get(address.scheme):
        return True
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), _SECONDS_TO_CONNECT).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Without the client's line for every try."""
    logger = logging.getLogger("huggingface_hub")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
