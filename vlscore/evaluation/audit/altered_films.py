"""Altered films of the studies of a table, for a generator to report on."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, json_line, no_progress, with_noun
from vlscore.data import ImagePolicy, Study, StudyTable, as_table, projection, stored_view
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.audit.alterations import Box, region_of
from vlscore.evaluation.audit.audit_settings import (
    ALTERATIONS,
    BOXES,
    ELSEWHERE,
    FORMATS,
    HIDDEN,
    OTHER,
    SAME,
    AuditSettings,
)
from vlscore.evaluation.audit.film_writing import Film, Written, by_study, take_over, write_films
from vlscore.evaluation.audit.finding_places import (
    Place,
    boxes_of,
    most_frequent,
    places_of,
    unread_note,
)
from vlscore.stats import Content, Result

FILMS, TABLE, KEY = "films", "films.csv", "key.jsonl"


@dataclass(frozen=True)
class _Shown:
    """A study: its film, the view, and the findings of its reports and boxes."""

    study: Study
    path: Path
    view: str | None
    findings: Mapping[str, Place]
    boxes: Mapping[str, tuple[Box, ...]]


def open_audited(table: str | Path | StudyTable) -> StudyTable:
    """Open a table for `audit_make`: images, and reports and boxes where it has them.

    Raises: InvalidTable, InvalidSetting as `open_studies`.
    """
    opened = as_table(table)
    also = [BOXES] if BOXES in opened.found else []
    return as_table(opened, {"image"}, {"reference", "candidate"}, also=also)


def audit_make(
    table: StudyTable,
    out: str | Path,
    settings: AuditSettings | None = None,
    *,
    image_policy: ImagePolicy | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Write altered films of studies, and one table for the generator: id, image, alteration.

    Nothing in the names of films is of a study; key.jsonl, which stays with you, has the study,
    finding, region and donor of each. Films that a stopped call has written are not written again.

    Args:
        table: studies with images; a reference or a candidate names findings whose regions are
            hidden, and a column "boxes" (lists of finding, x, y, width, height in pixels) their
            places.
        out: folder for the results.
        settings: alterations, numbers, seed.
        image_policy: how files become grey levels; default: as in an evaluation.
        workers: processes that read and write films; 0 does it in this one.
        overwrite: make anew.
        on_progress: called with (studies done, studies failed).

    Returns: the result; its record has "films" and "studies".
    Raises: InvalidTable where no study has a film that can be read; InvalidSetting, FolderInUse.
        A study without such a film raises nothing: it is in failures.csv.
    """
    settings, policy = settings or AuditSettings(), image_policy or ImagePolicy()
    if policy.as_authors:
        raise InvalidSetting(
            'the image policy "authors" reads files for one encoder, and the films are for any '
            "generator; use the default policy"
        )
    key = {
        "command": "audit make",
        **table.key,
        "settings": asdict(settings),
        "image_policy": policy.signature(),
    }

    def compute(folder: Path) -> Content:
        failures: list[Failure] = []
        unread: Counter[str] = Counter()
        shown = list(_shown(table, failures, unread))
        films = list(_films(shown, settings))
        place = Path(out) / FILMS
        take_over(place, key, table.image_files())
        suffix = FORMATS[settings.format]
        # Names begin with a letter, so that a spreadsheet keeps the zeros that follow.
        names = [f"f{number:0{len(str(len(films)))}d}" for number in range(1, len(films) + 1)]
        tasks = by_study(
            (film, place / f"{name}.{suffix}") for film, name in zip(films, names, strict=True)
        )
        written = write_films(tasks, policy, workers, failures, on_progress)
        failures.sort(key=lambda failure: int(failure.row or 0))
        if not written:
            first = failures[0].reason if failures else "it has no study"
            raise InvalidTable(f"{table.path}: no study has a film that can be read: {first}")
        kept = [(n, f) for n, f in zip(names, films, strict=True) if f"{n}.{suffix}" in written]
        _write_tables(folder, kept, suffix, written)
        return Content(
            {},
            failures=failures,
            notes=[
                *table.notes,
                *settings.notes,
                *unread_note(unread),
                *_no_room_note(films, names, suffix, written),
            ],
            facts={
                "films": len(kept),
                "studies": len({film.study for _, film in kept}),
                "table": str(table.path.resolve()),
                "image_root": str(table.root.resolve()),
            },
        )

    return Result.make(
        out, key, compute, images=table.image_files, other_folders=(FILMS,), overwrite=overwrite
    )


def _shown(table: StudyTable, failures: list[Failure], unread: Counter[str]) -> Iterator[_Shown]:
    """Yield the studies with a frontal film; failures and labels of boxes are added to the rest."""
    for row in table:
        if isinstance(row, Failure):
            failures.append(row)
            continue
        views = row.views or (None,) * len(row.images)
        frontal = [
            (path, view)
            for path, view in zip(row.images, views, strict=True)
            if projection(view or stored_view(path)) != "lateral"
        ]
        if not frontal:
            failures.append(Failure(row.row, row.id, "the study has no frontal film"))
            continue
        path, view = frontal[0]
        findings = places_of(row.candidate or "")
        for name, place in places_of(row.reference or "").items():
            findings.setdefault(name, place)
        try:
            boxes = boxes_of(row.extra.get(BOXES), unread)
        except (ValueError, TypeError, KeyError):
            reason = f'column "{BOXES}" holds no lists of finding, x, y, width, height'
            failures.append(Failure(row.row, row.id, reason))
            continue
        for name in boxes:
            findings.setdefault(name, ((), ()))
        yield _Shown(row, path, view, findings, boxes)


def _films(shown: Sequence[_Shown], settings: AuditSettings) -> Iterator[Film]:
    """Yield the films of all studies, in the table's order."""
    donors = _Donors(shown)
    for k, each in enumerate(shown):
        own, seed = (each.study.id, each.study.row), (settings.seed, k)
        for alteration in settings.wanted:
            number = ALTERATIONS.index(alteration)
            if alteration in (SAME, OTHER):
                donor = donors.draw(k, alteration, (*seed, number))
                if donor is not None:
                    yield Film(*own, donor.path, alteration, seed, donor=donor.study.id)
            elif alteration == HIDDEN:
                yield from _hidden(each, settings, seed)
            elif alteration != ELSEWHERE:
                yield Film(*own, each.path, alteration, (*seed, number))


class _Donors:
    """Draws the studies whose films replace those of others.

    Findings are compared once for every two sets of findings, because many studies have equal ones.
    """

    def __init__(self, shown: Sequence[_Shown]) -> None:
        self._shown = shown
        self._views, _ = _numbered(each.view for each in shown)
        self._films, _ = _numbered(each.path for each in shown)
        self._kinds, self._findings = _numbered(frozenset(each.findings) for each in shown)
        self._of_view = [np.flatnonzero(self._views == k) for k in sorted({*self._views})]
        self._fitting: dict[tuple[int, str], NDArray[np.bool_]] = {}

    def draw(self, k: int, alteration: str, seed: tuple[int, ...]) -> _Shown | None:
        """Return a study with another film of the same view; None where there is none.

        Args: alteration: SAME: with the same findings; OTHER: with none of them.
        """
        kind = int(self._kinds[k])
        fits = self._fitting.get((kind, alteration))
        if fits is None:
            own = self._findings[kind]
            fits = np.array(
                [
                    # Two normal studies have the same findings, and no others.
                    own == each if alteration == SAME else own.isdisjoint(each) and own != each
                    for each in self._findings
                ]
            )
            self._fitting[kind, alteration] = fits
        same_view = self._of_view[self._views[k]]
        found = same_view[fits[self._kinds[same_view]]]
        found = found[self._films[found] != self._films[k]]
        if not len(found):
            return None
        return self._shown[int(np.random.default_rng(seed).choice(found))]


def _numbered(values: Iterable[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """Number the different values from 0, in the order of their first appearance.

    Returns: the number of each value; the different values.
    """
    numbers: dict[Any, int] = {}
    found = [numbers.setdefault(value, len(numbers)) for value in values]
    return np.array(found, dtype=np.intp), list(numbers)


def _hidden(each: _Shown, settings: AuditSettings, seed: tuple[int, ...]) -> Iterator[Film]:
    """Yield the films of a study with the region of a finding hidden, and with another one."""
    names = [*each.boxes, *(name for name in each.findings if name not in each.boxes)]
    placed = [
        name
        for name in names
        if name in each.boxes or region_of(name, *each.findings[name], (1000, 1000)) is not None
    ]
    for number, name in enumerate(placed[: settings.regions]):
        own_boxes = each.boxes.get(name, ())
        sides, zones = ((), ()) if own_boxes else each.findings[name]
        others = tuple(box for other, own in each.boxes.items() if other != name for box in own)
        for alteration in (HIDDEN, ELSEWHERE):
            if alteration in settings.wanted:
                yield Film(
                    each.study.id, each.study.row, each.path, alteration, (*seed, 100 + number),
                    name, own_boxes, sides, zones, others,
                )  # fmt: skip


def _no_room_note(
    films: Sequence[Film], names: Sequence[str], suffix: str, written: "Written"
) -> list[str]:
    """Return a note on findings whose regions are so large that no other one is as large."""
    made = {name.removesuffix(f".{suffix}") for name in written}
    studies = {film.study for name, film in zip(names, films, strict=True) if name in made}
    lacking = Counter(
        str(film.finding).replace("_", " ")
        for name, film in zip(names, films, strict=True)
        if film.alteration == ELSEWHERE and name not in made and film.study in studies
    )
    if not lacking:
        return []
    return [
        "no region elsewhere on the film is as large as that of "
        f"{with_noun(lacking.total(), 'finding')}, so that these are not judged by their region: "
        f"{most_frequent(lacking)}"
    ]


def _write_tables(
    folder: Path,
    films: Sequence[tuple[str, Film]],
    suffix: str,
    written: Written,
) -> None:
    """Write the generator's table, and the key that names the study of each film."""
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as table:
        table.write("id,image,alteration\n")
        for name, film in films:
            table.write(f'{name},{FILMS}/{name}.{suffix},"{film.alteration}"\n')
    with (folder / KEY).open("w", encoding="utf-8", newline="") as lines:
        for name, film in films:
            facts = {
                "id": name,
                "study": film.study,
                "alteration": film.alteration,
                "image": os.fspath(film.path),
                "finding": film.finding,
                "sides": film.sides,
                "regions": written[f"{name}.{suffix}"],
                "donor": film.donor,
            }
            lines.write(json_line(facts))
