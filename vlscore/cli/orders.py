"""`vlscore orders`: which metrics order small cases as radiologists would."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, grouped
from vlscore.cli.options import OUTPUT, option
from vlscore.cli.output import SCREEN, echo, fitting, named_as_in_papers, print_json, terminal_width


@grouped()
def orders(
    *,
    cases: Annotated[
        Path,
        typer.Argument(help="Cases with their order: RadJudge's radjudge.json.", metavar="CASES"),
    ],
    metrics: Annotated[
        str | None,
        option(
            "--metrics -m",
            "Metrics of texts, with commas between them. Default: all that need no model file.",
            "NAMES",
        ),
    ] = None,
    out: Annotated[
        Path | None, option("--out -o", "File for the tables, Markdown.", "PATH", OUTPUT)
    ] = None,
    printing: PrintOptions,
) -> None:
    """Show which small cases each metric puts in the right order.

    A case is a reference, two or three candidates, and the order that a radiologist expects,
    such as RadJudge's thirty.

    Example: vlscore orders radjudge.json --metrics bleu-4,rouge-l,findings-f1
    """

    from vlscore.core import atomic_write
    from vlscore.evaluation import check_orders, read_orders, usable_text_metrics
    from vlscore.stats import markdown

    found = check_orders(read_orders(cases), usable_text_metrics() if metrics is None else metrics)
    tables = found.tables()
    if out is not None:
        with atomic_write(out) as stream:
            stream.write(markdown(tables, []))
    if printing.as_json:
        content = {"cases": [case.id for case in found.cases], "passed": found.passed}
        print_json(content)
    elif not printing.quiet:
        texts = [fitting(named_as_in_papers(t)).text(terminal_width()) for t in tables]
        is_long = "\n".join(texts).count("\n") > SCREEN
        for text in texts[:1] if is_long and out is not None else texts:
            echo(text + "\n")
    if out is not None:
        echo(f"wrote {out}", err=printing.as_json)
