"""Structured reports, written by hand in the styles of public templates, with labels by hand.

The labels of `data/structured_reports.jsonl` were written from the meaning of each text before the
extractor read it; docs/findings.md says by which conventions.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from vlscore.findings import CHEXPERT_LABELS, Layout, Status, chexpert_labels, extract

DATA = Path(__file__).parent / "data" / "structured_reports.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
LAYOUTS = sorted({row["layout"] for row in ROWS})


class Agreement(Counter[str]):
    """Label values that both give, that only the extractor gives, that only the hand gives."""

    @property
    def f1(self) -> float:
        return 2 * self["both"] / (2 * self["both"] + self["extra"] + self["missed"])


def compare(row: dict) -> tuple[Agreement, str]:
    """Agreement on one report, and what to read where it is not full."""
    ours = {(k, v) for k, v in chexpert_labels(row["report"]).items() if v is not None}
    theirs = set(row["labels"].items())
    counts = Agreement(both=len(ours & theirs), extra=len(ours - theirs), missed=len(theirs - ours))
    words = f"{row['id']}: missed {sorted(theirs - ours)}, extra {sorted(ours - theirs)}"
    return counts, words if ours != theirs else ""


def side_of(report: str, label: str) -> str | None:
    """The side of what is stated or uncertain under a label; both sides are bilateral."""
    sides = {
        str(f.side)
        for f in extract(report)
        if f.chexpert == label
        and f.polarity != "negative"
        and f.status is Status.CURRENT
        and f.side is not None
    }
    return "bilateral" if len(sides) > 1 else next(iter(sides), None)


def test_there_are_enough_of_every_layout() -> None:
    assert len(ROWS) >= 150
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    values: dict[str, Counter[int]] = defaultdict(Counter)
    for row in ROWS:
        assert set(row["labels"]) <= set(CHEXPERT_LABELS), row["id"]
        assert set(row["sides"]) <= set(row["labels"]), row["id"]
        values[row["layout"]].update(row["labels"].values())
    for layout, counts in values.items():
        assert set(counts) == {-1, 0, 1}, layout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read(layout: str) -> None:
    total, disagreements = Agreement(), []
    for row in ROWS:
        if row["layout"] == layout:
            counts, words = compare(row)
            total.update(counts)
            disagreements += [words] if words else []
    print("\n".join(disagreements))
    assert total.f1 >= 0.95, disagreements


def test_all_together_are_read() -> None:
    total = Agreement()
    for row in ROWS:
        total.update(compare(row)[0])
    assert total.f1 >= 0.97


def test_sides_are_read() -> None:
    wrong = [
        (row["id"], label, side)
        for row in ROWS
        for label, side in row["sides"].items()
        if side_of(row["report"], label) != side
    ]
    total = sum(len(row["sides"]) for row in ROWS)
    assert total > 150
    print(wrong)
    # A side that stands in the title of a column, or on a line of its own, is not read.
    assert len(wrong) <= 0.05 * total


@pytest.mark.parametrize(
    ("report", "value"),
    [
        ("Pneumothorax: none.", 0),
        ("PNEUMOTHORAX: None.", 0),
        ("Pneumothorax: absent", 0),
        ("Pneumothorax - none", 0),
        ("Pneumothorax: no.", 0),
        ("Pneumothorax: No pneumothorax.", 0),
        ("Pneumothorax: not seen.", 0),
        ("Pneumothorax: negative", 0),
        ("Pneumothorax: normal", 0),
        ("Pneumothorax: resolved", 0),
        ("Pneumothorax: small left", 1),
        ("Pneumothorax: yes", 1),
        ("Pneumothorax: stable", 1),
        ("Pneumothorax: no change", 1),
        ("Pneumothorax: possible", -1),
        ("Pneumothorax: ?", -1),
        ("Pneumothorax: cannot exclude", -1),
        ("Pneumothorax: not assessed", None),
        ("Pneumothorax:", None),
        ("Pneumothorax: see below", None),
        ("Pneumothorax? No", 0),
        ("Pneumothorax → none", 0),
        ("| Pneumothorax | absent |", 0),
        ("| Pneumothorax | | |", None),
        ("Pneumothorax\tabsent", 0),
        ("[ ] Pneumothorax", 0),
        ("[x] Pneumothorax", 1),
        ("☐ Pneumothorax", 0),
        ("☒ Pneumothorax", 1),
        ("[ ] No pneumothorax", None),
        ("Pneumothorax: [ ] yes [ ] no", None),
        ("Pneumothorax: right - none, left - small", 1),
        ("Negative: effusion, pneumothorax, cardiomegaly", 0),
        ("Consolidation: none, pneumothorax: small", 1),
        ("Consolidation: none pneumothorax: none", 0),
        ("Pneumothorax none, consolidation absent.", 0),
        ("Consolidation: small, pneumothorax: none", 0),
    ],
)
def test_an_answer_after_a_label(report: str, value: int | None) -> None:
    assert chexpert_labels(report)["Pneumothorax"] == value


# Written by hand: each says that there is no pneumothorax, that there is an effusion, no edema.
ANSWERED = [
    "(-) pneumothorax, (+) effusion, (-) edema",
    "pneumothorax (-), effusion (+), edema (-)",
    "pneumothorax(-) effusion(+) edema(-)",
    "Pneumothorax [-] Effusion [+] Edema [-]",
    "Pneumothorax -, effusion ++, edema -",
    "-ve for pneumothorax. +ve for effusion. Edema -ve.",
    "Pneumothorax: -ve\nEffusion: +ve\nEdema: -ve",
    "PTX: - / Effusion: + / Edema: -",
    "PTX: no | Effusion: yes | Edema: no",
    "Pneumothorax? N   Effusion? Y   Edema? N",
    "Pneumothorax? N Effusion? Y Edema? N",
    "PTX? neg\nEffusion? pos\nEdema? neg",
    "Pneumothorax=0 Effusion=1 Edema=0",
    "Pneumothorax,0\nEffusion,1\nEdema,0",
    '{"Pneumothorax": 0.0, "Pleural Effusion": 1.0, "Edema": 0.0}',
    "Pneumothorax (N), effusion (Y), edema (N)",
    "Pneumothorax (absent), effusion (present), edema (absent)",
    "Pneumothorax [no] effusion [yes] edema [no]",
    "Pneumothorax ❌\nEffusion ✅\nEdema ❌",
    "❌ Pneumothorax\n✔️ Effusion\n❌ Edema",
    "Pneumothorax: ❌\nEffusion: ✅\nEdema: ❌",
    "Pneumothorax? ❌ Effusion? ✅ Edema? ❌",
    "Pneumothorax ✗, effusion ✓, edema ✗",
    "Pneumothorax ☐\nEffusion ☑\nEdema ☐",
    "Pneumothorax [ ] Effusion [x] Edema [ ]",
    "Pneumothorax ☐ yes ☑ no\nEffusion ☑ yes ☐ no\nEdema ☐ yes ☑ no",
    "| Finding | Present |\n|---|---|\n| Pneumothorax | ❌ |\n| Effusion | ✅ |\n| Edema | ❌ |",
    "| | Yes | No |\n|---|---|---|\n| Pneumothorax | | x |\n| Effusion | x | |\n| Edema | | x |",
    "Finding\tRight\tLeft\nPneumothorax\tnone\tnone\nEffusion\tnone\tlarge\nEdema\tno\tno",
    "Finding\tR\tL\nPneumothorax\t-\t-\nEffusion\t+\t-\nEdema\t-\t-",
    "Finding | Right | Left\nPneumothorax | 0 | 0\nEffusion | 0 | 1\nEdema | 0 | 0",
    "### Pneumothorax\nNone.\n### Pleural effusion\nSmall, left-sided.\n### Edema\nNot present.",
    "**Pneumothorax**\nNo.\n\n**Effusion**\nYes, small.\n\n**Edema**\nThere is no edema.",
    "PNEUMOTHORAX\nResolved.\n\nEFFUSION\nUnchanged.\n\nEDEMA\nNot seen.",
    "<dt>Pneumothorax</dt><dd>None</dd><dt>Effusion</dt><dd>Small</dd><dt>Edema</dt><dd>None</dd>",
    '<f name="Pneumothorax">no</f><f name="Effusion">yes</f><f name="Edema">no</f>',
    '<f label="Pneumothorax" value="absent"/><f label="Effusion" value="mild"/>'
    '<f label="Edema" value="absent"/>',
    "<pneumothorax>no</pneumothorax><pleural_effusion>yes</pleural_effusion><edema>no</edema>",
    "findings: {pneumothorax: {present: false}, effusion: {present: true}, edema: {present: no}}",
    "pneumothorax:\n  seen: no\neffusion:\n  seen: yes\n  side: left\nedema:\n  seen: no",
    "- finding: Pneumothorax\n  status: absent\n- finding: Effusion\n  status: present\n"
    "- finding: Edema\n  status: absent",
    '{"observations": [{"label": "Pneumothorax", "value": 0}, {"label": "Effusion", "value": 1,'
    ' "laterality": "right"}, {"label": "Edema", "value": 0}]}',
    "Finding: Pneumothorax; Presence: negative\nFinding: Effusion; Presence: positive\n"
    "Finding: Edema; Presence: negative",
    "Finding(name='pneumothorax', present=False), Finding(name='effusion', present=True),"
    " Finding(name='edema', present=False)",
    'Here is it:\n```json\n{"Pneumothorax": false, "Effusion": true, "Edema": false}\n```',
    '{"absent": ["pneumothorax", "edema"], "present": ["effusion"]}',
    "Finding;Present\nPneumothorax;0\nEffusion;1\nEdema;0",
    '"name","status","side"\n"Pneumothorax","absent",""\n"Effusion","present","left"\n"Edema","absent",""',
    "has_pneumothorax=FALSE; has_effusion=TRUE; has_edema=FALSE",
    "pneumothorax: !!bool 'no'\neffusion: !!bool 'yes'\nedema: !!bool 'no'",
    "Pneumothorax ........ nope\nEffusion ........ yes, small\nEdema ... nope",
    "Pneumothorax ⊖ Effusion ⊕ Edema ⊖",
    "Pneumothorax [–] Effusion [+] Edema [–]",
    "Pneumothorax: 👎\nEffusion: 👍\nEdema: 👎",
    "Pneumothorax: \\u274c (absent)\\nEffusion: \\u2705 (present)\\nEdema: \\u274c (absent)",
    "[Pneumothorax: no] [Effusion: yes] [Edema: no]",
    "PNEUMOTHORAX: ABSENT | EFFUSION: PRESENT (LLL) | EDEMA: ABSENT",
    '<obs code="Pneumothorax" present="0"/><obs code="Effusion" present="1" side="left"/>'
    '<obs code="Edema" present="0"/>',
    "<o><type>Pneumothorax</type><v>no</v></o><o><type>Effusion</type><v>yes</v></o>"
    "<o><type>Edema</type><v>no</v></o>",
    '{"positive_findings": ["effusion"], "negative_findings": ["pneumothorax", "edema"]}',
    "## Positive findings\n\n- Effusion\n\n## Pertinent negatives\n\n- Pneumothorax\n- Edema",
    "Pneumothorax;Effusion;Edema\nabsent;present;absent",
    "Pneumothorax,Effusion,Edema\n0.0,1.0,0.0",
    "Finding          Present  Absent\nPneumothorax              X\nEffusion         X\n"
    "Edema                     X",
    "Finding~Yes~No\nPneumothorax~~x\nEffusion~x~\nEdema~~x",
    "\\begin{tabular}{ll}\nFinding & Seen \\\\ \\hline\nPneumothorax & no \\\\\n"
    "Effusion & yes \\\\\nEdema & no \\\\\n\\end{tabular}",
    "Pneumothorax: 0.01\nEffusion: 0.97\nEdema: 0.10",
    "pneumothorax=0&effusion=1&edema=0",
    '[["pneumothorax", "absent"], ["effusion", "present"], ["edema", "absent"]]',
    '{"present": [{"name": "effusion"}], "absent": [{"name": "pneumothorax"}, {"name": "edema"}]}',
    "Pertinent negatives\n1. Pneumothorax\n2. Edema\n\nPertinent positives\n1. Effusion",
    "What I do not see:\n* pneumothorax\n* edema\nWhat I see:\n* effusion",
    "Looked for and not found: pneumothorax | edema. Found: effusion.",
    "Any pneumothorax? Not that I can see.\nAny effusion? One, on the left.\nAny edema? It is not.",
    "Q1. Pneumothorax? A1. Negative.\nQ2. Effusion? A2. Affirmative.\nQ3. Edema? A3. I see none.",
    "Pneumothorax --, effusion ++, edema --",
    "-pneumothorax, +effusion, -edema",
    "Heart normal, -pneumothorax, +effusion, -edema",
    "pneumothorax:0,effusion:1,edema:0",
    "Is a pneumothorax present: no\nIs an effusion present: yes\nIs edema present: no",
    "Pneumothorax => ruled out · Effusion => confirmed, left · Edema => ruled out",
    '{"entity": "Pneumothorax", "polarity": "negated"}\n'
    '{"entity": "Effusion", "polarity": "affirmed"}\n{"entity": "Edema", "polarity": "negated"}',
    "&lt;f&gt;Pneumothorax&lt;/f&gt;&lt;v&gt;no&lt;/v&gt;&lt;f&gt;Effusion&lt;/f&gt;&lt;v&gt;yes&lt;/v&gt;"
    "&lt;f&gt;Edema&lt;/f&gt;&lt;v&gt;no&lt;/v&gt;",
    "Pneumothorax:NO Effusion:YES Edema:NO",
    "Pneumothorax: No Effusion: Yes Edema: No",
    "pneumothorax=False,effusion=True,edema=False",
    "pneumothorax NO | effusion YES | edema NO",
    "pneumothorax no\neffusion yes\nedema no",
    "Is there a pneumothorax? - None.\nAn effusion? - Small.\nEdema? - No.",
    "### Absent findings\n1. Pneumothorax\n2. Edema\n### Present findings\n1. Effusion",
    "<F><Name>Pneumothorax</Name><Present>false</Present></F><F><Name>Effusion</Name>"
    "<Present>true</Present><Side>left</Side></F><F><Name>Edema</Name><Present>no</Present></F>",
    "Q: Pneumothorax? A: No. Q: Is there an effusion? A: Yes, small. Q: Any edema? A: None.",
    "**Question 1:** Pneumothorax?\n**Answer:** No.\n**Question 2:** Effusion?\n**Answer:** Yes.\n"
    "**Question 3:** Is there any edema?\n**Answer:** There is no edema.",
    "OBX|1|CE|1^Pneumothorax^L||N^Negative^L|||F\nOBX|2|CE|2^Effusion^L||P^Positive^L|||F\n"
    "OBX|3|CE|3^Edema^L||N^Negative^L|||F",
    "MSH|^~\\&|RIS|A|||ORU^R01|7|P|2.5\rPID|1||77||DOE^J\rOBR|1|||1^CHEST^L||||||||Nodule?\r"
    "OBX|1|TX|2^FINDINGS^L||No pneumothorax.\\.br\\Small effusion.||||||F\rNTE|1||No edema.",
]  # fmt: skip


@pytest.mark.parametrize("report", ANSWERED)
def test_signs_and_short_answers(report: str) -> None:
    labels = chexpert_labels(report)
    found = (labels["Pneumothorax"], labels["Pleural Effusion"], labels["Edema"])
    assert found == (0, 1, 0)


@pytest.mark.parametrize(
    "report",
    [
        "Finding | Right | Left\n--- | --- | ---\nEffusion | none | small",
        "Finding; Right; Left\nEffusion; no; yes",
        "Effusion   R: N   L: Y",
        "           R     L\nNodule     +     -\nEffusion   -     +",
        '{"right": {"effusion": "absent"}, "left": {"effusion": "present"}}',
        "Pleural effusion, right: none; left: small",
        "- name: effusion\n  present: yes\n  side: left",
    ],
)
def test_a_value_says_the_side(report: str) -> None:
    assert side_of(report, "Pleural Effusion") == "left"


@pytest.mark.parametrize(
    "report",
    [
        "Uncertain: pneumonia, edema",
        "[EQUIV] pneumonia\n[POS] effusion",
        "Effusion (-), pneumonia (?)",
        "Pneumonia: I can not exclude one.",
        "Pneumonia\nUnsure\nEdema\nNo",
        '{"uncertain": ["edema", "pneumonia"]}',
        "pneumonia (possible), effusion",
        "Pneumonia: indeterminate",
    ],
)
def test_a_doubt_is_an_answer(report: str) -> None:
    assert chexpert_labels(report)["Pneumonia"] == -1


@pytest.mark.parametrize(
    "report",
    [
        "Cardiomegaly\nNo acute abnormality.",
        "Cardiomegaly\nOtherwise normal.",
        "Cardiomegaly\nNegative chest.",
        "Cardiomegaly\nNo effusion.",
        "Cardiomegaly -\nNo effusion.",
        "No effusion - Cardiomegaly - No edema",
        "ET tube: satisfactory. Cardiomegaly.",
        "There is cardiomegaly -\nunchanged.",
    ],
)
def test_what_is_no_answer_denies_no_finding(report: str) -> None:
    assert chexpert_labels(report)["Cardiomegaly"] == 1


@pytest.mark.parametrize(
    "report", ["ET tube: satisfactory", "Lines and tubes | normal", "Pacemaker: intact."]
)
def test_a_device_that_is_well_is_there(report: str) -> None:
    assert chexpert_labels(report)["Support Devices"] == 1


@pytest.mark.parametrize(
    ("report", "layout"),
    [
        ("Small left effusion.", Layout.PROSE),
        ("The ratio is 1:2.", Layout.PROSE),
        ("Small effusion - unchanged since 9:15.", Layout.LABEL),
        ("Effusion: none", Layout.LABEL),
        ("| Effusion | none |", Layout.TABLE),
        ("[x] Effusion", Layout.CHECKBOX),
    ],
)
def test_a_sentence_says_how_it_is_laid_out(report: str, layout: Layout) -> None:
    (sentence,) = extract(report).sentences
    assert sentence.layout is layout


def test_each_box_and_row_is_a_sentence() -> None:
    report = "[x] Effusion [ ] Pneumothorax\n| Edema | none |\n| Nodule | 5 mm |"
    words = [s.span.of(report) for s in extract(report).sentences]
    assert words == ["[x] Effusion", "[ ] Pneumothorax", "| Edema | none |", "| Nodule | 5 mm |"]


def test_words_of_an_answer_are_at_their_characters() -> None:
    report = "Pleural effusion: small left.\nPneumothorax: None."
    effusion, pneumothorax = extract(report).findings
    assert effusion.span.of(report) == "Pleural effusion"
    assert [a.span.of(report) for a in effusion.attributes] == ["small", "left"]
    assert [rule.span.of(report) for rule in pneumothorax.rules] == ["Pneumothorax", ": None"]


def test_wrapped_prose_is_not_taken_for_rows() -> None:
    report = "There is a small left pleural\neffusion - unchanged. No nodule, see\nbelow: none."
    words = [s.span.of(report) for s in extract(report).sentences]
    assert words == [
        "There is a small left pleural\neffusion - unchanged.",
        "No nodule, see\nbelow: none.",
    ]


def test_a_list_of_absent_findings_ends_with_the_list() -> None:
    report = "Absent:\n- Edema\n- Effusion\nPresent:\n- Nodule\n\nSmall pneumothorax."
    labels = chexpert_labels(report)
    assert (labels["Edema"], labels["Pleural Effusion"]) == (0, 0)
    assert (labels["Lung Lesion"], labels["Pneumothorax"]) == (1, 1)
