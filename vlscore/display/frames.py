"""Records of results as a pandas DataFrame; pandas is loaded when one is made."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from vlscore._files import plain
from vlscore.errors import MissingDependency

if TYPE_CHECKING:
    import pandas

_INTERVAL = {"estimate", "low", "high"}


def frame(records: Iterable[Any]) -> "pandas.DataFrame":
    """One row a record, a dataclass or mapping; an interval becomes the columns x, x.low, x.high.

    Raises: MissingDependency where pandas is absent.
    """
    try:
        import pandas
    except ImportError:
        raise MissingDependency("pandas is not installed: pip install pandas") from None
    return pandas.DataFrame([flat(plain(record)) for record in records])


def flat(record: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """A record without mappings in it: names of what is inside are joined by a point.

    >>> flat({"metric": "bleu-4", "tau": {"estimate": 0.5, "low": 0.4, "high": 0.6}})
    {'metric': 'bleu-4', 'tau': 0.5, 'tau.low': 0.4, 'tau.high': 0.6}
    """
    found: dict[str, Any] = {}
    for key, value in record.items():
        whole = f"{name}.{key}" if name else key
        if isinstance(value, Mapping) and set(value) == _INTERVAL:
            found |= {whole: value["estimate"]}
            found |= {f"{whole}.{bound}": value[bound] for bound in ("low", "high")}
        elif isinstance(value, Mapping):
            found |= flat(value, whole)
        else:
            found[whole] = value
    return found
