"""Folders of an archive: reports as text files, next to DICOM or other images.

The name of a file or of its folder is the id of the study, and words in its path say what it is:

| path | is |
|---|---|
| `1001.txt`, `1001.dcm` | the report and the image of study 1001 |
| `references/1001.txt`, `generated/1001.txt`, `images/1001.dcm` | the same, with a candidate |
| `1001/reference.txt`, `1001/candidate.txt`, `1001/1.dcm`, `1001/2.dcm` | a folder a study |
| `1001_ref.txt`, `1001_gen.txt`, `1001_frontal.png` | role or view behind the id |
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from vlscore.data.join_keys import listed_ids, plain_column
from vlscore.errors import InvalidSetting, InvalidTable, UnreadableImage

_TEXTS = (".txt", ".text", ".tok", ".md", ".rpt")
_WORDS = {
    "reference": {
        *("reference", "references", "ref", "refs", "gt", "groundtruth", "truth", "radiologist"),
        *("radiologists", "original", "originals", "human", "target", "targets"),
    },
    "candidate": {
        *("candidate", "candidates", "cand", "gen", "generated", "generation", "generations"),
        *("pred", "preds", "prediction", "predictions", "predicted", "hyp", "hypothesis"),
        *("hypotheses", "output", "outputs", "model", "ai"),
    },
}
# Words that name no study: neither a role nor an id.
_NEUTRAL = {
    *("report", "reports", "text", "texts", "txt", "image", "images", "img", "imgs", "dcm"),
    *("dicom", "dicoms", "film", "films", "xray", "xrays", "cxr", "png", "jpg"),
}
_PARTED = re.compile(r"(.+?)[._ -]+([A-Za-z]+)")
_SEPARATOR = re.compile(r"[._ -]+")


@dataclass
class ReportFolder:
    """What a folder holds.

    Attributes:
        folder: the folder.
        texts: role ("reference", "candidate", or None where no word says it) -> path and id of each
            text file, in order.
        images: id that the path gives -> paths of images, in order.
        unread: suffix -> number of files of other kinds.
    """

    folder: Path
    texts: dict[str | None, list[tuple[Path, str]]] = field(default_factory=dict)
    images: dict[str, list[Path]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)

    @property
    def other_files(self) -> str:
        """The most frequent of the other kinds, in words, as in "3 .pdf, 1 .zip"."""
        return ", ".join(f"{n} {suffix}" for suffix, n in self.unread.most_common(5))

    def rows(self, role: str) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
        """Yield number and content (id and report) of each text of a role, or why it has none.

        Texts whose paths name no role count for both.
        """
        found = self.texts.get(role, []) or self.texts.get(None, [])
        for number, (path, id) in enumerate(found, start=1):
            try:
                text = path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError:
                yield number, f"{path.name} is not valid UTF-8; save it as UTF-8"
            except OSError as error:
                yield number, f"{path.name} cannot be read ({error.strerror})"
            else:
                yield number, {"id": id, role: text}

    def images_of(self, ids: Iterable[str]) -> dict[str, list[Path]]:
        """Return id of a report -> its images.

        An image belongs to the report with its id, else with that of its folder, else with what
        stands before the last sign in its name (1001_frontal, 1001-2).
        """
        known, found = set(ids), dict[str, list[Path]]()
        for id, paths in self.images.items():
            own = next((each for each in _shorter(id) if each in known), None)
            if own is not None:
                found.setdefault(own, []).extend(paths)
        return found


def read_report_folder(folder: Path, needs_texts: bool = True) -> ReportFolder:
    """List the texts and images of a folder and of the folders in it, hidden ones left out.

    Raises: InvalidTable if it cannot be listed, or holds no text.
    """
    from vlscore.data.images.file_formats import images_in

    found = ReportFolder(folder)

    def refuse(error: OSError) -> None:
        raise InvalidTable(f"{folder}: cannot be listed ({error.strerror})") from None

    for base, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names = sorted(name for name in files if not name.startswith("."))
        texts = [name for name in names if Path(name).suffix.lower() in _TEXTS]
        for name in texts:
            path = Path(base, name)
            role, id = _role_and_id(path.relative_to(folder).as_posix())
            found.texts.setdefault(role, []).append((path, id))
        images: tuple[Path, ...] = ()
        if len(names) > len(texts):
            try:
                images = images_in(base)
            except UnreadableImage:
                images = ()
        for path in images:
            if path.name not in texts:
                id = _role_and_id(path.relative_to(folder).as_posix())[1]
                found.images.setdefault(id, []).append(path)
        others = set(names) - set(texts) - {path.name for path in images}
        found.unread.update(Path(name).suffix.lower() or "no suffix" for name in others)
    if needs_texts and not found.texts:
        more = f", and other files ({found.other_files})" if found.unread else ""
        raise InvalidTable(
            f"{folder}: is a folder without reports as text files ({', '.join(_TEXTS)}); "
            f"found: {sum(map(len, found.images.values()))} images{more}"
        )
    return found


def folder_table(folder: Path, out: Path) -> Path | None:
    """Write the studies of a folder as a .jsonl table, and return its path; None if it is empty.

    A text whose path names no role is a candidate, or a reference where others are candidates. What
    has no candidate, and a text that is not UTF-8, becomes a row that cannot be used. Paths of
    images are absolute.

    Raises: InvalidTable if the folder cannot be read, or holds files but no candidate.
    """
    found = read_report_folder(folder, needs_texts=False)
    if not (found.texts or found.images or found.unread):
        return None
    if not found.texts:
        read_report_folder(folder)  # Raises.
    plain = found.texts.get(None, [])
    candidates = found.texts.get("candidate") or plain
    references = found.texts.get("reference") or (plain if candidates is not plain else [])
    if not candidates:
        raise InvalidTable(
            f"{folder}: holds references, and no generated report: give those names such as "
            "generated/1001.txt or 1001_gen.txt"
        )
    known = {id: _text_of(path) for path, id in references}
    ids = dict.fromkeys([*(id for _, id in candidates), *known])
    images = found.images_of(ids)
    used = {path for paths in images.values() for path in paths}
    images |= {
        id: paths for id, paths in found.images.items() if id not in ids and not used & {*paths}
    }
    rows: list[dict[str, Any]] = [{"id": id, "candidate": _text_of(p)} for p, id in candidates]
    written = {row["id"] for row in rows}
    rows += [{"id": id} for id in dict.fromkeys([*ids, *images]) if id not in written]
    more: dict[str, Any]
    with out.open("w", encoding="ascii") as stream:
        for row in rows:
            paths = [os.path.abspath(path) for path in images.get(row["id"], [])]
            more = {"image": paths or None} if images else {}
            more |= {"reference": known.get(row["id"])} if known else {}
            # In ASCII, which also holds what is no UTF-8; its row then says so.
            stream.write(json.dumps({**row, **more}) + "\n")
    return out


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InvalidTable(f"{path.parent}: a text cannot be read ({error.strerror})") from None


def images_below(folder: str | Path | None) -> ReportFolder | None:
    """Return the images of a folder that need not hold reports; None for None."""
    if folder is None:
        return None
    if not os.path.isdir(folder):
        raise InvalidSetting(f"{folder}: no such folder; images are searched for in it")
    return read_report_folder(Path(folder), needs_texts=False)


def add_images(
    rows: Sequence[dict[str, Any]], folders: Iterable[ReportFolder | None], out: Path
) -> list[str]:
    """Add the images of folders to the rows with their ids, and return notes for the user.

    Args: out: the table; paths in its folder start from there, others are absolute.
    """
    given, notes = [folder for folder in folders if folder is not None], list[str]()
    base, ids = Path(os.path.abspath(out.parent)), [row["id"] for row in rows]
    found: dict[str, dict[Path, str]] = {}
    every: set[Path] = set()
    for folder in given:
        for id, paths in folder.images_of(ids).items():
            for path in map(Path, map(os.path.abspath, paths)):
                inside = path.is_relative_to(base)
                name = path.relative_to(base).as_posix() if inside else str(path)
                found.setdefault(id, {})[path] = name
        every |= {Path(os.path.abspath(p)) for paths in folder.images.values() for p in paths}
        if folder.unread:
            notes.append(
                f"{folder.folder}: files of other kinds are left out ({folder.other_files}); "
                "reports are read from text files"
            )
    if not every:
        return notes
    for row in rows:
        row["image"] = list(found.get(row["id"], {}).values())
    if lacking := [row["id"] for row in rows if not row["image"]]:
        notes.append(f"{len(lacking)} studies have no image: {listed_ids(lacking)}")
    if extra := sorted(path.name for path in every.difference(*found.values())):
        notes.append(f"{len(extra)} images belong to no report by their names: {listed_ids(extra)}")
    return notes


def _role_and_id(path: str) -> tuple[str | None, str]:
    """Return the role that words of a path name, and what is left of it as the id."""
    pure = PurePosixPath(path)
    # A DICOM file may have no suffix, but a number with points as its name.
    stem = pure.stem if re.fullmatch(r"\.[A-Za-z]\w{0,4}", pure.suffix) else pure.name
    role, left = None, list[str]()
    for part in (*pure.parts[:-1], stem):
        word = _role_of(part)
        if word is None and part == stem and (parted := _PARTED.fullmatch(part)):
            word = _role_of(parted[2])
            part = parted[1] if word is not None else part
            left.append(part)
        elif word is None:
            left.append(part)
        role = role or (word or None)
    return role, "/".join(left) or stem


def _role_of(part: str) -> str | None:
    """Return the role that a word names, "" for a word such as "images", None for another."""
    plain = plain_column(part)
    return next(
        (role for role, words in _WORDS.items() if plain in words),
        "" if plain in _NEUTRAL else None,
    )


def _shorter(id: str) -> Iterator[str]:
    """Yield an id, then its folders, then what stands before the signs of its name."""
    yield id
    pure = PurePosixPath(id)
    yield from (str(parent) for parent in pure.parents if str(parent) != ".")
    name = id
    while (cut := list(_SEPARATOR.finditer(name))) and cut[-1].start():
        name = name[: cut[-1].start()]
        yield name
