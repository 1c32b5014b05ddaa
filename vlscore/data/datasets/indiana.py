"""Indiana University collection of chest X-rays, as Open-i and as Kaggle publish it.

Open-i's edition (`IuOpenI`) is described in Demner-Fushman et al. 2016 (doi 10.1093/jamia/ocv080)
and on https://openi.nlm.nih.gov/faq ("Collection of chest x-rays"): `NLMCXR_reports.tgz` unpacks to
`ecgen-radiology/NUMBER.xml`, `NLMCXR_png.tgz` to PNG files. A report's XML has `<uId id="CXR1"/>`,
`<AbstractText Label="FINDINGS">`, `<parentImage id="CXR1_1_IM-0001-3001">` for each image, and its
manual coding as `<MeSH><major>`. No file has the view of an image; if the Kaggle edition's
`indiana_projections.csv` is in the folder, it is used.

Kaggle's edition (`IuKaggle`) is described on
https://www.kaggle.com/datasets/raddar/chest-xrays-indiana-university: `indiana_reports.csv` (`uid`,
`MeSH`, `Problems`, `image`, `indication`, `comparison`, `findings`, `impression`),
`indiana_projections.csv` (`uid`, `filename`, `projection`: Frontal or Lateral), images in
`images/images_normalized/`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from vlscore.data.datasets.dataset_base import Dataset, by_study
from vlscore.data.datasets.dataset_files import (
    DAMAGED,
    DatasetFiles,
    content_of,
    frame_of,
    packed_members,
)
from vlscore.errors import InvalidTable

if TYPE_CHECKING:
    import pandas as pd

_FOLDERS = (
    "ecgen-radiology",
    "NLMCXR_reports/ecgen-radiology",
    "reports/ecgen-radiology",
    "reports",
)
_ARCHIVES = ("NLMCXR_reports.tgz", "NLMCXR_reports.tar.gz")
PROJECTIONS = "indiana_projections.csv"
REPORTS = "indiana_reports.csv"
_NUMBER = re.compile(r"\d+")


class IuOpenI(Dataset):
    """Reads Open-i's XML files; see this file's docstring."""

    name = "iu-openi"
    description = "Indiana University chest X-rays as Open-i publishes them: XML and PNG"
    source = "https://openi.nlm.nih.gov/faq"
    licence = "CC BY-NC-ND 4.0"
    needs = "ecgen-radiology/*.xml or NLMCXR_reports.tgz, and the PNG files of NLMCXR_png.tgz"
    sections = ("indication", "comparison", "findings", "impression")
    extra = ("uid", "mesh")
    image_folders = ("", "NLMCXR_png", "images", "images/NLMCXR_png", "png")
    image_suffixes = (".png", ".jpg", ".dcm")

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies in the order of their numbers."""
        views = _views(files)
        rows = []
        for name, content in _reports(files):
            try:
                rows.append({**_study_of_xml(name, content, views), "in_file": name, "in_row": 0})
            except (ElementTree.ParseError, ValueError, LookupError) as error:
                files.leave_out(name, 0, None, "study", DAMAGED, type(error).__name__)
        return frame_of(rows)


def _reports(files: DatasetFiles) -> Iterator[tuple[str, bytes]]:
    for folder in _FOLDERS:
        found = sorted(
            (files.folder / folder).glob("*.xml"),
            key=lambda path: (int((_NUMBER.search(path.stem) or "0")[0]), path.stem),
        )
        if found:
            for path in found:
                try:
                    yield files.relative(path), content_of(path)
                except (OSError, ValueError) as error:
                    files.leave_out(
                        files.relative(path), 0, None, "study", DAMAGED, type(error).__name__
                    )
            return
    for name in _ARCHIVES:
        if (files.folder / name).is_file():
            yield from packed_members(files.folder / name, ".xml")
            return
    raise InvalidTable(
        f"{files.folder}: has neither {_FOLDERS[0]}/*.xml nor {_ARCHIVES[0]}; give the folder that "
        "holds Open-i's reports and images"
    )


def _study_of_xml(name: str, content: bytes, views: dict[str, str]) -> dict[str, Any]:
    """Return the row of a study.

    Raises: ParseError, ValueError or LookupError if it is damaged.
    """
    # Entities can expand a small file to gigabytes, and no report defines one.
    if b"<!ENTITY" in content:
        raise ValueError("entities")
    root = ElementTree.fromstring(content)
    uid = root.find(".//uId")
    stated = uid.get("id", "").strip() if uid is not None else ""
    number = _NUMBER.search(stated or Path(name).stem)
    if number is None:
        raise ValueError("no number of a report")
    id = stated if stated.startswith("CXR") else f"CXR{number[0]}"
    texts = {
        (each.get("Label") or "").lower(): "".join(each.itertext())
        for each in root.iter("AbstractText")
    }
    images = [each.get("id", "").strip() for each in root.iter("parentImage")]
    codings = [(each.text or "").strip() for each in root.iter("major")]
    return {
        **texts,
        "id": id,
        # Open-i publishes one report a patient.
        "patient": id,
        "image": [f"{image}.png" for image in images if image],
        "view": [views.get(_image_key(image)) for image in images if image],
        "uid": number[0],
        "mesh": ";".join(coding for coding in codings if coding),
    }


def _views(files: DatasetFiles) -> dict[str, str]:
    path = files.find(PROJECTIONS)
    if path is None:
        return {}
    table = files.table(path, ("filename", "projection"), "image").dropna(subset="filename")
    return {
        _image_key(name): (view or "").lower()
        for name, view in zip(table["filename"], table["projection"], strict=True)
    }


def _image_key(name: str) -> str:
    """Return an image's name in a form that is equal for both editions.

    >>> _image_key("CXR1_1_IM-0001-3001"), _image_key("1_IM-0001-3001.dcm.png")
    ('1_IM-0001-3001', '1_IM-0001-3001')
    >>> _image_key("CXR10_IM-0002-1001"), _image_key("10_IM-0002-1001.dcm.png")
    ('10_IM-0002-1001', '10_IM-0002-1001')
    """
    stem = re.sub(r"(\.dcm)?(\.png|\.jpg)?$", "", name)
    return re.sub(r"^CXR(\d+_(?=\d+_))?", "", stem)


class IuKaggle(Dataset):
    """Reads the pair of csv tables; see this file's docstring."""

    name = "iu-kaggle"
    description = "Indiana University chest X-rays as Kaggle has them: two csv tables and PNG"
    source = "https://www.kaggle.com/datasets/raddar/chest-xrays-indiana-university"
    licence = "CC BY-NC-ND 4.0 (Open-i)"
    needs = "indiana_reports.csv, indiana_projections.csv, images/images_normalized/"
    sections = ("indication", "comparison", "findings", "impression")
    extra = ("uid", "mesh", "problems")
    image_folders = ("", "images/images_normalized", "images_normalized", "images")
    image_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies in the order of the table of reports."""
        projections, reports = files.needed(PROJECTIONS), files.needed(REPORTS)
        names = {"uid": "id", "filename": "image", "projection": "view"}
        images = files.table(projections, ("uid", "filename", "projection"), "image", names)
        images = files.drop_incomplete(images, ["id", "image"], "image")
        images = images.assign(id=images["id"].str.strip(), view=images["view"].str.lower())
        of_study = by_study(images).set_index("id")
        names = {"MeSH": "mesh", "Problems": "problems", **{each: each for each in self.sections}}
        table = files.table(reports, ("uid", "findings", "impression"), "study", names)
        rows = []
        for row in files.drop_incomplete(table, ["uid"], "study").to_dict("records"):
            uid = row["uid"].strip()
            found = of_study.loc[uid] if uid in of_study.index else {"image": [], "view": []}
            own = {"id": f"CXR{uid}", "patient": f"CXR{uid}", "uid": uid}
            rows.append({**row, **own, "image": found["image"], "view": found["view"]})
        return frame_of(rows)
