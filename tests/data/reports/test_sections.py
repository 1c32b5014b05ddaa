"""Sections of reports by their headers, and the fallbacks where there are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.data import SECTIONS, TextPolicy, select, select_from_parts
from vlscore.errors import InvalidReport
from vlscore.text import split_sections

REPORT = """EXAMINATION: CHEST (PA AND LAT)

INDICATION: Cough.

COMPARISON: None.

FINDINGS:
The lungs are clear.
Ratio 1:2.

IMPRESSION: No acute process.
"""


def test_headers_divide_a_report():
    sections = split_sections(REPORT)
    assert [section.name for section in sections.sections] == [
        "examination",
        "indication",
        "comparison",
        "findings",
        "impression",
    ]
    assert sections.findings == "The lungs are clear.\nRatio 1:2."
    assert (sections.get("indication"), sections.get("comparison")) == ("Cough.", "None.")
    for section in sections.sections:
        assert REPORT[section.start : section.end] == section.text


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("CONCLUSION", "impression"),
        ("IMPRESSOIN", "impression"),
        ("FINAL IMPRESSION", "impression"),
        ("WET READ", "wet read"),
        ("REASON FOR EXAM", "indication"),
        ("CLINICAL HISTORY", "history"),
        ("RECOMMENDATION(S)", "recommendations"),
        ("CHEST, PA AND LATERAL", "findings"),
        ("Findings", "findings"),
        ("impression ", "impression"),
        ("FINDINGS AND IMPRESSION", "findings and impression"),
        ("STRANGE HEADER", "strange header"),
    ],
)
def test_synonyms_share_a_name(header, name):
    (section,) = split_sections(f"{header}: Something.").sections
    assert (section.name, section.text) == (name, "Something.")


def test_headers_inside_a_line_count_only_where_they_are_well_known():
    sections = split_sections("FINDINGS: Clear. IMPRESSION: Normal.")
    assert (sections.findings, sections.impression) == ("Clear.", "Normal.")
    assert split_sections("FINDINGS: ET tube: fine. PICC: fine.").findings is not None


@pytest.mark.parametrize(
    ("report", "section", "expected"),
    [
        (REPORT, "findings", "The lungs are clear.\nRatio 1:2."),
        (REPORT, "impression", "No acute process."),
        (REPORT, "findings+impression", "The lungs are clear.\nRatio 1:2. No acute process."),
        (REPORT, "auto", "The lungs are clear.\nRatio 1:2."),
        (REPORT, "all", REPORT),
        ("IMPRESSION: Normal.", "auto", "Normal."),
        ("IMPRESSION: Normal.", "findings+impression", "Normal."),
        ("INDICATION: Pain.\n\nCHEST, TWO VIEWS:\n\nClear lungs.", "auto", "Clear lungs."),
        ("Wrapped first.\n\nLast paragraph.", "auto", "Last paragraph."),
        ("FINDINGS AND IMPRESSION: Clear.", "findings", "Clear."),
        ("FINDINGS/IMPRESSION: Clear.", "impression", "Clear."),
        ("FINDINGS/IMPRESSION: Clear.", "findings+impression", "Clear."),
        ("Findings: Clear.\nImpression: Normal.", "findings", "Clear."),
        ("findings : clear . impression : normal .", "impression", "normal ."),
        ("FINDINGS:\nLUNGS: Clear.\nCHEST: Fine.", "findings", "LUNGS: Clear.\nCHEST: Fine."),
        ("CHEST, PA:\n\nFINDINGS:\r\nClear.\r\n", "findings", "Clear."),
        ("FINDINGS: Old.\nADDENDUM: \nFINDINGS: New.", "findings", "New."),
        ("WET READ: Fine.\nFINAL REPORT\nIMPRESSION: Edema.", "impression", "Edema."),
        ("EXAM: Chest.\n \n Portable.\n \n Clear.", "auto", "Portable.\n \n Clear."),
        ("The lungs are clear.", "auto", "The lungs are clear."),
    ],
)
def test_what_a_policy_selects(report, section, expected):
    assert select(report, TextPolicy(section)) == expected


@pytest.mark.parametrize("section", ["findings", "impression", "findings+impression"])
def test_an_absent_section_is_an_error_that_says_what_to_do(section):
    with pytest.raises(InvalidReport, match=r'the report has no section for .*"auto".*"all"'):
        select("The lungs are clear.", TextPolicy(section))


def test_a_report_that_only_says_why_it_was_made_has_nothing_to_score():
    with pytest.raises(InvalidReport, match="no section for 'auto'"):
        select("INDICATION: Cough.", TextPolicy("auto"))


def test_times_and_ratios_are_no_headers():
    (section,) = split_sections("READ AT 9:30 BY PHONE. Lungs clear at 10:15.").sections
    assert section.name == "preamble"


@given(st.text(max_size=200))
def test_any_text_can_be_divided(report):
    for section in split_sections(report).sections:
        assert report[section.start : section.end] == section.text


def test_references_and_candidates_may_have_sections_of_their_own():
    policy = TextPolicy(reference_section="findings")
    report = "INDICATION: Cough. FINDINGS: Clear."
    assert select(report, policy, role="reference") == "Clear."
    assert select("Clear.", policy, role="candidate") == "Clear."
    assert policy.signature() == "ref=findings,cand=all"
    same = TextPolicy("all", candidate_section="auto", reference_section="auto")
    assert same.signature() == "auto"


@pytest.mark.parametrize("reference", SECTIONS)
@pytest.mark.parametrize("candidate", SECTIONS)
def test_the_text_of_a_policy_is_read_again(reference, candidate):
    policy = TextPolicy(reference_section=reference, candidate_section=candidate)
    read = TextPolicy.named(policy.signature())
    assert read.section_of("reference") == reference
    assert read.section_of("candidate") == candidate


def test_an_empty_candidate_is_an_answer_under_every_policy_and_an_empty_reference_is_not():
    for section in SECTIONS:
        assert select(" ", TextPolicy(section), role="candidate") == " "
    with pytest.raises(InvalidReport, match="the reference"):
        select("", TextPolicy("auto"), role="reference")


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("all", "Clear. Clear."),
        ("findings+impression", "Clear. Clear."),
        ("findings", "Clear."),
        ("auto", "Clear."),
    ],
)
def test_sections_in_columns_of_their_own(section, expected):
    parts = {"findings": "Clear.", "impression": "Clear."}
    assert select_from_parts(parts, TextPolicy(section)) == expected


@pytest.mark.parametrize(
    ("report", "impression", "auto"),
    [
        (
            "FINDINGS: Clear.\n\nIMPRESSION: Normal.\n\nWET READ VERSION #1 ___ ___ 9:00 PM\n"
            " Preliminary fracture.",
            "Normal.",
            "Clear.",
        ),
        ("FINDINGS: Clear. IMPRESSION: Normal. WET READ: Prelim effusion.", "Normal.", "Clear."),
        ("FINDINGS: Clear.\nIMPRESSION: One.\nPRELIMINARY IMPRESSION: Two.", "One.", "Clear."),
        ("FINDINGS: Clear.\nIMPRESSION: One.\nPreliminary reading: Two.", "One.", "Clear."),
        (
            "FINDINGS: Clear.\n\nIMPRESSION: Normal.\n\n"
            "PROVISIONAL FINDINGS IMPRESSION (PFI): Prelim effusion.",
            "Normal.",
            "Clear.",
        ),
        (
            "PROVISIONAL FINDINGS IMPRESSION (PFI): X MON 3:18 PM\n Prelim effusion.\n ____\n"
            " FINAL REPORT\n HISTORY: Cough.\n\n Lungs are clear.",
            None,
            "Lungs are clear.",
        ),
        (
            "WET READ: ___ 9 PM\n No fracture.\n FINAL REPORT\n FINDINGS: Clear.\n IMPRESSION: OK.",
            "OK.",
            "Clear.",
        ),
        # Words about a preliminary report inside a sentence begin no section.
        ("IMPRESSION: As in the preliminary report: effusion.",) * 1
        + ("As in the preliminary report: effusion.",) * 2,
    ],
)
def test_a_preliminary_reading_is_never_scored(report, impression, auto):
    assert split_sections(report).impression == impression
    assert select(report, TextPolicy("auto")) == auto


def test_the_last_of_two_impressions_counts():
    assert split_sections("IMPRESSION: One.\nIMPRESSION: Two.").impression == "Two."
