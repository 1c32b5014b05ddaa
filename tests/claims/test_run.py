"""`vlscore claims` on phantoms: their pixels show the findings that their reports state.

Phantoms show no change over time, so claims of change are not among these tests.
"""

import json

import numpy as np
import pytest
import torch
from scipy.stats import mannwhitneyu

from tests.doubles import HashEncoder
from tests.pages.conftest import payload_of
from vlscore.claims import CANNOT_TELL, CONTRADICTED, SUPPORTED, read_evidence
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import EncoderCard, ImagePipeline
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import EvidenceSettings, claims, evaluate, judge, read_claim_labels
from vlscore.metrics import Scorer
from vlscore.pages import report

FALSE_HEART = ("cardiomegaly", "false_finding")
SENTENCES = {"cardiomegaly": "cardiomegaly", "pneumothorax": "pneumothorax"}


class Eyes(ImagePipeline):
    """The two numbers that the tests write into an image."""

    cache_version = "1"

    def __call__(self, radiograph):
        return torch.from_numpy(radiograph.pixels[:1, :2].copy())[None]


class SeeingEncoder(HashEncoder):
    """Its vector of an image is what the image shows; words say nothing."""

    image_pipeline = Eyes()
    checksum = "5" * 64
    card = EncoderCard(**{**vars(HashEncoder.card), "dim": 8})

    def embed_images(self, pixels):
        return torch.nn.functional.pad(self.scale * pixels.flatten(1), (0, 6))


def write(folder, seed, count, candidates=False):
    """Write a table of studies whose images show cardiomegaly well and pneumothorax not at all."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        there = rng.random(2) < 0.4
        level = np.clip(rng.normal(0.3 + 0.4 * there[0], 0.07), 0, 1)
        pixels = np.zeros((4, 4), np.uint8)
        pixels[0, :2] = [255 * level, rng.integers(0, 255)]
        Image.fromarray(pixels).save(folder / f"{seed}-{k}.png")
        report = ". ".join(
            f"There is {name}" if each else f"No {name}"
            for name, each in zip(SENTENCES, there, strict=True)
        )
        row = {"id": f"{seed}-{k}", "image": f"{seed}-{k}.png", "reference": f"{report}."}
        row["patient"] = f"{seed}-{k // 2}"
        if candidates:
            row["candidate"] = "There is cardiomegaly. There is pneumothorax. Rib fracture."
        rows.append(row)
    table = folder / f"{seed}.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return table, rows


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    return write(folder, 1, 240), write(folder, 2, 60, candidates=True)


@pytest.fixture(scope="module")
def result(tables, tmp_path_factory):
    (fit, _), (studies, _) = tables
    out = tmp_path_factory.mktemp("out") / "claims"
    settings = EvidenceSettings(group_column="patient")
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    return claims(studies, out, embedder, fit=fit, rate=0.1, settings=settings)


def test_the_image_judges_every_claim(tables, result):
    rows = result.rows("claims.csv")
    truth = {row["id"]: "There is cardiomegaly" in row["reference"] for row in tables[1][1]}
    heart = rows[(rows.finding == "cardiomegaly") & (rows.report == "candidate")]
    assert len(heart) == 60
    told = heart[heart.verdict != CANNOT_TELL]
    assert len(told) > 40
    wrong = (told.verdict == SUPPORTED) != told["id"].map(truth)
    assert wrong.mean() <= 0.1
    # The images do not show it, and no study to fit has it.
    other = rows[rows.finding.isin(["pneumothorax", "fracture"])]
    assert set(other.verdict) == {CANNOT_TELL}
    assert not rows.has_evidence[rows.finding == "fracture"].any()


def test_studies_that_evidence_is_fitted_to_are_counted(tables, result, tmp_path):
    (fit, rows), (studies, _) = tables
    assert not any("an id that" in note for note in result.notes)
    some = tmp_path / "some.jsonl"
    images = [{**row, "image": str(fit.parent / row["image"])} for row in rows[:7]]
    some.write_text("".join(json.dumps(row) + "\n" for row in images))
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    found = claims(some, tmp_path / "out", embedder, fit=fit, calibrate=studies)
    (note,) = [note for note in found.notes if "an id that" in note]
    assert note.startswith(f"7 studies have an id that {fit} has as well: ")


def test_the_findings_are_described(result):
    findings = result.frame("findings").set_index("finding")
    assert findings.loc["cardiomegaly", "AUC"] > 0.95
    assert 0.3 < findings.loc["pneumothorax", "AUC"] < 0.7
    assert findings.loc["fracture", "with"] == 0
    # One image of each of the 60 patients that calibrate.
    assert findings.loc["cardiomegaly", ["with", "without"]].sum() == 60
    assert any("no promise for another hospital" in note for note in result.notes)


def test_the_totals_are_the_families_with_the_expected_share_wrong(result):
    """Counted again from claims.csv: each total is of one report role and one polarity."""
    rows = result.rows("claims.csv")
    totals = result.frame("verdicts").set_index(["report", "claims"])
    assert set(totals.index) == {
        ("candidate", "stated"),
        ("reference", "stated"),
        ("reference", "denied"),
    }
    assert totals.loc[("candidate", "stated"), "number"] == 180
    for (role, kind), total in totals.iterrows():
        own = rows[(rows.report == role) & (rows.claim == kind)]
        assert total["number"] == len(own)
        assert total["no evidence"] == (~own.has_evidence).sum()
        for verdict, sign in ((SUPPORTED, -1), (CONTRADICTED, 1)):
            decided = own[own.verdict == verdict]
            assert total[verdict] == len(decided)
            if not len(decided):
                continue
            assert (sign * (decided.probability - 0.5) < 0).all()
            wrong = decided.probability if verdict == CONTRADICTED else 1 - decided.probability
            assert total[f"{verdict}, wrong"] == pytest.approx(wrong.mean(), rel=1e-5)
            assert wrong.mean() <= 0.1
    assert totals[SUPPORTED].sum() > 20
    assert totals[CONTRADICTED].sum() > 20


def test_a_finding_at_chance_gets_no_verdict(result):
    """Images do not show pneumothorax: its interval includes .5, as a rank-sum test finds."""
    rows, evidence = result.rows("claims.csv"), read_evidence(result.folder / "evidence.npz")
    finding = result.frame("findings").set_index("finding").loc["pneumothorax"]
    assert finding["AUC.low"] < 0.5 < finding["AUC.high"]
    calibration = evidence.calibration(evidence.column["pneumothorax"])
    assert mannwhitneyu(*calibration).pvalue > 0.05
    own = rows[rows.finding == "pneumothorax"]
    assert set(own.verdict) == {CANNOT_TELL}
    assert own.has_evidence.all()


def test_the_judge_hears_the_image(tables, result, tmp_path):
    """A candidate that always states cardiomegaly is wrong, by the image and the reference."""
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    evidence = result.folder / "evidence.npz"
    judged = judge(tables[1][0], tmp_path / "j", evidence=evidence, embedder=embedder)
    rows = judged.rows("judgements.jsonl").to_dict("records")
    errors = [(row, error) for row in rows for error in row["errors"]]
    false = [e for _, e in errors if (e["finding"], e["category"]) == FALSE_HEART]
    assert len(false) > 20
    assert np.mean([e["supports"] == "reference" for e in false]) > 0.7
    assert np.mean([e["reference_is_right"] > 0.5 for e in false]) > 0.7
    unseen = {e["supports"] for _, e in errors if "fracture" in e["finding"]}
    assert unseen == {"cannot tell"}
    table = judged.frame("image").set_index("category")
    assert table.loc["false_finding"].sum() == sum(
        e["category"] == "false_finding" for _, e in errors
    )
    # The same numbers as the metric's.
    metric = f"judge-image(evidence={evidence})"
    scored = evaluate(tables[1][0], tmp_path / "e", Scorer(embedder, metrics=metric))
    values = scored.rows("scores.parquet").set_index("id")
    totals = judged.rows("totals.csv").set_index("study_id")
    assert np.allclose(totals["rating_with_image"], values.loc[totals.index, metric])
    without = judge(tables[1][0], tmp_path / "w").rows("totals.csv").set_index("study_id")
    assert without["rating"].equals(totals["rating"])
    with pytest.raises(InvalidSetting, match="was fitted to embeddings of"):
        judge(tables[1][0], tmp_path / "o", evidence=evidence, embedder=StudyEmbedder())


def test_evidence_is_used_again_by_the_same_encoder_alone(tables, result, tmp_path):
    studies, evidence = tables[1][0], result.folder / "evidence.npz"
    again = claims(
        studies, tmp_path / "a", StudyEmbedder(SeeingEncoder(), cache=False), evidence=evidence
    )
    first, second = (each.rows("claims.csv") for each in (result, again))
    assert first.equals(second)
    with pytest.raises(InvalidSetting, match="was fitted to embeddings of"):
        claims(studies, tmp_path / "b", StudyEmbedder(HashEncoder()), evidence=evidence)
    with pytest.raises(InvalidSetting, match="give a table to fit on"):
        claims(studies, tmp_path / "c", StudyEmbedder(HashEncoder()))


def test_labels_of_a_table_replace_reports(tables, tmp_path):
    (fit, rows), (studies, _) = tables
    labels = tmp_path / "labels.csv"
    lines = ["id,Cardiomegaly,Pneumothorax"]
    lines += [f"{r['id']},{int('is cardio' in r['reference'])}," for r in rows]
    labels.write_text("\n".join(lines) + "\n")
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    result = claims(studies, tmp_path / "out", embedder, fit=fit, labels=[labels])
    found = read_evidence(result.folder / "evidence.npz")
    # Nobody is said to have a pneumothorax: an empty cell is absent, as in a report.
    assert found.findings == ("cardiomegaly",)
    assert not any("--labels" in note for note in result.notes)


def test_uncertain_labels_are_unknown_and_empty_ones_absent(tmp_path):
    """As CheXpert's labeller writes them: 1, 0, -1 uncertain, empty where nothing is said."""
    path = tmp_path / "labels.csv"
    path.write_text("study_id,Pneumonia,Edema,Lung Opacity\na,1,,0\nb,-1,-1.0,\nc,,0,1.0\n")
    absent = {
        "a": {"pneumonia": 1, "edema": 0, "lung opacity": 0},
        "b": {"pneumonia": None, "edema": None, "lung opacity": 0},
        "c": {"pneumonia": 0, "edema": 0, "lung opacity": 1},
    }
    assert read_claim_labels(path) == absent
    unknown = read_claim_labels(path, blank="unknown")
    assert unknown["a"] == {"pneumonia": 1, "edema": None, "lung opacity": 0}
    assert unknown["b"] == dict.fromkeys(absent["b"])
    assert unknown["c"] == {"pneumonia": None, "edema": 0, "lung opacity": 1}


def test_uncertain_labels_change_no_probability(tables, tmp_path):
    """Evidence of a table with -1 is that of the table without these studies' labels."""
    (fit, rows), (studies, _) = tables
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    found = {}
    for name, unknown in (("uncertain", "-1"), ("empty", "")):
        cells = [
            unknown if k % 5 == 0 else str(int("is cardio" in row["reference"]))
            for k, row in enumerate(rows)
        ]
        labels = tmp_path / f"{name}.csv"
        lines = [f"{row['id']},{cell}" for row, cell in zip(rows, cells, strict=True)]
        labels.write_text("id,Cardiomegaly\n" + "\n".join(lines) + "\n")
        settings = EvidenceSettings(blank_labels="unknown")
        out = tmp_path / name
        result = claims(studies, out, embedder, fit=fit, labels=[labels], settings=settings)
        found[name] = read_evidence(result.folder / "evidence.npz")
        assert set(np.unique(found[name].truth[~np.isnan(found[name].truth)])) == {0, 1}
    for name in ("truth", "scores", "fitted"):
        own, other = (getattr(each, name) for each in found.values())
        assert np.allclose(own, other, equal_nan=True)


def test_labels_of_other_studies_are_refused_and_of_a_part_noted(tables, tmp_path):
    (fit, rows), (studies, _) = tables
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,Cardiomegaly\n../../x,1\n")
    with pytest.raises(
        InvalidTable, match=r"names no study of .*1\.jsonl: its ids are like '../../x'"
    ):
        claims(studies, tmp_path / "a", embedder, fit=fit, labels=[labels])
    part = [f"{r['id']},{int('is cardio' in r['reference'])}" for r in rows[:100]]
    labels.write_text("id,Cardiomegaly\n" + "\n".join(part) + "\n")
    result = claims(studies, tmp_path / "b", embedder, fit=fit, labels=[labels])
    assert any("100 of 240 studies have labels in --labels" in note for note in result.notes)
    # One table of several may be of the studies that calibrate; one of neither is refused.
    other = tmp_path / "other.csv"
    other.write_text("id,Cardiomegaly\n9-9,1\n")
    with pytest.raises(InvalidTable, match=r"other\.csv: names no study"):
        claims(studies, tmp_path / "c", embedder, fit=fit, labels=[labels, other])


def test_the_image_root_is_that_of_every_table(tables, tmp_path):
    (fit, _), (studies, _) = tables
    elsewhere = tmp_path / "tables"
    elsewhere.mkdir()
    moved = [elsewhere / path.name for path in (fit, studies)]
    for path, new in zip((fit, studies), moved, strict=True):
        new.write_bytes(path.read_bytes())
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    to_fit, judged = (open_studies(path, needs=(), image_root=fit.parent) for path in moved)
    result = claims(judged, tmp_path / "o", embedder, fit=to_fit)
    own = claims(studies, tmp_path / "p", embedder, fit=fit)
    assert result.rows("claims.csv").equals(own.rows("claims.csv"))


def test_studies_without_report_and_labels_are_left_out_and_listed(tables, tmp_path):
    (fit, rows), (studies, _) = tables
    some = fit.with_name("some.jsonl")
    bare = [row if k >= 10 else row | {"reference": ""} for k, row in enumerate(rows)]
    some.write_text("".join(json.dumps(row) + "\n" for row in bare))
    embedder = StudyEmbedder(SeeingEncoder(), cache=False)
    result = claims(studies, tmp_path / "some", embedder, fit=some)
    failed = result.rows("failures.csv")
    assert failed["id"].tolist() == [row["id"] for row in rows[:10]]
    assert set(failed["reason"]) == {"it has neither a report nor labels"}
    rest = fit.with_name("rest.jsonl")
    rest.write_text("".join(json.dumps(row) + "\n" for row in bare[10:]))
    own = claims(studies, tmp_path / "rest", embedder, fit=rest)
    assert own.rows("claims.csv").equals(result.rows("claims.csv"))


def test_nih_labels(tmp_path):
    table = tmp_path / "nih.csv"
    table.write_text("Image Index,Finding Labels\na.png,Effusion|Mass\nb.png,No Finding\n")
    found = read_claim_labels(table)
    assert {name for name, value in found["a.png"].items() if value} == {
        "pleural effusion",
        "lung lesion",
    }
    assert not any(found["b.png"].values())


def test_a_study_without_report_and_labels_is_named(tables, tmp_path):
    (_, rows), (studies, _) = tables
    bare = studies.with_name("bare.jsonl")
    bare.write_text("".join(json.dumps({"id": r["id"], "image": r["image"]}) + "\n" for r in rows))
    with pytest.raises(InvalidTable, match="no study has a report or labels, such as '1-0'"):
        claims(studies, tmp_path / "x", StudyEmbedder(SeeingEncoder(), cache=False), fit=bare)


def test_the_page_shows_the_claims_of_each_study(result, tmp_path):
    page = report(result.folder, out=tmp_path / "page.html", images=True)
    shown = payload_of(page.path)["runs"][0]["list"]
    rows = result.rows("claims.csv")
    assert shown["values"]["id"] == list(dict.fromkeys(rows["id"]))
    assert len(shown["images"]) == 60
    columns = ["report", "finding", "claim", "verdict", "probability"]
    for id, (block,) in zip(shown["values"]["id"], shown["cases"], strict=True):
        own = rows.loc[rows["id"] == id, columns].to_dict("records")
        for claim, row in zip(block["claims"], own, strict=True):
            probability = row.pop("probability")
            known = pytest.approx(probability, rel=1e-5) if probability == probability else None
            assert claim == {**row, "probability": known}
        # Verdicts are marked where the words are.
        for role, pieces in block["texts"]:
            marked = {
                (kind, piece[0])
                for piece in pieces
                if not isinstance(piece, str)
                for kind in piece[1].split()
                if kind in (SUPPORTED, CONTRADICTED)
            }
            wanted = rows[
                (rows["id"] == id) & (rows.report == role) & (rows.verdict != CANNOT_TELL)
            ]
            assert marked == set(zip(wanted.verdict, wanted.finding, strict=True))
    candidates = rows[(rows.report == "candidate") & (rows.verdict == CONTRADICTED)]
    named = candidates.groupby("id").finding.agg("; ".join)
    assert shown["values"]["contradicted claims"] == [
        named.get(id, "") for id in shown["values"]["id"]
    ]
    assert len(named) > 10
    bare = report(result.folder, out=tmp_path / "bare.html", texts=False)
    assert payload_of(bare.path)["runs"][0]["list"]["cases"] is None
