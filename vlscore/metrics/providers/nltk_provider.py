"""METEOR by NLTK, which needs the WordNet corpus on this machine; nothing is fetched."""

import os
import re
import sys
from pathlib import Path
from typing import Any

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider, one_column

_HOW_TO_GET_WORDNET = (
    "METEOR needs the WordNet corpus: python -m nltk.downloader wordnet; on a machine without a "
    "network, set NLTK_DATA to a folder that holds corpora/wordnet"
)
_TOKEN = re.compile(r"\w+(?:[.'-]\w+)*|[^\w\s]")


class NltkProvider(Provider):
    """METEOR over lower-case words (with inner periods and hyphens) and punctuation marks."""

    library = "nltk"
    extra = "metrics"
    supports = ("meteor",)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        wordnet = self._wordnet()
        score = self._module("nltk.translate.meteor_score").single_meteor_score
        return one_column(
            [
                score(_tokens(reference), _tokens(candidate), wordnet=wordnet, **metric.settings)
                for candidate, reference in batch.pairs()
            ]
        )

    def missing(self, metric: Metric) -> str | None:
        # NLTK takes seconds to import; whether its corpus is there can be told without.
        return super().missing(metric) or (None if _has_wordnet() else _HOW_TO_GET_WORDNET)

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"tokens": "words+marks", "case": "lower", "wordnet": self._wordnet().get_version()}

    def _wordnet(self) -> Any:
        corpus = self._module("nltk.corpus").wordnet
        try:
            corpus.ensure_loaded()
        except (LookupError, OSError):
            raise MissingDependency(_HOW_TO_GET_WORDNET) from None
        return corpus


def _has_wordnet() -> bool:
    """Whether a folder that NLTK searches holds the corpus, unpacked or not."""
    loaded = sys.modules.get("nltk.data")
    folders = loaded.path if loaded is not None else _searched_folders()
    return any(
        (Path(folder) / "corpora" / name).exists()
        for folder in folders
        for name in ("wordnet", "wordnet.zip")
    )


def _searched_folders() -> list[str]:
    """As in nltk.data, whose documentation lists them."""
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    places = [os.path.expanduser("~"), *(f"{sys.prefix}{part}" for part in ("", "/share", "/lib"))]
    places += ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    if sys.platform == "win32":
        places += [os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\"]
    return [*named, *(os.path.join(place, "nltk_data") for place in places)]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())
