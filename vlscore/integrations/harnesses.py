"""Scorers for harnesses that run language models: lm-evaluation-harness, inspect_ai, evaluate."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidStudy, MissingDependency
from vlscore.metrics import DEFAULT_METRIC, Score, Scorer

# Path of the module that `evaluate.load` of Hugging Face takes.
EVALUATE_MODULE = str(Path(__file__).with_name("evaluate_module.py"))


def lm_eval_results(
    metrics: Any = DEFAULT_METRIC,
    *,
    reference: str = "reference",
    image: str = "image",
    **options: Any,
) -> Callable[[Mapping[str, Any], Sequence[str]], dict[str, float]]:
    """Return a `process_results` for a task of lm-evaluation-harness.

    The task lists the metrics by the same names, and "failed", with `aggregation: mean`. A study
    that cannot be scored has no values, and 1 for "failed"; the others have 0.

    Args:
        metrics, options: as in `Scorer`.
        reference, image: fields of a document.

    Raises: UnknownName, InvalidSetting, MissingDependency and others of `Scorer`.
    """
    scorer = Scorer(metrics=metrics, **options)

    def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
        found = _scored(scorer, doc, results[0], doc.get(reference), image)
        if found.error is not None:
            return {"failed": 1.0}
        values = {name: value for name, value in found.values.items() if math.isfinite(value)}
        return {**values, "failed": 0.0}

    return process_results


def inspect_scorer(
    metrics: Any = DEFAULT_METRIC,
    *,
    image: str = "image",
    **options: Any,
) -> Any:
    """Return a scorer of inspect_ai: the model's output against the target and the image.

    A study that cannot be scored is "unscored", with the reason; inspect_ai counts such samples.

    Args:
        metrics, options: as in `Scorer`.
        image: entry of a sample's metadata with the path of the image, if a metric looks at it.

    Raises: MissingDependency without inspect_ai; UnknownName and others of `Scorer`.
    """
    try:
        from inspect_ai import scorer as inspect_scoring
    except ImportError:
        raise MissingDependency(
            "inspect_ai is not installed: pip install 'vlscore[integrations]'"
        ) from None
    ours = Scorer(metrics=metrics, **options)
    columns = [name for metric in ours.metrics for name in metric.columns]
    shown = [inspect_scoring.mean(), inspect_scoring.stderr()]

    def report_scorer() -> Any:
        async def score(state: Any, target: Any) -> Any:
            found = await asyncio.to_thread(
                _scored, ours, state.metadata, state.output.completion, target.text, image
            )
            if found.error is not None:
                return inspect_scoring.Score.unscored(
                    reason="scoring_failed", explanation=str(found.error)
                )
            signatures = {name: str(each) for name, each in found.signatures.items()}
            return inspect_scoring.Score(
                value=dict(found.values),
                answer=state.output.completion,
                metadata={"signatures": signatures},
            )

        return score

    registered = inspect_scoring.scorer(metrics=dict.fromkeys(columns, shown), name="vlscore")
    return registered(report_scorer)()


def _scored(
    scorer: Scorer, row: Mapping[str, Any], candidate: str, reference: str | None, image: str
) -> Score:
    """Score one study; one that cannot be scored has nan for its values."""
    needs = scorer.plan.needs
    for name, value, is_needed in (
        (image, row.get(image), needs.images),
        ("reference", reference, needs.references),
    ):
        if is_needed and value is None:
            raise InvalidStudy(f'the sample has no "{name}", but a metric needs it')
    images = [row.get(image)] if needs.images else None
    references = [reference] if needs.references else None
    return scorer.score(images, [candidate], references, on_error="keep")[0]
