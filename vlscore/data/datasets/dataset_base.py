"""Base class of a data set, and what several readers need: joined rows, sections, parts.

A data set is one file with a subclass of `Dataset`. Its method `studies` returns one row a study
(`by_study` makes them of one row an image). `vlscore.data.datasets.dataset_tables` checks for all
data sets that the images exist, that the texts suffice and that no id is repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from vlscore.data.datasets.dataset_files import DatasetFiles
from vlscore.text import split_sections

if TYPE_CHECKING:
    import pandas as pd

# The sections of a report that a table may have as columns, in their order.
SECTIONS = ("indication", "history", "technique", "comparison", "findings", "impression")
# Columns with one value an image; in a row of a study they hold lists.
IMAGE_COLUMNS = ("image", "view", "rows", "columns")
# Column of `by_study`: the facts in which the rows of a study differ.
DISAGREEING = "disagreeing"
TRAIN, VALIDATE, TEST = SPLITS = "train", "validate", "test"
# Name of a part in the published files -> name of the part in this package.
_SPLIT_NAMES = {
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
        has_sizes: whether the original size of its images is published.
        takes_reports: whether reports may be in a separate folder or archive.
        image_folders: folders below the images' folder in which images may be; "" is that folder.
        image_suffixes: suffixes that images may have, in order of preference; () uses the published
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
    image_folders: ClassVar[tuple[str, ...]] = ("",)
    image_suffixes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies in the published order, one row a study.

        Returns: columns `id`; `image`, a list of paths from the folder of images on, with "/"
            between folders; `in_file` and `in_row`, where the study is listed; and as far as they
            are published: `patient`; `split`, under its published name; `view`, `rows` and
            `columns`, lists as long as `image`; those of `sections`; `full_report`; those of
            `extra`; and `from_last_paragraph`, whether the findings are the last paragraph of a
            report without headings. What cannot be used goes to `files.leave_out` and costs itself
            alone.

        Raises: InvalidTable if the files that list the studies are absent or cannot be read.
        """

    @property
    def columns(self) -> list[str]:
        """Names of the columns of its table."""
        images = IMAGE_COLUMNS if self.has_sizes else IMAGE_COLUMNS[:2]
        whole = ("full_report",) if self.has_report else ()
        return ["id", "patient", "split", *images, *self.sections, *self.extra, *whole]


def by_study(images: "pd.DataFrame") -> "pd.DataFrame":
    """Join the rows of each study, one an image, to one row: lists for the columns of images, the
    first value that is there for all others.

    `read_dataset` leaves out a row without an id, which is of no study, and a study whose rows have
    different patients, splits or texts; the column `disagreeing` names these.
    """
    import pandas as pd

    if images.empty:
        return images
    of_none = images[images["id"].isna()].copy()
    groups = images.groupby("id", sort=False)
    studies = groups.first()
    for name in IMAGE_COLUMNS:
        if name in images:
            studies[name] = groups[name].agg(list)
            of_none[name] = [[value] for value in of_none[name]]
    facts = [name for name in ("patient", "split", *SECTIONS, "full_report") if name in images]
    differ = groups[facts].nunique() > 1
    studies[DISAGREEING] = [
        ", ".join(name for name, differs in zip(facts, row, strict=True) if differs)
        for row in differ.to_numpy()
    ]
    return pd.concat([studies.reset_index(), of_none]) if len(of_none) else studies.reset_index()


def split_named(text: str | None) -> str | None:
    """Return this package's name of a published part; unknown names stay unchanged.

    >>> split_named("Valid"), split_named("development-test"), split_named(" "), split_named("3")
    ('validate', 'validate', None, '3')
    """
    word = (text or "").strip()
    return _SPLIT_NAMES.get(word.casefold(), word) or None


def sections_of(report: str) -> dict[str, Any]:
    """Return the sections of a whole report, and `from_last_paragraph`.

    The last paragraph counts as the findings if neither findings nor impression has a heading, as
    in MIMIC-CXR's own order of sections (Johnson et al. 2019).

    >>> sections_of("INDICATION: Cough.\\nIMPRESSION: Normal.")
    {'indication': 'Cough.', 'impression': 'Normal.', 'from_last_paragraph': False}
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
    sections = stripped(named)
    return {**sections, "from_last_paragraph": from_last and "findings" in sections}


def stripped(texts: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that are texts, without blanks around them; blank ones are left out.

    >>> stripped({"impression": " Normal. ", "findings": None, "comparison": " "})
    {'impression': 'Normal.'}
    """
    found = {name: text.strip() for name, text in texts.items() if isinstance(text, str)}
    return {name: text for name, text in found.items() if text}
