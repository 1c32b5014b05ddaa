"""How reports word seven findings that are easily misread, in sentences written by us.

Each line of `data/wordings.jsonl` has a sentence, an observation, and whether a radiologist who
reads that sentence would say that the patient has it now, stated or likely. Each line of
`data/plain_statements.jsonl` has a statement and CheXpert's labels that it states.
"""

import json
from pathlib import Path

import pytest

from vlscore.findings import (
    Axis,
    Polarity,
    Side,
    chexpert_labels,
    extract,
    extraction_name,
    load_lexicon,
    tokenize,
)

LINES = (Path(__file__).parent / "data" / "wordings.jsonl").read_text(encoding="utf-8")
WORDINGS = [json.loads(line) for line in LINES.splitlines()]


@pytest.mark.parametrize("observation", sorted({w["observation"] for w in WORDINGS}))
def test_sentences_are_read_as_a_radiologist_means_them(observation: str) -> None:
    own = [w for w in WORDINGS if w["observation"] == observation]
    misread = [
        wording["text"]
        for wording in own
        if wording["present"]
        != any(f.observation == observation and f.is_likely for f in extract(wording["text"]))
    ]
    assert misread == []
    assert {wording["present"] for wording in own} >= {True}


def test_plain_statements_are_read_as_they_are_meant() -> None:
    """Denials, doubts and what has gone, in plain English: each line has the labels it states."""
    path = Path(__file__).parent / "data" / "plain_statements.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    misread = [
        line["text"]
        for line in lines
        if not line["labels"].items() <= chexpert_labels(line["text"]).items()
    ]
    assert misread == []
    assert len(lines) > 500


@pytest.mark.parametrize(
    ("text", "observations"),
    [
        ("Biapical fibronodular scarring.", {"scar", "nodule"}),
        ("Right pleural effusion versus thickening.", {"pleural_effusion", "pleural_thickening"}),
        ("Thyroid nodule.", {"extrathoracic_lesion"}),
        ("Lower extremity edema.", {"soft_tissue_edema"}),
        ("Multiple pulmonary metastatic nodules.", {"neoplasm", "nodule"}),
    ],
)
def test_what_a_phrase_names(text: str, observations: set[str]) -> None:
    assert {finding.observation for finding in extract(text)} == observations


def test_a_removed_device_does_not_deny_the_finding_beside_it() -> None:
    found = {f.observation: f.is_present for f in extract("Small pneumothorax, PICC removed.")}
    assert found == {"pneumothorax": True, "catheter": False}


@pytest.mark.parametrize(
    ("text", "stated", "denied"),
    [
        # A size that is the effusion's, and not the heart's.
        ("The heart is obscured by a large left effusion.", {"pleural_effusion"}, set()),
        ("Cardiac size cannot be assessed due to a large effusion.", {"pleural_effusion"}, set()),
        ("Heart not assessed owing to large effusion.", {"pleural_effusion"}, set()),
        ("Heart size large, left effusion.", {"cardiomegaly", "pleural_effusion"}, set()),
        # Names of the field.
        ("Screw in the right shoulder.", {"joint_prosthesis"}, set()),
        ("Cephalad retraction of the left hilum.", {"volume_loss"}, set()),
        ("Concern for active mycobacterial infection.", set(), set()),
        # Abbreviations, as terse reports and dictation have them.
        ("Lg R PTX w/ shift. No eff.", {"pneumothorax"}, {"pleural_effusion"}),
        ("LLL PNA, sm L eff, mild CHF.", {"pneumonia", "pleural_effusion", "heart_failure"}, set()),
        (
            "DJD T-spine. HH. Cor enlarged.",
            {"degenerative_change", "hernia", "cardiomegaly"},
            set(),
        ),
        ("Bibasilar atx, ca++ aorta.", {"atelectasis", "aortic_calcification"}, set()),
        ("w/o consol or ptx", set(), {"consolidation", "pneumothorax"}),
        # What has come back, or gone, and what hides another finding.
        ("The pneumothorax has not recurred.", set(), {"pneumothorax"}),
        ("The PICC has been withdrawn and now ends in the axilla.", {"catheter"}, set()),
        ("The heart is difficult to see because of the effusion.", {"pleural_effusion"}, set()),
        ("Evaluation of the heart is limited by an effusion.", {"pleural_effusion"}, set()),
        ("Aspiration of a foreign body.", {"foreign_body"}, set()),
        ("Left nephrostomy drain.", {"device"}, set()),
        ("A 2 cm shadow in the lingula. Old wedge of T12.", {"vertebral_deformity"}, set()),
        # Words stuck together.
        ("No effusionheart size is enlarged", {"cardiomegaly"}, {"pleural_effusion"}),
        ("bibasilar atelectasisairspace disease", {"atelectasis", "airspace_disease"}, set()),
        # A denied list without commas: all of it, but nothing behind its "or" of another region.
        (
            "no pneumonia effusions edema nodules",
            set(),
            {"pneumonia", "pleural_effusion", "edema", "nodule"},
        ),
        ("No nodule or mass lesion.", set(), {"nodule", "mass", "lesion"}),
        # A denial with a verb of its own ends at the comma.
        (
            "While no consolidation is identified, a small effusion is seen.",
            {"pleural_effusion"},
            {"consolidation"},
        ),
        ("No consolidation is seen, nor effusion.", set(), {"consolidation", "pleural_effusion"}),
        # "Present" parts nothing: ConText's "presents" is of a patient.
        ("The density present at the base has cleared.", set(), {"density"}),
        # British and plain words.
        (
            "The dome of the left diaphragm is raised. Upper lobe blood diversion.",
            {"elevated_diaphragm", "vascular_congestion"},
            set(),
        ),
        ("The right lower lobe is collapsed.", {"atelectasis"}, set()),
        ("Surgical emphysema. Heart dilated.", {"subcutaneous_emphysema", "cardiomegaly"}, set()),
        ("T9 mildly compressed.", {"vertebral_deformity"}, set()),
        ("The heart, likewise unaltered, is grossly enlarged.", {"cardiomegaly"}, set()),
        ("CM outline nl. Ø PTX.", set(), {"cardiomegaly", "mediastinal_widening", "pneumothorax"}),
        ("I don’t see any consolidation.", set(), {"consolidation"}),
        ("No opacity that would suggest pneumonia.", set(), {"opacity", "pneumonia"}),
        ("No significant abnormality.", set(), {"acute_abnormality"}),
        # Reports that were translated into English.
        (
            "Focal darkening is determined. Effusion is not determined.",
            {"opacity"},
            {"pleural_effusion"},
        ),
        ("Pneumothorax, consolidation no.", set(), {"pneumothorax", "consolidation"}),
        ("The volume of the lungs is reduced.", {"hypoinflation"}, set()),
        # Reports of other hospitals.
        ("The cardiothoracic ratio is 0.58.", {"cardiomegaly"}, set()),
        ("CTR 0.48. Pneumocystis infection.", {"pneumonia"}, set()),
        ("The right base is hazy.", {"opacity"}, set()),
        ("A mass displaces the trachea.", {"mass", "mediastinal_shift"}, set()),
        ("Air is seen within the soft tissues of the neck.", {"subcutaneous_emphysema"}, set()),
        ("Coarse bibasal markings.", {"interstitial_markings"}, set()),
        ("Moderate haemopneumothorax.", {"hemothorax", "pneumothorax"}, set()),
        ("The pigtail drain has backed out; no effusion.", {"tube"}, {"pleural_effusion"}),
        (
            "No effusion heart size and vascularity are within normal limits minimal scoliosis.",
            {"scoliosis"},
            {"pleural_effusion", "cardiomegaly", "vascular_congestion"},
        ),
        # Words of a finding that mention none.
        ("The lung bases are hazy from overlying soft tissue.", set(), {"opacity"}),
        ("The trachea is narrowed. Kyphotic projection.", set(), set()),
        ("Fluid in the pleural cavity.", {"pleural_effusion"}, set()),
        ("Rib fracture in the axillary line.", {"fracture"}, set()),
        ("Limited by motion artifact.", set(), set()),
    ],
)
def test_styles_of_other_readers(text: str, stated: set[str], denied: set[str]) -> None:
    found = extract(text)
    assert stated == {f.observation for f in found if f.is_present}
    assert denied == {f.observation for f in found if f.polarity is Polarity.NEGATIVE}


def test_words_of_an_abbreviation_stand_at_its_characters() -> None:
    text = "Sm R eff."
    (finding,) = extract(text)
    assert finding.span.of(text) == "eff"
    assert (finding.severity, finding.side) == ("small", Side.RIGHT)


@pytest.mark.parametrize("word", ["background", "inspiration", "nonspecific", "cardiopulmonary"])
def test_words_of_their_own_are_not_cut(word: str) -> None:
    assert len(load_lexicon().trie.split_joined_words(word, tokenize(word))) == 1


def test_extraction_has_a_name_that_follows_its_lexicons() -> None:
    name = extraction_name()
    rules, _, digest = name.partition("+")
    assert rules.isdecimal()
    assert len(digest) == 8
    assert name == extraction_name()


def test_a_place_before_there_is_belongs_to_the_finding() -> None:
    text = "In the upper zone of the left lung there is a medium-sized rounded opacity today"
    (finding,) = extract(text).present
    assert (finding.side, finding.zones) == (Side.LEFT, ("upper zone",))


def test_a_following_sentence_adds_size_and_place_to_a_finding() -> None:
    found = extract("There is a nodule. It measures 9 mm and lies in the left upper lobe.")
    (finding,) = found.present
    assert (finding.side, finding.zones) == (Side.LEFT, ("upper lobe",))
    assert [a.value for a in finding.on(Axis.SIZE)] == ["9"]


@pytest.mark.parametrize(
    ("text", "side"),
    [
        # Two lobes of one lung are not both lungs.
        ("Atelectasis of the middle and lower lobes.", None),
        ("Atelectasis of the lower lobes.", Side.BILATERAL),
        # The other side is only compared with.
        ("The right dome of the diaphragm is raised compared with the left.", Side.RIGHT),
    ],
)
def test_sides(text: str, side: Side | None) -> None:
    assert extract(text).findings[0].side == side


def test_the_degree_of_a_change_is_not_that_of_the_finding() -> None:
    (effusion,) = extract("Substantial decrease in the right pleural effusion, now small.")
    assert [a.value for a in effusion.on(Axis.SEVERITY)] == ["small"]
    (edema,) = extract("Marked interval improvement in pulmonary edema.")
    assert not edema.on(Axis.SEVERITY)


def test_what_is_left_is_not_on_the_left() -> None:
    (effusion,) = extract("Only a trace of pleural fluid is left on the right.")
    assert effusion.side is Side.RIGHT


@pytest.mark.parametrize(
    ("text", "stated", "denied"),
    [
        ("The cardiac dimensions are not increased.", set(), {"cardiomegaly"}),
        ("Opacity in the left base, previously absent.", {"opacity"}, set()),
    ],
)
def test_what_a_denial_reaches(text: str, stated: set[str], denied: set[str]) -> None:
    found = extract(text)
    assert {f.observation for f in found if f.is_present} == stated
    assert {f.observation for f in found if f.polarity is Polarity.NEGATIVE} >= denied


def test_abbreviations_with_a_period_and_signs() -> None:
    (shift,) = extract("Trachea sl. deviated \N{RIGHTWARDS ARROW} L.")
    assert (shift.observation, shift.side) == ("mediastinal_shift", Side.LEFT)
    (opacity,) = extract("Min opac @ L base.")
    assert (opacity.side, opacity.zones, opacity.severity) == (Side.LEFT, ("base",), "minimal")


def test_two_lobes_are_two_places() -> None:
    (opacity,) = extract("Opacity in the right lower and middle lobes.")
    assert (opacity.sides, set(opacity.zones)) == (("right",), {"lower lobe", "middle lobe"})


def test_sides_of_a_finding() -> None:
    texts = ("Effusion.", "Left effusion.", "Bilateral effusions.", "Middle lobe opacity.")
    sides = [extract(text).findings[0].sides for text in texts]
    assert sides == [(), ("left",), ("left", "right"), ("right",)]


def test_the_grade_that_a_finding_had_is_not_its_grade() -> None:
    (effusion,) = extract("The effusion has decreased from moderate to small.")
    assert effusion.severity == "small"
