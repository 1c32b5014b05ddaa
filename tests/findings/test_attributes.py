"""What plain sentences say of a finding: side, places, degree and size of today.

Expectations are those of a reader of English who knows radiology, written before the rules.
"""

import pytest

from vlscore.findings import Axis, Finding, extract


def said(text: str) -> Finding:
    (finding,) = (f for f in extract(text) if f.observation != "calcification")
    assert finding.is_present
    return finding


@pytest.mark.parametrize(
    ("text", "side", "zones"),
    [
        ("The pneumothorax is on the left, not the right.", "left", ()),
        ("Right, not left, pneumothorax.", "right", ()),
        ("Opacity in either lung base.", "bilateral", ("base",)),
        ("Scarring in both the upper and lower lobes.", None, ("lower lobe", "upper lobe")),
        ("Nodules in both the left and right lungs.", "bilateral", ()),
        ("Consolidation spares the right upper lobe.", None, ()),
        ("Consolidation in the left lung sparing the apex.", "left", ()),
        ("Scoliosis convex to the right.", "right", ()),
        ("Left lower lobe: consolidation, worse.", "left", ("lower lobe",)),
        ("Left upper and right middle lobe opacities.", "bilateral", ("middle lobe", "upper lobe")),
        ("Consolidation in the lower lobes, not the upper lobes.", "bilateral", ("lower lobe",)),
    ],
)
def test_places(text: str, side: str | None, zones: tuple[str, ...]) -> None:
    assert (said(text).side, set(said(text).zones)) == (side, set(zones))


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        # Denied, or of another time.
        ("The pneumothorax is not large.", None),
        ("The effusion is no longer massive.", None),
        ("The effusion is not as large as before.", None),
        ("The effusion is neither large nor loculated.", None),
        ("The pneumothorax is anything but small.", None),
        ("The consolidation is less dense than it was.", None),
        ("Edema, which had been severe, is now mild.", "mild"),
        ("The effusion used to be large and is now small.", "small"),
        ("Effusion small now, large before.", "small"),
        ("Edema mild today, severe on the prior film.", "mild"),
        ("Previously tiny pneumothorax is moderate.", "moderate"),
        ("The previously tiny effusion has increased.", None),
        ("Effusion is now large, previously small.", "large"),
        ("The effusion was moderate and is now small.", "small"),
        ("The effusion was large on the prior exam and is now tiny.", "trace"),
        ("The edema went from mild to moderate.", "moderate"),
        ("The small effusion that was on the left is now moderate.", "moderate"),
        ("Mild edema has progressed to severe.", "severe"),
        # Of the change.
        ("The effusion is stable to slightly increased.", None),
        ("Slight decrease in the effusion, now moderate.", "moderate"),
        ("Moderate interval increase in a small right effusion.", "small"),
        ("The edema is minimally changed.", None),
        ("Moderate edema, up from mild.", "moderate"),
    ],
)
def test_degree_of_today(text: str, severity: str | None) -> None:
    assert said(text).severity == severity


@pytest.mark.parametrize(
    ("text", "millimetres"),
    [
        ("The nodule, previously 5 mm, is now 8 mm.", ["8"]),
        ("The mass was 4 cm and is now 3 cm.", ["30"]),
        ("The nodule measures 9 mm compared with 6 mm on the prior study.", ["9"]),
        ("The mass has decreased from 4 cm.", []),
        ("The mass measures 5 cm in comparison to 7 cm on the previous study.", ["50"]),
        ("The nodule has increased by 4 mm.", []),
        ("LUL nodule 8mm (prev 6mm).", ["8"]),
    ],
)
def test_size_of_today(text: str, millimetres: list[str]) -> None:
    assert [a.value for a in said(text).on(Axis.SIZE)] == millimetres


def test_each_finding_has_its_own_degree_and_lobes() -> None:
    denied, stated = extract("No right effusion, small left effusion.")
    assert (denied.severity, stated.severity) == (None, "small")
    assert set(said("Right upper, middle and lower lobe consolidation.").zones) == {
        *("upper lobe", "middle lobe", "lower lobe")
    }


def test_what_is_only_better_is_not_yet_normal() -> None:
    found = extract("The lungs are better expanded. The left lung is partly re-expanded.")
    assert [f for f in found if f.observation == "opacity"] == []


def test_what_has_not_changed_is_there() -> None:
    both = extract("Neither the effusion nor the pneumothorax has improved.").present
    assert {f.observation for f in both} == {"pleural_effusion", "pneumothorax"}
    assert not extract("Neither effusion nor pneumothorax has appeared.").present
