"""Checks that every data set must pass, of this package or of a user.

The checks need files: a small folder in the data set's layout, which a test makes.
"""

from collections.abc import Callable
from pathlib import Path

from vlscore.data.datasets.dataset_base import SECTIONS, DatasetStudy, Omission
from vlscore.data.datasets.registry import (
    DATASETS,
    AnyDataset,
    DatasetReading,
    find_dataset,
    read_dataset,
)
from vlscore.errors import BrokenContract, InvalidTable

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
    problems = []
    for check in dataset_checks():
        try:
            check(reading)
        except BrokenContract as problem:
            problems.append(str(problem))
        except Exception as error:  # a check may run into any fault of the data set
            problems.append(f"{check.__name__}: {type(error).__name__}: {error}")
    if problems:
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
