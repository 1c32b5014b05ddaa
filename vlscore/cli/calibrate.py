"""`vlscore calibrate`: C of an encoder, measured on a table of studies."""

import json
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    OUTPUT,
    TABLE_HELP,
    BatchSizeOption,
    CandidateColumnOption,
    CandidateSectionOption,
    CompileOption,
    DeviceOption,
    EncoderOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    JsonOption,
    KeepGoingOption,
    NoCacheOption,
    PrecisionOption,
    QuietOption,
    ReferenceColumnOption,
    ReferenceSectionOption,
    SectionOption,
    TokenizerOption,
    ViewColumnOption,
    ViewsOption,
    WeightsOption,
    WorkersOption,
    column_names,
    make_embedder,
    text_policy,
    worker_count,
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


def calibrate(
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    others: Annotated[
        int,
        typer.Option(
            "--others",
            min=0,
            metavar="N",
            help="Take as candidates so many references of other studies each, drawn at random, "
            "instead of the column of candidates.",
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of the others that are drawn, and of the bootstrap.")
    ] = 0,
    image_root: ImageRootOption = None,
    id_column: IdColumnOption = "id",
    image_column: ImageColumnOption = "image",
    reference_column: ReferenceColumnOption = "reference",
    candidate_column: CandidateColumnOption = "candidate",
    view_column: ViewColumnOption = "view",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    compile: CompileOption = False,
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    workers: WorkersOption = None,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    reference_section: ReferenceSectionOption = None,
    candidate_section: CandidateSectionOption = None,
    write_card: Annotated[
        bool,
        typer.Option(
            "--write-card",
            help="Write C into card.json of the encoder's folder, the one that --weights names.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    keep_going: KeepGoingOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure C, the area at which VLScore is 0, of an encoder on a table of studies.

    Prints the largest area of the table's triangles, which is how the paper defines C, and
    quantiles with intervals. C depends on the encoder and on how bad the candidates are: scores
    can be compared only where it is the same.

    Example: vlscore calibrate studies.jsonl --encoder small --weights trained --write-card
    """
    from vlscore.cli.output import row_progress
    from vlscore.data import count_rows
    from vlscore.errors import InvalidSetting
    from vlscore.evaluation import calibrate, read_card, write_constant

    if write_card and weights is None:
        raise InvalidSetting("--write-card writes into the folder that --weights names; name one")
    if write_card and weights is not None:
        read_card(weights)
    total = count_rows(studies)
    embedder = make_embedder(
        encoder,
        weights,
        tokenizer,
        device=device,
        precision=precision,
        compile=compile,
        batch_size=batch_size,
        cache=not no_cache,
        image_policy=image_policy,
        views=views,
    )
    with (
        stopping(None, kept=None),
        row_progress(total, "embedding", quiet=quiet or as_json) as on_progress,
    ):
        found = calibrate(
            embedder,
            studies,
            others=others,
            columns=column_names(
                id=id_column,
                image=image_column,
                reference=reference_column,
                candidate=candidate_column,
                view=view_column,
            ),
            image_root=image_root,
            text_policy=text_policy(section, reference_section, candidate_section),
            workers=worker_count(workers),
            seed=seed,
            on_progress=on_progress,
        )
    card = write_constant(weights, found) if write_card and weights is not None else None
    say_of_encoder(embedder)
    say_of_run(found.notes, None, unchanged=False)
    if as_json:
        echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    elif not quiet:
        echo(f"{found.text_table().text(terminal_width())}\n\n{found.signature}")
        if card is not None:
            echo(f"wrote {card}")
    if found.failed:
        shown = [(row.row, str(row.id or ""), row.reason) for row in found.failed]
        count = len(shown)
        what = "rows could not be used" if count > 1 else "row could not be used"
        say_of_failures(shown[: SHOWN_FAILURES + 1], count, what)
        if not keep_going:
            raise typer.Exit(1)
