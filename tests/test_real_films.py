"""The benchmarks on real images, on phantoms in the same layout."""

import json
import os
import shutil
import sys

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import REPOSITORY
from vlscore.data import render, sample_studies
from vlscore.encoders import SmallEncoder
from vlscore.findings import extract
from vlscore.metrics import find_metric

pytestmark = pytest.mark.slow

STUDIES, TRAINED = 56, 40
# Of the Indiana collection's manual coding.
MESH = {
    "effusion": "Pleural Effusion",
    "cardiomegaly": "Cardiomegaly",
    "atelectasis": "Pulmonary Atelectasis",
    "consolidation": "Consolidation",
    "hyperinflation": "Lung/hyperdistention",
}


@pytest.fixture(scope="module")
def modules():
    """The benchmark's modules, imported as the scripts do."""
    sys.path.insert(0, str(REPOSITORY / "benchmarks"))
    try:
        import real_data
        import real_encoders
        import real_generators
        import real_imperfect
        import real_joined  # noqa: F401  imported by its name below

        yield real_data, real_imperfect, real_encoders, real_generators
    finally:
        sys.path.remove(str(REPOSITORY / "benchmarks"))


@pytest.fixture(scope="module")
def data(modules, tmp_path_factory):
    """Phantoms in the layout of docs/real.md, and their work folder."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "iu" / "images").mkdir(parents=True)
    (folder / "generated").mkdir()
    rows, generated = [], []
    for number, study in enumerate(sample_studies(7, STUDIES)):
        image = cv2.resize(render(study.scene) / 16, (64, 64), interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(folder / "iu" / "images" / f"{number}.png"), image.astype(np.uint8))
        terms = {
            MESH[f.kind] + (f"/{f.side}" if f.side in ("left", "right") else "")
            for f in study.scene.findings
            if f.kind in MESH
        }
        rows.append(
            {
                "id": f"iu-{number}",
                "images": [{"file": f"images/{number}.png", "view": "frontal", "rows": 64,
                            "columns": 64}],
                "findings": study.reference,
                "impression": "Reported.",
                "mesh": ";".join(sorted(terms)) or "normal",
                "part": "training" if number < TRAINED else "development-test",
            }
        )  # fmt: skip
        if number % 3 == 0:
            generated.append({"id": f"iu-{number}", "candidate": study.candidate})
    _write(folder / "iu" / "studies.jsonl", rows)
    _write(folder / "generated" / "one.jsonl", generated)
    other = [{**row, "candidate": "The lungs are clear."} for row in generated]
    _write(folder / "generated" / "other.jsonl", other)
    found = modules[0].RealData(folder, tmp_path_factory.mktemp("work"), 64)
    found.make_tables()
    return found


def _write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def row(id, split="validate", text="Clear.", patient=None):
    return {"id": id, "split": split, "findings": text, "impression": None, "patient": patient}


def test_equal_reports_and_patients_stay_in_one_half(modules):
    rows = [row(f"s{k}", text=f"Text {k // 2}.", patient=None) for k in range(60)]
    rows += [row(f"p{k}", text=f"Own {k}.", patient=k // 2) for k in range(60)]
    parts = modules[0].divide([*rows, row("t", "train")])
    assert [each["id"] for each in parts["train"]] == ["t"]
    halves = {each["id"]: name for name in ("choose", "report") for each in parts[name]}
    assert len(halves) == 120
    assert {name: list(halves.values()).count(name) > 30 for name in ("choose", "report")} == {
        "choose": True,
        "report": True,
    }
    for letter in "sp":
        assert all(halves[f"{letter}{k}"] == halves[f"{letter}{k + 1}"] for k in range(0, 60, 2))
    with_test = modules[0].divide([*rows, row("u", "test")])
    assert [each["id"] for each in with_test["report"]] == ["u"]
    assert with_test["choose"] == parts["choose"]


@pytest.mark.parametrize("split", ["held-out", None])
def test_a_study_of_no_known_part_is_not_left_out_unseen(modules, split):
    with pytest.raises(SystemExit, match=r'study a has the part .* write "training"'):
        modules[0].divide([row("b", "train"), row("a", split)])


def test_a_later_test_part_replaces_the_part_report_alone(modules, data, tmp_path):
    folder, work = tmp_path / "data", tmp_path / "work"
    shutil.copytree(data.data, folder)
    studies = folder / "iu" / "studies.jsonl"
    real = modules[0].RealData(folder, work, 64)
    real.make_tables()
    before = {name: real.table(name).read_bytes() for name in modules[0].PARTS}
    assert len(real.part("report").pairs) > 3
    compared = work / "generators" / "compared-five"
    compared.mkdir(parents=True)
    real.make_tables()
    assert {name: real.table(name).read_bytes() for name in before} == before
    assert compared.is_dir()

    rows = [json.loads(line) for line in studies.read_text().splitlines()]
    test = [{**rows[k], "id": f"new-{k}", "part": "test", "mesh": None} for k in range(3)]
    _write(studies, rows + test)
    real.make_tables()
    for name in ("train", "choose"):
        assert real.table(name).read_bytes() == before[name]
    assert not compared.exists()
    part = real.part("report")
    assert part.pairs.ids == ["new-0", "new-1", "new-2"]
    # Without a manual coding there is no truth: such a study is not one without findings.
    assert not part.usable.any()

    _write(studies, [{**rows[0], "findings": "Another text."}, *rows[1:], *test])
    with pytest.raises(SystemExit, match=r"other studies of the part train .* another work folder"):
        real.make_tables()


def test_vectors_of_an_earlier_part_are_not_used(modules, data, tmp_path):
    part, cache = data.part("report"), tmp_path / "vectors.npz"
    SmallEncoder.new(["clear", "lungs"], style="convirt", side=32).save(tmp_path / "encoder")
    embedder = modules[0].open_encoder(tmp_path / "encoder")
    found = modules[0].vectors_of(embedder, part, cache)
    np.savez(cache, images=found.images[:1], reports=found.reports[:1], black=found.black)
    assert len(modules[0].vectors_of(embedder, part, cache).images) == 1
    os.utime(cache, ns=(0, part.table.stat().st_mtime_ns - 1))
    again = modules[0].vectors_of(embedder, part, cache)
    np.testing.assert_array_equal(again.images, found.images)


def test_studies_without_a_value_are_left_out_of_differences(modules, data, tmp_path):
    ids = [f"iu-{number}" for number in range(4)]
    systems = ["one"] * 4 + ["other"] * 4
    images = [0.5, 0.25, None, 0.0, 0.25, 0.25, None, 0.0]
    columns = {"id": ids * 2, "system": systems, "findings-f1": [1.0] * 4 + [0.5] * 4}
    table = pa.table({**columns, "image-gain-distance": images})
    pq.write_table(table, tmp_path / "values.parquet")
    found = modules[3].difference_table(tmp_path, data, ["one", "other"])
    name, *cells = found.rows[0]
    known = modules[3].studies_of(data)
    normal = [known[id]["mesh"] == "normal" for id in ids]
    assert name == "one - other"
    moved = [0.25, 0.0, None, 0.0]
    for cell, is_normal in zip(cells[2:], (True, False), strict=True):
        mine = [m for m, n in zip(moved, normal, strict=True) if n is is_normal and m is not None]
        assert cell.startswith(f"{np.mean(mine):.3f}" if mine else "-")


@pytest.fixture(scope="module")
def cases(modules, data):
    imperfect = modules[1]
    phrases = imperfect.collect_phrases(data.part("train").pairs.texts)
    # All phantoms, because the parts are small.
    return imperfect.make_cases(data.part("train"), phrases)


def test_references_say_nothing_of_the_findings_that_candidates_add(modules, data, cases):
    imperfect = modules[1]
    part = data.part("train")
    assert {case.form for case in cases} >= {"omits", "wrong side"}
    for case in cases:
        if case.form == "wrong side":
            assert case.direction in part.mesh[case.row]
            assert imperfect.other_side(case.right.split(". ")[0]) == case.wrong.split(". ")[0]
        if case.form != "omits":
            continue
        stated = {imperfect.concept_of(each.observation) for each in extract(case.reference)}
        assert stated.isdisjoint(case.group.split(" / "))
        assert part.coded(case.direction)[case.row]
        (other,) = set(case.group.split(" / ")) - {case.direction}
        assert not part.coded(other)[case.row]


def test_a_score_of_sentences_alone_is_at_one_half(modules, cases):
    imperfect = modules[1]
    weights = imperfect.weights_of(cases)
    assert (weights > 0).sum() > 10
    rows = [case.row for case in cases]
    # It prefers the finding that is first in the alphabet, whatever the image.
    values = np.array(
        [float(c.direction == min(c.direction, *c.group.split(" / "))) for c in cases]
    )
    chosen = np.array([case.form == "omits" for case in cases])
    share = imperfect.share_of(values[chosen], weights[chosen], np.array(rows)[chosen])
    assert share.estimate == pytest.approx(0.5)
    assert share.low < 0.5 < share.high


def test_a_probe_reads_what_is_there_and_no_more(modules):
    rng = np.random.default_rng(0)
    known, new = rng.standard_normal((2, 400, 5))
    truth = known[:, 0] + 0.1 * rng.standard_normal(400) > 1
    noise = rng.random(400) > 0.5
    usable = np.ones(400, bool)
    found = modules[2].probes(known, new, {"first": truth, "noise": noise}, usable)
    assert np.corrcoef(found["first"], new[:, 0])[0, 1] > 0.95
    assert abs(np.corrcoef(found["noise"], new[:, 0])[0, 1]) < 0.9


def test_from_the_data_to_every_table(modules, data, monkeypatch):
    """Numbers of such small encoders mean nothing; the tables must be complete."""
    _, imperfect, encoders, generators = modules
    from vlscore.training.objectives import finding_labels

    monkeypatch.setattr(finding_labels, "_LEAST_REPORTS", 3)
    monkeypatch.setattr(encoders, "SIDE", 32)
    monkeypatch.setattr(encoders, "SETTINGS", {"epochs": 1, "batch_size": 8,
                                               "findings_weight": 0.3})  # fmt: skip
    recipe = {"convirt": encoders.Recipe("convirt", "convirt")}
    for name, recipes in (
        ("FINAL", recipe),
        ("CHOICES", recipe),
        ("CURVE", {0.5: recipe["convirt"]}),
        ("SIDES", {64: encoders.Recipe("convirt", "convirt", side=64, stored=72)}),
    ):
        monkeypatch.setattr(encoders, name, recipes)
    # The others are slower, and tested elsewhere.
    monkeypatch.setattr(imperfect, "usable_metrics", lambda: ([find_metric("rouge-l")], {}))
    encoders.train_all(data, (0,))
    before = {path: path.stat().st_mtime_ns for path in data.work.rglob("model.safetensors")}
    assert len(before) == 4
    encoders.train_all(data, (0,))
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    tables = encoders.all_tables(data)
    (larger,) = (table for table in tables if table.title.startswith("Larger images: retrieval"))
    assert [row[0] for row in larger.rows] == ["32 pixels", "64 pixels", "chance"]
    assert [row[0] for row in tables[0].rows] == ["convirt", "chance"]
    assert [row[0] for row in tables[1].rows] == ["convirt-seed0"]
    assert [row[0] for row in tables[-1].rows] == [
        "encoders/convirt-seed0",
        "choices/convirt",
        "curve/0.5",
        "sides/64",
    ]
    cases, found, by_seed = imperfect.measure(data, "train")
    assert imperfect.seeds_table(by_seed, cases).columns == ("score", "convirt-seed0")
    images = found["convirt"]["image-gain-distance"]
    assert set(images) == set(imperfect.IMAGES)
    # Cosine does not look at the image.
    cosine = found["convirt"]["cosine"]
    np.testing.assert_array_equal(cosine[imperfect.RIGHT], cosine[imperfect.BLACK])
    assert set(found["texts alone"]["rouge-l"]) == {imperfect.RIGHT}
    names = sorted(generators.candidates_of(data))
    for path in generators.write_systems(data, names, data.work / "systems"):
        rows = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
        assert len(rows) == 19
        assert all(each["candidate"] and each["image"] for each in rows)


def test_joined_encoders_are_an_ensemble(tmp_path, modules):
    from real_joined import join, load_joined

    folders = [tmp_path / name for name in ("a", "b")]
    for seed, folder in enumerate(folders):
        SmallEncoder.new(["clear", "lungs"], seed=seed, style="convirt", side=32).save(folder)
    title, folder = join("both", folders, tmp_path / "joined")
    assert title == "both, 2 joined"
    encoder = load_joined(folder).encoder
    assert encoder.card.name == "ensemble"
    assert encoder.card.dim == 2 * 128
