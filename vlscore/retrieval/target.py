"""Target of an oracle search: the metric to maximise, the settings, and the excluded rows.

- `OracleMetric` is a metric, or a direction of retrieval, that an oracle can maximise.
- `OracleSettings` holds all settings of a search.
- `Exclusions` finds the rows that a study must not find, such as copies of its own reference,
  because they would make its oracle trivially perfect.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from vlscore.core import Signature, described, plain_name, setting, split_call
from vlscore.data import TextPolicy
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting, InvalidStudy, UnknownName
from vlscore.metrics import METRICS, Metric, Plan, constant_of, find_metric
from vlscore.retrieval.index_folder import Index
from vlscore.retrieval.index_parts import short_digest
from vlscore.retrieval.queries import Query
from vlscore.retrieval.search_settings import SearchSettings
from vlscore.retrieval.vector_search.objectives import OBJECTIVES, SearchTarget

# Search by embeddings that finds the candidates for a text metric.
NEAREST = "cosine"


@dataclass(frozen=True)
class OracleMetric:
    """Metric, or direction of retrieval, that an oracle can maximise.

    Attributes:
        name: as printed and as accepted by `oracle_metric`: "vlscore(C=20)", "image-to-text".
        metric: metric that describes the scores in signatures; for a direction of retrieval, the
            metric that is the same cosine.
        target: target of the search by embeddings; None for a text metric.
    """

    name: str
    metric: Metric
    target: SearchTarget | None

    @property
    def is_of_texts(self) -> bool:
        """Return whether it compares texts rather than embeddings."""
        return self.target is None

    @property
    def needs(self) -> tuple[str, ...]:
        """Return what a study must have: "image", "reference" or both."""
        return ("reference",) if self.target is None else self.target.needs

    @property
    def searched_by(self) -> str:
        """Return the name in OBJECTIVES of the search that the index runs."""
        return NEAREST if self.target is None else self.target.name

    @property
    def rows(self) -> str:
        """Return what the index must hold: "report" or "image"."""
        return "report" if self.target is None else self.target.rows

    @property
    def image(self) -> float:
        """Return the weight of the image; 1 if the metric has no such parameter."""
        return float(self.metric.settings.get("image") or 1.0)

    def constant(self, embedder: StudyEmbedder | None) -> float | None:
        """Return C of the search; None if the metric has none.

        Raises: InvalidSetting if the metric is VLScore and C is unknown.
        """
        if self.target is None or "C" not in self.metric.settings:
            return None
        return constant_of(self.metric, None if embedder is None else embedder.C)

    def signature(self, embedder: StudyEmbedder | None, policy: TextPolicy) -> Signature:
        """Return what the scores depend on."""
        plan = Plan([self.metric], text=policy.signature())
        # The index names the corpus to which `TextSearch` fits the metric.
        fit = "corpus" if plan.needs_fit else None
        if embedder is None:
            return plan.signature(self.metric).plus(fit=fit)
        signature = plan.signature(self.metric, embedder.signature, embedder.C).plus(fit=fit)
        if self.target is None:
            # The candidates that are scored depend on the encoder that found them.
            return _with_encoder(signature, embedder.signature)
        if self.target.is_metric:
            return signature
        signature = signature.of(self.target.name)
        return signature.plus(views="first") if self.rows == "image" else signature


def oracle_metric(metric: Any) -> OracleMetric:
    """Return the oracle metric for a name in any spelling, with parameters, or for a Metric.

    Raises: UnknownName; InvalidSetting for a metric that an oracle cannot maximise.

    >>> oracle_metric("image_centred_cosine").name, oracle_metric("Text-to-Text").name
    ('image-centred-cosine', 'cosine')
    >>> oracle_metric("bleu-4(smoothing=exp)").is_of_texts
    True
    """
    if not isinstance(metric, str):
        metric = METRICS.find(metric)
    name = metric.name if isinstance(metric, Metric) else split_call(metric)[0]
    target = OBJECTIVES.find(name) if name in OBJECTIVES else None
    if target is not None and not target.is_metric:
        if plain_name(str(metric)) != plain_name(name):
            raise InvalidSetting(f"{target.name} has no parameters")
        return OracleMetric(target.name, find_metric("clipscore"), target)
    found = _known(metric, target)
    if target is None:
        needs = Plan([found]).needs
        if needs.embeddings or needs.images:
            searched = ", ".join(OBJECTIVES)
            raise InvalidSetting(
                f"no oracle searches by {found}; choose {searched}, or a metric of texts"
            )
    return OracleMetric(str(found), found, target)


def _known(metric: Any, target: SearchTarget | None) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if target is not None:
        # The registry of metrics does not know aliases of the search, such as text-to-text.
        return find_metric(target.name)(**split_call(metric)[1])
    try:
        return find_metric(metric)
    except UnknownName:
        meant = METRICS.similar_to(split_call(metric)[0])
        hint = f"did you mean {' or '.join(meant)}? " if meant else ""
        texts = [name for name, other in METRICS.items() if not other.uses_embeddings]
        raise UnknownName(
            f"no oracle metric is called {metric!r}; {hint}Of embeddings: "
            f"{', '.join(OBJECTIVES)}; of texts: {', '.join(texts)}"
        ) from None


def _with_encoder(signature: Signature, embeddings: Signature) -> Signature:
    flags = [name for name, value in embeddings if value is None]
    return signature.plus(embeddings.without("img", "views", *flags)).flagged(*flags)


@described
@dataclass(frozen=True)
class OracleSettings(SearchSettings):
    """Settings of an oracle search; `target` is the metric itself.

    Raises: InvalidSetting, UnknownName.
    """

    sample: int = setting(
        64, "Approximate mode: studies on which recall is measured.", "N", least=1
    )
    target: OracleMetric = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        target = oracle_metric(self.metric)
        if self.guard != "none" and target.searched_by != "vlscore":
            raise InvalidSetting(f"a guard belongs to vlscore, not to {target.name}")
        if self.exclude_exact and target.rows != "report":
            raise InvalidSetting(
                f"only reports equal a reference; {target.name} finds {target.rows}s, so nothing "
                "can be excluded for being a copy"
            )
        object.__setattr__(self, "target", target)

    @property
    def needs(self) -> frozenset[str]:
        """Return what a study must have: "image", "reference" or both."""
        return frozenset(self.target.needs) | ({"reference"} if self.exclude_exact else set())

    @property
    def wants(self) -> frozenset[str]:
        """Return the optional inputs, which are read if a study has them."""
        if not self.describe or self.target.is_of_texts or self.target.rows != "report":
            return frozenset()
        return frozenset({"image", "reference"}) - self.needs

    @property
    def uses_embeddings(self) -> bool:
        """Return whether studies are embedded at all."""
        return not self.target.is_of_texts or self.candidates > 0

    @property
    def excluded(self) -> str | None:
        """Return the exclusions as printed in signatures; None if there are none."""
        ids = [f"ids({self.exclude_ids})"] if self.exclude_ids is not None else []
        return "+".join([*(["exact"] if self.exclude_exact else []), *ids]) or None


Name = TypeVar("Name", str, bytes)


class Exclusions:
    """Rules for the rows of an index that a study must not find.

    Args:
        exact: exclude rows that equal its reference, word for word.
        ids_column: column that lists ids, the study's own or its patient's; a row is excluded if
            all the studies with this text are listed, because then no other study has it.
    """

    def __init__(self, index: Index, *, exact: bool = False, ids_column: str | None = None) -> None:
        self._index = index
        self._exact = exact
        self._ids_column = ids_column
        self._rows_of_text = (
            _inverted((_key(text),) for text in index.iter_texts()) if exact else {}
        )
        self._rows_of_id = _inverted(index.all_ids()) if ids_column is not None else {}

    def of(self, query: Query) -> list[int]:
        """Return excluded rows, ascending; raise InvalidStudy if the study lacks what is needed."""
        barred: set[int] = set()
        if self._exact:
            if query.reference is None:
                raise InvalidStudy("there is no reference whose copies could be excluded")
            barred.update(self._rows_of_text.get(_key(query.reference), ()))
        if self._ids_column is not None:
            ids = _listed(query.record, self._ids_column)
            touched = {row for id in ids for row in self._rows_of_id.get(id, ())}
            barred.update(row for row in touched if ids.issuperset(self._index.ids(row)))
        return sorted(barred)


def words(text: str) -> str:
    """Return a text with single blanks, because copies of a report differ in line breaks."""
    return " ".join(text.split())


def _key(text: str) -> bytes:
    return short_digest(words(text))


def _inverted(names_of_rows: Iterable[Iterable[Name]]) -> dict[Name, list[int]]:
    rows: dict[Name, list[int]] = {}
    for row, names in enumerate(names_of_rows):
        for name in names:
            rows.setdefault(name, []).append(row)
    return rows


def _listed(record: Any, column: str) -> set[str]:
    """Return the ids in a column: one, a list, or several separated by semicolons."""
    if column not in record:
        raise InvalidStudy(f'no column "{column}" to exclude ids by')
    value = record[column]
    if value is None:
        return set()
    values = value if isinstance(value, list) else str(value).split(";")
    return {str(item).strip() for item in values} - {""}
