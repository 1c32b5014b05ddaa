"""Words of a report, as BLEU and CIDEr-D count them."""

from collections.abc import Callable

from vlscore.errors import MissingDependency

# Texts that are split before sacrebleu's memories are emptied.
_REMEMBERED = 2048


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
    count = 0

    def split(text: str) -> list[str]:
        nonlocal count
        count += 1
        if count % _REMEMBERED == 0:
            forget_lines()
        return tokenize(text.lower().rstrip()).split()

    return split


def forget_lines() -> None:
    """Empty the memories of sacrebleu's tokenizer 13a, of which there are two.

    Each keeps 65,536 lines for as long as the process lives: in a long run more than all else that
    grows with the table.
    """
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    for kind in (Tokenizer13a, TokenizerRegexp):
        # Another release may remember nothing.
        getattr(kind.__call__, "cache_clear", lambda: None)()
