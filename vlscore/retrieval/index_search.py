"""Search of an index as settings say it: what is searched, how, and what the hits depend on."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from functools import cached_property
from typing import Any

import numpy as np

from vlscore.core import Signature, open_cache
from vlscore.data import Study, TextPolicy
from vlscore.embedding import STUDIES_AT_ONCE, EmbeddedTable, StudyEmbedder
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.metrics import Plan, constant_of
from vlscore.retrieval.approximate import ApproximateIndex
from vlscore.retrieval.corpus import Array, Corpus
from vlscore.retrieval.index import FAISS, REPORTS, VECTORS, Index
from vlscore.retrieval.oracle_settings import OracleSettings
from vlscore.retrieval.text_search import TextSearch
from vlscore.retrieval.vector_oracle import Hit, Oracle, recall

# Names of the numbers of a hit.
NUMBERS = tuple(each.name for each in fields(Hit))
# Limit of rows below which exact search answers hundreds of queries a second on one core.
_EXACT_UP_TO = 1_000_000
# Batch size for searches that compare every study with a whole corpus of texts: seconds a study.
_SLOW_AT_ONCE = 16
# Studies on which the recall of approximate search is measured.
_SAMPLE = 64


class IndexSearch:
    """Search of an index for the best rows of studies.

    Args:
        embedder: with the encoder and policies that made the index; default: the index's encoder.
        policy: which section of a reference is used.

    Attributes:
        target: what the hits maximise.
        embedder: None if no study is embedded.
        needs: inputs that a study must have: "image", "reference" or both.
        wants: inputs that are read if a study has them: they give the hits' area, foot, distance.
        is_approximate: whether candidates come from the approximate index.
        studies_at_once: number of studies of a batch.

    Raises: InvalidIndex if the index was made with another encoder or other policies;
    InvalidSetting.
    """

    def __init__(
        self,
        index: Index,
        embedder: StudyEmbedder | None,
        settings: OracleSettings,
        policy: TextPolicy,
    ) -> None:
        self._index, self._settings, self._policy = index, settings, policy
        self.target = target = settings.target
        if not settings.uses_encoder:
            embedder = None
        elif embedder is None:
            embedder = StudyEmbedder(index.encoder_name("embedder=StudyEmbedder(NAME)"))
        self.embedder = embedder
        if index.facts.kind != target.rows:
            raise InvalidSetting(
                f"{target.name} searches an index of {target.rows}s; {index.folder} holds "
                f"{index.facts.kind}s"
            )
        if embedder is None:
            index.check_text_policy(policy)
        else:
            index.check_made_with(embedder, policy)
        is_large = len(index) > _EXACT_UP_TO and FAISS in index.digests
        self.is_approximate = embedder is not None and (
            settings.mode == "approximate" or (settings.mode == "auto" and is_large)
        )
        if self.is_approximate and FAISS not in index.digests:
            raise InvalidSetting(
                f"{index.folder} has no approximate index: build one with --approximate, or "
                "search exactly"
            )
        self._C = None
        if target.metric.name == "vlscore":
            self._C = constant_of(target.metric, None if embedder is None else embedder.C)
        self.needs = {*target.needs, *(("reference",) if settings.exclude_exact else ())}
        is_described = target.rows == "report" and not target.reads_texts
        self.wants = {"image", "reference"} - self.needs if is_described else set()
        is_slow = target.reads_texts and not settings.candidates
        self.studies_at_once = _SLOW_AT_ONCE if is_slow else STUDIES_AT_ONCE

    @property
    def facts(self) -> dict[str, Any]:
        """What the hits depend on, besides the study."""
        names = (VECTORS, REPORTS, *((FAISS,) if self.is_approximate else ()))
        return {
            "signature": str(self.signature),
            "index": {name: self._index.digests[name] for name in names},
            "k": self._settings.k,
        }

    @cached_property
    def signature(self) -> Signature:
        """What the scores depend on."""
        settings, target, embedder = self._settings, self.target, self.embedder
        plan = Plan([target.metric], text=self._policy.signature())
        # The index names the corpus to which `TextSearch` fits the metric.
        fit = "corpus" if plan.needs_fit else None
        signature = plan.signature_of(target.metric, embedder).plus(fit=fit)
        if not target.is_metric:
            views = "first" if target.rows == "image" else None
            signature = signature.of(target.name).plus(views=views)
        elif target.reads_texts and embedder is not None:
            # The candidates that are scored depend on the encoder that found them.
            signature = signature.plus(embedder.signature.without("img", "views"))
        effort = f"(effort={settings.effort})" if settings.effort is not None else ""
        excluded = ["exact"] if settings.exclude_exact else []
        excluded += [f"ids({settings.exclude_ids})"] if settings.exclude_ids is not None else []
        return signature.plus(
            oracle=f"approximate{effort}" if self.is_approximate else "exact",
            guard=settings.guard if target.metric.name == "vlscore" else None,
            excl="+".join(excluded) or None,
            index=self._index.digests[VECTORS][:12],
            candidates=(settings.candidates or "all") if target.reads_texts else None,
        )

    def hits(self, batch: EmbeddedTable) -> list[tuple[Study, Array | str]]:
        """Return for each study the numbers of its hits, (m, 7) float64, or why there are none.

        They are in the cache, of the embedder or of the user, the moment they are found.
        """
        excluded: dict[int, list[int]] = {}
        found: dict[int, Any] = {}
        for position, study in enumerate(batch.studies):
            try:
                excluded[position] = self._index.excluded_rows(
                    study,
                    copies=self._settings.exclude_exact,
                    id_column=self._settings.exclude_ids,
                )
            except VLScoreError as error:
                found[position] = str(error)
        contents = [_content_of(batch, position, rows) for position, rows in excluded.items()]
        positions = dict(zip(contents, excluded, strict=True))

        def search(contents: Sequence[tuple[str, ...]]) -> Iterable[Any]:
            some = [positions[each] for each in contents]
            return self._found(batch, some, [excluded[position] for position in some])

        cache = open_cache() if self.embedder is None else self.embedder.cache
        # A metric of the user's own may change without another name.
        is_ours = type(self.target.metric).__module__.startswith("vlscore.metrics.library.")
        values: Iterable[Any] = ()
        if contents and is_ours and cache is not None:
            values = cache.namespace({"holds": "hits", **self.facts}).many(contents, search)
        elif contents:
            values = search(contents)
        found |= zip(excluded, values, strict=True)
        return [(study, found[position]) for position, study in enumerate(batch.studies)]

    def recall(self, batch: EmbeddedTable) -> dict[int, float]:
        """Return k -> share of the true hits that are found, on the first studies."""
        vectors = _vectors_of(batch, slice(_SAMPLE))
        return {k: recall(self._oracle, *vectors, k=k) for k in sorted({1, self._settings.k})}

    @cached_property
    def _oracle(self) -> Oracle:
        """The search by embeddings; made on first use, because it reads the corpus."""
        approximate = None
        device = "cpu" if self.embedder is None else self.embedder.device
        corpus = Corpus(self._index.vectors, device=device)
        if self.is_approximate:
            path = self._index.folder / FAISS
            approximate = ApproximateIndex(path, corpus, effort=self._settings.effort)
        return Oracle(
            corpus,
            metric="cosine" if self.target.reads_texts else self.target,
            C=self._C,
            guard=self._settings.guard,
            approximate=approximate,
        )

    @cached_property
    def _texts(self) -> TextSearch:
        return TextSearch(self.target.metric, self._index.texts())

    def _found(
        self, batch: EmbeddedTable, positions: list[int], excluded: list[list[int]]
    ) -> Iterable[Array | str]:
        """Search for some studies of a batch, each without its excluded rows."""
        k, barred = self._settings.k, dict(enumerate(excluded))
        images, references = _vectors_of(batch, positions)
        if not self.target.reads_texts:
            ranks = self.target.rows == "report"
            found = self._oracle.search(images, references, k=k, excluded=barred, ranks=ranks)
            return [_numbers(hits) for hits in found]
        rows: list[list[int]] | None = None
        if depth := self._settings.candidates:
            nearest = self._oracle.hits(None, references, k=max(depth, k), excluded=barred)
            rows = [each[each >= 0].tolist() for each in nearest.rows]
        texts = [batch.studies[position].reference or "" for position in positions]
        ranked = self._texts.search(texts, k=k, rows=rows, excluded=barred)
        return [
            str(pairs) if isinstance(pairs, VLScoreError) else _numbers(Hit(*x) for x in pairs)
            for pairs in ranked
        ]


def _vectors_of(batch: EmbeddedTable, positions: Any) -> list[Array | None]:
    """Return the embeddings (m, d) of images and of references; None for those not read."""
    both = (batch.vectors.get(role) for role in ("image", "reference"))
    return [None if vectors is None else vectors[positions] for vectors in both]


def _content_of(batch: EmbeddedTable, position: int, excluded: Sequence[int]) -> tuple[str, ...]:
    """Return what decides on the hits of a study: its reference, embeddings, excluded rows."""
    vectors = ("" if x is None else x.tobytes().hex() for x in _vectors_of(batch, position))
    reference = batch.studies[position].reference or ""
    return (reference, *vectors, " ".join(map(str, excluded)))


def _numbers(hits: Iterable[Hit]) -> Array:
    """Return the numbers of hits (m, 7) float64, nan for None."""
    return np.array([astuple(hit) for hit in hits], dtype=np.float64).reshape(-1, len(NUMBERS))
