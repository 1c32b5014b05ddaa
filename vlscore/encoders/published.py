"""What the published encoders of one checkpoint file and a BERT vocabulary share."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import ClassVar, Self

from torch import Tensor

from vlscore.encoders.base import JointEncoder
from vlscore.encoders.blocks.building import fill, without_initialisation
from vlscore.encoders.blocks.files import vocabulary_file
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest
from vlscore.encoders.weights import find_weights
from vlscore.errors import UnknownName

BIO_CLINICAL_BERT = "emilyalsentzer/Bio_ClinicalBERT"


class PublishedEncoder(JointEncoder):
    """An encoder whose modules bear the names of its authors' checkpoint.

    A subclass builds its modules in `__init__`, without weights.

    Attributes:
        checkpoint_names: the file names under which authors publish or save the checkpoint.
        prefix: what stands before every name in the authors' container.
        unused: patterns (fnmatch) of keys that the embeddings do not need.
        vocabulary_id: hub repository that holds the tokenizer's vocabulary.
        vocabulary_size: its number of word pieces.
        variants: names accepted after a colon, as in "mgca-vit:raw".
    """

    checkpoint_names: ClassVar[tuple[str, ...]]
    prefix: ClassVar[str] = ""
    unused: ClassVar[tuple[str, ...]] = ()
    vocabulary_id: ClassVar[str] = BIO_CLINICAL_BERT
    vocabulary_size: ClassVar[int] = 28996
    variants: ClassVar[tuple[str, ...]] = ()

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__()
        self.tokenizer = tokenizer

    @classmethod
    def load(
        cls,
        weights: str | Path | None = None,
        tokenizer: str | Path | None = None,
        variant: str | None = None,
    ) -> Self:
        """Read the authors' checkpoint, safely, and fill the model with it.

        Args:
            weights: checkpoint file, or the folder that holds it.
            tokenizer: vocabulary file, its folder, or a hub id; default: beside the weights.
            variant: one of `variants`.

        Raises: the errors that `load_encoder` lists.
        """
        if variant is not None and variant not in cls.variants:
            known = ", ".join(cls.variants) or "none"
            raise UnknownName(f"{cls.card.name} has no variant {variant!r}; known: {known}")
        path = find_weights(cls.card.name, weights, cls.checkpoint_names)
        vocabulary = vocabulary_file(tokenizer, beside=path, hub_id=cls.vocabulary_id)
        pieces = WordPieceTokenizer.from_file(vocabulary, size=cls.vocabulary_size)
        tensors = load_checkpoint(path)
        with without_initialisation():
            encoder = cls(pieces, variant)
        fill(
            encoder,
            cls.complete(tensors),
            source=path,
            unused=cls.unused,
            key_of=cls.key_names(tensors),
        )
        encoder.checksum = tensors_digest(tensors)
        return encoder

    @classmethod
    def complete(cls, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The checkpoint's tensors, with those added that the authors' model does without."""
        return tensors

    @classmethod
    def key_of(cls, name: str) -> str:
        """The authors' name, without `prefix`, for a tensor of this class's state."""
        return name

    @classmethod
    def key_names(cls, tensors: Collection[str]) -> Callable[[str], str]:
        """`key_of` with the container's prefix, where this container has it."""
        prefix = cls.prefix if any(key.startswith(cls.prefix) for key in tensors) else ""
        return lambda name: prefix + cls.key_of(name)
