"""Search on arrays: the best rows of a corpus for a query, exactly or through a FAISS index.

`Oracle(vectors, C=...).search(images, references)` takes plain arrays and knows no files.
"""

from vlscore.search.approximate import ApproximateIndex, build_approximate, line_points
from vlscore.search.corpus import Corpus
from vlscore.search.exact import Hits, search
from vlscore.search.named import OBJECTIVES, Sought
from vlscore.search.objectives import GUARDS, Cosine, ImageCentredCosine, Line, Objective
from vlscore.search.oracle import EXACT_UP_TO, Found, Oracle, nearer, recall
from vlscore.search.sharding import Shards

__all__ = [
    "EXACT_UP_TO",
    "GUARDS",
    "OBJECTIVES",
    "ApproximateIndex",
    "Corpus",
    "Cosine",
    "Found",
    "Hits",
    "ImageCentredCosine",
    "Line",
    "Objective",
    "Oracle",
    "Shards",
    "Sought",
    "build_approximate",
    "line_points",
    "nearer",
    "recall",
    "search",
]
