"""Agreement of the findings that two reports state, by the rules of `vlscore.findings`."""

from vlscore.metrics.metric import Metric, Output, Parameter

# The observations of CheXpert's competition (Irvin et al. 2019, section 5).
COMPETITION = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")

FINDINGS_F1 = Metric(
    name="findings-f1",
    description="F1 of the CheXpert observations that candidate and reference state; 1 where "
    "neither states any",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    artefacts=("chexpert-labels",),
    citation="Irvin et al. 2019, CheXpert, AAAI (labels); rules of vlscore.findings",
    parameters=(
        Parameter(
            "uncertain",
            "positive",
            "what an uncertain observation counts as",
            ("positive", "negative"),
        ),
        Parameter(
            "unmentioned",
            "negative",
            "what an observation that the reference does not mention counts as: negative, as if "
            "it were denied, or ignored, so that the candidate is not judged on it; No Finding is "
            "always judged, for it follows from the others",
            ("negative", "ignored"),
        ),
    ),
    further=(
        Output("precision", "share of the candidate's observations that the reference states"),
        Output("recall", "share of the reference's observations that the candidate states"),
    ),
    # True positives, false positives and false negatives of each of fourteen observations.
    statistics=3 * 14,
    corpus=(
        Output("micro", "F1 of the counts of all observations together"),
        Output("macro", "mean F1 over the observations that occur in candidates or references"),
        Output("micro-5", "micro over the five observations of CheXpert's competition"),
        Output("macro-5", "macro over the five observations of CheXpert's competition"),
        *(
            Output(name.lower().replace(" ", "-"), f"F1 of {name}; 1 where it never occurs")
            for name in COMPETITION
        ),
    ),
)
