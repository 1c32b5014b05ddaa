"""Blinded sheets: what metrics chose, judged by raters, and read back."""

import pyarrow.parquet as pq
import pytest

from tests.doubles import HashEncoder
from tests.evaluation.alignment.samples import write_csv
from tests.evaluation.ratings.samples import make_sheets, read_rows
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import compare_errors, read_ratings
from vlscore.evaluation.ratings.questions import COUNTS
from vlscore.retrieval import HITS, OracleSettings, index_build, oracle

FINDINGS = ("edema", "effusion", "nodule", "pneumothorax")
STUDIES = [
    {
        "id": f"study{k:02}",
        "report": f"FINDINGS: There is {FINDINGS[k % 4]} of grade {k}, on side {k % 2}. "
        f"IMPRESSION: {FINDINGS[k % 4]}.",
    }
    for k in range(8)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of three oracles over the findings of eight studies."""
    folder = tmp_path_factory.mktemp("oracles")
    table = write_csv(folder / "studies.csv", [{**s, "reference": s["report"]} for s in STUDIES])
    embedder = StudyEmbedder(HashEncoder(), device="cpu", cache=False)
    index = index_build(table, folder / "index", embedder, text_policy="findings")
    for metric in ("bleu-1", "rouge-l", "chrf"):
        wanted = OracleSettings(metric=metric, k=1, candidates=0, exclude_exact=True)
        oracle(table, folder / metric, index, None, wanted, text_policy="findings")
    wanted = OracleSettings(metric="bleu-1", k=1, candidates=0)
    oracle(table, folder / "copies", index, None, wanted, text_policy="findings")
    return folder


def _fill(path, count):
    """Write count(row, column) into every cell of a sheet."""
    rows = read_rows(path)
    for row in rows:
        row |= {column: count(row, column) for column in COUNTS}
    write_csv(path, rows)


def _oracles(made):
    return [made / "bleu-1", made / "rouge-l", f"third={made / 'chrf'}"]


def _counted(row, column):
    return (len(row["candidate"]) * 7 + len(column)) % 3


def test_what_raters_count_comes_back_under_the_metric_that_chose(made, tmp_path):
    sheets = make_sheets(_oracles(made), tmp_path / "s", raters=["ann", "bob"], seed=3)
    assert sheets.record["studies"] == len(STUDIES)
    for rater in ("ann", "bob"):
        path = sheets.folder / f"sheet-{rater}.csv"
        _fill(path, lambda row, column, rater=rater: _counted(row, column) + (rater == "bob"))
    pairs = read_ratings(tmp_path / "s")
    assert pairs.raters == ("ann", "bob")
    assert set(pairs.candidates) == {"bleu-1", "rouge-l", "third"}
    chosen = {}
    for name, folder in (("bleu-1", "bleu-1"), ("rouge-l", "rouge-l"), ("third", "chrf")):
        for hit in pq.read_table(made / folder / HITS).to_pylist():
            chosen[hit["study_id"], name] = hit["text"]
    ids = list(zip(pairs.studies, pairs.candidates, strict=True))
    assert dict(zip(ids, pairs.texts, strict=True)) == chosen
    references = {s["id"]: s["report"].split(" IMP")[0].removeprefix("FINDINGS: ") for s in STUDIES}
    assert pairs.references == tuple(references[study] for study in pairs.studies)
    assert len(pairs.counts) == len(COUNTS)
    for column, key in COUNTS.items():
        expected = [_counted({"candidate": text}, column) for text in pairs.texts]
        assert pairs.counts[key][0].tolist() == expected
        assert pairs.counts[key][1].tolist() == [count + 1 for count in expected]
    means = compare_errors(pairs, resamples=10)["means"].to_dict("records")
    assert {each["candidate"] for each in means} == {"bleu-1", "rouge-l", "third"}


def test_sheets_do_not_tell_and_have_orders_of_their_own(made, tmp_path):
    sheets = make_sheets(_oracles(made), tmp_path / "a", raters=["ann", "bob"])
    key = read_rows(tmp_path / "a" / "key.csv")
    orders = []
    for path in sorted(sheets.folder.glob("sheet-*.csv")):
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("study0", "bleu", "rouge", "third", "chrf"))
        orders.append([row["item"] for row in read_rows(path)])
        assert sorted(orders[-1]) == sorted({row["item"] for row in key})
    assert orders[0] != orders[1]
    # Items in the order of their names are in no order of studies.
    studies = list(dict.fromkeys(row["study_id"] for row in key))
    assert studies != sorted(studies)
    again = make_sheets(_oracles(made), tmp_path / "b", raters=["ann", "bob"])
    other = make_sheets(_oracles(made), tmp_path / "c", raters=["ann", "bob"], seed=1)
    for path in sheets.folder.glob("sheet-*.csv"):
        assert (again.folder / path.name).read_bytes() == path.read_bytes()
        assert (other.folder / path.name).read_bytes() != path.read_bytes()


def test_a_report_that_several_metrics_chose_is_judged_once(made, tmp_path):
    pair = [f"one={made / 'bleu-1'}", f"two={made / 'bleu-1'}"]
    sheets = make_sheets(pair, tmp_path / "s", sample=3)
    assert (sheets.record["items"], sheets.record["studies"]) == (3, 3)
    assert len(read_rows(sheets.folder / "sheet-rater-1.csv")) == 3
    assert len(read_rows(tmp_path / "s" / "key.csv")) == 6


def test_filled_sheets_are_never_written_over(made, tmp_path):
    first = make_sheets(_oracles(made), tmp_path / "s")
    path = first.folder / "sheet-rater-1.csv"
    _fill(path, _counted)
    filled = path.read_bytes()
    again = make_sheets(_oracles(made), tmp_path / "s")
    assert again.unchanged
    with pytest.raises(InvalidSetting, match=r"may be filled in \(what differs: seed\)"):
        make_sheets(_oracles(made), tmp_path / "s", seed=1)
    assert path.read_bytes() == filled


def test_a_key_that_names_other_systems_is_refused(made, tmp_path):
    sheets = make_sheets(_oracles(made), tmp_path / "s", raters=["ann"]).folder
    key = sheets / "key.csv"
    lines = key.read_text().splitlines(keepends=True)
    key.write_text(lines[0] + "".join(line.replace("bleu-1", "other") for line in lines[1:]))
    with pytest.raises(InvalidTable, match=r"key\.csv has been changed since the sheets were made"):
        read_ratings(sheets)


def test_what_cannot_be_judged_side_by_side_is_refused(made, tmp_path):
    out = tmp_path / "s"
    with pytest.raises(InvalidSetting, match="differ in what was excluded"):
        make_sheets([made / "bleu-1", f"b={made / 'copies'}"], out)
    with pytest.raises(InvalidSetting, match="two oracles would be called bleu-1"):
        make_sheets([made / "bleu-1", made / "bleu-1"], out)
    with pytest.raises(InvalidTable, match="folder without run"):
        make_sheets([made], out)
    with pytest.raises(InvalidSetting, match="name of a file"):
        make_sheets([made / "bleu-1"], out, raters=["../ann"])
    with pytest.raises(InvalidSetting, match="1 to 60 letters"):
        make_sheets([made / "bleu-1"], out, raters=["a" * 300])
    with pytest.raises(InvalidSetting, match="different names"):
        make_sheets([made / "bleu-1"], out, raters=["ann", "ann"])
    other = write_csv(tmp_path / "other.csv", [{"id": "a", "reference": "FINDINGS: None."}])
    with pytest.raises(InvalidTable, match="is not the table"):
        make_sheets([made / "bleu-1"], out, studies=other)
    assert not list(out.glob("[!.]*"))
    make_sheets([made / "bleu-1"], out)
    with pytest.raises(InvalidTable, match="no rating could be read"):
        read_ratings(out)
    (out / "sheet-rater-1.csv").unlink()
    with pytest.raises(InvalidTable, match="no sheet"):
        read_ratings(out)
