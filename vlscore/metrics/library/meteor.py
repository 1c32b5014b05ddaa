"""METEOR 1.5 by its authors' Java program, as papers on report generation print it.

The program is part of pycocoevalcap (`pip install 'vlscore[meteor]'`) and needs a Java runtime. It
aligns words, stems, WordNet's synonyms and paraphrases, and returns counts. The score is computed
from these, for a report and for a corpus, whose counts are added first.
"""

import atexit
import shutil
import subprocess
import threading
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vlscore.core import file_digest
from vlscore.errors import MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.words import share
from vlscore.metrics.metric import Metric, Output

_JAR = Path("meteor", "meteor-1.5.jar")
_HOW_TO_GET_JAVA = (
    "METEOR 1.5 needs a Java runtime: install one, for example with apt-get install "
    "default-jre-headless. meteor-nltk needs none, but its values are more than twice as high: do "
    "not compare them with those of papers"
)
# Parameters for English (Denkowski, Lavie 2014), and weights of matched words: equal, of equal
# stem, synonyms, paraphrases.
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])


class Meteor(Metric):
    """METEOR 1.5 for English, with the options of pycocoevalcap (`-l en -norm`)."""

    name = "meteor"
    title = "METEOR"
    description = (
        "aligned words, stems, synonyms and paraphrases, with a penalty for fragmentation; METEOR "
        "1.5 in Java, as pycocoevalcap and papers on report generation print it"
    )
    citation = "Denkowski, Lavie 2014, Meteor Universal, WMT"
    bounds = (0.0, 1.0)
    corpus = (Output("corpus", "counts pooled over all reports, as pycocoevalcap prints"),)
    # Words and function words; for each kind of match, its content words and function words; runs
    # of matched words, 0 where one run is the whole of both reports; matched words. All but the
    # runs are two counts, of the candidate and of the reference.
    statistics = 23
    primary = "corpus"
    reference_scores_best = True
    library = "pycocoevalcap"
    extra = "meteor"
    normalisation: ClassVar[Mapping[str, str]] = {
        "case": "lower",
        "tokens": "meteor-1.5-norm",
        "masks": "as-text",
    }

    def compute(self, batch: Batch) -> Computed:
        program = _program(self._jar())
        statistics = np.array([program.counts(g, r) for g, r in batch.pairs()])
        statistics = statistics.reshape(-1, self.statistics)
        # One run of words that covers both reports is not fragmented, alone or in a corpus.
        is_whole = (statistics[:, 21:23] == statistics[:, :2]).all(1) & (statistics[:, 20] == 1)
        statistics[is_whole, 20] = 0
        return Computed([_scores(statistics)], statistics)

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        return {"corpus": _scores(sums)}

    def missing(self) -> str | None:
        return super().missing() or (None if shutil.which("java") else _HOW_TO_GET_JAVA)

    def facts(self) -> dict[str, Any]:
        return {"meteor": f"1.5@{file_digest(self._jar())[:8]}", **super().facts()}

    def _jar(self) -> Path:
        """Return the program. Raises: MissingDependency."""
        if (reason := self.missing()) is not None:
            raise MissingDependency(reason)
        found = find_spec("pycocoevalcap")
        for folder in (found and found.submodule_search_locations) or ():
            if (jar := Path(folder) / _JAR).is_file():
                return jar
        raise MissingDependency(
            f"pycocoevalcap is installed without {_JAR.as_posix()}: install it again"
        )


class _Program:
    """The Java program, which answers one line for each line; it ends with this process."""

    def __init__(self, jar: Path) -> None:
        # It reads data/paraphrase-en.gz from its own folder.
        self._process = subprocess.Popen(
            ["java", "-jar", "-Xmx2G", jar.name, "-", "-", "-stdio", "-l", "en", "-norm"],
            cwd=jar.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        self._lock = threading.Lock()
        atexit.register(self._process.kill)

    def counts(self, candidate: str, reference: str) -> list[float]:
        """Return the 23 counts of one pair. Raises: VLScoreError where the program has ended."""
        line = " ||| ".join(["SCORE", _one_line(reference), _one_line(candidate)])
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            with self._lock:
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()
                found = [float(count) for count in self._process.stdout.readline().split()]
        except (OSError, ValueError):
            found = []
        if len(found) != Meteor.statistics:
            _program.cache_clear()
            raise VLScoreError(
                "METEOR's Java program ended or gave no counts; it needs Java 8 or later and 2 GiB "
                "of memory"
            )
        return found


_program = cache(_Program)


def _one_line(text: str) -> str:
    """Return the text without what separates texts and requests; pycocoevalcap does the same."""
    return " ".join(text.replace("|||", " ").split())


def _scores(counts: Values) -> Values:
    """Compute METEOR 1.5 from (k, 23) counts, as its class MeteorScorer does."""
    lengths, functions = counts[:, 0:2], counts[:, 2:4]
    # (k, 2): candidate, reference.
    content, function = (
        np.stack([counts[:, 4 + place + side :: 4][:, :4] @ _WEIGHTS for side in (0, 1)], axis=1)
        for place in (0, 2)
    )
    matched = _DELTA * content + (1 - _DELTA) * function
    words = _DELTA * (lengths - functions) + (1 - _DELTA) * functions
    precision, recall = share(matched, words, 0.0).T
    mean = share(precision * recall, _ALPHA * precision + (1 - _ALPHA) * recall, 0.0)
    fragments = share(counts[:, 20], counts[:, 21:23].mean(1), 0.0)
    return np.clip(mean * (1 - _GAMMA * fragments**_BETA), 0.0, 1.0)
