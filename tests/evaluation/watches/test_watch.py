"""A store of days: what is added, compared, refused, and what is never stored."""

import json
import os
import shutil
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from PIL import Image

from tests.claims.test_run import SeeingEncoder
from tests.claims.test_run import write as write_studies
from tests.doubles import HashEncoder
from tests.evaluation.samples import write_table
from tests.killed_process import Killed, killed_at
from tests.pages.conftest import payload_of
from vlscore.core import sole_writer
from vlscore.embedding import StudyEmbedder
from vlscore.errors import ChecksumMismatch, FolderInUse, InvalidSetting, InvalidTable
from vlscore.evaluation import WatchSettings, claims, watch, watched_rows
from vlscore.metrics import Metric, Scorer
from vlscore.pages import report
from vlscore.stats import evidence_of_change, sequential_p_values

FIRST = date(2026, 3, 2)
SETTINGS = WatchSettings(rate=0.9, reference_days=8, reference_reports=50, weekends_alike=True)
DAYS, CHANGE = 31, 22
QUIET, FALSE = ("Clear lungs.", "Small left pleural effusion."), "Cardiomegaly."
REPORTS = 30


def name_of(day):
    return (FIRST + timedelta(day)).isoformat()


def rows_of(day, wrong=0.1, references=True, count=REPORTS):
    """A day whose candidates state cardiomegaly falsely in a share of the reports."""
    rng = np.random.default_rng(day)
    rows = []
    for k in range(count):
        text = QUIET[int(rng.random() < 0.3)]
        row = {"id": f"MUELLER{day}x{k}", "reference": text if references else None}
        rows.append({**row, "candidate": f"{text} {FALSE}" if rng.random() < wrong else text})
    return rows


def day_table(folder, day, **more):
    folder.mkdir(exist_ok=True)
    return write_table(folder / f"{name_of(day)}.jsonl", rows_of(day, **more))


def tables(folder, days, change=None, to=0.9, **more):
    """A table a day; from the day `change` on, the share of false statements is `to`."""
    is_quiet = [change is None or day < change for day in range(days)]
    return [
        day_table(folder, day, **({} if quiet else {"wrong": to}), **more)
        for day, quiet in enumerate(is_quiet)
    ]


def run(paths, store, scorer=None, **more):
    return watch(paths, store, scorer, settings=SETTINGS, **more)


def stream(result, name):
    (found,) = [r for r in result.frame("streams").to_dict("records") if r["stream"] == name]
    return found


def bytes_of(store):
    """Name -> bytes of every file; of run.json what names no time."""
    found = {
        str(path.relative_to(store)): path.read_bytes()
        for path in store.rglob("*")
        if path.is_file() and path.name not in (".lock", "run.json")
    }
    record = json.loads((store / "run.json").read_text())
    return {**found, "run.json": (record["key"], record["results"], record["line"])}


@pytest.fixture(scope="module")
def drifted(tmp_path_factory):
    """The tables of some weeks, of which the last days have many errors, and their store."""
    place = tmp_path_factory.mktemp("drifted")
    paths = tables(place / "days", DAYS, change=CHANGE)
    return paths, run(paths, place / "store")


def test_a_change_gives_an_alarm_that_says_what_and_since_when(drifted):
    paths, result = drifted
    assert result.record["alarm"]
    assert "ALARM" in result.record["line"]
    days = result.frame("days")
    assert not days["alarm"][:CHANGE].any()
    assert days["alarm"].iloc[-1]
    assert (days["evidence"][:8] == 0).all()
    assert days["in_reference"].sum() == 8
    # Means, counted from the tables.
    stated = [
        [FALSE in row["candidate"] for row in map(json.loads, path.read_text().splitlines())]
        for path in paths
    ]
    found = stream(result, "Cardiomegaly")
    state, began = found["state"].split(", ")
    assert state == "ALARM"
    assert name_of(CHANGE - 5) <= began <= name_of(CHANGE + 1)
    assert found["reference"] == pytest.approx(np.mean(stated[:8]))
    assert found["lately"] == pytest.approx(np.mean(stated[-8:]))
    assert found["reference.low"] <= found["reference"] <= found["reference.high"]
    months = result.frame("months").set_index(["month", "stream"])
    march = [day for day, name in zip(stated, days["day"], strict=True) if name < "2026-04"]
    assert months.loc[("2026-03", "Cardiomegaly"), "mean"] == pytest.approx(np.mean(march))
    assert stream(result, "judge.significant")["alarm_if"] == "rises"
    assert "ALARM" in stream(result, "judge")["state"]
    assert stream(result, "Edema")["state"] == ""
    rows = watched_rows(result.folder)
    assert len(rows) == DAYS * REPORTS
    by_day = rows.groupby("day")["Cardiomegaly"].mean()
    assert by_day.tolist() == pytest.approx([np.mean(day) for day in stated])


def test_evidence_is_that_of_the_days_with_the_weights_of_the_groups(drifted):
    _, result = drifted
    rows = watched_rows(result.folder).groupby("day")["judge"]
    streams = list(result.frame("streams")["stream"])
    column = streams.index("judge")
    counts, sums = np.ones((DAYS, len(streams))), np.ones((DAYS, len(streams)))
    counts[:, column], sums[:, column] = rows.count(), rows.sum()
    p = sequential_p_values(counts, sums, ["day"] * DAYS)[8:, [column]]
    found = stream(result, "judge")
    assert found["weight"] == pytest.approx(1 / 3)  # errors, scores, findings; one score
    assert found["evidence"] == pytest.approx(evidence_of_change(p, [-1])[-1, 0] / 3)
    assert result.frame("streams")["weight"].sum() == pytest.approx(1)


def test_without_a_change_there_is_no_alarm(tmp_path):
    result = run(tables(tmp_path / "days", 20), tmp_path / "store")
    assert not result.record["alarm"]
    assert "no alarm" in result.record["line"]


def test_weekends_are_compared_with_one_another(tmp_path):
    """Many errors on every weekend are no change, unless all days are taken for alike."""
    paths = [
        day_table(tmp_path / "days", d, wrong=0.9 if d % 7 in (5, 6) else 0.1) for d in range(24)
    ]
    kinds = {}
    for alike in (False, True):
        settings = WatchSettings(**{**vars(SETTINGS), "weekends_alike": alike})
        watch(paths, tmp_path / f"{alike}", Scorer(metrics="rouge-l"), settings=settings)
        kinds[alike] = stream(watch([], tmp_path / f"{alike}"), "Cardiomegaly")["evidence"]
    assert kinds[True] != kinds[False]


def test_fewer_errors_are_shown_and_give_no_alarm(tmp_path):
    paths = [
        day_table(tmp_path / "days", d, wrong=0.6 if d < CHANGE else 0.0) for d in range(CHANGE + 8)
    ]
    result = run(paths, tmp_path / "store")
    for name in ("judge", "judge.significant"):
        assert stream(result, name)["state"].startswith("better")
    # The share of a finding has no better side.
    assert stream(result, "Cardiomegaly")["alarm_if"] == "changes"
    assert "judge" not in result.record["line"]


def test_one_day_after_the_other_is_the_same_as_all_at_once(drifted, tmp_path):
    paths, result = drifted
    for path in paths[:5]:
        run([path], tmp_path / "store")
    run(paths[5:], tmp_path / "store")
    assert bytes_of(tmp_path / "store") == bytes_of(result.folder)


def test_a_day_again_changes_nothing_and_other_content_is_refused(tmp_path):
    paths = tables(tmp_path / "days", 4)
    store = tmp_path / "store"
    run(paths, store)
    before = bytes_of(store)
    again = run([paths[2]], store)
    assert again.call_notes[0].endswith("with the same content; nothing was scored")
    assert bytes_of(store) == before
    # Settings of a call that scores nothing are not taken over silently.
    otherwise = watch([paths[2]], store, settings=replace(SETTINGS, rate=0.5))
    assert "rate: 0.9 there, 0.5 now" in otherwise.call_notes[0]
    assert bytes_of(store) == before
    corrected = day_table(tmp_path / "corrected", 2, wrong=0.5)
    with pytest.raises(
        InvalidSetting, match=r"2026-03-04 .* other content \(30 reports\).*--overwrite"
    ):
        run([corrected], store)
    assert bytes_of(store) == before
    replaced = run([corrected], store, overwrite=True)
    assert "was replaced" in replaced.call_notes[0]
    run([*paths[:2], corrected, paths[3]], tmp_path / "other")
    assert bytes_of(store) == bytes_of(tmp_path / "other")


def test_the_reports_of_one_day_are_no_other_day(drifted, tmp_path):
    paths, result = drifted
    store = shutil.copytree(result.folder, tmp_path / "store")
    with pytest.raises(InvalidSetting, match="2026-06-01 has the same reports as 2026-03-02"):
        run([f"2026-06-01={paths[0]}"], store)
    with pytest.raises(InvalidSetting, match="which day is it"):
        run([shutil.copy(paths[0], tmp_path / "today.jsonl")], store)
    with pytest.raises(InvalidSetting, match="of one day"):
        run([paths[0], shutil.copy(paths[0], tmp_path / paths[0].name)], store)


def test_days_without_reports_and_missing_days(tmp_path):
    paths = tables(tmp_path / "days", 12)
    paths[2].write_text("")
    paths[4].unlink()
    folder = tmp_path / name_of(4)
    folder.mkdir()
    result = run([*paths[:4], folder, *paths[5:9], paths[11]], tmp_path / "store")
    assert f"{name_of(2)} has no reports" in result.notes
    assert any("2 days since" in note and name_of(10) in note for note in result.notes)
    days = result.frame("days").set_index("day")
    assert days.loc[name_of(2), "reports"] == days.loc[name_of(4), "reports"] == 0
    assert days["in_reference"].sum() == 10  # eight of them with reports
    # What was empty may be filled; a day that comes late is compared as the latest one.
    day_table(tmp_path / "days", 2)
    late = run([paths[2], paths[10]], tmp_path / "store")
    assert late.frame("days").set_index("day").loc[name_of(2), "reports"] == REPORTS
    assert any("compared as the latest" in note for note in late.notes)


def test_other_metrics_and_settings_are_refused_until_a_new_reference_period(drifted, tmp_path):
    paths, result = drifted
    store = shutil.copytree(result.folder, tmp_path / "store")
    new = day_table(tmp_path / "days", DAYS)
    with pytest.raises(InvalidSetting, match=r"otherwise than .*metrics.*rouge-l.*--restart"):
        run([new], store, Scorer(metrics="rouge-l"))
    with pytest.raises(InvalidSetting, match=r"rate: 0\.9 there, 0\.5 now"):
        watch([new], store, settings=WatchSettings(**{**vars(SETTINGS), "rate": 0.5}))
    with pytest.raises(InvalidSetting, match="is in the store, and a new reference period"):
        run([paths[5]], store, restart=True)
    assert bytes_of(store) == bytes_of(result.folder)
    begun = run([new], store, Scorer(metrics="rouge-l"), restart=True)
    assert begun.record["line"].startswith(f"{name_of(DAYS)}: reference period, 1 of 8 days")
    assert not begun.record["alarm"]
    assert len(begun.frame("days")) == DAYS + 1
    assert "rouge-l" in set(begun.frame("streams")["stream"])
    # Killed behind the day and given again, it is the same; and the next day goes on.
    before = bytes_of(store)
    run([new], store, Scorer(metrics="rouge-l"), restart=True)
    assert bytes_of(store) == before
    run([day_table(tmp_path / "days", DAYS + 1)], store, Scorer(metrics="rouge-l"))


def test_another_encoder_is_refused(tmp_path):
    images = [str(tmp_path / f"{k}.png") for k in range(3)]
    for k, path in enumerate(images):
        Image.fromarray((np.eye(8) * 9 + 40 * k).astype(np.uint8)).save(path)
    paths = []
    for day in (0, 1):
        rows = [{**r, "image": images[k]} for k, r in enumerate(rows_of(day, count=3))]
        paths.append(write_table(tmp_path / f"{name_of(day)}.jsonl", rows))
    one, other = HashEncoder(), SeeingEncoder()
    run([paths[0]], tmp_path / "store", Scorer(one, metrics="clipscore,judge"))
    assert watched_rows(tmp_path / "store")["clipscore"].notna().all()
    with pytest.raises(InvalidSetting, match=r"clipscore.*weights and version"):
        run([paths[1]], tmp_path / "store", Scorer(other, metrics="clipscore,judge"))


def test_days_without_references_are_watched_by_what_needs_none(tmp_path):
    paths = tables(tmp_path / "days", DAYS, change=CHANGE, references=False)
    result = run(paths, tmp_path / "store")
    judge = stream(result, "judge")
    assert judge["state"] == "not watched"
    assert judge["weight"] == 0
    assert result.record["alarm"]
    assert "share of reports that state" in result.record["line"]
    assert not result.failures
    # A table whose column is absent, not empty.
    rows = [{k: v for k, v in r.items() if k != "reference"} for r in rows_of(DAYS)]
    more = run([write_table(tmp_path / f"{name_of(DAYS)}.csv", rows)], tmp_path / "store")
    assert more.frame("days")["references"].sum() == 0


class Words(Metric):
    """Number of words of the candidate."""

    name = "words"
    description = "words of the candidate"
    higher_is_better = False
    bounds = (0.0, None)
    uses_reference = False

    def value(self, candidate, reference):
        return float(len(candidate.split()))


def test_a_metric_of_ones_own_is_watched(tmp_path):
    paths = tables(tmp_path / "days", DAYS, change=CHANGE, to=1.0)
    result = run(paths, tmp_path / "store", Scorer(metrics=[Words()]))
    found = stream(result, "words")
    assert (found["group"], found["alarm_if"]) == ("scores", "rises")
    assert found["state"].startswith("ALARM")
    texts = [row["candidate"] for row in rows_of(0)]
    first = watched_rows(result.folder).query(f"day == '{name_of(0)}'")
    assert first["words"].tolist() == [len(text.split()) for text in texts]


def test_a_metric_that_is_fitted_to_the_day_is_refused(tmp_path):
    with pytest.raises(InvalidSetting, match=r"cider-d.*two days cannot be compared"):
        run(tables(tmp_path / "days", 1), tmp_path / "store", Scorer(metrics="cider-d"))


def archive(folder, rows, **places):
    """The files of a day as an archive exports them."""
    folder.mkdir()
    for row in rows:
        for role, place in places.items():
            path = folder / place.format(row["id"])
            path.parent.mkdir(parents=True, exist_ok=True)
            if role == "image":
                Image.fromarray(np.eye(8, dtype=np.uint8) * 200).save(path, "PNG")
            elif row.get(role) is not None:
                path.write_text(row[role], encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "places",
    [
        {"candidate": "{}.txt"},
        {"candidate": "generated/{}.txt", "reference": "reports/{}.txt"},
        {"candidate": "{}_gen.txt", "reference": "{}_ref.txt", "image": "{}.png"},
        {"candidate": "{}/candidate.txt", "reference": "{}/reference.txt", "image": "{}/1.dcm"},
    ],
)
def test_a_folder_is_the_same_as_its_table(tmp_path, places):
    rows = rows_of(0)
    folder = archive(tmp_path / name_of(0), rows, **places)
    scorer = Scorer(HashEncoder(), metrics="judge,clipscore")
    found = run([folder], tmp_path / "store", scorer, keep=["id"])
    table = [
        {k: v for k, v in row.items() if k in ("id", *places)}
        | ({"image": str(folder / places["image"].format(row["id"]))} if "image" in places else {})
        for row in sorted(rows, key=lambda row: row["id"])
    ]
    path = write_table(tmp_path / f"{name_of(0)}.jsonl", table)
    expected = run([path], tmp_path / "other", scorer, keep=["id"])
    ours, theirs = (
        watched_rows(r.folder).sort_values("id").drop(columns="row").reset_index(drop=True)
        for r in (found, expected)
    )
    assert ours.equals(theirs)
    assert not found.failures
    assert found.frame("days")["references"][0] == (REPORTS if "reference" in places else 0)


def test_of_a_folder_nothing_is_left_out_silently(tmp_path):
    folder = archive(
        tmp_path / name_of(0), rows_of(0, count=3),
        candidate="generated/{}.txt", reference="reports/{}.txt",
    )  # fmt: skip
    (folder / "generated" / "MUELLER0x1.txt").unlink()
    (folder / "generated" / "MUELLER0x2.txt").write_bytes("Erguß".encode("latin-1"))
    Image.fromarray(np.eye(8, dtype=np.uint8)).save(folder / "films.png")
    result = run([folder], tmp_path / "store", Scorer(HashEncoder(), metrics="clipscore"))
    reasons = [reason for _, _, reason in result.failures]
    assert sum("without a generated report" in each for each in reasons) == 2
    assert sum("UTF-8" in each for each in reasons) == 1
    for name in ("x.pdf", "reference/1.txt"):
        other = tmp_path / name[0] / name_of(1)
        (other / name).parent.mkdir(parents=True)
        (other / name).write_text("x")
        with pytest.raises(InvalidTable, match=r"without reports|no generated report"):
            run([other], tmp_path / "store", Scorer(HashEncoder(), metrics="clipscore"))


def test_nothing_of_a_patient_is_stored_or_shown_unless_asked(tmp_path, capsys):
    rows = [{**row, "image": f"{row['id']}.png", "ward": "north"} for row in rows_of(0, count=4)]
    rows[1]["id"] = rows[0]["id"]
    rows[2]["reference"] = {"MUELLER": 1}
    path = write_table(tmp_path / f"{name_of(0)}.jsonl", rows)
    result = run([path], tmp_path / "store", Scorer(HashEncoder(), metrics="judge,clipscore"))
    report(tmp_path / "store")
    failures = [each.reason for each in result.failures]
    assert any("no such file" in each for each in failures)
    assert any("already in row 1" in each for each in failures)
    stored = {p: p.read_bytes() for p in (tmp_path / "store").rglob("*") if p.is_file()}
    page = json.dumps(payload_of(tmp_path / "store" / "report.html")).encode()
    printed = "".join(capsys.readouterr()) + repr(failures)
    for secret in ("MUELLER", "effusion", "Clear lungs", "north"):
        assert not [p for p, content in stored.items() if secret.encode() in content], secret
        assert secret.encode() not in page
        assert secret not in printed
    assert {"id", "ward"}.isdisjoint(watched_rows(tmp_path / "store"))
    kept = run([path], tmp_path / "kept", Scorer(metrics="judge"), keep=["id", "ward"])
    assert watched_rows(kept.folder)["ward"].tolist() == ["north"] * 4
    assert watched_rows(kept.folder)["id"][0] == rows[0]["id"]


def test_claims_that_images_contradict_are_watched(tmp_path):
    fit, _ = write_studies(tmp_path, 1, 160)
    embedder = StudyEmbedder(SeeingEncoder())
    paths = []
    for day in range(3):
        path, _ = write_studies(tmp_path, 2 + day, 40, candidates=True)
        paths.append(path.rename(tmp_path / f"{name_of(day)}.jsonl"))
    claims(paths[0], tmp_path / "fit", embedder, fit=fit, rate=0.2)
    evidence = tmp_path / "fit" / "evidence.npz"
    result = run(paths, tmp_path / "store", evidence=evidence, embedder=embedder)
    judged = claims(paths[0], tmp_path / "judged", embedder, evidence=evidence)
    verdicts = judged.rows("claims.csv").query("report == 'candidate'")
    shares = verdicts.assign(no=verdicts["verdict"] == "contradicted").groupby("id")["no"].mean()
    stored = watched_rows(tmp_path / "store").query(f"day == '{name_of(0)}'")
    assert stored["contradicted claims"].mean() == pytest.approx(shares.mean())
    assert shares.mean() > 0
    assert stream(result, "contradicted claims")["group"] == "errors"
    with pytest.raises(InvalidSetting, match=r"claims: .* now"):
        run([day_table(tmp_path, 3)], tmp_path / "store")


def test_a_store_is_not_made_among_other_files_and_a_damaged_day_is_named(drifted, tmp_path):
    paths, result = drifted
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidSetting, match=r"holds thesis\.txt"):
        run(paths[:1], tmp_path)
    with pytest.raises(InvalidSetting, match="no day yet"):
        watch([], tmp_path / "none")
    store = shutil.copytree(result.folder, tmp_path / "store")
    day = store / "days" / f"{name_of(4)}.parquet"
    day.write_bytes(day.read_bytes()[:200])
    with pytest.raises(ChecksumMismatch, match=rf"{name_of(4)}\.parquet is damaged"):
        watch([], store)
    day.unlink()
    run([paths[4]], store)
    assert len(watch([], store).frame("days")) == DAYS


def test_two_calls_cannot_add_at_once(drifted, tmp_path):
    paths, _ = drifted
    with sole_writer(tmp_path / "store" / "days"), pytest.raises(FolderInUse):
        run(paths[:1], tmp_path / "store")


def test_killed_at_any_operation_no_day_is_lost_and_none_counts_twice(tmp_path, monkeypatch):
    # Without references nothing is scored by `evaluate`, whose folder has tests of its own.
    paths = tables(tmp_path / "days", 2, count=2, references=False)
    scorer = Scorer(metrics="rouge-l")
    run(paths, tmp_path / "whole", scorer)
    expected = bytes_of(tmp_path / "whole")
    run(paths[:1], tmp_path / "first", scorer)
    real = {n: getattr(os, n) for n in ("replace", "unlink", "mkdir", "rmdir")}
    # To wait for the disk is slow, and changes nothing that this process can see.
    real["fsync"] = lambda *_: None
    monkeypatch.setattr(os, "fsync", real["fsync"])
    for kill_at in range(1000):
        store = shutil.copytree(tmp_path / "first", tmp_path / f"store-{kill_at}")
        try:
            with killed_at(monkeypatch, kill_at, real):
                run(paths, store, scorer)
            ended = True
        except Killed:
            ended = False
        run(paths, store, scorer)
        assert bytes_of(store) == expected, f"killed at operation {kill_at}"
        assert sorted(p.name for p in store.iterdir() if p.name.startswith(".")) == [".lock"]
        if ended:
            break
    assert kill_at > 20


def test_the_page_shows_the_course_and_no_single_report(drifted, tmp_path):
    _, result = drifted
    page = report(result.folder, out=tmp_path / "page.html")
    assert not page.holds.is_private
    (view,) = payload_of(page.path)["runs"]
    curves = {each["title"]: each for each in view["curves"]}
    evidence = curves["Evidence for a change: powers of 10"]
    assert evidence["at"] >= date.fromisoformat(name_of(CHANGE)).toordinal()
    assert evidence["series"][0][2][:8] == [None] * 8
    assert curves["Cardiomegaly"]["series"][0][1][0] == FIRST.toordinal()
    assert "Edema" not in curves
    assert view["list"] is None
