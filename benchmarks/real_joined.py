"""Several small encoders, trained on one table with different seeds, as one encoder.

Each encoder's vector is scaled to length 1; the joined vector is all of them, one after the other,
scaled to length 1. So a cosine of joined vectors is the mean of the encoders' cosines (an ensemble:
Lakshminarayanan, Pritzel and Blundell, NeurIPS 2017). No training is needed. Any command uses it:

    PYTHONPATH=benchmarks vlscore retrieval iu_test.jsonl --encoder real_joined:JoinedEncoder \\
        --weights out/real/joined/convirt-3

The folder has one subfolder, or link to one, for each encoder.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from vlscore.embedding import StudyEmbedder
from vlscore.encoders import JointEncoder, SmallEncoder, Tokens
from vlscore.errors import InvalidSetting, WeightsNotFound

# Largest area of a triangle whose corners have length 1.
_LARGEST_AREA = 3 * math.sqrt(3) / 4


class JoinedEncoder(JointEncoder):
    """Encoder of several small encoders with the same vocabulary and image size.

    Args: members: the encoders, at least one.

    Raises: InvalidSetting if vocabularies or image sizes differ.
    """

    card = replace(SmallEncoder.card, name="real_joined:JoinedEncoder", title="Joined encoders")
    takes_tokenizer = False
    cache_version = "1"

    def __init__(self, members: list[SmallEncoder]) -> None:
        super().__init__()
        first = members[0]
        for member in members[1:]:
            if member.tokenizer.words != first.tokenizer.words:
                raise InvalidSetting("joined encoders need one vocabulary: train them on one table")
            if member.settings.side != first.settings.side:
                raise InvalidSetting("joined encoders need one image size (--side)")
        self.members = nn.ModuleList(members)
        self.tokenizer, self.image_pipeline = first.tokenizer, first.image_pipeline
        self.card = replace(
            type(self).card,
            dim=sum(member.card.dim for member in members),
            image_size=first.card.image_size,
            max_tokens=first.card.max_tokens,
            normalised=True,
            C=_LARGEST_AREA,
            C_source="the largest area of a triangle of vectors of length 1",
        )

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "JoinedEncoder":
        """Read every encoder in the subfolders of a folder, in the order of their names.

        Args:
            weights: the folder.
            tokenizer: not used; the subfolders have their own.

        Raises: WeightsNotFound if there is none; else as `SmallEncoder.load`.
        """
        found = sorted(Path(weights or ".").glob("*/card.json"))
        if not found:
            raise WeightsNotFound(f"{weights} has no subfolder with a trained encoder")
        return cls([SmallEncoder.load(path.parent) for path in found]).eval()

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.tokenizer(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return _joined([member.embed_images(pixels) for member in self.members])

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return _joined([member.embed_reports(tokens) for member in self.members])


def _joined(vectors: list[Tensor]) -> Tensor:
    each = [normalize(vector.float(), dim=1) for vector in vectors]
    return torch.cat(each, dim=1) / math.sqrt(len(each))


def join(name: str, folders: Sequence[Path], place: Path) -> tuple[str, Path]:
    """Make a folder for `JoinedEncoder` with a link to each trained encoder.

    Returns: the name of the joined encoder in tables, and its folder in `place`.
    """
    out = place / f"{name}-{len(folders)}"
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        link = out / folder.name
        if not link.is_symlink():
            link.symlink_to(folder.resolve(), target_is_directory=True)
    return f"{name}, {len(folders)} joined", out


def load_joined(folder: Path) -> StudyEmbedder:
    """Return the joined encoder of a folder."""
    return StudyEmbedder(JoinedEncoder.card.name, weights=str(folder), device="cpu")
