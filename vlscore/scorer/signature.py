"""What a score depends on, in one line that a paper can print."""

from dataclasses import asdict, dataclass
from typing import Any

from vlscore._version import __version__


@dataclass(frozen=True)
class Signature:
    """Everything that must be equal for two scores to be comparable.

    Attributes:
        encoder: name of the encoder.
        checksum: sha256 of its weights; twelve digits are printed.
        C: the constant of Eq. 2, None where the similarity has none.
        similarity: name of the similarity.
        images: image policy in short.
        views: which views of a study entered.
        text: text policy in short.
        precision: "fp32" or "bf16".
        demonstration: True if the encoder is the bundled one, trained on synthetic phantoms.
        version: of vlscore.

    >>> print(Signature("gloria", "0123456789abcdef", 1155.0, "vlscore",
    ...                 "auto", "first-frontal", "all", "fp32", version="1.0"))
    vlscore|enc:gloria@0123456789ab|C:1155|sim:vlscore|img:auto|views:first-frontal|txt:all|prec:fp32|v:1.0
    """

    encoder: str
    checksum: str
    C: float | None
    similarity: str
    images: str
    views: str
    text: str
    precision: str
    demonstration: bool = False
    version: str = __version__

    def __str__(self) -> str:
        parts = [
            "vlscore",
            f"enc:{self.encoder}@{self.checksum[:12]}",
            *([f"C:{self.C:.10g}"] if self.C is not None else []),
            f"sim:{self.similarity}",
            f"img:{self.images}",
            f"views:{self.views}",
            f"txt:{self.text}",
            f"prec:{self.precision}",
            f"v:{self.version}",
            *(["DEMONSTRATION-ENCODER"] if self.demonstration else []),
        ]
        return "|".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "signature": str(self)}
