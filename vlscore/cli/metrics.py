"""`vlscore metrics`: what can be computed."""

from typing import Annotated

import typer


def metrics(
    name: Annotated[
        str | None, typer.Argument(help="Show all that is known of one metric.", metavar="NAME")
    ] = None,
) -> None:
    """List the metrics that evaluate, sensitivity and oracle take, or show one.

    Several are named with commas between them, parameters in parentheses:
    vlscore,bleu-4(smoothing=exp). A metric of your own is written package.module:METRIC.
    """
    from vlscore.cli._metric_texts import metric_text, metrics_text
    from vlscore.metrics import METRICS, find_metric

    typer.echo(metrics_text(METRICS.values()) if name is None else metric_text(find_metric(name)))
