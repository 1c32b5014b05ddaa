"""The bundled demonstration encoder: a small encoder that learned from phantom pairs alone.

It proves that everything around it works. Its scores of real radiographs mean nothing. Training,
results and limits: weights/phantom/README.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlscore._resources import resource_path
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.cards import card_of
from vlscore.encoders.small import SmallEncoder


class PhantomEncoder(SmallEncoder):
    """The bundled encoder: a SmallEncoder under a name of its own."""

    stable_name = "vlscore.encoders.phantom:PhantomEncoder"
    card = card_of("phantom")

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "PhantomEncoder":
        """The bundled weights, or the folder of another small encoder.

        Raises: WeightsNotFound; ChecksumMismatch where the bundled file is not the one that was
            published; IncompatibleCheckpoint and UnsafeCheckpoint.
        """
        folder = weights if weights is not None else resource_path("weights", "phantom")
        found = super().load(weights=folder, tokenizer=tokenizer)
        assert isinstance(found, cls)
        return found

    def _card(self, facts: Mapping[str, Any]) -> EncoderCard:
        return super()._card({"title": type(self).card.title} | dict(facts))
