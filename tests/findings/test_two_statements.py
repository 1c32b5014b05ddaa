"""Two statements of one sentence, in telegraphic English: what is said of each is of it alone."""

from itertools import permutations, product

import pytest

from vlscore.findings import Axis, Side, Status, changes_of, extract

PARTS = (
    ("lungs", "clear", "opacity"),
    ("heart size", "normal", "cardiomegaly"),
    ("mediastinum", "unremarkable", "mediastinal_widening"),
    ("bones", "intact", "bone_abnormality"),
    ("costophrenic angles", "free", "costophrenic_blunting"),
    ("pulmonary vasculature", "normal", "vascular_congestion"),
    ("trachea", "midline", "mediastinal_shift"),
)
CHANGED_PARTS = (
    ("heart", "enlarged", "cardiomegaly"),
    ("mediastinum", "widened", "mediastinal_widening"),
    ("left hemidiaphragm", "elevated", "elevated_diaphragm"),
    ("pulmonary vasculature", "congested", "vascular_congestion"),
    ("aorta", "tortuous", "aortic_tortuosity"),
)
OF_PARTS = (
    "{0} {1} and {2} {3}.",
    "{0} {1}, {2} {3}.",
    "{0} {1}; {2} {3}; no effusion.",
    "the {0} appear {1} and the {2} {3}.",
    "no pleural effusion, {0} {1}, {2} {3}.",
    "{1} {0} and {3} {2}.",
)
SAID = {
    "there is a {}": "positive",
    "persistent {}": "positive",
    "{} is present": "positive",
    "{} unchanged": "positive",
    "no {}": "negative",
    "no {} is identified": "negative",
    "{} has resolved": "negative",
    "{} is not seen": "negative",
    "{} cannot be excluded": "uncertain",
    "{} is possible": "uncertain",
}
BEFORE = SAID | {"possible {}": "uncertain", "negative for {}": "negative"}
JOINTS = (", ", " and ", ", and ", "; ", ". ")
# These may be meant of both findings.
AMBIGUOUS = (
    *(("no {}", joint, "{} is present") for joint in JOINTS),
    *(("negative for {}", joint, "{} is present") for joint in JOINTS),
    ("possible {}", ", ", "{} is present"),
    ("possible {}", ", and ", "{} is present"),
)


def polarities(text):
    """Return what a text says of each observation."""
    found = {}
    for sentence in extract(text).sentences:
        for each in sentence.findings:
            found.setdefault(each.observation, set()).add(each.polarity.value)
    return {observation: "/".join(sorted(said)) for observation, said in found.items()}


def misread(statements):
    """Return the texts that say something else than they should, and what."""
    return {
        text: said
        for text, wanted in statements
        if not wanted.items() <= (said := polarities(text)).items()
    }


@pytest.mark.parametrize("form", OF_PARTS)
def test_parts_that_are_all_normal(form):
    assert (
        misread(
            (form.format(*a[:2], *b[:2]), {a[2]: "negative", b[2]: "negative"})
            for a, b in permutations(PARTS, 2)
        )
        == {}
    )


@pytest.mark.parametrize("form", OF_PARTS)
def test_a_part_that_is_normal_and_one_that_is_not(form):
    pairs = [(a, b) for a, b in product(CHANGED_PARTS, PARTS) if a[2] != b[2] and a[0] not in b[0]]
    meant = [((a, b), {a[2]: "positive", b[2]: "negative"}) for a, b in pairs]
    meant += [((b, a), wanted) for (a, b), wanted in meant]
    assert misread((form.format(*a[:2], *b[:2]), wanted) for (a, b), wanted in meant) == {}


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("names", [("pneumonia", "rib fracture"), ("nodule", "pneumothorax")])
def test_findings_of_which_different_things_are_said(joint, names):
    findings = {"rib fracture": "fracture"}
    first, second = (findings.get(name, name) for name in names)
    assert (
        misread(
            (
                (before.format(names[0]) + joint + behind.format(names[1]) + ".").capitalize(),
                {first: BEFORE[before], second: SAID[behind]},
            )
            for before, behind in product(BEFORE, SAID)
            if (before, joint, behind) not in AMBIGUOUS
        )
        == {}
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Lungs are free of nodules.", {"nodule": "negative"}),
        ("Infiltrate-free lungs.", {"infiltrate": "negative"}),
        ("A focus of free air under the hemidiaphragm.", {"free_air": "positive"}),
        ("The lungs are clear and the pleural spaces free.", {"opacity": "negative"}),
        ("Small effusion, cardiomegaly is not seen.", {"cardiomegaly": "negative"}),
        ("The lungs appear clear and the heart enlarged.", {"opacity": "negative"}),
        ("No congestion, right pleural thickening", {"pleural_thickening": "positive"}),
        ("No rib fracture, effusion on the left", {"pleural_effusion": "positive"}),
        ("Effusion moderate on the left, absent on the right", {"pleural_effusion": "positive"}),
        ("Vascular congestion improved, cardiomegaly not.", {"cardiomegaly": "positive"}),
        ("Effusion increased, pneumothorax not seen.", {"pneumothorax": "negative"}),
        ("Effusion unchanged, pneumonia possible on the left", {"pneumonia": "uncertain"}),
        ("Mediastinal nodes on the right are enlarged.", {"lymphadenopathy": "positive"}),
    ],
)
def test_words_that_are_of_one_part_alone(text, wanted):
    assert misread([(text, wanted)]) == {}


def test_a_word_of_a_name_calls_nothing_normal():
    """ "Hyper expanded" lungs are not expanded as they should be."""
    assert polarities("Lungs are hyper expanded.") == {"hyperinflation": "positive"}


@pytest.mark.parametrize(
    ("form", "one", "other"),
    [
        ("No {f} on the {a}, small on the {b}.", "negative", "positive"),
        ("No {a} {f}, but small {b}.", "negative", "positive"),
        ("Small {a} and no {b} {f}.", "positive", "negative"),
        ("Small {a} {f}, none on the {b}.", "positive", "negative"),
        ("{a} {f} has resolved; {b} persists.", "negative", "positive"),
        ("{a} {f} resolved, {b} unchanged.", "negative", "positive"),
        ("{f} absent on the {a} but present on the {b}.", "negative", "positive"),
        ("Minimal {f} {a}, {b} none.", "positive", "negative"),
        ("Bilateral {f}, larger on the {a}.", "positive", "positive"),
    ],
)
@pytest.mark.parametrize("name", ["pleural effusion", "pneumothorax", "consolidation"])
@pytest.mark.parametrize("sides", [("left", "right"), ("right", "left")])
def test_sides_of_which_different_things_are_said(form, one, other, name, sides):
    said = {}
    for sentence in extract(form.format(f=name, a=sides[0], b=sides[1])).sentences:
        for finding in sentence.findings:
            for attribute in finding.on(Axis.SIDE):
                both = attribute.value == Side.BILATERAL
                for side in sides if both else (attribute.value,):
                    said.setdefault(side, set()).add(finding.polarity.value)
    assert said == {sides[0]: {one}, sides[1]: {other}}


@pytest.mark.parametrize(
    ("text", "finding", "polarity"),
    [
        ("A small pneumothorax could easily be missed.", "pneumothorax", "uncertain"),
        ("A nodule would be difficult to detect here.", "nodule", "uncertain"),
        ("Rotation could mask an effusion.", "pleural_effusion", "uncertain"),
        ("Effusion drained, with only a rim remaining.", "pleural_effusion", "positive"),
        ("The heart is no longer as enlarged.", "cardiomegaly", "positive"),
        ("Edema is not as severe as before.", "edema", "positive"),
        ("The edema, but not the effusion, has improved.", "pleural_effusion", "positive"),
        ("No edema, effusion on the left is chronic.", "pleural_effusion", "positive"),
    ],
)
def test_words_that_neither_state_nor_deny(text, finding, polarity):
    assert misread([(text, {finding: polarity})]) == {}


@pytest.mark.parametrize(
    "text",
    [
        "Follow up pneumonia.",
        "No comparison. Evaluate pneumonia.",
        "Status post treatment for pneumonia, now clear.",
        "If pneumonia is suspected clinically, CT could help.",
    ],
)
def test_what_is_asked_or_was_treated_is_not_there(text):
    findings = [each for sentence in extract(text).sentences for each in sentence.findings]
    assert not [each for each in findings if each.is_present and each.status is Status.CURRENT]


def test_a_place_of_what_is_no_finding():
    text = "Improved aeration of both bases, with smaller right effusion."
    (finding,) = (f for sentence in extract(text).sentences for f in sentence.findings)
    assert [each.value for each in finding.on(Axis.SIDE)] == ["right"]


@pytest.mark.parametrize("text", ["Nodule RLL, not LLL.", "Old rib fractures right."])
def test_a_side_that_is_not_of_the_finding(text):
    (finding,) = (f for sentence in extract(text).sentences for f in sentence.findings)
    assert {each.value for each in finding.on(Axis.SIDE)} == {"right"}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Nodule is larger while there is an effusion.", {"nodule": "worse"}),
        ("Edema is larger and pneumothorax has cleared.", {"edema": "worse"}),
        ("No change in edema while atelectasis persists.", {"edema": "unchanged"}),
        ("Interval increase in nodule, small atelectasis.", {"atelectasis": None}),
        ("No change in opacity and small effusion.", {"pleural_effusion": "unchanged"}),
        ("Small nodule, and the effusion has cleared.", {"nodule": None}),
        ("Nodule, effusion, and edema have increased.", {"nodule": "worse"}),
        ("There is a nodule and the effusion has resolved.", {"nodule": None}),
        ("Edema has improved but atelectasis previously seen has gone.", {"edema": "improved"}),
    ],
)
def test_changes_of_one_finding_alone(text, changes):
    said = {}
    for each in changes_of(extract(text)):
        said.setdefault(each.topic, set()).add(each.change.value)
    for finding, change in changes.items():
        assert said.get(finding, set()) == ({change} if change else set())
