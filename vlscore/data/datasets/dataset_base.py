"""Base class of a data set, and its studies as plain data.

A data set is one file with a subclass of `Dataset`. It yields the films and texts of each study.
`vlscore.data.datasets.registry` checks for all data sets that the films exist, that the
texts suffice and that no id is repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from vlscore.data.datasets.dataset_files import DatasetFiles
from vlscore.data.reports import split_sections
from vlscore.data.study import looks_missing
from vlscore.errors import InvalidSetting

# The sections of a report that a table may have as columns, in their order.
SECTIONS = ("indication", "history", "technique", "comparison", "findings", "impression")
TRAIN, VALIDATE, TEST = "train", "validate", "test"
# Name of a part in the published files -> name of the part in this package.
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
    """Reason why a study or a film is left out.

    Attributes:
        text: the reason, the same for all rows that have it, so that they can be counted.
        is_fault: True if something is wrong with the files; False for a property of the data set.
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
        file: file that lists it, relative to the data set's folder.
        row: number of the row there, counted from 1; 0 if the file has no rows.
        id: id of the study, if it could be read.
        what: "study" or "film".
        reason: why it is left out.
        detail: further detail, such as the name of an absent file; never text of a report.
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
        path: path of its file, from the folder of films, with "/" between folders. The suffix may
            differ on the disk: people convert JPEG to PNG.
        view: view position ("PA", "LATERAL", "frontal"), None if not published.
        rows, columns: pixels of the original film, None if not published.
    """

    path: str
    view: str | None = None
    rows: int | None = None
    columns: int | None = None


@dataclass
class StudyRows:
    """Rows of one study, where a table has one row a film.

    Attributes:
        first: the first row; the fields of the study are read from it.
        number: its number in the table.
        films: films of all rows.
    """

    first: dict[str, str]
    number: int
    films: list[Film] = field(default_factory=list)


@dataclass(frozen=True)
class DatasetStudy:
    """One study as a data set publishes it.

    Attributes:
        id: id of the study, as text.
        patient: id of the patient, None if not published.
        films: films in the published order.
        sections: name of SECTIONS -> text; only those that have one.
        report: the whole text, if it is published whole.
        split: "train", "validate" or "test", None if no split is published.
        extra: further facts of the data set, by the names of `Dataset.extra`.
        file, row: where the study is listed, for messages.
        from_last_paragraph: True if the findings are the last paragraph of a report without
            headings.
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
        name: name in the registry.
        description: one line that describes it.
        source: where it is published and where its layout is described.
        licence: licence, in its owners' words.
        needs: files or folders that its folder must have, in words, for messages.
        sections: those of SECTIONS that its tables have as columns.
        has_report: whether the whole report is a column, too.
        extra: further columns.
        has_sizes: whether the original size of its films is published.
        takes_reports: whether reports may be in a separate folder or archive.
        film_folders: folders below the films' folder in which films may be; "" is that folder.
        film_suffixes: suffixes that films may have, in order of preference; () uses the published
            name alone.
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
        """Yield the studies in the published order, and omissions.

        A row that cannot be used is an Omission and does not affect other rows.

        Raises: InvalidTable if the files that list the studies are absent or cannot be read.
        """


@dataclass(frozen=True)
class DatasetChoice:
    """Choice of the studies of a data set.

    Attributes:
        splits: parts, "train", "validate" or "test"; empty: all, also studies without one.
        needs_films: whether a study without a film on the disk is left out.

    Raises: InvalidSetting for an unknown part.
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
    """Return this package's name of a published part; unknown names stay unchanged.

    >>> split_named("Valid"), split_named("development-test"), split_named(" "), split_named("3")
    ('validate', 'validate', None, '3')
    """
    word = (text or "").strip()
    return _SPLITS.get(word.casefold(), word) or None


def sections_present(named: Mapping[str, str | None]) -> dict[str, str]:
    """Return the sections that have a text, without blanks around it, in the order of SECTIONS.

    >>> sections_present({"impression": " Normal. ", "findings": None})
    {'impression': 'Normal.'}
    """
    texts = {name: (named.get(name) or "").strip() for name in SECTIONS}
    return {name: text for name, text in texts.items() if text}


def relative_name(path: Path, folder: Path) -> str:
    """Return a file's path relative to a folder, with "/"; its name if it is not below it."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return path.name


def present_text(value: Any) -> str | None:
    """Return a cell's text; None if it is no text, or a word for a missing value such as "None"."""
    return value if isinstance(value, str) and not looks_missing(value) else None


def sections_of(report: str) -> tuple[dict[str, str], bool]:
    """Return the sections of a whole report, and whether its findings are its last paragraph.

    The last paragraph counts as the findings if neither findings nor impression has a heading, as
    in MIMIC-CXR's own order of sections (Johnson et al. 2019).

    >>> sections_of("INDICATION: Cough.\\nIMPRESSION: Normal.")
    ({'indication': 'Cough.', 'impression': 'Normal.'}, False)
    """
    found = split_sections(report)
    named = {name: found.get(name) for name in SECTIONS}
    # A combined section goes into one column alone, so that it does not count twice.
    named["findings"] = found.findings
    if found.get("findings") is not None:
        named["impression"] = found.impression
    from_last = not (named["findings"] or named["impression"])
    if from_last:
        named["findings"] = found.last_paragraph
    sections = sections_present(named)
    return sections, from_last and "findings" in sections
