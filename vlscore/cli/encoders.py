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
    given. An encoder whose embeddings have no unit length has areas of its own magnitude. Names
    are found in any spelling; one of your own is written package.module:Class.

    Example: vlscore encoders limitr
    """
    import json

    from vlscore.cli._encoder_texts import card_text, cards_text
    from vlscore.encoders import encoder_card, encoder_cards

    cards = [encoder_card(name)] if name is not None else list(encoder_cards())
    if as_json:
        found = [card.to_dict() for card in cards]
        typer.echo(json.dumps(found if name is None else found[0], indent=2))
    else:
        typer.echo(cards_text(cards) if name is None else card_text(cards[0]))
