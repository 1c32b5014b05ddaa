"""Altered films of the studies of a table, for a generator to report on."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, atomic_write, json_line, no_progress
from vlscore.data import (
    ImagePolicy,
    Study,
    StudyTable,
    as_table,
    projection,
    read_image,
    stored_view,
)
from vlscore.errors import Failure, InvalidTable, VLScoreError
from vlscore.evaluation.audit.alterations import (
    Box,
    Grey,
    blank,
    harmless,
    hidden,
    mirrored,
    place_elsewhere,
    region_of,
)
from vlscore.evaluation.audit.audit_settings import (
    ALTERATIONS,
    BLANK,
    BOXES,
    ELSEWHERE,
    FORMATS,
    HARMLESS,
    HIDDEN,
    MIRRORED,
    OTHER,
    SAME,
    AuditSettings,
)
from vlscore.findings import extract
from vlscore.stats import Content, Result

FILMS, TABLE, KEY = "films", "films.csv", "key.jsonl"


class Film(NamedTuple):
    """One film to write.

    Attributes:
        study, path: of the film that is altered.
        alteration: one of ALTERATIONS.
        seed: of what is drawn.
        finding: observation whose region is hidden, or covered elsewhere.
        box: its region, in pixels; None: by `sides` and `zones`.
        avoid: regions of the study's other findings.
        donor: study whose film is shown in its place.
    """

    study: str
    path: Path
    alteration: str
    seed: tuple[int, ...]
    finding: str | None = None
    box: Box | None = None
    sides: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    avoid: tuple[Box, ...] = ()
    donor: str | None = None


@dataclass(frozen=True)
class _Shown:
    """A study: its film, the view, and the findings of its reports and boxes."""

    study: Study
    path: Path
    view: str | None
    findings: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    boxes: Mapping[str, Box]


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
    settings = settings or AuditSettings()
    key = {
        "command": "audit make",
        **table.key,
        "settings": asdict(settings),
        "image_policy": (image_policy or ImagePolicy()).signature(),
    }

    def compute(folder: Path) -> Content:
        failures: list[Failure] = []
        shown = list(_shown(table, failures))
        films = list(_films(shown, settings))
        place = Path(out) / FILMS
        _take_over(place, key)
        suffix = FORMATS[settings.format]
        # Names begin with a letter, so that a spreadsheet keeps the zeros that follow.
        names = [f"f{number:0{len(str(len(films)))}d}" for number in range(1, len(films) + 1)]
        tasks = _by_study(
            (film, place / f"{name}.{suffix}") for film, name in zip(films, names, strict=True)
        )
        written = _written(tasks, image_policy, workers, failures, on_progress)
        if not written:
            first = failures[0].reason if failures else "it has no study"
            raise InvalidTable(f"{table.path}: no study has a film that can be read: {first}")
        kept = [(n, f) for n, f in zip(names, films, strict=True) if f"{n}.{suffix}" in written]
        _write_tables(folder, kept, suffix, written)
        return Content(
            {},
            failures=failures,
            notes=list(table.notes),
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


def _shown(table: StudyTable, failures: list[Failure]) -> Iterator[_Shown]:
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
        findings: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        for report in (row.candidate, row.reference):
            for found in extract(report or "").present:
                findings.setdefault(found.observation, (found.sides, found.zones))
        try:
            boxes = _boxes(row.extra.get(BOXES))
        except (ValueError, TypeError, KeyError):
            reason = f'column "{BOXES}" holds no lists of finding, x, y, width, height'
            failures.append(Failure(row.row, row.id, reason))
            continue
        for name in boxes:
            findings.setdefault(name, ((), ()))
        yield _Shown(row, path, view, findings, boxes)


def _boxes(cell: Any) -> dict[str, Box]:
    """Return observation -> its largest box."""
    found: dict[str, Box] = {}
    rows = json.loads(cell) if isinstance(cell, str) and cell.strip() else cell or ()
    for row in rows:
        if isinstance(row, Mapping):
            row = [row[name] for name in ("finding", "x", "y", "width", "height")]
        label, x, y, width, height = row
        left, top = float(x), float(y)
        box = Box(round(left), round(top), round(left + float(width)), round(top + float(height)))
        for name in {each.observation for each in extract(f"{label}.").present}:
            if name not in found or found[name].area < box.area:
                found[name] = box
    return found


def _films(shown: Sequence[_Shown], settings: AuditSettings) -> Iterator[Film]:
    """Yield the films of all studies, in the table's order."""
    donors = _Donors(shown)
    for k, each in enumerate(shown):
        id, seed = each.study.id, (settings.seed, k)
        for alteration in settings.wanted:
            number = ALTERATIONS.index(alteration)
            if alteration in (SAME, OTHER):
                donor = donors.draw(k, alteration, (*seed, number))
                if donor is not None:
                    yield Film(id, donor.path, alteration, seed, donor=donor.study.id)
            elif alteration == HIDDEN:
                yield from _hidden(each, settings, seed)
            elif alteration != ELSEWHERE:
                yield Film(id, each.path, alteration, (*seed, number))


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
        sides, zones = each.findings[name]
        others = tuple(box for other, box in each.boxes.items() if other != name)
        for alteration in (HIDDEN, ELSEWHERE):
            if alteration in settings.wanted:
                yield Film(
                    each.study.id, each.path, alteration, (*seed, 100 + number), name,
                    each.boxes.get(name), sides, zones, others,
                )  # fmt: skip


def _take_over(place: Path, key: Mapping[str, Any]) -> None:
    """Keep the films of a stopped call with the same settings; remove all others."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    place.mkdir(parents=True, exist_ok=True)
    mark = place / ".key"
    if not mark.is_file() or mark.read_text(encoding="utf-8") != digest:
        for path in place.iterdir():
            if path.is_file():
                path.unlink()
        with atomic_write(mark) as stream:
            stream.write(digest)


_Tasks = list[tuple[Film, Path]]


def _by_study(films: Iterable[tuple[Film, Path]]) -> list[_Tasks]:
    found: dict[str, _Tasks] = {}
    for film, path in films:
        found.setdefault(film.study, []).append((film, path))
    return list(found.values())


def _written(
    tasks: Sequence[_Tasks],
    policy: ImagePolicy | None,
    workers: int,
    failures: list[Failure],
    on_progress: OnProgress,
) -> dict[str, list[int] | None]:
    """Write the films of all studies; return name of the file -> the region that is covered."""
    written: dict[str, list[int] | None] = {}
    failed = len(failures)
    with ExitStack() as stack:
        each = map if not workers else stack.enter_context(ProcessPoolExecutor(workers)).map
        done_studies = each(_write_study, tasks, [policy] * len(tasks))
        for done, (names, reasons) in enumerate(done_studies, start=1):
            written |= names
            failures += reasons
            failed += bool(reasons)
            on_progress(done, failed)
    return written


def _write_study(
    tasks: _Tasks, policy: ImagePolicy | None
) -> tuple[dict[str, list[int] | None], list[Failure]]:
    written: dict[str, list[int] | None] = {}
    read: dict[Path, Grey] = {}
    for film, path in tasks:
        try:
            if film.path not in read:
                read[film.path] = grey_levels(film.path, policy)
            shown, box = altered(film, read[film.path])
        except VLScoreError as error:
            if film.donor is None:
                # Altered films are compared with the original: without it they are of no use.
                return {}, [Failure(None, film.study, str(error))]
            # The donor is a study of its own, and fails there.
            continue
        if shown is None:
            continue
        if not path.is_file():
            write_film(shown, path)
        written[path.name] = None if box is None else list(box)
    return written, []


def altered(film: Film, grey: Grey) -> tuple[Grey | None, Box | None]:
    """Return the altered grey levels and the covered region; None where there is no such region."""
    rng = np.random.default_rng(film.seed)
    height, width = grey.shape
    if film.alteration == BLANK:
        return blank(grey, rng), None
    if film.alteration == MIRRORED:
        return mirrored(grey), None
    if film.alteration in HARMLESS:
        return harmless(grey, film.alteration, rng), None
    if film.alteration in (HIDDEN, ELSEWHERE):
        assert film.finding is not None
        own = film.box and film.box.within((height, width))
        region = own or region_of(film.finding, film.sides, film.zones, (height, width))
        if region is not None and film.alteration == ELSEWHERE:
            region = place_elsewhere(region, film.avoid, (height, width), rng)
        return (None, None) if region is None else (hidden(grey, region), region)
    return grey, None


def grey_levels(path: Path, policy: ImagePolicy | None) -> Grey:
    """Return the grey levels of a file: 8 bits where it has 8, else 16.

    Raises: UnreadableImage.
    """
    film = read_image(path, policy or ImagePolicy())
    if film.provenance.bits <= 8:
        return film.to_uint8()
    grey: Grey = np.rint(film.pixels * np.float32(65535)).astype(np.uint16)
    return grey


def write_film(grey: Grey, path: Path) -> None:
    """Write grey levels as PNG, or as DICOM that holds nothing of a patient, by the suffix."""
    with atomic_write(path, "wb") as stream:
        if path.suffix == ".dcm":
            _write_dicom(grey, stream)
        else:
            from PIL import Image

            Image.fromarray(grey).save(stream, "PNG", compress_level=1)


def _write_dicom(grey: Grey, stream: Any) -> None:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import UID, DigitalXRayImageStorageForPresentation, ExplicitVRLittleEndian

    # The UID depends on the pixels alone: the same film has the same bytes, and no UID is of a
    # patient.
    digest = int(hashlib.sha256(grey.tobytes() + str(grey.shape).encode()).hexdigest(), 16)
    uid = UID(f"2.25.{digest % 2**128}")
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = DigitalXRayImageStorageForPresentation
    meta.MediaStorageSOPInstanceUID = uid
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    bits = 8 * grey.dtype.itemsize
    dataset = Dataset()
    dataset.file_meta = meta
    dataset.SOPClassUID = DigitalXRayImageStorageForPresentation
    dataset.SOPInstanceUID = uid
    dataset.StudyInstanceUID = dataset.SeriesInstanceUID = uid
    dataset.Modality, dataset.PatientID, dataset.PatientName = "DX", "", ""
    dataset.Rows, dataset.Columns = grey.shape
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = bits
    dataset.HighBit, dataset.PixelRepresentation = bits - 1, 0
    dataset.WindowCenter, dataset.WindowWidth = 2 ** (bits - 1), 2**bits
    dataset.PixelData = grey.tobytes() + b"\0" * (grey.nbytes % 2)
    dataset.save_as(stream, enforce_file_format=True)


def _write_tables(
    folder: Path,
    films: Sequence[tuple[str, Film]],
    suffix: str,
    written: Mapping[str, list[int] | None],
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
                "region": written[f"{name}.{suffix}"],
                "donor": film.donor,
            }
            lines.write(json_line(facts))
