"""Tables of labels that were made elsewhere."""

import pytest

from vlscore.errors import InvalidTable
from vlscore.evaluation import read_labels


def write(tmp_path, text):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    return path


def test_as_mimic_cxr_jpg_has_them(tmp_path):
    path = write(
        tmp_path,
        "subject_id,study_id,Atelectasis,Airspace Opacity,enlarged_cardiomediastinum\n"
        "1,50414267,1.0,,-1.0\n1,53189527,0.0,1,\n",
    )
    assert read_labels(path) == {
        "50414267": {"Atelectasis": 1, "Lung Opacity": None, "Enlarged Cardiomediastinum": -1},
        "53189527": {"Atelectasis": 0, "Lung Opacity": 1, "Enlarged Cardiomediastinum": None},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key,Edema\na,1\n", "no column id or study_id"),
        ("id,score\na,1\n", "none of its columns is one of CheXpert's labels"),
        ("id,Edema\na,2\n", "row 1: column \"Edema\" holds '2'; a label is 1, 0, -1 or empty"),
        ("id,Edema\na,yes\n", "a label is 1, 0, -1 or empty"),
        ("id,Edema\na,1\na,0\n", "row 2: 'a' has an earlier row"),
        ("id,Edema\n,1\n", "has no id"),
        ("id,Edema\na,1,1\n", "row 1"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, text, message):
    with pytest.raises(InvalidTable, match=message.replace("[", r"\[")):
        read_labels(write(tmp_path, text))
