"""What each data set gives of files in its published layout, and what it leaves out and why."""

from typing import Any

import pytest

from tests.data.datasets.samples import (
    chexpert_plus,
    iu_kaggle,
    iu_openi,
    mimic_cxr,
    mimic_cxr_jpg,
    openi_reports,
    padchest,
    r2gen,
    rexgradient_160k,
    table,
)
from vlscore.data import DatasetTable, read_dataset
from vlscore.data.datasets.dataset_base import SECTIONS
from vlscore.errors import InvalidSetting, InvalidTable, UnknownName


def parts(found: DatasetTable) -> tuple[dict[str, dict[str, Any]], list[tuple]]:
    """Studies by id, and (what, row, id, reason) of what is left out."""
    left = found.left_out[["what", "row", "id", "reason"]].itertuples(index=False, name=None)
    return {row["id"]: row for row in found.studies.to_dict("records")}, list(left)


def sections(study: dict[str, Any]) -> dict[str, str]:
    """The sections that a study has."""
    return {name: study[name] for name in SECTIONS if study.get(name) is not None}


MIMIC_LEFT_OUT = [
    ("image", 4, "50000003", "the file of the image is absent"),
    ("study", 6, "50000004", "the file of the report is absent"),
    ("study", 7, "50000005", "the report has neither findings nor an impression"),
]


@pytest.mark.parametrize("packed", [False, True])
def test_mimic_cxr_jpg(tmp_path, packed):
    sample = mimic_cxr_jpg(tmp_path / "jpg", packed)
    found = read_dataset("mimic-cxr-jpg", sample.folder, **sample.arguments)
    studies, left = parts(found)
    assert list(studies) == ["50000001", "50000002", "50000003"]
    first = studies["50000001"]
    assert (first["patient"], first["split"]) == ("10000001", "train")
    place = "files/p10/p10000001/s50000001"
    assert first["image"] == [f"{place}/aa-1.jpg", f"{place}/aa-2.jpg"]
    assert first["view"] == ["PA", "LATERAL"]
    assert (first["rows"], first["columns"]) == ([3056, 3056], [2544, 2544])
    assert sections(first) == {
        "indication": "Cough.",
        "findings": "Clear lungs.",
        "impression": "Normal.",
    }
    assert first["full_report"] is not None
    assert first["full_report"].startswith("FINAL REPORT")
    assert sections(studies["50000002"]) == {"findings": "Small left effusion."}
    assert found.from_last_paragraph == 1
    assert studies["50000002"]["view"] == [None]
    assert (studies["50000003"]["split"], studies["50000003"]["view"][0]) == ("validate", "AP")
    assert left == MIMIC_LEFT_OUT


def test_mimic_cxr_has_dicom_and_takes_the_split_of_the_jpg_release(tmp_path):
    sample = mimic_cxr(tmp_path / "dicom")
    studies, left = parts(read_dataset("mimic-cxr", sample.folder))
    assert studies["50000001"]["image"] == [
        "files/p10/p10000001/s50000001/aa-1.dcm",
        "files/p10/p10000001/s50000001/aa-2.dcm",
    ]
    assert {study["split"] for study in studies.values()} == {None}
    assert left == MIMIC_LEFT_OUT
    jpg = mimic_cxr_jpg(tmp_path / "jpg").folder
    for name in ("metadata", "split"):
        name = f"mimic-cxr-2.0.0-{name}.csv.gz"
        (jpg / name).rename(sample.folder / name)
    studies, _ = parts(read_dataset("mimic-cxr", sample.folder))
    assert studies["50000001"]["view"] == ["PA", "LATERAL"]
    assert studies["50000003"]["split"] == "validate"


def test_mimic_without_reports_says_where_they_are(tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg")
    with pytest.raises(InvalidTable, match=r"part of MIMIC-CXR, not of MIMIC-CXR-JPG.*--reports"):
        read_dataset("mimic-cxr-jpg", sample.folder)
    damaged = tmp_path / "reports.zip"
    damaged.write_bytes(b"no archive")
    with pytest.raises(InvalidTable, match=r"reports.zip: is no zip archive"):
        read_dataset("mimic-cxr-jpg", sample.folder, reports=damaged)


def test_rows_without_ids_cost_nothing_but_themselves(tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg")
    table(sample.folder / "mimic-cxr-2.0.0-metadata.csv.gz", [
        {"dicom_id": "aa-1", "subject_id": "10000001", "study_id": "50000001"},
        {"dicom_id": "", "subject_id": "10000001", "study_id": "50000001"},
        {"dicom_id": "bb-1", "subject_id": "10000001", "study_id": "50000002.0"},
    ])  # fmt: skip
    studies, left = parts(read_dataset("mimic-cxr-jpg", sample.folder, **sample.arguments))
    assert list(studies) == ["50000001"]
    assert left[0] == ("image", 2, "50000001", "the row names no study or no image")


@pytest.mark.parametrize("packed", [False, True])
def test_iu_openi(tmp_path, packed):
    sample = iu_openi(tmp_path / "iu", packed)
    studies, left = parts(read_dataset("open-i", sample.folder))
    # Unpacked, reports come by their numbers, not by the letters of their names.
    assert list(studies) == ["CXR1", "CXR10"]
    first = studies["CXR1"]
    assert sections(first) == {
        "indication": "Cough.",
        "comparison": "None.",
        "findings": "Heart & lungs clear.",
        "impression": "Normal.",
    }
    assert first["image"] == ["NLMCXR_png/CXR1_1_IM-0001-3001.png"]
    assert first["view"] == [None]
    assert {name: first[name] for name in ("uid", "mesh")} == {
        "uid": "1",
        "mesh": "Cardiomegaly/borderline;Pulmonary Artery/enlarged",
    }
    assert (first["patient"], first["split"]) == ("CXR1", None)
    assert sorted(left, key=str) == [
        ("study", 0, "CXR3", "the report has neither findings nor an impression"),
        ("study", 0, "CXR4", "no image belongs to the report"),
        ("study", 0, None, "the row or file cannot be read"),
    ]
    without = parts(read_dataset("open-i", sample.folder, needs_images=False))[0]
    assert without["CXR4"]["image"] == []
    assert without["CXR4"]["view"] == []


def test_openi_takes_views_from_the_kaggle_edition(tmp_path):
    sample = iu_openi(tmp_path / "iu")
    table(sample.folder / "indiana_projections.csv", [
        {"uid": 1, "filename": "1_IM-0001-3001.dcm.png", "projection": "Lateral"},
        {"uid": 10, "filename": "10_IM-0002-1001.dcm.png", "projection": "Frontal"},
    ])  # fmt: skip
    studies, _ = parts(read_dataset("iu-openi", sample.folder))
    assert studies["CXR1"]["view"] == ["lateral"]
    assert studies["CXR10"]["view"] == ["frontal", None]


def test_an_xml_with_entities_is_not_expanded(tmp_path):
    sample = iu_openi(tmp_path / "iu")
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbb">]>' + openi_reports()["1.xml"].partition("?>")[2]
    (sample.folder / "ecgen-radiology" / "1.xml").write_text(bomb, encoding="utf-8")
    studies, left = parts(read_dataset("iu-openi", sample.folder))
    assert list(studies) == ["CXR10"]
    assert left[0] == ("study", 0, None, "the row or file cannot be read")


def test_iu_kaggle(tmp_path):
    sample = iu_kaggle(tmp_path / "iu")
    studies, left = parts(read_dataset("iu-kaggle", sample.folder))
    assert list(studies) == ["CXR1"]
    assert studies["CXR1"]["image"] == [
        "images/images_normalized/1_IM-0001-4001.dcm.png",
        "images/images_normalized/1_IM-0001-3001.dcm.png",
    ]
    assert studies["CXR1"]["view"] == ["frontal", "lateral"]
    extra = ("uid", "mesh", "problems")
    assert [studies["CXR1"][name] for name in extra] == ["1", "normal", "normal"]
    assert left == [
        ("study", 2, "CXR2", "the report has neither findings nor an impression"),
        ("study", 3, "CXR3", "no image belongs to the report"),
    ]


def test_r2gen(tmp_path):
    sample = r2gen(tmp_path / "iu_xray")
    studies, left = parts(read_dataset("iu-r2gen", sample.folder))
    assert {id: study["split"] for id, study in studies.items()} == {
        "CXR2384_IM-0942": "train",
        "CXR7_IM-2263": "validate",
    }
    assert sections(studies["CXR7_IM-2263"]) == {"findings": "Edema ."}
    assert studies["CXR2384_IM-0942"]["patient"] == "CXR2384"
    assert studies["CXR2384_IM-0942"]["image"] == [
        "images/CXR2384_IM-0942/0.png",
        "images/CXR2384_IM-0942/1.png",
    ]
    assert left == [
        ("study", 1, "CXR7_IM-2263", "the id comes a second time"),
        ("image", 2, "5", "the file of the image is absent"),
        ("study", 2, "5", "no image of the study was found"),
        ("study", 2, None, "the row or file cannot be read"),
    ]
    with pytest.raises(InvalidTable, match=r"annotation.json: no such file"):
        read_dataset("r2gen", tmp_path)
    (tmp_path / "annotation.json").write_text("[1", encoding="utf-8")
    with pytest.raises(InvalidTable, match="cannot be read as json"):
        read_dataset("r2gen", tmp_path)


def test_chexpert_plus(tmp_path):
    sample = chexpert_plus(tmp_path / "chexpert")
    studies, left = parts(read_dataset("chexpert-plus", sample.folder))
    first = studies["patient42142_study5"]
    assert first["image"] == [
        "PNG/train/patient42142/study5/view1_frontal.png",
        "PNG/train/patient42142/study5/view2_lateral.png",
    ]
    assert first["view"] == ["AP", "Lateral"]
    assert sections(first) == {
        "history": "61 F",
        "comparison": "8/8/2005.",
        "impression": "1. Normal.",
    }
    assert (first["patient"], first["split"]) == ("patient42142", "train")
    second = studies["patient64545_study1"]
    # Its columns have neither section, its report has both.
    assert second["findings"] == "Clear."
    assert (second["split"], second["view"][0]) == ("validate", "Frontal")
    assert left == [("image", 4, None, "the row names no study or no image")]


def test_padchest(tmp_path):
    sample = padchest(tmp_path / "padchest")
    studies, left = parts(read_dataset("padchest", sample.folder))
    assert list(studies) == ["1701", "1704"]
    # An id of 18 digits is a text: as a float it would be another.
    assert studies["1701"]["patient"] == "839860488694292331"
    assert studies["1701"]["image"] == ["0/a_1.png", "0/a_2.png"]
    assert studies["1701"]["view"] == ["PA", "LATERAL"]
    assert (studies["1701"]["rows"], studies["1701"]["columns"]) == ([2991, 2991], [2992, 2992])
    assert studies["1704"]["image"] == ["images-224/d_1.png"]
    assert studies["1704"]["view"] == [None]
    assert (studies["1704"]["rows"], studies["1704"]["columns"]) == ([2991], [2992])
    assert left == [
        ("image", 3, "1702", "the image does not show the chest"),
        ("study", 4, "1703", "the report has neither findings nor an impression"),
    ]


def test_rexgradient(tmp_path):
    sample = rexgradient_160k(tmp_path / "rex")
    studies, left = parts(read_dataset("rexgradient", sample.folder))
    place = "deid_png/GRDN1/GRDN2/studies/1.2.826/series/1/instances"
    first = studies["pGRDN1_aGRDN2_s1.2.826"]
    assert first["image"] == [f"{place}/1.png", f"{place}/2.png"]
    assert first["view"] == ["PA", "LATERAL"]
    # "None" is how the files write that a section is absent.
    assert sections(first) == {"indication": "Line placement.", "findings": "Clear."}
    assert (first["patient"], first["split"]) == ("GRDN1", "train")
    assert (studies["pGRDN4"]["split"], studies["pGRDN4"]["view"][0]) == ("test", None)
    assert left == [
        ("study", 2, "pGRDN5", "the row or file cannot be read"),
        ("study", 2, "pGRDN3", "the report has neither findings nor an impression"),
    ]


def test_parts_can_be_chosen_by_one_name_for_all_data_sets(tmp_path):
    sample = r2gen(tmp_path / "iu_xray")
    studies, _ = parts(read_dataset("r2gen", sample.folder, split="validate"))
    assert list(studies) == ["CXR7_IM-2263"]
    with pytest.raises(InvalidSetting, match=r"train, validate and test.*not val"):
        read_dataset("r2gen", sample.folder, split="val")


def test_folders_that_are_not_there_are_refused_at_once(tmp_path):
    with pytest.raises(InvalidSetting, match="no such folder; give the folder of the data set"):
        read_dataset("iu-kaggle", tmp_path / "nowhere")
    with pytest.raises(InvalidSetting, match="images are searched for in it"):
        read_dataset("iu-kaggle", tmp_path, images=tmp_path / "nowhere")
    with pytest.raises(InvalidSetting, match="no such folder or archive of reports"):
        read_dataset("mimic-cxr", tmp_path, reports=tmp_path / "nowhere")
    with pytest.raises(InvalidSetting, match="leave reports"):
        read_dataset("iu-kaggle", tmp_path, reports=tmp_path)
    with pytest.raises(UnknownName):
        read_dataset("iu", tmp_path)


def test_a_table_without_its_columns_is_refused_with_what_it_has(tmp_path):
    sample = iu_kaggle(tmp_path / "iu")
    table(sample.folder / "indiana_projections.csv", [{"uid": 1, "file": "a"}])
    with pytest.raises(InvalidTable, match=r"no column filename, projection; found: uid, file"):
        read_dataset("iu-kaggle", sample.folder)
