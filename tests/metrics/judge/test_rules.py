"""Errors of written reports, each expectation written down from the reports alone."""

import pytest

from vlscore.metrics import SCORES, Patient, RuleJudge, rating

JUDGE = RuleJudge()


def errors(candidate, reference, patient=None):
    """(category, finding) of each error."""
    found = JUDGE.judge(candidate, reference, patient or Patient()).errors
    return [(str(e.category), e.finding) for e in found]


def severity(candidate, reference, patient=None):
    (error,) = JUDGE.judge(candidate, reference, patient or Patient()).errors
    return error.severity


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("Clear lungs.", "Left effusion.", ("omitted_finding", "pleural effusion")),
        ("Rib fracture.", "Clear lungs.", ("false_finding", "fracture")),
        ("Left effusion.", "Right effusion.", ("wrong_location", "pleural effusion")),
        ("Mild edema.", "Severe edema.", ("wrong_severity", "edema")),
        ("8 mm nodule.", "2.0 cm nodule.", ("wrong_severity", "nodule")),
        ("Pulmonary metastases.", "Pulmonary nodules.", ("false_finding", "neoplasm")),
        ("New edema.", "Edema.", ("false_comparison", "edema")),
        ("Edema.", "Worsening edema.", ("omitted_comparison", "edema")),
        (
            "Endotracheal tube in the right mainstem bronchus.",
            "Endotracheal tube 4 cm above the carina.",
            ("wrong_location", "endotracheal tube"),
        ),
        (
            "Tip of the endotracheal tube 1 cm from the carina.",
            "Endotracheal tube 4.5 cm above the carina.",
            ("wrong_location", "endotracheal tube"),
        ),
        (
            "Small effusion has increased.",
            "Small effusion has increased to large.",
            ("wrong_severity", "pleural effusion"),
        ),
        (
            "Fracture of an upper thoracic vertebra.",
            "Fracture of a lower thoracic vertebra.",
            ("wrong_location", "fracture"),
        ),
        (
            "Tortuous aorta.",
            "Tortuous and calcified aorta.",
            ("omitted_finding", "atherosclerosis"),
        ),
        (
            "Partial collapse of the left lower lobe.",
            "Complete collapse of the left lower lobe.",
            ("wrong_severity", "atelectasis"),
        ),
        (
            "Undisplaced fracture of the right 7th rib.",
            "Displaced fracture of the right 7th rib.",
            ("wrong_severity", "fracture"),
        ),
        # Some names say how much: all of a lobe, of a lung.
        (
            "Right upper lobe is collapsed.",
            "Minimal right upper lobe atelectasis.",
            ("wrong_severity", "atelectasis"),
        ),
        ("Mild left opacity.", "White-out of the left lung.", ("wrong_severity", "opacity")),
        (
            "Partial collapse of the left lung.",
            "Left lung collapse.",
            ("wrong_severity", "lung collapse"),
        ),
        (
            "A single fracture of a left rib.",
            "Fractures of the left third through sixth ribs.",
            ("wrong_severity", "fracture"),
        ),
        ("Left rib fractures 5-9.", "One broken rib on the left.", ("wrong_severity", "fracture")),
        ("A single chest tube.", "Two chest tubes.", ("wrong_severity", "chest tube")),
        ("A few granulomas.", "Innumerable granulomas.", ("wrong_severity", "granuloma")),
        ("Four broken ribs.", "One broken rib.", ("wrong_severity", "fracture")),
        ("Edema.", "Edema, smaller than at 07:30.", ("omitted_comparison", "edema")),
        # A malposition that only the candidate states.
        (
            "Endotracheal tube in the right mainstem bronchus.",
            "Endotracheal tube.",
            ("false_finding", "endotracheal tube"),
        ),
        (
            "Tracheostomy tube lies anterior to the trachea.",
            "Tracheostomy tube well placed.",
            ("wrong_location", "endotracheal tube"),
        ),
        (
            "Right PICC, tip in the neck.",
            "Right PICC crosses the midline to end in the SVC.",
            ("wrong_location", "central line"),
        ),
        (
            "Swan-Ganz tip in a left upper lobe branch.",
            "Swan-Ganz tip in the main pulmonary artery.",
            ("wrong_location", "central line"),
        ),
        # What the reference denies is in no other name of it.
        (
            "Right basal opacity with an effusion.",
            "Right basal opacity without effusion.",
            ("false_finding", "pleural effusion"),
        ),
        (
            "Mild edema. Persistent right upper lobe opacity.",
            "Mild edema. The right upper lobe opacity has resolved.",
            ("false_finding", "opacity"),
        ),
        (
            "Removal of the nasogastric tube. The patient has been extubated.",
            "The patient has been extubated.",
            ("false_comparison", "gastric tube"),
        ),
        (
            "Left lower lobe consolidation.",
            "Left upper lobe consolidation.",
            ("wrong_location", "consolidation"),
        ),
        ("Clear lungs.", "Hiatal hernia.", ("omitted_finding", "hernia")),
        ("Normal.", "Enlarged hilar lymph nodes.", ("omitted_finding", "lymphadenopathy")),
        ("Normal.", "Hyperinflated lungs.", ("omitted_finding", "hyperinflation")),
        ("Normal.", "Scoliosis.", ("omitted_finding", "scoliosis")),
        ("Normal.", "Calcified granuloma.", ("omitted_finding", "granuloma")),
        (
            "The mediastinum has widened.",
            "Clear lungs.",
            ("false_comparison", "mediastinal widening"),
        ),
        (
            "Healed fracture of the right 4th rib.",
            "Healed fracture of the right seventh rib.",
            ("wrong_location", "fracture"),
        ),
        (
            "Compression of the sixth thoracic vertebra.",
            "Compression of T12.",
            ("wrong_location", "vertebral fracture"),
        ),
        (
            "Effusions, right greater than left.",
            "Bilateral effusions, larger on the left.",
            ("wrong_location", "pleural effusion"),
        ),
        ("ET tube in place.", "ET tube and NG tube.", ("omitted_finding", "gastric tube")),
        # A rib is no vertebra; a denied nodule is in no other finding.
        (
            "Rib fracture. Compression fracture of T8.",
            "Compression fracture of T8.",
            ("false_finding", "fracture"),
        ),
        (
            "Enlarged hilar nodes. No nodule.",
            "Enlarged hilar nodes. Bilateral lung nodules.",
            ("omitted_finding", "nodule"),
        ),
        # Each lead and each line has its place.
        (
            "Pacemaker with a lead in the right atrium.",
            "Pacemaker with a lead in the right ventricle.",
            ("wrong_location", "pacemaker"),
        ),
        (
            "PICC tip in the right atrium.",
            "PICC tip in the SVC.",
            ("wrong_location", "central line"),
        ),
        (
            "Granulomas in the right upper and lower lobes.",
            "Granulomas in the right middle and upper lobes.",
            ("wrong_location", "granuloma"),
        ),
        # Beside a collapse, a shift has its own direction.
        (
            "Collapse of the left lower lobe with shift of the mediastinum to the right.",
            "Collapse of the left lower lobe with shift of the mediastinum to the left.",
            ("wrong_location", "mediastinal shift"),
        ),
        (
            "Mild congestion.",
            "Interval clearing of edema, with mild residual congestion.",
            ("omitted_comparison", "edema"),
        ),
    ],
)
def test_each_category_is_named(candidate, reference, expected):
    assert errors(candidate, reference) == [expected]


@pytest.mark.parametrize(
    ("candidate", "reference"),
    [
        ("Left lower lobe pneumonia.", "Left lower lobe consolidation."),
        ("The heart is mildly enlarged.", "Mild cardiomegaly."),
        ("Minimal edema.", "Mild edema."),
        ("No effusion. Heart size is normal.", "Clear lungs."),
        ("Pleural effusion.", "Left pleural effusion."),
        ("3.3 cm mass in the right upper lobe.", "3.2 cm mass in the right upper lobe."),
        (
            "PICC with its tip in the SVC.",
            "Central venous catheter tip at the cavoatrial junction.",
        ),
        ("Rule out pneumonia.", "Clear lungs."),
        ("Evaluate for effusion. Clear lungs.", "Clear lungs."),
        ("Perihilar opacities, suggestive of pulmonary edema.", "Pulmonary edema."),
        ("Heart at the upper limit of normal.", "Borderline heart size."),
        ("Calcified 8 mm nodule.", "Calcified granuloma of 8 mm."),
        ("Pneumothorax of 12 mm, previously 20 mm.", "12 mm pneumothorax, smaller than before."),
        # A tip is no part of "multiple"; a lead in the heart is where it belongs.
        (
            "Port in the SVC. Multiple nodules, one in the left main bronchus.",
            "Port tip in the SVC. Many nodules, one in the left main bronchus.",
        ),
        ("ICD with a lead in the right ventricle.", "ICD, leads in place."),
        ("PICC in the mid SVC, previously in the left jugular vein.", "PICC in the mid SVC."),
        (
            "Improved aeration of the left base with less atelectasis.",
            "Left basilar atelectasis has decreased.",
        ),
        ("Fractures of ribs 5-7.", "Fractures of the fifth through seventh ribs."),
        ("Sternal wires.", "Status post CABG."),
        # The way of a line is no position of its tip.
        (
            "Catheter via the left subclavian vein, its tip in the SVC.",
            "Left subclavian line ends in the SVC.",
        ),
        # What stands beneath both may be named beneath one.
        ("Free air beneath the right hemidiaphragm.", "Free air beneath both hemidiaphragms."),
        # Each device has the position that is said of it.
        (
            "Catheter tip at the brachiocephalic confluence and NG tube in the stomach.",
            "NG tube in the stomach. Catheter tip at the brachiocephalic confluence.",
        ),
        # A change in one sentence may be of each finding in it.
        (
            "Left lower lobe consolidation and a small effusion have increased.",
            "Increasing left lower lobe consolidation with a small effusion.",
        ),
        # An interpretation of findings that both state.
        (
            "Bilateral hilar lymphadenopathy.",
            "Bilateral hilar lymphadenopathy. Appearances are typical of sarcoidosis.",
        ),
        ("ET tube sits high, should be advanced.", "ETT tip high; advancement advised."),
        ("Chest tube in good position without kinking.", "Chest tube in good position."),
        (
            "Tracheostomy. Left PICC.",
            "Tracheostomy and left PICC, the latter in the axillary vein.",
        ),
        # "Residual" says that a finding is there, and may have become less.
        (
            "Improved aeration of the left base with residual atelectasis.",
            "Left basilar atelectasis has improved.",
        ),
        # One of two findings that share a change is enough.
        (
            "Effusion and atelectasis have increased.",
            "Increased effusion. Atelectasis.",
        ),
        ("The left opacity has resolved.", "The left pneumonia has resolved."),
        ("ET and NG tubes are out.", "Endotracheal and nasogastric tubes have been removed."),
        # A position that is denied, or of the past, is none, wherever the denial stands.
        ("The ET tube is not in the right mainstem bronchus.", "ET tube in good position."),
        ("Feeding tube is not coiled.", "Feeding tube in good position."),
        (
            "PICC tip in the SVC. The line was formerly in the right ventricle.",
            "PICC tip in the SVC.",
        ),
        # Which side has more, in other words.
        ("L>R effusions.", "Effusions, left greater than right."),
        ("Effusions, more pronounced on the right.", "Bilateral effusions, right worse than left."),
        ("Left and right chest tubes in place.", "Bilateral chest tubes in place."),
        # The degree of today is the last one.
        ("Edema has progressed from mild to severe.", "Severe edema, worse than before."),
        ("Fractures of the fifth, sixth and seventh right ribs.", "Right rib fractures 5 to 7."),
        # What is old is another finding of the sentence.
        ("Old granuloma and acute right rib fracture.", "Acute right rib fracture. Granuloma."),
        # Masked words interpret a sign.
        ("Left basilar atelectasis.", "Left basilar opacity XXXX atelectasis."),
        ("Feeding tube coiled in the stomach.", "Feeding tube looped within the stomach."),
        # A finding by its signs, and a device by how it was put in.
        ("Loops of bowel project in the left hemithorax.", "Left diaphragmatic hernia."),
        ("The heart lies in the right chest.", "Dextrocardia."),
        ("Loss of bone density.", "Osteopenia."),
        ("Peripherally inserted line, tip in the SVC.", "PICC, tip in the SVC."),
        ("Left effusion, not seen in June.", "New left effusion."),
        ("The left lower lobe has become airless.", "New left lower lobe collapse."),
    ],
)
def test_the_same_in_other_words_is_no_error(candidate, reference):
    assert errors(candidate, reference) == []


def test_a_report_has_no_error_against_itself_and_order_does_not_matter():
    report = (
        "Small left effusion. Cardiomegaly. 8 mm nodule in the right apex, new. PICC in the SVC."
    )
    turned = (
        "PICC in the SVC. 8 mm nodule in the right apex, new. Cardiomegaly. Small left effusion."
    )
    assert errors(turned, report) == []


def test_severity_follows_the_finding_and_its_grade():
    tension = severity("Clear lungs.", "Large pneumothorax.")
    assert tension == 5
    assert severity("Clear lungs.", "Small effusion.") < severity("Clear lungs.", "Large effusion.")
    assert severity("Normal.", "Degenerative changes of the spine.") == 1
    assert severity("Left effusion.", "Right effusion.") > severity(
        "Left lower lobe atelectasis.", "Left mid lung atelectasis."
    )


def test_a_tracheal_tube_at_a_wrong_height_is_actionable():
    right = "Endotracheal tube in good position."
    for wrong in ("0.5 cm above the carina.", "9 cm above the carina, should be advanced."):
        assert severity(right, f"Endotracheal tube {wrong}") == 3
    assert severity(right, "Endotracheal tube in the left main bronchus.") == 5
    assert severity("PICC in the SVC.", "PICC in the right atrium.") == 2


def test_a_coarser_name_is_better_than_none_and_worse_than_the_exact_one():
    reference = "Right lower lobe pneumonia."
    exact, coarse, none = (
        rating(JUDGE.judge(text, reference))
        for text in (reference, "Right lower lobe opacity.", "Clear lungs.")
    )
    assert exact == 1.0
    assert none < coarse < exact


def test_age_and_indication_change_the_severity():
    missed = ("Clear lungs.", "Aortic atherosclerosis.")
    assert severity(*missed, Patient(25)) > severity(*missed, Patient(82))
    air = ("Clear lungs.", "Pneumomediastinum.")
    after = severity(*air, Patient(indication="Post open heart surgery"))
    assert after < severity(*air, Patient(indication="Road traffic accident"))


def test_quotes_are_the_words_of_the_reports():
    candidate, reference = "Heart normal. Large left effusion.", "Small right pleural effusion."
    for error in JUDGE.judge(candidate, reference).errors:
        assert error.candidate.span.of(candidate) == error.candidate.words == "Large left effusion"
        assert error.reference.span.of(reference) == error.reference.words
        assert error.line.of(candidate) == "Large left effusion."


def test_an_omission_quotes_the_denial():
    (error,) = JUDGE.judge("No pneumothorax.", "Small pneumothorax.").errors
    assert error.candidate.words == "pneumothorax"
    # A normal statement of the organ denies more than this finding, and is not quoted.
    (error,) = JUDGE.judge("The heart is normal in size.", "Cardiomegaly.").errors
    assert error.candidate is None


def test_scores_by_hand():
    judgement = JUDGE.judge("Rib fracture.", "Left effusion. Degenerative changes.")
    # A false fracture (3), a missed effusion (3), missed degenerative changes (1).
    assert (judgement.sum, judgement.maximum, judgement.count, judgement.significant) == (
        7,
        3,
        3,
        2,
    )
    assert judgement.totals == {
        "false_finding": 1,
        "omitted_finding": 2,
        "wrong_location": 0,
        "wrong_severity": 0,
        "false_comparison": 0,
        "omitted_comparison": 0,
    }
    assert rating(judgement) == pytest.approx(0.75 / (0.75 + 1.0 + 1.0 + 0.25))
    assert SCORES["sum"](judgement) == pytest.approx(1 / 8)
    # One effusion found (3) of it and a missed edema (3).
    half = JUDGE.judge("Left effusion.", "Left effusion. Edema.")
    assert rating(half) == pytest.approx((0.75 + 1.0) / (0.75 + 1.0 + 1.0))


@pytest.mark.parametrize(
    ("candidate", "reference", "grade"),
    [
        ("Left effusion.", "Left effusion.", 5),
        ("Scoliosis.", "Granuloma. Osteophytes.", 4),
        ("Mild atelectasis.", "Clear lungs.", 4),
        ("Atelectasis. Hiatal hernia.", "Clear lungs.", 3),
        ("Edema. Nodule. Left effusion.", "Edema. Nodule. Left effusion. Fracture.", 3),
        ("Left effusion.", "Right effusion. Cardiomegaly.", 2),
        ("Clear lungs.", "Large pneumothorax. Edema. Left effusion.", 1),
    ],
)
def test_grades_of_a_whole_report(candidate, reference, grade):
    judged = JUDGE.judge(candidate, reference)
    assert judged.grade == grade
    assert SCORES["grade"](judged) == grade / 5


def test_a_reason_has_the_exact_name():
    (error,) = JUDGE.judge("Clear lungs.", "Nodule in the left lung.").errors
    assert error.finding == "nodule"
    assert "(nodule)" in error.reason


def test_silence_is_an_error():
    assert errors("", "Clear lungs.") == [("omitted_finding", "the whole report")]
    assert errors("the lungs " * 20, "Clear lungs.") == [("omitted_finding", "the whole report")]
    assert errors("", "") == []
    assert ("omitted_finding", "edema") in errors("", "Edema.")


def test_a_finding_at_two_places_is_two_findings():
    reference = "Opacity in the left lower lobe. Opacity in the right upper lobe."
    assert errors("Opacity in the left lower lobe.", reference) == [("omitted_finding", "opacity")]
    assert errors("Bilateral opacities.", "Bilateral opacities, worse at the right base.") in (
        [],
        [("omitted_comparison", "opacity")],
    )


@pytest.mark.parametrize(
    ("candidate", "reference", "errors"),
    [
        # One finding in two sentences, or by its sign and its name, is one.
        (
            "The lungs are clear.",
            "Right basilar opacity. Low volumes with right basilar atelectasis.",
            [("omitted_finding", "atelectasis"), ("omitted_finding", "low lung volumes")],
        ),
        (
            "Right base atelectasis or pneumonia.",
            "Left base atelectasis versus pneumonia.",
            [("wrong_location", "pneumonia")],
        ),
        (
            "9 mm left nodule. Considerations include a granuloma or metastasis.",
            "9 mm left nodule.",
            [],
        ),
        (
            "Large R PTX w/ mediastinal shift to L.",
            "Clear lungs.",
            [("false_finding", "pneumothorax")],
        ),
        # The cause in both reports: the consequence is an error of its own.
        (
            "Large right pneumothorax with shift of the mediastinum.",
            "Large right pneumothorax. No mediastinal shift.",
            [("false_finding", "mediastinal shift")],
        ),
        # A name that is denied stands for no other.
        (
            "Tortuous aorta. No mediastinal widening.",
            "The mediastinum is widened.",
            [("false_finding", "aortic tortuosity"), ("omitted_finding", "mediastinal widening")],
        ),
        # Fractures of two bones are two; other findings of two bones are one.
        (
            "Right clavicle fracture.",
            "Left rib fractures.",
            [("false_finding", "fracture"), ("omitted_finding", "fracture")],
        ),
        (
            "Clear.",
            "Left rib fractures. Left scapular fracture.",
            [("omitted_finding", "fracture")] * 2,
        ),
        # Both sides for one, and one for both.
        ("Bilateral effusions.", "Left effusion.", [("false_finding", "pleural effusion")]),
        ("Left effusion.", "Bilateral effusions.", [("omitted_finding", "pleural effusion")]),
        # The side with more is not the only one.
        (
            "Right effusion.",
            "Bilateral effusions, larger on the right.",
            [("omitted_finding", "pleural effusion")],
        ),
        (
            "Pneumothoraces, left greater than right.",
            "Left pneumothorax.",
            [("false_finding", "pneumothorax")],
        ),
        (
            "Left basal atelectasis.",
            "Bibasilar atelectasis, predominantly on the left.",
            [("omitted_finding", "atelectasis")],
        ),
        ("Opacities, mainly on the right.", "Right opacities.", []),
        ("Opacities, mainly on the right.", "Bilateral opacities.", []),
        ("Edema, worse on the left.", "Edema, worse on the right.", [("wrong_location", "edema")]),
        # A place that differs where the reference names no side.
        (
            "Bilateral upper lobe opacities.",
            "Basilar opacity.",
            [("wrong_location", "opacity")],
        ),
        ("Left apical opacity.", "Basilar opacity.", [("wrong_location", "opacity")]),
        # An error has the most exact name that the report gives, in whichever sentence.
        ("Clear lungs.", "Hyperexpanded lungs. Findings of COPD.", [("omitted_finding", "COPD")]),
        # The omission of something new is one error.
        ("Clear lungs.", "New right nodule.", [("omitted_finding", "nodule")]),
        ("Hazy opacity, likely edema.", "Moderate pulmonary edema.", []),
        # Each side with its grade.
        (
            "Large effusion on the left, small on the right.",
            "Small left effusion and small right effusion.",
            [("wrong_severity", "pleural effusion")],
        ),
        # Places that only some findings have, tips of devices, numbers.
        (
            "Aneurysm of the descending aorta.",
            "Aneurysm of the ascending aorta.",
            [("wrong_location", "aortic aneurysm")],
        ),
        ("PICC tip in RA.", "PICC tip in the mid SVC.", [("wrong_location", "central line")]),
        (
            "NG tip not seen below the diaphragm.",
            "NG tip post-pyloric.",
            [("wrong_location", "gastric tube")],
        ),
        (
            "Pleural fluid fills the left hemithorax.",
            "Small left effusion.",
            [("wrong_severity", "pleural effusion")],
        ),
        (
            "The heart has become larger, despite the shallow inspiration.",
            "Stable cardiomegaly. Low lung volumes.",
            [("false_comparison", "cardiomegaly")],
        ),
        ("Multiple lytic rib and bilateral scapular lesions.", "Lytic lesions of ribs.", []),
        (
            "A single small granuloma.",
            "Several small granulomas.",
            [("wrong_severity", "granuloma")],
        ),
        # Two nodules of different sizes are two.
        (
            "8 mm calcified nodule in the left mid lung; 7 mm calcified nodule, left hilum.",
            "8 mm calcified nodule in the left mid lung. 7 mm calcified nodule at the left hilum.",
            [],
        ),
    ],
)
def test_a_finding_in_other_words_or_twice_is_one(candidate, reference, errors):
    judged = RuleJudge().judge(candidate, reference)
    assert sorted((str(e.category), e.finding) for e in judged.errors) == sorted(errors)


def test_a_position_is_quoted_with_its_device():
    (error,) = JUDGE.judge(
        "Right port. Its tip lies in the right ventricle.", "Right port, tip in the SVC."
    ).errors
    assert error.category == "wrong_location"
    assert error.candidate.words.endswith("in the right ventricle")
