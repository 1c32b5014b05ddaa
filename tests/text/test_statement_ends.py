"""Statements that nothing but a sign parts: none of them takes the denial of another."""

import pytest

from vlscore.findings import chexpert_labels, extract

STATEMENTS = ("No pneumothorax", "Small left effusion", "Cardiomegaly")
# Between two statements, in files and messages of programs, and as people write.
SIGNS = [
    "\n", "\r\n", "\r", "\n\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1e", "<br>",
    "<BR/>", "<br />", "<br\n/>", "</br>", "<hr>", "</p><p>", "</li><li>", "</div><div>", "<p>",
    "<P>", "</td><td>", "</tr><tr>", "<br><br>", "\\n", "\\r\\n", "\\n\\n", "\\\\n", "\\.br\\",
    "\\.sp\\", "~", "\\X0A\\", "\\X0D0A\\", "\\u000a", "\\x0a", "%0A", "%0D%0A", "&#10;", "&#xA;",
    "&#13;&#10;", "&#x0a;", "_x000D_", "_x000D_\n", "^M", " \\par ", "\\line ", "<n>", "[SEP]",
    " [SEP] ", "</s>", "<s>", "</s><s>", "<sep>", "<eos>", "<|endoftext|>",
    "<|im_end|>\n<|im_start|>", "<0x0A>", "•", " • ", "\n• ", "\n•", "●", " ▪ ", " ◦ ", "\n- ",
    "\n-", "\n* ", "\n+ ", "\n– ", "\n— ", "\n> ", "; ", ";", " || ", "||", " | ", " // ", " ¶ ",
    "¶", " ↵ ", "Ċ", " / ", " - ", " – ", " — ", "\n\n", "\n \n", "\n---\n", "\n***\n",
    "\n=====\n", "\t", "   ", "! ", "… ", " ... ", "\n1. ", "\n2) ", "\n(3) ", "\n•\t", "\n· ",
    "\n\uf0b7 ", " ‣ ", " ● ", "\n✓ ", "\n→ ", " → ", " * ", " + ", " > ", "<br/>\n", "\xa0\n",
    "\n\xa0", "\\t", "\n\t", "\n    ", "<n/>", "<newline>", "[NEWLINE]", "\\newline ", "\\\\ ",
    "<|n|>", "␤", "[EOS]", "<eop>", "</sentence><sentence>", "</finding><finding>", "◆ ", " ◆ ",
    " ★ ", "\n🔹 ", " ▶ ", " ^ ", " ¬ ", "\\", " @@ ", " ## ", " *** ", " ⏐ ", " ☞ ", "<lf>",
]  # fmt: skip
# The three statements, with signs around them.
LISTS = [
    "1) No pneumothorax 2) Small left effusion 3) Cardiomegaly",
    "(1) No pneumothorax (2) Small left effusion (3) Cardiomegaly",
    "1. No pneumothorax 2. Small left effusion 3. Cardiomegaly",
    "1 No pneumothorax 2 Small left effusion 3 Cardiomegaly",
    "a) No pneumothorax b) small left effusion c) cardiomegaly",
    "(a) no pneumothorax (b) small left effusion (c) cardiomegaly",
    "i) no pneumothorax ii) small left effusion iii) cardiomegaly",
    "i. No pneumothorax ii. Small left effusion iii. Cardiomegaly",
    "A. No pneumothorax B. Small left effusion C. Cardiomegaly",
    "#1 No pneumothorax #2 Small left effusion #3 Cardiomegaly",
    "1: No pneumothorax 2: Small left effusion 3: Cardiomegaly",
    "1/ No pneumothorax 2/ Small left effusion 3/ Cardiomegaly",
    "1- No pneumothorax 2- Small left effusion 3- Cardiomegaly",
    "1.) No pneumothorax 2.) Small left effusion 3.) Cardiomegaly",
    "[1] No pneumothorax [2] Small left effusion [3] Cardiomegaly",
    "① No pneumothorax ② Small left effusion ③ Cardiomegaly",
    "a- No pneumothorax b- Small left effusion c- Cardiomegaly",
    "(a)No pneumothorax(b)Small left effusion(c)Cardiomegaly",
    "no pneumothorax    small left effusion    cardiomegaly",
    "no pneumothorax period small left effusion period cardiomegaly period",
    "No pneumothorax full stop new line small left effusion full stop cardiomegaly",
    "- No pneumothorax - Small left effusion - Cardiomegaly",
    "* No pneumothorax * Small left effusion * Cardiomegaly",
    "– No pneumothorax – Small left effusion – Cardiomegaly",
    "+ No pneumothorax + Small left effusion + Cardiomegaly",
    "> No pneumothorax > Small left effusion > Cardiomegaly",
    "Findings: - No pneumothorax - Small left effusion - Cardiomegaly",
    "IMPRESSION: 1. No pneumothorax 2. Small left effusion 3. Cardiomegaly",
    "IMPRESSION:1.No pneumothorax 2.Small left effusion 3.Cardiomegaly",
    "IMPRESSION: 1) no pneumothorax 2) small left effusion 3) cardiomegaly",
    "1.No pneumothorax.2.Small left effusion.3.Cardiomegaly.",
    "no pneumothorax\nsmall left effusion\ncardiomegaly",
    "NO PNEUMOTHORAX\nSMALL LEFT EFFUSION\nCARDIOMEGALY",
    "No pneumothorax\nsmall left effusion\ncardiomegaly",
    "**No pneumothorax**\n**Small left effusion**\n**Cardiomegaly**",
    "**No pneumothorax** **Small left effusion** **Cardiomegaly**",
    "# No pneumothorax\n# Small left effusion\n# Cardiomegaly",
    "### No pneumothorax\nSmall left effusion\n### Cardiomegaly",
    "`No pneumothorax`\n`Small left effusion`\nCardiomegaly",
    "*No pneumothorax*\n*Small left effusion*\n*Cardiomegaly*",
    "_No pneumothorax_\n_Small left effusion_\n_Cardiomegaly_",
    "> No pneumothorax\n> Small left effusion\n> Cardiomegaly",
    "```\nNo pneumothorax\nSmall left effusion\nCardiomegaly\n```",
    "<ul><li>No pneumothorax</li><li>Small left effusion</li><li>Cardiomegaly</li></ul>",
    "<b>No pneumothorax</b><br><i>Small left effusion</i><br>Cardiomegaly",
    "- [ ] Pneumothorax\n- [x] Small left effusion\n- [x] Cardiomegaly",
    "[\"No pneumothorax\", \"Small left effusion\", \"Cardiomegaly\"]",
    "{\"findings\": [\"No pneumothorax\", \"Small left effusion\", \"Cardiomegaly\"]}",
    "{'1': 'No pneumothorax', '2': 'Small left effusion', '3': 'Cardiomegaly'}",
    "No pneumothorax.Small left effusion.Cardiomegaly.",
    "no pneumothorax.small left effusion.cardiomegaly.",
    "No pneumothorax .Small left effusion .Cardiomegaly",
    "No pneumothorax. small left effusion. cardiomegaly",
    "No pneumothorax,\nSmall left effusion,\nCardiomegaly",
    "No pneumothorax;\nSmall left effusion;\nCardiomegaly",
    "\"No pneumothorax.\" \"Small left effusion.\" \"Cardiomegaly.\"",
    "(No pneumothorax.) (Small left effusion.) (Cardiomegaly.)",
    "No pneumothorax.) Small left effusion.) Cardiomegaly",
    "No pneumothorax.\\nSmall left effusion.\\nCardiomegaly.",
    "No pneumothorax.<br>Small left effusion.<br>Cardiomegaly.",
    "No pneumothorax.~Small left effusion.~Cardiomegaly.",
    "No pneumothorax.\\.br\\Small left effusion.\\.br\\Cardiomegaly.",
    "No pneumothorax. \\n small left effusion. \\n cardiomegaly.",
    "Sure! Here is the report:\n\nNo pneumothorax\nSmall left effusion\nCardiomegaly",
    "Report: No pneumothorax\nSmall left effusion\nCardiomegaly",
    "No pneumothorax.[SEP]Small left effusion.[SEP]Cardiomegaly.",
    "No pneumothorax <sep> small left effusion <sep> cardiomegaly",
    "no pneumothorax [SEP] small left effusion [SEP] cardiomegaly",
    "No pneumothorax ; small left effusion ; cardiomegaly",
]  # fmt: skip


def labels(report: str) -> tuple[int | None, ...]:
    found = chexpert_labels(report)
    return found["Pneumothorax"], found["Pleural Effusion"], found["Cardiomegaly"]


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_parts_statements(sign):
    assert labels(sign.join(STATEMENTS)) == (0, 1, 1)


@pytest.mark.parametrize("report", LISTS)
def test_items_of_a_list_are_statements(report):
    assert labels(report) == (0, 1, 1)


@pytest.mark.parametrize("sign", ["\n", "<br>", "\\n", " • ", "\n- ", "~"])
def test_a_side_is_of_its_own_statement(sign):
    pneumonia, effusion = extract(f"No pneumonia{sign}Small left effusion")
    assert (pneumonia.side, effusion.side) == (None, "left")


# Wrapped by hand and by programs: the sentence goes on.
WRAPPED = [
    "No pneumothorax or\nlarge effusion.",
    "No pneumothorax,\nconsolidation or effusion.",
    "There is no\nconsolidation, pneumothorax or pleural effusion.",
    "The film shows no evidence of consolidation, of pneumothorax or of pleural\neffusion. Normal.",
    "NO PNEUMOTHORAX, CONSOLIDATION OR PLEURAL\nEFFUSION IS SEEN. THE HEART IS NORMAL.",
    "no pneumothorax , consolidation or pleural\neffusion is seen . the heart is normal .",
    "No pneumothorax, consolidation or pleural<br>effusion is seen. The heart is normal.",
]


@pytest.mark.parametrize("report", WRAPPED)
def test_wrapped_prose_goes_on(report):
    found = chexpert_labels(report)
    assert (found["Pleural Effusion"], found["Pneumothorax"]) == (0, 0)
