"""What a published encoder is, as data that travels with every score it makes."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class EncoderCard:
    """Facts about a joint image-report encoder.

    Attributes:
        name: the name `load_encoder` takes.
        title: the model's name as its authors print it.
        dim: length d of its global embeddings.
        normalised: whether the embeddings have unit length.
        C: the constant of VLScore (Eq. 2) for this encoder, None where nobody published one.
        C_source: what C was calibrated on, or why there is none.
        image_size: side in pixels of the square that enters the image tower.
        max_tokens: longest token sequence the report tower sees, special tokens included.
        licence: of the weights, as stated by their authors; "not stated" otherwise.
        citation: the paper.
        reference_code: the code that the embeddings were checked against.
        notes: quirks that change numbers.
        demonstration: True for the bundled encoder, which must not be used on real radiographs.
    """

    name: str
    title: str
    dim: int
    normalised: bool
    C: float | None
    C_source: str
    image_size: int
    max_tokens: int
    licence: str
    citation: str
    reference_code: str
    notes: tuple[str, ...] = ()
    demonstration: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
