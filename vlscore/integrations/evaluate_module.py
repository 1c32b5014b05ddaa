"""Module of Hugging Face's `evaluate` with the metrics of vlscore.

    module = evaluate.load(vlscore.integrations.EVALUATE_MODULE)
    module.compute(predictions=candidates, references=references, metrics="bleu-4,rouge-l")

`evaluate` copies this file and imports the copy, so it imports vlscore like any user's program.
"""

from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

import vlscore
from vlscore.integrations import flat_numbers

_ARGUMENTS = """
Args:
    predictions: generated reports.
    references: reference reports.
    images: paths of images, one for each report or a list of several; needed if a metric looks at
        images.
    metrics: names of metrics, as in "vlscore,bleu-4".
    options: further options of `vlscore.Scorer`.
Returns: name -> mean over the reports, corpus values, and "failed", the number of reports that
    could not be scored; "signatures" has what the values depend on.
"""


class VLScoreModule(evaluate.Metric):  # type: ignore[misc]
    """Metrics of vlscore as one metric of `evaluate`."""

    def _info(self) -> Any:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description="Scores of generated chest X-ray reports.",
            citation="Dawidowicz, Hirsch and Tal, NeurIPS 2024, arXiv:2410.17357",
            inputs_description=_ARGUMENTS,
            features=datasets.Features({"predictions": text, "references": text}),
            reference_urls=["https://arxiv.org/abs/2410.17357"],
        )

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[str],
        images: Sequence[Any] | None = None,
        metrics: Any = "vlscore",
        **options: Any,
    ) -> dict[str, Any]:
        scorer = vlscore.Scorer(metrics=metrics, **options).fit(references)
        shown = None if images is None else list(images)
        table = scorer.score(shown, list(predictions), list(references), on_error="keep")
        signatures = {name: str(each) for name, each in table.signatures.items()}
        return {**flat_numbers(table), "signatures": signatures}
