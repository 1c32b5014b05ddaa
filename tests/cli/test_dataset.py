"""`vlscore dataset` from the command line."""

import json

from tests.data.datasets.samples import iu_kaggle, mimic_cxr_jpg
from vlscore.data import read_rows


def test_one_line_makes_a_table_of_each_part(command, tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg", packed=True)
    out = tmp_path / "mimic_{split}.parquet"
    done = command(
        "dataset", "mimic-cxr-jpg", sample.folder, "--reports", sample.reports, "-o", out
    )
    # An image and a report are absent, which is a fault of the files.
    assert done.exit_code == 1, done.output
    assert "Left out" in done.stdout
    assert "study: the file of the report is absent" in done.stdout
    assert f"wrote {tmp_path / 'mimic_train.parquet'}" in done.stdout
    assert "2 faults of the files" in done.stderr
    assert "last paragraph" in done.stderr
    ids = [row["id"] for _, row in read_rows(tmp_path / "mimic_train.parquet")]
    assert ids == ["50000001", "50000002"]
    again = command(
        *("dataset", "mimic-cxr-jpg", sample.folder, "--reports", sample.reports, "-o", out),
        *("--keep-going", "--quiet", "--split", "train,validate", "--overwrite"),
    )
    assert (again.exit_code, again.stdout) == (0, "")


def test_what_the_data_set_itself_lacks_is_no_failure(command, tmp_path):
    sample = iu_kaggle(tmp_path / "iu")
    done = command("dataset", "iu-kaggle", sample.folder, "-o", tmp_path / "iu.csv", "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["studies"] == {"none": 1}
    assert {each["reason"] for each in content["left_out"]} == {
        "no image belongs to the report",
        "the report has neither findings nor an impression",
    }
    both = command(
        *("dataset", "iu-kaggle", sample.folder, "-o", tmp_path / "iu.csv", "--json"),
        *("--text-only", "--overwrite"),
    )
    assert json.loads(both.stdout)["studies"] == {"none": 2}


def test_names_are_listed_and_slips_are_explained(command, tmp_path):
    listed = command("dataset")
    assert listed.exit_code == 0
    assert "mimic-cxr-jpg: MIMIC-CXR-JPG" in listed.stdout
    assert "needs df_chexpert_plus_240401.csv" in listed.stdout
    assert command("dataset", "iu-kaggle", tmp_path).exit_code == 2
