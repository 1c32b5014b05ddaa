"""Changes since an earlier examination, by finding."""

import json

import pytest

from vlscore.findings import (
    changes_of,
    extract,
    refers_to_earlier,
    speaks_of_earlier,
)


def said(report: str) -> list[tuple[str, str]]:
    return [(c.topic, str(c.change)) for c in changes_of(extract(report))]


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        # Words that compare only beside an earlier examination.
        ("The nodule is larger than on the previous image.", [("nodule", "worse")]),
        (
            "Since the prior study the effusion has become smaller.",
            [("pleural_effusion", "improved")],
        ),
        ("Nodule, bigger vs prior.", [("nodule", "worse")]),
        ("Consolidation less dense than before.", [("consolidation", "improved")]),
        ("Effusions, right larger than left.", []),
        ("Opacities, more prominent on the right.", []),
        ("Edema is worse in the right lung base.", []),
        ("The mass is better seen on the prior CT.", []),
        ("The heart is enlarged, with no prior study for comparison.", []),
        ("Effusions, left more than right, also noted on the earlier study.", []),
        ("The heart is enlarged, slightly less than before.", [("cardiomegaly", "improved")]),
        ("Lung volumes are lower than on the prior study.", [("hypoinflation", "worse")]),
        # An examination whose date is masked; two sizes, in one unit or two.
        ("Subcutaneous gas, slightly less than on ___.", [("subcutaneous_emphysema", "improved")]),
        ("Effusion, larger than on the study of ___.", [("pleural_effusion", "worse")]),
        ("Nodule of 9 mm, previously 1.2 cm.", [("nodule", "improved")]),
        ("The nodule, previously 5 mm, is now 8 mm.", [("nodule", "worse")]),
        ("The mass was 4 cm and is now 3 cm.", [("mass", "improved")]),
        # Two degrees.
        ("Effusion is now large, previously small.", [("pleural_effusion", "worse")]),
        ("Previously severe, now mild edema.", [("edema", "improved")]),
        ("The pneumothorax went from small to moderate.", [("pneumothorax", "worse")]),
        ("The tiny nodule seen before is now large.", [("nodule", "worse")]),
        ("Moderate edema, previously moderate.", [("edema", "unchanged")]),
        # A change that does not happen, or goes on, or may be.
        ("The nodule is no longer growing.", [("nodule", "unchanged")]),
        ("The consolidation fails to clear.", [("consolidation", "unchanged")]),
        ("The edema did not improve.", [("edema", "unchanged")]),
        ("The mass does not appear larger.", [("mass", "unchanged")]),
        ("The mass does not appear to have grown.", [("mass", "unchanged")]),
        ("The pneumonia is not getting better.", [("pneumonia", "unchanged")]),
        ("The effusion has neither increased nor decreased.", [("pleural_effusion", "unchanged")]),
        ("The known nodule shows no growth.", [("nodule", "unchanged")]),
        ("The effusion has nearly doubled.", [("pleural_effusion", "worse")]),
        ("The mass has at least tripled in size.", [("mass", "worse")]),
        ("The pneumothorax has somewhat enlarged.", [("pneumothorax", "worse")]),
        ("The pneumothorax has all but disappeared.", [("pneumothorax", "improved")]),
        ("Slow resolution of the pneumonia.", [("pneumonia", "improved")]),
        ("The effusion has returned.", [("pleural_effusion", "new")]),
        ("Development of a large effusion.", [("pleural_effusion", "new")]),
        ("Left chest tube placed.", [("tube", "new")]),
        ("The effusion has stopped increasing.", [("pleural_effusion", "unchanged")]),
        ("The edema has hardly changed.", [("edema", "unchanged")]),
        ("The mass has remained the same size.", [("mass", "unchanged")]),
        ("A left effusion has formed.", [("pleural_effusion", "new")]),
        ("Nodules increased in number and size.", [("nodule", "worse")]),
        ("Opacities throughout both lungs, increased.", [("opacity", "worse")]),
        ("The cavity has enlarged.", [("cavity", "worse")]),
        ("Effusion larger vs prior.", [("pleural_effusion", "worse")]),
        ("The nodule measured 5 mm in 2015 and measures 8 mm today.", [("nodule", "worse")]),
        ("The mass measures 2 cm versus 1 cm yesterday.", [("mass", "worse")]),
        ("The effusion has not appreciably changed.", [("pleural_effusion", "unchanged")]),
        ("The effusion has changed little.", [("pleural_effusion", "unchanged")]),
        ("The effusion got smaller.", [("pleural_effusion", "improved")]),
        ("The effusion is up slightly.", [("pleural_effusion", "worse")]),
        ("The mass is bigger by about one third.", [("mass", "worse")]),
        ("The heart is less enlarged than before.", [("cardiomegaly", "improved")]),
        ("This nodule was not there last year.", [("nodule", "new")]),
        # A finding with another; a part of the chest behind a finding.
        (
            "Effusion with overlying atelectasis has decreased.",
            [("pleural_effusion", "improved"), ("atelectasis", "improved")],
        ),
        (
            "Effusion with adjacent atelectasis, both larger.",
            [("pleural_effusion", "worse"), ("atelectasis", "worse")],
        ),
        (
            "Persistent effusion with improved aeration.",
            [("pleural_effusion", "unchanged"), ("aeration", "improved")],
        ),
        ("The effusion is smaller after drainage.", [("pleural_effusion", "improved")]),
        ("Low volumes with redemonstrated edema.", [("edema", "unchanged")]),
        ("There is no evidence that the edema has worsened.", [("edema", "unchanged")]),
        ("Right edema, perhaps slightly better.", [("edema", "improved")]),
        ("Slightly more edema.", [("edema", "worse")]),
        ("Larger left effusion.", [("pleural_effusion", "worse")]),
        ("Larger left than right effusion.", []),
        ("Smaller but still moderate effusion.", [("pleural_effusion", "improved")]),
        ("Moderate edema, up from mild.", [("edema", "worse")]),
        ("Mild edema, severe last week.", [("edema", "improved")]),
        # What is said of a finding at a part of the chest, and not of the part.
        ("The opacity behind the heart is denser than before.", [("opacity", "worse")]),
        (
            "Prominent markings in the lungs are unchanged.",
            [("interstitial_markings", "unchanged")],
        ),
        ("Granuloma, for which no further imaging is needed.", []),
        ("The effusion is not new.", [("pleural_effusion", "unchanged")]),
        ("The effusion continues to enlarge.", [("pleural_effusion", "worse")]),
        ("The pneumonia is starting to resolve.", [("pneumonia", "improved")]),
        ("Stable to slightly improved edema.", [("edema", "improved")]),
        ("Effusion may be slightly larger.", [("pleural_effusion", "worse")]),
        ("The effusion has changed for the worse.", [("pleural_effusion", "worse")]),
        ("The pneumothorax is no longer large.", [("pneumothorax", "improved")]),
        ("Both the mass and the nodule have grown.", [("mass", "worse"), ("nodule", "worse")]),
        ("Nodular opacities in the lung bases are decreased.", [("nodular_opacity", "improved")]),
        (
            "The cardiac silhouette is enlarged with some decrease in the degree of edema.",
            [("edema", "improved")],
        ),
        # History is no examination.
        ("The heart is enlarged in a patient with prior sternotomy.", []),
        ("Opacities are less and the left base is clear.", [("opacity", "improved")]),
        # Verbs in the perfect tense.
        ("A right effusion has appeared.", [("pleural_effusion", "new")]),
        ("The atelectasis has not progressed.", [("atelectasis", "unchanged")]),
        ("The heart is large and has grown since the last film.", [("cardiomegaly", "worse")]),
        # New: it was not there before.
        ("Left nodule, which cannot be found on earlier images.", [("nodule", "new")]),
        ("Opacity at the left base. This was not present before.", [("opacity", "new")]),
        ("Opacity at the left base. Not present on the prior study.", [("opacity", "new")]),
        # What is denied, hoped for or supposed has no change.
        ("No new effusion.", []),
        ("No effusion has developed.", []),
        ("Follow-up to ensure complete resolution of the pneumonia.", []),
        ("This may be developing pneumonia.", []),
        ("No progression of the nodule.", [("nodule", "unchanged")]),
        # A finding that is gone.
        ("The left effusion has resolved.", [("pleural_effusion", "resolved")]),
        ("Interval removal of the right catheter.", [("catheter", "resolved")]),
        ("Complete resorption of the effusion.", [("pleural_effusion", "resolved")]),
        ("Near complete resorption of the effusion.", [("pleural_effusion", "improved")]),
        ("The heart, previously enlarged, is now normal.", [("cardiomegaly", "resolved")]),
        # Of a finding of its own sentence.
        ("Scoliosis. Findings of worsening heart failure.", [("heart_failure", "worse")]),
        # Of one finding in several, of several in one.
        (
            "Cardiomegaly and edema have improved.",
            [("edema", "improved"), ("cardiomegaly", "improved")],
        ),
        ("Again apical scarring, thicker than before.", [("scar", "worse")]),
        # What is better with more of it.
        ("Aeration of the left base has improved.", [("aeration", "improved")]),
        ("Aeration has decreased since the prior study.", [("aeration", "worse")]),
        ("Heart size is normal, unchanged.", [("cardiomegaly", "unchanged")]),
        ("No interval change.", [("examination", "unchanged")]),
        ("There is little overall change.", [("examination", "unchanged")]),
        ("The pneumothorax is slightly decreased.", [("pneumothorax", "improved")]),
        ("Lung volumes are decreased.", []),
        (
            "Interval resolution of the left lower lobe pneumonia.",
            [("pneumonia", "resolved")],
        ),
        ("The lungs no longer show edema.", [("edema", "resolved")]),
        ("Large effusion has recurred.", [("pleural_effusion", "new")]),
        ("No relevant change in the effusion.", [("pleural_effusion", "unchanged")]),
        ("Nodule which was not present on the XXXX exam.", [("nodule", "new")]),
        ("There has been interval sternotomy.", [("sternotomy", "new")]),
        ("Interval central catheter exchange.", [("catheter", "new")]),
        # An earlier time in other words: a month, a year, a visit, "used to be".
        ("Both hila have become bulkier since March.", [("hilum", "worse")]),
        ("COPD, worse than in 2016.", [("copd", "worse")]),
        ("Spondylosis, further along than last time.", [("spondylosis", "worse")]),
        ("Osteophytes, less marked than they used to be.", [("osteophyte", "improved")]),
        ("Small nodule, which wasn't there on the prior CXR.", [("nodule", "new")]),
        ("The effusion has drained away.", [("pleural_effusion", "resolved")]),
        ("The consolidation has cleared somewhat.", [("consolidation", "improved")]),
        # Two measurements.
        ("The nodule has gone from 12 mm to 9 mm.", [("nodule", "improved")]),
        # A change behind a denial.
        ("The heart is enlarged, as it was before.", [("cardiomegaly", "unchanged")]),
        ("The tube has gone down the right main bronchus.", []),
        ("Pneumonia, with a further film to prove clearing.", []),
        # Partly, of late, and at the end of a clause.
        ("Left base atelectasis has cleared to some degree.", [("atelectasis", "improved")]),
        ("The effusion has almost completely resolved.", [("pleural_effusion", "improved")]),
        ("The effusion is slightly smaller than on Friday.", [("pleural_effusion", "improved")]),
        (
            "Compared with the prior study, the effusion appears decreased.",
            [("pleural_effusion", "improved")],
        ),
        ("Nodule, not present on the film of 2021.", [("nodule", "new")]),
        # One change of several findings, and of those beside a denied one.
        (
            "Pulmonary edema with small effusions, worsened since this morning.",
            [("edema", "worse"), ("pleural_effusion", "worse")],
        ),
        (
            "The endotracheal tube and the Swan-Ganz catheter have been removed.",
            [("tube", "resolved"), ("catheter", "resolved")],
        ),
        # What words of change say themselves, and what is only advised.
        ("Status post mitral valve repair, now extubated.", [("tube", "resolved")]),
        (
            "Improved right basal aeration with mild residual atelectasis.",
            [("aeration", "improved"), ("atelectasis", "unchanged")],
        ),
        ("New left lower lobe and lingular consolidation.", [("consolidation", "new")]),
        ("The nasogastric tube should be removed.", []),
        ("Pulmonary edema slightly better.", [("edema", "improved")]),
        ("The heart has become much larger.", [("heart", "worse")]),
        ("Slight reduction in the volume of the effusion.", [("pleural_effusion", "improved")]),
        ("The effusion has largely resolved.", [("pleural_effusion", "improved")]),
        ("Almost complete clearing of the pneumonia.", [("pneumonia", "improved")]),
        ("The nodule was not present on the study of 2019.", [("nodule", "new")]),
        ("Edema has given way to clear lungs.", [("edema", "resolved")]),
        ("The chest tube has been pulled.", [("tube", "resolved")]),
        # A device that has moved, or has taken the place of another.
        ("The ET tube has been pulled back.", []),
        ("The catheter has been withdrawn slightly.", []),
        ("The Swan-Ganz catheter has gone out to the left lower lobe.", []),
        ("The right drain is out and the lung is clear.", [("tube", "resolved")]),
        (
            "Removal of the jugular sheath, mediastinal drains, and left chest tube.",
            [("catheter", "resolved"), ("tube", "resolved"), ("tube", "resolved")],
        ),
        (
            "Extubation and removal of the central line.",
            [("tube", "resolved"), ("catheter", "resolved")],
        ),
        ("The ET tube has been withdrawn 2 cm.", []),
        # What was hoped for, and what a finding was on an earlier image.
        ("Far from improving, the pneumonia has spread.", [("pneumonia", "worse")]),
        ("Edema, which was expected to be clearing, is stationary.", [("edema", "unchanged")]),
        ("The heart, enlarged on the previous film, is normal.", []),
        ("Granuloma, same now.", [("granuloma", "unchanged")]),
        (
            "Collapse of the left lung has re-expanded.",
            [("atelectasis", "resolved"), ("opacity", "resolved")],
        ),
        ("The mass is just as it was.", [("mass", "unchanged")]),
        ("Effusion, same as the morning film.", [("pleural_effusion", "unchanged")]),
        ("The mass is larger still.", [("mass", "worse")]),
        ("No longer can we identify the effusion.", [("pleural_effusion", "resolved")]),
        # States that look like changes.
        ("Increased interstitial markings.", []),
        ("Increased right basilar atelectasis.", [("atelectasis", "worse")]),
    ],
)
def test_changes(report: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(said(report)) == sorted(expected)


def test_the_words_and_the_finding_are_those_of_the_report() -> None:
    report = "No pneumothorax. The left effusion is slightly larger than on the previous study."
    (change,) = changes_of(extract(report))
    assert change.span.of(report) == "larger than on the previous study"
    assert change.finding is not None
    assert change.finding.span.of(report) == "effusion"
    assert (change.sentence, change.is_real) == (1, True)
    # "slightly" is a degree of the change, not of the effusion.
    assert change.finding.severity is None


def test_a_report_of_any_words_has_changes_or_none() -> None:
    words = [
        "than",
        "before",
        "prior",
        "has",
        "larger",
        "no",
        "the",
        "effusion",
        ",",
        ".",
        "previously",
        "normal",
        "now",
    ]
    for start in range(len(words)):
        text = " ".join((words * 3)[start:])
        for change in changes_of(extract(text)):
            assert text[slice(*change.span)]


def test_an_earlier_image_is_found_without_reading_every_sentence(shared):
    lines = (shared / "data" / "generated" / "vlm_final.jsonl").read_text().splitlines()
    reports = {
        text for row in map(json.loads, lines) for text in (row["candidate"], row["reference"])
    }
    spoken = {text for text in reports if speaks_of_earlier(extract(text))}
    assert 0 < len(spoken) < len(reports)
    assert {text for text in reports if refers_to_earlier(text)} == spoken


@pytest.mark.parametrize(
    "text",
    [
        "Marked interval decrease in the effusion.",
        "Slight interval increase in the left pneumothorax.",
    ],
)
def test_the_degree_of_a_change_is_not_that_of_its_finding(text):
    (finding,) = extract(text).findings
    assert finding.change is not None
    assert finding.severity is None
