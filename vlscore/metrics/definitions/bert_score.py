"""BERTScore: each word piece matched to the most similar one of the other report."""

from vlscore.metrics.metric import Metric, Output, Parameter

BERT_SCORE = Metric(
    name="bert-score",
    description="F measure of the cosines between each word piece's embedding and the nearest "
    "one of the other report",
    higher_is_better=True,
    bounds=(None, 1.0),
    uses_image=False,
    uses_reference=True,
    reference_scores_best=True,
    citation="Zhang et al. 2020, BERTScore, ICLR",
    parameters=(
        Parameter(
            "model",
            None,
            "folder of a transformers model with model.safetensors; nothing is fetched",
            kind=str,
        ),
        Parameter(
            "layer",
            None,
            "whose hidden states are compared; default: the library's for a model of the folder's "
            "name, such as 17 for roberta-large",
            kind=int,
            above=0,
        ),
        Parameter("idf", False, "whether rare word pieces of the run's references weigh more"),
        Parameter(
            "rescale",
            None,
            "baseline to subtract: a .tsv file, or library for its own of a model of the folder's "
            "name; default: not rescaled",
            kind=str,
        ),
    ),
    further=(
        Output("precision", "mean over the candidate's word pieces", bounds=(None, 1.0)),
        Output("recall", "mean over the reference's word pieces", bounds=(None, 1.0)),
    ),
    cost="model",
)
