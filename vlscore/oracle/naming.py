"""What an oracle maximises, by the names that metrics have everywhere."""

from dataclasses import dataclass
from typing import Any

from vlscore._registry import plain, split_call
from vlscore._signature import Signature
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting, UnknownName
from vlscore.metrics import METRICS, Metric, Plan, find_metric
from vlscore.metrics.providers.similarity_provider import constant_of
from vlscore.reports import TextPolicy
from vlscore.search import OBJECTIVES, Sought

# The search by embeddings that finds candidates for a metric of texts.
NEAREST = "cosine"


@dataclass(frozen=True)
class OracleMetric:
    """A metric, or a direction of retrieval, that an oracle can maximise.

    Attributes:
        name: as it is printed and found again: "vlscore(C=20)", "bleu-4", "image-to-text".
        metric: what describes the scores in signatures; of a direction, the metric that is the
            same cosine.
        sought: what a search of embeddings minimises; None for a metric of texts.
    """

    name: str
    metric: Metric
    sought: Sought | None

    @property
    def is_of_texts(self) -> bool:
        """Whether texts are compared, not embeddings."""
        return self.sought is None

    @property
    def needs(self) -> tuple[str, ...]:
        """What a study must have: "image", "reference" or both."""
        return ("reference",) if self.sought is None else self.sought.needs

    @property
    def searched_by(self) -> str:
        """The name in OBJECTIVES by which the index is searched."""
        return NEAREST if self.sought is None else self.sought.name

    @property
    def rows(self) -> str:
        """What the index must hold: "report" or "image"."""
        return "report" if self.sought is None else self.sought.rows

    @property
    def image(self) -> float:
        """Weight of the image; 1 where the metric has none to choose."""
        return float(self.metric.settings.get("image") or 1.0)

    def constant(self, embedder: StudyEmbedder | None) -> float | None:
        """C of the search; None where it has none.

        Raises: InvalidSetting where VLScore is sought and nobody stated C.
        """
        if self.sought is None or "C" not in self.metric.settings:
            return None
        return constant_of(self.metric, None if embedder is None else embedder.C)

    def signature(self, embedder: StudyEmbedder | None, policy: TextPolicy) -> Signature:
        """What the scores depend on."""
        plan = Plan([self.metric], text=policy.signature())
        # The corpus is named by its index; `TextSearch` fits to it.
        fit = "corpus" if plan.needs_fit else None
        if embedder is None:
            return plan.signature(self.metric).plus(fit=fit)
        signature = plan.signature(self.metric, embedder.signature, embedder.C).plus(fit=fit)
        if self.sought is None:
            # Which candidates are scored depends on the encoder that found them.
            return _with_encoder(signature, embedder.signature)
        if self.sought.is_metric:
            return signature
        signature = signature.of(self.sought.name)
        return signature.plus(views="first") if self.rows == "image" else signature


def oracle_metric(metric: Any) -> OracleMetric:
    """The metric of that name in any spelling, with its parameters; or of a Metric.

    Raises: UnknownName; InvalidSetting for a metric that no oracle can maximise.

    >>> oracle_metric("image_centred_cosine").name, oracle_metric("Text-to-Text").name
    ('image-centred-cosine', 'cosine')
    >>> oracle_metric("bleu-4(smoothing=exp)").is_of_texts
    True
    """
    if not isinstance(metric, str):
        metric = METRICS.find(metric)
    name = metric.name if isinstance(metric, Metric) else split_call(metric)[0]
    sought = OBJECTIVES.find(name) if name in OBJECTIVES else None
    if sought is not None and not sought.is_metric:
        if plain(str(metric)) != plain(name):
            raise InvalidSetting(f"{sought.name} has no parameters")
        return OracleMetric(sought.name, find_metric("clipscore"), sought)
    found = _known(metric, sought)
    if sought is None:
        needs = Plan([found]).needs
        if needs.embeddings or needs.images:
            searched = ", ".join(OBJECTIVES)
            raise InvalidSetting(
                f"no oracle searches by {found}; choose {searched}, or a metric of texts"
            )
    return OracleMetric(str(found), found, sought)


def _known(metric: Any, sought: Sought | None) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if sought is not None:
        # An alias of the search, such as text-to-text, is none of the metrics'.
        return find_metric(sought.name)(**split_call(metric)[1])
    try:
        return find_metric(metric)
    except UnknownName as error:
        texts = [name for name, other in METRICS.items() if not other.uses_embeddings]
        hint = str(error).partition("; ")[2].partition("Known: ")[0]
        raise UnknownName(
            f"no oracle metric is called {metric!r}; {hint}Of embeddings: "
            f"{', '.join(OBJECTIVES)}; of texts: {', '.join(texts)}"
        ) from None


def _with_encoder(signature: Signature, embeddings: Signature) -> Signature:
    flags = [name for name, value in embeddings if value is None]
    return signature.plus(embeddings.without("img", "views", *flags)).flagged(*flags)
