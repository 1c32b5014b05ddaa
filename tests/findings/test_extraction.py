"""Findings of whole sentences and reports: what, whether, where, how severe, compared with what."""

import pytest

from vlscore.errors import InvalidReport
from vlscore.findings import (
    Axis,
    Category,
    Finding,
    MarkedWords,
    Polarity,
    Side,
    Status,
    TemporalChange,
    extract,
    load_lexicon,
)


def only(report: str, observation: str) -> Finding:
    found = extract(report).of(observation)
    assert len(found) == 1, (report, found)
    return found[0]


@pytest.mark.parametrize(
    ("report", "observation"),
    [
        ("The heart is mildly enlarged.", "cardiomegaly"),
        ("Enlarged cardiac silhouette.", "cardiomegaly"),
        ("Stable cardiomegaly.", "cardiomegaly"),
        ("The aorta is tortuous and ectatic.", "aortic_tortuosity"),
        ("Tortuous and calcified thoracic aorta.", "aortic_calcification"),
        ("Atherosclerotic calcification of the aorta.", "atherosclerosis"),
        ("Blunting of the left costophrenic angle.", "costophrenic_blunting"),
        ("The right hemidiaphragm is elevated.", "elevated_diaphragm"),
        ("Flattened hemidiaphragms.", "flattened_diaphragm"),
        ("Low lung volumes.", "hypoinflation"),
        ("Lungs are hyperexpanded.", "hyperinflation"),
        ("Calcified right upper lobe granuloma.", "calcified_granuloma"),
        ("Calcified 5 mm granuloma in the left midlung.", "calcified_granuloma"),
        ("Calcified right hilar lymph nodes.", "lymph_node_calcification"),
        ("Right IJ central venous catheter with tip in the SVC.", "catheter"),
        ("Dual lead pacemaker.", "pacemaker"),
        ("Old healed rib fractures.", "fracture"),
        ("Mild dextroscoliosis of the thoracic spine.", "scoliosis"),
        ("Multilevel degenerative changes of the spine.", "degenerative_change"),
        ("Large hiatal hernia.", "hernia"),
        ("Prominent interstitial markings.", "interstitial_markings"),
        ("Pulmonary vasculature is congested.", "vascular_congestion"),
        ("8 mm nodule in the lingula.", "nodule"),
        ("Widened mediastinum.", "mediastinal_widening"),
        ("Biapical scarring.", "scar"),
        ("Compression deformity of T8.", "vertebral_deformity"),
    ],
)
def test_observation_is_recognised(report: str, observation: str) -> None:
    assert any(f.observation == observation and f.is_present for f in extract(report))


@pytest.mark.parametrize(
    ("report", "observation"),
    [
        ("Heart size is normal.", "cardiomegaly"),
        ("Heart size and mediastinal contours are within normal limits.", "cardiomegaly"),
        ("Heart size and mediastinal contours are within normal limits.", "mediastinal_widening"),
        ("Normal heart size and pulmonary vascularity.", "vascular_congestion"),
        ("The lungs are clear.", "opacity"),
        ("Clear lungs.", "opacity"),
        ("The pleural spaces are clear.", "pleural_effusion"),
        ("Heart size is at the upper limits of normal.", "cardiomegaly"),
        ("The trachea is midline.", "mediastinal_shift"),
    ],
)
def test_normality_denies_the_observation(report: str, observation: str) -> None:
    finding = only(report, observation)
    assert finding.polarity is Polarity.NEGATIVE
    assert finding.normal
    assert all(sentence.normal for sentence in extract(report).sentences)


def test_one_state_does_not_spread_to_another_subject() -> None:
    found = extract("The heart is enlarged and the pulmonary vasculature is normal.")
    assert [f.observation for f in found.present] == ["cardiomegaly"]


def test_cue_is_the_state_and_span_the_whole() -> None:
    text = "The heart is mildly enlarged."
    finding = only(text, "cardiomegaly")
    assert finding.span.of(text) == "heart is mildly enlarged"
    assert finding.cue.of(text) == "enlarged"
    assert finding.severity == "mild"


def test_attributes_go_to_their_own_finding() -> None:
    text = "Stable cardiomegaly with small bilateral effusions, left greater than right."
    heart, effusion = only(text, "cardiomegaly"), only(text, "pleural_effusion")
    assert (heart.side, heart.severity, heart.change) == (None, None, TemporalChange.UNCHANGED)
    assert (effusion.side, effusion.severity, effusion.change) == (Side.BILATERAL, "small", None)


@pytest.mark.parametrize(
    ("report", "observation", "side", "zones"),
    [
        ("Nodule in the right upper lobe.", "nodule", Side.RIGHT, ("upper lobe",)),
        ("In the right upper lobe there is a nodule.", "nodule", Side.RIGHT, ("upper lobe",)),
        ("LLL pneumonia.", "pneumonia", Side.LEFT, ("lower lobe",)),
        ("Lingular atelectasis.", "atelectasis", Side.LEFT, ("lingula",)),
        ("Bibasilar atelectasis.", "atelectasis", Side.BILATERAL, ("base",)),
        ("Atelectasis in the lung bases.", "atelectasis", Side.BILATERAL, ("base",)),
        ("Right lung base opacity.", "opacity", Side.RIGHT, ("base",)),
        ("Left apical and right basilar opacity.", "opacity", Side.BILATERAL, ("apex", "base")),
        ("Right apical pneumothorax.", "pneumothorax", Side.RIGHT, ("apex",)),
        ("Levoscoliosis.", "scoliosis", Side.LEFT, ()),
        ("Clear left lung; right effusion.", "pleural_effusion", Side.RIGHT, ()),
        ("Enlarged right atrium and left effusion.", "pleural_effusion", Side.LEFT, ()),
    ],
)
def test_place(report: str, observation: str, side: Side, zones: tuple[str, ...]) -> None:
    finding = only(report, observation)
    assert (finding.side, finding.zones) == (side, zones)


@pytest.mark.parametrize(
    ("report", "observation", "words"),
    [
        ("Small left effusion and atelectasis.", "atelectasis", ["left"]),
        ("Atelectasis or scarring in the left base.", "atelectasis", ["left", "base"]),
        ("Opacity in the right base may represent pneumonia.", "pneumonia", ["right", "base"]),
        ("Opacity in the left base. This may represent pneumonia.", "pneumonia", ["left", "base"]),
        ("Opacities are noted in the left base, consistent with scar.", "scar", ["left", "base"]),
    ],
)
def test_inherited_places_are_marked(report: str, observation: str, words: list[str]) -> None:
    attributes = only(report, observation).attributes
    assert [a.span.of(report) for a in attributes] == words
    assert all(a.inherited for a in attributes)


def test_midline_findings_inherit_no_side() -> None:
    assert only("Left pleural effusion and cardiomegaly.", "cardiomegaly").side is None


def test_a_new_statement_inherits_nothing() -> None:
    report = "Left effusion is small and there is atelectasis."
    assert only(report, "atelectasis").side is None


@pytest.mark.parametrize(
    ("report", "change"),
    [
        ("Unchanged left effusion.", TemporalChange.UNCHANGED),
        ("The left effusion is stable.", TemporalChange.UNCHANGED),
        ("The left effusion has increased since the prior study.", TemporalChange.WORSE),
        ("Worsening left effusion.", TemporalChange.WORSE),
        ("Decreased left effusion.", TemporalChange.IMPROVED),
        ("Left effusion, improved.", TemporalChange.IMPROVED),
        ("New left effusion.", TemporalChange.NEW),
        ("Left effusion, not seen on the prior exam.", TemporalChange.NEW),
        ("Left effusion doubled in volume.", TemporalChange.WORSE),
        ("Left effusion larger than at 5 am.", TemporalChange.WORSE),
        ("Left effusion has resolved.", TemporalChange.RESOLVED),
        ("Left effusion.", None),
    ],
)
def test_change(report: str, change: TemporalChange | None) -> None:
    assert only(report, "pleural_effusion").change is change


def test_a_state_behind_a_comma_or_before_with_is_of_the_subject_before() -> None:
    for report in (
        "Heart size is stable, mildly enlarged.",
        "Cardiac silhouette mildly enlarged with vascular engorgement.",
    ):
        (heart,) = (f for f in extract(report) if f.observation == "cardiomegaly")
        assert heart.severity == "mild"


def test_a_hedge_behind_a_clause_is_of_that_clause() -> None:
    opacity, aspiration = extract("Opacities have appeared, and aspiration is possible.")
    assert opacity.is_likely
    assert not aspiration.is_likely


def test_an_increased_heart_has_not_changed() -> None:
    finding = only("The heart size is mildly increased, stable since the prior.", "cardiomegaly")
    assert (finding.severity, finding.change) == ("mild", TemporalChange.UNCHANGED)


def test_words_of_a_part_without_finding_are_not_borrowed() -> None:
    finding = only("Stable mediastinal contour with a tortuous aorta.", "aortic_tortuosity")
    assert finding.change is None


@pytest.mark.parametrize(
    "report", ["The heart is borderline enlarged.", "Prominent increased interstitial markings."]
)
def test_two_states_of_one_subject_are_one_finding(report: str) -> None:
    assert len(extract(report).findings) == 1


def test_size_is_in_millimetres() -> None:
    finding = only("A 2.5 cm nodule in the left base.", "nodule")
    assert [a.value for a in finding.on(Axis.SIZE)] == ["25"]


@pytest.mark.parametrize(
    ("words", "millimetres"),
    [
        # A lesion is as large as its largest diameter.
        ("A 2.8 x 3.2 cm nodule.", "32"),
        ("Nodule measuring 3.2 cm x 28 mm.", "32"),
        ("Nodule of 12 by 9 by 14 mm.", "14"),
        ("A 2×3 cm nodule.", "30"),
        # An earlier size is that of an earlier image.
        ("Nodule of 9 mm, previously 1.2 cm.", "9"),
        ("Nodule previously 12 mm, now 9 mm.", "9"),
        ("Nodule of 9 mm, increased from 4 mm.", "9"),
        ("The nodule has grown from 4 mm to 9 mm.", "9"),
    ],
)
def test_a_lesion_has_one_size_of_today(words: str, millimetres: str) -> None:
    finding = only(words, "nodule")
    assert [a.value for a in finding.on(Axis.SIZE)] == [millimetres]


def test_words_that_a_reader_asks_for_are_marks_with_their_size() -> None:
    asked = (
        MarkedWords("place", "below", ("(below|beneath) the diaphragm",)),
        MarkedWords("place", None, ("(via|through) the (left|right|) jugular vein",)),
        MarkedWords("place", "vein", ("jugular vein",)),
        MarkedWords("joint", "or", ("or",)),
        MarkedWords("one", "tip", ("tip",), as_written=True),
    )
    lexicon = load_lexicon().marking(asked)
    report = (
        "Line through the left jugular vein. Tip 3 cm below the diaphragm or in a jugular vein."
    )
    first, second = extract(report, lexicon).sentences
    assert first.marks == ()
    found = {(m.layer, m.name, m.span.of(report), m.size, m.is_stated) for m in second.marks}
    assert found == {
        ("place", "below", "3 cm below the diaphragm", 30.0, True),
        ("place", "vein", "jugular vein", None, True),
        ("joint", "or", "or", None, True),
        ("one", "tip", "Tip", None, True),
    }
    assert extract("Tips.", lexicon).sentences[0].marks == ()
    (sentence,) = extract("Line in place, not in the jugular vein.", lexicon).sentences
    assert [m.is_stated for m in sentence.marks] == [False]


@pytest.mark.parametrize(
    ("report", "observation", "polarity"),
    [
        ("The opacity at the right apex is a summation artifact.", "opacity", "negative"),
        ("Right pneumothorax with electrodes on the chest.", "pneumothorax", "positive"),
        ("No gas below either hemidiaphragm.", "free_air", "negative"),
        ("Gas in the left axillary soft tissues.", "subcutaneous_emphysema", "positive"),
        ("Rounded density is a nipple shadow.", "nodular_opacity", "negative"),
        ("The opacity may represent overlapping structures.", "opacity", "uncertain"),
        ("The opacity is likely artifactual.", "opacity", "uncertain"),
        ("Left basilar atelectasis or pneumonia.", "atelectasis", "uncertain"),
        ("Left basilar atelectasis and/or pneumonia.", "pneumonia", "uncertain"),
        ("No atelectasis or pneumonia.", "pneumonia", "negative"),
        ("Stable effusion, no edema or pneumonia.", "pleural_effusion", "positive"),
        ("Lungs are hypoinflated but clear.", "opacity", "negative"),
        ("Lungs are hyperexpanded, otherwise clear.", "opacity", "negative"),
        ("The heart is enlarged but otherwise unremarkable.", "cardiomegaly", "positive"),
        ("Haemothorax.", "hemothorax", "positive"),
        ("Bilateral hilar lymphadenopathy and oedema.", "edema", "positive"),
    ],
)
def test_polarity(report: str, observation: str, polarity: str) -> None:
    assert only(report, observation).polarity == polarity


def test_a_mediastinum_in_the_midline_is_not_shifted_and_may_be_wide() -> None:
    found = extract("The mediastinum is midline.")
    assert [(f.observation, f.polarity) for f in found] == [
        ("mediastinal_shift", Polarity.NEGATIVE)
    ]


def test_a_history_in_capitals_ends_with_its_line_where_no_title_follows() -> None:
    report = "HISTORY: PNEUMONIA.\nSMALL LEFT EFFUSION. NO EDEMA."
    assert [f.observation for f in extract(report).present] == ["pleural_effusion"]
    governed = f"{report}\nFINDINGS: CLEAR LUNGS."
    assert not extract(governed).present


def test_rules_say_what_fired() -> None:
    text = "No pleural effusion."
    rules = [(r.name, r.span.of(text)) for r in only(text, "pleural_effusion").rules]
    assert rules == [
        ("context:negated", "No"),
        ("mention:pleural_effusion", "pleural effusion"),
    ]


@pytest.mark.parametrize(
    ("sentence", "category"),
    [
        ("PA and lateral views of the chest were obtained.", Category.TECHNIQUE),
        ("Two images.", Category.TECHNIQUE),
        ("Exam limited by patient rotation.", Category.TECHNIQUE),
        ("Critical result notification documented through Primordial.", Category.COMMUNICATION),
        ("Findings were discussed with Dr. Smith by telephone.", Category.COMMUNICATION),
        ("Recommend CT for further evaluation.", Category.RECOMMENDATION),
        ("Followup radiographs are recommended to document resolution.", Category.RECOMMENDATION),
        ("CT chest is recommended to evaluate the nodule.", Category.RECOMMENDATION),
        ("67-year-old man with cough and pneumonia.", Category.HISTORY),
        ("No prior studies are available for comparison.", Category.COMPARISON),
        ("This is unchanged.", Category.COMPARISON),
        ("Stable cardiomegaly.", Category.CLINICAL),
        ("Views of the chest show an unchanged cardiomediastinal silhouette.", Category.CLINICAL),
        ("PA and lateral views demonstrate a left effusion.", Category.CLINICAL),
        ("XXXX are normal.", Category.CLINICAL),
        ("XXXX XXXX.", Category.OTHER),
    ],
)
def test_category(sentence: str, category: Category) -> None:
    (found,) = extract(sentence).sentences
    assert found.category is category
    assert (found.rule is None) == (category in (Category.CLINICAL, Category.OTHER)) or (
        category is Category.COMPARISON
    )


def test_history_makes_no_current_finding() -> None:
    found = extract("67-year-old man with cough and pneumonia.")
    assert [f.status for f in found] == [Status.HISTORICAL]
    assert not found.present


@pytest.mark.parametrize(
    ("sentence", "observation"),
    [
        ("Consolidation, which fits the clinical history of fever.", "consolidation"),
        ("Film of a 60-year-old man, which shows an effusion.", "pleural_effusion"),
    ],
)
def test_words_of_history_do_not_hide_what_the_image_shows(sentence, observation) -> None:
    assert observation in {f.observation for f in extract(sentence).present}


def test_capital_headings_govern_the_sentences_below() -> None:
    report = (
        "INDICATION: Cough. Evaluate for pneumonia.\nCOMPARISON: Chest radiograph.\n"
        "FINDINGS: Small left effusion. No pneumothorax.\nIMPRESSION: Left effusion."
    )
    found = extract(report)
    assert [s.category for s in found.sentences if s.findings] == [
        Category.HISTORY,
        Category.CLINICAL,
        Category.CLINICAL,
        Category.CLINICAL,
    ]
    assert {f.observation for f in found.present} == {"pleural_effusion"}


def test_tokenised_lower_case_text_reads_as_written() -> None:
    written = extract("No pleural effusion. Heart size normal. Low lung volumes.")
    tokenised = extract("no pleural effusion . heart size normal . low lung volumes .")
    assert [(f.observation, f.polarity) for f in written] == [
        (f.observation, f.polarity) for f in tokenised
    ]


def test_masks_of_either_kind_are_read() -> None:
    assert only("Midline sternotomy XXXX.", "sternotomy").is_present
    assert only("Midline sternotomy ___.", "sternotomy").is_present


@pytest.mark.parametrize(
    "report",
    [
        "",
        " \n\t ",
        "Effusion",
        ".",
        "...",
        "1. 2. 3.",
        "No",
        "Herzgröße normal. Kein Pleuraerguss. Kein Infiltrat.",
        "両側胸水を認めます。心拡大なし。",
        "لا يوجد انصباب جنبي",
        "\x00\x07\x1b[31m effusion \x7f no \u200b pneumothorax \ufeff",
        "___ ___ XXXX",
        "²½⅓ 3² cm nodule ٣ mm",
        "I" * 5000,
        "-/-/-/-",
    ],
)
def test_awkward_text_is_read_without_failing(report: str) -> None:
    found = extract(report)
    assert found.text == report
    assert all(s.span.of(report) for s in found.sentences)


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidReport, match="must be a text, not a bytes"):
        extract(b"no effusion")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("report", "current"),
    [
        ("COMPARISON: None. The heart is enlarged. No effusion.", ["cardiomegaly"]),
        ("COMPARISON: Film of May with a left effusion. The heart is enlarged.", ["cardiomegaly"]),
        ("TECHNIQUE: Chest, two views. Small left effusion.", ["pleural_effusion"]),
        (
            "EXAM: CHEST. INDICATION: pneumonia. COMPARISON: None. Heart enlarged. "
            "IMPRESSION: Left effusion.",
            ["cardiomegaly", "pleural_effusion"],
        ),
        ("TECHNIQUE: Portable AP.\nThe heart is enlarged.", ["cardiomegaly"]),
        ("EXAM: CHEST PORT LINE CHECK. The heart is enlarged.", ["cardiomegaly"]),
    ],
)
def test_what_follows_comparison_or_technique_in_its_line_is_of_this_examination(report, current):
    found = [f.observation for f in extract(report).findings if f.is_present]
    assert found == current
