"""`vlscore encoders`: the table of cards."""

from typing import Annotated

import typer


def encoders(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all that is known of this one.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as json.")] = False,
) -> None:
    """List the encoders that --encoder takes, or print the card of one.

    C is the triangle area that scores 0; "-" means that nobody published one, and --C must be
    given. An encoder that is not normalised has areas of its own magnitude.

    Example: vlscore encoders limitr
    """
    import json

    from rich.console import Console

    from vlscore.display.encoders import card_table, cards_table
    from vlscore.encoders import encoder_card, encoder_cards

    if name is not None:
        card = encoder_card(name)
        if as_json:
            typer.echo(json.dumps(card.to_dict(), indent=2))
        else:
            Console().print(card_table(card))
        return
    cards = list(encoder_cards())
    if as_json:
        typer.echo(json.dumps([card.to_dict() for card in cards], indent=2))
    else:
        Console().print(cards_table(cards))
