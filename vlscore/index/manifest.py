"""The manifest of an index: `index.json`, which says what the index is and what its files are.

An index may come from elsewhere, so nothing that stands in it is taken on trust.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from vlscore._signature import Signature
from vlscore._version import __version__
from vlscore.errors import InvalidIndex

FORMAT = 1
MANIFEST = "index.json"
KINDS = ("report", "image")
ROLES = {"vectors", "table", "bad_rows", "flat", "approximate"}

_LARGEST = 2**62


@dataclass(frozen=True)
class FileRecord:
    """A file of the index: its name in the folder, size in bytes and sha256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What `index.json` says.

    Attributes:
        kind: what the vectors embed: "report" or "image".
        encoder, checksum: name of the encoder and sha256 of its weights.
        demonstration: the encoder is the bundled one, trained on synthetic phantoms.
        signature: encoder, text or image policy and precision in one line.
        rows: distinct texts (or images), each with one vector.
        items: reports (or images) that they stand for, repeated ones counted.
        bad_rows: rows of the source that could not be used.
        sources: each table, in the order they were added: "name", "path" as it was given, "sha256",
            and "request", the digest of the build or add that brought it.
        files: "vectors", "table", "bad_rows", and a FAISS file, "flat" or "approximate", where
            there is one.
        approximate: the FAISS factory string, where there is an approximate index.
        generation: grows by one with every change.
        request: digest of the build that made it, to know one that was killed at its very end.
    """

    kind: str
    encoder: str
    checksum: str
    demonstration: bool
    signature: str
    dim: int
    rows: int
    items: int
    bad_rows: int
    sources: list[dict[str, str]]
    files: dict[str, FileRecord]
    approximate: str | None = None
    generation: int = 1
    request: str = ""
    format: int = FORMAT
    version: str = field(default=__version__)

    @property
    def facts(self) -> Signature:
        """The signature as a value."""
        has_subject = self.signature.startswith("index|")
        # Indexes of earlier versions were printed without what the signature is of.
        return Signature.parse(self.signature if has_subject else f"index|{self.signature}")


def read_manifest(path: Path) -> Manifest:
    """The manifest of an index; raises InvalidIndex."""
    source = path / MANIFEST
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = " (an unfinished build; repeat the command)" if (path / ".parts").is_dir() else ""
        raise InvalidIndex(
            f"{path} is no index{hint}: no {MANIFEST}. `vlscore index build` makes one"
        ) from None
    except NotADirectoryError:
        raise InvalidIndex(
            f"{path} is a file; an index is a folder, which `vlscore index build` makes of a table"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidIndex(f"{source} cannot be read: {type(error).__name__}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        found = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
        raise InvalidIndex(f"{source}: format {found!r}; this version reads format {FORMAT}")
    try:
        files = {role: FileRecord(**record) for role, record in raw.pop("files").items()}
        manifest = Manifest(files=files, **raw)
    except (TypeError, KeyError, AttributeError):
        manifest = None
    if manifest is None or not _is_sound(manifest):
        raise InvalidIndex(f"{source}: entries are missing, unknown or malformed")
    return manifest


def _is_sound(manifest: Manifest) -> bool:
    counts = ("dim", "rows", "items", "bad_rows", "generation")
    texts = ("kind", "encoder", "checksum", "signature", "request", "version")
    return (
        all(_is_count(getattr(manifest, name)) for name in counts)
        and manifest.dim > 0
        and all(_is_text(getattr(manifest, name)) for name in texts)
        and manifest.kind in KINDS
        and isinstance(manifest.demonstration, bool)
        and (manifest.approximate is None or _is_text(manifest.approximate))
        and isinstance(manifest.sources, list)
        and all(map(_is_source, manifest.sources))
        and {"vectors", "table", "bad_rows"} <= manifest.files.keys() <= ROLES
        and all(map(_is_record, manifest.files.values()))
    )


def _is_record(record: FileRecord) -> bool:
    # A name with a folder in it would make the index read other people's files.
    local = _is_text(record.name) and Path(record.name).name == record.name != ".."
    return local and _is_count(record.size) and _is_text(record.sha256)


def _is_source(source: object) -> bool:
    return (
        isinstance(source, dict)
        and {"name", "sha256"} <= source.keys()
        and all(map(_is_text, source.values()))
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _is_text(value: object) -> bool:
    """Text of one line that a terminal shows as it is."""
    return isinstance(value, str) and value.isprintable()
