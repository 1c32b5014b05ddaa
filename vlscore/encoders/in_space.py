"""Any encoder, its images and reports in a space that both share."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from vlscore._files import atomic_write, write_json
from vlscore.encoders.base import JointEncoder
from vlscore.encoders.blocks.json_files import read_json
from vlscore.encoders.checkpoints import load_checkpoint
from vlscore.encoders.registry import load_encoder
from vlscore.encoders.tokens import Tokens
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound
from vlscore.similarity import SharedSpace

SPACE, CARD = "space.safetensors", "card.json"
_TENSORS = ("image_mean", "report_mean", "image_matrix", "report_matrix")
# What the card of a saved space says of the encoder below.
_NAMES = ("below", "below_weights", "below_tokenizer", "below_checksum")


class InSharedSpace(JointEncoder):
    """An encoder whose embeddings lie in a `vlscore.similarity.SharedSpace`.

    It goes wherever a loaded encoder goes: to `Scorer`, `evaluate`, `StudyEmbedder`, an index; and,
    once saved, to every command, as --encoder vlscore.encoders.in_space:InSharedSpace --weights
    FOLDER. It has a checksum and, measured anew, a C of its own. It has no lateral tower.

    Args:
        encoder: is shared, not changed.
        space: as `SharedSpace.fit` made it of the encoder's own embeddings.
    """

    stable_name = "vlscore.encoders.in_space:InSharedSpace"
    takes_tokenizer = False
    image_mean: Tensor
    report_mean: Tensor
    image_matrix: Tensor
    report_matrix: Tensor

    def __init__(self, encoder: JointEncoder, space: SharedSpace) -> None:
        super().__init__()
        self.encoder = encoder
        self.image_pipeline = encoder.image_pipeline
        self.image_policy = encoder.image_policy
        self.register_buffer("image_mean", space.image_mean)
        self.register_buffer("report_mean", space.report_mean)
        self.register_buffer("image_matrix", space.scale * space.matrix)
        self.register_buffer("report_matrix", space.matrix)
        self.card = replace(
            encoder.card,
            name=f"{encoder.card.name}+space",
            title=f"{encoder.card.title}, in a space fitted to images and reports",
            normalised=False,
            C=None,
            C_source="not measured; vlscore.calibration.calibrate measures it",
        )
        self.eval()

    @classmethod
    def fit(
        cls,
        encoder: JointEncoder,
        images: Sequence[Any],
        reports: Sequence[str],
        *,
        ridge: float = 1.0,
    ) -> "InSharedSpace":
        """Embed images and reports of a table, some hundred each, and fit a space to them.

        Raises: as `encode_images`, `encode_reports` and `SharedSpace.fit`.
        """
        vectors = encoder.encode_images(images), encoder.encode_reports(reports)
        return cls(encoder, SharedSpace.fit(*vectors, ridge=ridge))

    @property
    def tokenizer(self) -> Any:
        """The encoder's own, where it has one."""
        return getattr(self.encoder, "tokenizer", None)

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.encoder.tokenize(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        vectors = self.encoder.embed_images(pixels).double()
        return ((vectors - self.image_mean) @ self.image_matrix).float()

    def embed_reports(self, tokens: Tokens) -> Tensor:
        vectors = self.encoder.embed_reports(tokens).double()
        return ((vectors - self.report_mean) @ self.report_matrix).float()

    def save(
        self,
        folder: str | Path,
        *,
        weights: str | Path | None = None,
        tokenizer: str | Path | None = None,
    ) -> None:
        """Write the space, and where the encoder below is to be found.

        Args: weights, tokenizer: what `load_encoder` is to be given for the encoder below; its own
            weights are not copied.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = {name: getattr(self, name).detach().cpu().contiguous() for name in _TENSORS}
        with atomic_write(folder / SPACE, "wb") as stream:
            stream.write(save(state))
        paths = [
            None if path is None else str(Path(path).absolute()) for path in (weights, tokenizer)
        ]
        facts = (self.encoder.card.name, *paths, self.encoder.checksum)
        write_json(folder / CARD, {**dict(zip(_NAMES, facts, strict=True)), "C": self.card.C})

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "InSharedSpace":
        """Read a folder that `save` wrote, and load the encoder below.

        Raises: WeightsNotFound; IncompatibleCheckpoint where the folder is damaged, or the encoder
            below is no longer the one that the space was fitted to; the errors of `load_encoder`.
        """
        folder = Path(weights) if weights is not None else Path()
        if weights is None or not (folder / SPACE).is_file():
            raise WeightsNotFound(f"{folder} holds no {SPACE}; name the folder of a saved space")
        facts = read_json(folder / CARD, "card of a shared space")
        below, own_weights, own_tokenizer, checksum = (facts.get(name) for name in _NAMES)
        given = (below, own_weights or "", own_tokenizer or "", checksum)
        if not all(isinstance(fact, str) for fact in given):
            raise IncompatibleCheckpoint(f"{folder / CARD} does not name the encoder below")
        encoder = load_encoder(below, weights=own_weights, tokenizer=own_tokenizer)
        if encoder.checksum != checksum:
            raise IncompatibleCheckpoint(
                f"{folder}: the space was fitted to {below}@{str(checksum)[:12]}, and the encoder "
                f"loaded is @{encoder.checksum[:12]}; fit it anew"
            )
        tensors = load_checkpoint(folder / SPACE)
        d = encoder.card.dim
        shapes = {name: (d, d) if "matrix" in name else (d,) for name in _TENSORS}
        if {name: tuple(x.shape) for name, x in tensors.items()} != shapes:
            raise IncompatibleCheckpoint(f"{folder / SPACE} is no space of {d} dimensions")
        tensors = {name: x.double() for name, x in tensors.items()}
        space = SharedSpace(
            tensors["image_mean"], tensors["report_mean"], 1.0, tensors["report_matrix"]
        )
        loaded = cls(encoder, space)
        loaded.register_buffer("image_matrix", tensors["image_matrix"])
        C = facts.get("C")
        if isinstance(C, int | float) and not isinstance(C, bool) and 0 < C < float("inf"):
            source = facts.get("C_source")
            loaded.card = replace(
                loaded.card, C=float(C), C_source=source if isinstance(source, str) else "card.json"
            )
        return loaded
