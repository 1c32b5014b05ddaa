"""Settings of a search.

The attributes of `OracleSettings` are options of `vlscore oracle`. This file loads heavy libraries
only when they are needed, because `vlscore oracle --help` reads it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from vlscore.core import check_settings
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.retrieval.vector_oracle import Target


@dataclass(frozen=True)
class OracleSettings:
    """Settings of an oracle search.

    Attributes:
        metric: Score that the hits maximise: a metric, such as vlscore or bleu-4, or a direction of
            retrieval: image-to-text, text-to-image.
        k: Number of hits for each study.
        guard: Guard of vlscore against far reports on the line through image and reference: none;
            segment, by the distance from the segment between them; window, a foot in
            [0.5, 1.5].
        mode: exact; approximate, for an index built with --approximate; or auto: exact up to a
            million reports.
        exclude_exact: Exclude reports with the text of the reference (line breaks are ignored),
            which are trivial oracles.
        exclude_ids: Column with the ids to exclude for a study, such as all of its patient: one, a
            list, or several with semicolons. A report with other ids, too, remains.
        candidates: For text metrics: score only the N reports nearest to the reference by cosine; 0
            scores the whole corpus, exactly and without an encoder.
        effort: For approximate mode: number of visited lists (IVF) or breadth of the graph search
            (HNSW). Default: half of the lists, or 512. Less is faster and finds less; the recall is
            printed.

    Raises: InvalidSetting that names the first invalid setting; UnknownName.
    """

    metric: Any = "vlscore"
    k: int = 10
    guard: Literal["none", "segment", "window"] = "none"
    mode: Literal["auto", "exact", "approximate"] = "auto"
    exclude_exact: bool = False
    exclude_ids: str | None = None
    candidates: int = 200
    effort: int | None = None

    def __post_init__(self) -> None:
        check_settings(self, k=1, candidates=0, effort=1)
        if self.metric != type(self).metric or self.guard != "none":
            # The default needs no check, which would load heavy libraries.
            self.target.check_guard(self.guard)
            if self.exclude_exact and self.target.rows != "report":
                raise InvalidSetting(
                    f"only reports equal a reference; {self.target.name} finds "
                    f"{self.target.rows}s, so nothing can be excluded for being a copy"
                )

    @cached_property
    def target(self) -> "Target":
        """What the hits maximise."""
        from vlscore.retrieval.vector_oracle import find_target

        return find_target(self.metric)

    @property
    def uses_encoder(self) -> bool:
        """Whether studies are embedded at all."""
        return not self.target.reads_texts or self.candidates > 0
