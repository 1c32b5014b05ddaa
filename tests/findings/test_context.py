"""ConText rules against published examples and against the phrasings of chest reports.

In each sentence the words asked about stand in square brackets.
"""

import pytest

from vlscore.errors import InvalidReport
from vlscore.findings import Polarity, Span, Status, assert_span

# Sentences of the NegEx test set (120 reports with manual annotations, Apache-2.0), published with
# Chapman et al., J Biomed Inform 2001;34:301-310: github.com/chapmanbe/negex,
# Annotations-1-120.txt. A few are shortened.
NEGEX_NEGATED = [
    "No [pericardial effusion] is seen.",
    "She denies [fever], chills, or other constitutional symptoms.",
    "She denies fever, chills, or other [constitutional symptoms].",
    "Neck supple, no [JVD].",
    "There was no evidence of ulceration, mass or [diverticula].",
    "The patient did have a chest x-ray which was negative for any [infiltrate] or effusion.",
    "The patient did have a chest x-ray which was negative for any infiltrate or [effusion].",
    "There is no [pneumothorax] with bilateral chest tubes in place.",
    "The lungs are clear to auscultation bilaterally, no wheezes or [rales].",
    "The esophagus was entirely normal without signs of inflammation or [Barrett's esophagus].",
    "Quantitative PCR testing for [BK virus] is negative.",
    "An MRI done the same day showed no [biliary dilatation] and positive for cholecystolithiasis.",
    "She states that she has no history of [pancreatitis] or alcohol use.",
    "No [focal numbness] or weakness, though she does have pain on movement of her fingers.",
    "No focal numbness or [weakness], though she does have pain on movement of her fingers.",
    "The chest x-ray does not demonstrate any evidence of [pulmonary infiltrate] or edema.",
    "The heart size is normal without [pericardial effusion].",
    "There are no pericardial or [pleural effusions].",
    "She showed no clinical signs or symptoms of [pneumonia].",
    "No findings of [metastatic disease] in the pelvis.",
    "Impression: negative for [significant lung disease].",
    "No [calcaneal fracture] can be seen.",
    "He denies any [tobacco], alcohol, or drug abuse although he occasionally drinks beer.",
    "The patient was not [cooperative].",
]
NEGEX_AFFIRMED = [
    "There is trace [mitral regurgitation].",
    "Past medical history is significant for [esophageal strictures].",
    "An MRI done the same day showed no biliary dilatation and positive for [cholecystolithiasis].",
    "No focal numbness or weakness, though she does have [pain on movement] of her fingers.",
    "He denies any tobacco, alcohol, or drug abuse although he occasionally [drinks beer].",
    "[Left ventricular wall thickness is increased], consistent with mild hypertrophy.",
    "Left ventricular wall thickness is increased, consistent with [mild hypertrophy].",
    "Chest x-ray showed there is [left posterior basal atelectasis].",
    "There is a small amount of [fluid in the fissure] in the right lung.",
    "Impression: [tiny right pleural effusion], otherwise the lungs are clear.",
    "[Positive bowel sounds].",
    "Positive for [chest pain], no palpitations.",
    "A chest x-ray does reveal [pulmonary edema].",
    "Also a [hip fracture] and gout.",
    "No residua of [healed fractures] can be seen otherwise.",
    "[Gross cardiomegaly], severe pulmonary edema and small pleural effusions are present.",
]
# Examples in the description of the algorithm, same repository, NegExAlgorithmDescription.md.
NEGEX_DESCRIPTION = [
    ("The patient denies and has no [shortness of breath].", Polarity.NEGATIVE),
    ("Patient denies [chest pain] but has experienced some dyspnea.", Polarity.NEGATIVE),
    ("Patient denies chest pain but has experienced some [dyspnea].", Polarity.POSITIVE),
    ("Patient denies chest pain but continues to experience [SOB].", Polarity.POSITIVE),
    ("She is [tumor] free.", Polarity.NEGATIVE),
    ("No increase in [tumor size].", Polarity.POSITIVE),
]
# The features and triggers of Harkema et al., J Biomed Inform 2009;42:839-851 (and Chapman, Chu and
# Dowling, BioNLP 2007), with sentences of the same test set.
CONTEXT = [
    ("The patient has a history of [gout].", Status.HISTORICAL),
    ("Also history of [diverticulitis] and colon problems.", Status.HISTORICAL),
    ("Also history of diverticulitis and [colon problems].", Status.HISTORICAL),
    ("History of right upper extremity [deep vein thrombosis].", Status.HISTORICAL),
    ("The indication for this procedure is family history of [colon cancer].", Status.OTHER),
    ("The patient's mother has [breast cancer].", Status.OTHER),
    ("Evaluate for progression of [metastatic disease].", Status.HYPOTHETICAL),
    ("Chest pain, rule out [myocardial infarction].", Status.HYPOTHETICAL),
    ("She should return if there is [worsening pain].", Status.HYPOTHETICAL),
    ("She is discharged with the diagnosis of [food impaction].", Status.CURRENT),
    ("The applicant recalls a [rib fracture].", Status.HISTORICAL),
    ("[Pneumonia] in 2009.", Status.HISTORICAL),
    ("[Pneumothorax] at the age of 17.", Status.HISTORICAL),
    ("[Pneumonia] as a child.", Status.HISTORICAL),
    ("As a student she had [pneumonia].", Status.HISTORICAL),
    ("The letter mentions [rib fractures].", Status.HISTORICAL),
    ("The patient will undergo [sternotomy].", Status.HYPOTHETICAL),
    ("[Rib fractures] several years ago.", Status.HISTORICAL),
    ("[Pneumothorax] aged 19.", Status.HISTORICAL),
    ("A [pacemaker] is scheduled.", Status.HYPOTHETICAL),
    ("A [chest tube] is to be placed.", Status.HYPOTHETICAL),
    ("Repeat in case of [pneumothorax].", Status.HYPOTHETICAL),
    ("In 2003 she had a [pneumothorax].", Status.HISTORICAL),
    ("[Rib fractures] according to the referral.", Status.HISTORICAL),
    ("[Sternotomy] in 2009.", Status.CURRENT),
    ("The [nodule], larger than in 2009.", Status.CURRENT),
    ("Scheduled for [sternotomy].", Status.HYPOTHETICAL),
    ("Vaccine against [pneumonia] given.", Status.HYPOTHETICAL),
    ("Exercises to prevent [atelectasis].", Status.HYPOTHETICAL),
    ("Should a [rib fracture] be suspected, oblique views help.", Status.HYPOTHETICAL),
]
UNCERTAIN = [
    "This may represent [metastatic lesion] or myeloma.",
    "This may represent metastatic lesion or [myeloma].",
    "There may be a [tiny right pleural effusion].",
    "The patient was given Unasyn for possible [aspiration pneumonia].",
    "It showed [atelectasis] versus pneumonia in the left lower lobe.",
    "It showed atelectasis versus [pneumonia] in the left lower lobe.",
    "Left basilar opacity concerning for [pneumonia].",
    "Left basilar opacity suggesting [atelectasis].",
    "[Pneumonia] cannot be excluded.",
    "Cannot exclude a small [effusion].",
    "A small [effusion] is possible.",
    "Not certain if there is [consolidation].",
    "No effusion, possible [consolidation].",
    "[Consolidation] should be considered.",
    "[Pneumonia] is less likely.",
    "Maybe a small [effusion].",
    "The previously noted [nodule] is not as well seen.",
]
NEGATED = [
    "No effusion, pneumothorax or [consolidation].",
    "No [effusion], pneumothorax or consolidation.",
    "Free of [focal airspace disease].",
    "The lungs are clear of focal airspace disease, pneumothorax, or [pleural effusion].",
    "Absence of [effusion].",
    "The [effusion] is absent.",
    "[Pneumothorax] is no longer seen.",
    "[Pneumonia] is unlikely.",
    "Atelectasis rather than [pneumonia].",
    "No opacity suspicious for [pneumonia].",
    "There is no focal opacity to suggest a [pneumonia].",
    "No evidence of [pneumonia], however there is an effusion.",
    "No definite [pleural effusion] seen.",
    "Negative for [pneumothorax] or effusion.",
    "Emphysema without superimposed [pneumonia].",
    "Cleared right upper lobe [pneumonia].",
    "A skin fold simulating a [pneumothorax].",
    "Without [pneumothorax], effusions are small.",
    "Without focal consolidation, effusion, or [pneumothorax].",
    "Nil [pneumothorax].",
]
STATED = [
    "No change in the left [effusion].",
    "There has been no significant interval change in [cardiomegaly].",
    "No evidence of pneumonia, however there is an [effusion].",
    "Atelectasis without pneumonia but with a small [effusion].",
    "No focal consolidation, stable [cardiomegaly].",
    "No pneumothorax with small left [effusion].",
    "Airspace [opacity], not seen on the prior exam.",
    "[Opacity] in the left base, which may represent atelectasis.",
    "There is [cardiomegaly] without edema.",
    "Without pneumothorax, [effusions] are small.",
    "Partial clearing of the left basilar [pneumonia].",
    "Right basilar [opacity], atelectasis versus pneumonia.",
]


def marked(sentence: str) -> tuple[str, Span]:
    """The sentence without its brackets, and the span they enclosed."""
    start, end = sentence.index("["), sentence.index("]") - 1
    return sentence.replace("[", "").replace("]", ""), Span(start, end)


def polarity(sentence: str) -> Polarity:
    return assert_span(*marked(sentence))[0]


@pytest.mark.parametrize("sentence", NEGEX_NEGATED)
def test_negated_in_the_negex_test_set(sentence: str) -> None:
    assert polarity(sentence) is Polarity.NEGATIVE


@pytest.mark.parametrize("sentence", NEGEX_AFFIRMED)
def test_affirmed_in_the_negex_test_set(sentence: str) -> None:
    assert polarity(sentence) is Polarity.POSITIVE


@pytest.mark.parametrize(("sentence", "expected"), NEGEX_DESCRIPTION)
def test_examples_of_the_negex_description(sentence: str, expected: Polarity) -> None:
    assert polarity(sentence) is expected


@pytest.mark.parametrize(("sentence", "expected"), CONTEXT)
def test_temporality_and_experiencer(sentence: str, expected: Status) -> None:
    assert assert_span(*marked(sentence))[1] is expected


@pytest.mark.parametrize("sentence", UNCERTAIN)
def test_uncertain(sentence: str) -> None:
    assert polarity(sentence) is Polarity.UNCERTAIN


@pytest.mark.parametrize("sentence", NEGATED)
def test_negated_in_chest_reports(sentence: str) -> None:
    assert polarity(sentence) is Polarity.NEGATIVE


@pytest.mark.parametrize("sentence", STATED)
def test_stated_in_chest_reports(sentence: str) -> None:
    assert polarity(sentence) is Polarity.POSITIVE


def test_span_without_words_is_refused() -> None:
    with pytest.raises(InvalidReport, match="no word"):
        assert_span("No effusion.", Span(2, 3))
