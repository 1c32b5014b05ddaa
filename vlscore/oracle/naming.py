"""Which name of a metric an oracle takes: one that a search minimises, or a metric of texts."""

from vlscore.errors import InvalidSetting, UnknownName
from vlscore.metrics import METRICS as TEXT_METRICS
from vlscore.metrics import find_metric
from vlscore.search import METRICS


def oracle_metric(name: str) -> str:
    """The name of a metric of METRICS, also when written with "_" or blanks, or of a text metric.

    Raises: UnknownName; InvalidSetting for a metric of embeddings that no search minimises.

    >>> oracle_metric("image_centred_cosine")
    'image-centred-cosine'
    """
    plain = name.strip().replace("_", "-").replace(" ", "-")
    if plain in METRICS:
        return plain
    try:
        metric = find_metric(name)
    except UnknownName:
        texts = ", ".join(other for other, m in TEXT_METRICS.items() if not m.uses_embeddings)
        raise UnknownName(
            f"no oracle metric is called {name!r}; of embeddings: {', '.join(METRICS)}; of texts: "
            f"{texts}"
        ) from None
    if metric.uses_embeddings:
        raise InvalidSetting(f"no oracle searches by {name}; choose {', '.join(METRICS)}")
    return name
