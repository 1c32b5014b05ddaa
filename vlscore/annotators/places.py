"""Where annotators' files lie on this machine; nothing is loaded, and nothing is fetched."""

from pathlib import Path

from vlscore.encoders.blocks.files import VOCABULARY_FILES, checkpoint_in, vocabulary_file
from vlscore.errors import WeightsNotFound

ARCHIVES = (".tar.gz", ".tgz")
CONFIG, WEIGHTS = "config.json", "weights.th"
_CHEXBERT = ("chexbert.pth",)
_VOCABULARY_OF_CHEXBERT = "bert-base-uncased"


def chexbert_files(weights: str | Path, vocabulary: str | Path | None) -> tuple[Path, Path]:
    """Checkpoint and vocabulary; nothing is loaded or fetched. Raises WeightsNotFound."""
    path = checkpoint_in(Path(weights).expanduser(), _CHEXBERT)
    given = None if vocabulary is None else Path(vocabulary).expanduser()
    if given is not None and not given.exists():
        # Any other text would be taken for the name of a repository to fetch from.
        raise WeightsNotFound(f"{given}: no such vocabulary file or folder")
    return path, vocabulary_file(given, beside=path, hub_id=_VOCABULARY_OF_CHEXBERT)


def radgraph_files(weights: str | Path, vocabulary: str | Path | None) -> tuple[Path, Path]:
    """Archive and vocabulary; nothing is loaded or fetched. Raises WeightsNotFound."""
    path = Path(weights).expanduser()
    check_place(path)
    place = Path(vocabulary).expanduser() if vocabulary is not None else path
    if place.is_file() and vocabulary is not None:
        return path, place
    folder = place if place.is_dir() else place.parent
    for name in VOCABULARY_FILES:
        if (folder / name).is_file():
            return path, folder / name
    raise WeightsNotFound(
        f"no {' or '.join(VOCABULARY_FILES)} lies in {folder}; the archive does not hold it: give "
        "that of the BERT which the model stands on, which its config.json names, as "
        "vocabulary=PATH"
    )


def is_archive(path: Path) -> bool:
    """Whether a path is named as an archive."""
    return path.name.endswith(ARCHIVES)


def check_place(path: Path) -> None:
    """Raises WeightsNotFound where there is no archive, nor a folder of one; nothing is read."""
    if path.is_dir():
        absent = [name for name in (CONFIG, WEIGHTS, "vocabulary") if not (path / name).exists()]
        if absent:
            raise WeightsNotFound(f"{path} holds no RadGraph model: no {', '.join(absent)}")
    elif not path.is_file():
        raise WeightsNotFound(f"{path}: no such RadGraph archive or folder")
    elif not is_archive(path):
        raise WeightsNotFound(
            f"{path} is no RadGraph archive: give the .tar.gz as its authors publish it, or the "
            f"folder with {CONFIG}, {WEIGHTS} and vocabulary that it unpacks to"
        )
