"""Result pages without a browser: what they hold, what they leave out, and what they refuse."""

import base64
import contextlib
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas
import pytest
from PIL import Image

from tests.pages.conftest import COUNT, HOSTILE, REPORTS, command, payload_of, text_of
from vlscore.core import file_digest, frame, output_folder, write_results
from vlscore.errors import ChecksumMismatch, InvalidSetting, InvalidTable, UnknownName
from vlscore.evaluation import evaluate, methods
from vlscore.metrics import RuleJudge, Scorer
from vlscore.pages import report
from vlscore.pages.page_parts import CaseList, worst_first
from vlscore.pages.sentence_maps import _scorer_of
from vlscore.stats import Content, Result


class _Elements(HTMLParser):
    """Names of all elements, and all attributes, of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


def cases_of(page: Path, run: int = 0) -> dict:
    return payload_of(page)["runs"][run]["list"]


def test_the_page_holds_every_study_with_the_marks_of_the_judge(page):
    listed = cases_of(page)
    assert listed["rows"] == COUNT
    block = listed["cases"][2][0]
    assert [(role, text_of(pieces)) for role, pieces in block["texts"]] == [
        ("candidate", REPORTS[2][1]),
        ("reference", REPORTS[2][0]),
    ]
    judged = RuleJudge().judge(REPORTS[2][1], REPORTS[2][0]).errors
    assert [error["finding"] for error in block["errors"]] == [error.finding for error in judged]
    assert [error["severity"] for error in block["errors"]] == [error.severity for error in judged]
    marks = [piece for piece in block["texts"][0][1] if not isinstance(piece, str)]
    assert marks[0] == ["Left pleural effusion", "place", [1]]
    assert marks[1] == ["Mild edema", "agreed", []]


def test_what_a_table_holds_is_never_markup(page):
    """Neither an id nor a report adds an element; the texts themselves are there, unchanged."""
    text = page.read_text(encoding="utf-8")
    assert HOSTILE not in text
    elements = _Elements(text)
    assert elements.names.count("script") == 2
    assert "img" not in elements.names
    assert not [name for name, _ in elements.attributes if name.startswith("on")]
    listed = cases_of(page)
    assert listed["values"]["id"][7] == f"x{HOSTILE}"
    assert HOSTILE in text_of(listed["cases"][5][0]["texts"][0][1])


def test_hostile_names_in_tables_and_notes_are_escaped(tmp_path):
    table = tmp_path / "s.jsonl"
    table.write_text(json.dumps({"id": "1", "reference": "Edema.", "candidate": "Edema."}) + "\n")
    command("compare", f"<b>bold</b>={table}", f"two={table}", "-m", "bleu-1", "-o", tmp_path / "c")
    text = report(tmp_path / "c").path.read_text(encoding="utf-8")
    assert "<b>bold" not in text
    assert "&lt;b&gt;bold" in text


def test_only_the_program_of_the_page_may_run(page):
    """The policy names the digests of the one style and the one program, and allows no network."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert found is not None
    assert found[1].startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in found[1]
    for element in ("style", "script"):
        content = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content[-1].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in found[1]
    values = [value or "" for _, value in _Elements(text).attributes]
    assert [value for value in values if "//" in value] == []


def test_the_page_says_what_it_holds_and_what_failed(page, scored, tmp_path):
    text = page.read_text(encoding="utf-8")
    assert "Patients&#39; data." in text
    # One row has no reference, so that no pair of texts is shown.
    assert f"{2 * (COUNT - 1)} reports and {COUNT} rows with ids" in text
    assert "column &#34;reference&#34; is empty" in text
    again = report(scored, out=tmp_path / "again.html").path
    assert again.read_bytes() == page.read_bytes()


@pytest.mark.parametrize("other", ["phantom-7-00003", "phantom-7-00003-b", "p1"])
def test_studies_of_phantoms_are_no_patients_data(tmp_path, other):
    """One study with another id makes it a page of patients."""
    ids = [*(f"phantom-7-0000{k}" for k in range(3)), other]
    rows = [{"id": name, "reference": "Edema.", "candidate": "No edema."} for name in ids]
    table = tmp_path / "s.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"))
    holds = report(tmp_path / "out").holds
    assert holds.is_private == (other != "phantom-7-00003")
    assert holds.title == ("Patients' data." if holds.is_private else "No patients' data.")


def test_without_texts_the_page_has_no_report_id_or_path(scored, page, tmp_path):
    made = report(scored, out=tmp_path / "numbers.html", texts=False)
    text = made.path.read_text(encoding="utf-8")
    content = json.dumps(payload_of(made.path))
    for held in ("study-0", "effusion", "pneumothorax", str(scored.parent), "studies.jsonl"):
        assert held not in text
        assert held not in content
    assert not made.holds.is_private
    listed = cases_of(made.path)
    assert listed["cases"] is None
    assert listed["values"]["row"] == list(range(1, COUNT + 1))
    assert listed["values"]["rouge-l"] == cases_of(page)["values"]["rouge-l"]


def test_a_missing_or_changed_table_is_named_and_the_numbers_remain(tmp_path):
    table = tmp_path / "studies.jsonl"
    row = {"id": "1", "reference": "Edema.", "candidate": "Edema."}
    table.write_text(json.dumps(row) + "\n")
    command("evaluate", table, "-m", "bleu-1", "-o", tmp_path / "out")
    table.rename(tmp_path / "moved.jsonl")
    made = report(tmp_path / "out")
    assert "does not exist" in made.notes[0]
    assert cases_of(made.path)["cases"] is None
    table.write_text(json.dumps({**row, "candidate": "Other."}) + "\n")
    assert "is not the one that the run read" in report(tmp_path / "out").notes[0]
    moved = report(tmp_path / "out", table=tmp_path / "moved.jsonl")
    assert moved.notes == ()
    assert cases_of(moved.path)["cases"] is not None


def test_a_table_that_run_json_names_without_its_digest_is_not_shown(tmp_path):
    """A folder from elsewhere could name any table of this machine."""
    rows = [{"id": "a", "reference": "PRIVATE effusion.", "candidate": "PRIVATE."}]
    table = tmp_path / "t.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = evaluate(table, tmp_path / "e", Scorer(metrics="bleu-1"))
    record = json.loads((run.folder / "run.json").read_text())
    record["key"]["table_sha256"] = None
    (run.folder / "run.json").write_text(json.dumps(record))
    assert "PRIVATE" not in str(payload_of(report(run.folder).path))
    assert "name the table with --table" in report(run.folder).notes[0]
    assert "PRIVATE" in str(payload_of(report(run.folder, table=table).path))


def test_folders_without_a_finished_run_and_changed_results_are_refused(tmp_path):
    with pytest.raises(InvalidSetting, match="at least one"):
        report()
    with pytest.raises(InvalidSetting, match="has no"):
        report(tmp_path)
    table = tmp_path / "studies.jsonl"
    table.write_text(json.dumps({"id": "1", "reference": "Edema.", "candidate": "No."}) + "\n")
    command("evaluate", table, "-m", "bleu-1", "-o", tmp_path / "out")
    (tmp_path / "out" / "result.json").write_text("{}")
    with pytest.raises(ChecksumMismatch):
        report(tmp_path / "out")
    assert not (tmp_path / "out" / "report.html").exists()


def test_two_folders_are_two_sections_of_one_page(scored, tmp_path):
    table = scored.parent / "studies.jsonl"
    command("judge", table, "-o", tmp_path / "judged")
    made = report(
        scored,
        tmp_path / "judged",
        out=tmp_path / "both.html",
        table=scored.parent / "studies.jsonl",
    )
    runs = payload_of(made.path)["runs"]
    assert [run["list"]["what"] for run in runs] == ["studies", "reports"]
    assert runs[1]["list"]["values"]["sum"][0] == 4
    assert runs[1]["list"]["cases"][2] == runs[0]["list"]["cases"][2]


def test_compare_shows_what_tells_two_systems_apart(tmp_path):
    for name, answers in {"one": "Edema.", "two": "Pneumothorax."}.items():
        rows = [
            {"id": "a", "reference": "Edema.", "candidate": answers},
            {"id": "b", "reference": "Clear lungs.", "candidate": "Clear lungs."},
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = (tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    command("compare", *files, "-m", "rouge-l", "-o", tmp_path / "c")
    listed = cases_of(report(tmp_path / "c").path)
    assert listed["values"]["rouge-l difference"] == [1.0, 0.0]
    assert listed["sort"] == ["rouge-l difference", True]
    assert [block["title"] for block in listed["cases"][0]] == ["one", "two"]
    assert "errors" not in listed["cases"][0][0]
    assert [error["kind"] for error in listed["cases"][0][1]["errors"]] == ["invented", "missed"]


def test_the_differences_are_at_the_top_and_the_gravest_note_is_open(tmp_path):
    for name, answers in {"one": ["Edema.", "Clear."], "two": ["Clear.", "Clear."]}.items():
        rows = [
            {"id": f"{k}{n}", "reference": r, "candidate": answers[k]}
            for n in range(12)
            for k, r in enumerate(["Edema.", "Clear."])
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = (tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    command("compare", *files, "-m", "rouge-l", "--baselines", "-o", tmp_path / "c")
    text = report(tmp_path / "c").path.read_text(encoding="utf-8")
    first = text.index("one - two")
    # One is right in all, two in half: 1 - 0.5, and 12 of 24 signs that a permutation can turn.
    assert re.search(r"<td>one - two</td><td>0\.500 \[[^<]*\]</td><td>&lt; 0\.001</td>", text)
    assert first < text.index('data-part="forests"')
    assert "baseline:normal" not in text[: text.index('data-part="forests"')].split("<ul>")[0]
    notes = re.findall(r'<p class="note">([^<]*)</p>', text)
    assert [note for note in notes if "one and the same report for all 24 studies" in note]
    assert len([note for note in notes if "JavaScript" not in note]) == 1
    listed = cases_of(tmp_path / "c" / "report.html")
    assert listed["sort"] == ["rouge-l difference", True]
    assert {c["group"] for c in listed["columns"][2:7]} == {"rouge-l"}


def test_of_equal_scores_the_larger_triangle_is_worse():
    cases = CaseList(
        "studies",
        pandas.DataFrame(
            {"id": list("abcd"), "vlscore": [0.0, 0.5, 0.0, 0.0], "area": [17.0, 3.0, 206.0, None]}
        ),
        "vlscore",
        ties="area",
    )
    assert [cases.values["id"][k] for k in worst_first(cases)] == ["c", "a", "d", "b"]


def test_sensitivity_marks_the_change(tmp_path):
    records = [
        {"study_id": f"s{k}", "kind": "remove-pathology", "expected": "significant",
         "original": f"Edema {k}. Clear.", "perturbed": "Clear."}
        for k in range(3)
    ]  # fmt: skip
    pairs = tmp_path / "perturbations.jsonl"
    pairs.write_text("".join(json.dumps(record) + "\n" for record in records))
    command(
        "sensitivity", "--perturbations", pairs, "-m", "bleu-1", "--resamples", 10,
        "-o", tmp_path / "s",
    )  # fmt: skip
    listed = cases_of(report(tmp_path / "s").path)
    original, changed = listed["cases"][1][0]["texts"]
    assert next(piece[1] for piece in original[1] if not isinstance(piece, str)) == "removed"
    assert text_of(original[1]) == "Edema 1. Clear."
    assert text_of(changed[1]) == "Clear."
    assert listed["picks"] == ["kind", "expected"]


def test_findings_are_marked_by_polarity(tmp_path):
    table = tmp_path / "r.jsonl"
    table.write_text(json.dumps({"id": "1", "report": "Mild edema. No pneumothorax."}) + "\n")
    command("findings", table, "-o", tmp_path / "f")
    listed = cases_of(report(tmp_path / "f", table=table).path)
    pieces = listed["cases"][0][0]["texts"][0][1]
    assert [p[1] for p in pieces if not isinstance(p, str)] == ["positive", "denied"]


def test_triangle_shares_and_images(embedded, tmp_path):
    made = report(embedded, out=tmp_path / "p.html", images=True, sentences=2)
    listed = cases_of(made.path)
    values = listed["values"]
    assert "3 images" in made.holds.text
    shown = [row for row in range(3) if "shares" in listed["cases"][row][0]]
    assert sorted(values["vlscore"])[:2] == sorted(values["vlscore"][row] for row in shown)
    for row in shown:
        shares = listed["cases"][row][0]["shares"]
        maps = listed["cases"][row][0]["maps"]["sentences"]
        sentences = [each["text"] for each in shares["candidate"] + shares["reference"]]
        assert {each["text"] for each in maps} <= set(sentences)
        assert all(each["beaten"] <= each["copies"] for each in maps)
        assert shares["score"] == pytest.approx(values["vlscore"][row], abs=1e-4)
        assert any(each["share"] != 0 for each in shares["candidate"] + shares["reference"])
    triangle = listed["cases"][0][0]["triangle"]
    foot, area = triangle["foot"], triangle["area"]
    base, side = triangle["image_reference"], triangle["image_candidate"]
    # Heron: the three sides have the area; the foot is the projection on the base.
    other = values["candidate_reference"][0]
    half = (base + side + other) / 2
    heron = (half * (half - base) * (half - side) * (half - other)) ** 0.5
    assert area == pytest.approx(heron, rel=1e-3)
    assert foot == pytest.approx((base**2 + side**2 - other**2) / (2 * base**2), rel=1e-3)
    coded = listed["images"]["0"][0].split(",")[1]
    with Image.open(io.BytesIO(base64.b64decode(coded))) as image:
        assert max(image.size) <= 320
        assert image.format == "WEBP"
        assert not image.getexif()


def test_images_are_asked_for_and_leave_room_for_the_rest(embedded, tmp_path, monkeypatch):
    from vlscore.pages import report_page

    made = report(embedded, out=tmp_path / "p.html")
    assert cases_of(made.path)["images"] == {}
    assert "image" not in made.holds.text
    with pytest.raises(InvalidSetting, match="images are patients' data"):
        report(embedded, images=True, texts=False)
    monkeypatch.setattr(report_page, "IMAGE_BYTES", 1)
    made = report(embedded, out=tmp_path / "p.html", images=True)
    assert list(cases_of(made.path)["images"]) == [str(worst(cases_of(made.path)))]
    assert "The images of 2 cases are left out" in made.notes[-1]


def worst(listed: dict) -> int:
    values = listed["values"]["vlscore"]
    return values.index(min(values))


def finished(folder: Path, command: str, content: Content, **files: str) -> Path:
    """A finished run with these files; "log.csv" is written as log_csv."""

    def write(place: Path) -> dict:
        for name, text in files.items():
            (place / name.replace("_", ".")).write_text(text, encoding="utf-8")
        return Result.written(place, key, content).record

    key = {"command": command}
    with output_folder(folder, key):
        write_results(folder, key, write)
    return folder


def test_training_is_shown_as_curves(tmp_path):
    record = {
        "objective": "convirt",
        "steps": 2,
        "pairs": 9,
        "best_step": 1,
        "settings": {"seed": 0},
        "best_validation": None,
        "validation_pairs": 0,
    }
    folder = finished(
        tmp_path / "t",
        "train",
        Content({}, facts=record),
        log_csv="step,loss,learning_rate\n1,2.5,0.1\n2,1.5,0.2\n",
        validation_csv="step,mean recall,image to text R@1,text to image R@1\n1,0.5,0.4,0.6\n",
    )
    curves = {
        curve["title"]: curve for curve in payload_of(report(folder).path)["runs"][0]["curves"]
    }
    assert curves["Loss of each step"]["series"] == [["loss", [1.0, 2.0], [2.5, 1.5]]]
    recall = curves["Validation: recall, image to text"]
    assert recall["at"] == 1
    assert recall["series"] == [["R@1", [1.0], [0.4]], ["mean of all", [1.0], [0.5]]]


def test_training_has_the_best_and_the_worst_retrievals(tmp_path):
    """Ranks are those of the run's own validation, and a folder without its pairs says so."""
    import json
    import shutil

    from vlscore.data import open_studies, render, sample_studies
    from vlscore.data.phantom.phantom_pairs import write_png
    from vlscore.training import Preparation, Start, TrainingSettings, train

    rows = []
    for number, study in enumerate(sample_studies(3, 10)):
        write_png(tmp_path / f"{number}.png", render(study.scene))
        rows.append({"id": f"s{number}", "image": f"{number}.png", "reference": study.reference})
    table = tmp_path / "studies.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = TrainingSettings(epochs=1, batch_size=4, validation_share=0.4)
    opened = open_studies(table, needs={"image", "reference"})
    run = train(Preparation(opened), tmp_path / "t", settings, Start(style="convirt", side=32))
    listed = cases_of(report(run.folder).path)
    ranks = listed["values"]["rank"]
    assert sorted(listed["values"]) == sorted(
        ["id", "rank", "cosine of own report", "cosine of nearest report"]
    )
    assert len(ranks) == 4
    best = run.record["best_validation"]
    assert sum(rank == 1 for rank in ranks) / 4 == pytest.approx(best["image to text R@1"])
    assert [case[0]["title"] for case in listed["cases"]] == ["report nearest to the image"] * 4
    assert not listed["images"]
    assert len(cases_of(report(run.folder, images=True).path)["images"]) == 4
    private = cases_of(report(run.folder, texts=False).path)
    assert private["cases"] is None
    assert "id" not in private["values"]
    shutil.rmtree(run.folder / "pairs")
    assert "no decoded pairs" in report(run.folder).notes[0]


def test_any_other_folder_is_shown_by_its_tables_and_rows(tmp_path):
    directions = frame([{"a": "x", "b": "<i>1</i>"}])
    folder = finished(
        tmp_path / "g",
        "retrieval",
        Content({"directions": directions}),
        few_csv="a\n1\n",
        many_csv="name,x\none,1.5\ntwo,\n",
    )
    made = report(folder)
    listed = cases_of(made.path)
    assert listed["values"] == {"name": ["one", "two"], "x": [1.5, None]}
    assert "<td>&lt;i&gt;1&lt;/i&gt;</td>" in made.path.read_text(encoding="utf-8")
    assert "name" not in cases_of(report(folder, texts=False).path)["values"]


@pytest.mark.parametrize(("different", "has_card"), [(5, False), (6, True)])
def test_a_column_of_few_different_numbers_has_no_distribution(different, has_card, tmp_path):
    rows = "".join([f"{number},{number % different}\n" for number in range(12)])
    content = Content({"directions": frame([{"a": "x"}])})
    folder = finished(tmp_path / "g", "retrieval", content, rows_csv=f"name,x\n{rows}")
    (column,) = [c for c in cases_of(report(folder).path)["columns"] if c["name"] == "x"]
    assert column["card"] == has_card


@pytest.mark.parametrize(("metric", "encoder"), [("os:system", None), ("vlscore", "os:system")])
def test_a_folder_cannot_choose_code(metric, encoder, tmp_path):
    folder = Result(tmp_path, {"encoder": {"name": encoder} if encoder else None})
    with pytest.raises(UnknownName, match=r"run\.json"):
        _scorer_of(metric, f"{metric}|txt:all", folder, None)


def test_without_texts_the_page_has_no_value_of_a_users_own_column(tmp_path):
    table = tmp_path / "studies.jsonl"
    rows = [
        {"id": str(k), "reference": "Edema.", "candidate": "Edema.", "who": f"JOHN DOE {k % 2}"}
        for k in range(8)
    ]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command("evaluate", table, "-m", "bleu-1", "--by", "who", "-o", tmp_path / "out")
    assert "JOHN DOE" in report(tmp_path / "out").path.read_text()
    numbers = report(tmp_path / "out", texts=False).path
    assert "JOHN" not in numbers.read_text()
    assert "group 2" in numbers.read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda record, content: record["key"].update(format="../../../etc/passwd"),
        lambda record, content: content.clear(),
        lambda record, content: content["frames"].clear(),
        lambda record, content: [row.pop("metric") for row in content["frames"]["summary"]],
    ],
)
def test_a_folder_that_was_written_by_hand_is_named(tmp_path, change):
    """Also where its digests were computed again."""
    table = tmp_path / "studies.jsonl"
    table.write_text(json.dumps({"id": "1", "reference": "Edema.", "candidate": "No."}) + "\n")
    command("evaluate", table, "-m", "bleu-1", "-o", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    change(record, content)
    (tmp_path / "out" / "result.json").write_text(json.dumps(content))
    record["results"]["result.json"] = file_digest(tmp_path / "out" / "result.json")
    (tmp_path / "out" / "run.json").write_text(json.dumps(record))
    with pytest.raises((ChecksumMismatch, InvalidTable)):
        report(tmp_path / "out")
    with contextlib.suppress(ChecksumMismatch, InvalidTable):
        methods(tmp_path / "out")
