"""Scorers for harnesses that run language models, and numbers for loggers.

The harnesses are lm-evaluation-harness, inspect_ai and evaluate; the loggers MLflow, W&B and
TensorBoard, which take a result as one flat dict of numbers.
"""

import asyncio
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import flat, plain
from vlscore.errors import InvalidStudy, MissingDependency
from vlscore.metrics import DEFAULT_METRIC, Score, Scorer, ScoreTable, means_and_corpus

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


def inspect_scorer(metrics: Any = DEFAULT_METRIC, *, image: str = "image", **options: Any) -> Any:
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


# Characters that MLflow allows in the name of a metric.
_REFUSED = re.compile(r"[^\w\-. /]+")


def flat_numbers(result: Any, prefix: str = "") -> dict[str, float]:
    """Return the numbers of a result, name -> float, as `mlflow.log_metrics` and `wandb.log` take.

    Args:
        result: a Score; a ScoreTable, of which means and corpus values are returned; the result of
            `evaluate`, of which the summary is returned; the result of another command; a dict.
        prefix: is written before each name.

    Returns: finite numbers alone; intervals as x, x.low, x.high; counts as floats. In names,
        characters that MLflow refuses become "_". Records of a list are named by their texts.

    >>> flat_numbers({"bleu-4(smoothing=exp)": {"mean": 0.25, "unit": "none"}, "rows": 3})
    {'bleu-4_smoothing_exp_.mean': 0.25, 'rows': 3.0}
    """
    found: dict[str, float] = {}
    for name, value in _numbers(_content(result)):
        name = _REFUSED.sub("_", f"{prefix}{name}")
        if name in found:
            same = sum(other == name or other.startswith(f"{name}.again") for other in found)
            name = f"{name}.again{same}"
        found[name] = value
    return found


def _content(result: Any) -> Mapping[str, Any]:
    if isinstance(result, ScoreTable):
        return means_and_corpus(result) | {"failed": float(len(result.failures))}
    # The result of `evaluate` has its numbers in a summary.
    result = getattr(result, "summary", result)
    if isinstance(result, Mapping):
        return result
    content: Mapping[str, Any] = result.to_dict()
    return content


def _numbers(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    for name, value in flat(plain(dict(content))).items():
        whole = f"{above}.{name}" if above else name
        if isinstance(value, list):
            for record in value:
                if isinstance(record, Mapping):
                    texts = [text for text in record.values() if isinstance(text, str)]
                    yield from _numbers(record, ".".join([whole, *texts]))
        elif isinstance(value, int | float) and math.isfinite(value):
            yield whole, float(value)
