"""Settings of a search and of the table behind an index, and their options.

This file loads no heavy library, because `vlscore oracle --help` and `vlscore index --help` read
it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import check_settings, described, setting
from vlscore.data import TextPolicy

GUARDS = ("none", "segment", "window")
MODES = ("auto", "exact", "approximate")
_SEARCH, _TABLE = "Search", "Table"


@described
@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search that the command line can write.

    Raises: InvalidSetting that names the first invalid setting.
    """

    metric: Any = setting(  # noqa: RUF009 - it makes a field
        "vlscore",
        "Score that the hits maximise: a metric, such as vlscore or bleu-4 (`vlscore metrics` "
        "lists them), or a direction of retrieval: image-to-text, text-to-image.",
        "NAME",
        more="With its parameters, or a Metric: one of `OBJECTIVES`, or any metric of texts.",
        option="--metric -m",
        typed=str,
    )
    k: int = setting(10, "Reports a study.", "N", option="--k -k", least=1)
    guard: str = setting(
        "none",
        "Guard against far reports on the line of image and reference: none; segment, by the "
        "distance to the segment between them; window, only a foot in [0.5, 1.5].",
        "NAME",
        more="For vlscore alone; see `Line`.",
        panel=_SEARCH,
        choices=GUARDS,
    )
    mode: str = setting(
        "auto",
        "exact; approximate, for an index built with --approximate; or auto: exact up to "
        "a million reports.",
        "NAME",
        panel=_SEARCH,
        choices=MODES,
    )
    exclude_exact: bool = setting(
        False,
        "Exclude the reference's own text: a copy is a trivial oracle.",
        more="Line breaks are ignored.",
        panel=_SEARCH,
    )
    exclude_ids: str | None = setting(
        None,
        "Column of ids to exclude for a study (its own, its patient's): one, a list, or "
        "several with semicolons. A text of another study remains.",
        "COLUMN",
        more="A report is excluded if all studies with this report are listed.",
        panel=_SEARCH,
    )
    candidates: int = setting(
        200,
        "Metrics of texts: score only the N reports nearest to the reference by cosine; 0 "
        "scores the whole corpus, exactly and without an encoder.",
        "N",
        panel=_SEARCH,
        least=0,
    )
    ranks: bool = setting(
        True,
        "Rank each hit by its distance to the reference.",
        option="--ranks/--no-ranks",
        panel=_SEARCH,
    )
    describe: bool = setting(
        True,
        "Read image and reference also where the metric looks at one of them alone, to "
        "give the hits' area, foot and distance.",
        more="Metrics of texts read no images.",
        option="--describe/--no-describe",
        panel=_SEARCH,
    )
    effort: int | None = setting(
        None,
        "Approximate mode: lists visited (IVF) or breadth of the graph search (HNSW). "
        "Default: half the lists, or 512. Less is faster and finds less; the recall is "
        "printed.",
        "N",
        panel=_SEARCH,
        least=1,
    )

    def __post_init__(self) -> None:
        check_settings(self)


@described
@dataclass(frozen=True)
class SourceSettings:
    """Settings for reading a table into an index.

    `kind` is "report", or "image" for an index of radiographs; `text_policy` selects the section
    of a report that is embedded.
    """

    kind: str = "report"
    text_policy: TextPolicy | str | None = None
    id_column: str = setting("id", "Column with the study's id.", "NAME", panel=_TABLE)
    text_column: str | None = setting(
        None,
        "Column with the report. Default: report, text or reference; else the columns "
        "findings and impression, or that of the two which --section names.",
        "NAME",
        panel=_TABLE,
    )
    image_column: str = setting(
        "image", "Column with the image path or paths.", "NAME", panel=_TABLE
    )
    image_root: str | Path | None = setting(  # noqa: RUF009 - it makes a field
        None,
        "Folder that image paths start from. Default: the table's folder.",
        "FOLDER",
        panel=_TABLE,
        typed=Path | None,
    )

    @property
    def policy(self) -> TextPolicy:
        """Return the text policy as an object."""
        return TextPolicy.named(self.text_policy)

    def to_list(self) -> list[str | None]:
        """Return the settings that must match before an unfinished build can be resumed."""
        root = str(self.image_root) if self.image_root is not None else None
        return [self.id_column, self.text_column, self.image_column, root]
