"""Parts of a page as plain data: marked texts, lists of cases, images, charts, one run's view."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, is_dataclass
from itertools import pairwise
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlscore.core import with_noun
from vlscore.data import Study, shrunk_url
from vlscore.errors import UnreadableImage
from vlscore.stats import TextTable

if TYPE_CHECKING:
    import pandas

#: A piece of a text: a str, or [text, classes, numbers of the errors that mark it].
Piece = str | list[Any]

#: Numbers that draw a triangle: foot, distances of the image in units of the embeddings, area.
TRIANGLE = ("foot", "image_reference", "image_candidate", "area")
#: Longest side of an image on a page, in pixels.
SIDE = 320
#: Bytes of all images of a page, so that it stays below 10 MB.
IMAGE_BYTES = 6_000_000
_QUALITY = 60
_DIGITS = 6


class Highlight(NamedTuple):
    """Characters [start, end) of a text and what they are marked as.

    Attributes:
        start, end: positions in the text.
        kind: class of the mark, as in "missed".
        number: of the error in its list, from 1; 0 where the mark belongs to no error.
    """

    start: int
    end: int
    kind: str
    number: int = 0


def pieces_of(text: str, marks: Iterable[Highlight]) -> list[Piece]:
    """Cut a text at its marks; pieces of overlapping marks have all their classes.

    >>> pieces_of("Small effusion.", [Highlight(6, 14, "missed", 1)])
    ['Small ', ['effusion', 'missed', [1]], '.']
    """
    own = [m for m in marks if 0 <= m.start < m.end <= len(text)]
    cuts = sorted({0, len(text), *(m.start for m in own), *(m.end for m in own)})
    found: list[Piece] = []
    for start, end in pairwise(cuts):
        over = [m for m in own if m.start <= start and end <= m.end]
        if not over:
            found.append(text[start:end])
            continue
        kinds = " ".join(dict.fromkeys(m.kind for m in over))
        found.append([text[start:end], kinds, sorted({m.number for m in over if m.number})])
    return found


def pieces_text(pieces: Iterable[Piece]) -> str:
    """Return the text that pieces were cut from."""
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)


@dataclass
class Block:
    """One comparison of texts in a case: a candidate and its reference, or a text and its change.

    Attributes:
        title: name of the system or hit; empty where a case has one block.
        texts: (role, pieces) in the order in which they are shown.
        errors: kind (the class of its mark), severity, finding, reason and correction of each;
            marks refer to them by number.
        triangle: the numbers of TRIANGLE; None where they are absent.
        shares: explanation of the score by sentences, as `Explanation.to_dict` writes it.
        maps: where sentences look on the image, as `maps_to_dict` writes it.
        claims: report, finding, claim, verdict and probability of each, as `verdicts_of` has them.
    """

    title: str
    texts: list[tuple[str, list[Piece]]]
    errors: list[dict[str, Any]] = field(default_factory=list)
    triangle: Mapping[str, float] | None = None
    shares: Mapping[str, Any] | None = None
    maps: Mapping[str, Any] | None = None
    claims: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data without empty entries."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass
class Column:
    """Column of a list.

    Attributes:
        name: key of its values.
        better: 1 where larger values are better, -1 where smaller ones are, 0 for neither.
        text: whether values are texts.
        main: whether it is shown at first.
        card: whether a card shows its distribution, if it is a main column of numbers.
        mean: mean with its interval, where the run computed one.
        signed: whether values are differences, which are sorted by their size.
        group: columns of one group have one unit, such as one metric of several systems; "" alone.
    """

    name: str
    better: int = 0
    text: bool = False
    main: bool = False
    card: bool = True
    mean: tuple[float | None, float | None, float | None] | None = None
    signed: bool = False
    group: str = ""


@dataclass
class CaseList:
    """List of cases, one a row, that readers sort and filter.

    Attributes:
        what: plural of a row, as in "studies".
        values: one row a case; its first column names it.
        sort: name of the column that the list is sorted by at first.
        main: columns that are shown at first.
        better: column -> `Column.better`.
        columns: of the values; a column has texts where one of them is a text.
        descending: whether large values come first.
        ties: column that orders rows of equal values, largest first; None: the table's order.
        cases: blocks of every row; None where the page has no texts.
        picks: text columns with few values, which readers select rows by.
        scatter: columns on the x and y axis at first.
        diagonal: whether both axes have one unit, so that points off the diagonal differ.
        studies: study of every row, whose images can be shown; None where there is none.
        images: row -> images as data URLs.
    """

    what: str
    values: "pandas.DataFrame"
    sort: str
    main: InitVar[Collection[str]] = ()
    better: InitVar[Mapping[str, int]] = MappingProxyType({})
    columns: list[Column] = field(init=False)
    descending: bool = False
    ties: str | None = None
    cases: list[list[Block]] | None = None
    picks: tuple[str, ...] = ()
    scatter: tuple[str, str] | None = None
    diagonal: bool = False
    studies: Sequence[Study | None] = ()
    images: dict[int, list[str]] = field(default_factory=dict)

    def __post_init__(self, main: Collection[str], better: Mapping[str, int]) -> None:
        self.columns = [
            Column(n, better.get(n, 0), any(isinstance(each, str) for each in own), n in main)
            for n, own in self.values.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what the page's program reads."""
        known = self.values.astype(object).where(self.values.notna(), None)
        shown = {name: each for name, each in vars(self).items() if name != "studies"}
        shown |= {"rows": len(known), "values": known.to_dict("list")}
        return {**shown, "sort": [self.sort, self.descending]}


def worst_first(cases: CaseList) -> list[int]:
    """Return the rows in the order in which the page lists them at first; rows without value last.

    >>> import pandas
    >>> worst_first(CaseList("studies", pandas.DataFrame({"x": [2.0, None, 1.0]}), "x"))
    [2, 0, 1]
    """
    values = cases.values[cases.sort]
    if any(column.name == cases.sort and column.signed for column in cases.columns):
        values = values.abs()
    if cases.ties is not None:
        ties = cases.values[cases.ties].fillna(0.0)
        values = values.loc[ties.sort_values(ascending=False, kind="stable").index]
    values = values.sort_values(ascending=not cases.descending, kind="stable")
    unknown = values.index[values.isna()].sort_values()
    return [*values.dropna().index, *unknown]


def plain_value(value: Any) -> Any:
    """Return what json holds of a part of a page: numbers rounded to six digits, None for nan.

    >>> plain_value({"x": (0.123456789, float("nan"), True)})
    {'x': [0.123457, None, 1]}
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None
    if hasattr(value, "to_dict"):
        return plain_value(value.to_dict())
    if is_dataclass(value):
        return plain_value(vars(value))
    if isinstance(value, Mapping):
        return {name: plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain_value(each) for each in value]
    return value


@dataclass
class Forest:
    """Estimates with their intervals, one a line.

    Attributes:
        title: what is estimated.
        rows: (label, estimate, low, high); a bound is None where there is none.
        better: as of `Column`.
        zero: whether 0 means "no difference" and is drawn as a line.
        hollow: labels of the rows that are drawn as hollow circles.
        note: what the chart shows, below the title.
    """

    title: str
    rows: Sequence[tuple[str, float | None, float | None, float | None]]
    better: int = 0
    zero: bool = False
    hollow: Sequence[str] = ()
    note: str = ""


@dataclass
class Curves:
    """Lines over a common axis, such as the loss of every step.

    Attributes: title; x: name of the axis; series: (label, x values, y values) each; at: x value
        that is marked by a line; mark: what it is; dates: whether x values are days, as
        `date.toordinal` counts them.
    """

    title: str
    x: str
    series: Sequence[tuple[str, Sequence[Any], Sequence[Any]]]
    at: float | None = None
    mark: str = "best"
    dates: bool = False


@dataclass
class RunView:
    """What a page shows of one result folder.

    Attributes:
        name: of the folder.
        command: that wrote it, as in "evaluate".
        lead: one sentence: how many studies, metrics and failures.
        answer: table that answers what the command was asked, at the top; None: the charts do.
        facts: (name, value): time, versions, encoder, inputs.
        run_notes: notes of the run, which its command printed, the most important first.
        notes: further sentences that a reader should know, such as what could not be shown.
        failures: (count, reason), the most frequent first.
        tables: as the command prints them.
        signatures: what the numbers depend on.
        forests, curves: charts.
        cases: the list; None where the folder has no rows to list.
        texts: number of reports on the page.
        images: number of images on the page.
    """

    name: str
    command: str
    lead: str = ""
    answer: TextTable | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)
    run_notes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    tables: list[TextTable] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    forests: list[Forest] = field(default_factory=list)
    curves: list[Curves] = field(default_factory=list)
    cases: CaseList | None = None

    @property
    def texts(self) -> int:
        """Number of reports on the page; a reference of several systems counts once."""
        if self.cases is None or self.cases.cases is None:
            return 0
        return sum(
            len(
                {
                    ("" if role == "reference" else block.title, role, pieces_text(pieces))
                    for block in blocks
                    for role, pieces in block.texts
                }
            )
            for blocks in self.cases.cases
        )

    @property
    def images(self) -> int:
        """Number of images on the page."""
        return 0 if self.cases is None else sum(map(len, self.cases.images.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return what the page's program draws; the template writes the rest."""
        return {"forests": self.forests, "curves": self.curves, "list": self.cases}


def add_images(view: RunView, most_bytes: int) -> int:
    """Add the images of the listed studies, those at the top of the list first.

    An image that cannot be read, and those for which no space is left, are counted in the notes.

    Args: most_bytes: that all images may have.
    Returns: the bytes of the images.
    """
    if view.cases is None or not view.cases.studies:
        return 0
    used = unread = left_out = 0
    for row in worst_first(view.cases):
        study = view.cases.studies[row]
        if study is None or not study.images:
            continue
        if used >= most_bytes:
            left_out += 1
            continue
        urls, failed = _images_of(study.images)
        unread += failed
        used += sum(map(len, urls))
        if urls:
            view.cases.images[row] = urls
    if unread:
        view.notes.append(f"{with_noun(unread, 'image')} could not be read.")
    if left_out:
        view.notes.append(
            f"The images of {with_noun(left_out, 'case')} are left out, so that the page stays "
            "below 10 MB; those at the top of the list have theirs."
        )
    return used


def _images_of(images: Iterable[Any]) -> tuple[list[str], int]:
    """Return the images of one study, and how many could not be read.

    Args: images: files, or arrays of grey levels from 0 to 255.
    """
    from vlscore.data import read_image  # loads the libraries of image files

    found, failed = [], 0
    for image in images:
        try:
            is_read = isinstance(image, np.ndarray)
            found.append(image_url(image if is_read else read_image(image).to_uint8()))
        except UnreadableImage:
            failed += 1
    return found, failed


def image_url(levels: NDArray[np.uint8]) -> str:
    """Return the grey levels of an image (height, width) as a data URL of a shrunk WebP file."""
    return shrunk_url(levels, SIDE, "webp", quality=_QUALITY, method=4)
