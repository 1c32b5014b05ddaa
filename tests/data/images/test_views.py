"""Views are found in headers cheaply and safely: no error, and no word of what a header says."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydicom import Dataset

from tests.data.images.test_refusals import FILES
from tests.data.images.writing import chest, save
from vlscore.data import as_radiograph, projection, read_image, stored_view
from vlscore.embedding.views import choose_views

GREY = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("PA", "frontal"),
        ("ap ", "frontal"),
        ("AP LLD", "frontal"),
        ("RLD", "frontal"),
        ("LLD", "frontal"),
        ("LL", "lateral"),
        ("RL", "lateral"),
        ("Lateral", "lateral"),
        ("LEFT LATERAL", "lateral"),
        ("XTABLE LATERAL", "lateral"),
        ("Left lateral decubitus", "frontal"),
        ("LAO", "unknown"),
        ("plateau", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_what_a_view_position_says(view: str | None, expected: str) -> None:
    assert projection(view) == expected


@pytest.mark.parametrize("view", ["PA", "LL", "LATERAL", "AP AXIAL"])
def test_the_view_of_a_dicom_file_and_of_what_was_read_of_it(tmp_path: Path, view: str) -> None:
    path = save(chest(GREY, ViewPosition=view), tmp_path / "x.dcm")
    assert stored_view(path) == stored_view(str(path)) == view
    assert stored_view(chest(GREY, ViewPosition=view)) == view
    assert stored_view(path.read_bytes()) == view
    assert stored_view(read_image(path)) == view


@pytest.mark.parametrize("view", ["", "Jane^Doe", "JANE DOE", "ZZPART"])
@pytest.mark.filterwarnings("ignore:Invalid value for VR CS")
def test_what_is_no_known_code_is_no_view(tmp_path: Path, view: str) -> None:
    path = save(chest(GREY, ViewPosition=view), tmp_path / "x.dcm")
    assert stored_view(path) is None
    assert read_image(path).provenance.view is None


SPELLINGS = {
    "PA": [
        "PA",
        "pa",
        "P.A.",
        "p.a.",
        "P-A",
        "P/A",
        "P A",
        "postero-anterior",
        "posteroanterior",
        "Postero Anterior",
        "POSTERO_ANTERIOR",
        "posterior-anterior",
        "Posterior to anterior",
        "PA erect",
        "chest PA view",
        "PA_upright",
        "Thorax p.a.",
        "dorsoventral",
    ],
    "AP": [
        "AP",
        "A.P.",
        "antero-posterior",
        "anteroposterior",
        "Anterior-Posterior",
        "AP_horizontal",
    ],
    "LATERAL": [
        "LL",
        "L",
        "LAT",
        "Lat.",
        "lateral",
        "Left Lateral",
        "LEFT_LATERAL",
        "XTABLE LATERAL",
        "latero-lateral",
        "Thorax seitlich",
    ],
    "FRONTAL": ["frontal", "FRONT", "AP/PA", "left lateral decubitus", "LLD"],
    None: ["", "PA and lateral", "AP + LAT", "plateau", "parallel", "Jane Doe", "LAO", "oblique"],
}
SAYS = {"PA": "frontal", "AP": "frontal", "FRONTAL": "frontal", "LATERAL": "lateral"}


@pytest.mark.parametrize(
    ("words", "view"), [(words, view) for view, each in SPELLINGS.items() for words in each]
)
@pytest.mark.filterwarnings("ignore:Invalid value for VR CS")
def test_every_spelling_means_the_same_wherever_it_stands(words: str, view: str | None) -> None:
    """In a table's column, View Position, the meaning of a View Code, a description."""
    expected = SAYS.get(view or "", "unknown")
    assert projection(words) == expected
    for elements in (
        {"ViewPosition": words},
        {"ViewPosition": "", "ViewCodeSequence": _code(words)},
        {"ViewPosition": "", "SeriesDescription": words},
    ):
        assert projection(stored_view(chest(GREY, **elements))) == expected


def test_of_two_images_the_one_that_the_table_calls_frontal_is_chosen() -> None:
    for word in SPELLINGS["PA"]:
        chosen = choose_views(["first", "second"], [word, "AP"], "first-frontal")
        assert chosen.frontal == ["first"]
        assert not chosen.guessed


@pytest.mark.parametrize(
    ("code", "scheme", "expected"),
    [
        ("R-10214", "SRT", "frontal"),
        ("272479007", "SCT", "frontal"),
        ("399348003", "SCT", "frontal"),
        ("R-10206", "SNM3", "frontal"),
        ("399067008", "SCT", "lateral"),
        ("R-10236", "SRT", "lateral"),
        ("399173006", "SCT", "lateral"),
    ],
)
def test_a_view_code_counts_without_its_meaning(code: str, scheme: str, expected: str) -> None:
    """Codes of PS3.16 CID 4010, as pydicom's dictionary has them."""
    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = code, scheme, "???"
    found = stored_view(chest(GREY, ViewPosition="", ViewCodeSequence=[item]))
    assert projection(found) == expected


def test_a_name_beside_a_view_does_not_leave_the_header(tmp_path: Path) -> None:
    path = save(chest(GREY, ViewPosition="PA Jane Doe"), tmp_path / "x.dcm")
    assert stored_view(path) == read_image(path).provenance.view == "PA"


def test_what_is_no_dicom_file_has_no_view(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("PA")
    (tmp_path / "meta-only").write_bytes(b"\0" * 128 + b"DICM")
    for name in ("pipe", "empty", "text", "meta-only", "missing", ".", "bad\0name"):
        assert stored_view(tmp_path / name) is None
    for image in (None, 3, np.eye(3), b"DICM", as_radiograph(np.eye(3))):
        assert stored_view(image) is None


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(sorted(FILES)), st.data())
@example("raw", None)
def test_damage_never_raises(tmp_path: Path, kind: str, data: st.DataObject | None) -> None:
    content = bytearray(FILES[kind])
    if data is not None:
        # The header is where the view is: most of the damage belongs there.
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.one_of(st.integers(128, 700), st.integers(0, len(content) - 1)))
            content[at % len(content)] = data.draw(st.integers(0, 255))
        content = content[: data.draw(st.one_of(st.just(len(content)), st.integers(0, 900)))]
    path = tmp_path / "damaged.dcm"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = stored_view(path)
    assert found is None or projection(found) != "unknown" or found.isupper()


def _code(meaning: str) -> list[Dataset]:
    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = "x", "99TEST", meaning
    return [item]


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ({"ViewCodeSequence": _code("lateral")}, "lateral"),
        ({"ViewCodeSequence": _code("left lateral")}, "lateral"),
        ({"ViewCodeSequence": _code("postero-anterior")}, "frontal"),
        ({"ViewCodeSequence": _code("antero-posterior")}, "frontal"),
        ({"SeriesDescription": "CHEST LAT"}, "lateral"),
        ({"SeriesDescription": "W Chest lat."}, "lateral"),
        ({"SeriesDescription": "CHEST PA"}, "frontal"),
        ({"SeriesDescription": "Chest, left lateral decubitus"}, "frontal"),
        ({"SeriesDescription": "AP left lateral decubitus"}, "frontal"),
        # It names two views, so it does not say which this one is.
        ({"SeriesDescription": "CHEST PA AND LAT"}, "unknown"),
        ({"SeriesDescription": "CHEST PLATE"}, "unknown"),
        # Rows run to the front of the patient, columns to the feet.
        ({"PatientOrientation": ["A", "F"]}, "lateral"),
        ({"PatientOrientation": ["P", "F"]}, "lateral"),
        ({"PatientOrientation": ["L", "F"]}, "frontal"),
        ({"PatientOrientation": ["A", "L"]}, "unknown"),
        # The first that says something counts.
        ({"ViewPosition": "PA", "SeriesDescription": "CHEST LAT"}, "frontal"),
        ({"SeriesDescription": "LATERAL", "PatientOrientation": ["L", "F"]}, "lateral"),
    ],
)
def test_a_header_without_view_position_says_the_view_elsewhere(
    tmp_path: Path, elements: dict[str, Any], expected: str
) -> None:
    path = save(chest(GREY, **{"ViewPosition": "", **elements}), tmp_path / "x.dcm")
    assert projection(stored_view(path)) == expected
    assert projection(read_image(path).provenance.view) == expected


def test_no_word_of_a_description_leaves_the_header(tmp_path: Path) -> None:
    path = save(chest(GREY, ViewPosition="", SeriesDescription="Doe Jane lateral"), tmp_path / "x")
    assert stored_view(path) == "LATERAL"
