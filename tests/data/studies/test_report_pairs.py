"""References and candidates of two files: the layouts of CXR-Report-Metric, RadEval and ReXrank."""

import csv
import json

import pytest

from vlscore.data import open_studies, pair, read_rows
from vlscore.errors import InvalidSetting, InvalidTable

PAIRS = [("Clear lungs.", "No edema."), ("Left effusion.", ""), ("- Edema, mild.", "Edema.")]


def write_csv(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def studies_of(path):
    return [(row.id, row.reference, row.candidate) for row in _studies(path)]


def _studies(path):
    return list(open_studies(path, needs={"reference", "candidate"}))


@pytest.mark.parametrize("name", ["studies.csv", "studies.jsonl"])
def test_the_two_tables_of_cxr_report_metric(tmp_path, name):
    """Rows are joined by study_id: the order of the files does not matter."""
    ids = ["50051329", "53492798", "57379357"]
    header = ["study_id", "report"]
    ours = write_csv(
        tmp_path / "gt.csv", header, [[i, r] for i, (r, _) in zip(ids, PAIRS, strict=True)]
    )
    theirs = [[i, g] for i, (_, g) in zip(ids, PAIRS, strict=True)]
    candidates = write_csv(tmp_path / "predicted.csv", header, theirs[::-1])
    found = pair(ours, candidates, tmp_path / name)
    assert (found.pairs, found.by_id, found.left_out.total()) == (3, True, 0)
    assert found.notes == ["1 candidates are empty; they will be scored"]
    assert studies_of(tmp_path / name) == [(i, r, g) for i, (r, g) in zip(ids, PAIRS, strict=True)]


def test_text_files_of_radeval(tmp_path):
    references, candidates = tmp_path / "ground_truth.tok", tmp_path / "predictions.tok"
    references.write_text("\n".join(r for r, _ in PAIRS) + "\n\n")
    candidates.write_text("\n".join(g for _, g in PAIRS) + "\n")
    found = pair(references, candidates, tmp_path / "s.jsonl")
    assert "joined by their order" in found.notes[0]
    assert studies_of(found.out) == [(str(k), *texts) for k, texts in enumerate(PAIRS, start=1)]
    candidates.write_text("No edema.\n")
    with pytest.raises(InvalidTable, match=r"has 3 reports and .* has 1; without ids"):
        pair(references, candidates, tmp_path / "s.jsonl")


def test_lists_of_radeval(tmp_path):
    data = tmp_path / "data.json"
    content = {"references": [r for r, _ in PAIRS], "hypotheses": [g for _, g in PAIRS]}
    data.write_text(json.dumps(content))
    found = pair(data, data, tmp_path / "s.csv")
    assert studies_of(found.out) == [(str(k), *texts) for k, texts in enumerate(PAIRS, start=1)]


def test_predictions_for_rexrank(tmp_path):
    """What is written is what ReXrank's evaluation script reads, and every command."""
    manifest = {
        f"5{k}": {
            "image_path": [f"/p1/{k}.jpg"],
            "section_findings": reference,
            "section_impression": None,
            "split": "test",
        }
        for k, (reference, _) in enumerate(PAIRS)
    }
    (tmp_path / "test.json").write_text(json.dumps(manifest))
    rows = [[f"5{k}", candidate] for k, (_, candidate) in enumerate(PAIRS)]
    candidates = write_csv(tmp_path / "ours.csv", ["study_id", "report"], rows)
    found = pair(tmp_path / "test.json", candidates, tmp_path / "prediction.json")
    written = json.loads(found.out.read_text())
    for (study, entry), (_, candidate) in zip(manifest.items(), PAIRS, strict=True):
        assert written[study] == {**entry, "model_prediction": candidate}
    read = [row for _, row in read_rows(found.out)]
    assert [(row["id"], row["candidate"]) for row in read] == [tuple(row) for row in rows]
    # The same as a table, with the images and without loss of the other fields.
    table = pair(tmp_path / "test.json", candidates, tmp_path / "s.jsonl").out
    (first, *_) = (row for _, row in read_rows(table))
    assert first["image"] == ["p1/0.jpg"]
    assert first["split"] == "test"
    assert first["reference"] == "Findings: Clear lungs."
    with pytest.raises(InvalidSetting, match="no manifest"):
        pair(candidates, candidates, tmp_path / "prediction.json")


def test_rows_without_a_partner_are_listed(tmp_path):
    ours = [["a", "Clear."], ["b", ""], ["a", "Again."], ["c", "Edema."], ["", "No id."]]
    references = write_csv(tmp_path / "r.csv", ["id", "findings"], ours)
    candidates = write_csv(
        tmp_path / "c.csv", ["study_id", "prediction"], [["a", "X"], ["b", "Y"], ["z", "Z"]]
    )
    found = pair(references, candidates, tmp_path / "s.csv")
    assert [row["findings"] for _, row in read_rows(found.out)] == ["Clear."]
    with found.rows_file.open() as stream:
        listed = [(row["file"], row["row"], row["reason"]) for row in csv.DictReader(stream)]
    assert listed == [
        ("r.csv", "2", "the reference is empty"),
        ("r.csv", "3", "the id comes a second time"),
        ("r.csv", "4", "no candidate has this id"),
        ("r.csv", "5", "the row has no id"),
        ("c.csv", "3", "no reference has this id"),
    ]


def test_what_is_no_pair_is_refused(tmp_path):
    table = write_csv(tmp_path / "a.csv", ["id", "words"], [["1", "x"]])
    with pytest.raises(InvalidTable, match="no column with the reference"):
        pair(table, table, tmp_path / "s.csv")
    one = write_csv(tmp_path / "b.csv", ["id", "report"], [["1", "x"]])
    two = write_csv(tmp_path / "c.csv", ["id", "report"], [["2", "x"]])
    with pytest.raises(InvalidTable, match=r"no report of .* belongs to"):
        pair(one, two, tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()
    with pytest.raises(InvalidSetting, match=r"one of \.parquet, \.jsonl"):
        pair(one, one, tmp_path / "s.xlsx")


def test_a_text_that_cannot_be_written_spoils_its_own_row(tmp_path):
    references = tmp_path / "data.json"
    lists = {"references": ["Clear.", "Edema.", 7], "hypotheses": ["No edema.", "\ud800", "x"]}
    references.write_text(json.dumps(lists))
    found = pair(references, references, tmp_path / "s.jsonl")
    assert (found.pairs, found.left_out.total()) == (1, 2)
    table = tmp_path / "r.jsonl"
    rows = [{"id": 1, "report": "a", "view": "\ud800"}, {"id": 2, "report": "b", "view": "PA"}]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert pair(table, table, tmp_path / "s.csv").pairs == 1
