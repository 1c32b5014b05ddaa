"""Sentences of a report as RaTEScore reads them.

RaTEScore's released code cuts reports by RuSH (Shi et al. 2016, in the packages medspaCy and
PyRuSH). Where PyRuSH is installed its sentences are taken, else those of `vlscore.data`: the score
of a report may then differ, and signatures say which sentences were read.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec

from vlscore.core import __version__

# Shorter sentences are not read: numbers of lists, single periods.
_SHORTEST = 3


def sentences(text: str) -> list[str]:
    """Return the sentences of a report, without the blanks around them; none for an empty one."""
    parts = (part.strip() for part in _splitter()(text))
    return [part for part in parts if len(part) >= _SHORTEST]


def sentences_fact() -> str:
    """Return which splitter cuts reports, for signatures."""
    return f"PyRuSH-{version('PyRuSH')}" if _has_rush() else f"vlscore@{__version__}"


def _has_rush() -> bool:
    return find_spec("PyRuSH") is not None


@lru_cache(maxsize=1)
def _splitter() -> Callable[[str], list[str]]:
    if not _has_rush():
        from vlscore.text import split_sentences

        return lambda text: [sentence.text for sentence in split_sentences(text)]
    import PyRuSH  # noqa: F401 - registers the component
    import spacy
    from loguru import logger

    # It prints every token that it looks at.
    logger.disable("PyRuSH")
    reader = spacy.blank("en")
    reader.add_pipe("medspacy_pyrush")
    return lambda text: [sentence.text for sentence in reader(text).sents]
