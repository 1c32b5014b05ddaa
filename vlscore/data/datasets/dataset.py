"""A data set: how its files become studies, as plain data.

A member is one file with a subclass of `Dataset`. It says which films and texts a study has; that
the films are there, that the texts are enough and that no id comes twice is checked for all members
in `vlscore.data.datasets.dataset_reading`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from vlscore.data.datasets.dataset_files import DatasetFiles
from vlscore.errors import InvalidSetting

# The sections of a report that a table may have as columns, in their order.
SECTIONS = ("indication", "history", "technique", "comparison", "findings", "impression")
TRAIN, VALIDATE, TEST = "train", "validate", "test"
# What the published files call their parts -> what they are called here.
_SPLITS = {
    "train": TRAIN,
    "training": TRAIN,
    "val": VALIDATE,
    "valid": VALIDATE,
    "validate": VALIDATE,
    "validation": VALIDATE,
    "dev": VALIDATE,
    "development": VALIDATE,
    "development-test": VALIDATE,
    "test": TEST,
}


@dataclass(frozen=True)
class OmissionReason:
    """Why a study or a film is left out.

    Attributes:
        text: the reason, the same for all rows that have it, so that they can be counted.
        is_fault: whether something is wrong with the files; False where the data set is so.
    """

    text: str
    is_fault: bool = False


NO_TEXT = OmissionReason("the report has neither findings nor an impression")
NO_IMAGE = OmissionReason("no film belongs to the report")
OTHER_PROJECTION = OmissionReason("the film does not show the chest")
FILM_ABSENT = OmissionReason("the file of the film is absent", is_fault=True)
ALL_ABSENT = OmissionReason("no film of the study was found", is_fault=True)
REPORT_ABSENT = OmissionReason("the file of the report is absent", is_fault=True)
DAMAGED = OmissionReason("the row or file cannot be read", is_fault=True)
INCOMPLETE = OmissionReason("the row names no study or no film", is_fault=True)
TWICE = OmissionReason("the id comes a second time", is_fault=True)


@dataclass(frozen=True)
class Omission:
    """A study or a film that is not in the table.

    Attributes:
        file: name of the file that names it, from the data set's folder.
        row: number of the row there, as a person counts; 0 where the file has no rows.
        id: of the study, where it could be read.
        what: "study" or "film".
        reason: why.
        detail: what tells more, as the name of an absent file; no text of a report.
    """

    file: str
    row: int
    id: str | None
    what: str
    reason: OmissionReason
    detail: str = ""


@dataclass(frozen=True)
class Film:
    """One film of a study.

    Attributes:
        path: of its file, from the folder of films, with "/" between folders. The suffix may differ
            on the disk: people convert JPEG to PNG.
        view: view position ("PA", "LATERAL", "frontal"), None where nothing states it.
        rows, columns: pixels of the original film, None where nothing states them.
    """

    path: str
    view: str | None = None
    rows: int | None = None
    columns: int | None = None


@dataclass(frozen=True)
class DatasetStudy:
    """One study as a data set publishes it.

    Attributes:
        id: of the study, as text.
        patient: id of the patient, None where it is not published.
        films: in the published order.
        sections: name of SECTIONS -> text; only those that have one.
        report: the whole text where it is published whole.
        split: "train", "validate" or "test", None where no split is published.
        extra: what else the data set states, by the names of `Dataset.extra`.
        file, row: where it stands, for what must be said of it.
        from_last_paragraph: the findings are the last paragraph of a report without headings.
    """

    id: str
    patient: str | None
    films: tuple[Film, ...]
    sections: Mapping[str, str] = field(hash=False)
    report: str | None = None
    split: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict, hash=False)
    file: str = ""
    row: int = 0
    from_last_paragraph: bool = False


class Dataset(ABC):
    """A published data set, in one of the layouts that people have.

    Attributes:
        name: by which it is found.
        description: one line of what it is.
        source: where it comes from and where its layout is described.
        licence: as its owners state it.
        needs: files or folders that its folder must have, in words, for messages.
        sections: which of SECTIONS its tables have as columns.
        has_report: whether the whole report is a column, too.
        extra: further columns.
        has_sizes: whether it states the original size of its films.
        takes_reports: whether reports may lie in a folder or archive of their own.
        film_folders: folders below the films' folder in which films are looked for; "" is itself.
        film_suffixes: suffixes that films may have, in the order in which they are preferred; ()
            takes the file as it is named.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    source: ClassVar[str]
    licence: ClassVar[str]
    needs: ClassVar[str]
    sections: ClassVar[tuple[str, ...]] = ("findings", "impression")
    has_report: ClassVar[bool] = False
    extra: ClassVar[tuple[str, ...]] = ()
    has_sizes: ClassVar[bool] = False
    takes_reports: ClassVar[bool] = False
    film_folders: ClassVar[tuple[str, ...]] = ("",)
    film_suffixes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the published order, and what cannot be one.

        A row that cannot be used is an Omission and costs no other row.

        Raises: InvalidTable where the files that name the studies are absent or cannot be read.
        """


@dataclass(frozen=True)
class DatasetChoice:
    """What of a data set is wanted.

    Attributes:
        splits: parts, "train", "validate" or "test"; empty: all, also studies without one.
        needs_films: whether a study without a film on the disk is left out.

    Raises: InvalidSetting for a part that there is not.
    """

    splits: frozenset[str] = frozenset()
    needs_films: bool = True

    def __post_init__(self) -> None:
        if unknown := self.splits - {TRAIN, VALIDATE, TEST}:
            raise InvalidSetting(
                f"parts of a data set are {TRAIN}, {VALIDATE} and {TEST}, whatever its own files "
                f"call them; not {', '.join(sorted(unknown))}"
            )


def split_named(text: str | None) -> str | None:
    """The part that a published file names; its own word where it is none of the usual ones.

    >>> split_named("Valid"), split_named("development-test"), split_named(" "), split_named("3")
    ('validate', 'validate', None, '3')
    """
    word = (text or "").strip()
    return _SPLITS.get(word.casefold(), word) or None


def sections_present(named: Mapping[str, str | None]) -> dict[str, str]:
    """The sections that have a text, without blanks around it, in the order of SECTIONS.

    >>> sections_present({"impression": " Normal. ", "findings": None})
    {'impression': 'Normal.'}
    """
    texts = {name: (named.get(name) or "").strip() for name in SECTIONS}
    return {name: text for name, text in texts.items() if text}


def relative_name(path: Path, folder: Path) -> str:
    """A file's name from a folder, with "/"; its own name where it lies elsewhere."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return path.name
