"""Whether NLTK has a corpus on this machine, without importing NLTK, which takes seconds."""

import os
import sys
from pathlib import Path


def has_corpus(name: str) -> bool:
    """Whether a folder that NLTK searches holds the corpus, unpacked or not."""
    loaded = sys.modules.get("nltk.data")
    folders = loaded.path if loaded is not None else _searched_folders()
    return any(
        (Path(folder) / "corpora" / file).exists()
        for folder in folders
        for file in (name, f"{name}.zip")
    )


def how_to_get(name: str) -> str:
    """What to do where a corpus is absent; nothing is fetched unasked."""
    return (
        f"python -m nltk.downloader {name}; on a machine without a network, set NLTK_DATA to a "
        f"folder that holds corpora/{name}"
    )


def _searched_folders() -> list[str]:
    """As in nltk.data, whose documentation lists them."""
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    places = [os.path.expanduser("~"), *(f"{sys.prefix}{part}" for part in ("", "/share", "/lib"))]
    places += ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    if sys.platform == "win32":
        places += [os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\"]
    return [*named, *(os.path.join(place, "nltk_data") for place in places)]
