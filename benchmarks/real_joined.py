"""Encoders of real_encoders.py, joined: the encoder `ensemble` of several seeds or kinds.

`vlscore encoders ensemble` says what it is. Any command uses it:

    vlscore retrieval iu_test.jsonl --encoder ensemble --weights out/real/joined/convirt-3

Encoders of both views need --views frontal+lateral. Their report towers may read words or findings.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from real_data import open_encoder

from vlscore.embedding import StudyEmbedder

# Encoders of both views that read words, and findings.
BOTH_READINGS = {
    "both readings": ("convirt-views", "convirt-findings"),
    "both readings from ImageNet": ("convirt-imagenet-words", "convirt-imagenet"),
}


def trained(work: Path) -> dict[str, list[Path]]:
    """Return the final encoders of real_encoders.py by name; several seeds each."""
    found: dict[str, list[Path]] = defaultdict(list)
    for folder in sorted((work / "encoders").glob("*-seed*")):
        if (folder / "card.json").is_file():
            found[folder.name.rpartition("-seed")[0]].append(folder)
    return dict(found)


def joined_encoders(work: Path) -> dict[str, Path]:
    """Make every joined encoder: the seeds of each final encoder, and those of both readings.

    Returns: the name in tables -> the folder.
    """
    found = trained(work)
    groups = {name: folders for name, folders in found.items() if len(folders) > 1}
    for title, names in BOTH_READINGS.items():
        if all(name in found for name in names):
            groups[title] = [folder for name in names for folder in found[name]]
    return dict(join(name, folders, work / "joined") for name, folders in groups.items())


def join(name: str, folders: Sequence[Path], place: Path) -> tuple[str, Path]:
    """Make a folder for the encoder `ensemble` with a link to each trained encoder.

    Returns: the name of the joined encoder in tables, and its folder in `place`.
    """
    out = place / f"{name.replace(' ', '-')}-{len(folders)}"
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        link = out / folder.name
        if not link.is_symlink():
            link.symlink_to(folder.resolve(), target_is_directory=True)
    return f"{name}, {len(folders)} joined", out


def load_joined(folder: Path) -> StudyEmbedder:
    """Return the joined encoder of a folder."""
    return open_encoder(folder, "ensemble")
