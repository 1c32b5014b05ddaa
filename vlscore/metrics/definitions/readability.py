"""How hard a report is to read, as school grades: whatever the image or the reference says.

No direction is better in itself. `higher_is_better` is false by convention: lower is easier. An
empty report has the grade 0; one of a word or two has a grade like any other, of one sentence.
"""

from vlscore.metrics.metric import Metric, Parameter


def _grade(
    name: str,
    description: str,
    citation: str,
    low: float | None,
    parameters: tuple[Parameter, ...] = (),
) -> Metric:
    return Metric(
        name=name,
        description=f"{description}; lower is easier, not better",
        higher_is_better=False,
        bounds=(low, None),
        uses_image=False,
        uses_reference=False,
        citation=citation,
        parameters=parameters,
    )


FLESCH_KINCAID = _grade(
    "flesch-kincaid",
    "reading grade from words a sentence and syllables a word",
    "Kincaid et al. 1975, Derivation of new readability formulas, Navy report 8-75",
    None,
)
GUNNING_FOG = _grade(
    "gunning-fog",
    "reading grade from words a sentence and the share of long words that are not familiar",
    "Gunning 1952, The Technique of Clear Writing",
    0.0,
)
DALE_CHALL = _grade(
    "dale-chall",
    "reading grade from words a sentence and the share of words that are not familiar",
    "Dale, Chall 1948, A formula for predicting readability; textstat's word list",
    0.0,
)
DALE_CHALL_CLINICAL = _grade(
    "dale-chall-clinical",
    "Dale-Chall where words that are frequent in the run's references are familiar too",
    "Rawat 2022 (improved Dale-Chall); after Dale, Chall 1948",
    0.0,
    (
        Parameter(
            "share",
            0.1,
            "a word in more than this share of the references is familiar; our default",
            above=0.0,
        ),
        Parameter(
            "words",
            None,
            "a file of familiar words, one a line, instead of those of the references",
            kind=str,
        ),
    ),
)
READABILITY = (FLESCH_KINCAID, GUNNING_FOG, DALE_CHALL, DALE_CHALL_CLINICAL)
