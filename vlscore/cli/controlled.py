"""`vlscore controlled`: does a metric tell sentences that agree from sentences that do not?"""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    TABLE,
    BatchSizeOption,
    CompileOption,
    DeviceOption,
    EncoderOption,
    IdColumnOption,
    JsonOption,
    KeepGoingOption,
    NoCacheOption,
    OutOption,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
    ResamplesOption,
    SectionOption,
    TokenizerOption,
    WeightsOption,
    make_scorer,
    names_of,
)
from vlscore.cli.output import (
    SHOWN_FAILURES,
    echo,
    say_of_encoder,
    say_of_failures,
    say_of_run,
    stopping,
    terminal_width,
)


def controlled(
    source: Annotated[
        Path,
        typer.Argument(
            help="Table of reports; or, with --labelled, of sentences with labels.",
            metavar="REPORTS",
        ),
    ],
    out: OutOption,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="NAMES",
            help="Metrics of texts, with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all.",
            show_default="bleu-4,rouge-l,findings-f1",
        ),
    ] = None,
    labelled: Annotated[
        bool,
        typer.Option(
            "--labelled",
            help="REPORTS has one sentence a row and one column an observation: 1 stated, 0 "
            "denied, -1 uncertain, empty where it is not mentioned.",
            show_default=False,
        ),
    ] = False,
    observations: Annotated[
        str,
        typer.Option(
            "--observations",
            metavar="NAMES",
            help="With commas between them. Default: six of CheXpert's, or all columns that have "
            "the name of one.",
            show_default=False,
        ),
    ] = "",
    references: Annotated[
        int, typer.Option(min=2, metavar="N", help="Most references behind a number.")
    ] = 50,
    candidates: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most candidates for each reference.")
    ] = 20,
    reports: Annotated[
        int, typer.Option("--reports", min=1, metavar="N", help="Most reports of the stress test.")
    ] = 200,
    resamples: ResamplesOption = 1000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of everything random.")] = 0,
    id_column: IdColumnOption = "id",
    text_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column with the report. Default: report, text or reference; else findings and "
            "impression.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None,
    sentence_column: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Column with the sentence, of --labelled.", rich_help_panel=TABLE
        ),
    ] = "sentence",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    compile: CompileOption = False,
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    section: SectionOption = "all",
    overwrite: OverwriteOption = False,
    keep_going: KeepGoingOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Test metrics on sentences whose meaning is known, and on reports that leave something out.

    Sentences of your reports are grouped by what they say of an observation: stated, uncertain,
    denied, or not mentioned. Our own rules read that (`vlscore.findings`); with --labelled, others
    have. Prints how well each metric separates sentences that agree from those that do not, and
    the stress test: what a metric makes of a report that leaves its denials unmentioned, against
    one that leaves out a pathology (Pino 2022). Writes its mean value for every two groups, too.

    Example: vlscore controlled reports.csv --metrics bleu-4,rouge-l --out controlled
    """
    import json

    from vlscore.cli.output import row_progress
    from vlscore.data import open_reports
    from vlscore.evaluation import Sampling, read_labelled, run_controlled

    scorer = make_scorer(
        encoder,
        weights,
        tokenizer,
        metrics=metrics or "bleu-4,rouge-l,findings-f1",
        device=device,
        precision=precision,
        compile=compile,
        batch_size=batch_size,
        cache=not no_cache,
    )
    named = names_of(observations) or None
    if labelled:
        found = read_labelled(source, named, sentence_column=sentence_column)
    else:
        options = {"id": "--id-column", "text": "--text-column"}
        table = open_reports(source, id_column=id_column, text_column=text_column, options=options)
    with (
        stopping(None, kept=None),
        row_progress(None, "pairs", quiet=quiet or as_json) as on_progress,
    ):
        run = run_controlled(
            found if labelled else table,
            out,
            scorer,
            observations=named,
            text_policy=section,
            sampling=Sampling(references, candidates, resamples, seed),
            most_reports=reports,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    say_of_encoder(scorer.embedder)
    say_of_run(run.notes, out, unchanged=run.unchanged)
    if as_json:
        echo(json.dumps(run.content, indent=2, ensure_ascii=False))
    elif not quiet:
        echo(f"{run.content['sentences']} sentences, by {run.content['labelled_by']}\n")
        for each in run.headlines:
            echo(each.text(terminal_width()) + "\n")
        echo("\n".join(run.signatures))
        echo(f"wrote {run.folder}; tables.md has the means of every two groups")
    failures = run.content["failures"]
    if failures:
        shown = [(f["row"], f["id"] or "", f["reason"]) for f in failures[:SHOWN_FAILURES]]
        what = "rows could not be used" if len(failures) > 1 else "row could not be used"
        say_of_failures(shown, len(failures), what)
        if not keep_going:
            raise typer.Exit(1)
