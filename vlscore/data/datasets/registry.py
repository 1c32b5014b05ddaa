"""Data sets by name; a new one is one file with a subclass of Dataset and one line here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.core import Registry
from vlscore.data.datasets.dataset_base import (
    ALL_ABSENT,
    FILM_ABSENT,
    NO_IMAGE,
    NO_TEXT,
    TWICE,
    Dataset,
    DatasetChoice,
    DatasetStudy,
    Film,
    Omission,
)
from vlscore.data.datasets.dataset_files import DatasetFiles
from vlscore.errors import InvalidSetting

AnyDataset = str | Dataset | type[Dataset]


def _check(member: Any) -> None:
    is_class = isinstance(member, type) and issubclass(member, Dataset)
    if not is_class and not isinstance(member, Dataset):
        raise InvalidSetting(
            f"{member!r} is no data set: it must be of a class derived from vlscore.data.Dataset"
        )


DATASETS: Registry[Any] = Registry("data set", group="vlscore.datasets", check=_check)

for _name, _target, _aliases in (
    ("mimic-cxr-jpg", "mimic_cxr_jpg:MimicCxrJpg", ()),
    ("mimic-cxr", "mimic_cxr:MimicCxr", ()),
    ("iu-openi", "iu_openi:IuOpenI", ("open-i", "openi")),
    ("iu-kaggle", "iu_kaggle:IuKaggle", ()),
    ("r2gen", "r2gen:R2Gen", ("iu-r2gen",)),
    ("squared-films", "squared_films:SquaredFilms", ()),
    ("chexpert-plus", "chexpert_plus:CheXpertPlus", ()),
    ("padchest", "padchest:PadChest", ()),
    ("rexgradient-160k", "rexgradient:ReXGradient", ("rexgradient",)),
    ("rexrank", "rexrank:ReXrankManifest", ()),
):
    DATASETS.register(f"vlscore.data.datasets.{_target}", _name, aliases=_aliases)


def find_dataset(name: AnyDataset) -> Dataset:
    """Return the data set of that name, or the object itself; a class is instantiated.

    Raises: UnknownName with similar names; InvalidSetting for an object that is no data set.

    >>> find_dataset("Open-I").name
    'iu-openi'
    """
    found = DATASETS.find(name)
    made: Dataset = found() if isinstance(found, type) else found
    return made


_TEXTS = ("findings", "impression")


@dataclass(frozen=True)
class DatasetReading:
    """The studies of one data set; each iteration reads its files again.

    Attributes:
        dataset: data set whose layout the files have.
        files: its folders.
        choice: parts of it that are wanted.
        check_files: whether each film's file must exist on the disk.
    """

    dataset: Dataset
    files: DatasetFiles
    choice: DatasetChoice
    check_files: bool = True

    @property
    def film_root(self) -> Path:
        """Folder that the films' paths start from."""
        return self.files.films

    def __iter__(self) -> Iterator[DatasetStudy | Omission]:
        """Yield usable studies, with their films' paths on the disk, and what is left out.

        Raises: InvalidTable if the files that list the studies are absent or cannot be read.
        """
        seen: set[str] = set()
        for each in self.dataset.studies(self.files):
            if isinstance(each, Omission):
                yield each
            elif not self.choice.splits or each.split in self.choice.splits:
                yield from self._usable(each, seen)

    def _usable(self, study: DatasetStudy, seen: set[str]) -> Iterator[DatasetStudy | Omission]:
        omission = Omission(study.file, study.row, study.id, "study", TWICE)
        if study.id in seen:
            yield omission
            return
        seen.add(study.id)
        if not any(name in study.sections for name in _TEXTS):
            yield replace(omission, reason=NO_TEXT)
            return
        films = []
        for film in study.films:
            found = self._found(film)
            if found is None:
                yield replace(omission, what="film", reason=FILM_ABSENT, detail=film.path)
            else:
                films.append(found)
        if not films and self.choice.needs_films:
            yield replace(omission, reason=ALL_ABSENT if study.films else NO_IMAGE)
            return
        yield replace(study, films=tuple(films))

    def _found(self, film: Film) -> Film | None:
        if not self.check_files:
            return film
        path = self.files.film(film.path, self.dataset.film_folders, self.dataset.film_suffixes)
        if path is None:
            return None
        return replace(film, path=path.relative_to(self.files.films).as_posix())


def read_dataset(
    name: str | Dataset,
    folder: str | Path,
    *,
    films: str | Path | None = None,
    reports: str | Path | None = None,
    split: str | Iterable[str] = (),
    needs_films: bool = True,
    check_files: bool = True,
) -> DatasetReading:
    """Open a published data set; docs/datasets.md lists the names and the layouts.

    Args:
        name: name of the data set, or a `Dataset`.
        folder: folder of its files, or its single file.
        films: folder that the films' paths start from; default: `folder`.
        reports: folder or .zip of the reports, if they are not in `folder` (MIMIC-CXR).
        split: "train", "validate" or "test", or several of them; default: everything.
        needs_films: leave out studies without a film on the disk; False for work on texts alone.
        check_files: look for every film on the disk; False uses the published paths.

    Returns: an iterable of DatasetStudy and Omission, which can be repeated.

    Raises: UnknownName; InvalidSetting for a folder or part that does not exist; InvalidTable,
        mostly while iterating, if the files are not those of the data set.
    """
    dataset = find_dataset(name)
    if reports is not None and not dataset.takes_reports:
        raise InvalidSetting(
            f"{dataset.name} has its reports in its own files; leave reports (--reports) out"
        )
    splits = frozenset([split] if isinstance(split, str) else split)
    choice = DatasetChoice(splits, needs_films)
    return DatasetReading(dataset, DatasetFiles(folder, films, reports), choice, check_files)
