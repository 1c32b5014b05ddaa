"""Notes of commands: headings in references, and a table that was trained on."""

import json
from dataclasses import replace

import pytest

from tests.doubles import HashEncoder
from tests.evaluation.alignment.samples import rated
from tests.evaluation.samples import BATCH, compare, make_table
from vlscore.data import Study, TextPolicy, open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.encoders.cards import read_facts
from vlscore.errors import InvalidSetting
from vlscore.evaluation import (
    align,
    calibrate,
    evaluate,
    retrieval,
)
from vlscore.metrics import Scorer

WITH = "INDICATION: Cough. FINDINGS: Clear lungs. IMPRESSION: Normal."
# "CHEST:" is a title of findings; "Level 3:" is none.
REFERENCES = [WITH, "Clear lungs.", "findings: Edema.", "CHEST: Clear.", "Level 3: clear."]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "sec.jsonl"
    rows = [{"id": k, "reference": r, "candidate": "Clear."} for k, r in enumerate(REFERENCES)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def _about_headings(notes):
    return [note for note in notes if "headings" in note]


def test_references_with_headings_that_are_scored_whole_are_counted_in_one_note(table, tmp_path):
    result = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"))
    (note,) = _about_headings(result.notes)
    assert note.startswith("3 of 5 references have headings")
    assert "--section reference=findings" in note
    again = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"))
    assert _about_headings(again.notes) == [note]
    (same,) = _about_headings(compare([table], tmp_path / "c", Scorer(metrics="bleu-1")).notes)
    assert same == note


def test_an_impression_is_not_scored_against_findings_without_a_note(tmp_path):
    both = "FINDINGS: Clear lungs. No effusion. IMPRESSION: Normal chest."
    candidates = {
        "both": "### Findings\nClear lungs.\n### Impression\nNormal chest.",
        "impression alone": "**Impression:** Normal chest.",
        "no titles": "Clear lungs. No effusion.",
        "empty": "",
    }
    path = tmp_path / "auto.jsonl"
    rows = [{"id": k, "reference": both, "candidate": c} for k, c in candidates.items()]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for section, count in (("auto", 1), ("reference=findings,candidate=all", 0)):
        scorer = Scorer(metrics="bleu-1", text_policy=TextPolicy.named(section))
        for result in (
            evaluate(path, tmp_path / f"e{count}", scorer),
            compare([path], tmp_path / f"c{count}", scorer),
        ):
            notes = [note for note in result.notes if "scored against the findings" in note]
            assert [note.split()[0] for note in notes] == ["1"] * count


ODD = [
    ("Clear lungs.", "nan"),
    ("XXXX", "Clear lungs."),
    ("None", ""),
    ("XXXX XXXX in comparison.", "['Edema.']"),
    ("Heart size normal.", "Heart size normal."),
]


def test_reports_that_stand_for_a_missing_text_or_state_nothing_are_counted(tmp_path):
    path = tmp_path / "odd.jsonl"
    rows = [{"id": k, "reference": r, "candidate": c} for k, (r, c) in enumerate(ODD)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    like = 'that say "nan", "None", "[\'...\']" or the like'
    counted = f"empty candidates, scored as they are: 1; candidates {like}: 2; references {like}: 1"
    judged, words = Scorer(metrics="rouge-l,judge"), Scorer(metrics="rouge-l")
    for scorer, k in ((judged, 1), (words, 0)):
        notes = evaluate(path, tmp_path / f"e{k}", scorer).notes
        assert counted in notes
        compared = compare([f"a={path}", path], tmp_path / f"c{k}", scorer).notes
        assert f"candidates {like}: a 2, odd 2" in compared
        assert f"references {like}: 1" in compared
        for found in (notes, compared):
            # "None" is counted already, and says nothing either.
            silent = [note for note in found if note.startswith("references that state nothing: 3")]
            assert len(silent) == k


def test_groups_that_were_asked_for_are_the_second_table(tmp_path):
    rows = [
        {"id": k, "reference": "Edema.", "candidate": "Edema.", "sex": "fm"[k % 2]}
        for k in range(4)
    ]
    path = tmp_path / "groups.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run = evaluate(path, tmp_path / "out", Scorer(metrics="rouge-l,bleu-1"), by=["sex"])
    assert [table.title for table in run.tables][:3] == ["Means", "rouge-l by sex", "bleu-1 by sex"]


def test_a_column_of_many_different_values_has_no_groups(tmp_path):
    rows = [{"id": k, "reference": "Edema.", "candidate": "Edema.", "age": k} for k in range(51)]
    path = tmp_path / "ages.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for run in (evaluate, lambda table, *given, **by: compare([table], *given, **by)):
        with pytest.raises(InvalidSetting, match="the column age has 51 different values"):
            run(path, tmp_path / "out", Scorer(metrics="rouge-l"), by=["age"])


def _trained_on(sha256):
    encoder = HashEncoder()
    encoder.card = replace(encoder.card, trained_on=sha256)
    return encoder


def test_a_table_that_the_encoder_was_trained_on_is_named(tmp_path):
    table, _ = make_table(tmp_path, 5)
    digest = open_studies(table).sha256
    for sha256, told in ((digest, True), ("0" * 64, False), (None, False)):
        scorer = Scorer(_trained_on(sha256), metrics="vlscore", batch_size=BATCH)
        notes = evaluate(table, tmp_path / f"out-{sha256}", scorer).notes
        assert any("trained on this very table" in note for note in notes) is told
        found = calibrate(StudyEmbedder(_trained_on(sha256)), table)
        assert any("trained on this very table" in note for note in found.notes) is told


class TwoViews(HashEncoder):
    has_lateral_tower = True

    def embed_lateral_images(self, pixels):
        return self.embed_images(pixels)


@pytest.mark.parametrize(("views", "count"), [("first-frontal", 1), ("frontal+lateral", 0)])
def test_an_encoder_of_both_views_that_reads_frontal_images_alone_is_named(tmp_path, views, count):
    table, _ = make_table(tmp_path, 5)

    def about_views(notes):
        return sum("has a tower for lateral views" in note for note in notes)

    scorer = Scorer(TwoViews(), metrics="vlscore", views=views, batch_size=BATCH)
    embedder = StudyEmbedder(TwoViews(), views=views)
    assert about_views(evaluate(table, tmp_path / "out", scorer).notes) == count
    assert about_views(evaluate(table, tmp_path / "out", scorer).notes) == count
    assert about_views(compare([table], tmp_path / "c", scorer, resamples=10).notes) == count
    assert about_views(calibrate(embedder, table).notes) == count
    assert about_views(retrieval(table, tmp_path / "r", embedder).notes) == count
    of_texts = Scorer(TwoViews(), metrics="bleu-1", views=views)
    assert not about_views(evaluate(table, tmp_path / "texts", of_texts).notes)


@pytest.mark.parametrize(("views", "count"), [("first-frontal", 1), ("frontal+lateral", 0)])
def test_a_constant_that_was_measured_with_other_views_is_named(tmp_path, views, count):
    table, rows = make_table(tmp_path, 5)
    encoder = TwoViews()
    encoder.card = replace(encoder.card, C_views="frontal+lateral")

    def about_the_constant(notes):
        return sum("was measured with views=frontal+lateral" in note for note in notes)

    scorer = Scorer(encoder, metrics="vlscore", views=views, batch_size=BATCH)
    assert about_the_constant(evaluate(table, tmp_path / "out", scorer).notes) == count
    assert about_the_constant(compare([table], tmp_path / "c", scorer, resamples=10).notes) == count
    texts = {
        "references": tuple(row["reference"] for row in rows),
        "texts": tuple(row["candidate"] for row in rows),
        "images": tuple(Study(row["id"], (tmp_path / row["image"],)) for row in rows),
    }
    pairs = rated({"total errors": [[0, 1, 2, 3, 4]]}, **texts)
    assert about_the_constant(align(pairs, tmp_path / "a", scorer=scorer).notes) == count
    own = Scorer(encoder, metrics="vlscore", views=views, C=3.0, batch_size=BATCH)
    assert not about_the_constant(evaluate(table, tmp_path / "own", own).notes)
    without = Scorer(encoder, metrics="cosine,height", views=views, batch_size=BATCH)
    assert not about_the_constant(evaluate(table, tmp_path / "without", without).notes)


def test_a_card_states_the_views_that_its_constant_was_measured_with(tmp_path):
    path = tmp_path / "card.json"
    measured = {"C": 2.0, "signature": "areas|enc:small|views:frontal+lateral|prec:fp32"}
    assert read_facts({"C": 2.0, "calibration": measured}, path)["C_views"] == "frontal+lateral"
    # This C was not measured, or nothing is known of it.
    for facts in ({"C": 3.0, "calibration": measured}, {"C": 2.0, "calibration": {"C": 2.0}}):
        assert "C_views" not in read_facts(facts, path)


def test_a_card_states_the_table_that_its_training_names(tmp_path):
    facts = {"training": {"table_sha256": "ab" * 32, "pairs": 3}}
    assert read_facts(facts, tmp_path / "card.json") == {"trained_on": "ab" * 32}
    for other in ({}, {"training": None}, {"training": {"table_sha256": 3}}):
        assert read_facts(other, tmp_path / "card.json") == {}
