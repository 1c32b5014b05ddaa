"""Published encoders: build a model in code and fill it with a checkpoint's tensors.

`PublishedEncoder` is the base of encoders with checkpoint files and one vocabulary;
`load_state_dict` copies a checkpoint's tensors into any module, or says why they do not fit.
"""

import contextlib
import fnmatch
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from vlscore.core import atomic_write, write_json
from vlscore.encoders.base import JointEncoder, Tokens
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer, read_json
from vlscore.encoders.cards import CARD, EncoderCard, PublishedFile, card_of, entry_of, read_facts
from vlscore.encoders.checkpoints import (
    is_mapped,
    load_checkpoint,
    tensors_digest,
    without_wrappers,
)
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.encoders.weight_files import find_weights, vocabulary_file
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound

# Buffers that some library versions store and others rebuild.
_REBUILT = ("position_ids", "relative_position_index", "num_batches_tracked", "attn_mask")
_SHOWN = 5


class _SkipInitialisation(TorchFunctionMode):
    _RANDOM = (torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.erfinv_)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in self._RANDOM or getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


@contextlib.contextmanager
def without_initialisation() -> Iterator[None]:
    """Skip the initialisation of modules inside the block: a checkpoint will replace all of it."""
    with _SkipInitialisation():
        yield


def load_state_dict(
    module: nn.Module,
    tensors: Mapping[str, Tensor],
    *,
    source: Path,
    what: str | None = None,
    unused: Sequence[str] = (),
    key_of: Callable[[str], str] = str,
    share: bool = False,
) -> None:
    """Set every parameter and buffer of `module` to its tensor; none may be left over.

    Args:
        tensors: the checkpoint's tensors by key, of any float precision.
        source: the checkpoint, for messages.
        what: name of the module in messages; default: its class.
        unused: patterns (fnmatch) of keys of parts of the authors' model that are not needed.
        key_of: function of a name in `module.state_dict()` that returns the checkpoint's key.
        share: use the tensors without a copy if they have the module's type.

    Raises:
        IncompatibleCheckpoint: keys are missing, unexpected or of another shape; it names them.
    """
    expected = {key_of(name): (name, value) for name, value in module.state_dict().items()}
    needless = re.compile("|".join(map(fnmatch.translate, unused)) or "(?!)")
    problems = {
        "missing": [k for k in expected if k not in tensors and not _rebuilt(k)],
        "unexpected": [
            k for k in tensors if not (k in expected or _rebuilt(k) or needless.match(k))
        ],
        "mis-shaped": [
            f"{key} {tuple(tensors[key].shape)} instead of {tuple(value.shape)}"
            for key, (_, value) in expected.items()
            if key in tensors and tensors[key].shape != value.shape
        ],
    }
    if any(problems.values()):
        named = "; ".join(
            f"{len(keys)} {kind} ({', '.join([*keys[:_SHOWN], *['...'] * (len(keys) > _SHOWN)])})"
            for kind, keys in problems.items()
            if keys
        )
        raise IncompatibleCheckpoint(
            f"{source} does not fit {what or type(module).__name__}: {named}; is it the checkpoint "
            "of another model?"
        )
    module.load_state_dict(
        {
            # A copy, because the tensors may lie in a mapped file that somebody changes later.
            name: tensors[key].to(value.dtype, copy=not share)
            for key, (name, value) in expected.items()
            if key in tensors
        },
        strict=False,
        assign=True,
    )


def _rebuilt(name: str) -> bool:
    return name.rsplit(".", 1)[-1] in _REBUILT


VOCABULARY = "vocab.txt"


@dataclass(frozen=True)
class Part:
    """A module whose tensors are in one file of the authors.

    Attributes:
        module: its name in the encoder; "" is the whole encoder.
        unused: patterns (fnmatch) of keys that the embeddings do not need.
        label: prefix of its keys in the digest of an encoder of several files.
    """

    module: str = ""
    unused: tuple[str, ...] = ()
    label: str = ""

    @property
    def saved_name(self) -> str:
        """Name of the file that `PublishedEncoder.save` writes."""
        return f"{self.label or 'model.'}safetensors"


class PublishedEncoder(JointEncoder):
    """An encoder whose modules have the names of its authors' checkpoint.

    A subclass builds its modules in `__init__`, without weights. Its card, which lists the files
    that its authors publish, is in weights/cards, under `name`.

    Attributes:
        name: the name that `load_encoder` takes.
        variant: the variant of that name, or None.
        pipeline: the preprocessing of images, unless `make_pipeline` says it.
        parts: the module that each file fills, in the order of the files.
        prefix: prefix of every name in the authors' container.
        vocabulary_size: number of word pieces.
        pads_to_longest: whether every report is padded to the card's `max_tokens`.
        local_heads: modules that only training uses; a checkpoint may lack them.
    """

    name: ClassVar[str]
    pipeline: ClassVar[type[ImagePipeline]]
    parts: ClassVar[tuple[Part, ...]] = (Part(),)
    prefix: ClassVar[str] = ""
    vocabulary_size: ClassVar[int] = 28996
    pads_to_longest: ClassVar[bool] = False
    local_heads: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            cls.card = card_of(cls.name)
            cls.variants = tuple(entry_of(cls.name).variants)

    def __init__(self, tokenizer: Any, variant: str | None = None) -> None:
        super().__init__()
        self.tokenizer, self.variant = tokenizer, variant
        if variant is not None:
            self.card = card_of(self.name, variant)
        self.image_pipeline = self.make_pipeline()

    def make_pipeline(self) -> ImagePipeline:
        """Make the preprocessing of images, from `card` and `variant` alone."""
        return self.pipeline()

    @staticmethod
    def clean(report: str) -> str:
        """Clean a report as the authors do before it is tokenized."""
        return report

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        most = self.card.max_tokens
        found: Tokens = self.tokenizer(
            [self.clean(report) for report in reports],
            max_tokens=most,
            pad_to=most if self.pads_to_longest else None,
        )
        return found

    @classmethod
    def load(
        cls,
        weights: str | Path | None = None,
        tokenizer: str | Path | None = None,
        variant: str | None = None,
    ) -> Self:
        """Read the authors' checkpoint safely, and fill the model with it.

        Tensors of a safetensors file are used without a copy.

        Args:
            weights: checkpoint file, or its folder; the folder if there are two files.
            tokenizer: vocabulary file, its folder, or a hub id; default: the weights' folder.
            variant: one of `variants`.

        Raises: the errors that `load_encoder` lists.
        """
        paths = cls.find_files(weights)
        stated = cls._stated(paths[0].with_name(CARD))
        # Read first: an unusable checkpoint matters more to the user than a missing vocabulary.
        tensors = [load_checkpoint(path) for path in paths]
        pieces = cls.read_tokenizer(tokenizer, paths[-1])
        with without_initialisation():
            encoder = cls(pieces, variant)
        labelled: dict[str, Tensor] = {}
        for part, path, stored in zip(cls.parts, paths, tensors, strict=True):
            found = without_wrappers(stored)
            target: nn.Module = encoder.get_submodule(part.module)
            key_of = cls.key_names(found)
            encoder._leave_out_absent_heads(found, key_of)
            load_state_dict(
                target,
                cls.complete(found),
                source=path,
                unused=part.unused,
                key_of=key_of,
                share=is_mapped(path),
            )
            labelled |= {part.label + key: tensor for key, tensor in stored.items()}
        encoder.weights_digest = tensors_digest(labelled)
        if stated is not None:
            encoder.card = encoder.own_card(stated)
        return encoder

    @classmethod
    def without_network(
        cls,
        paths: Sequence[Path],
        tokenizer: str | Path | None,
        variant: str | None,
        weights_digest: str,
    ) -> Self:
        """Return the encoder that `load` would return, but without modules: it embeds nothing.

        Card, checksum, tokens and preprocessing are the same. No checkpoint is read.

        Args:
            paths: the checkpoint files, as `find_files` returns them.
            weights_digest: digest of their tensors.

        Raises: WeightsNotFound without a vocabulary; IncompatibleCheckpoint for a wrong card.
        """
        stated = cls._stated(paths[0].with_name(CARD))
        pieces = cls.read_tokenizer(tokenizer, paths[-1])
        encoder = cls.__new__(cls)
        # A subclass builds its modules in its own __init__, after this one.
        PublishedEncoder.__init__(encoder, pieces, variant)
        encoder.weights_digest = weights_digest
        if stated is not None:
            encoder.card = encoder.own_card(stated)
        return encoder

    def save(self, folder: str | Path, card: Mapping[str, Any] | None = None) -> None:
        """Write weights, vocabulary and card of a trained encoder, as `load_encoder` reads them.

        Args:
            folder: folder to write, later the argument `weights`; it is made if absent.
            card: fields of EncoderCard (C, C_source, title, notes, ...), and further facts of the
                training under other keys.

        Raises: OutputFailed.
        """
        folder = Path(folder)
        for part in self.parts:
            state = self.get_submodule(part.module).state_dict()
            tensors = {
                self.key_of(name): value.detach().cpu().clone(memory_format=torch.contiguous_format)
                for name, value in state.items()
            }
            with atomic_write(folder / part.saved_name, "wb") as stream:
                stream.write(save(tensors, metadata={"format": "pt"}))
        if isinstance(self.tokenizer, WordPieceTokenizer):
            with atomic_write(folder / VOCABULARY) as text:
                text.write("".join(f"{piece}\n" for piece in self.tokenizer.in_order))
        write_json(folder / CARD, {"encoder": self.name} | dict(card or {}))

    def own_card(self, facts: Mapping[str, Any]) -> EncoderCard:
        """Return the card for weights that a user trained, without what the authors measured.

        Args:
            facts: fields that are known, as `read_facts` reads them.
        """
        unknown = {
            "title": f"{self.card.title}, own training",
            "C": None,
            "C_source": "not measured: vlscore calibrate",
            "licence": "one's own",
        }
        return replace(self.card, **unknown | dict(facts))

    @classmethod
    def _stated(cls, path: Path) -> dict[str, Any] | None:
        """Read a card that `save` wrote; None if absent."""
        if not path.is_file():
            return None
        facts = read_json(path, "card of an encoder")
        if "encoder" not in facts:
            return None
        if facts["encoder"] != cls.name:
            raise IncompatibleCheckpoint(
                f"{path.parent} holds the encoder {facts['encoder']}, not {cls.name}"
            )
        return read_facts(facts, path)

    def _leave_out_absent_heads(
        self, tensors: Collection[str], key_of: Callable[[str], str]
    ) -> None:
        for name in self.local_heads:
            prefix = key_of(f"{name}.")
            if not any(key.startswith(prefix) for key in tensors):
                tower, _, head = name.rpartition(".")
                setattr(self.get_submodule(tower), head, None)

    @classmethod
    def find_files(cls, weights: str | Path | None) -> list[Path]:
        """Return the checkpoint files that `load` would read, in the order of `parts`.

        Raises: WeightsNotFound; ChecksumMismatch.
        """
        files: tuple[PublishedFile, ...] = entry_of(cls.name).weights.files
        if len(files) > 1 and weights is not None and Path(weights).is_file():
            needed = " and ".join(file.name for file in files)
            raise WeightsNotFound(
                f"{cls.name} has two checkpoints, {needed}: give the folder that holds both, not "
                f"{weights}"
            )
        guess = len(files) == 1
        return [
            find_weights(cls.name, weights, (*file.names, part.saved_name), guess=guess)
            for file, part in zip(files, cls.parts, strict=True)
        ]

    @classmethod
    def read_tokenizer(cls, named: str | Path | None, checkpoint: Path) -> Any:
        """Read the tokenizer from the named vocabulary, or from the checkpoint's folder."""
        hub_id = entry_of(cls.name).weights.vocabulary
        assert hub_id is not None
        path = vocabulary_file(named, next_to=checkpoint, hub_id=hub_id)
        return WordPieceTokenizer.from_file(path, size=cls.vocabulary_size)

    @classmethod
    def complete(cls, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Add tensors to the checkpoint's that the authors' model does not have."""
        return tensors

    @classmethod
    def key_of(cls, name: str) -> str:
        """Return the authors' name, without `prefix`, of a tensor of this class's state."""
        return name

    @classmethod
    def key_names(cls, tensors: Collection[str]) -> Callable[[str], str]:
        """Return `key_of` with the container's prefix, if this container has it."""
        prefix = cls.prefix if any(key.startswith(cls.prefix) for key in tensors) else ""
        return lambda name: prefix + cls.key_of(name)
