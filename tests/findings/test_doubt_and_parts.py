"""Words of doubt and absence in any order, parts that are denied, answers, lesions of bones.

Expected readings are those of plain English, of pyConTextNLP's table (Chapman et al. 2011:
"unlikely", "not likely" and "no longer seen" act in both directions) and of CheXpert's phrases
(Irvin et al. 2019: no lesion of a bone is a Lung Lesion).
"""

import pytest

from vlscore.findings import changes_of, chexpert_labels, extract


def polarities(text):
    return {f.observation: f.polarity.value[0] for f in extract(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Left opacity is unlikely to represent pneumonia.", {"opacity": "p", "pneumonia": "n"}),
        ("Right opacity, unlikely pneumonia.", {"opacity": "p", "pneumonia": "n"}),
        ("Small effusion, pneumonia unlikely.", {"pleural_effusion": "p", "pneumonia": "n"}),
        ("Pneumonia and edema are unlikely.", {"pneumonia": "n", "edema": "n"}),
        ("It is unlikely that there is a pneumothorax.", {"pneumothorax": "n"}),
        ("The nodule is unlikely to be malignant.", {"nodule": "p", "neoplasm": "n"}),
        ("An infiltrate is not likely.", {"infiltrate": "n"}),
        ("Pneumonia felt less likely.", {"pneumonia": "u"}),
        ("Less likely is a pneumonia.", {"pneumonia": "u"}),
        ("No longer visualized is the apical pneumothorax.", {"pneumothorax": "n"}),
        ("Cleared is the left lower lobe consolidation.", {"consolidation": "n"}),
        ("Neg effusion.", {"pleural_effusion": "n"}),
        ("+/- atelectasis at the left base.", {"atelectasis": "u"}),
        ("A pleural effusion could not be seen.", {"pleural_effusion": "n"}),
        ("Opacity does not represent pneumonia.", {"opacity": "p", "pneumonia": "n"}),
        ("Of a pneumothorax there is no trace.", {"pneumothorax": "n"}),
        ("Discounted after review of the lateral view are effusions.", {"pleural_effusion": "n"}),
        ("Not ruled out by this examination is a hiatal hernia.", {"hernia": "u"}),
        ("It remains difficult to dismiss a small effusion.", {"pleural_effusion": "u"}),
        ("A fracture can be neither excluded nor proven.", {"fracture": "u"}),
        ("Edema was suspected and then refuted.", {"edema": "n"}),
        ("A pneumothorax has conclusively been disproved.", {"pneumothorax": "n"}),
        (
            "It is implausible that the spiculated apical mass is a scar.",
            {"mass": "p", "scar": "n"},
        ),
        ("One cannot say that there is no fracture.", {"fracture": "u"}),
        ("An effusion may well be present.", {"pleural_effusion": "u"}),
        ("Edema may or may not be present.", {"edema": "u"}),
        ("A hernia cannot be seen on this view, nor can it be excluded.", {"hernia": "u"}),
        ("Sans edema.", {"edema": "n"}),
        ("The opacity is likely atelectasis.", {"opacity": "p", "atelectasis": "u"}),
        ("The nodule is favored to be a granuloma.", {"nodule": "p", "granuloma": "u"}),
        ("The opacity might be secondary to edema.", {"opacity": "p", "edema": "u"}),
        ("The opacity cannot be separated from scarring.", {"opacity": "p", "scar": "u"}),
        ("Basal opacity, pneumonia was refuted.", {"opacity": "p", "pneumonia": "n"}),
        (
            "While the effusion remains, the edema does not.",
            {"pleural_effusion": "p", "edema": "n"},
        ),
        ("The heart is by no means enlarged.", {"cardiomegaly": "n"}),
        ("What had looked like a nodule is a vessel.", {"nodule": "n"}),
        ("Whether the mass is cavitated is unclear.", {"mass": "p", "cavity": "u"}),
        ("I am not convinced of an effusion.", {"pleural_effusion": "u"}),
        ("The effusion is far from resolved.", {"pleural_effusion": "p"}),
        ("It is debatable whether the nodule is a scar.", {"nodule": "p", "scar": "u"}),
        ("The absence of edema does not exclude pneumonia.", {"edema": "n", "pneumonia": "u"}),
        ("Edema is not visible but cannot be dismissed.", {"edema": "u"}),
        ("Of a hernia nothing can be seen.", {"hernia": "n"}),
        ("The nodule has not been found again.", {"nodule": "n"}),
        ("No enlargement of the heart is evident.", {"cardiomegaly": "n"}),
        ("The heart only looks big because of the projection.", {"cardiomegaly": "n"}),
        ("The previously enlarged heart has returned to normal size.", {"cardiomegaly": "n"}),
    ],
)
def test_doubt_acts_on_the_finding_that_it_is_said_of(text, expected):
    assert polarities(text) == expected


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("There is no tension component to the right pneumothorax.", "pneumothorax"),
        ("No mediastinal shift from the large right pneumothorax.", "pneumothorax"),
        ("No cavitation in the right upper lobe mass.", "mass"),
        ("No suggestion of enlargement of the known nodule.", "nodule"),
        ("No septations within the effusion.", "pleural_effusion"),
        ("No displacement of the rib fracture.", "fracture"),
        ("No consolidation beneath the effusion.", "pleural_effusion"),
        ("No explanation for the pleural effusion.", "pleural_effusion"),
        ("Nothing but a small effusion.", "pleural_effusion"),
        ("No findings besides mild edema.", "edema"),
        ("No nodule against the background of diffuse fibrosis.", "fibrosis"),
        ("Absence of calcification in the 14 mm lingular nodule is noted.", "nodule"),
        ("No daughter lesions surround the spiculated lung mass.", "mass"),
        ("Not one of the fractures is displaced.", "fracture"),
        ("None of the granulomas has grown.", "granuloma"),
        ("Neither the upper nor the lower lobe nodule is spiculated.", "nodule"),
        ("No vessel is seen feeding the known lung nodule.", "nodule"),
        ("Nothing suggests rupture of the large bulla.", "bulla"),
        ("Possible growth of the granuloma.", "granuloma"),
        ("None of the nodules enhances.", "nodule"),
        ("Not a massive hernia, merely a small one.", "hernia"),
        ("The age of the fracture cannot be determined.", "fracture"),
        ("Follow-up of the nodule is unnecessary.", "nodule"),
        ("The oblique view excludes extension of the fracture.", "fracture"),
        ("The outline of the mass cannot be made out.", "mass"),
        ("No second focus is visible, given the extensive edema.", "edema"),
        ("No invasion of the pleura by the peripheral mass is suspected.", "mass"),
    ],
)
def test_a_denied_part_leaves_its_finding(text, finding):
    assert polarities(text)[finding] == "p"


@pytest.mark.parametrize("first", ["Effusion unchanged", "Effusion stable", "Drain in place"])
@pytest.mark.parametrize("behind", ["not seen", "is no longer visible", "absent", "is excluded"])
def test_a_denial_behind_the_next_finding_is_of_that_alone(first, behind):
    assert list(polarities(f"{first}, pneumothorax {behind}.").values()) == ["p", "n"]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("No recurrence of the pneumothorax.", "pneumothorax"),
        ("No evidence of the previously seen effusion.", "pleural_effusion"),
        ("No enlargement of the heart.", "cardiomegaly"),
        ("No effusion in the left pleural space.", "pleural_effusion"),
        ("Neither an effusion nor a pneumothorax has developed.", "pleural_effusion"),
        ("No longer do I see the effusion.", "pleural_effusion"),
        ("Neither effusion nor pneumothorax is detected.", "pneumothorax"),
        ("No infiltrate in the right lung, effusion or pneumothorax.", "pneumothorax"),
    ],
)
def test_a_denied_finding_is_no_part(text, finding):
    assert polarities(text)[finding] == "n"


@pytest.mark.parametrize("what", ["resolution", "clearing", "significant improvement"])
def test_a_denied_resolution_is_no_change(what):
    found = extract(f"No {what} of the left pneumonia.")
    assert [f.polarity.value for f in found] == ["positive"]
    assert {str(c.change) for c in changes_of(found)} <= {"unchanged"}


ANSWERS = {
    "n": (
        *("X: false", "X=False", "X: F", '{"X": false}', "X (no)", "X -> No", "X: no finding"),
        *("X => false", "X (absent)", '"X": "no"', "X: excluded", "X: unlikely"),
    ),
    "p": ["X: true", "X=True", '{"X": true}', "X (yes)", "X -> present", "X: 1", "X: T"],
}


@pytest.mark.parametrize(
    ("text", "polarity"), [(text, sign) for sign, texts in ANSWERS.items() for text in texts]
)
@pytest.mark.parametrize("label", ["Pneumothorax", "Pleural effusion"])
def test_a_label_has_its_answer(label, text, polarity):
    assert list(polarities(text.replace("X", label)).values()) == [polarity]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Lytic lesion of the rib.", None),
        ("Sclerotic lesion in the T8 vertebral body.", None),
        ("Bony lesion in the left clavicle.", None),
        ("Lesion of the manubrium.", None),
        ("Lesion involving the right seventh rib.", None),
        ("Spinal lesion.", None),
        ("Permeative lesion in the left coracoid process.", None),
        ("Acromion lesion.", None),
        ("Punched-out lesions in both scapulae.", None),
        ("Lesion seen in the manubrium.", None),
        ("Duodenal lesion.", None),
        ("The bones are without a lesion.", None),
        ("Lesions scattered throughout the ribs.", None),
        ("Lung lesion behind the fourth rib.", 1),
        ("Lesion of the left lung, bones are normal.", 1),
        ("Mass lesion.", 1),
        ("Cavitary lesion in the right upper lobe.", 1),
    ],
)
def test_a_lesion_of_a_bone_is_none_of_the_lung(text, label):
    assert chexpert_labels(text)["Lung Lesion"] == label


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Interval increase in effusions and pulmonary edema.", {"pleural_effusion", "edema"}),
        ("Worsening bilateral effusions and atelectasis.", {"pleural_effusion", "atelectasis"}),
        (
            "Worsening effusion, edema and atelectasis.",
            {"pleural_effusion", "edema", "atelectasis"},
        ),
        ("Worsening effusion and mild edema.", {"pleural_effusion"}),
        ("Worsening effusion without edema.", {"pleural_effusion"}),
        ("Worsening effusion. Edema.", {"pleural_effusion"}),
        ("Possible worsening pneumonia or atelectasis.", set()),
    ],
)
def test_a_change_is_of_all_findings_of_its_list(text, expected):
    changes = changes_of(extract(text))
    assert {c.topic for c in changes} == expected
    assert {str(c.change) for c in changes} <= {"worse"}


def test_no_change_in_one_or_the_other_doubts_neither():
    found = extract("No change in bilateral effusions or edema.")
    assert [f.polarity.value for f in found] == ["positive", "positive"]
    assert {(c.topic, str(c.change)) for c in changes_of(found)} == {
        ("pleural_effusion", "unchanged"),
        ("edema", "unchanged"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "The tip of the NG tube cannot be clearly seen.",
        "An orogastric tube courses to the left, its full course not visualized.",
        "The end of the right PICC line is not identified.",
    ],
)
def test_a_device_whose_end_is_not_seen_is_there(text):
    assert set(polarities(text).values()) == {"p"}


@pytest.mark.parametrize(
    ("text", "finding", "side"),
    [
        ("Left pneumothorax with ipsilateral atelectasis.", "atelectasis", "left"),
        ("Right pneumothorax and an effusion on the other side.", "pleural_effusion", "left"),
        ("Next to the right heart border lies a mass.", "mass", "right"),
        ("Blunting of the left costophrenic angle: effusion or scar.", "pleural_effusion", "left"),
        ("Density over the left fifth rib, possibly a fracture.", "fracture", "left"),
        ("Right chest tube. Ipsilateral effusion.", "pleural_effusion", "right"),
        ("Middle lobe pneumonia.", "pneumonia", "right"),
        ("Opacities in each lower lobe.", "opacity", "bilateral"),
    ],
)
def test_the_side_stands_elsewhere(text, finding, side):
    assert [str(f.side) for f in extract(text) if f.observation == finding] == [side]


@pytest.mark.parametrize("sign", [".", ";"])
@pytest.mark.parametrize("one", ["A smaller one", "Another one", "Tiny one", "There is one"])
@pytest.mark.parametrize("where", ["on the left", "in the left upper lobe", "opposite"])
def test_a_finding_that_is_taken_up_has_its_own_side(sign, one, where):
    found = extract(f"Right apical nodule{sign} {one} {where}.")
    assert [(f.observation, str(f.side)) for f in found] == [
        ("nodule", "right"),
        ("nodule", "left"),
    ]


def test_air_and_fluid_are_two_findings():
    assert polarities("Right hydropneumothorax.") == {"pleural_effusion": "p", "pneumothorax": "p"}
