"""Words of a report, as BLEU and CIDEr-D count them."""

from collections.abc import Callable

from vlscore.errors import MissingDependency


def before_periods(text: str) -> str:
    """Blanks alone, and one before each period: the words of CXR-Report-Metric.

    >>> before_periods("No effusion,  clear.")
    'No effusion, clear .'
    """
    return " ".join(text.replace(".", " .").split())


def splitter(tokens: str) -> Callable[[str], list[str]]:
    """The function from a text to its lower-case words, as the parameter `tokens` names it.

    Raises: MissingDependency where sacrebleu is absent, for "13a".
    """
    if tokens == "cxr":
        return lambda text: before_periods(text.lower()).split()
    try:
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    except ImportError:
        raise MissingDependency(
            "sacrebleu is not installed: pip install 'vlscore[metrics]'"
        ) from None
    tokenize: Callable[[str], str] = Tokenizer13a()  # type: ignore[no-untyped-call]
    return lambda text: tokenize(text.lower().rstrip()).split()
