"""Agreement of what CheXbert reads in two reports."""

from vlscore.metrics.metric import Metric, Output, Parameter

WEIGHTS_VARIABLE = "VLSCORE_CHEXBERT"

_CITATION = "Smit et al. 2020, CheXbert, EMNLP"
WEIGHTS = Parameter(
    "weights",
    None,
    f"chexbert.pth, or a folder with it; default: {WEIGHTS_VARIABLE}; nothing is fetched",
    kind=str,
)
VOCABULARY = Parameter(
    "vocabulary",
    None,
    "vocab.txt of bert-base-uncased; default: beside the checkpoint, else the hub's cache",
    kind=str,
)
PRECISION = Parameter(
    "precision",
    "fp32",
    "of the network; bf16 is faster where the processor or GPU has units for it, and may change "
    "what is read in a report",
    ("fp32", "bf16"),
)
_TRUNCATED = Output(
    "truncated",
    "1 where the tail of a report, beyond 512 tokens, was not read",
    higher_is_better=False,
)

CHEXBERT_F1 = Metric(
    name="chexbert-f1",
    description="F1 of the fourteen observations that CheXbert reads in candidate and reference; "
    "1 where it reads none in either",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    citation=_CITATION,
    parameters=(
        Parameter(
            "uncertain",
            "positive",
            "what an uncertain observation counts as; ignored: it is not compared",
            ("positive", "negative", "ignored"),
        ),
        WEIGHTS,
        VOCABULARY,
        PRECISION,
    ),
    further=(
        Output("precision", "share of the candidate's observations that the reference has"),
        Output("recall", "share of the reference's observations that the candidate has"),
        Output("five", "F1 of cardiomegaly, edema, consolidation, atelectasis, pleural effusion"),
        _TRUNCATED,
    ),
    # True positives, false positives and false negatives of each of fourteen observations.
    statistics=3 * 14,
    corpus=(
        Output("micro", "F1 of the counts of all observations together"),
        Output("macro", "mean F1 of the fourteen; 0 for one that never occurs, as f1chexbert"),
        Output("micro-5", "micro over the five"),
        Output("macro-5", "macro over the five"),
    ),
    cost="model",
)

CHEXBERT_SIMILARITY = Metric(
    name="chexbert-similarity",
    description="cosine of CheXbert's vectors of [CLS], the s_emb of Yu et al. 2023",
    higher_is_better=True,
    bounds=(-1.0, 1.0),
    uses_image=False,
    uses_reference=True,
    reference_scores_best=True,
    citation=f"{_CITATION}; Yu et al. 2023, Patterns",
    parameters=(WEIGHTS, VOCABULARY, PRECISION),
    further=(_TRUNCATED,),
    cost="model",
)

CHEXBERT = (CHEXBERT_F1, CHEXBERT_SIMILARITY)
