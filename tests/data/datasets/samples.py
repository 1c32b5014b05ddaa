"""Small folders in the published layouts of the data sets, made for tests."""

import csv
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlscore.data import DATASETS


@dataclass(frozen=True)
class Sample:
    """A folder in a data set's layout: the arguments of `read_dataset`."""

    folder: Path
    images: Path | None = None
    reports: Path | None = None

    @property
    def arguments(self) -> dict[str, Path]:
        named = {"images": self.images, "reports": self.reports}
        return {name: path for name, path in named.items() if path is not None}


def film(path: Path, size: tuple[int, int] = (24, 20)) -> None:
    """A picture of (height, width) that is no constant."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(path.name)).integers(0, 256, size, dtype=np.uint8)
    kind = "PNG" if path.suffix == ".png" else "JPEG"
    Image.fromarray(pixels).save(path, format=kind)


def table(path: Path, rows: list[dict[str, Any]]) -> None:
    """A csv table, packed where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, names, restval="")
        writer.writeheader()
        writer.writerows(rows)


def as_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


# Study -> patient, split, films (dicom_id, view), report. The third has a film that is not on the
# disk, the fourth no report, the fifth neither findings nor an impression nor a last paragraph.
MIMIC = {
    "50000001": ("10000001", "train", [("aa-1", "PA"), ("aa-2", "LATERAL")],
                 " FINAL REPORT\n INDICATION: Cough.\n\n FINDINGS:\n Clear lungs.\n\n"
                 " IMPRESSION: Normal.\n"),
    "50000002": ("10000001", "train", [("bb-1", "")],
                 " FINAL REPORT\n Compared with yesterday.\n\n Small left effusion.\n"),
    "50000003": ("11000002", "validate", [("cc-1", "AP"), ("cc-gone", "LL")],
                 "IMPRESSION: Edema."),
    "50000004": ("11000003", "test", [("dd-1", "AP")], None),
    "50000005": ("11000003", "test", [("ee-1", "AP")], "INDICATION: Fever."),
}  # fmt: skip


def mimic_reports(folder: Path, packed: bool = False) -> Path:
    """MIMIC-CXR's reports, unpacked or as its .zip."""
    texts = {
        f"files/p{patient[:2]}/p{patient}/s{study}.txt": report
        for study, (patient, _, _, report) in MIMIC.items()
        if report is not None
    }
    if packed:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(folder / "mimic-cxr-reports.zip", "w") as archive:
            for name, text in texts.items():
                archive.writestr(name, text)
        return folder / "mimic-cxr-reports.zip"
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _mimic_rows() -> list[dict[str, str]]:
    return [
        {"dicom_id": dicom, "subject_id": patient, "study_id": study, "ViewPosition": view,
         "split": split, "Rows": "3056", "Columns": "2544"}
        for study, (patient, split, films, _) in MIMIC.items()
        for dicom, view in films
    ]  # fmt: skip


def _mimic_films(folder: Path, suffix: str) -> None:
    for study, (patient, _, films, _) in MIMIC.items():
        for dicom, _ in films:
            if dicom != "cc-gone":
                place = folder / f"files/p{patient[:2]}/p{patient}/s{study}"
                film(place / f"{dicom}{suffix}")


def mimic_cxr_jpg(folder: Path, packed: bool = False) -> Sample:
    rows = _mimic_rows()
    only = ("dicom_id", "subject_id", "study_id")
    table(folder / "mimic-cxr-2.0.0-metadata.csv.gz", [
        {name: value for name, value in row.items() if name != "split"} for row in rows
    ])  # fmt: skip
    table(folder / "mimic-cxr-2.0.0-split.csv.gz", [
        {name: row[name] for name in (*only, "split")} for row in rows
    ])  # fmt: skip
    _mimic_films(folder, ".jpg")
    return Sample(folder, reports=mimic_reports(folder.parent / "reports", packed))


def mimic_cxr(folder: Path) -> Sample:
    table(folder / "cxr-record-list.csv.gz", [
        {"subject_id": row["subject_id"], "study_id": row["study_id"], "dicom_id": row["dicom_id"],
         "path": f"files/p{row['subject_id'][:2]}/p{row['subject_id']}/s{row['study_id']}/"
                 f"{row['dicom_id']}.dcm"}
        for row in _mimic_rows()
    ])  # fmt: skip
    _mimic_films(folder, ".dcm")
    mimic_reports(folder, packed=True)
    return Sample(folder)


_XML = """<?xml version="1.0" encoding="utf-8"?><eCitation><uId id="{id}"/>
<MedlineCitation><Article><Abstract>
<AbstractText Label="COMPARISON">None.</AbstractText>
<AbstractText Label="INDICATION">Cough.</AbstractText>
<AbstractText Label="FINDINGS">{findings}</AbstractText>
<AbstractText Label="IMPRESSION">{impression}</AbstractText>
</Abstract></Article></MedlineCitation>
<MeSH><major>Cardiomegaly/borderline</major><major>Pulmonary Artery/enlarged</major></MeSH>{films}
</eCitation>"""


def openi_reports() -> dict[str, str]:
    """Name -> XML; the third is no XML, the fourth has no text, the fifth no film."""

    def made(number: int, findings: str, impression: str, films: list[str]) -> str:
        shown = "".join(
            f'<parentImage id="{name}"><caption>Xray Chest PA and Lateral</caption></parentImage>'
            for name in films
        )
        return _XML.format(id=f"CXR{number}", findings=findings, impression=impression, films=shown)

    return {
        "1.xml": made(1, "Heart &amp; lungs clear.", "Normal.", ["CXR1_1_IM-0001-3001"]),
        "10.xml": made(10, "", "Edema.", ["CXR10_IM-0002-1001", "CXR10_IM-0002-2001"]),
        "2.xml": "<eCitation><uId",
        "3.xml": made(3, "", "", ["CXR3_IM-1384-1001"]),
        "4.xml": made(4, "Clear.", "", []),
    }


def iu_openi(folder: Path, packed: bool = False) -> Sample:
    if packed:
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / "NLMCXR_reports.tgz", "w:gz") as archive:
            for name, text in openi_reports().items():
                member = tarfile.TarInfo(f"ecgen-radiology/{name}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    else:
        (folder / "ecgen-radiology").mkdir(parents=True)
        for name, text in openi_reports().items():
            (folder / "ecgen-radiology" / name).write_text(text, encoding="utf-8")
    for name in ("CXR1_1_IM-0001-3001", "CXR10_IM-0002-1001", "CXR10_IM-0002-2001"):
        film(folder / "NLMCXR_png" / f"{name}.png")
    return Sample(folder)


def iu_kaggle(folder: Path) -> Sample:
    table(folder / "indiana_reports.csv", [
        {"uid": 1, "MeSH": "normal", "Problems": "normal", "image": "Chest", "indication": "TB",
         "comparison": "None.", "findings": "Clear lungs.", "impression": "Normal."},
        {"uid": 2, "MeSH": "Cardiomegaly", "Problems": "Cardiomegaly", "image": "Chest",
         "indication": "Preop.", "comparison": "", "findings": "", "impression": ""},
        {"uid": 3, "MeSH": "normal", "Problems": "normal", "image": "Chest", "indication": "",
         "comparison": "", "findings": "", "impression": "Heart, lungs:\nnormal."},
    ])  # fmt: skip
    names = {1: ["1_IM-0001-4001.dcm.png", "1_IM-0001-3001.dcm.png"], 2: ["2_IM-0652-1001.dcm.png"]}
    table(folder / "indiana_projections.csv", [
        {"uid": uid, "filename": name, "projection": ("Frontal", "Lateral")[place]}
        for uid, films in names.items()
        for place, name in enumerate(films)
    ])  # fmt: skip
    for films in names.values():
        for name in films:
            film(folder / "images" / "images_normalized" / name)
    return Sample(folder)


def r2gen(folder: Path) -> Sample:
    entries = {
        "train": [
            {"id": "CXR2384_IM-0942", "report": "The heart is normal .", "split": "train",
             "image_path": ["CXR2384_IM-0942/0.png", "CXR2384_IM-0942/1.png"]},
            ["not", "a", "study"],
        ],
        "val": [{"id": "CXR7_IM-2263", "report": "Edema .", "split": "val",
                 "image_path": ["CXR7_IM-2263/0.png"]}],
        "test": [
            {"id": "CXR7_IM-2263", "report": "Twice .", "image_path": ["CXR7_IM-2263/0.png"]},
            {"id": 5, "report": "No film .", "image_path": ["5/0.png"], "split": "test"},
        ],
    }  # fmt: skip
    as_json(folder / "annotation.json", entries)
    for name in ("CXR2384_IM-0942/0.png", "CXR2384_IM-0942/1.png", "CXR7_IM-2263/0.png"):
        film(folder / "images" / name)
    return Sample(folder)


def chexpert_plus(folder: Path) -> Sample:
    report = "NARRATIVE:\nChest.\n\nFINDINGS: Clear.\n\nIMPRESSION:\n1. Normal."
    study = {"deid_patient_id": "patient42142", "patient_report_date_order": 5, "report": report,
             "section_findings": "", "section_impression": "1. Normal.", "section_history": "61 F",
             "section_clinical_history": "", "section_comparison": "8/8/2005.",
             "section_technique": "", "split": "train"}  # fmt: skip
    other = {**study, "deid_patient_id": "patient64545", "section_impression": "", "split": "valid"}
    table(folder / "df_chexpert_plus_240401.csv", [
        {"path_to_image": "train/patient42142/study5/view1_frontal.jpg",
         "path_to_dcm": "train/patient42142/study5/view1_frontal.dcm",
         "frontal_lateral": "Frontal", "ap_pa": "AP", **study},
        {"path_to_image": "train/patient42142/study5/view2_lateral.jpg",
         "path_to_dcm": "train/patient42142/study5/view2_lateral.dcm",
         "frontal_lateral": "Lateral", "ap_pa": "", **study},
        {"path_to_image": "valid/patient64545/study1/view1_frontal.jpg",
         "path_to_dcm": "valid/patient64545/study1/view1_frontal.dcm",
         "frontal_lateral": "Frontal", "ap_pa": "", **other},
        {"path_to_image": "nowhere.jpg", **study},
    ])  # fmt: skip
    for name in (
        "train/patient42142/study5/view1_frontal",
        "train/patient42142/study5/view2_lateral",
        "valid/patient64545/study1/view1_frontal",
    ):
        film(folder / "PNG" / f"{name}.png")
    return Sample(folder)


def padchest(folder: Path) -> Sample:
    columns = ("ImageID", "ImageDir", "StudyID", "PatientID", "Projection", "Report")
    rows = [
        ("a_1.png", "0", "1701", "839860488694292331", "PA", "sin hallazg patolog ."),
        ("a_2.png", "0", "1701", "839860488694292331", "L", "sin hallazg patolog ."),
        ("b_1.png", "14", "1702", "2", "COSTAL", "fractur costal ."),
        ("c_1.png", "14", "1703", "3", "AP_horizontal", ""),
        ("d_1.png", "14", "1704", "3", "UNK", "derram pleural ."),
    ]
    table(folder / "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv.gz", [
        {"": place, **dict(zip(columns, row, strict=True)), "Rows_DICOM": "2991.0",
         "Columns_DICOM": "2992.0", "Labels": "['normal']"}
        for place, row in enumerate(rows)
    ])  # fmt: skip
    film(folder / "0" / "a_1.png")
    film(folder / "0" / "a_2.png")
    # As resized copies are kept: all in one folder.
    film(folder / "images-224" / "d_1.png")
    return Sample(folder)


def rexgradient_160k(folder: Path) -> Sample:
    def entry(findings: Any, paths: list[str], views: list[Any]) -> dict[str, Any]:
        return {"id": "x", "PatientID": "GRDN1", "AccessionNumber": "GRDN2",
                "StudyInstanceUid": "1.2.826", "PatientSex": "F", "PatientAge": "072Y",
                "Indication": "Line placement.", "Comparison": "None", "Findings": findings,
                "Impression": "None", "ImagePath": paths,
                "ImageViewPosition": views}  # fmt: skip

    place = "GRDN1/GRDN2/studies/1.2.826/series/1/instances"
    as_json(folder / "metadata" / "train_metadata_view_position.json", {
        "pGRDN1_aGRDN2_s1.2.826": entry("Clear.", [f"../deid_png/{place}/1.png",
                                                   f"../deid_png/{place}/2.png"],
                                        ["POSTERO_ANTERIOR", "LATERAL"]),
        "pGRDN3": entry("None", [f"../deid_png/{place}/1.png"], ["AP"]),
    })  # fmt: skip
    as_json(folder / "metadata" / "test_metadata_view_position.json", {
        "pGRDN4": entry("Edema.", [f"../deid_png/{place}/1.png"], []),
        "pGRDN5": "no object",
    })  # fmt: skip
    film(folder / "deid_png" / place / "1.png")
    film(folder / "deid_png" / place / "2.png")
    return Sample(folder)


# Each data set has a function above with its name: `mimic_cxr_jpg` makes that of mimic-cxr-jpg.
SAMPLES: dict[str, Callable[[Path], Sample]] = {
    name: found
    for name in DATASETS.names()
    if (found := globals().get(name.replace("-", "_"))) is not None
}
