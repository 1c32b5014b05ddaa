"""`vlscore calibrate`: C of an encoder, measured on a table of studies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import OUTPUT, TABLE_HELP, option
from vlscore.cli.output import (
    echo,
    exit_if_failed,
    print_bad_rows,
    print_encoder_warning,
    print_json,
    print_notes,
    terminal_width,
)
from vlscore.cli.progress import stopping

if TYPE_CHECKING:
    from vlscore.evaluation import Calibration

OthersOption = Annotated[
    int,
    option(
        "--others",
        "Use N references of other studies, drawn at random, as the candidates of each study, "
        "instead of the column of candidates.",
        "N",
        min=0,
    ),
]
WriteCardOption = Annotated[
    bool,
    option(
        "--write-card",
        "Write C into card.json of the encoder's folder, the one that --weights names.",
        panel=OUTPUT,
    ),
]


@grouped("C", "overwrite", "report")
def calibrate(
    *,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    others: OthersOption = 0,
    seed: Annotated[
        int, option("--seed", "Seed of the draw for --others, and of the bootstrap.", "N")
    ] = 0,
    table: TableOptions,
    encoding: ScorerOptions,
    write_card: WriteCardOption = False,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Measure C, the area at which VLScore is 0, for an encoder.

    Prints the largest area of the table's triangles, which is how the paper defines C, and
    quantiles with intervals. C depends on the encoder and on how bad the candidates are: scores
    can be compared only if C is the same.

    Example: vlscore calibrate studies.jsonl --encoder small --weights trained --write-card
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import count_rows
    from vlscore.errors import InvalidSetting
    from vlscore.evaluation import calibrate, read_card, write_constant

    weights = encoding.weights if write_card else None
    if write_card and weights is None:
        raise InvalidSetting("--write-card writes into the folder that --weights names; name one")
    if weights is not None:
        read_card(weights)
    total = count_rows(studies)
    embedder = encoding.embedder()
    with (
        stopping(None, stored=None),
        row_progress(total, "embedding", quiet=printing.is_silent) as on_progress,
    ):
        found = calibrate(
            embedder,
            studies,
            others=others,
            columns=table.columns(),
            image_root=table.image_root,
            text_policy=encoding.policy(),
            workers=encoding.decoders(),
            seed=seed,
            on_progress=on_progress,
        )
    card = write_constant(weights, found) if weights is not None else None
    print_encoder_warning(embedder)
    _print(found, card, printing)
    exit_if_failed(found.failed, running.keep_going)


def _print(found: "Calibration", card: Path | None, printing: PrintOptions) -> None:
    """Print C with its quantiles, and the rows that could not be used."""
    print_notes(found.notes)
    if printing.as_json:
        print_json(found.to_dict())
    elif not printing.quiet:
        echo(f"{found.text_table().text(terminal_width())}\n\n{found.signature}")
        if card is not None:
            echo(f"wrote {card}")
    print_bad_rows(found.failed)
