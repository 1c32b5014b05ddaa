"""Data sets by name; a new one is one file with a subclass of Dataset and one line here.

`read_dataset` reads a data set's folder: the studies that can be used, and what is left out, with
the reason. `check_dataset` runs the checks that every data set must pass, of this package or of a
user, on a small folder in its layout.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.core import Registry, broken_checks
from vlscore.data.datasets.dataset_base import (
    ALL_ABSENT,
    FILM_ABSENT,
    NO_IMAGE,
    NO_TEXT,
    SECTIONS,
    TWICE,
    Dataset,
    DatasetChoice,
    DatasetStudy,
    Film,
    Omission,
)
from vlscore.data.datasets.dataset_files import DatasetFiles
from vlscore.errors import BrokenContract, InvalidSetting, InvalidTable

AnyDataset = str | Dataset | type[Dataset]


def _check(member: Any) -> None:
    is_class = isinstance(member, type) and issubclass(member, Dataset)
    if not is_class and not isinstance(member, Dataset):
        raise InvalidSetting(
            f"{member!r} is no data set: it must be of a class derived from vlscore.data.Dataset"
        )


DATASETS: Registry[Any] = Registry(
    "data set", group="vlscore.datasets", check=_check, listed_by="vlscore dataset"
)

for _name, _target, _aliases in (
    ("mimic-cxr-jpg", "mimic_cxr:MimicCxrJpg", ()),
    ("mimic-cxr", "mimic_cxr:MimicCxr", ()),
    ("iu-openi", "indiana:IuOpenI", ("open-i", "openi")),
    ("iu-kaggle", "indiana:IuKaggle", ()),
    ("r2gen", "r2gen:R2Gen", ("iu-r2gen",)),
    ("squared-films", "squared_films:SquaredFilms", ()),
    ("chexpert-plus", "chexpert_plus:CheXpertPlus", ()),
    ("padchest", "padchest:PadChest", ()),
    ("rexgradient-160k", "rex:ReXGradient", ("rexgradient",)),
    ("rexrank", "rex:ReXrankManifest", ()),
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


Check = Callable[[DatasetReading], None]


def check_dataset(
    dataset: AnyDataset,
    folder: str | Path,
    *,
    films: str | Path | None = None,
    reports: str | Path | None = None,
) -> None:
    """Run every check of this module on a data set and a folder in its layout.

    Args: folder, films, reports: as in `read_dataset`; at least one study must be usable.

    Raises: BrokenContract, which lists everything that is wrong; UnknownName.
    """
    found = find_dataset(dataset)
    reading = read_dataset(found, folder, films=films, reports=reports)
    if problems := broken_checks(dataset_checks(), reading):
        raise BrokenContract(f"{found.name}: " + "\n".join(problems))


def dataset_checks() -> tuple[Check, ...]:
    """Return the checks, for test parameters."""
    return (
        check_facts,
        check_studies,
        check_columns,
        check_films,
        check_repeats,
        check_omissions,
        check_wrong_folder,
    )


def check_facts(reading: DatasetReading) -> None:
    """Check that the data set is described, and that its registered name finds it."""
    dataset = reading.dataset
    for fact in ("description", "source", "licence", "needs"):
        text = getattr(dataset, fact, "")
        _require(isinstance(text, str) and bool(text.strip()), f"it states no {fact}")
    _require(set(dataset.sections) <= set(SECTIONS), f"its sections are not among {SECTIONS}")
    _require("findings" in dataset.sections or "impression" in dataset.sections, "it has no report")
    if dataset.name in DATASETS:
        same = type(find_dataset(dataset.name)) is type(dataset)
        _require(same, f"{dataset.name} does not find it again")


def check_studies(reading: DatasetReading) -> None:
    """Check that ids and patients are text, that ids are unique, and the names of parts."""
    studies = _studies(reading)
    _require(bool(studies), "no study of the folder can be used")
    ids = [study.id for study in studies]
    _require(all(isinstance(id, str) and id.strip() == id and id for id in ids), "an id is no text")
    _require(len(ids) == len(set(ids)), "an id comes twice")
    patients = {type(study.patient) for study in studies}
    _require(patients <= {str, type(None)}, "a patient's id is no text")
    splits = {study.split for study in studies}
    _require(not splits & {"val", "valid", "training"}, f"parts are not named as here: {splits}")


def check_columns(reading: DatasetReading) -> None:
    """Check that a study has no section, size or fact that its data set does not declare."""
    dataset = reading.dataset
    for study in _studies(reading):
        _require(set(study.sections) <= set(dataset.sections), "a section is no column")
        _require(set(study.extra) <= set(dataset.extra), "a further fact is no column")
        _require(all(map(str.strip, study.sections.values())), "a section is blank")
        _require(dataset.has_report or not study.report, "a whole report is no column")
        sizes = [film.rows for film in study.films if film.rows is not None]
        _require(dataset.has_sizes or not sizes, "sizes of films are no column")


def check_films(reading: DatasetReading) -> None:
    """Check that the films' paths start from the folder of films, and that the files exist."""
    for study in _studies(reading):
        for film in study.films:
            _require(not Path(film.path).is_absolute(), "a film's path is absolute")
            _require((reading.film_root / film.path).is_file(), "a film's file is not there")
            _require(film.view is None or bool(film.view.strip()), "a view is blank, not None")


def check_repeats(reading: DatasetReading) -> None:
    """Check that the same files give the same studies in the same order."""
    _require(list(reading) == list(reading), "the studies differ when they are read again")


def check_omissions(reading: DatasetReading) -> None:
    """Check that an omission names its file and reason, and quotes no report."""
    texts = [text for study in _studies(reading) for text in study.sections.values()]
    for each in reading:
        if isinstance(each, Omission):
            _require(bool(each.file and each.reason.text), "an omission names no file or reason")
            _require(each.what in ("study", "film"), f"{each.what} is neither study nor film")
            _require(not any(t in each.detail for t in texts), "an omission quotes a report")


def check_wrong_folder(reading: DatasetReading) -> None:
    """Check that a folder without the data set's files is refused with a message."""
    empty = Path(__file__).parent
    try:
        list(read_dataset(reading.dataset, empty))
    except InvalidTable as error:
        _require(str(empty) in str(error), "the error does not name the folder")
    else:
        raise BrokenContract("a folder without its files is taken for an empty data set")


def _studies(reading: DatasetReading) -> list[DatasetStudy]:
    return [each for each in reading if isinstance(each, DatasetStudy)]


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise BrokenContract(problem)
