"""Nothing that a report says elsewhere belies a change: in sentences of our own, by their words."""

import json

import pytest

from tests.perturb.contract import made, read
from vlscore.findings import extract
from vlscore.perturb import (
    KINDS,
    Change,
    Edit,
    Effect,
    Meaning,
    PerturbationSettings,
    apply_edits,
    perturb,
)
from vlscore.perturb.changed_report import qualified
from vlscore.perturb.consistency import consistent


def texts(kind: str, report: str) -> set[str]:
    """All that a kind makes of a report."""
    return {p.perturbed for seed in range(12) for p in made(KINDS[kind], report, seed, 20)}


# A conclusion that would deny what is stated now, makes room for it.
ALONG = [
    (
        "affirm-finding",
        "No pneumothorax. IMPRESSION: Normal chest.",
        "There is a pneumothorax. IMPRESSION: Otherwise normal chest.",
    ),
    (
        "affirm-finding",
        "No focal consolidation. No acute cardiopulmonary abnormality.",
        "There is focal consolidation. No other acute cardiopulmonary abnormality.",
    ),
    (
        "affirm-finding",
        "no pneumothorax . clear lungs . no acute disease .",
        "there is a pneumothorax . otherwise clear lungs . no other acute disease .",
    ),
    (
        "affirm-finding",
        "NO PNEUMOTHORAX. NO ACUTE DISEASE.",
        "THERE IS A PNEUMOTHORAX. NO OTHER ACUTE DISEASE.",
    ),
    (
        "invent-comparison",
        "Small right effusion. No acute abnormality.",
        "Small right effusion, new since the prior examination. No other acute abnormality.",
    ),
    (
        "change-severity",
        "Mild pulmonary edema. No acute abnormality.",
        "Severe pulmonary edema. No other acute abnormality.",
    ),
    # Nothing is left that "otherwise" could be said of.
    (
        "remove-pathology",
        "Small nodule in the left lung. The heart is normal. The lungs are otherwise clear.",
        "The heart is normal. The lungs are clear.",
    ),
    (
        "negate-finding",
        "There is a left apical nodule. The heart is normal. Otherwise, the lungs are clear.",
        "There is no left apical nodule. The heart is normal. The lungs are clear.",
    ),
]


@pytest.mark.parametrize(("kind", "report", "expected"), ALONG)
def test_a_conclusion_changes_along(kind, report, expected):
    assert expected in texts(kind, report)


PARTS_ALONG = [
    ("add-false-finding", "No effusion. No edema. Negative.", "Otherwise negative."),
    ("affirm-finding", "No pneumoperitoneum. No acute intra-abdominal process.", "No other acute"),
    ("add-false-finding", "Edema. No bony or soft tissue abnormality.", "No other bony or"),
    ("add-false-finding", "Edema. Unremarkable chest.", "rib. Otherwise unremarkable chest."),
    (
        "remove-pathology",
        "Granuloma. No effusion. Lungs are clear otherwise.",
        "No effusion. Lungs are clear.",
    ),
]


@pytest.mark.parametrize(("kind", "report", "within"), PARTS_ALONG)
def test_what_comes_along_is_within_the_text(kind, report, within):
    assert any(within in text for text in texts(kind, report))


# What needs no room, stays.
AS_IT_WAS = [
    ("affirm-finding", "The heart is not enlarged. No acute disease.", "enlarged. No acute"),
    ("affirm-finding", "No pneumothorax. No acute bony abnormality.", "x. No acute bony"),
    ("affirm-finding", "No pneumothorax. No other acute disease.", "x. No other acute"),
    ("affirm-finding", "No rib fracture. Pulmonary vascularity is normal.", "y is normal."),
    ("invent-comparison", "Old granuloma. No acute disease. Scoliosis.", "No acute disease."),
    ("invent-comparison", "Left base opacity. The right lung is clear.", "lung is clear."),
    ("change-severity", "Severe pulmonary edema. No acute disease.", "No acute disease."),
]


@pytest.mark.parametrize(("kind", "report", "left"), AS_IT_WAS)
def test_a_conclusion_that_denies_something_else_stays(kind, report, left):
    found = texts(kind, report)
    assert found
    assert all(left in text for text in found)


# The kind, the report, what must come out of it in no text.
REFUSED = [
    # Denied before it would be stated: nobody says "other" of what is to come.
    ("affirm-finding", "Normal chest. No pneumothorax.", "There is a pneumothorax"),
    ("affirm-finding", "No acute disease. No pleural effusion.", "There is a pleural effusion"),
    (
        "affirm-finding",
        "No acute fracture. The bones are intact.",
        "fracture. The bones are intact",
    ),
    ("affirm-finding", "The bones are intact. No acute fracture.", "There is an acute"),
    # The same thing under another name, in coarser words, or pointed at.
    ("negate-finding", "There is scoliosis. Curvature as described above.", "no scoliosis"),
    # Half a comparison stays, or the denial compares.
    ("negate-finding", "Scoliosis as before.", "No scoliosis"),
    # The same less exactly.
    ("negate-finding", "The lungs are hyperexpanded. Chronic lung changes.", "not hyperexpanded"),
    # Sides: another mention, a pointer, a pool, an organ of one side, a lobe that is not there.
    ("change-location", "Left effusion. Opacity at the left base as above.", "Right effusion"),
    (
        "change-location",
        "Opacities in the right lower and middle lobes.",
        "left lower and middle",
    ),
    ("change-location", "Left base opacity beside the stomach.", "Right base"),
    ("change-location", "Right effusion above the liver.", "Left effusion"),
    ("change-location", "Left retrocardiac opacity.", "Right retrocardiac"),
    (
        "change-location",
        "Density at the left seventh rib. This may be a fracture. Old rib fracture on the left.",
        "right seventh",
    ),
    (
        "change-location",
        "Fullness of the right hilum. No change of the known right nodule.",
        "left",
    ),
    ("change-location", "Left lingular scarring and right lingular scar.", "right lingular scar."),
    ("change-location", "Left effusion over the spleen.", "Right effusion"),
    ("change-location", "Fullness of the right hilum. Known right retrohilar nodule.", "left"),
    # Heights: pooled places, or a place that cannot be higher.
    ("change-location", "Basilar retrocardiac opacity.", "Apical"),
    ("change-location", "Lower lobe opacity near the costophrenic angle.", "Upper lobe"),
    ("change-severity", "Large mass of 5.8 cm. IMPRESSION: Large mass in the lung.", "Tiny"),
    ("remove-pathology", "Edema. Osteophytes. Results were discussed with Dr. Smith.", "tes. R"),
    (
        "change-location",
        "Opacity in the right upper lobe. Opacity in the left upper lobe. Bilateral upper lobe "
        "consolidation.",
        "right upper lobe. Opacity in the left lower",
    ),
    # Grades: a stage, an extent, another grade of the same thing.
    (
        "change-severity",
        "Moderate left effusion and small right effusion. Bilateral effusions, left larger.",
        "large right",
    ),
    ("change-severity", "Small multilobar opacity.", "Large"),
    ("change-location", "Left apical scarring. Stable appearance of the left apex.", "basilar"),
    ("change-severity", "Small effusion. Massive effusion compresses the lung.", "Large"),
    ("change-severity", "Mild pulmonary edema. IMPRESSION: Normal chest. Slight edema.", "Severe"),
    # Comparisons: half of one, a contour that only is stable, a date.
    ("drop-comparison", "Stable cardiomegaly and mediastinal contour.", "Cardiomegaly and"),
    ("drop-comparison", "Stable scarring dating back to exams in 2010.", "Scarring dating"),
    ("drop-comparison", "Stable nodule, similar to prior.", "Nodule, similar"),
    ("invent-comparison", "Small effusion. No prior study is available.", "since the prior"),
    ("invent-comparison", "Small effusion. If prior films exist, compare.", "since the prior"),
    ("invent-comparison", "Increased interstitial markings.", "since the prior"),
    ("invent-comparison", "Acute rib fracture.", "stable since"),
    ("invent-comparison", "Nodule of 1.1 cm (previously 0.9 cm).", "new since"),
    ("drop-comparison", "Interval decrease in numerous nodules. No nodules are seen.", "Numerous"),
    ("drop-comparison", "Stable elevation of the diaphragm compared to exam on XXXX.", "Elevation"),
    ("drop-comparison", "Again seen is a nodule.", "seen is a nodule"),
    ("invent-comparison", "Nodule. In the absence of prior studies, CT is advised.", "since the"),
    ("invent-comparison", "Nodule. Comparison films, if available, would help.", "since the prior"),
    ("invent-comparison", "Nodule. Comparison to a previous XXXX would help.", "since the prior"),
    # Resolved, not seen, or no finding at all.
    ("change-location", "Clearing of the left base opacity, the lungs now appear clear.", "right"),
    ("change-location", "Previously noted left nodule is not well seen.", "right"),
    ("change-location", "Left apical density is a summation artifact.", "Right"),
    ("change-location", "A skin fold mimics a left pneumothorax.", "right"),
    ("remove-pathology", "Right apical opacity is an artifact. No edema.", "No edema."),
    # What one does about a serious finding is not insignificant.
    ("remove-insignificant", "Possible lung mass. Follow up is recommended.", "mass."),
    ("remove-insignificant", "Aortic aneurysm. CT is recommended. No edema.", "m. No edema."),
    ("remove-insignificant", "Cannot exclude tuberculosis. Correlate clinically.", "losis."),
    ("remove-insignificant", "Mild edema. CT of the chest is recommended.", "Mild edema."),
    (
        "remove-insignificant",
        "Opacity. Comparison with prior films is suggested. If none are available, repeat films.",
        "Opacity. If none",
    ),
    ("remove-insignificant", "Nodule. This is not identified on the lateral view.", "Nodule."),
    # Less than normal is no pure negative.
    (
        "unmention-negatives",
        "Heart size is top normal. Mild edema. No effusion.",
        " Mild edema. No",
    ),
    ("standard-normal", "Heart size is upper limits of normal. Lungs are clear.", "The"),
    # Sentences that point at others keep their order.
    (
        "shuffle-sentences",
        "Left effusion. Mild edema. Catheter as described above.",
        "Mild edema. L",
    ),
    # Said twice.
    ("change-location", "Left effusion. Right effusion.", "Right effusion. Right effusion"),
]


@pytest.mark.parametrize(("kind", "report", "never"), REFUSED)
def test_a_change_that_the_report_belies_is_refused(kind, report, never):
    if kind == "unmention-negatives":
        assert all("top normal" in text for text in texts(kind, report))
        return
    if kind == "change-location" and never == "Right effusion. Right effusion":
        assert never not in {" ".join(t.split()).rstrip(".") for t in texts(kind, report)}
        return
    assert not [text for text in texts(kind, report) if never in text]


def test_a_refusal_tells_why(tmp_path):
    """In skipped.jsonl: not that the kind found nothing, but what stands in the way."""
    table = tmp_path / "t.jsonl"
    report = "Normal chest. No pneumothorax."
    table.write_text(json.dumps({"id": "a", "report": report}) + "\n")
    perturb(
        table, tmp_path / "out", PerturbationSettings(kinds=["affirm-finding", "change-location"])
    )
    (skipped,) = (tmp_path / "out" / "skipped.jsonl").read_text().splitlines()
    reasons = json.loads(skipped)["reasons"]
    assert (
        reasons["affirm-finding"] == "another sentence would contradict the change: 'normal chest.'"
    )
    assert reasons["change-location"] == KINDS["change-location"].nothing


def test_another_change_is_chosen_where_the_first_is_refused():
    """Of two places, the one that the conclusion does not deny beforehand."""
    report = "No acute disease. Mild scoliosis. Heart size is normal."
    added = {
        p.rule for seed in range(40) for p in made(KINDS["add-false-finding"], report, seed, 1)
    }
    assert "added:pneumothorax" not in added
    assert len(added) > 5


def test_a_change_without_a_meaning_is_not_checked_against_the_rest():
    source = read("Left effusion. Right effusion. No acute disease.")
    change = Change((Edit(0, 4, "Basal"),), "own")
    assert consistent(source, change)[0] == change


def test_an_observation_that_no_topic_knows_is_checked_against_the_whole_film():
    source = read("Ribs seen. IMPRESSION: Normal chest. No acute disease.")
    meaning = Meaning(Effect.STATED, ("of-a-users-own",))
    change, _ = consistent(source, Change((Edit(0, 0, "Oddity. "),), "own", meaning))
    assert [edit.replacement for edit in change.edits] == ["Oddity. ", "Otherwise n"]


def test_what_goes_along_is_no_part_of_the_claim():
    """Edits that make room stand in other sentences than the change."""
    (p,) = made(KINDS["affirm-finding"], "No pneumothorax. No acute disease.", per_report=1)
    assert [p.original[e.start : e.end] + ">" + e.replacement for e in p.edits] == [
        "No pneumothorax>There is a pneumothorax",
        ">other ",
    ]


ROOM = {
    "No acute disease.": "No other acute disease.",
    "Negative for acute abnormality.": "Negative for other acute abnormality.",
    "No evidence of active disease.": "No evidence of other active disease.",
    "No visible evidence of acute disease.": "No visible evidence of other acute disease.",
    "Negative examination of the chest.": "Otherwise negative examination of the chest.",
    "Edema without an acute abnormality.": "Edema without another acute abnormality.",
    "Edema without any acute abnormality.": "Edema without any other acute abnormality.",
    "The lungs are clear.": "The lungs are otherwise clear.",
    "The lungs are grossly clear.": "The lungs are otherwise grossly clear.",
    "Lungs clear.": "Lungs otherwise clear.",
    "Clear lungs.": "Otherwise clear lungs.",
    "clear lungs.": "otherwise clear lungs.",
    "CLEAR LUNGS.": "Otherwise CLEAR LUNGS.",
    "Normal chest.": "Otherwise normal chest.",
    "The hyperinflated lungs are clear.": "The hyperinflated lungs are otherwise clear.",
}


@pytest.mark.parametrize(("report", "expected"), ROOM.items())
def test_a_denial_makes_room(report, expected):
    (sentence,) = extract(report).sentences
    edit = qualified(report, sentence, sentence.denials[0])
    assert edit is not None
    assert apply_edits(report, [edit]) == expected
