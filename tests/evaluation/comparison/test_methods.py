"""The paragraph of a methods section, its citations, and figures of finished folders."""

import json
import re
import shutil

import pytest

from tests.evaluation.samples import compare
from tests.metrics.own import length_ratio
from vlscore.encoders import ENCODERS
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.evaluation import TableSettings, draw, evaluate, methods
from vlscore.evaluation.methods_text import _entries
from vlscore.metrics import METRICS, Scorer

ROWS = [
    {"id": f"s{k}", "reference": f"There is a nodule of {k} mm.", "candidate": f"A nodule of {k}."}
    for k in range(6)
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("methods")
    tables = []
    for name, more in (("ours", ""), ("theirs", " Clear.")):
        rows = [{**row, "candidate": row["candidate"] + more} for row in ROWS]
        tables.append(place / f"{name}.jsonl")
        tables[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    scorer = Scorer(metrics="bleu-4,rouge-l")
    compare(tables, place / "compared", scorer, resamples=50, permutations=99)
    evaluate(tables[0], place / "scored", scorer)
    return place


def test_the_paragraph_of_a_comparison_names_what_was_done(folders):
    found = methods(folders / "compared")
    for said in (
        "compared 2 systems (ours, theirs) on the same 6 studies",
        "BLEU-4 [@papineni2002bleu; @post2018sacrebleu] (by sacrebleu ",
        "of the whole corpus",
        "ROUGE-L [@lin2004rouge] (by rouge-score ",
        "(50 resamples)",
        "(99 permutations)",
        "over 2 tests of the metrics above",
    ):
        assert said in found.markdown
    assert r"\cite{papineni2002bleu,post2018sacrebleu}" in found.latex
    assert r"95 \% percentile" in found.latex
    cited = set(re.findall(r"@([a-z]+\d{4}[a-z]+)", found.markdown))
    written = set(re.findall(r"^@\w+\{([^,]+),", found.bibtex, re.MULTILINE))
    assert cited == written
    assert "keywords" not in found.bibtex
    folder = folders / "compared"
    assert (folder / "methods.md").read_text(encoding="utf-8") == found.markdown
    assert (folder / "references.bib").read_text(encoding="utf-8") == found.bibtex


def test_a_metric_of_ones_own_is_named_as_one(folders, tmp_path):
    for number, name in enumerate(("tests.metrics.own:length_ratio", length_ratio)):
        run = evaluate(folders / "ours.jsonl", tmp_path / str(number), Scorer(metrics=name))
        found = methods(run.folder)
        assert "length-ratio (own metric, version 7)" in " ".join(found.text.split())
        assert found.text.isprintable() or found.text.isascii()


def test_rules_of_our_own_are_not_credited_to_others(folders, tmp_path):
    """The judge is no FineRadScore, which is a language model; nor do its rules come with BLEU."""
    scorer = Scorer(metrics="judge,findings-f1,bleu-4")
    run = evaluate(folders / "ours.jsonl", tmp_path / "scored", scorer)
    found = methods(run.folder).markdown
    assert "Judge (by rules of vlscore, after [@huang2024fineradscore; @yu2023evaluating])" in found
    assert "Findings F1 (mean) (by rules of vlscore, after [@irvin2019chexpert])" in found
    assert "BLEU-4 (mean) [@papineni2002bleu; @post2018sacrebleu] (by sacrebleu " in found


def test_baselines_are_not_said_to_be_tested_against_each_other(folders, tmp_path):
    tables = [folders / "ours.jsonl", folders / "theirs.jsonl"]
    scorer = Scorer(metrics="rouge-l")
    run = compare(tables, tmp_path / "c", scorer, baselines=True, resamples=20, permutations=99)
    tests = run.frame("differences")
    # Of two systems and three baselines: 10 pairs, of which 3 are two baselines.
    assert len(tests) == 7
    found = methods(run.folder).markdown
    assert "Differences between every two systems, but not between two baselines, were" in found
    assert "over 7 tests of the metrics above" in found
    assert "between every two systems were tested" in methods(folders / "compared").markdown


def test_the_paragraph_of_an_evaluation(folders):
    found = methods(folders / "scored").markdown
    assert "scored 6 studies" in found
    assert "(2,000 resamples)" in found
    with pytest.raises(InvalidSetting, match=r"no run\.json"):
        methods(folders)


def test_every_metric_and_encoder_that_names_a_publication_has_an_entry():
    names = {name for _, names in _entries().values() for name in names}
    published = {n for n, m in METRICS.items() if not m.citation.startswith("none")}
    assert published <= names
    without = {"phantom", "phantom-judging", "small"}
    assert set(ENCODERS) - without <= names


def test_figures_of_a_finished_folder(folders):
    pytest.importorskip("matplotlib")
    before = {p.name: p.read_bytes() for p in (folders / "compared").iterdir() if p.is_file()}
    drawn = draw(folders / "compared", "svg")
    assert [path.name for path in drawn] == [
        f"{name}.svg" for name in ("systems", "differences", "studies")
    ]
    assert all(b"<svg" in path.read_bytes() for path in drawn)
    assert before == {name: (folders / "compared" / name).read_bytes() for name in before}
    assert [path.name for path in draw(folders / "scored", "svg")] == ["distributions.svg"]
    with pytest.raises(InvalidSetting, match=r"has no run\.json: name the folder"):
        draw(folders, "svg")


def test_names_of_others_run_nothing_where_the_paragraph_is_pasted(folders, tmp_path):
    evil = r"\input{/etc/passwd}<b>[a](javascript:1) [@web2020x]^$x$"
    compare(
        [f"{evil}={folders / 'ours.jsonl'}", folders / "theirs.jsonl"],
        tmp_path / "out",
        Scorer(metrics="rouge-l"),
        resamples=50,
        permutations=99,
    )
    found = methods(tmp_path / "out")
    assert r"\input{" not in found.latex
    assert r"\textbackslash{}input\{/etc/passwd\}" in found.latex
    assert "web2020x}" not in found.latex.replace(r"[@web2020x]", "")
    assert not re.search(r"(?<!\\)<b>|(?<!\\)\]\(|(?<!\\)\[@web", found.markdown)
    assert "web2020x" not in found.bibtex


def test_the_paragraph_is_not_made_of_results_that_were_changed(folders, tmp_path):
    shutil.copytree(folders / "compared", tmp_path / "copy")
    path = tmp_path / "copy" / "result.json"
    path.write_text(path.read_text().replace("sacrebleu:", "sacrebleu:9"))
    with pytest.raises(ChecksumMismatch, match=r"result\.json has been changed"):
        methods(tmp_path / "copy")


def test_the_paragraph_says_what_baselines_are_and_counts_empty_candidates(tmp_path):
    rows = [{**row, "candidate": "" if k == 2 else row["candidate"]} for k, row in enumerate(ROWS)]
    table = tmp_path / "ours.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    compare([table], tmp_path / "out", Scorer(metrics="rouge-l"), baselines=True, resamples=50)
    found = methods(tmp_path / "out").markdown
    assert "baseline:normal is the most frequent normal sentences of the references" in found
    assert "Empty candidates were scored as empty reports: 1 of ours." in found


def test_the_paragraph_is_on_the_numbers_of_the_table(folders, tmp_path):
    tables, drawn = [folders / "ours.jsonl", folders / "theirs.jsonl"], {"resamples": 20}
    scorer, chosen = Scorer(metrics="bleu-4,rouge-l"), TableSettings(columns=("rouge-l",))
    compare(tables, tmp_path, scorer, permutations=99, table=chosen, **drawn)
    found = (tmp_path / "methods.md").read_text(encoding="utf-8")
    assert "over 1 test of the metrics above" in found
    assert "BLEU-4" not in found
    assert "over 1 test of this table" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_the_paragraph_names_missing_values_groups_and_patients(tmp_path):
    rows = [{**row, "sex": "fm"[k % 2], "who": k // 2} for k, row in enumerate(ROWS)]
    rows[1]["candidate"] = rows[2]["reference"] = ""
    table, values = tmp_path / "ours.jsonl", tmp_path / "values.csv"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    values.write_text("system,id,green\nours,s0,1\nours,s1,0\n", encoding="utf-8")
    scorer, drawn = Scorer(metrics="rouge-l"), {"resamples": 20, "permutations": 99}
    evaluate(table, tmp_path / "scored", scorer, by=["sex"], patient="who")
    found = methods(tmp_path / "scored").markdown
    assert "We scored 6 studies " in found
    assert "Empty candidates were scored as empty reports: 1." in found
    assert "over the studies for which the metric has a value (n = 5)" in found
    assert "bootstrap intervals over patients" in found
    assert "for the studies of each value of sex." in found
    both = [table, f"again={table}"]
    compare(both, tmp_path / "c", scorer, by=("sex",), patient_column="who", values=values, **drawn)
    found = methods(tmp_path / "c").markdown
    assert "over the studies for which every system has a value (n = 2 to 5)" in found
    assert "(99 permutations of whole patients)" in found
    assert "within the studies of each value of sex; p values were adjusted over" in found
