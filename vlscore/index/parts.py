"""The finished parts of a build: after a kill each is whole or absent, and the build goes on.

Rows are embedded a part at a time. A part is written beside the others and takes its name in one
rename. `build.json` says which build the parts belong to.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore._files import atomic_write, file_digest
from vlscore.errors import InvalidIndex, InvalidSetting
from vlscore.index.items import Source
from vlscore.studies import BadRow, Report

_FOLDER = ".parts"
_DISCARDED = ".parts-discarded"
_KEY = "build.json"


@dataclass(frozen=True)
class BuildKey:
    """What must be equal for an unfinished build to be gone on with.

    Attributes:
        table, sha256: name and content of the table.
        checksum: of the encoder's weights.
        signature: of the index.
        settings: how the table is read.
        base: sha256s of the index that the table is added to; empty for a new one.
    """

    table: str
    sha256: str
    checksum: str
    signature: str
    settings: list[str | None]
    base: list[str]

    @property
    def request(self) -> str:
        """Digest of what was asked for, whatever it was added to."""
        asked = {name: value for name, value in asdict(self).items() if name != "base"}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def short_digest(text: str) -> bytes:
    """Sixteen bytes that stand for a text."""
    return hashlib.sha256(text.encode("utf-8")).digest()[:16]


class KnownTexts:
    """Row number by text, kept as digests: a corpus of long reports need not fit in memory."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._rows: dict[bytes, int] = {}
        self.extend(texts)

    def extend(self, texts: Iterable[str]) -> None:
        """Number further texts on."""
        for text in texts:
            self._rows[short_digest(text)] = len(self._rows)

    def get(self, text: str) -> int | None:
        """The row of a text, None for a new one."""
        return self._rows.get(short_digest(text))

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True)
class Part:
    """What a stretch of the table brought.

    Attributes:
        texts: new ones, in the order of their vectors.
        owners: (row in the index, id) of every usable item.
        bad: (row of the table, id, reason) of the others.
        rows: of the table.
        sha256: of the file of vectors.
    """

    texts: list[str]
    owners: list[tuple[int, str]]
    bad: list[tuple[int, str | None, str]]
    rows: int
    sha256: str


class Parts:
    """The finished parts of one build, in the table's order.

    Args:
        out: folder of the index.
        key: which build they must belong to.
        known: the texts of the index so far; those of the parts are added.
        anew: for a new index; throw damaged parts, or those of another build, away.

    Attributes:
        done, failed: rows of the table so far, and how many of them were bad.

    Raises: InvalidSetting for parts of another build; InvalidIndex for damaged ones.
    """

    def __init__(
        self, out: Path, key: BuildKey, dim: int, known: KnownTexts, *, anew: bool = False
    ) -> None:
        self._out, self._folder, self._dim, self._known = out, out / _FOLDER, dim, known
        self._paths: list[Path] = []
        self.done = self.failed = 0
        try:
            found = unfinished_build(out)
            if found == key:
                self._resume()
        except InvalidIndex:
            if not anew:
                raise
            found, self._known, self._paths = None, KnownTexts(), []
            self.done = self.failed = 0
        if found is not None and found != key and not anew:
            raise InvalidSetting(f"{self._folder} holds {_difference(found, key)}")
        if found != key:
            self._begin(key)

    def __iter__(self) -> Iterator[Part]:
        return map(self._read, self._paths)

    def vectors(self) -> Iterator[NDArray[Any]]:
        """(n, d) float32 of each part."""
        return map(self._vectors, self._paths)

    def append(self, chunk: Sequence[Report | BadRow], source: Source) -> None:
        """Embed a stretch of the table and keep it."""
        bad = [(row.row, row.id, row.reason) for row in chunk if isinstance(row, BadRow)]
        reports = [row for row in chunk if isinstance(row, Report)]
        new = [
            text
            for text in dict.fromkeys(report.text for report in reports)
            if self._known.get(text) is None
        ]
        embedded = source.embed(new)
        vectors = embedded.vectors.numpy()
        reasons = {new[k]: str(error) for k, error in embedded.failures.items()}
        for position in np.flatnonzero(~np.isfinite(vectors).all(1)).tolist():
            reasons.setdefault(
                new[position], "the encoder returned an embedding that is not finite"
            )
        good = [position for position, text in enumerate(new) if text not in reasons]
        texts = [new[position] for position in good]
        row_of_new = {text: len(self._known) + number for number, text in enumerate(texts)}
        owners = []
        for report in reports:
            row = row_of_new.get(report.text, self._known.get(report.text))
            if row is None:
                bad.append((report.row, report.id, reasons[report.text]))
            else:
                owners.append((row, report.id))
        bad.sort(key=lambda row: row[0])
        self._keep(vectors[good], Part(texts, owners, bad, len(chunk), ""))

    def remove(self) -> None:
        """Forget the parts, now that the index holds them."""
        discard_parts(self._out)

    def _keep(self, vectors: NDArray[Any], part: Part) -> None:
        new = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder))
        with (new / "vectors.npy").open("wb") as stream:
            np.save(stream, np.ascontiguousarray(vectors, np.float32), allow_pickle=False)
            stream.flush()
            os.fsync(stream.fileno())
        content = {**asdict(part), "sha256": file_digest(new / "vectors.npy")}
        with atomic_write(new / "part.json") as text_stream:
            json.dump(content, text_stream)
        path = self._folder / _part_name(len(self._paths))
        os.rename(new, path)
        self._count(path, part)

    def _count(self, path: Path, part: Part) -> None:
        self._paths.append(path)
        self._known.extend(part.texts)
        self.done += part.rows
        self.failed += len(part.bad)

    def _begin(self, key: BuildKey) -> None:
        discard_parts(self._out)
        self._folder.mkdir(parents=True)
        with atomic_write(self._folder / _KEY) as stream:
            json.dump(asdict(key), stream)

    def _resume(self) -> None:
        """Count the parts on disk, having compared their digests; remove what is half done."""
        for stray in self._folder.glob("new-*"):
            shutil.rmtree(stray)
        for number, path in enumerate(sorted(self._folder.glob("part-*"))):
            if path.name != _part_name(number):
                raise _damaged(self._folder / _part_name(number))
            part = self._read(path)
            if not _has_digest(path / "vectors.npy", part.sha256):
                raise _damaged(path)
            self._count(path, part)

    def _read(self, path: Path) -> Part:
        try:
            raw = json.loads((path / "part.json").read_text(encoding="utf-8"))
            owners = [(int(row), str(id)) for row, id in raw["owners"]]
            bad = [(int(row), id, str(reason)) for row, id, reason in raw["bad"]]
            return Part(raw["texts"], owners, bad, int(raw["rows"]), raw["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            raise _damaged(path) from None

    def _vectors(self, path: Path) -> NDArray[Any]:
        part = self._read(path)
        try:
            vectors = np.load(path / "vectors.npy", allow_pickle=False)
        except (OSError, ValueError):
            raise _damaged(path) from None
        if vectors.shape != (len(part.texts), self._dim):
            raise _damaged(path)
        return vectors


def unfinished_build(out: Path) -> BuildKey | None:
    """Which build the parts in a folder belong to, None without parts; raises InvalidIndex."""
    file = out / _FOLDER / _KEY
    try:
        return BuildKey(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        raise _damaged(file) from None


def discard_parts(out: Path) -> None:
    """Remove the parts at once, so that a kill in the middle leaves none that count."""
    clear_discarded(out)
    with contextlib.suppress(FileNotFoundError):
        os.rename(out / _FOLDER, out / _DISCARDED)
    clear_discarded(out)


def clear_discarded(out: Path) -> None:
    """Remove what a kill left of discarded parts."""
    if (out / _DISCARDED).exists():
        shutil.rmtree(out / _DISCARDED)


def _difference(found: BuildKey, wanted: BuildKey) -> str:
    there, here = asdict(found), asdict(wanted)
    differing = [
        f"{name}: {_brief(there[name])} there, {_brief(here[name])} now"
        for name in there
        if there[name] != here[name]
    ]
    return (
        f"an unfinished build of {found.table} ({'; '.join(differing)}): finish it with the "
        "command that began it, or begin anew: `index build --overwrite`, or remove the folder"
    )


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_brief(item) for item in value) or "nothing"
    text = str(value)
    is_digest = len(text) == 64 and not set(text) - set("0123456789abcdef")
    return text[:12] if is_digest else text


def _part_name(number: int) -> str:
    return f"part-{number:08d}"


def _damaged(path: Path) -> InvalidIndex:
    return InvalidIndex(
        f"{path} is damaged or missing; remove {path.parent} (or give --overwrite) and build again"
    )


def _has_digest(path: Path, sha256: str) -> bool:
    return path.is_file() and file_digest(path) == sha256
