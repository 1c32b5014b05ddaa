"""`vlscore calibrate`: C of an encoder, measured on a table of studies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts.types import NonNegativeInt

from vlscore.cli.output import (
    OutputOptions,
    echo,
    print_encoder_warning,
    print_failures,
    print_json,
    print_notes,
    terminal_width,
)
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import EncoderOptions, Table, TableOptions, options, worker_count
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.evaluation import Calibration


def calibrate(
    studies: Table,
    /,
    *,
    others: NonNegativeInt = 0,
    seed: int = 0,
    write_card: bool = False,
    table: TableOptions = TableOptions(),
    encoding: Annotated[EncoderOptions, options(without=("C", "comparisons"))] = EncoderOptions(),
    output: Annotated[OutputOptions, options(without=("overwrite", "report"))] = OutputOptions(),
) -> None:
    """Measure C, the area at which VLScore is 0, for an encoder.

    Prints the largest area of the table's triangles, which the paper uses as C, and quantiles with
    intervals. C depends on the encoder and on the candidates. Scores can be compared only if C is
    the same.

    Example: vlscore calibrate studies.jsonl --encoder small --weights trained --write-card

    Args:
        others: Use N references of other studies, drawn at random, as the candidates of each study,
            instead of the column candidate.
        seed: Seed of the draw for --others, and of the bootstrap.
        write_card: Write C into card.json of the encoder's folder, which --weights names.
    """
    from vlscore.evaluation import calibrate, read_card, write_constant

    weights = encoding.weights if write_card else None
    if write_card and weights is None:
        raise InvalidSetting("--write-card writes into the folder that --weights names; name one")
    if weights is not None:
        read_card(weights)
    opened = table.opened(studies)
    embedder = encoding.embedder()
    with row_progress(opened.count, "embedding", quiet=output.is_silent) as on_progress:
        found = calibrate(
            embedder,
            opened,
            others=others,
            text_policy=encoding.policy(),
            workers=worker_count(encoding.workers),
            seed=seed,
            on_progress=on_progress,
        )
    card = write_constant(weights, found) if weights is not None else None
    print_encoder_warning(embedder)
    _print(found, card, output)
    if found.failed and not output.keep_going:
        raise SystemExit(1)


def _print(found: "Calibration", card: Path | None, output: OutputOptions) -> None:
    """Print C with its quantiles, and the rows that could not be used."""
    print_notes(found.notes)
    if output.as_json:
        print_json(found.to_dict())
    elif not output.quiet:
        echo(f"{found.text_table().text(terminal_width())}\n\n{found.signature}")
        if card is not None:
            echo(f"wrote {card}")
    print_failures(found.failed, "rows could not be used")
