"""Every data set keeps the contract of `Dataset`; one of a user's own is read like them."""

import pytest

from tests.data.datasets.samples import SAMPLES
from vlscore.data import DATASETS, Dataset, by_study, find_dataset, frame_of, read_dataset
from vlscore.data.datasets.dataset_base import SECTIONS, SPLITS
from vlscore.errors import InvalidTable


def test_every_data_set_has_a_sample():
    assert list(SAMPLES) == DATASETS.names(), "write a function of its name in samples.py"


@pytest.mark.parametrize("name", SAMPLES)
def test_every_registered_data_set_keeps_the_contract(name, tmp_path):
    member = find_dataset(name)
    assert all((member.description, member.source, member.licence, member.needs))
    assert find_dataset(member.name).name == name
    assert set(member.sections) <= set(SECTIONS)
    sample = SAMPLES[name](tmp_path / "data")
    found = read_dataset(name, sample.folder, **sample.arguments)
    assert list(found.studies) == member.columns
    assert len(found.studies) >= 1
    texts = []
    for study in found.studies.to_dict("records"):
        assert isinstance(study["id"], str)
        assert study["id"].strip() == study["id"]
        assert isinstance(study["patient"], str | None)
        assert study["split"] in (*SPLITS, None)
        assert len(study["image"]) == len(study["view"]) >= 1
        assert all((found.image_root / path).is_file() for path in study["image"])
        assert all(view is None or view.strip() for view in study["view"])
        own = [study[section] for section in member.sections if study[section] is not None]
        assert all(text == text.strip() != "" for text in own)
        texts += own
    assert found.studies["id"].is_unique
    assert not any(text in detail for text in texts for detail in found.left_out["detail"])
    again = read_dataset(name, sample.folder, **sample.arguments)
    assert again.studies.equals(found.studies)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidTable, match="empty"):
        read_dataset(name, tmp_path / "empty")


class OneTable(Dataset):
    """One csv table, as docs/datasets.md writes it."""

    name = "one-table"
    description, source, licence, needs = "d", "s", "l", "ours.csv"

    def studies(self, files):
        names = {"study": "id", "text": "findings"}
        table = files.table(files.needed("ours.csv"), ("study", "file", "text"), "study", names)
        return table.assign(image=[[path] for path in table["file"]])


class Nothing(OneTable):
    def studies(self, files):
        return frame_of([])


def test_a_data_set_of_ones_own(tmp_path):
    (tmp_path / "ours.csv").write_text("study,file,text\n7,a.png,Clear.\n8,b.png,Edema.\n")
    (tmp_path / "a.png").touch()
    for own in (OneTable, OneTable(), "tests.data.datasets.test_contract:OneTable"):
        found = read_dataset(own, tmp_path)
        assert found.studies.to_dict("records") == [
            {"id": "7", "patient": None, "split": None, "image": ["a.png"], "view": [None],
             "findings": "Clear.", "impression": None}
        ]  # fmt: skip
        assert list(found.left_out["reason"]) == [
            "the file of the image is absent",
            "no image of the study was found",
        ]
        assert (found.faults, found.counts) == (2, {"none": (1, 1)})
    with pytest.raises(InvalidTable, match=r"no study can be used\. one-table needs ours\.csv"):
        read_dataset(Nothing, tmp_path)


class OneImageARow(OneTable):
    def studies(self, files):
        names = {"study": "id", "file": "image", "text": "findings", "who": "patient"}
        names["part"] = "split"
        return by_study(files.table(files.needed("ours.csv"), list(names), "image", names))


def test_rows_of_a_study_that_differ_and_rows_of_no_study_are_left_out(tmp_path):
    rows = [
        "7,a.png,Clear.,p1,val",
        "7,b.png,,p1,val",
        "8,a.png,Edema.,p1,fold 3",
        "9,a.png,Clear.,p1,train",
        "9,b.png,Effusion.,p1,test",
        ",a.png,Clear.,p2,train",
        ",b.png,Clear.,p2,train",
    ]
    (tmp_path / "ours.csv").write_text("\n".join(["study,file,text,who,part", *rows]))
    for name in ("a.png", "b.png"):
        (tmp_path / name).touch()
    found = read_dataset(OneImageARow, tmp_path)
    assert list(found.studies["id"]) == ["7", "8"]
    assert list(found.studies["image"]) == [["a.png", "b.png"], ["a.png"]]
    assert found.left_out[["row", "reason", "detail"]].to_numpy().tolist() == [
        [4, "the rows of the study have different values", "split, findings"],
        [6, "the row names no study or no image", ""],
        [7, "the row names no study or no image", ""],
    ]
    assert found.faults == 3
    assert "have the names that the files use: fold 3" in found.notes[0]


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (None, "is a NoneType"),
        (frame_of([{"id": "7", "image": ["a.png"], "in_row": 1}]), "has no column in_file"),
        (
            frame_of([{"id": "7", "image": "a.png", "in_file": "x", "in_row": 1}]),
            "has an image that is no list",
        ),
    ],
)
def test_what_is_no_frame_of_studies_is_refused(returned, what, tmp_path):
    own = type("Own", (OneTable,), {"studies": lambda self, files: returned})
    with pytest.raises(InvalidTable, match=f"one-table: .* what it returned {what}"):
        read_dataset(own, tmp_path)
