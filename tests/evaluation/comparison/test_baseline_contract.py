"""Every registered baseline: reports depend on the study and the training table alone."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.data import TextPolicy
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidLexicon, InvalidSetting, InvalidTable, UnknownName
from vlscore.evaluation import (
    BASELINES,
    Baseline,
    BaselineSettings,
    baseline,
    find_baseline,
)
from vlscore.evaluation.baselines.baseline_base import (
    IMAGES,
    REFERENCE,
    TRAIN,
    Case,
    TrainingReports,
)
from vlscore.evaluation.baselines.report_templates import Templates, _regression, linear_probe
from vlscore.findings import CHEXPERT_LABELS, chexpert_labels

TRAINING = [
    "FINDINGS: Small left pleural effusion. The heart is enlarged. IMPRESSION: Effusion.",
    "FINDINGS: The lungs are clear. Heart size is normal. IMPRESSION: No acute disease.",
    "FINDINGS: The lungs are clear. No pneumothorax. IMPRESSION: No acute disease.",
    "FINDINGS: Pulmonary edema. No pneumothorax. IMPRESSION: Edema.",
    "FINDINGS: Right pneumothorax. Rib fracture. IMPRESSION: Pneumothorax.",
    "FINDINGS: The lungs are clear. Heart size is normal. IMPRESSION: No acute disease.",
]
TESTED = ["Pleural effusion.", "Clear lungs.", "Cardiomegaly and edema.", "No effusion.", "Mass."]
# Every way to make a baseline, by the name of its test.
WAYS = {
    **{name: (name, {}) for name in BASELINES},
    "top-sentences by section": ("top-sentences", {"by_section": True}),
    "templates single": ("templates", {"style": "single"}),
    "templates zero-shot": ("templates", {"labels": "zero-shot"}),
    "templates probe": ("templates", {"labels": "probe"}),
    "templates table": ("templates", {"labels": "labels.csv"}),
}


def _write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A training table and a table of studies, with images, and a table of labels."""
    folder = tmp_path_factory.mktemp("baselines")
    rng = np.random.default_rng(2)
    for table, texts in (("train", TRAINING), ("test", TESTED)):
        rows = []
        for k, text in enumerate(texts):
            pixels = rng.integers(0, 256, (32, 32), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{table}{k}.png")
            rows.append({"id": f"{table}{k}", "image": f"{table}{k}.png", "reference": text})
        _write(folder / f"{table}.jsonl", rows)
    lines = [f"test{k},{k % 2},{k / 5}" for k in range(len(TESTED))]
    (folder / "labels.csv").write_text("\n".join(["id,Edema,Pleural Effusion", *lines]))
    return folder


@pytest.fixture(scope="module")
def embedder():
    return StudyEmbedder(HashEncoder(), device="cpu", cache=False)


def _made(place, way, out, embedder, studies="test.jsonl", **settings):
    name, fixed = WAYS[way]
    chosen = {**fixed, **settings}
    if chosen.get("labels") == "labels.csv":
        chosen["labels"] = str(place / "labels.csv")
    found = BaselineSettings(**chosen)
    train = place / "train.jsonl" if TRAIN in find_baseline(name, found).needs else None
    return baseline(name, place / studies, out, train=train, settings=found, embedder=embedder)


def _candidates(run):
    rows = [json.loads(line) for line in (run.folder / "candidates.jsonl").read_text().splitlines()]
    return {row["id"]: row["candidate"] for row in rows}


@pytest.mark.parametrize("way", WAYS)
def test_the_contract(way, place, tmp_path, embedder):
    run = _made(place, way, tmp_path / "a", embedder)
    rows = [json.loads(line) for line in (run.folder / "candidates.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"test{k}" for k in range(len(TESTED))]
    assert [row["reference"] for row in rows] == TESTED
    assert all(row["candidate"].strip() for row in rows)
    assert {row["baseline"] for row in rows} == set(run.signatures.values())
    assert next(iter(run.signatures.values())).startswith(f"baseline:{WAYS[way][0]}|")
    # The same call again: nothing is made; another folder: the same bytes.
    assert _made(place, way, tmp_path / "a", embedder).unchanged
    again = _made(place, way, tmp_path / "b", embedder)
    assert (again.folder / "candidates.jsonl").read_bytes() == (
        run.folder / "candidates.jsonl"
    ).read_bytes()
    # The studies after a study do not change its report.
    lines = (place / "test.jsonl").read_text().splitlines(keepends=True)
    (place / "first.jsonl").write_text("".join(lines[:2]))
    first = _made(place, way, tmp_path / "c", embedder, "first.jsonl")
    assert list(_candidates(first).items()) == list(_candidates(run).items())[:2]


@pytest.mark.parametrize("way", WAYS)
def test_only_a_baseline_that_says_so_reads_references_or_images(way, place, tmp_path, embedder):
    run = _made(place, way, tmp_path / "a", embedder)
    name, fixed = WAYS[way]
    needs = find_baseline(name, BaselineSettings(**{**fixed, "labels": "reference"})).needs
    if "labels" in fixed:
        needs = frozenset({IMAGES} if fixed["labels"] in ("zero-shot", "probe") else ())
    rows = [json.loads(line) for line in (place / "test.jsonl").read_text().splitlines()]
    for row in rows:
        if REFERENCE not in needs:
            row["reference"] = "Massive pneumothorax."
        if IMAGES not in needs:
            row["image"] = "absent.png"
    _write(place / "changed.jsonl", rows)
    changed = _made(place, way, tmp_path / "b", embedder, "changed.jsonl")
    assert _candidates(changed) == _candidates(run)


def test_random_reports_are_draws_of_numpy_in_the_order_of_the_studies(place, tmp_path):
    run = _made(place, "random", tmp_path / "a", None, seed=5)
    drawn = np.random.default_rng(5).integers(len(TRAINING), size=3000)[: len(TESTED)]
    assert list(_candidates(run).values()) == [TRAINING[k] for k in drawn]
    other = _made(place, "random", tmp_path / "b", None, seed=6)
    assert _candidates(run) != _candidates(other)


def test_frequent_parts_are_drawn_by_their_frequency(place, tmp_path):
    _write(place / "many.jsonl", [{"id": f"m{k}", "reference": "x"} for k in range(400)])
    for way, separator in (("top-words", " "), ("top-sentences", ". ")):
        run = _made(place, way, tmp_path / way, None, "many.jsonl", first=2)
        parts = [
            part.strip(".") for text in _candidates(run).values() for part in text.split(separator)
        ]
        assert len(set(parts)) == 2, set(parts)
    # "The lungs are clear" and "IMPRESSION: No acute disease" are the two, three times each.
    assert 0.4 < parts.count("The lungs are clear") / len(parts) < 0.6
    run = _made(place, "top-sentences by section", tmp_path / "s", None, "many.jsonl")
    texts = list(_candidates(run).values())
    assert all(text.startswith("FINDINGS: ") and "\nIMPRESSION: " in text for text in texts)
    impressions = [text.split("IMPRESSION: ")[1] for text in texts]
    assert 0.4 < impressions.count("No acute disease.") / len(texts) < 0.6


def test_the_nearest_image_gives_the_report_and_one_fails_alone(place, tmp_path, embedder):
    rows = [json.loads(line) for line in (place / "train.jsonl").read_text().splitlines()]
    rows[1]["image"] = "absent.png"
    # An image of the training table finds its own report.
    _write(place / "same.jsonl", rows)
    run = _made(place, "nearest-image", tmp_path / "a", embedder, "same.jsonl")
    expected = {row["id"]: row["reference"] for row in rows if row["id"] != "train1"}
    assert _candidates(run) == expected
    assert [(bad.row, bad.id) for bad in run.failures] == [(2, "train1")]
    assert any("5 studies have an id that " in note for note in run.notes)


def test_labels_are_read_and_become_the_sentences(place, tmp_path):
    grouped = Templates(BaselineSettings()).report
    run = _made(place, "templates", tmp_path / "a", None)
    assert _candidates(run)["test2"] == grouped(["Cardiomegaly", "Edema"])
    assert any("upper bound" in note for note in run.notes)
    assert "labels:reference-upper-bound" in run.signatures["templates"]
    # The second label's values are 0, .2, .4, .6, .8.
    run = _made(place, "templates table", tmp_path / "b", None)
    assert _candidates(run)["test3"] == grouped(["Edema", "Pleural Effusion"])
    assert _candidates(run)["test1"] == grouped(["Edema"])
    run = _made(place, "templates table", tmp_path / "c", None, threshold=0.7)
    assert _candidates(run)["test3"] == grouped(["Edema"])


@pytest.mark.parametrize("style", ["single", "grouped"])
def test_our_extraction_finds_the_labels_again_in_the_sentences(style):
    templates = Templates(BaselineSettings(style=style))
    names = list(templates.sentences)
    rng = np.random.default_rng(0)
    assert set(names) == set(CHEXPERT_LABELS) - {"No Finding"}
    draws = [[name] for name in names] + [[], names]
    draws += [[n for n in names if rng.random() < 0.3] for _ in range(60)]
    for present in draws:
        found = chexpert_labels(templates.report(present))
        assert {n for n, value in found.items() if value == 1} - {"No Finding"} == set(present)


def test_a_probe_learns_what_can_be_learnt():
    rng = np.random.default_rng(1)
    images = rng.normal(size=(400, 8)).astype(np.float32)
    has_it = images[:, 2] > 0.8
    reports = ["Pulmonary edema." if each else "No edema." for each in has_it]
    training = TrainingReports(reports, images=images)
    present, lacking = linear_probe(["Edema", "Fracture"], training)
    assert lacking == ["Fracture"]
    new = rng.normal(size=(300, 8)).astype(np.float32)
    found = np.array(["Edema" in present(Case(0, "", image=image)) for image in new])
    assert (found == (new[:, 2] > 0.8)).mean() > 0.97


def test_the_probe_agrees_with_another_optimiser():
    rng = np.random.default_rng(3)
    features = torch.from_numpy(rng.normal(size=(80, 4)))
    has_it = torch.from_numpy(rng.random(80) < 0.4)
    weights = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    steps = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def loss():
        steps.zero_grad()
        scores = features @ weights[:-1] + weights[-1]
        value = torch.nn.functional.binary_cross_entropy_with_logits(
            scores, has_it.double(), reduction="sum"
        )
        value = value + 0.5 * (weights[:-1] ** 2).sum()
        value.backward()
        return value

    steps.step(loss)
    ours = _regression(features.numpy(), has_it.numpy())
    np.testing.assert_allclose(ours, weights.detach().numpy(), atol=1e-4)


def test_what_cannot_be_used_is_refused(place, tmp_path, embedder):
    def made(name, train="train.jsonl", **settings):
        path = None if train is None else place / train
        found = BaselineSettings(**settings)
        return baseline(name, place / "test.jsonl", tmp_path / "o", train=path, settings=found)

    with pytest.raises(UnknownName, match="did you mean random"):
        made("randon")
    with pytest.raises(InvalidSetting, match="name a training table"):
        made("random", None)
    with pytest.raises(InvalidSetting, match="leave the training table out"):
        made("templates")
    with pytest.raises(InvalidSetting, match="constant does not use the setting seed"):
        made("constant", seed=1)
    with pytest.raises(InvalidSetting, match="style is one of grouped, single"):
        made("templates", style="long")
    _write(place / "plain.jsonl", [{"id": "a", "report": "Clear lungs."}])
    with pytest.raises(InvalidTable, match="no training report has sections"):
        made("top-sentences", "plain.jsonl", by_section=True)
    with pytest.raises(InvalidTable, match="no column image"):
        made("nearest-image", "plain.jsonl")
    labels = place / "others.csv"
    labels.write_text("id,Edema\nz,1\n")
    with pytest.raises(InvalidTable, match="test0"):
        made("templates", None, labels=str(labels))
    broken = place / "broken.toml"
    for text, reason in (
        ("[[label]]\nname = 'Heart'\npresent = 'a'\nabsent = 'b'", "no label Heart"),
        ("[[label]]\nname = 'Edema'", "are texts"),
        ("[[group]]\nsentence = 'a'", r"no \[\[label\]\]"),
        (
            "[[label]]\nname='Edema'\npresent='a'\nabsent='b'\n[[group]]\npresent=['Edema']",
            "sentence is a text",
        ),
        ("label = [", "broken.toml"),
    ):
        broken.write_text(text)
        with pytest.raises(InvalidLexicon, match=reason):
            made("templates", None, templates=broken)


def test_a_baseline_of_a_user_is_made(place, tmp_path):
    class Own(Baseline):
        name = "own"
        description = "one sentence"

        def fit(self, training, embedder):
            self.count = len(training.reports)
            return ["learnt"]

        def candidate(self, case):
            return f"{self.count} reports, {case.id}."

    run = baseline(
        Own(BaselineSettings()), place / "test.jsonl", tmp_path, train=place / "train.jsonl"
    )
    assert _candidates(run)["test1"] == "6 reports, test1."
    assert "learnt" in run.notes


def test_a_section_counts(place, tmp_path):
    policy = TextPolicy("impression")
    run = baseline(
        "constant",
        place / "test.jsonl",
        tmp_path,
        train=place / "train.jsonl",
        text_policy=policy,
    )
    assert set(_candidates(run).values()) == {"No acute disease."}
