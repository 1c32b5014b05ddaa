"""From a table of studies to altered films, and from reports of them to what they say."""

import csv
import json

import numpy as np
import pydicom
import pytest
from PIL import Image

from tests.evaluation.samples import write_table
from tests.pages.conftest import payload_of, text_of
from vlscore.data import ImagePolicy, read_image
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import ALTERATIONS, AuditSettings, audit_make, audit_read, open_audited
from vlscore.evaluation.audit.audit_settings import (
    BLANK,
    ELSEWHERE,
    HARMLESS,
    HIDDEN,
    MIRRORED,
    ORIGINAL,
    OTHER,
)
from vlscore.evaluation.audit.grounding import findings_frame, verdict_of, whole
from vlscore.pages import report
from vlscore.stats import Interval

COUNT = 24
SWAPPED = {"left": "right", "right": "left"}


def reference_of(k):
    """Effusions on one side, cardiomegaly, or nothing."""
    side = ("left", "right")[k // 3 % 2]
    return (f"Small {side} pleural effusion.", "Cardiomegaly.", "Clear lungs.")[k % 3]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    rows = []
    for k in range(COUNT):
        pixels = np.random.default_rng(k).integers(60, 200, (40, 50), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"secret-{k}.png")
        row = {
            "id": f"patient-{k}",
            "image": f"secret-{k}.png",
            "view": "PA",
            "reference": reference_of(k),
            "candidate": reference_of(k),
        }
        rows.append(row)
    rows[3]["boxes"] = [["Effusion", 30, 20, 10, 10]]
    rows[-1]["image"] = "absent.png"
    return write_table(folder / "studies.jsonl", rows)


@pytest.fixture(scope="module")
def made(table, tmp_path_factory):
    return audit_make(open_audited(table), tmp_path_factory.mktemp("audit") / "out")


def films_of(made):
    lines = (made.folder / "key.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_alteration_is_made_and_named_for_the_generator_alone(made):
    films = films_of(made)
    assert {film["alteration"] for film in films} >= {*ALTERATIONS}
    with (made.folder / "films.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["id", "image", "alteration"]
    assert [row["id"] for row in rows] == [film["id"] for film in films]
    assert all((made.folder / row["image"]).is_file() for row in rows)
    # Neither names nor the generator's table say whose film it is.
    shown = (made.folder / "films.csv").read_text() + " ".join(
        path.name for path in (made.folder / "films").iterdir()
    )
    assert "patient" not in shown
    assert "secret" not in shown


def test_originals_keep_their_grey_levels_and_a_box_of_the_table_is_its_region(made, table):
    films = films_of(made)
    for film in films:
        if film["alteration"] == ORIGINAL:
            own = np.asarray(Image.open(made.folder / "films" / f"{film['id']}.png"))
            assert (own == np.asarray(Image.open(film["image"]))).all()
    (boxes,) = [
        f["regions"] for f in films if f["study"] == "patient-3" and f["alteration"] == HIDDEN
    ]
    assert boxes == [[30, 20, 40, 30]]


def test_a_study_without_a_film_is_named_and_no_other_is_lost(made):
    (failure,) = made.failures
    assert (failure.row, failure.id) == (COUNT, f"patient-{COUNT - 1}")
    assert "absent.png" in failure.reason
    assert made.record["studies"] == COUNT - 1


def test_donors_have_the_same_findings_or_none_of_them(made):
    k_of = {f"patient-{k}": k for k in range(COUNT)}
    donors = [film for film in films_of(made) if film["donor"]]
    assert donors
    for film in donors:
        own, other = (k_of[film[name]] % 3 for name in ("study", "donor"))
        assert (own == other) is (film["alteration"] != OTHER)
        assert film["donor"] != film["study"]


def test_a_stopped_call_goes_on_and_gives_the_same_bytes(made, table, tmp_path, monkeypatch):
    from vlscore.evaluation.audit import film_writing as make

    real, written = make.write_film, []

    def stop(grey, path):
        written.append(path)
        if len(written) == 30:
            raise KeyboardInterrupt
        real(grey, path)

    out = tmp_path / "out"
    monkeypatch.setattr(make, "write_film", stop)
    with pytest.raises(KeyboardInterrupt):
        audit_make(open_audited(table), out)
    kept = {path.name for path in (out / "films").glob("*.png")}
    assert len(kept) == 29
    written.clear()
    monkeypatch.setattr(make, "write_film", lambda g, p: (written.append(p), real(g, p)))
    audit_make(open_audited(table), out)
    assert not {path.name for path in written} & kept
    for path in sorted((made.folder / "films").glob("*.png")):
        assert (out / "films" / path.name).read_bytes() == path.read_bytes()
    assert (out / "key.jsonl").read_bytes() == (made.folder / "key.jsonl").read_bytes()
    # Films of other settings are not taken for these.
    again = audit_make(open_audited(table), out, AuditSettings(seed=1), overwrite=True)
    noise = next(f["id"] for f in films_of(again) if f["alteration"] == "noise")
    before = next(f["id"] for f in films_of(made) if f["alteration"] == "noise")
    one, two = (
        np.asarray(Image.open(folder / "films" / f"{id}.png"))
        for folder, id in ((out, noise), (made.folder, before))
    )
    assert not (one == two).all()


def test_worker_processes_write_the_same_films(made, table, tmp_path):
    result = audit_make(open_audited(table), tmp_path / "out", workers=2)
    assert (result.folder / "key.jsonl").read_bytes() == (made.folder / "key.jsonl").read_bytes()
    for film in films_of(made):
        one, other = (each.folder / "films" / f"{film['id']}.png" for each in (made, result))
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("alterations", "lacking"),
    [
        ((), []),
        ((BLANK,), []),
        ((OTHER, "noise"), []),
        ((OTHER, MIRRORED), ["by film", "sides"]),
        ((HIDDEN, "noise"), ["by region"]),
        ((ELSEWHERE,), ["by region"]),
        ((HIDDEN, ELSEWHERE), []),
    ],
)
def test_what_has_nothing_to_be_compared_with_is_named(alterations, lacking):
    notes = AuditSettings(alterations=alterations).notes
    assert len(notes) == len(lacking)
    assert all(what in note for what, note in zip(lacking, notes, strict=True))


def test_dicom_has_the_same_grey_levels_and_nobody_in_its_header(made, table, tmp_path):
    settings = AuditSettings(format="dicom", alterations=(MIRRORED,))
    result = audit_make(open_audited(table), tmp_path / "out", settings)
    films = films_of(result)
    assert {film["alteration"] for film in films} == {ORIGINAL, MIRRORED}
    for film in films[:4]:
        path = result.folder / "films" / f"{film['id']}.dcm"
        header = pydicom.dcmread(path)
        assert not header.PatientName
        assert not header.PatientID
        assert "patient" not in str(header)
        own = np.asarray(Image.open(film["image"]))
        expected = own if film["alteration"] == ORIGINAL else own[:, ::-1]
        assert (read_image(path).to_uint8() == expected).all()


def rows_of(folder, rows):
    """Write a film of 100 x 80 pixels for each row, and the table; return the opened table."""
    for k, row in enumerate(rows):
        pixels = np.random.default_rng(k).integers(60, 200, (80, 100), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{k}.png")
        row |= {"id": f"s{k}", "image": f"{k}.png", "view": "PA"}
    return open_audited(write_table(folder / "studies.jsonl", rows))


def regions_of(made, alteration=HIDDEN):
    return {
        (film["study"], film["finding"]): film["regions"]
        for film in films_of(made)
        if film["alteration"] == alteration
    }


def test_all_places_of_a_finding_are_hidden_together(tmp_path):
    """A generator that sees the finding in the place that is left would seem not to look."""
    both = [["Effusion", 5, 50, 30, 25], ["Effusion", 60.4, 55, 30, 20], ["Effusion", 70, 50, 5, 9]]
    rows = [
        {"candidate": "Small left effusion. Large right effusion.", "reference": "Left effusion."},
        {"candidate": "Pleural effusion bilaterally.", "reference": "Left effusion."},
        {"candidate": "Left lower lobe opacity. The opacity is new.", "reference": "Clear lungs."},
        {"candidate": "Clear lungs.", "reference": "Left effusion.", "boxes": both},
    ]
    made = audit_make(rows_of(tmp_path, rows), tmp_path / "out")
    found = regions_of(made)
    assert found["s0", "pleural_effusion"] == found["s1", "pleural_effusion"]
    ((left, _, right, _),) = found["s0", "pleural_effusion"]
    assert left < 10 < 90 < right
    ((left, _, _, _),) = found["s2", "opacity"]
    assert left > 50
    # Two of the three boxes overlap, and are one.
    assert found["s3", "pleural_effusion"] == [[5, 50, 35, 75], [60, 50, 90, 75]]
    elsewhere = regions_of(made, ELSEWHERE)["s3", "pleural_effusion"]
    assert [(r - x) * (b - y) for x, y, r, b in elsewhere] == pytest.approx([750, 750], rel=0.02)


def test_the_heart_has_a_region_elsewhere_and_what_has_none_is_named(tmp_path):
    rows = [{"reference": "Cardiomegaly."}, {"reference": "Pulmonary edema. Cardiomegaly."}]
    made = audit_make(rows_of(tmp_path, rows), tmp_path / "out")
    assert set(regions_of(made, ELSEWHERE)) == {("s0", "cardiomegaly"), ("s1", "cardiomegaly")}
    (note,) = [each for each in made.notes if "elsewhere" in each]
    assert "that of 1 finding," in note
    assert note.endswith("edema (1)")


def test_boxes_that_are_not_on_the_film_are_refused_and_unknown_labels_named(tmp_path):
    """Boxes in pixels of a larger copy of the film would hide the wrong place."""
    rows = [
        {"boxes": [["Effusion", 300, 200, 100, 90]]},
        {"boxes": [["Effusion", 70, 60, 31, 20], ["Something else", 1, 1, 5, 5]]},
        {"boxes": [["Effusion", 70, 60, 0, 20]]},
        {"boxes": [["Effusion", 70]]},
    ]
    made = audit_make(rows_of(tmp_path, rows), tmp_path / "out")
    assert regions_of(made) == {("s1", "pleural_effusion"): [[70, 60, 100, 80]]}
    reasons = {failure.id: failure.reason for failure in made.failures}
    assert set(reasons) == {"s0", "s2", "s3"}
    assert "(300, 200) to (400, 290) is not on the film of 100 x 80 pixels" in reasons["s0"]
    assert any(each.endswith("Something else (1)") for each in made.notes)
    # A study that fails leaves no film behind.
    with (made.folder / "films.csv").open(newline="") as stream:
        named = {row["image"].partition("/")[2] for row in csv.DictReader(stream)}
    assert {path.name for path in (made.folder / "films").glob("*.png")} == named


def test_films_of_files_that_were_replaced_are_made_anew(tmp_path):
    table = rows_of(tmp_path, [{"reference": "Edema."}, {"reference": "Edema."}])
    audit_make(table, tmp_path / "out")
    other = np.random.default_rng(9).integers(60, 200, (80, 100), dtype=np.uint8)
    Image.fromarray(other).save(tmp_path / "0.png")
    with pytest.raises(InvalidSetting, match="has been replaced"):
        audit_make(table, tmp_path / "out")
    made = audit_make(table, tmp_path / "out", overwrite=True)
    film = films_of(made)[0]["id"]
    assert (np.asarray(Image.open(made.folder / "films" / f"{film}.png")) == other).all()


def write_reports(made, path, report_of):
    """Reports of a generator: a function of the key of a film."""
    rows = [{"id": f["id"], "candidate": report_of(f)} for f in films_of(made)]
    return write_table(path, rows)


def looks(film):
    """What a generator writes that sees each film as it is."""
    if film["alteration"] == BLANK:
        return "No film."
    shown = reference_of(int((film["donor"] or film["study"]).rpartition("-")[2]))
    if film["alteration"] == HIDDEN:
        return "Clear lungs."
    if film["alteration"] == MIRRORED:
        for side, other in SWAPPED.items():
            if side in shown:
                return shown.replace(side, other)
    return shown


def by_heart(film):
    """What a generator writes that knows the study and never looks."""
    return reference_of(int(film["study"].rpartition("-")[2]))


def test_a_generator_that_looks_and_one_that_does_not_are_told_apart(made, tmp_path):
    paths = {
        name: write_reports(made, tmp_path / f"{name}.jsonl", report)
        for name, report in (("looks", looks), ("heart", by_heart))
    }
    result = audit_read(made.folder, list(paths.values()), tmp_path / "out")
    found = result.frame("findings").set_index(["generator", "finding"])
    for name, truth in (("looks", 1.0), ("heart", 0.0)):
        of_all = found.loc[(name, "all findings")]
        assert of_all["grounding_region"] == of_all["grounding_film"] == truth
        assert of_all["grounding_region.low"] <= truth <= of_all["grounding_region.high"]
    generators = result.frame("generators").set_index("generator")
    assert generators.loc["looks", "side"] == 1.0
    assert generators.loc["heart", "side"] == 0.0
    assert generators.loc["looks", "findings_on_blank"] == 0.0
    assert generators.loc["heart", "findings_on_blank"] == pytest.approx(
        sum(k % 3 < 2 for k in range(COUNT - 1)) / (COUNT - 1)
    )
    assert (generators["steadiness"] == 1.0).all()
    assert "reads its findings" in generators.loc["looks", "verdict"]
    assert "without looking" in generators.loc["heart", "verdict"]
    assert not result.failures


def test_only_the_region_of_the_own_side_counts(tmp_path):
    """The hidden region is of the reference: a finding on the other side has not lost its own."""
    rows = [{"reference": "Left pleural effusion."} for _ in range(3)]
    made = audit_make(rows_of(tmp_path, rows), tmp_path / "out")
    found = {}
    for side in ("left", "right", "bilateral"):
        reports = write_reports(
            made, tmp_path / f"{side}.jsonl", lambda f, side=side: f"{side} pleural effusion."
        )
        findings = audit_read(made.folder, [reports], tmp_path / side).frame("findings")
        found[side] = int(findings["n_region"][0])
    assert found == {"left": 3, "right": 0, "bilateral": 3}


def test_the_page_shows_what_changed_and_speaks_of_no_errors(made, tmp_path):
    """Reports of two films differ; neither is the truth of the other."""
    path = write_reports(made, tmp_path / "looks.jsonl", looks)
    audit_read(made.folder, [path], tmp_path / "out")
    page = report(tmp_path / "out").path
    assert page.read_text(encoding="utf-8").count("looks reads its findings") == 1
    (run,) = payload_of(page)["runs"]
    cases = run["list"]
    rows = {id: k for k, id in enumerate(cases["values"]["id"])}
    for film in films_of(made):
        if film["alteration"] == HIDDEN:
            k = rows[film["id"]]
            assert cases["values"]["gone"][k] == film["finding"].replace("_", " ")
            (block,) = cases["cases"][k]
            assert "errors" not in block
            (_, first), (_, changed) = block["texts"]
            assert text_of(first) == looks({**film, "alteration": ORIGINAL})
            assert text_of(changed) == "Clear lungs."
            assert any("removed" in piece[1] for piece in first if not isinstance(piece, str))
    titles = [each["title"] for each in run["forests"]]
    assert titles == [
        "looks: grounding, where the region is covered",
        "looks: grounding, where another film is shown",
    ]


def test_films_without_a_report_are_rows_of_failures(made, tmp_path):
    path = write_reports(made, tmp_path / "some.jsonl", looks)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[5:]) + '{"id": "unknown", "candidate": "x"}\n')
    result = audit_read(made.folder, [f"mine={path}"], tmp_path / "out")
    assert [(f.row, f.reason) for f in result.failures] == [("mine", "the film has no report")] * 5
    assert any("1 rows have no id of a film" in note for note in result.notes)


def test_folders_and_tables_of_something_else_are_refused(made, table, tmp_path):
    reports = write_reports(made, tmp_path / "r.jsonl", looks)
    with pytest.raises(InvalidSetting, match="vlscore audit make"):
        audit_read(tmp_path, [reports], tmp_path / "out")
    with pytest.raises(InvalidTable, match="no row has the id of a film"):
        audit_read(made.folder, [table], tmp_path / "out")
    with pytest.raises(InvalidSetting, match="no alteration is called"):
        AuditSettings(alterations=("bent",))
    with pytest.raises(InvalidSetting, match="one encoder"):
        audit_make(open_audited(table), tmp_path / "out", image_policy=ImagePolicy.named("authors"))
    # A path that is no table is a mistake of the user.
    for path in (tmp_path / "absent.jsonl", made.folder):
        with pytest.raises(InvalidTable, match=path.name):
            audit_read(made.folder, [f"mine={path}"], tmp_path / "out")


def test_harmless_and_hidden_films_differ_as_named(made):
    films = films_of(made)
    of = {}
    for film in films:
        pixels = np.asarray(Image.open(made.folder / "films" / f"{film['id']}.png"))
        of.setdefault(film["study"], {})[film["alteration"], film["finding"]] = (film, pixels)
    for own in of.values():
        _, first = own[ORIGINAL, None]
        assert (own[MIRRORED, None][1] == first[:, ::-1]).all()
        for kind in HARMLESS:
            assert np.abs(own[kind, None][1].astype(int) - first).mean() > 0
        for (alteration, _), (film, pixels) in own.items():
            if alteration in (HIDDEN, ELSEWHERE):
                outside = np.ones(first.shape, bool)
                for left, top, right, bottom in film["regions"]:
                    outside[top:bottom, left:right] = False
                assert (pixels[outside] == first[outside]).all()


@pytest.mark.parametrize(
    ("region", "film", "verdict"),
    [
        ((20, 0.8, 0.6, 0.9), (20, 0.9, 0.7, 1.0), "reads"),
        ((20, 0.3, 0.1, 0.5), (20, 0.9, 0.7, 1.0), "reads in part"),
        # It goes with another film, so that it is not written without looking.
        ((20, 0.1, -0.1, 0.3), (20, 0.9, 0.7, 1.0), "changes with the film"),
        ((20, 0.1, -0.1, 0.3), (20, 0.1, -0.1, 0.3), "does not look"),
        ((20, 0.1, -0.1, 0.3), (3, 0.9, 0.7, 1.0), "does not look"),
        ((20, 0.3, -0.2, 0.7), (20, 0.9, 0.7, 1.0), "changes with the film"),
        ((3, 1.0, 0.2, 1.0), (20, 0.9, 0.7, 1.0), "changes with the film"),
        ((3, 1.0, 0.2, 1.0), (20, 0.0, -0.2, 0.2), "does not look"),
        ((3, 1.0, 0.2, 1.0), (9, 0.9, 0.7, 1.0), "undecided"),
    ],
)
def test_only_a_region_says_that_a_finding_is_read(region, film, verdict):
    record = {
        "n_region": region[0],
        "grounding_region": Interval(*region[1:]),
        "adjusted_p_region": 0.001,
        "n_film": film[0],
        "grounding_film": Interval(*film[1:]),
        "adjusted_p_film": 0.001,
    }
    assert verdict_of(record) == verdict


def test_no_finding_of_many_is_read_by_chance():
    """Of 12 findings that go as often with their region as with another, none is read.

    The Benjamini-Hochberg procedure then has any false one in at most 5 % of the audits; 12
    intervals of 95 % in a quarter of them.
    """
    rng, found = np.random.default_rng(5), 0
    for _ in range(100):
        gone = rng.random((2, 12, 40)) < 0.3
        rows = [
            (f"s{k}", f"finding {name}", float(gone[0, name, k]), float(gone[1, name, k]))
            for name in range(12)
            for k in range(40)
        ]
        records = findings_frame({"region": rows, "film": [], "blank": []})
        found += any(verdict_of(record).startswith("reads") for record in records[1:])
    assert found <= 12


@pytest.mark.parametrize("studies", [4, 4000])
def test_the_share_of_equal_first_reports_is_of_all_studies(studies):
    texts = ["No acute findings."] * (studies // 4)
    texts += [f"Report {k}." for k in range(studies - len(texts))]
    texts[-1] = texts[-2]
    expected = (2 if studies == 4 else studies // 4 + 2) / studies
    nothing = Interval(np.nan, np.nan, np.nan)
    effects = {name: [] for name in ("side", "blank", "steadiness")}
    assert whole(effects, texts, nothing)["same_text"] == expected
