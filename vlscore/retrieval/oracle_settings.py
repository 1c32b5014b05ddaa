"""Settings of a search and of the table behind an index.

The attributes of `OracleSettings` are options of `vlscore oracle`. This file loads heavy libraries
only when they are needed, because `vlscore oracle --help` reads it.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vlscore.core import check_settings, plain_name, split_call
from vlscore.data import TextPolicy
from vlscore.errors import InvalidSetting, UnknownName

if TYPE_CHECKING:
    from vlscore.metrics import Metric
    from vlscore.retrieval.vector_oracle import Target


@dataclass(frozen=True)
class OracleSettings:
    """Settings of an oracle search.

    Attributes:
        metric: Score that the hits maximise: a metric, such as vlscore or bleu-4, or a direction of
            retrieval: image-to-text, text-to-image.
        k: Reports a study.
        guard: Guard of vlscore against far reports on the line of image and reference: none;
            segment, by the distance to the segment between them; window, only a foot in [0.5, 1.5].
        mode: exact; approximate, for an index built with --approximate; or auto: exact up to a
            million reports.
        exclude_exact: Exclude the reference's own text, line breaks ignored: a copy is a trivial
            oracle.
        exclude_ids: Column of ids to exclude for a study (its own, its patient's): one, a list, or
            several with semicolons. A text of another study remains.
        candidates: Metrics of texts: score only the N reports nearest to the reference by cosine; 0
            scores the whole corpus, exactly and without an encoder.
        effort: Approximate mode: lists visited (IVF) or breadth of the graph search (HNSW).
            Default: half the lists, or 512. Less is faster and finds less; the recall is printed.

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
        if self.metric != type(self).metric:
            # The default needs no check, which would load heavy libraries.
            _ = self.scored
        if self.guard != "none" and self.searched_by != "vlscore":
            raise InvalidSetting(f"a guard belongs to vlscore, not to {self.name}")
        if self.exclude_exact and self.rows != "report":
            raise InvalidSetting(
                f"only reports equal a reference; {self.name} finds {self.rows}s, so nothing can "
                "be excluded for being a copy"
            )

    @cached_property
    def _chosen(self) -> "tuple[Metric, Target | None]":
        return find_target(self.metric)

    @property
    def scored(self) -> "Metric":
        """Metric of the scores; for a direction of retrieval, the one that is the same cosine."""
        return self._chosen[0]

    @property
    def target(self) -> "Target | None":
        """Target of the search by embeddings; None for a metric of texts."""
        return self._chosen[1]

    @property
    def name(self) -> str:
        """Name as printed: "vlscore(C=20)", "image-to-text"."""
        is_metric = self.target is None or self.target.is_metric
        return str(self.scored) if is_metric or self.target is None else self.target.name

    @property
    def searched_by(self) -> str:
        """Name in TARGETS of the search that the index runs; for metrics of texts, cosine."""
        return "cosine" if self.target is None else self.target.name

    @property
    def rows(self) -> str:
        """What the index must hold: "report" or "image"."""
        return "report" if self.target is None else self.target.rows

    @property
    def needs(self) -> frozenset[str]:
        """What a study must have: "image", "reference" or both."""
        needs = ("reference",) if self.target is None else self.target.needs
        return frozenset(needs) | ({"reference"} if self.exclude_exact else set())

    @property
    def wants(self) -> frozenset[str]:
        """Inputs that are read if a study has them: they give the hits' area, foot and distance."""
        if self.target is None or self.rows != "report":
            return frozenset()
        return frozenset({"image", "reference"}) - self.needs

    @property
    def uses_embeddings(self) -> bool:
        """Whether studies are embedded at all."""
        return self.target is not None or self.candidates > 0


def find_target(metric: Any) -> "tuple[Metric, Target | None]":
    """Return what an oracle maximises, for a name in any spelling, with parameters, or a Metric.

    Returns: the metric, for a direction of retrieval the one that is the same cosine; and the
        target of the search by embeddings, None for a metric of texts.
    Raises: UnknownName; InvalidSetting for a metric that an oracle cannot maximise.

    >>> str(find_target("image_centred_cosine")[0]), find_target("Text-to-Text")[1].name
    ('image-centred-cosine', 'cosine')
    >>> find_target("bleu-4(smoothing=exp)")[1] is None
    True
    """
    from vlscore.metrics import METRICS, Metric, Plan, find_metric
    from vlscore.retrieval.vector_oracle import TARGETS

    if not isinstance(metric, str):
        metric = METRICS.find(metric)
    name = metric.name if isinstance(metric, Metric) else split_call(metric)[0]
    target = TARGETS.find(name) if name in TARGETS else None
    if target is not None:
        if not target.is_metric:
            if plain_name(str(metric)) != plain_name(name):
                raise InvalidSetting(f"{target.name} has no parameters")
            return find_metric("clipscore"), target
        if isinstance(metric, str):
            # The registry of metrics does not know aliases of the search, such as text-to-text.
            metric = find_metric(target.name)(**split_call(metric)[1])
        return metric, target
    try:
        found = find_metric(metric)
    except UnknownName:
        meant = METRICS.similar_to(name)
        hint = f"did you mean {' or '.join(meant)}? " if meant else ""
        texts = [each for each, other in METRICS.items() if not other.uses_embeddings]
        raise UnknownName(
            f"no oracle metric is called {metric!r}; {hint}Of embeddings: {', '.join(TARGETS)}; "
            f"of texts: {', '.join(texts)}"
        ) from None
    needs = Plan([found]).needs
    if needs.embeddings or needs.images:
        raise InvalidSetting(
            f"no oracle searches by {found}; choose {', '.join(TARGETS)}, or a metric of texts"
        )
    return found, None


@dataclass(frozen=True)
class SourceSettings:
    """Settings for reading a table into an index.

    Attributes:
        kind: "report", or "image" for an index of radiographs.
        text_policy: selects the section of a report that is embedded.
        id_column: Column with the study's id.
        text_column: Column with the report. Default: report, text or reference; else the columns
            findings and impression, or that of the two which the section names.
        image_column: Column with the image path or paths.
        image_root: Folder that image paths start from. Default: the table's folder.
        limit: Read only so many rows, the first ones. Default: all.
    """

    kind: str = "report"
    text_policy: TextPolicy | str | None = None
    id_column: str = "id"
    text_column: str | None = None
    image_column: str = "image"
    image_root: str | Path | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("report", "image"):
            raise InvalidSetting(f'an index holds "report" or "image", not {self.kind!r}')

    @property
    def policy(self) -> TextPolicy:
        """Return the text policy as an object."""
        return TextPolicy.named(self.text_policy)
