"""Read a data set's folder: studies that can be used, and what is left out, with the reason."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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
from vlscore.data.datasets.registry import find_dataset
from vlscore.errors import InvalidSetting

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
