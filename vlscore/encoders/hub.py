"""Downloads from the Hugging Face hub, and what its cache on this machine holds.

HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE are respected. A download fails at once without a network.
"""

import contextlib
import fnmatch
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from vlscore.errors import WeightsNotFound

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SECONDS_TO_CONNECT = 5.0
OFFLINE = "is the network there, and HF_HUB_OFFLINE unset? HF_ENDPOINT names a mirror"


def is_hub_id(name: str) -> bool:
    """Return True if a name has the form organisation/repository.

    >>> is_hub_id("microsoft/BiomedVLP-BioViL-T"), is_hub_id("../vocab"), is_hub_id("/a/b")
    (True, False, False)
    """
    return _HUB_ID.fullmatch(name) is not None


def cached_file(
    hub_id: str, name: str, *, revision: str | None = None, cache_dir: Path | None = None
) -> Path | None:
    """Return a file in the hub's cache, else None; the network is not used.

    Args: cache_dir: folder of the cache; default: HF_HOME's.
    """
    from huggingface_hub import constants

    # Most are not there, and the import below takes tenths of a second.
    held = cache_dir or constants.HF_HUB_CACHE
    if not Path(held, f"models--{hub_id.replace('/', '--')}").is_dir():
        return None
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(hub_id, name, cache_dir, revision)
    except ValueError:  # a configuration may name anything
        return None
    return Path(found) if isinstance(found, str) else None


def download(hub_id: str, name: str, *, revision: str | None = None) -> Path:
    """Download a file of the hub into its cache; return its path.

    Raises: WeightsNotFound, at once if the hub cannot be reached.
    """
    from huggingface_hub import hf_hub_download

    found = cached_file(hub_id, name, revision=revision)
    if found is not None:
        return found
    with asking_hub(hub_id, name):
        return Path(hf_hub_download(hub_id, name, revision=revision))


@contextlib.contextmanager
def asking_hub(hub_id: str, what: str) -> Iterator[None]:
    """Raise WeightsNotFound for whatever the hub's client raises inside the block.

    It is raised at once if the hub cannot be reached.
    """
    from huggingface_hub import constants

    said = f"{what} could not be downloaded from huggingface.co/{hub_id}"
    if constants.HF_HUB_OFFLINE or not _is_reachable(constants.ENDPOINT):
        raise WeightsNotFound(f"{said}: {OFFLINE}")
    try:
        yield
    except Exception as error:  # the hub library raises many unrelated types
        raise WeightsNotFound(f"{said} ({type(error).__name__}): {OFFLINE}") from None


def _is_reachable(endpoint: str) -> bool:
    """Try one connection, because the hub's client repeats its attempts for most of a minute."""
    address = urlsplit(endpoint)
    if getproxies().get(address.scheme):
        return True
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), _SECONDS_TO_CONNECT).close()
    except OSError:
        return False
    return True


# The files of a transformers model that are read; weights in one format.
_WEIGHT_PATTERNS = ("*.safetensors", "pytorch_model*.bin")
_PART_PATTERNS = ("*.json", "*.model", "vocab.txt", "merges.txt")


def download_model(hub_id: str, folder: Path, *, revision: str | None = None) -> list[Path]:
    """Download the files of a transformers model into a folder; return their paths.

    Raises: WeightsNotFound, at once if the hub cannot be reached.
    """
    from huggingface_hub import hf_hub_download, list_repo_files

    with asking_hub(hub_id, "the list of files"):
        listed = list_repo_files(hub_id, revision=revision)
    held = [name for name in listed if "/" not in name]
    matching = [fnmatch.filter(held, pattern) for pattern in _WEIGHT_PATTERNS]
    wanted = next((names for names in matching if names), [])
    wanted += [name for pattern in _PART_PATTERNS for name in fnmatch.filter(held, pattern)]
    paths = []
    for name in sorted(wanted):
        with asking_hub(hub_id, name):
            paths.append(Path(hf_hub_download(hub_id, name, revision=revision, local_dir=folder)))
    return paths
