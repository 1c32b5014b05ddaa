"""Altered films of studies as files: made once, by several processes, and again after a stop."""

import hashlib
import itertools
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vlscore.core import OnProgress, __version__, atomic_write
from vlscore.data import ImagePolicy
from vlscore.errors import Failure, InvalidStudy, VLScoreError
from vlscore.evaluation.audit.alterations import (
    Box,
    Grey,
    blank,
    harmless,
    hidden,
    mirrored,
    places_elsewhere,
    region_of,
)
from vlscore.evaluation.audit.audit_settings import (
    BLANK,
    BOXES,
    ELSEWHERE,
    HARMLESS,
    HIDDEN,
    MIRRORED,
    ORIGINAL,
)
from vlscore.evaluation.audit.film_files import GreyLevels, write_film

# Share of a film's width and height by which a box may reach beyond it.
_OUTSIDE = 0.01


class Film(NamedTuple):
    """One film to write.

    Attributes:
        study, row, path: of the film that is altered.
        alteration: one of ALTERATIONS.
        seed: of what is drawn.
        finding: observation whose region is hidden, or covered elsewhere.
        boxes: its region, in pixels; without them: by `sides` and `zones`.
        avoid: regions of the study's other findings.
        donor: study whose film is shown in its place.
    """

    study: str
    row: int
    path: Path
    alteration: str
    seed: tuple[int, ...]
    finding: str | None = None
    boxes: tuple[Box, ...] = ()
    sides: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    avoid: tuple[Box, ...] = ()
    donor: str | None = None


#: Films of a study, and their files.
Tasks = list[tuple[Film, Path]]
#: Name of the file of a film -> the regions that are covered.
Written = dict[str, list[list[int]]]


def by_study(films: Iterable[tuple[Film, Path]]) -> list[Tasks]:
    found: dict[str, Tasks] = {}
    for film, path in films:
        found.setdefault(film.study, []).append((film, path))
    return list(found.values())


def write_films(
    tasks: Sequence[Tasks],
    policy: ImagePolicy,
    workers: int,
    failures: list[Failure],
    on_progress: OnProgress,
) -> Written:
    """Write the films of all studies; return the covered regions of each."""
    written: Written = {}
    failed = len(failures)
    own = [[each for each in films if each[0].donor is None] for films in tasks]
    for done, (names, reasons) in enumerate(_of_studies(own, policy, workers), start=1):
        written |= names
        failures += reasons
        failed += bool(reasons)
        on_progress(done, failed)
    # The film of another study is that study's original. If that has failed, there is none.
    originals = {f.study: p for films in own for f, p in films if f.alteration == ORIGINAL}
    read = {films[0][0].study for films in own if films[0][1].name in written}
    for film, path in (each for films in tasks for each in films):
        if film.donor in read and film.study in read:
            if not path.is_file():
                with atomic_write(path, "wb") as stream:
                    stream.write(originals[film.donor].read_bytes())
            written[path.name] = []
    return written


def _of_studies(
    tasks: Iterable[Tasks], policy: ImagePolicy, workers: int
) -> Iterator[tuple[Written, list[Failure]]]:
    """Yield what `_write_study` returns of each study; files are read while others are written."""
    from vlscore.embedding import ImageDecoder, PendingPixels  # loads torch

    ahead = 2 * workers
    with (
        ImageDecoder(GreyLevels(), policy, workers) as decoder,
        ThreadPoolExecutor(max(workers, 1)) as threads,
    ):
        reading: deque[tuple[Tasks, PendingPixels]] = deque()
        writing: deque[Future[tuple[Written, list[Failure]]]] = deque()
        rest = iter(tasks)
        while True:
            for films in itertools.islice(rest, ahead + 1 - len(reading)):
                reading.append((films, decoder.submit(films[0][0].path)))
            if not reading:
                break
            films, pending = reading.popleft()
            try:
                grey = pending.stored().numpy()
            except VLScoreError as error:
                writing.append(Future())
                writing[-1].set_result(
                    ({}, [Failure(films[0][0].row, films[0][0].study, str(error))])
                )
            else:
                writing.append(threads.submit(_write_study, films, grey))
            while len(writing) > ahead:
                yield writing.popleft().result()
        yield from (each.result() for each in writing)


def _write_study(tasks: Tasks, grey: Grey) -> tuple[Written, list[Failure]]:
    """Write the films of a study; return the covered regions of each, or why there is none."""
    written: Written = {}
    for film, path in tasks:
        try:
            shown, regions = altered(film, grey)
        except InvalidStudy as error:
            # Altered films are compared with the original: without it they are of no use.
            for _, made in tasks:
                made.unlink(missing_ok=True)
            return {}, [Failure(film.row, film.study, str(error))]
        if shown is None:
            continue
        if not path.is_file():
            write_film(shown, path)
        written[path.name] = [list(box) for box in regions]
    return written, []


def altered(film: Film, grey: Grey) -> tuple[Grey | None, list[Box]]:
    """Return the altered grey levels and the covered regions; None where no region can be covered.

    Raises: InvalidStudy where a box of the table is not on the film.
    """
    rng = np.random.default_rng(film.seed)
    if film.alteration == BLANK:
        return blank(grey, rng), []
    if film.alteration == MIRRORED:
        return mirrored(grey), []
    if film.alteration in HARMLESS:
        return harmless(grey, film.alteration, rng), []
    if film.alteration in (HIDDEN, ELSEWHERE):
        height, width = grey.shape
        regions = _regions(film, (height, width))
        if film.alteration == ELSEWHERE:
            regions = places_elsewhere(regions, film.avoid, (height, width), rng)
        return reduce(hidden, regions, grey) if regions else None, regions
    return grey, []


def _regions(film: Film, shape: tuple[int, int]) -> list[Box]:
    """Return the regions of the finding of a film: boxes of the table, else by side and zone."""
    height, width = shape
    for box in film.boxes:
        # A border may be rounded, or drawn a little outside.
        most = 1 + _OUTSIDE * width, 1 + _OUTSIDE * height
        if not (
            -most[0] <= box.left < box.right <= width + most[0]
            and -most[1] <= box.top < box.bottom <= height + most[1]
        ):
            raise InvalidStudy(
                f"the box of {film.finding} from ({box.left}, {box.top}) to ({box.right}, "
                f'{box.bottom}) is not on the film of {width} x {height} pixels; column "{BOXES}" '
                "holds x, y, width, height in pixels of this file"
            )
    if film.boxes:
        return [box.within(shape) for box in film.boxes]
    assert film.finding is not None
    region = region_of(film.finding, film.sides, film.zones, shape)
    return [] if region is None else [region]


def take_over(place: Path, key: Mapping[str, Any], sources: Iterable[Path]) -> None:
    """Keep the films that a stopped call has made of the same files with the same settings.

    All others are removed.
    """
    states = [(os.fspath(path), _state(path)) for path in sources]
    written = json.dumps([__version__, key, states], sort_keys=True)
    digest = hashlib.sha256(written.encode()).hexdigest()
    place.mkdir(parents=True, exist_ok=True)
    mark = place / ".key"
    # What a killed call was writing.
    for path in place.glob(".*.tmp"):
        path.unlink()
    if not mark.is_file() or mark.read_text(encoding="utf-8") != digest:
        for path in place.iterdir():
            if path.is_file():
                path.unlink()
        with atomic_write(mark) as stream:
            stream.write(digest)


def _state(path: Path) -> tuple[int, int] | None:
    """Return the size and the time of the last change of a file; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
