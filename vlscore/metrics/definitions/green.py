"""GREEN: findings that match, of those and the significant errors, as a language model has them."""

from vlscore.metrics.metric import Metric, Output, Parameter

MODEL_VARIABLE = "VLSCORE_GREEN"
# As vlscore.annotators.green_answers has them, in the order of its answer's (a) to (f).
_CATEGORIES = (
    ("false-finding", "findings that the reference does not have"),
    ("missing-finding", "findings of the reference that are missing"),
    ("location", "findings with another place"),
    ("severity", "findings with another severity"),
    ("false-comparison", "comparisons that the reference does not make"),
    ("missing-comparison", "changes from a prior study that are missing"),
)


def _counts(kind: str) -> tuple[Output, ...]:
    return tuple(
        Output(name, description, higher_is_better=False, bounds=(0.0, None))
        for name, description in (
            (kind, f"clinically {kind} errors"),
            *((f"{kind}-{name}", f"{kind}: {what}") for name, what in _CATEGORIES),
        )
    )


GREEN = Metric(
    name="green",
    description="findings of both reports, of those and the clinically significant errors, as a "
    "language model counts them",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    citation="Ostmeier et al. 2024, GREEN, EMNLP Findings",
    parameters=(
        Parameter(
            "model",
            None,
            "folder of the language model, such as GREEN-radllama2-7b, with the released question "
            f"as green_prompt.txt beside it; default: {MODEL_VARIABLE}; nothing is fetched",
            kind=str,
        ),
        Parameter(
            "answers",
            None,
            "in place of a model: a table of its answers, with columns candidate, reference and "
            "answer, or as the package green_score returns it",
            kind=str,
        ),
    ),
    further=(
        Output("matched", "findings that both reports have", bounds=(0.0, None)),
        *_counts("significant"),
        *_counts("insignificant"),
    ),
    cost="model",
)
