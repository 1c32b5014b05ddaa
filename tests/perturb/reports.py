"""Reports of our own writing, as varied as those that people perturb."""

from hypothesis import strategies as st

_LONG = " ".join(
    f"There is a {size} nodule in the {side} {zone} lobe. The heart is normal in size."
    for size in ("small", "large", "tiny")
    for side in ("right", "left")
    for zone in ("upper", "lower")
)

REPORTS = {
    "plain": "There is a small left pleural effusion. The heart is normal in size.",
    "normal": (
        "The heart is normal in size. The lungs are clear. There is no pleural effusion or "
        "pneumothorax. No acute bony abnormality."
    ),
    "several findings": (
        "The cardiac silhouette is moderately enlarged. There is mild interstitial edema. Small "
        "right pleural effusion with adjacent atelectasis. No pneumothorax. Degenerative changes "
        "of the thoracic spine."
    ),
    "two comparisons": (
        "Stable left pleural effusion. The lungs are otherwise clear. Unchanged rib fracture. No "
        "pneumothorax."
    ),
    "sections": (
        "COMPARISON: None.\n\nINDICATION: 60-year-old woman with cough.\n\nFINDINGS: There is "
        "consolidation in the right lower lobe. The heart is mildly enlarged. No pleural "
        "effusion.\n\nIMPRESSION: Right lower lobe pneumonia."
    ),
    "headers on lines of their own": (
        "FINDINGS:\nHeart size is normal. There is a calcified granuloma in the left upper "
        "lobe.\nNo pneumothorax is seen.\nIMPRESSION:\nNo acute disease. Old granulomatous disease."
    ),
    "numbered list": (
        "1. Small left pleural effusion.\n2. Mild cardiomegaly.\n3. No pneumothorax.\n"
        "4. Recommend follow-up in 6 weeks."
    ),
    "numbered list in one line": (
        "1. Moderate right pleural effusion. 2. Left basilar atelectasis. 3. The heart is normal."
    ),
    "numbered list with brackets": "1) Low lung volumes. 2) Mild edema. 3) Stable cardiomegaly.",
    "bullets": "- Severe emphysema.\n- Tiny right apical pneumothorax.\n- No effusion.",
    "lower-case tokenised": (
        "the heart is mildly enlarged . there is a small right pleural effusion . "
        "no pneumothorax . the bony structures are intact ."
    ),
    "lower-case normal": (
        "heart size is normal . the lungs are clear . no pleural effusion or pneumothorax ."
    ),
    "lower case": "left lower lobe pneumonia. the heart is not enlarged. no effusion.",
    "capitals": (
        "THERE IS A LARGE LEFT PLEURAL EFFUSION. THE HEART IS NORMAL IN SIZE. NO PNEUMOTHORAX."
    ),
    "paragraphs": (
        "Moderate cardiomegaly.\n\nThe lungs are hyperinflated. There is scarring in the left "
        "apex.\n\nNo effusion. No pneumothorax."
    ),
    "wrapped lines": (
        "There is a small\nleft pleural effusion. The heart\nis mildly enlarged. There is\n"
        "no pneumothorax."
    ),
    "windows line ends": "Mild cardiomegaly.\r\nThere is a left effusion.\r\nNo pneumothorax.\r\n",
    "tabs and double spaces": "Mild  cardiomegaly.  There is\ta left effusion.   No pneumothorax. ",
    "semicolons": "Small left effusion; mild cardiomegaly; no pneumothorax; lungs are clear.",
    "colons in text": "Impression: mild edema: stable. Lungs: clear. Heart: enlarged.",
    "one word": "Cardiomegaly",
    "one short sentence": "Cardiomegaly.",
    "empty": "",
    "white space": " \n\t ",
    "punctuation": "... ;; -- ().",
    "no final period": "Mild cardiomegaly. There is a left pleural effusion",
    "question and exclamation": "Right effusion? Left pneumothorax! Clinical correlation advised.",
    "uncertain": (
        "There may be a small left effusion. Possible right lower lobe pneumonia. Pneumothorax "
        "cannot be excluded."
    ),
    "denied": "No left pleural effusion. There is no pneumothorax. The heart is not enlarged.",
    "both sides": "Small bilateral pleural effusions, left greater than right. Bibasilar opacity.",
    "restated": (
        "There is a small left pleural effusion. The lungs are otherwise clear. In summary, "
        "small left pleural effusion."
    ),
    "comparison": (
        "Comparison is made to the prior study. The left pleural effusion is unchanged. Mild "
        "cardiomegaly is again seen. The right basilar opacity has improved. Stable scoliosis."
    ),
    "only compares": "No interval change. The heart remains mildly enlarged.",
    "technique": (
        "PA and lateral views of the chest were obtained. Moderate right pneumothorax. Findings "
        "were discussed with the referring physician at the time of dictation."
    ),
    "history": "The patient has a history of lung cancer. There is a large left upper lobe mass.",
    "devices": (
        "A right PICC line is present with its tip in the superior vena cava. Left chest wall "
        "pacemaker with leads in the right atrium and right ventricle. Sternotomy wires are intact."
    ),
    "heart sides": "The left ventricle is mildly enlarged. Prominent right heart border.",
    "measured": "A 2.5 cm nodule is seen in the right upper lobe. It measures 2.5 x 1.8 cm.",
    "referring back": (
        "There is an opacity in the left lower lobe. This may represent atelectasis. Recommend "
        "a follow-up radiograph. The heart is normal in size."
    ),
    "masked": (
        "XXXX view of the chest. There is XXXX left pleural effusion. The heart is XXXX. No "
        "change since XXXX."
    ),
    "de-identified": "Comparison to ___. Mr. ___ has a small right effusion. Dr. ___ was informed.",
    "german": (
        "Kleiner linksseitiger Pleuraerguss. Das Herz ist normal groß. Kein Pneumothorax. Übrige "
        "Lunge frei."
    ),
    "chinese": "左侧少量胸腔积液。心影不大。未见气胸。",
    "emoji and accents": "Mild cardiomegaly 🫀 — naïve reader's café. Left effusion… “small”.",
    "control characters": "Mild\x00 cardiomegaly.\x07 Small\x1b left\x0b effusion.\x0c No edema.",
    "byte order mark": "\ufeffMild edema.\u00a0Left effusion.\u200b No nodule.\u2028Clear lungs.",
    "abbreviations": "LLL opacity. RUL nodule. Lt. effusion. Rt. base clear. Approx. 5 mm in size.",
    "labels": "Left knee: small effusion. Right knee: normal. Chest: clear.",
    "html": "<p>Mild cardiomegaly.</p><br/>Small left effusion &amp; atelectasis.",
    "numbers only": "1. 2. 3. 4.",
    "articles": "There is an apical opacity. A left effusion is seen. An old rib fracture is seen.",
    "same sentence again": ("Mild edema. " * 6).strip(),
    "ten thousand words": f"{_LONG} " * 60,
}

SENTENCES = (
    "There is a small left pleural effusion.",
    "Small left pleural effusion.",
    "There is a moderate-sized right pneumothorax.",
    "The heart is mildly enlarged.",
    "Mild cardiomegaly is stable.",
    "Heart size is normal.",
    "The lungs are clear.",
    "No pneumothorax.",
    "There is no evidence of pleural effusion, pneumothorax or consolidation.",
    "Consolidation in the right lower lobe, new since the prior study.",
    "There is an opacity at the left base which may represent pneumonia.",
    "This may represent atelectasis.",
    "A calcified granuloma is noted in the right upper lobe.",
    "Bilateral hilar lymphadenopathy.",
    "Severe emphysema with an apical bulla.",
    "Degenerative changes of the thoracic spine.",
    "PA and lateral views of the chest were obtained.",
    "Findings were discussed with the referring physician.",
    "Recommend a follow-up CT of the chest.",
    "The patient has a history of breast cancer.",
    "Compared to the prior study, there has been no change.",
    "Low lung volumes; mild bibasilar atelectasis.",
    "The left hemidiaphragm is elevated.",
    "Dextroscoliosis of the thoracic spine.",
    "A PICC line is present with its tip in the superior vena cava.",
    "Otherwise, no acute cardiopulmonary abnormality.",
    "Possible nodule in the RUL.",
    "Old healed left rib fractures",
    "XXXX and lateral chest examination was obtained.",
)
_JOINTS = (" ", " ", " ", "  ", "\n", "\n\n", " 2. ", "\n3. ", "\n- ", "\nIMPRESSION: ", "; ", "")
_MANNERS = (
    str,
    str.lower,
    str.upper,
    lambda text: text.lower().replace(".", " ."),
    lambda text: text.rstrip("."),
    lambda text: f"FINDINGS: {text}",
    lambda text: f"1. {text}",
)
_PLAIN_MANNERS = (
    str,
    str.upper,
    lambda text: text.lower().replace(".", " ."),
    lambda text: f"FINDINGS: {text}",
)


@st.composite
def reports(draw: st.DrawFn) -> str:
    """Random sentences, joined and written in random manners."""
    parts = []
    for sentence in draw(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=7)):
        parts += [sentence, draw(st.sampled_from(_JOINTS))]
    return draw(st.sampled_from(_MANNERS))("".join(parts[:-1]))


@st.composite
def plain_reports(draw: st.DrawFn) -> str:
    """Different sentences that need no other, joined and written as reports mostly are."""
    alone = [sentence for sentence in SENTENCES if not sentence.startswith("This")]
    sentences = draw(st.lists(st.sampled_from(alone), min_size=1, max_size=6, unique=True))
    joint = draw(st.sampled_from((" ", "\n", "\n\n")))
    text = joint.join(sentence.rstrip(".") + "." for sentence in sentences)
    return draw(st.sampled_from(_PLAIN_MANNERS))(text)


def any_text() -> st.SearchStrategy[str]:
    """Any text at all that is no half of a surrogate pair, with and without words we know."""
    anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
    words = st.sampled_from(("left", "effusion", "no", "mild", ".", " ", "\n", "1.", "heart", ":"))
    return st.lists(anything | words, max_size=12).map(" ".join)
