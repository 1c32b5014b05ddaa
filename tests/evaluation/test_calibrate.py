"""C measured on a table: against areas computed one by one, and tables that allow no measure."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting, InvalidTable, WeightsNotFound
from vlscore.evaluation import calibrate, write_constant
from vlscore.metrics import triangle_area

WORDS = [
    "small",
    "large",
    "left",
    "right",
    "effusion",
    "nodule",
    "edema",
    "normal",
    "heart",
    "lungs",
    "clear",
    "tube",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Forty studies; one image is missing, one reference is empty."""
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    records = []
    for k in range(40):
        pixels = rng.integers(0, 255, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{k}.png")
        texts = [" ".join(rng.choice(WORDS, 4)) for _ in range(2)]
        record = {"id": f"s{k}", "image": f"{k}.png"}
        records.append({**record, "reference": texts[0], "candidate": texts[1]})
    records[7]["image"] = "absent.png"
    records[9]["reference"] = "untokenizable"
    path = folder / "studies.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _areas(table, candidates):
    records = [json.loads(line) for line in table.read_text().splitlines()]
    encoder = HashEncoder()
    used = [k for k in range(40) if k not in (7, 9)]
    images = encoder.encode_images([table.parent / f"{k}.png" for k in used])
    references = encoder.encode_reports([records[k]["reference"] for k in used])
    given = encoder.encode_reports([candidates(records, k) for k in used])
    return triangle_area(images, given, references).numpy()


def test_C_is_the_largest_area_and_quantiles_lie_below(table):
    found = calibrate(HashEncoder(), table, quantiles=(0.9, 0.5))
    areas = _areas(table, lambda records, k: records[k]["candidate"])
    assert pytest.approx(areas.max(), rel=1e-6) == found.C
    assert list(found.quantiles) == [0.5, 0.9]
    for share, interval in found.quantiles.items():
        assert interval.estimate == pytest.approx(np.quantile(areas, share), rel=1e-6)
        assert interval.low <= interval.estimate <= interval.high
    assert found.quantiles[0.5].low < found.quantiles[0.5].high
    assert (found.studies, found.triangles) == (38, 38)
    assert [row.id for row in found.failed] == ["s7", "s9"]
    assert "absent.png" in found.failed[0].reason
    assert found.signature.get("enc").startswith("hash@")
    assert "largest (C)" in found.text_table().text(80)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_interval_is_that_of_studies_drawn_again(table):
    areas = _areas(table, lambda records, k: records[k]["candidate"])
    rng = np.random.default_rng(3)
    drawn = [np.median(rng.choice(areas, len(areas))) for _ in range(3_000)]
    interval = calibrate(HashEncoder(), table, resamples=3_000).quantiles[0.5]
    spread = areas.std() / 10
    assert interval.low == pytest.approx(np.quantile(drawn, 0.025), abs=spread)
    assert interval.high == pytest.approx(np.quantile(drawn, 0.975), abs=spread)


def test_references_of_others_stand_for_candidates(table):
    one = calibrate(HashEncoder(), table, others=1, seed=4)
    again = calibrate(StudyEmbedder(HashEncoder(), batch_size=3), table, others=1, seed=4)
    assert (one.C, one.quantiles) == (again.C, again.quantiles)
    assert calibrate(HashEncoder(), table, others=1, seed=5).quantiles != one.quantiles
    many = calibrate(HashEncoder(), table, others=30, seed=4)
    assert (many.studies, many.triangles) == (38, 38 * 30)
    assert many.C >= one.C
    assert "30 references of other studies" in many.candidates
    # No study is its own other: such a triangle would have no area.
    assert many.quantiles[0.5].estimate > 0


def test_no_candidates_are_needed_where_others_stand_for_them(table, tmp_path):
    records = [json.loads(line) for line in table.read_text().splitlines()]
    for record in records:
        del record["candidate"]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    root = table.parent
    expected = calibrate(HashEncoder(), table, others=2)
    there = open_studies(path, needs=(), image_root=root)
    assert calibrate(HashEncoder(), there, others=2).C == expected.C
    with pytest.raises(InvalidTable, match="no column candidate"):
        calibrate(HashEncoder(), there)


def test_tables_that_allow_no_measure_are_refused(table, tmp_path):
    records = [json.loads(line) for line in table.read_text().splitlines()][:3]
    alike = tmp_path / "alike.jsonl"
    lines = [json.dumps({**record, "reference": "Clear  lungs."}) + "\n" for record in records]
    alike.write_text("".join(lines))
    there = open_studies(alike, needs=(), image_root=table.parent)
    with pytest.raises(InvalidTable, match="all references that can be used are equal"):
        calibrate(HashEncoder(), there, others=1)
    with pytest.raises(InvalidTable, match=r"no row can be embedded; row 1: .*0\.png"):
        calibrate(HashEncoder(), alike, others=1)
    with pytest.raises(InvalidSetting, match="quantiles"):
        calibrate(HashEncoder(), table, quantiles=(0.5, 1.0))
    with pytest.raises(InvalidSetting, match="others"):
        calibrate(HashEncoder(), table, others=-1)


def test_a_card_gets_C_and_keeps_the_rest(table, tmp_path):
    found = calibrate(HashEncoder(), table)
    card = tmp_path / "card.json"
    card.write_text(json.dumps({"name": "small", "C": None, "settings": {"dim": 8}}))
    assert write_constant(tmp_path, found) == card
    content = json.loads(card.read_text())
    assert content["C"] == found.C
    assert content["settings"] == {"dim": 8}
    assert content["name"] == "small"
    assert "38 studies of studies.jsonl" in content["C_source"]
    assert content["calibration"]["quantiles"]["0.5"]["estimate"] == (found.quantiles[0.5].estimate)
    with pytest.raises(WeightsNotFound, match=r"no card\.json"):
        write_constant(tmp_path / "absent", found)
    card.write_text("[1")
    with pytest.raises(IncompatibleCheckpoint, match=r"card\.json"):
        write_constant(tmp_path, found)


def test_others_are_drawn_alike_where_nearly_all_references_are_equal():
    """Drawing again until no draw hits would take some 10^5 rounds here."""
    from vlscore.evaluation.calibration import _draw_others

    texts = ["normal"] * 49_999 + ["effusion"]
    drawn = _draw_others(texts, 2, 0, "table")
    assert (drawn[:-1] == 49_999).all()
    assert (drawn[-1] < 49_999).all()


def test_every_other_study_is_as_likely_as_the_next(monkeypatch):
    module = sys.modules[calibrate.__module__]

    # No round of drawing again: all that hit their own text are drawn among the others.
    monkeypatch.setattr(module, "_ROUNDS", 0)
    texts = ["a", "b", "a", "c", "b", "a", "d"]
    drawn = module._draw_others(texts, 30_000, 1, "table")
    for study, text in enumerate(texts):
        counts = np.bincount(drawn[study], minlength=len(texts))
        others = [other != text for other in texts]
        assert (counts[np.logical_not(others)] == 0).all()
        expected = 30_000 / sum(others)
        # Five standard deviations of a count.
        assert np.abs(counts[others] - expected).max() < 5 * expected**0.5
