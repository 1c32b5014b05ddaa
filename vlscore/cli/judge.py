"""`vlscore judge`: each error of generated reports, with its severity and correction."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter
from cyclopts.types import PositiveInt

from vlscore.cli.output import OutputOptions, echo, print_encoder_warning, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    EncoderOptions,
    Out,
    Section,
    Table,
    TableOptions,
    options,
    rows_of,
    worker_count,
)
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.metrics import ModelJudge


@options(Group("Language model", sort_key=1))
@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModelOptions:
    """A language model that judges instead of the rules.

    Attributes:
        model: Name of a language model at --endpoint, which judges. Default: rules judge.
        endpoint: Address of an OpenAI-compatible service, such as http://localhost:8000/v1. It
            receives both reports, age and indication of every study. Its key is read from
            VLSCORE_JUDGE_KEY. Default: VLSCORE_JUDGE_ENDPOINT.
        send_to: Hosts on other machines that may receive the reports; required if the endpoint is
            on another machine. Default: VLSCORE_JUDGE_SEND_TO.
        prompt: few-shot, zero-shot, or a .toml file of your own.
        in_flight: Largest number of requests at once.
        prices: IN,OUT: prices of a million input tokens and of a million output tokens; the results
            then have the cost.
        no_cache: Send all requests again, and store no answers for later runs.
    """

    model: str | None = None
    endpoint: Annotated[
        str | None, Parameter(env_var="VLSCORE_JUDGE_ENDPOINT", show_env_var=False)
    ] = None
    send_to: Annotated[str, Parameter(env_var="VLSCORE_JUDGE_SEND_TO", show_env_var=False)] = ""
    prompt: str = "few-shot"
    in_flight: Annotated[
        PositiveInt, Parameter(env_var="VLSCORE_JUDGE_IN_FLIGHT", show_env_var=False)
    ] = 8
    prices: str | None = None
    no_cache: bool = False

    def judge(self) -> "ModelJudge | None":
        """Return the judge; None for the rules."""
        if self.model is None:
            return None
        from vlscore.metrics import EndpointModel, ModelJudge

        model = EndpointModel(
            self.model,
            self.endpoint,
            send_to=self.send_to.split(","),
            in_flight=self.in_flight,
        )
        return ModelJudge(model, prompt=self.prompt, cache=not self.no_cache)

    def token_prices(self) -> tuple[float, float] | None:
        """Return the prices; raise InvalidSetting for anything but two numbers."""
        if self.prices is None or self.model is None:
            return None
        try:
            tokens_in, tokens_out = map(float, self.prices.split(","))
        except ValueError:
            raise InvalidSetting(
                f"--prices takes two numbers, as in 0.15,0.60, not {self.prices!r}"
            ) from None
        return tokens_in, tokens_out


def judge(
    studies: Table,
    /,
    *,
    out: Out,
    table: TableOptions = TableOptions(),
    section: Section = "all",
    evidence: Path | None = None,
    trust: float = 0.5,
    language_model: LanguageModelOptions = LanguageModelOptions(),
    encoding: Annotated[EncoderOptions, options(without=("C", "section"))] = EncoderOptions(),
    output: OutputOptions = OutputOptions(),
) -> None:
    """Name each error of a report, how severe it is, and why.

    The judge applies rules, without a model or a network; with --model it is a language model. It
    reads the columns reference and candidate, and if the table has them age and indication.
    Writes judgements.jsonl (each error of each study) and totals.csv (one row for each study:
    scores, and errors by category). Answers of a model are stored at once, so after a stop the same
    command sends only the missing requests.

    The same judge is the metric "judge" of `vlscore evaluate`, `compare`, `align` and
    `sensitivity`.

    Example: vlscore judge studies.csv --out judged

    With a service on this machine: vlscore judge studies.csv --out judged --model llama3.1
    --endpoint http://localhost:11434/v1

    Args:
        evidence: evidence.npz that `vlscore claims --fit` wrote. Each error then says whether the
            image supports the candidate or the reference. Needs the same encoder, weights and
            views.
        trust: Probability that the reference is right about an error, before the image is read.
    """
    from vlscore.data import TextPolicy, open_studies
    from vlscore.evaluation import judge as compute_judgements
    from vlscore.metrics import RuleJudge

    columns = table.columns("id", "reference", "candidate", "age", "indication")
    age, indication = columns.pop("age", "age"), columns.pop("indication", "indication")
    embedder = None if evidence is None else encoding.embedder()
    judged_by, prices = language_model.judge(), language_model.token_prices()
    if judged_by is not None:
        if encoding.comparisons is not None:
            raise InvalidSetting("--comparisons is an option of the judge by rules: leave it out")
        echo(f"reports go to {judged_by.model}", err=True)
    opened = open_studies(
        studies, needs=(), image_root=table.image_root, columns=columns, limit=table.limit
    )
    # Where there is evidence, images are read first.
    total = rows_of(opened, opened if evidence is not None else None)
    with row_progress(total, "judging", quiet=output.is_silent) as on_progress:
        result = compute_judgements(
            opened,
            out,
            judge=judged_by or RuleJudge(comparisons=encoding.comparisons),
            evidence=evidence,
            embedder=embedder,
            trust=trust,
            prices=prices,
            age_column=age,
            indication_column=indication,
            text_policy=None if section == "all" else TextPolicy.named(section),
            workers=worker_count(encoding.workers),
            overwrite=output.overwrite,
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    show(result, output, "rows could not be judged", studies=studies)
