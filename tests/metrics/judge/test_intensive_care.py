"""Judge by rules: reports of intensive care, and candidates in the words of language models.

The expected errors follow the protocol of the read pairs (categories of ReXVal): one sentence each,
judged by hand.
"""

import pytest

from vlscore.metrics import RuleJudge

JUDGE = RuleJudge()

SAME = [
    # a hedge is no error where both have a degree
    ("Marked vascular congestion is noted.", "Findings suggest marked vascular congestion."),
    ("A large left nodule is noted.", "A possible large nodule in the left lung."),
    # sides with a degree or change each
    ("Moderate right and small left effusions.", "Effusions, right moderate, left small."),
    (
        "Left effusion is larger, right effusion has resolved.",
        "The left effusion has grown, while the one on the right has cleared.",
    ),
    ("Bilateral effusions, moderate on the right and small on the left.", "R>L effusions."),
    # sides with an age or number each
    (
        "Rib fractures, old on the left, acute on the right.",
        "Acute right rib fracture. Old left rib fracture.",
    ),
    (
        "Nodules, innumerable on the left, solitary on the right.",
        "Solitary nodule on the right. Innumerable nodules on the left.",
    ),
    # the degree of today, on one side
    (
        "Effusions, on the right small progressed to large, on the left small.",
        "Large right effusion, larger than before. Small left effusion.",
    ),
    # an earlier degree and that of today
    ("Left effusion, large yesterday, is now small.", "Smaller left effusion, now small."),
    ("Moderate edema (was severe).", "Edema has improved from severe to moderate."),
    ("The large right pneumothorax is now small.", "Small right pneumothorax, smaller."),
    ("Previously small effusion is moderate.", "Moderate effusion, larger than before."),
    # places with a change each
    (
        "Right lung consolidation has grown in the upper lobe, improved in the lower lobe.",
        "Right upper lobe consolidation is worse. Right lower lobe consolidation is better.",
    ),
    (
        "Improvement in the left upper zone opacity but worsening in the right lower zone.",
        "The left upper zone opacity is smaller. The right lower zone opacity is larger.",
    ),
    (
        "Opacities have cleared on the right but have progressed on the left.",
        "Right opacities have resolved. Left opacities are worse.",
    ),
    ("The left drain is gone but the right one remains.", "Left drain out. Right drain unchanged."),
    # the side with more of it
    ("Bilateral opacities with left-sided predominance.", "Opacities, left greater than right."),
    ("Bibasilar atelectasis, more so on the right.", "Atelectasis, R > L."),
    ("Edema, mainly on the left.", "Left lung edema."),
    # devices that have moved or gone
    (
        "Feeding tube has been withdrawn, its weighted tip is in the distal esophagus.",
        "The feeding tube was pulled back and ends in the lower esophagus.",
    ),
    (
        "ETT, nasogastric tube and Swan-Ganz catheter have all been removed.",
        "Removal of the endotracheal tube, nasogastric tube and Swan-Ganz catheter.",
    ),
    (
        "NG tube in the stomach. The side hole is above the GE junction.",
        "Nasogastric tube with side port above the gastroesophageal junction.",
    ),
    ("Two tubes on the right.", "Two right chest tubes."),
    (
        "The patient was intubated; the tube ends 4 cm above the carina.",
        "New ETT, 4 cm above carina.",
    ),
    (
        "Swan-Ganz catheter withdrawn from a lower lobe artery to the main pulmonary artery.",
        "The PA catheter has been pulled back and now ends in the main pulmonary artery.",
    ),
    ("The nasogastric tube has been removed.", "NG out."),
    ("The Impella has been explanted and an LVAD placed.", "An LVAD has replaced the Impella."),
    ("ETT in the trachea, 4 cm above the carina.", "The tube in the windpipe is well placed."),
    ("Right PICC ends in the azygos vein.", "Right PICC in the azygos vein, withdraw."),
    # words of change
    ("Opacities are more confluent.", "More confluent opacities."),
    ("Right effusion has increased.", "R effusion up."),
    ("Nodules have increased.", "Nodules are larger and more numerous."),
    ("Edema is unchanged.", "Edema not significantly different."),
    ("Right hemidiaphragm elevated, unchanged.", "Right hemidiaphragm elevated as before."),
    ("Left apical pneumothorax has resolved.", "There is no longer a left pneumothorax."),
    (
        "Right effusion has improved, left effusion has not.",
        "Improved right effusion. Left effusion unchanged.",
    ),
    (
        "Large right and moderate left effusion; both increased.",
        "The right effusion is large, the left one moderate. Both have increased.",
    ),
    (
        "Opacities, much better on the left, slightly better on the right.",
        "Left opacities have improved. Right opacities have improved.",
    ),
    ("The heart is moderately enlarged, as on prior.", "Unchanged moderate cardiomegaly."),
    ("Left basal atelectasis has improved.", "The left base is better aerated."),
    (
        "The collapsed left lung is partially aerated again.",
        "Partial re-aeration of the left lung.",
    ),
    ("Clearing of the left lower lobe opacity.", "The left lower lobe opacity has cleared."),
    (
        "Small left effusion, and the right base has cleared.",
        "Small effusion on the left. The right base has cleared.",
    ),
    (
        "Effusions: bilateral, increased on the right, decreased on the left.",
        "The right effusion has increased, the left effusion has decreased.",
    ),
    (
        "Increasing bilateral effusions, right moderate, left small.",
        "The moderate right and small left effusions have increased.",
    ),
    (
        "Atelectasis, previously confined to the left base, now involves the left lower lobe.",
        "Worsening left lower lobe atelectasis.",
    ),
    ("There is no effusion remaining.", "The effusion has resolved."),
    # a heading names the part, a line ends without a full stop
    ("**Heart**\n- Markedly enlarged\n\n**Lungs**\n- Clear", "Severe cardiomegaly. Clear lungs."),
    ("- Pericardial drain removed\n- No pneumothorax", "The pericardial drain has been removed."),
    # the way of a line, what is no tube
    ("Temporary pacing wire via the right IJ.", "Right jugular temporary pacing lead."),
    ("Overdistended ETT cuff.", "The endotracheal tube cuff is overinflated."),
    ("Effusions: R ↑, L unchanged.", "Right effusion has increased; left effusion is unchanged."),
    ("There is now complete collapse of the left lung.", "New complete left lung collapse."),
    (
        "Hazy lower lungs likely reflect layering effusions, small left, moderate right.",
        "Layering effusions, moderate on the right and small on the left.",
    ),
    (
        "The ETT has been advanced, and the left lung has come up again.",
        "The ETT has been advanced. The left lung has re-expanded.",
    ),
    (
        "Removal of the endotracheal tube and the catheter, and the left chest drain.",
        "The endotracheal tube, the catheter and the left chest drain have been removed.",
    ),
    (
        "Improvement in the left opacity and in the right effusion.",
        "Left opacity has improved. Right effusion has improved.",
    ),
    (
        "ETT 5.5 cm above the carina; could be advanced.",
        "Endotracheal tube 5.5 cm above the carina, which might be advanced.",
    ),
    ("The previously noted pneumothorax is not seen.", "The pneumothorax has resolved."),
    ("Left chest tube has been placed on water seal.", "Left chest tube."),
    # sides that are named in relation to another one
    (
        "Right chest tube. Small pneumothorax on this side.",
        "Right chest tube and pneumothorax, small.",
    ),
    (
        "The left lung is collapsed with shift to the ipsilateral side.",
        "Left lung collapse with leftward mediastinal shift.",
    ),
    # one of several that may be there
    (
        "Nodules in the right lung, possibly septic emboli. Left base consolidation.",
        "Right lung nodules, suspicious for septic emboli. Consolidation at the left base.",
    ),
    # air, volumes, hearts
    ("Lung volumes have fallen.", "The lungs are less inflated than before."),
    ("Heart size is borderline.", "Borderline size of the cardiac silhouette."),
    ("Reticular opacities from ARDS.", "ARDS."),
    (
        "A large right effusion compresses the lower lobe.",
        "Large right effusion with compressive atelectasis of the lower lobe.",
    ),
    ("Trachea shifted to the right rather than to the left.", "Rightward tracheal shift."),
    ("Subcutaneous emphysema in the neck.", "Gas is present in the soft tissues of the neck."),
    ("Increasing air collection in the right chest wall.", "More right chest wall emphysema."),
    ("Lung volumes have decreased.", "Volumes lower than before."),
    (
        "Low lung volumes. Probably mild cardiomegaly.",
        "Heart is exaggerated by low lung volumes, probably mildly enlarged.",
    ),
    # what is denied is not said to have gone
    ("No pneumothorax.", "No residual pneumothorax."),
    # a device whose tip is placed has been moved, not removed
    (
        "The balloon pump was pulled back and ends 2 cm below the aortic arch.",
        "Balloon pump, withdrawn since the prior, tip 2 cm below the aortic arch.",
    ),
    (
        "Balloon pump tip 2 cm below the aortic arch; it has been withdrawn since the prior.",
        "The balloon pump was pulled back and ends 2 cm below the aortic arch.",
    ),
    # of a device that was placed, and of a finding beside another one
    (
        "New right subclavian line in the SVC.",
        "Right subclavian line in the SVC. No pneumothorax after line insertion.",
    ),
    (
        "Moderate left effusion. Adjacent atelectasis. Right basal scar.",
        "Moderate left effusion. Left atelectasis. Right basal scar.",
    ),
    ("Left basal atelectasis has improved.", "Residual left basal atelectasis."),
    ("Four pleural drains, two on each side.", "Two right and two left chest tubes."),
    # one device in several words, and two devices in one sentence
    (
        "Right jugular tunneled line in the SVC and a left IJ dialysis line in the right atrium.",
        "Left jugular dialysis catheter, tip in the right atrium. Right IJ line ends in the SVC.",
    ),
    ("A dual-lumen ECMO cannula ends in the right atrium.", "ECMO cannula in the right atrium."),
    (
        "IVC cannula ends at the inferior cavoatrial junction.",
        "IVC cannula, tip at the IVC right atrial junction.",
    ),
    (
        "The side hole of the right drain is well within the thoracic cavity.",
        "Right drain, its side port is in the pleural space.",
    ),
    ("ET tube is 2 cm above the carina; minimal withdrawal may help.", "The ETT is too low."),
    (
        "Right jugular line ends in the left brachiocephalic vein.",
        "Right IJ line crosses the midline into the left innominate vein.",
    ),
    ("The dialysis line is well placed, tip in the SVC.", "Dialysis line, tip in the SVC."),
    # of two places with a degree each, what is said of both
    (
        "Moderate left and trace right effusions have both decreased.",
        "Both effusions are smaller, moderate on the left and trace on the right.",
    ),
    (
        "Large tension pneumothorax with mild shift.",
        "Large tension pneumothorax, mild midline shift.",
    ),
    # the words about a device that has gone are not of the next one
    (
        "The Swan-Ganz catheter has been withdrawn, leaving a left jugular sheath.",
        "Left jugular sheath. Removal of the Swan-Ganz catheter.",
    ),
    # an exception has the side of what is clear
    (
        "The right lung is clear apart from minor basal atelectasis.",
        "Minor right basal atelectasis.",
    ),
    # "both" of two findings; what has cleared in part; what is said in passing
    (
        "Right effusion and basal atelectasis, both essentially the same.",
        "Unchanged right effusion and basal atelectasis.",
    ),
    ("Left basal consolidation has cleared substantially.", "Left base consolidation is better."),
    (
        "The heart, although still mildly enlarged, is smaller.",
        "Mild cardiomegaly, but the heart has become smaller.",
    ),
    (
        "The right opacity, compatible with contusion, has become denser.",
        "Denser right opacity.",
    ),
    ("The left lung is less well aerated.", "Worsened aeration of the left lung."),
    ("The stomach is no longer distended.", "Gastric distention has resolved."),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=[other for _, other in SAME])
def test_other_words_for_the_same_are_no_error(one, other):
    for candidate, reference in ((one, other), (other, one)):
        assert JUDGE.judge(candidate, reference).errors == ()


OTHER = [
    (
        "Left effusion is larger than the right.",
        "The right effusion is larger than the left.",
        ["wrong_location"],
    ),
    (
        "Both effusions have increased.",
        "The right effusion has decreased. The left effusion is larger.",
        ["false_comparison"],
    ),
    (
        "Bilateral apical pneumothoraces, unchanged.",
        "Left apical pneumothorax is unchanged. Right apical pneumothorax is new.",
        ["omitted_comparison"],
    ),
    (
        "Right effusion small, left effusion small.",
        "Small right effusion, moderate left effusion.",
        ["wrong_severity"],
    ),
    (
        "Large pneumothorax.",
        "A large pneumothorax has nearly resolved.",
        ["wrong_severity", "omitted_comparison"],
    ),
    (
        "Severe edema. Moderate effusion.",
        "Severe edema and moderate effusion have nearly resolved.",
        ["wrong_severity", "omitted_comparison", "wrong_severity"],
    ),
    ("Large effusion.", "A small effusion cannot be excluded.", ["false_finding"]),
    ("More edema.", "Edema has improved.", ["false_comparison"]),
    ("Dobhoff in the stomach.", "Dobhoff withdrawn into the esophagus.", ["wrong_location"]),
    ("Tracheostomy.", "Tracheostomy tube, cuff overinflated.", ["omitted_finding"]),
    ("Left apical pneumothorax.", "Left apical pneumothorax has resolved.", ["false_finding"]),
    (
        "Edema, moderate, left greater than right.",
        "Moderate edema, right worse than left.",
        ["wrong_location"],
    ),
    (
        "Effusion, large before, now small.",
        "The small effusion is now large.",
        ["wrong_severity", "false_comparison"],
    ),
    (
        "Consolidation has progressed in the left upper lobe and in the right lower lobe.",
        "Consolidation has progressed in the left upper lobe, improved in the right lower lobe.",
        ["false_comparison"],
    ),
    (
        "The heart is smaller than before.",
        "The cardiac silhouette is larger than yesterday.",
        ["false_comparison"],
    ),
    (
        "Left lung aeration has worsened.",
        "Aeration of the left lung has improved.",
        ["false_comparison"],
    ),
    (
        "Dobhoff tube with tip in the stomach.",
        "A right-sided Dobhoff tube. The tube is coiled in the esophagus, withdraw.",
        ["wrong_location"],
    ),
    (
        "Large right pneumothorax with collapse of the right lung.",
        "Large right pneumothorax with right lung collapse has almost completely resolved.",
        ["wrong_severity", "omitted_comparison"],
    ),
    ("Large pneumopericardium.", "Pneumopericardium cannot be excluded.", ["false_finding"]),
    (
        "PA catheter in the main pulmonary artery.",
        "PA catheter in the ascending aorta.",
        ["wrong_location"],
    ),
    ("Two chest tubes on the left.", "Three left chest tubes.", ["wrong_severity"]),
    (
        "Balloon pump tip 5 cm below the aortic arch.",
        "Balloon pump tip 2 cm below the aortic arch.",
        ["wrong_location"],
    ),
    (
        "Left lung opaque with contralateral mediastinal displacement.",
        "Left lung opaque with mediastinal displacement to the same side.",
        ["wrong_location"],
    ),
    ("Lobar collapse has resolved.", "Lobar collapse persists.", ["omitted_finding"]),
    # a finding that is named by its change alone is one error
    (
        "Normal heart. Lung volumes are unchanged.",
        "Normal heart. Lung volumes have decreased.",
        ["omitted_comparison"],
    ),
    # what is said of a part is compared with the finding there
    ("Bibasilar atelectasis. The right base is worse.", "Bibasilar atelectasis, worse.", []),
    (
        "Left basal consolidation. The left base is worse.",
        "Left basal consolidation has improved.",
        ["false_comparison"],
    ),
    # the opposite change is one error, also where the reference has two names for the finding
    (
        "Right perihilar edema is worse.",
        "Right perihilar haziness is better. Edema has improved.",
        ["false_comparison"],
    ),
    # a device that one report alone calls moved; advice is no movement
    (
        "Dialysis catheter in the right atrium, it has been pulled back by 4 cm.",
        "Dialysis catheter in the right atrium.",
        ["false_comparison"],
    ),
    (
        "Feeding tube in the stomach, unchanged.",
        "The feeding tube has been advanced into the stomach.",
        ["omitted_comparison"],
    ),
    ("The feeding tube should be advanced.", "The feeding tube is too high.", []),
    ("ET tube 1 cm above the carina.", "ET tube 1 cm above the carina, retract by 2 cm.", []),
    (
        "Right PICC, tip in the lower SVC.",
        "Right PICC has been pulled back, its tip in the axillary vein.",
        ["wrong_location"],
    ),
    ("Right balloon pump above the aortic arch.", "Balloon pump in place.", ["false_finding"]),
    ("Right jugular line above the aortic arch.", "Right jugular line in place.", []),
    # a line that is denied on its side
    (
        "Left jugular line in the SVC. Other devices unchanged.",
        "Devices are unchanged except that the left jugular line has been removed.",
        ["false_finding"],
    ),
    # several devices of one kind
    ("Bilateral pleural drains.", "Left pleural drain.", ["false_finding"]),
    ("One left chest tube.", "Two left chest tubes.", ["wrong_severity"]),
    # a consequence that is left out, and one that is invented
    (
        "Large left pneumothorax.",
        "Large left pneumothorax with mediastinal shift to the right.",
        ["omitted_finding"],
    ),
    (
        "Large left pneumothorax with mediastinal shift to the right.",
        "Large left pneumothorax.",
        ["false_finding"],
    ),
    (
        "Complete collapse of the right lung.",
        "Minimal right basal atelectasis.",
        ["wrong_severity"],
    ),
    # a number is another one where it is twice as large
    ("Two nodules in the left lung.", "Four nodules in the left lung.", ["wrong_severity"]),
    ("Two nodules in the left lung.", "Three nodules in the left lung.", []),
    # two findings in one sentence
    (
        "No opacity. No effusion.",
        "Right lower lobe opacity with a small effusion.",
        ["omitted_finding", "omitted_finding"],
    ),
    (
        "Right perihilar edema.",
        "Right perihilar haziness. Asymmetric edema, worse on the right.",
        [],
    ),
]


@pytest.mark.parametrize(("candidate", "reference", "errors"), OTHER, ids=[o[0] for o in OTHER])
def test_each_difference_is_one_error(candidate, reference, errors):
    found = JUDGE.judge(candidate, reference).errors
    assert [str(e.category) for e in found] == errors


def test_history_before_the_findings_is_not_stated():
    """What the indication names is no finding of the report: nothing of it can be omitted."""
    reference = "INDICATION: Status post CABG, chest tube.\n\nFINDINGS: Small left effusion."
    assert JUDGE.judge("Small left effusion.", reference).errors == ()
