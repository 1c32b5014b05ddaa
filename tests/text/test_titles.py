"""Titles of sections in the forms of people and programs, and what begins below them."""

import pytest

from vlscore.data import TextPolicy, select
from vlscore.findings import Status, extract
from vlscore.metrics import RuleJudge
from vlscore.text import names_views, section_of_title, split_sections

FINDINGS, IMPRESSION = "Clear lungs. No effusion.", "Normal chest."
# The title stands for {}.
FORMS = [
    "{}:", "{}: ", "{} : ", "{}:\n", "{}\n", "{}.\n", "{} - ", "{} – ", "{}:- ", "{}\u00a0: ",
    "- {}: ", "* {}: ", "• {}: ", "1. {}: ", "(1) {}: ", "A. {}: ", "I. {}: ", "**{}:** ",
    "**{}**: ", "**{}**\n", "**{}** - ", "__{}__: ", "*{}:* ", "`{}`: ", "### {}\n", "## {}:\n",
    "## **{}:**\n", "# {} #\n", "{}\n-----\n", "{}\n=====\n", "=== {} ===\n", "> **{}**\n",
    "<{}>", "<b>{}:</b> ", "<h2>{}</h2>", "<p><b>{}</b></p>", "[{}] ", "[{}]: ", "({}) ",
    "“{}”: ", '"{}": ', "<|{}|>", "{}：", "{}\t", "{}::",
    "{} | ", "| {} | ", "|{}|", "{} >> ", "{} = ", "**{}** ", "__{}__ ",
    '<section name="{}">', '<text label="{}">', "<tr><td>{}</td><td>",
]  # fmt: skip
CASES = [str.upper, str.title, str.lower]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", FORMS)
def test_sections_of_a_generated_report(form, case):
    numbers = str.maketrans({"1": "2", "A": "B"})
    first = form.format(case("findings"))
    second = form.translate(numbers).format(case("impression"))
    if form.startswith("I."):
        second = "I" + second
    sections = split_sections(f"{first}{FINDINGS}\n{second}{IMPRESSION}")
    assert sections.findings == FINDINGS
    assert sections.impression == IMPRESSION


@pytest.mark.parametrize(
    ("report", "findings", "impression"),
    [
        ("FINDINGS: IMPRESSION: Normal.", None, "Normal."),
        ("FINDINGS:Clear.IMPRESSION:Normal.", "Clear.", "Normal."),
        ("Findings:Clear.Impression:Normal.", "Clear.", "Normal."),
        ("FINDINGS The lungs are clear. IMPRESSION Normal.", "The lungs are clear.", "Normal."),
        ("IMPRESSION:1. Normal.", None, "1. Normal."),
        ("<findings>Clear.</findings><impression>Normal.</impression>", "Clear.", "Normal."),
        ('{"findings": "Clear.", "impression": "Normal."}', "Clear.", "Normal."),
        (
            "Here it is.\n\n**Findings:**\n- Clear.\n\n**Impression:**\nNormal.",
            "- Clear.",
            "Normal.",
        ),
        ("**FINDINGS/IMPRESSION:** Clear.", "Clear.", "Clear."),
        (
            "FINDINGS:\nNo change of the\nfindings. Clear.",
            "No change of the\nfindings. Clear.",
            None,
        ),
        ("The findings are stable.", None, None),
        ("No acute findings", None, None),
        ("No other\nfindings", None, None),
        ("Other findings: none.", None, None),
        ("| Finding | Status |\n|---|---|\n| Edema | absent |", None, None),
    ],
)
def test_what_begins_a_section(report, findings, impression):
    sections = split_sections(report)
    assert (sections.findings, sections.impression) == (findings, impression)


OF_HISTORY = [
    "INDICATION", "INDICATIONS", "NDICATION", "IDICATION", "INDICATON", "Indications", "HISTORY",
    "Patient history", "PAST MEDICAL HISTORY", "MEDICAL HISTORY", "CLINICAL DETAILS",
    "CLINCAL HISTORY", "Clinical details", "CLINICAL DATA", "PROVISIONAL DIAGNOSIS",
    "Provisional diagnosis", "HX", "REASON FOR EXAM", "Reason for this examination",
    "REASON FOR REFERRAL", "CHIEF COMPLAINT", "WORKING DIAGNOSIS", "CLINICAL QUESTION",
    "INDICATION/HISTORY", "**Indications:**", "1. INDICATION", "Reason for order", "ORDER COMMENTS",
    "ICD-10", "ICD10 code", "Signs and symptoms", "Why ordered", "Ind'n", "Clin. hx", "Exam reason",
    "ED triage note", "Admitting dx", "Presenting problem", "LIMITATIONS", "\\section*{History}",
]  # fmt: skip


@pytest.mark.parametrize("title", OF_HISTORY)
@pytest.mark.parametrize("gap", ["\n", "\n\n", " "])
def test_what_stands_below_a_title_of_history_is_no_finding(title, gap):
    colon = "" if title.endswith(("**", "}")) else ":"
    reference = f"{title}{colon} Pneumonia, left pneumothorax. Edema.{gap}FINDINGS: {FINDINGS}"
    assert all(
        finding.status is not Status.CURRENT or finding.span.start > reference.index("FINDINGS")
        for finding in extract(reference)
    )
    assert not RuleJudge().judge(FINDINGS, reference).errors


OF_VIEWS = [
    "CHEST, AP UPRIGHT", "PA AND LATERAL VIEWS OF THE CHEST",
    "FRONTAL AND LATERAL CHEST RADIOGRAPHS", "PORTABLE CHEST", "XR CHEST 2 VIEWS", "CHEST X-RAY",
    "CXR", "SINGLE AP VIEW OF THE CHEST", "PORTALBLE AP CHEST RADIOGRAPH",
    "TWO VIES OF THE CHEST", "CHEST (PA AND LATERAL)", "AP CHEST AT 8:30",
    "Chest, PA and lateral", "Portable AP chest radiograph",
]  # fmt: skip


@pytest.mark.parametrize("title", OF_VIEWS)
@pytest.mark.parametrize(
    "before", ["COMPARISON: None.", "INDICATION: Fever.", "TECHNIQUE: Supine."]
)
def test_a_title_that_names_the_views_begins_the_findings(title, before):
    report = f"{before}\n\n{title}: Small left effusion. Cardiomegaly."
    assert {(f.observation, str(f.status)) for f in extract(report)} == {
        ("pleural_effusion", "current"),
        ("cardiomegaly", "current"),
    }
    assert select(report, TextPolicy("auto")) == "Small left effusion. Cardiomegaly."


def test_a_title_of_views_has_no_other_words():
    assert names_views("Frontal and latteral views of the chest")
    assert not names_views("Views of the pneumonia")


@pytest.mark.parametrize(
    "title", ["Chest wall", "Heart", "LUNGS", "Lines and tubes", "Left base", "Problem", "Warning"]
)
def test_parts_of_the_chest_begin_no_section(title):
    assert section_of_title(title) is None
    report = f"FINDINGS:\n{title}: Clear.\nEffusion: none."
    assert split_sections(report).findings == f"{title}: Clear.\nEffusion: none."


@pytest.mark.parametrize(
    ("report", "current"),
    [
        ("HISTORY: Cough.\nSmall effusion.", {"pleural_effusion"}),
        ("HISTORY: Cough. Edema?\n\nSmall effusion.", {"pleural_effusion"}),
        (
            "HISTORY: A 60-year-old woman with severe asthma and sepsis, who was intubated.\n"
            "Evaluate for pulmonary edema.\n\nSmall effusion.",
            {"pleural_effusion"},
        ),
        ("J93.9 Pneumothorax, unspecified\nSmall effusion.", {"pleural_effusion"}),
        ("Small effusion. (Indication: pneumonia)", {"pleural_effusion"}),
        (
            "Image quality: supine; edema can not be judged. Findings: Effusion.",
            {"pleural_effusion"},
        ),
        ("# 1. History\nEdema on an outside film\n# 2. Findings\nEffusion", {"pleural_effusion"}),
        ("**Past history** – edema\n**Observations** – Effusion, left", {"pleural_effusion"}),
        ("**Why was this ordered?** Edema?\n**What does it show?** Effusion", {"pleural_effusion"}),
        ("[TASK] Look for edema.\n[REPORT] Effusion.", {"pleural_effusion"}),
        ("***HISTORY*** edema ***FINDINGS*** effusion", {"pleural_effusion"}),
        (":::history\nedema?\n:::\n:::findings\neffusion\n:::", {"pleural_effusion"}),
        ("Reason for request= edema?\nReport= Small effusion.", {"pleural_effusion"}),
        ("Indication: Edema. Pneumonia.\nFindings: Small effusion.", {"pleural_effusion"}),
    ],
)
def test_where_the_history_ends(report, current):
    found = {f.observation for f in extract(report) if f.status is Status.CURRENT}
    assert found == current
