"""`vlscore judge`: each error of generated reports, with its severity and correction."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import (
    PrintOptions,
    RunOptions,
    SectionOptions,
    TableOptions,
    grouped,
)
from vlscore.cli.options import TABLE, TABLE_HELP, OutOption, option
from vlscore.cli.output import echo, exit_if_failed, print_result
from vlscore.cli.progress import stopping
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.evaluation import TokenPrices
    from vlscore.metrics import ModelJudge

MODEL = "Language model"

AgeColumnOption = Annotated[
    str,
    option(
        "--age-column",
        "Column with the age, in years or as DICOM writes it; used where there is one.",
        "NAME",
        TABLE,
    ),
]
IndicationColumnOption = Annotated[
    str,
    option(
        "--indication-column", "Column with the indication; used where there is one.", "NAME", TABLE
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModelOptions:
    """A language model that judges in place of the rules."""

    model: Annotated[
        str | None,
        option(
            "--model",
            "Judge by a language model: its name at --endpoint. Default: by rules.",
            "NAME",
            MODEL,
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        option(
            "--endpoint",
            "Address of an OpenAI-compatible service, such as http://localhost:8000/v1. It "
            "receives both reports, age and indication of every study. Its key is read from "
            "VLSCORE_JUDGE_KEY. Default: VLSCORE_JUDGE_ENDPOINT.",
            "URL",
            MODEL,
            envvar="VLSCORE_JUDGE_ENDPOINT",
            show_envvar=False,
        ),
    ] = None
    send_to: Annotated[
        str,
        option(
            "--send-to",
            "Host on another machine that may receive the reports; needed unless the endpoint is "
            "on this machine. Default: VLSCORE_JUDGE_SEND_TO.",
            "HOST",
            MODEL,
            envvar="VLSCORE_JUDGE_SEND_TO",
            show_envvar=False,
        ),
    ] = ""
    prompt: Annotated[
        str, option("--prompt", "few-shot, zero-shot, or a .toml file of your own.", "NAME", MODEL)
    ] = "few-shot"
    order: Annotated[
        str,
        option(
            "--order",
            "Which report the question shows first: candidate-first or reference-first.",
            "NAME",
            MODEL,
        ),
    ] = "candidate-first"
    in_flight: Annotated[
        int,
        option(
            "--in-flight",
            "Largest number of requests at once.",
            "N",
            MODEL,
            min=1,
            envvar="VLSCORE_JUDGE_IN_FLIGHT",
            show_envvar=False,
        ),
    ] = 8
    prices: Annotated[
        str | None,
        option(
            "--prices",
            "Prices of a million tokens of questions and of answers; the results then have the "
            "cost.",
            "IN,OUT",
            MODEL,
        ),
    ] = None
    no_cache: Annotated[
        bool,
        option(
            "--no-cache", "Ask the model anew, and store no answers for later runs.", panel=MODEL
        ),
    ] = False

    def judge(self) -> "ModelJudge | None":
        """Return the judge; None for the rules."""
        if self.model is None:
            return None
        from vlscore.metrics import ModelJudge, find_judge_model

        model = find_judge_model(
            self.model,
            endpoint=self.endpoint,
            send_to=self.send_to.split(","),
            in_flight=self.in_flight,
        )
        return ModelJudge(model, prompt=self.prompt, order=self.order, cache=not self.no_cache)

    def token_prices(self) -> "TokenPrices | None":
        """Return the prices; raise InvalidSetting for anything but two numbers."""
        if self.prices is None or self.model is None:
            return None
        from vlscore.evaluation import TokenPrices

        try:
            tokens_in, tokens_out = map(float, self.prices.split(","))
        except ValueError:
            raise InvalidSetting(
                f"--prices takes two numbers, as in 0.15,0.60, not {self.prices!r}"
            ) from None
        return TokenPrices(tokens_in, tokens_out)


@grouped(
    "image_root", "image_column", "view_column", "reference_section", "candidate_section", "as_json"
)
def judge(
    *,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    out: OutOption,
    table: TableOptions,
    age_column: AgeColumnOption = "age",
    indication_column: IndicationColumnOption = "indication",
    sections: SectionOptions,
    language_model: LanguageModelOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Name each error of a report, how severe it is, and why.

    The judge works by rules, without a model or a network, or with --model by a language model.
    Writes judgements.jsonl (each error of each study) and totals.csv (one row a study: scores, and
    errors by category). Answers of a model are stored as they come: after a stop, the same command
    asks only what is missing.

    The same judge is the metric "judge" of `vlscore evaluate`, `compare`, `align` and
    `sensitivity`.

    Example: vlscore judge studies.csv --out judged

    With a service on this machine: vlscore judge studies.csv --out judged --model llama3.1
    --endpoint http://localhost:11434/v1
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import count_rows
    from vlscore.evaluation import judge as compute_judgements

    judged_by, prices = language_model.judge(), language_model.token_prices()
    if judged_by is not None:
        echo(f"reports go to {judged_by.model}", err=True)
    with (
        stopping(out, stored=None),
        row_progress(count_rows(studies), "judging", quiet=printing.quiet) as on_progress,
    ):
        result = compute_judgements(
            studies,
            out,
            judge=judged_by,
            prices=prices,
            columns=table.columns("id", "reference", "candidate"),
            age_column=age_column,
            indication_column=indication_column,
            text_policy=None if sections.section == "all" else sections.policy(),
            overwrite=running.overwrite,
            on_progress=on_progress,
        )
    print_result(result, printing, "rows could not be judged", "row could not be judged")
    exit_if_failed(result.failures, running.keep_going)
