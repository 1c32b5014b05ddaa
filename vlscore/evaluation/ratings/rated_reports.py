"""Reports that raters judge: those of systems, or those that metrics chose for each study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlscore.core import FinishedRun, Signature, file_digest, finished_run
from vlscore.data import (
    BadRow,
    ColumnNames,
    Study,
    StudyImages,
    TextPolicy,
    open_studies,
    read_study_images,
)
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.comparison.systems import (
    Systems,
    has_images,
    join,
    open_sources,
    split_name,
)
from vlscore.evaluation.ratings.sheet_files import SheetItem
from vlscore.retrieval import ANSWERS, read_answers

# Facts of an oracle's signature that decide which reports there were to choose from.
_SAME = {"txt": "sections of reports", "excl": "what was excluded"}


@dataclass(frozen=True)
class Material:
    """Reports to judge, before they have names, and the images of their studies."""

    items: Sequence[SheetItem]
    notes: Sequence[str]
    images: Mapping[str, StudyImages | BadRow] = field(default_factory=dict)


def are_oracles(sources: Sequence[str | Path]) -> bool:
    """Return whether folders of oracles are meant, and not tables or evaluations."""
    paths = [path for _, path in map(split_name, sources)]
    if not all(path.is_dir() for path in paths):
        return False
    runs = [finished_run(path) for path in paths]
    return not all(run is not None and ANSWERS not in run.digests and "metrics" in run.key
                   for run in runs)  # fmt: skip


def sources_key(
    sources: Sequence[str | Path],
    oracles: Mapping[str, FinishedRun],
    studies: str | Path | None,
    image_root: str | Path | None,
) -> dict[str, Any]:
    """Return what identifies the reports, for the key of a folder of sheets."""
    if oracles:
        return {"oracles": {name: run.digests[ANSWERS] for name, run in oracles.items()}}
    systems = {each.name: each.table.sha256 for each in open_sources(sources)}
    return {
        "systems": systems,
        "studies": None if studies is None else file_digest(Path(studies)),
        "image_root": None if image_root is None else str(Path(image_root).resolve()),
    }


def reports_of_systems(
    sources: Sequence[str | Path],
    studies: str | Path | None,
    image_root: str | Path | None,
    films: bool,
) -> Material:
    """Return the reports of all systems, equal ones of a study once."""
    opened = open_sources(sources)
    images = None
    if films:
        holders = [each.table.path for each in opened if has_images(each)]
        if studies is None and not holders:
            raise InvalidTable("no table has a column image; name one with studies (--studies)")
        path = studies if studies is not None else holders[0]
        images = open_studies(path, needs={"image"}, image_root=image_root)
    systems: Systems = join(opened, images)
    items = []
    for k, study in enumerate(systems.studies):
        texts = {name: candidates[k] for name, candidates in systems.candidates.items()}
        items += _distinct(study.id, study.reference or "", texts)
    return Material(items, systems.notes, systems.images)


def _distinct(study: str, reference: str, texts: Mapping[str, str]) -> list[SheetItem]:
    """Return an item for each different report of a study."""
    return [
        SheetItem(
            "", study, tuple(name for name, own in texts.items() if own == text), reference, text
        )
        for text in dict.fromkeys(texts.values())
    ]


def open_oracles(given: Sequence[str | Path]) -> dict[str, FinishedRun]:
    """Return name -> the oracle's run; all of one table, index, sections and exclusions."""
    found: dict[str, FinishedRun] = {}
    for each in given:
        name, path = split_name(each)
        run = finished_run(path)
        if run is None or ANSWERS not in run.digests:
            raise InvalidTable(
                f"{path}: holds no hits; give the folder that vlscore oracle --out wrote"
            )
        run.check()
        called = name or Signature.parse(run.key["signature"]).subject
        if called in found:
            raise InvalidSetting(f"two oracles would be called {called}; name them, as in b={path}")
        found[called] = run
    if not found:
        raise InvalidSetting("sheets are made of at least one oracle's hits; give its folder")
    first = next(iter(found.values()))
    for run in found.values():
        mine, theirs = _made_of(first), _made_of(run)
        if differs := [name for name in mine if mine[name] != theirs[name]]:
            raise InvalidSetting(
                f"{first.folder} and {run.folder} cannot be judged together: they differ "
                f"in {', '.join(differs)}"
            )
    return found


def _made_of(run: FinishedRun) -> dict[str, Any]:
    """Return the settings that oracles must share to have chosen from the same reports."""
    signature = Signature.parse(run.key["signature"])
    return {
        "the table of studies": run.key["table_sha256"],
        "the index": run.key["index"]["table"],
        **{words: signature.get(name) for name, words in _SAME.items()},
    }


def _references(found: Mapping[str, FinishedRun], table: str | Path | None) -> dict[str, str]:
    """Return study -> the section of its reference that the oracles read."""
    run = next(iter(found.values()))
    path, columns = _searched_table(run, table)
    studies = open_studies(path, needs={"reference"}, columns=columns)
    if studies.sha256 != run.key["table_sha256"]:
        raise InvalidTable(f"{path}: is not the table that {run.folder} was made of")
    printed = Signature.parse(run.key["signature"]).get("txt") or "all"
    policy = TextPolicy(printed.split(",")[0].removeprefix("ref="))
    rows = (row.selected(policy) for row in studies if isinstance(row, Study))
    return {row.id: row.reference or "" for row in rows}


def _searched_table(run: FinishedRun, moved: str | Path | None) -> tuple[Path, ColumnNames]:
    """Return the table of studies of an oracle, and its columns."""
    path = Path(moved if moved is not None else run.record["table"])
    return path, ColumnNames(**run.key["columns"])


def _images(
    found: Mapping[str, FinishedRun],
    table: str | Path | None,
    image_root: str | Path | None,
    films: bool,
) -> dict[str, StudyImages | BadRow]:
    """Return the images of the studies, where films are asked for."""
    if not films:
        return {}
    path, columns = _searched_table(next(iter(found.values())), table)
    rows = read_study_images(path, image_root=image_root, columns=columns)
    return {row.id: row for row in rows if row.id is not None}


def reports_of_oracles(
    found: Mapping[str, FinishedRun],
    studies: str | Path | None,
    image_root: str | Path | None,
    films: bool,
) -> Material:
    """Return the chosen reports of the studies that all oracles answer, equal ones once.

    Args:
        found: name -> oracle, from `open_oracles`.
        studies: the table that was searched for, where it has moved.
        image_root, films: as of `ratings_make`.
    """
    references = _references(found, studies)
    images = _images(found, studies, image_root, films)
    best: dict[str, dict[str, str]] = {}
    for name, run in found.items():
        for answer in read_answers(run.file(ANSWERS)):
            if answer.hits and answer.id is not None and answer.id in references:
                best.setdefault(answer.id, {})[name] = answer.hits[0].text
    items: list[SheetItem] = []
    left_out = 0
    for study, by_oracle in best.items():
        if len(by_oracle) < len(found):
            left_out += 1
            continue
        items += _distinct(study, references[study], by_oracle)
    if not items:
        raise InvalidTable("no study has a hit of every oracle; look into their failures")
    notes = [f"{left_out} studies without a hit of every oracle are left out"] if left_out else []
    return Material(items, notes, images)
