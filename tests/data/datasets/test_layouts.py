"""What each data set gives of files in its published layout, and what it leaves out and why."""

from collections import Counter

import pytest

from tests.data.datasets.samples import (
    chexpert_plus,
    iu_kaggle,
    iu_openi,
    mimic_cxr,
    mimic_cxr_jpg,
    mimic_reports,
    openi_reports,
    padchest,
    r2gen,
    rexgradient_160k,
    rexrank,
    squared_films,
    table,
)
from vlscore.data import DatasetStudy, Film, Omission, read_dataset
from vlscore.errors import InvalidSetting, InvalidTable, UnknownName


def parts(reading) -> tuple[dict[str, DatasetStudy], list[tuple]]:
    """Studies by id, and (what, row, id, reason) of what is left out."""
    found = list(reading)
    left = [each for each in found if isinstance(each, Omission)]
    studies = {each.id: each for each in found if isinstance(each, DatasetStudy)}
    return studies, [(each.what, each.row, each.id, each.reason.text) for each in left]


MIMIC_LEFT_OUT = [
    ("film", 4, "50000003", "the file of the film is absent"),
    ("study", 6, "50000004", "the file of the report is absent"),
    ("study", 7, "50000005", "the report has neither findings nor an impression"),
]


@pytest.mark.parametrize("packed", [False, True])
def test_mimic_cxr_jpg(tmp_path, packed):
    sample = mimic_cxr_jpg(tmp_path / "jpg", packed)
    studies, left = parts(read_dataset("mimic-cxr-jpg", sample.folder, **sample.arguments))
    assert list(studies) == ["50000001", "50000002", "50000003"]
    first = studies["50000001"]
    assert (first.patient, first.split) == ("10000001", "train")
    place = "files/p10/p10000001/s50000001"
    assert first.films == (
        Film(f"{place}/aa-1.jpg", "PA", 3056, 2544),
        Film(f"{place}/aa-2.jpg", "LATERAL", 3056, 2544),
    )
    assert first.sections == {
        "indication": "Cough.",
        "findings": "Clear lungs.",
        "impression": "Normal.",
    }
    assert first.report is not None
    assert first.report.startswith("FINAL REPORT")
    assert studies["50000002"].sections == {"findings": "Small left effusion."}
    assert studies["50000002"].from_last_paragraph
    assert studies["50000002"].films[0].view is None
    assert (studies["50000003"].split, studies["50000003"].films[0].view) == ("validate", "AP")
    assert not studies["50000003"].from_last_paragraph
    assert left == MIMIC_LEFT_OUT


def test_mimic_cxr_has_dicom_and_takes_the_split_of_the_jpg_release(tmp_path):
    sample = mimic_cxr(tmp_path / "dicom")
    studies, left = parts(read_dataset("mimic-cxr", sample.folder))
    assert [film.path for film in studies["50000001"].films] == [
        "files/p10/p10000001/s50000001/aa-1.dcm",
        "files/p10/p10000001/s50000001/aa-2.dcm",
    ]
    assert {study.split for study in studies.values()} == {None}
    assert left == MIMIC_LEFT_OUT
    jpg = mimic_cxr_jpg(tmp_path / "jpg").folder
    for name in ("metadata", "split"):
        name = f"mimic-cxr-2.0.0-{name}.csv.gz"
        (jpg / name).rename(sample.folder / name)
    studies, _ = parts(read_dataset("mimic-cxr", sample.folder))
    assert [film.view for film in studies["50000001"].films] == ["PA", "LATERAL"]
    assert studies["50000003"].split == "validate"


def test_mimic_without_reports_says_where_they_are(tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg")
    with pytest.raises(InvalidTable, match=r"part of MIMIC-CXR, not of MIMIC-CXR-JPG.*--reports"):
        list(read_dataset("mimic-cxr-jpg", sample.folder))
    damaged = tmp_path / "reports.zip"
    damaged.write_bytes(b"no archive")
    with pytest.raises(InvalidTable, match=r"reports.zip: is no zip archive"):
        list(read_dataset("mimic-cxr-jpg", sample.folder, reports=damaged))


def test_a_report_that_is_no_text_costs_its_study_alone(tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg")
    name = "files/p10/p10000001/s50000002.txt"
    (mimic_reports(tmp_path / "reports") / name).write_bytes(b"FINDINGS: \xff\xfe")
    studies, left = parts(
        read_dataset("mimic-cxr-jpg", sample.folder, reports=tmp_path / "reports")
    )
    assert list(studies) == ["50000001", "50000003"]
    assert ("study", 0, "50000002", "the row or file cannot be read") in left


def test_rows_without_ids_cost_nothing_but_themselves(tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg")
    table(sample.folder / "mimic-cxr-2.0.0-metadata.csv.gz", [
        {"dicom_id": "aa-1", "subject_id": "10000001", "study_id": "50000001"},
        {"dicom_id": "", "subject_id": "10000001", "study_id": "50000001"},
        {"dicom_id": "bb-1", "subject_id": "10000001", "study_id": "50000002.0"},
    ])  # fmt: skip
    studies, left = parts(read_dataset("mimic-cxr-jpg", sample.folder, **sample.arguments))
    assert list(studies) == ["50000001"]
    assert left[0] == ("film", 2, "50000001", "the row names no study or no film")


@pytest.mark.parametrize("packed", [False, True])
def test_iu_openi(tmp_path, packed):
    sample = iu_openi(tmp_path / "iu", packed)
    studies, left = parts(read_dataset("open-i", sample.folder))
    # Unpacked, reports come by their numbers, not by the letters of their names.
    assert list(studies) == ["CXR1", "CXR10"]
    first = studies["CXR1"]
    assert first.sections == {
        "indication": "Cough.",
        "comparison": "None.",
        "findings": "Heart & lungs clear.",
        "impression": "Normal.",
    }
    assert first.films == (Film("NLMCXR_png/CXR1_1_IM-0001-3001.png"),)
    assert first.extra == {"uid": "1", "mesh": "Cardiomegaly/borderline;Pulmonary Artery/enlarged"}
    assert (first.patient, first.split) == ("CXR1", None)
    assert sorted(left, key=str) == [
        ("study", 0, "CXR3", "the report has neither findings nor an impression"),
        ("study", 0, "CXR4", "no film belongs to the report"),
        ("study", 0, None, "the row or file cannot be read"),
    ]
    without = parts(read_dataset("open-i", sample.folder, needs_films=False))[0]
    assert without["CXR4"].films == ()


def test_openi_takes_views_from_the_kaggle_edition(tmp_path):
    sample = iu_openi(tmp_path / "iu")
    table(sample.folder / "indiana_projections.csv", [
        {"uid": 1, "filename": "1_IM-0001-3001.dcm.png", "projection": "Lateral"},
        {"uid": 10, "filename": "10_IM-0002-1001.dcm.png", "projection": "Frontal"},
    ])  # fmt: skip
    studies, _ = parts(read_dataset("iu-openi", sample.folder))
    assert [film.view for film in studies["CXR1"].films] == ["lateral"]
    assert [film.view for film in studies["CXR10"].films] == ["frontal", None]


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
    assert studies["CXR1"].films == (
        Film("images/images_normalized/1_IM-0001-4001.dcm.png", "frontal"),
        Film("images/images_normalized/1_IM-0001-3001.dcm.png", "lateral"),
    )
    assert studies["CXR1"].extra == {"uid": "1", "mesh": "normal", "problems": "normal"}
    assert left == [
        ("study", 2, "CXR2", "the report has neither findings nor an impression"),
        ("study", 3, "CXR3", "no film belongs to the report"),
    ]


def test_r2gen(tmp_path):
    sample = r2gen(tmp_path / "iu_xray")
    studies, left = parts(read_dataset("iu-r2gen", sample.folder))
    assert {id: study.split for id, study in studies.items()} == {
        "CXR2384_IM-0942": "train",
        "CXR7_IM-2263": "validate",
    }
    assert studies["CXR7_IM-2263"].sections == {"findings": "Edema ."}
    assert studies["CXR2384_IM-0942"].patient == "CXR2384"
    assert [film.path for film in studies["CXR2384_IM-0942"].films] == [
        "images/CXR2384_IM-0942/0.png",
        "images/CXR2384_IM-0942/1.png",
    ]
    assert left == [
        ("study", 2, None, "the row or file cannot be read"),
        ("study", 1, "CXR7_IM-2263", "the id comes a second time"),
        ("film", 2, "5", "the file of the film is absent"),
        ("study", 2, "5", "no film of the study was found"),
    ]
    with pytest.raises(InvalidTable, match=r"annotation.json: no such file"):
        list(read_dataset("r2gen", tmp_path))
    (tmp_path / "annotation.json").write_text("[1", encoding="utf-8")
    with pytest.raises(InvalidTable, match="cannot be read as json"):
        list(read_dataset("r2gen", tmp_path))


def test_chexpert_plus(tmp_path):
    sample = chexpert_plus(tmp_path / "chexpert")
    studies, left = parts(read_dataset("chexpert-plus", sample.folder))
    first = studies["patient42142_study5"]
    assert first.films == (
        Film("PNG/train/patient42142/study5/view1_frontal.png", "AP"),
        Film("PNG/train/patient42142/study5/view2_lateral.png", "Lateral"),
    )
    assert first.sections == {
        "history": "61 F",
        "comparison": "8/8/2005.",
        "impression": "1. Normal.",
    }
    assert (first.patient, first.split) == ("patient42142", "train")
    second = studies["patient64545_study1"]
    # Its columns have neither section, its report has both.
    assert second.sections["findings"] == "Clear."
    assert (second.split, second.films[0].view) == ("validate", "Frontal")
    assert left == [("film", 4, None, "the row names no study or no film")]


def test_padchest(tmp_path):
    sample = padchest(tmp_path / "padchest")
    studies, left = parts(read_dataset("padchest", sample.folder))
    assert list(studies) == ["1701", "1704"]
    # An id of 18 digits is a text: as a float it would be another.
    assert studies["1701"].patient == "839860488694292331"
    assert studies["1701"].films == (
        Film("0/a_1.png", "PA", 2991, 2992),
        Film("0/a_2.png", "LATERAL", 2991, 2992),
    )
    assert studies["1704"].films == (Film("images-224/d_1.png", None, 2991, 2992),)
    assert left == [
        ("film", 3, "1702", "the film does not show the chest"),
        ("study", 4, "1703", "the report has neither findings nor an impression"),
    ]


def test_rexgradient(tmp_path):
    sample = rexgradient_160k(tmp_path / "rex")
    studies, left = parts(read_dataset("rexgradient", sample.folder))
    place = "deid_png/GRDN1/GRDN2/studies/1.2.826/series/1/instances"
    first = studies["pGRDN1_aGRDN2_s1.2.826"]
    assert first.films == (Film(f"{place}/1.png", "PA"), Film(f"{place}/2.png", "LATERAL"))
    # "None" is how the files write that a section is absent.
    assert first.sections == {"indication": "Line placement.", "findings": "Clear."}
    assert (first.patient, first.split) == ("GRDN1", "train")
    assert (studies["pGRDN4"].split, studies["pGRDN4"].films[0].view) == ("test", None)
    assert left == [
        ("study", 2, "pGRDN3", "the report has neither findings nor an impression"),
        ("study", 2, "pGRDN5", "the row or file cannot be read"),
    ]


def test_rexrank(tmp_path):
    sample = rexrank(tmp_path / "rexrank")
    studies, left = parts(read_dataset("rexrank", sample.folder, **sample.arguments))
    first = studies["50051329"]
    assert first.films == (
        Film("p10/p1/s50051329/a.jpg", "lateral"),
        Film("p10/p1/s50051329/b.jpg", "AP"),
    )
    assert first.sections == {"indication": "Cough.", "findings": "The lungs are low in volume."}
    assert (first.patient, first.split) == ("1", "test")
    # The third names a file outside of the folder, which is there and is not taken.
    assert left == [
        ("study", 2, "64620", "the report has neither findings nor an impression"),
        ("film", 3, "64621", "the file of the film is absent"),
        ("study", 3, "64621", "no film of the study was found"),
    ]
    with pytest.raises(InvalidTable, match=r"is a folder; give ReXrank's .json file"):
        list(read_dataset("rexrank", tmp_path))


def test_squared_films(tmp_path):
    sample = squared_films(tmp_path / "iu")
    studies, left = parts(read_dataset("squared-films", sample.folder))
    assert studies["iu-1"].films == (
        Film("images/tall.jpg", "frontal", 300, 200),
        Film("images/side.jpg", "lateral"),
    )
    assert {id: study.split for id, study in studies.items()} == {
        "iu-1": "train",
        "iu-2": "validate",
    }
    assert left == [
        ("study", 3, "iu-3", "the row names no study or no film"),
        ("study", 4, None, "the row or file cannot be read"),
    ]


def test_parts_can_be_chosen_by_one_name_for_all_data_sets(tmp_path):
    sample = r2gen(tmp_path / "iu_xray")
    studies, _ = parts(read_dataset("r2gen", sample.folder, split="validate"))
    assert list(studies) == ["CXR7_IM-2263"]
    with pytest.raises(InvalidSetting, match=r"train, validate and test.*not val"):
        read_dataset("r2gen", sample.folder, split="val")


def test_paths_are_taken_as_published_where_nobody_looks_at_the_disk(tmp_path):
    sample = chexpert_plus(tmp_path / "chexpert")
    studies, _ = parts(read_dataset("chexpert-plus", sample.folder, check_files=False))
    paths = Counter(film.path for study in studies.values() for film in study.films)
    assert paths["train/patient42142/study5/view1_frontal.jpg"] == 1


def test_folders_that_are_not_there_are_refused_at_once(tmp_path):
    with pytest.raises(InvalidSetting, match="no such folder; give the folder of the data set"):
        read_dataset("iu-kaggle", tmp_path / "nowhere")
    with pytest.raises(InvalidSetting, match="films are looked for in it"):
        read_dataset("iu-kaggle", tmp_path, films=tmp_path / "nowhere")
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
        list(read_dataset("iu-kaggle", sample.folder))
