"""What is no longer there, what turned out to be something else, and what is in doubt.

The values were written from the meaning of each sentence: 1 there, 0 not there, -1 in doubt.
"""

from itertools import product

import pytest

from vlscore.findings import changes_of, chexpert_labels, extract

EDEMA, EFFUSION, DEVICES = "Edema", "Pleural Effusion", "Support Devices"
AIR, LESION, HEART = "Pneumothorax", "Lung Lesion", "Cardiomegaly"
WIDE, PLEURA, OPACITY = "Enlarged Cardiomediastinum", "Pleural Other", "Lung Opacity"

GONE = (
    "has resolved", "has cleared", "has gone", "is gone", "has disappeared", "is no longer present",
    "is no longer seen", "has drained away", "has been reabsorbed", "has melted away",
    "has completely resolved", "has since cleared", "is no more", "is nowhere to be seen",
)  # fmt: skip
OUT = (
    "has been removed", "is out", "was removed yesterday", "has been taken out", "is gone",
    "is no longer in place", "is not in place any more", "is no longer in situ", "has come out",
    "has been pulled", "was pulled overnight", "is no longer there", "pulled", "withdrawn",
    "removed since the last film",
)  # fmt: skip


def resolved(text):
    return {c.topic for c in changes_of(extract(text)) if str(c.change) == "resolved"}


@pytest.mark.parametrize("gone", GONE)
def test_what_has_gone_is_denied_and_resolved_whatever_the_words(gone):
    for text in (f"The effusion {gone}.", f"There was an effusion; it {gone}."):
        assert chexpert_labels(text)[EFFUSION] == 0, text
        assert resolved(text) == {"pleural_effusion"}, text


@pytest.mark.parametrize("gone", ["cleared", "resolved", "disappeared", "vanished"])
def test_one_word_says_that_a_finding_has_gone(gone):
    for text in (
        f"The effusion {gone}.",
        f"Effusion {gone}, no nodule.",
        f"{gone.title()}: effusion.",
    ):
        assert chexpert_labels(text)[EFFUSION] == 0, text
    assert chexpert_labels(f"The effusion partly {gone}.")[EFFUSION] == 1


def test_two_names_of_one_device_have_gone_together():
    for text in (
        "Right IJ Swan-Ganz catheter has been removed.",
        "Removal of the left subclavian PICC.",
    ):
        assert {str(f.polarity) for f in extract(text).findings} == {"negative"}, text


def test_negative_pressure_denies_nothing():
    assert chexpert_labels("Negative-pressure pulmonary edema.")[EDEMA] == 1


@pytest.mark.parametrize(("device", "out"), [*product(("chest tube", "left drain", "PICC"), OUT)])
def test_a_device_that_is_out_is_not_there(device, out):
    text = f"The {device} {out}."
    assert chexpert_labels(text)[DEVICES] == 0
    assert len(resolved(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Edema has cleared, as have the effusions.",
        "Edema has cleared; so too the effusions.",
        "Edema has cleared, and so have the effusions.",
        "Edema has cleared. So have the effusions.",
        "The edema has resolved along with the effusions.",
        "Both the edema and the effusions have resolved.",
        "The edema and the effusions have both gone.",
        "Neither the edema nor the effusions remain.",
        "Neither the edema nor the fluid in the pleural spaces of the earlier study persists.",
        "Edema and effusions were seen earlier. Both have resolved.",
        "Edema and effusions were seen earlier; neither remains.",
    ],
)
def test_what_has_gone_with_another_finding_has_gone_too(text):
    labels = chexpert_labels(text)
    assert (labels[EDEMA], labels[EFFUSION]) == (0, 0)
    assert resolved(text) == {"edema", "pleural_effusion"}


@pytest.mark.parametrize(
    ("text", "air", "effusion"),
    [
        ("Pneumothorax and effusion before. The former has resolved; the latter is stable.", 0, 1),
        ("Pneumothorax and effusion before. The latter has gone, the former persists.", 1, 0),
        ("Pneumothorax and effusion before. The former is unchanged; the latter is gone.", 1, 0),
    ],
)
def test_the_former_and_the_latter_are_told_apart(text, air, effusion):
    labels = chexpert_labels(text)
    assert (labels[AIR], labels[EFFUSION]) == (air, effusion)


@pytest.mark.parametrize(
    "text",
    [
        "The effusion has not yet resolved.",
        "The effusion has partly resolved.",
        "Effusion on both sides, partly resolved.",
        "Slight interval clearing of the effusion.",
        "Effusion almost completely absorbed.",
        "Most of the effusion has drained away.",
        "Almost no effusion remains.",
        "The effusion has cleared on the right but persists on the left.",
        "The edema has improved, as have the effusions.",
        "The chest tube should be removed. Small effusion.",
        "The edema is gone; the effusion remains.",
        "The effusion, drained last week, has come back.",
        "The effusion drained yesterday has reaccumulated.",
        "The right effusion has gone; the left is unchanged.",
    ],
)
def test_what_remains_in_part_is_there(text):
    assert chexpert_labels(text)[EFFUSION] == 1


@pytest.mark.parametrize("text", ["The tube has been slightly withdrawn.", "Drain partly pulled."])
def test_a_device_that_was_moved_back_is_there(text):
    assert chexpert_labels(text)[DEVICES] == 1


def test_what_is_found_by_its_absence_is_there():
    [finding] = extract("The left breast has been removed.").findings
    assert (finding.observation, str(finding.polarity)) == ("mastectomy", "positive")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (f"Scoliosis, and {sought}{sign} {none}.", label)
        for sought, label in (("a nodule was queried", LESION), ("an effusion is sought", EFFUSION))
        for sign in (";", ",", " and", " but")
        for none in ("none is seen", "none found", "none identified", "none")
    ]
    + [
        ("A hernia was repaired and a nodule resected, with no recurrence.", LESION),
        ("No previous pneumothorax.", AIR),
    ],
)
def test_a_short_denial_is_of_the_last_finding_before_it(text, label):
    labels = chexpert_labels(text)
    assert labels[label] == 0
    stated = {f.observation for f in extract(text).findings if f.is_present}
    assert ("scoliosis" in stated) == ("Scoliosis" in text)


@pytest.mark.parametrize(
    ("remark", "change"),
    [("smaller", "improved"), ("unchanged", "unchanged"), ("slightly increased", "worse")],
)
def test_a_remark_behind_a_semicolon_is_of_what_stands_before_it(remark, change):
    found = extract(f"Left basal effusion; {remark}.")
    assert [str(c.change) for c in changes_of(found)] == [change]
    [finding] = found.findings
    assert str(finding.side) == "left"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (f"The nodule {seen} {verb} {what}.", LESION)
        for seen in ("queried earlier", "seen on the last film", "suspected before")
        for verb in ("is", "was", "proved to be", "is in fact")
        for what in ("a nipple shadow", "a skin lesion", "a rib end", "an overlapping vessel")
    ]
    + [
        ("The rounded density seen earlier was fluid in the fissure.", LESION),
        ("The questioned pneumothorax is a skin fold.", AIR),
        ("The apparent cardiomegaly is due to the AP projection.", HEART),
        ("Widening of the mediastinum is due to rotation.", WIDE),
        ("The opacity at the left base is breast tissue.", OPACITY),
    ],
)
def test_what_turned_out_to_be_something_else_is_denied(text, label):
    assert chexpert_labels(text)[label] == 0


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (f"{text}{end}", label)
        for text, label in (("Pleural plaque", PLEURA), ("Small effusion", EFFUSION))
        for end in (
            " suspected.", " suspected on the right.", " possible on the left.", "?", ", if any.",
            " not excluded on the left.", " likely on the left.", " if present.", " at most.",
            ", perhaps.", " on the left, possibly.", ", probably.", " is not certain.",
        )
    ]
    + [
        (f"Blunted left costophrenic angle {mark} small effusion or pleural thickening.", label)
        for mark in ("–", "-", ":")
        for label in (EFFUSION, PLEURA)
    ]
    + [
        ("? Widened upper mediastinum – may just be projectional.", WIDE),
        ("Widened mediastinum, which may just be due to rotation.", WIDE),
        ("The heart looks large but this may be due to the AP projection.", HEART),
        ("Nodule or vessel end on.", LESION),
        ("Hint of an effusion.", EFFUSION),
        ("An effusion cannot be confirmed or excluded.", EFFUSION),
    ],
)  # fmt: skip
def test_a_doubt_is_read_wherever_it_stands(text, label):
    assert chexpert_labels(text)[label] == -1


@pytest.mark.parametrize("text", ["Right basal opacity: {}", "Opacity at the right base - {}"])
def test_a_label_that_says_where_is_a_finding(text):
    labels = chexpert_labels(text.format("atelectasis or pneumonia."))
    assert (labels[OPACITY], labels["Atelectasis"], labels["Pneumonia"]) == (1, -1, -1)


@pytest.mark.parametrize(
    "text",
    [
        "There is no pleural thickening, calcification, or effusion.",
        "No pleural effusion, thickening or calcification.",
        "No scarring, calcification, or effusion.",
        "The pleural spaces contain neither air nor fluid.",
        "Little to suggest an effusion.",
    ],
)
def test_a_denial_reaches_all_of_its_list(text):
    labels = chexpert_labels(text)
    assert {labels[EFFUSION], labels[PLEURA], labels[AIR]} <= {0, None}
    assert labels[EFFUSION] == 0


@pytest.mark.parametrize(
    "text",
    [
        "No air is seen in either pleural space.",
        "No air or fluid in the pleural spaces.",
        "The pleural spaces contain neither air nor fluid.",
        "Pleura: no fluid or air.",
    ],
)
def test_air_in_the_pleural_space_is_a_pneumothorax(text):
    assert chexpert_labels(text)[AIR] == 0


@pytest.mark.parametrize(
    "text",
    [
        *(f"Lungs clear{end}." for end in (", heart normal", ", heart of normal size")),
        "Lungs clear heart normal.",
        "Heart normal, lungs clear.",
        "The heart is normal, as are the lungs.",
    ],
)
def test_terse_clauses_are_each_of_their_own_part(text):
    labels = chexpert_labels(text)
    assert (labels[OPACITY], labels[HEART]) == (0, 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The cardiomediastinal silhouette is enlarged.", 1),
        ("Widened cardiomediastinal contours.", 1),
        ("The cardiomediastinal silhouette is not enlarged.", 0),
        ("The cardiomediastinal silhouette is normal.", 0),
    ],
)
def test_the_cardiomediastinal_silhouette_counts_towards_two_labels(text, value):
    """CheXpert's phrases have "mediastinal silhouette"; Indiana's codings say "Cardiac Shadow"."""
    labels = chexpert_labels(text)
    assert (labels[WIDE], labels[HEART]) == (value, value)


def test_the_only_abnormality_is_no_finding_of_its_own():
    for text in ("The only abnormality is {}.", "{} is the sole abnormality."):
        [finding] = extract(text.format("a small effusion")).findings
        assert finding.observation == "pleural_effusion"
