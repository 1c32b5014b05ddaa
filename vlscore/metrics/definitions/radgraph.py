"""Agreement of the entities and relations that RadGraph reads in two reports."""

from vlscore.metrics.definitions.chexbert import PRECISION
from vlscore.metrics.metric import Metric, Output, Parameter

WEIGHTS_VARIABLE = "VLSCORE_RADGRAPH"

_PARAMETERS = (
    Parameter(
        "weights",
        None,
        "RadGraph's .tar.gz, or the folder that it unpacks to; default: "
        f"{WEIGHTS_VARIABLE}; nothing is fetched",
        kind=str,
    ),
    Parameter(
        "vocabulary",
        None,
        "vocab.txt of the BERT that the model stands on; default: beside the archive",
        kind=str,
    ),
    PRECISION,
)


def _metric(name: str, description: str, citation: str, *further: Output) -> Metric:
    return Metric(
        name=name,
        description=description,
        higher_is_better=True,
        bounds=(0.0, 1.0),
        uses_image=False,
        uses_reference=True,
        citation=f"Jain et al. 2021, RadGraph, NeurIPS; {citation}",
        parameters=_PARAMETERS,
        further=further,
        cost="model",
    )


RADGRAPH = (
    _metric(
        "radgraph-f1",
        "mean of the F1 of entities and the F1 of relations; .5 at most for reports without "
        "relations",
        "Yu et al. 2023, Patterns",
        Output("entities", "F1 of entities, by tokens and label"),
        Output("relations", "F1 of relations, by both entities and label; 0 where there are none"),
    ),
    *(
        _metric(
            f"radgraph-{level}",
            f"F1 of entities by tokens and label{more}; 0 where a report has none",
            "Delbrouck et al. 2022, EMNLP Findings",
        )
        for level, more in (
            ("simple", ""),
            ("partial", " and by whether they begin a relation"),
            ("complete", " and by each relation that they begin"),
        )
    ),
)
