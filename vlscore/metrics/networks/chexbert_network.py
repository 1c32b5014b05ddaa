"""CheXbert: fourteen observations of a report, each blank, positive, negative or uncertain.

Smit et al. 2020, EMNLP. Equal to the authors' code and to the package f1chexbert over the same
checkpoint: white space is joined, the text is cut into the lower-case word pieces of
bert-base-uncased, and what lies beyond 512 tokens is not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vlscore.core import Entry
from vlscore.encoders import WordPieceTokenizer, check_device, fill, inference, load_checkpoint
from vlscore.metrics.networks.model_bert import (
    Precision,
    bert_of,
    check_heads,
    groups_of_like_length,
    part_of,
    tokens_at_once,
)
from vlscore.metrics.networks.model_files import (
    RememberingAnnotator,
    chexbert_files,
    device_of_annotators,
    loaded_once,
)

# In the order of the heads.
OBSERVATIONS = (
    "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema",
    "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion",
    "Pleural Other", "Fracture", "Support Devices", "No Finding",
)  # fmt: skip
# The five that papers report in addition to all fourteen (Irvin et al. 2019).
FIVE = ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion")
BLANK, POSITIVE, NEGATIVE, UNCERTAIN = range(4)
# "No Finding" is blank or positive.
CLASSES = (4,) * 13 + (2,)
_MAX_TOKENS = 512


@dataclass(frozen=True, eq=False)
class CheXbertAnnotation:
    """Annotation of one report by CheXbert.

    Attributes:
        classes: (14,) int64: BLANK, POSITIVE, NEGATIVE or UNCERTAIN, as `OBSERVATIONS`.
        embedding: (hidden,) float32, the last layer's vector of [CLS].
        is_truncated: whether the tail of the report was not read.
    """

    classes: NDArray[np.int64]
    embedding: NDArray[np.float32]
    is_truncated: bool

    @property
    def labels(self) -> dict[str, int | None]:
        """Return observation -> 1 positive, 0 negative, -1 uncertain, None not mentioned."""
        signs = {BLANK: None, POSITIVE: 1, NEGATIVE: 0, UNCERTAIN: -1}
        return {name: signs[int(c)] for name, c in zip(OBSERVATIONS, self.classes, strict=True)}


class CheXbert:
    """A CheXbert checkpoint, ready to read reports.

    Args:
        weights: chexbert.pth as published, its safetensors conversion, or a folder with it.
        vocabulary: vocab.txt of bert-base-uncased, or its folder; default: beside the checkpoint,
            else what the hub's cache on this machine holds.
        device: where it runs.
        precision: "bf16" multiplies BERT's matrices in bfloat16, which is faster where the
            processor or GPU has units for it, and may change what is read.

    Raises: WeightsNotFound, UnsafeCheckpoint, IncompatibleCheckpoint, InvalidSetting.
    """

    stable_name = "vlscore.annotators.chexbert:CheXbert"

    def __init__(
        self,
        weights: str | Path,
        vocabulary: str | Path | None = None,
        *,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
    ) -> None:
        path, words = chexbert_files(weights, vocabulary)
        # DataParallel puts "module." before every name.
        tensors = {
            key.removeprefix("module."): tensor for key, tensor in load_checkpoint(path).items()
        }
        self._bert = bert_of(part_of(tensors, "bert."), path, precision)
        check_heads(self._bert, path, (path.parent, words.parent))
        hidden = self._bert.hidden
        self._heads = nn.ModuleList(nn.Linear(hidden, classes) for classes in CLASSES)
        heads = {key: t for key, t in tensors.items() if not key.startswith("bert.")}
        fill(self._heads, heads, source=path, key_of="linear_heads.{}".format)
        self._tokenizer = WordPieceTokenizer.from_file(words, size=self._bert.pieces)
        self._longest = min(_MAX_TOKENS, self._bert.positions)
        self.precision = precision
        self._device = check_device(device)
        self._tokens = tokens_at_once(self._device.type)
        nn.Module.to(self._bert, self._device)
        self._heads.float().eval().to(self._device)
        self.identity = {"dtype": "<f4", "precision": precision, "device": self._device.type}

    def annotate(self, reports: Sequence[str]) -> list[CheXbertAnnotation]:
        """Annotate each report, in order; an empty one is read as "[CLS] [SEP]".

        Other reports of the batch change the numbers of a report by no more than float32 rounding.
        """
        logits, embeddings, truncated = self.logits(reports)
        classes = np.stack([part.argmax(dim=1).numpy() for part in logits], axis=1)
        return [
            CheXbertAnnotation(classes[row], embeddings[row].numpy(), bool(truncated[row]))
            for row in range(len(reports))
        ]

    def entry_of(self, annotation: CheXbertAnnotation) -> Entry:
        """Return an annotation as a cache entry: the fourteen classes, then the vector."""
        values = np.concatenate([annotation.classes, annotation.embedding]).astype("<f4")
        return Entry(values.tobytes(), values.shape, int(annotation.is_truncated))

    def annotation_of(self, entry: Entry, report: str) -> CheXbertAnnotation | None:
        """Return the annotation of a cache entry; None if the entry holds something else."""
        count = len(CLASSES) + self._bert.hidden
        if entry.shape != (count,) or len(entry.value) != 4 * count:
            return None
        values = np.frombuffer(entry.value, "<f4").astype(np.float32)
        if not np.isfinite(values).all():
            return None
        classes = values[: len(CLASSES)].astype(np.int64)
        if ((classes < 0) | (classes >= np.asarray(CLASSES))).any():
            return None
        return CheXbertAnnotation(classes, values[len(CLASSES) :], bool(entry.flag))

    def logits(self, reports: Sequence[str]) -> tuple[list[Tensor], Tensor, Tensor]:
        """Compute the heads' outputs, before any label is chosen.

        Returns: for each of `OBSERVATIONS` (n, 4) or (n, 2) float32 in the order of the classes;
            (n, hidden) float32 embeddings; (n,) bool, whether a report's tail was cut off.
        """
        tokens = self._tokenizer(
            [" ".join(report.split()) for report in reports], max_tokens=self._longest
        )
        found = torch.empty(len(reports), self._bert.hidden)
        with inference(self._device, "fp32"):
            for rows in groups_of_like_length(tokens.lengths.tolist(), self._tokens):
                part = tokens.take(rows).to(self._device)
                found[rows] = self._bert(part.ids, part.mask)[:, 0].float().cpu()
            heads = [head(found.to(self._device)).cpu() for head in self._heads]
        return heads, found, tokens.truncated


@loaded_once(lambda weights, vocabulary, precision: (weights, vocabulary))
def remembered_chexbert(
    weights: Path, vocabulary: Path, precision: Precision
) -> RememberingAnnotator[CheXbertAnnotation]:
    """Return CheXbert from these files; it is loaded again only if one has changed."""
    return RememberingAnnotator(
        CheXbert(weights, vocabulary, device=device_of_annotators(), precision=precision)
    )
