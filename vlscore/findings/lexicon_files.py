"""Files of a lexicon: a folder of TOML files, one an axis; or all of them frozen in one JSON file.

The shipped folder grows with every new word, and whatever is computed from findings with it. Who
needs the same reading for ever, such as an encoder whose report tower was trained on findings,
keeps a frozen copy, which `freeze` writes. Both are read by `load_lexicon`.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from vlscore.core import TomlTable, read_table, resource_path
from vlscore.errors import InvalidLexicon

#: Raised by one where the rules (not only the lexicons) read the same words otherwise; also where
#: `vlscore.text` does, whose words a frozen lexicon does not hold.
_RULES = 13
#: The tables of a lexicon of findings. The folder that ships has further ones, for perturbations.
TABLES = (
    *("observations", "coverage", "context", "location", "severity", "change", "sentences"),
    *("grammar", "spellings"),
)
_LARGEST_FROZEN = 1 << 24


def our_lexicon() -> Path:
    """Return the folder of the lexicons that ship with vlscore."""
    return resource_path("perturbations", "lexicons")


@cache
def read_tables(source: Path | None = None) -> Mapping[str, TomlTable]:
    """Return the tables of a lexicon by name.

    Args: source: a folder, or a file that `freeze` wrote; default: the lexicon that ships.
    Raises: InvalidLexicon.
    """
    source = source or our_lexicon()
    if not source.is_file():
        return {name: read_table(source / f"{name}.toml") for name in TABLES}
    try:
        if source.stat().st_size > _LARGEST_FROZEN:
            raise ValueError("it is too large")
        tables = json.loads(source.read_text(encoding="utf-8"))
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            raise ValueError("it holds no tables")
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise InvalidLexicon(f"{source} is no frozen lexicon: {reason}") from None
    if missing := [name for name in TABLES if name not in tables]:
        raise InvalidLexicon(f"{source} is no frozen lexicon: it lacks {', '.join(missing)}")
    return {name: TomlTable(table, f"{name}.toml") for name, table in tables.items()}


def freeze(source: Path | None = None) -> str:
    """Return all tables of a lexicon as one JSON text, which `load_lexicon` reads from a file."""
    return json.dumps(dict(read_tables(source)), ensure_ascii=False, indent=0) + "\n"


@cache
def extraction_name(source: Path | None = None) -> str:
    """Return the name of an extraction for signatures: version of its rules, digest of its words.

    Whatever is computed from findings depends on both. The words are those of the lexicon; and of
    `vlscore.text`, where it is the lexicon that ships.

    Args: source: a lexicon's folder or frozen file; default: the lexicon that ships.
    """
    folder = source or our_lexicon()
    files = [folder] if folder.is_file() else sorted(folder.glob("*.toml"))
    if source is None:
        files.append(Path(__file__).parents[1] / "text" / "english.toml")
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return f"{_RULES}+{digest.hexdigest()[:8]}"
