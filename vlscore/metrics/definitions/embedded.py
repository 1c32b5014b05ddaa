"""VLScore, its ablations and CLIPScore: functions of embedded triples."""

from vlscore.metrics.metric import Metric
from vlscore.similarity import SIMILARITIES

EMBEDDED = tuple(
    Metric(
        name=similarity.name,
        description=similarity.description,
        higher_is_better=similarity.higher_is_better,
        bounds=similarity.bounds,
        uses_image=similarity.uses_image,
        uses_reference=similarity.uses_reference,
        uses_embeddings=True,
        citation=similarity.citation,
    )
    for similarity in SIMILARITIES.values()
)
