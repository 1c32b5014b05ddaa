"""Laws of the judge: an invention never pays, and order and repetition change nothing.

Expectations are by construction: the truth of a phantom is known, and a sentence about a kind of
finding that it lacks is invented. Real reports are read from ../shared, where it is.
"""

import importlib.util
import itertools
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from vlscore.data import write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.metrics import RuleJudge, rating

REPOSITORY = Path(__file__).parents[3]
GENERATED = REPOSITORY.parent / "shared" / "data" / "generated"
JUDGE = RuleJudge()
MASS = "There is a 3 cm mass in the left upper lobe."

#: Kind of the phantom -> a sentence about one that the phantom's report does not state.
OF_KIND = {
    "effusion": "Large right pleural effusion.",
    "pneumothorax": "Small left apical pneumothorax.",
    "edema": "Moderate pulmonary edema.",
    "cardiomegaly": "The heart is severely enlarged.",
    "fracture": "There is an acute fracture of the left sixth rib.",
}
#: Sentences about findings that no phantom has.
OF_NO_KIND = (
    "There is free air under the diaphragm.",
    "Large hiatal hernia.",
    "Right hilar lymphadenopathy.",
    "Aneurysm of the descending aorta.",
)


def errors(candidate, reference):
    """(category, finding, severity) of each error, sorted."""
    found = JUDGE.judge(candidate, reference).errors
    return sorted((str(e.category), e.finding, e.severity) for e in found)


def value(candidate, reference):
    judged = JUDGE.judge(candidate, reference)
    return rating(judged), judged.grade


def never_pays(candidate, invention, reference):
    """Return whether an invented sentence raises neither the rating nor the grade."""
    after, before = value(f"{candidate} {invention}", reference), value(candidate, reference)
    return after[0] <= before[0] + 1e-9 and after[1] <= before[1]


def phantoms(count):
    """Scenes with a reference, and a candidate that states about half of the findings."""
    for place in range(count):
        scene = scene_at(773, place)
        rng = np.random.default_rng([773, place])
        stated = [finding for finding in scene.findings if rng.random() < 0.5]
        reference = write_report(rng, scene.findings, split="held_out")
        yield scene, write_report(rng, stated, split="held_out"), reference


def test_an_invention_never_pays_on_phantoms_and_is_an_error():
    tried = 0
    for scene, candidate, reference in phantoms(60):
        kinds = {finding.kind for finding in scene.findings}
        lacking = [sentence for kind, sentence in OF_KIND.items() if kind not in kinds]
        for sentence in (*OF_NO_KIND, *lacking):
            assert never_pays(candidate, sentence, reference), (candidate, sentence, reference)
            invented = len(errors(f"{candidate} {sentence}", reference))
            assert invented > len(errors(candidate, reference)), (candidate, sentence, reference)
            tried += 1
    assert tried > 300


def test_order_and_repetition_change_nothing_on_phantoms():
    for place, (_, candidate, reference) in enumerate(phantoms(60)):
        before, expected = value(candidate, reference), errors(candidate, reference)
        rng = np.random.default_rng([774, place])
        for report, judged in (
            (candidate, lambda text, other=reference: (text, other)),
            (reference, lambda text, other=candidate: (other, text)),
        ):
            sentences = [f"{s.strip().rstrip('.')}." for s in report.split(". ")]
            turned = " ".join(rng.permutation(sentences))
            for text in (turned, f"{report} {report}"):
                assert errors(*judged(text)) == expected, (text, candidate, reference)
                assert value(*judged(text)) == before, (text, candidate, reference)


@pytest.mark.parametrize(
    ("silent", "invention", "reference"),
    [
        # The reference denies what the candidate invents; another name of it is no finding of it.
        (
            "The heart is normal.",
            "Large right pleural effusion.",
            "Streaky bibasilar opacities. No pleural effusion.",
        ),
        ("The heart is normal.", "Moderate pulmonary edema.", "Peribronchial cuffing. No edema."),
        (
            "The heart is normal.",
            "Left lower lobe consolidation.",
            "Possible pneumonia. No focal consolidation.",
        ),
        ("The heart is normal.", "Pulmonary edema.", "Vascular congestion without edema."),
        # A milder, a more general or a benign finding does not excuse a graver one.
        ("The heart is normal.", MASS, "Calcified granuloma."),
        ("Calcified granuloma.", MASS, "Calcified granuloma."),
        (
            "Calcified granuloma in the left lung.",
            MASS,
            "Calcified granuloma in the left lung.",
        ),
        ("Granulomatous disease.", MASS, "Granulomatous disease."),
        ("Hilar prominence.", MASS, "Hilar prominence."),
        ("The heart is normal.", MASS, "Goiter."),
        ("The heart is normal.", MASS, "Nodular opacity."),
        ("The heart is normal.", MASS, "Lung nodule."),
        ("Lung nodule.", "Lung cancer.", "Lung nodule."),
        ("The heart is normal.", "Lung cancer.", "Lung nodule."),
        ("The heart is normal.", "Calcified granuloma.", "Lung nodule."),
        ("The heart is normal.", "8 mm nodule in the right lower lobe.", "Old granulomas."),
        ("The heart is normal.", "Moderate pulmonary edema.", "Increased interstitial markings."),
        ("The heart is normal.", "Acute fracture of the left sixth rib.", "Deformity of T8."),
        ("The heart is normal.", "Acute fracture of a left rib.", "Compression fracture of T8."),
        ("The heart is normal.", "Left upper lobe pneumonia.", "Right basal opacity."),
    ],
)
def test_an_invention_is_an_error_that_never_pays(silent, invention, reference):
    assert never_pays(silent, invention, reference)
    assert value(f"{silent} {invention}", reference)[0] < 1
    invented = errors(f"{silent} {invention}", reference)
    assert any(category == "false_finding" for category, *_ in invented)


@pytest.mark.parametrize("joint", [" or", " versus", " vs.", " and/or", ", possibly", "/"])
@pytest.mark.parametrize(
    ("stated", "invention", "reference"),
    [
        ("Left basal atelectasis", "large pneumothorax", "Left basal atelectasis."),
        ("Scar in the right apex", "rib fracture", "Scar in the right apex."),
        ("Small right effusion", "free air", "Small right effusion. Cardiomegaly."),
        ("Small right effusion", "free air", "Cardiomegaly."),
        ("Hiatal hernia", "aortic dissection", "Hiatal hernia. No aortic dissection."),
        ("Cardiomegaly", "pulmonary embolism", "Normal."),
        ("Left effusion", "tortuous aorta", "Left effusion."),
        ("Emphysema", "pneumothorax", "Emphysema."),
        # Hardly confused with what is there, or denied.
        ("Granuloma", "lung cancer", "Granuloma."),
        ("Granuloma", "mass", "Granuloma."),
        ("Left basal atelectasis", "mass", "Left basal atelectasis."),
        ("Left basal atelectasis", "pneumonia", "Left basal atelectasis. No pneumonia."),
    ],
)
def test_an_invented_alternative_never_pays_and_is_an_error(joint, stated, invention, reference):
    before, after = (
        value(text, reference) for text in (f"{stated}.", f"{stated}{joint} {invention}.")
    )
    assert after[0] < before[0]
    assert after[1] <= before[1]


def test_each_further_alternative_costs():
    reference = "Left basal scar."
    stated = "Left basal scar"
    ratings = []
    for name in ("atelectasis", "pneumonia", "edema", "pneumothorax", "fracture"):
        stated = f"{stated} or {name}"
        ratings.append(value(f"{stated}.", reference)[0])
    assert ratings[0] == 1.0
    assert ratings == sorted(ratings, reverse=True)
    assert len(set(ratings)) == len(ratings)
    # In another sentence, too.
    again = "Left basal scar. Left basal scar or atelectasis"
    assert value(f"{again}.", reference)[0] == 1.0
    assert value(f"{again} or edema.", reference)[0] < 1.0
    assert value(f"{again}. Left basal scar or edema.", reference)[0] < 1.0
    assert value("Granuloma. Mass or granuloma.", "Granuloma.")[0] < 1.0
    # Without one that is there, what is unlike the others is invented by itself.
    assert len(errors("Hernia or fracture or pneumothorax.", "Normal.")) == 3
    assert len(errors("Atelectasis or pneumonia.", "Normal.")) == 1


@pytest.mark.parametrize(
    ("candidate", "reference"),
    [
        ("Left basal opacity, atelectasis or pneumonia.", "Left basal atelectasis."),
        ("Left basal opacity, atelectasis or pneumonia.", "Left basal consolidation."),
        ("Left basal opacity may be a scar or a tumor.", "Left basal opacity."),
        ("Blunted left costophrenic angle, effusion or scar.", "Small left effusion."),
        ("Small left effusion.", "Small left effusion versus scar."),
        ("Hiatal hernia.", "Hiatal hernia or aneurysm of the aorta."),
        ("Aneurysm of the aorta.", "Hiatal hernia or aneurysm of the aorta."),
    ],
)
def test_one_of_several_explanations_is_no_error(candidate, reference):
    assert errors(candidate, reference) == []


@pytest.mark.parametrize(
    ("candidate", "reference"),
    [
        ("Left lower lobe consolidation.", "Left lower lobe infiltrate."),
        ("Left basilar pneumonia.", "Left basilar opacity."),
        ("Emphysema.", "Chronic lung disease."),
        ("Mass of 32 mm in the left upper lobe.", "Nodule of 32 mm in the left upper lobe."),
    ],
)
def test_another_name_for_what_is_there_is_no_invention(candidate, reference):
    assert errors(candidate, reference) == []


def test_a_mass_for_a_nodule_is_an_error_in_either_direction():
    for pair in itertools.permutations(("Left apical nodule.", "Left apical mass.")):
        assert errors(*pair) != []
        assert value(*pair)[0] < 1


@pytest.mark.parametrize(
    ("milder", "graver", "level"),
    [
        ("Small left pneumothorax.", "Large left pneumothorax.", 5),
        ("Small left effusion.", "Large right effusion.", 4),
        ("Mild edema.", "Severe edema.", 4),
    ],
)
def test_of_two_degrees_the_graver_counts(milder, graver, level):
    clear = "The lungs are clear."
    for text in (f"{milder} {graver}", f"{graver} {milder}"):
        assert [severity for *_, severity in errors(text, clear)] == [level]
        assert [severity for *_, severity in errors(clear, text)] == [level]


def test_a_degree_that_the_reference_states_twice_is_the_graver_in_any_order():
    for reference in itertools.permutations(("Mild cardiomegaly.", "Severe cardiomegaly.")):
        assert [e[:2] for e in errors("Mild cardiomegaly.", " ".join(reference))] == [
            ("wrong_severity", "cardiomegaly")
        ]
        assert errors("Severe cardiomegaly.", " ".join(reference)) == []


@pytest.mark.parametrize(
    "sentences",
    [
        ("Left lower opacity.", "Left opacity.", "Left upper opacity."),
        ("Effusion.", "Left effusion.", "Right effusion."),
        ("Opacity in the left base.", "Left basilar atelectasis.", "Left basilar pneumonia."),
        ("8 mm left nodule.", "Left nodule.", "12 mm left nodule."),
        ("New left effusion.", "Left effusion, unchanged.", "Left effusion."),
    ],
)
def test_statements_are_merged_in_any_order(sentences):
    first = " ".join(sentences)
    for order in itertools.permutations(sentences):
        assert errors(" ".join(order), first) == []
        assert errors(" ".join(order), "Clear lungs.") == errors(first, "Clear lungs.")
        assert errors("Clear lungs.", " ".join(order)) == errors("Clear lungs.", first)
        assert errors(" ".join((*order, *order)), first) == []


@pytest.mark.parametrize(
    "words",
    [
        "effusion or ",
        "left basilar opacity , ",
        "atelectasis versus pneumonia, ",
        "edema and mass ",
    ],
)
def test_a_text_that_repeats_itself_is_judged_in_little_time(words):
    start = time.perf_counter()
    errors(words * 400, "Small left effusion.")
    # It was half a minute, and eight times that for twice the words.
    assert time.perf_counter() - start < 5


def test_what_has_resolved_counts_once():
    once = "The left pneumothorax has resolved."
    assert errors(once, "Clear lungs.") == errors(f"{once} {once}", "Clear lungs.") != []
    assert errors("Clear lungs.", once) == errors("Clear lungs.", f"{once} {once}")


def test_an_error_says_whether_the_other_report_denies_the_finding():
    (denied,) = JUDGE.judge("No edema.", "Mild edema.").errors
    (silent,) = JUDGE.judge("Clear lungs.", "Mild edema.").errors
    (invented,) = JUDGE.judge("Mild edema.", "No edema.").errors
    assert denied.reason == "the candidate denies it (mild edema)"
    assert silent.reason == "the candidate does not state it (mild edema)"
    assert invented.reason == "the reference denies it (mild edema)"


@pytest.mark.skipif(not GENERATED.is_dir(), reason=f"{GENERATED} is absent")
def test_laws_hold_on_real_reports():
    script = REPOSITORY / "benchmarks" / "judge_laws.py"
    sys.path.insert(0, str(script.parent))
    spec = importlib.util.spec_from_file_location("judge_laws", script)
    laws = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(laws)
    sys.path.remove(str(script.parent))
    pairs = laws.pairs_of(sorted(GENERATED.glob("*.jsonl")))[:120]
    counts = laws.broken_laws(pairs)
    for law, (broken, tried) in counts.items():
        assert tried > 20, law
        assert broken <= 0.01 * tried, law
