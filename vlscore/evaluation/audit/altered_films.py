"""Altered films of the studies of a table, for a generator to report on."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, checked_arguments, frame_of_columns, no_progress, with_noun
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
from vlscore.evaluation.audit.film_writing import Film, Written, take_over, write_films
from vlscore.evaluation.audit.finding_places import (
    Place,
    boxes_of,
    most_frequent,
    places_of,
    unread_note,
)
from vlscore.stats import Content, Result

if TYPE_CHECKING:
    import pandas

FILMS, TABLE, KEY = "films", "films.csv", "key.jsonl"


class _Shown(NamedTuple):
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


@checked_arguments
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
        films, place = list(_films(shown, settings)), Path(out) / FILMS
        take_over(place, key, table.image_files())
        # Names begin with a letter, so that a spreadsheet keeps the zeros that follow.
        name = f"f{{:0{len(str(len(films)))}d}}.{FORMATS[settings.format]}"
        films = [f._replace(file=place / name.format(n)) for n, f in enumerate(films, start=1)]
        written = write_films(films, policy, workers, failures, on_progress)
        failures.sort(key=lambda failure: int(failure.row or 0))
        if not written:
            first = failures[0].reason if failures else "it has no study"
            raise InvalidTable(f"{table.path}: no study has a film that can be read: {first}")
        made = [film for film in films if film.file in written]
        return Content(
            {},
            _rows(made, written),
            failures,
            notes=[
                *table.notes,
                *settings.notes,
                *unread_note(unread),
                *_no_room_note(films, written),
            ],
            facts={
                "films": len(made),
                "studies": len({film.study for film in made}),
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
    donors = {each: _donors(shown, each, settings.seed) for each in (SAME, OTHER)}
    for k, each in enumerate(shown):
        own, seed = (each.study.id, each.study.row), (settings.seed, k)
        for alteration in settings.wanted:
            if alteration in donors:
                if (donor := next(donors[alteration])) is not None:
                    yield Film(*own, donor.path, alteration, seed, donor=donor.study.id)
            elif alteration == HIDDEN:
                yield from _hidden(each, settings, seed)
            elif alteration != ELSEWHERE:
                yield Film(*own, each.path, alteration, (*seed, ALTERATIONS.index(alteration)))


def _donors(shown: Sequence[_Shown], alteration: str, seed: int) -> Iterator[_Shown | None]:
    """Draw for each study one with another film of the same view; None where there is none.

    Args: alteration: SAME: with the same findings; OTHER: with none of them.
    """
    from pandas import Series, factorize

    def numbered(values: Iterable[Any]) -> tuple[NDArray[np.intp], list[Any]]:
        numbers, different = factorize(Series(list(values), dtype=object), use_na_sentinel=False)
        return numbers, list(different)

    views, _ = numbered(each.view for each in shown)
    films, _ = numbered(each.path for each in shown)
    # Many studies have equal findings: they are compared once for every two sets of findings.
    kinds, findings = numbered(frozenset(each.findings) for each in shown)
    fitting = np.array([[one == other for other in findings] for one in findings])
    if alteration == OTHER:
        # Two normal studies have the same findings, and no others.
        apart = np.array([[one.isdisjoint(other) for other in findings] for one in findings])
        fitting = apart & ~fitting
    of_view = [np.flatnonzero(views == view) for view in range(views.max(initial=-1) + 1)]
    for k in range(len(shown)):
        found = of_view[views[k]]
        found = found[fitting[kinds[k], kinds[found]] & (films[found] != films[k])]
        rng = np.random.default_rng((seed, k, ALTERATIONS.index(alteration)))
        yield shown[int(rng.choice(found))] if len(found) else None


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


def _no_room_note(films: Sequence[Film], written: Written) -> list[str]:
    """Return a note on findings whose regions are so large that no other one is as large."""
    studies = {film.study for film in films if film.file in written}
    lacking = Counter(
        str(film.finding).replace("_", " ")
        for film in films
        if film.alteration == ELSEWHERE and film.file not in written and film.study in studies
    )
    if not lacking:
        return []
    return [
        "no region elsewhere on the film is as large as that of "
        f"{with_noun(lacking.total(), 'finding')}, so that these are not judged by their region: "
        f"{most_frequent(lacking)}"
    ]


def _rows(films: Sequence[Film], written: Written) -> "dict[str, pandas.DataFrame]":
    """Return the generator's table, and the key that names the study of each film."""
    names = [film.file.stem for film in films]
    key = frame_of_columns(
        {
            "id": names,
            "study": [film.study for film in films],
            "alteration": [film.alteration for film in films],
            "image": [os.fspath(film.path) for film in films],
            "finding": [film.finding for film in films],
            "sides": [film.sides for film in films],
            "regions": [written[film.file] for film in films],
            "donor": [film.donor for film in films],
        }
    )
    images = [f"{FILMS}/{film.file.name}" for film in films]
    table = frame_of_columns({"id": names, "image": images, "alteration": key["alteration"]})
    return {TABLE: table, KEY: key}
