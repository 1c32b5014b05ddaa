"""Words of a sentence with their places, in the form the lexicons are matched in."""

import re
from typing import NamedTuple

_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:\.\d+)?|_{2,}|[^\s\w]")

_IRREGULAR = {
    "pneumothoraces": "pneumothorax",
    "pneumothoracies": "pneumothorax",
    "hemithoraces": "hemithorax",
    "apices": "apex",
    "bases": "base",
    "cicatrices": "cicatrix",
    "vertebrae": "vertebra",
    "hila": "hilum",
    "bullae": "bulla",
    "atelectases": "atelectasis",
    "metastases": "metastasis",
    "diagnoses": "diagnosis",
    "prostheses": "prosthesis",
    "stenoses": "stenosis",
    "scolioses": "scoliosis",
    "sulci": "sulcus",
    "bronchi": "bronchus",
    "foci": "focus",
    "humeri": "humerus",
    "granulomata": "granuloma",
    "series": "series",
    "pancreas": "pancreas",
}
# British spellings, in the singular, and the American ones that the lexicons use.
_SPELLINGS = {
    "oedema": "edema",
    "oedematous": "edematous",
    "haemothorax": "hemothorax",
    "haemothoraces": "hemothorax",
    "haemopneumothorax": "hemopneumothorax",
    "haemopneumothoraces": "hemopneumothorax",
    "haematoma": "hematoma",
    "haemorrhage": "hemorrhage",
    "haemorrhagic": "hemorrhagic",
    "haemodialysis": "hemodialysis",
    "anaemia": "anemia",
    "ischaemic": "ischemic",
    "tumour": "tumor",
    "oesophagus": "esophagus",
    "oesophageal": "esophageal",
    "orthopaedic": "orthopedic",
    "artefact": "artifact",
    "artefactual": "artifactual",
    "centre": "center",
    "centred": "centered",
    "centimetre": "centimeter",
    "millimetre": "millimeter",
    "visualised": "visualized",
    "recognised": "recognized",
    "localised": "localized",
    "generalised": "generalized",
    "organised": "organized",
    "organising": "organizing",
    "demineralised": "demineralized",
    "demineralisation": "demineralization",
    "catheterisation": "catheterization",
    "colour": "color",
    "grey": "gray",
    "fibre": "fiber",
    "calibre": "caliber",
    "favour": "favor",
    "favoured": "favored",
    "favouring": "favoring",
    "labelled": "labeled",
}
_UNCHANGED_ENDINGS = ("ss", "us", "is", "'s")


class Token(NamedTuple):
    """A word, number or punctuation mark: its matching form, and characters [start, end)."""

    form: str
    start: int
    end: int


class _Forms(dict[str, str]):
    """Matching forms of words already met; a bounded memory, since text is not to be trusted."""

    _LIMIT = 50_000

    def __missing__(self, word: str) -> str:
        form = _singular(word.lower())
        form = _SPELLINGS.get(form, form)
        if len(self) < self._LIMIT:
            self[word] = form
        return form


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 3 or not word.endswith("s") or word.endswith(_UNCHANGED_ENDINGS):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


_forms = _Forms()


def tokenize(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Tokens of text[start:end], with places in `text`.

    Words are lower-cased and brought to the singular and to American
    spelling; a hyphen or slash inside a word
    ("air-space", "and/or") separates two words and leaves no token of its own; masks (`___`)
    read as `xxxx`.

    >>> [t.form for t in tokenize("No air-space opacities, 2.5 cm.")]
    ['no', 'air', 'space', 'opacity', ',', '2.5', 'cm', '.']
    """
    end = len(text) if end is None else end
    tokens = []
    for match in _TOKEN.finditer(text, start, end):
        word = match[0]
        first, last = match.span()
        initial = word[0]
        if (
            initial in "-/"
            and start < first
            and last < end
            and text[first - 1].isalnum()
            and text[last].isalnum()
        ):
            continue
        tokens.append(Token("xxxx" if initial == "_" else _forms[word], first, last))
    return tokens
