"""Several small encoders, trained on one table with different seeds, as one encoder.

Each encoder's vector is scaled to length 1; the joined vector is all of them, one after the other,
scaled to length 1. So a cosine of joined vectors is the mean of the encoders' cosines (an ensemble:
Lakshminarayanan, Pritzel and Blundell, NeurIPS 2017). No training is needed. Any command uses it:

    PYTHONPATH=benchmarks vlscore retrieval iu_test.jsonl --encoder real_joined:JoinedEncoder \\
        --weights out/real/joined/convirt-3

Encoders of both views need --views frontal+lateral. Their report towers may read words or findings.

The folder has one subfolder, or link to one, for each encoder.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from real_data import open_encoder
from torch import Tensor, nn
from torch.nn.functional import normalize

from vlscore.embedding import StudyEmbedder
from vlscore.encoders import JointEncoder, SmallEncoder, Tokens
from vlscore.encoders.blocks.tokenizers import MAX_TOKENS
from vlscore.errors import InvalidSetting, WeightsNotFound

# Largest area of a triangle whose corners have length 1.
_LARGEST_AREA = 3 * math.sqrt(3) / 4
# Before the tokens of each tokenizer; no tokenizer has it.
_MARK = -1
# Encoders of both views that read words, and findings.
BOTH_READINGS = "convirt-views", "convirt-findings"


class JoinedEncoder(JointEncoder):
    """Encoder of several small encoders with the same image size and views.

    Args: members: the encoders, at least one.

    Raises: InvalidSetting if image sizes or views differ.
    """

    card = replace(SmallEncoder.card, name="real_joined:JoinedEncoder", title="Joined encoders")
    takes_tokenizer = False
    cache_version = "1"

    def __init__(self, members: list[SmallEncoder]) -> None:
        super().__init__()
        first = members[0]
        for member in members[1:]:
            if member.has_lateral_tower != first.has_lateral_tower:
                raise InvalidSetting("joined encoders need the same views (--views)")
            if member.settings.side != first.settings.side:
                raise InvalidSetting("joined encoders need one image size (--side)")
        self.members = nn.ModuleList(members)
        self.has_lateral_tower = first.has_lateral_tower
        self.image_pipeline = first.image_pipeline
        # Members with equal tokenizers share the tokens.
        kinds: list[tuple[type, list[str]]] = []
        self._kind_of = []
        for member in members:
            kind = (type(member.tokenizer), member.tokenizer.words)
            if kind not in kinds:
                kinds.append(kind)
            self._kind_of.append(kinds.index(kind))
        self._tokenizers = [kind(words) for kind, words in kinds]
        self.card = replace(
            type(self).card,
            dim=sum(member.card.dim for member in members),
            image_size=first.card.image_size,
            max_tokens=len(self._tokenizers) * (MAX_TOKENS + 1),
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
        """Return the tokens of all tokenizers, one after the other, each behind a mark."""
        each = [tokenizer(reports) for tokenizer in self._tokenizers]
        rows = [
            [id for tokens in each for id in (_MARK, *tokens.ids[k, : tokens.lengths[k]].tolist())]
            for k in range(len(reports))
        ]
        found = Tokens.padded(rows, max_tokens=self.card.max_tokens)
        cut = torch.stack([tokens.full_lengths - tokens.lengths for tokens in each]).sum(0)
        return replace(found, full_lengths=found.full_lengths + cut)

    def _apart(self, tokens: Tokens) -> list[Tokens]:
        """Return the tokens of each tokenizer."""
        rows: list[list[list[int]]] = [[] for _ in self._tokenizers]
        for ids, length in zip(tokens.ids.tolist(), tokens.lengths.tolist(), strict=True):
            marks = [k for k in range(length) if ids[k] == _MARK] + [length]
            for of, (first, last) in zip(rows, pairwise(marks), strict=True):
                of.append(ids[first + 1 : last])
        device = tokens.ids.device
        return [Tokens.padded(of, max_tokens=MAX_TOKENS).to(device) for of in rows]

    def embed_images(self, pixels: Tensor) -> Tensor:
        return _joined([member.embed_images(pixels) for member in self.members])

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        return _joined([member.embed_lateral_images(pixels) for member in self.members])

    def embed_reports(self, tokens: Tokens) -> Tensor:
        each = self._apart(tokens)
        members = zip(self.members, self._kind_of, strict=True)
        return _joined([member.embed_reports(each[kind]) for member, kind in members])


def _joined(vectors: list[Tensor]) -> Tensor:
    each = [normalize(vector.float(), dim=1) for vector in vectors]
    return torch.cat(each, dim=1) / math.sqrt(len(each))


def trained(work: Path) -> dict[str, list[Path]]:
    """Return the final encoders of real_encoders.py by name; several seeds each."""
    found: dict[str, list[Path]] = defaultdict(list)
    for folder in sorted((work / "encoders").glob("*-seed*")):
        if (folder / "card.json").is_file():
            found[folder.name.rpartition("-seed")[0]].append(folder)
    return dict(found)


def joined_encoders(work: Path) -> dict[str, Path]:
    """Make every joined encoder: the seeds of each final encoder, and those of both readings.

    Returns: the name in tables -> the folder.
    """
    found = trained(work)
    groups = {name: folders for name, folders in found.items() if len(folders) > 1}
    readings = [folder for name in BOTH_READINGS for folder in found.get(name, [])]
    if all(name in found for name in BOTH_READINGS):
        groups["both readings"] = readings
    return dict(join(name, folders, work / "joined") for name, folders in groups.items())


def join(name: str, folders: Sequence[Path], place: Path) -> tuple[str, Path]:
    """Make a folder for `JoinedEncoder` with a link to each trained encoder.

    Returns: the name of the joined encoder in tables, and its folder in `place`.
    """
    out = place / f"{name.replace(' ', '-')}-{len(folders)}"
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        link = out / folder.name
        if not link.is_symlink():
            link.symlink_to(folder.resolve(), target_is_directory=True)
    return f"{name}, {len(folders)} joined", out


def load_joined(folder: Path) -> StudyEmbedder:
    """Return the joined encoder of a folder."""
    return open_encoder(folder, JoinedEncoder.card.name)
