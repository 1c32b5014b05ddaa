"""The names of `vlscore-cxr`, the package of VLScore's authors, with its arguments and results.

Code that was written for that package runs with this one. docs/from_vlscore_cxr.md says what is
equal and what differs. Nothing is downloaded here: `vlscore weights fetch limitr` does that.
"""

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.core import as_floats, atomic_write, warn_caller
from vlscore.data import is_missing, why_missing
from vlscore.encoders import cached_file, weights_of
from vlscore.errors import (
    InvalidReport,
    InvalidSetting,
    UnreadableImage,
    VLScoreError,
    WeightsNotFound,
)

if TYPE_CHECKING:
    import pandas
    import torch

    from vlscore.embedding import EmbeddedRows

#: C of VLScore for LIMITR's embeddings.
VLSCORE_NORM_LIMITR = 890.0

_NAMED = 5


def triangle_vlscore(
    image_embs: ArrayLike,
    gt_embs: ArrayLike,
    output_embs: ArrayLike,
    norm: float = VLSCORE_NORM_LIMITR,
) -> NDArray[np.float64]:
    """Compute VLScore (Eq. 2) of embeddings.

    Args:
        image_embs, gt_embs, output_embs: (n, d), of images, references and candidates.
        norm: C, the area that scores 0.

    Returns: (n,), nan where an embedding is not finite.
    Raises: ValueError where shapes differ.

    >>> triangle_vlscore([[0.0, 0.0]], [[4.0, 0.0]], [[0.0, 3.0]], norm=12).tolist()
    [0.5]
    """
    points = [as_floats(each) for each in (image_embs, gt_embs, output_embs)]
    shapes = [each.shape for each in points]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2:
        raise ValueError(
            "embeddings must have one shape (n, d); those of images, gt and output have "
            + ", ".join(map(str, shapes))
        )
    from vlscore.metrics import vlscore

    image, reference, candidate = points
    found: NDArray[np.float64] = vlscore(image, candidate, reference, float(norm)).numpy()
    return found


class LIMITREncoder:
    """Encoder of images and reports by LIMITR, to arrays; embeddings are cached.

    Args:
        checkpoint: LIMITR's checkpoint; default: the one that `vlscore weights fetch limitr` or
            the authors' package has downloaded.
        device: "cpu", "cuda", ...; default: a GPU if there is one.
        batch_size: images per forward pass.
        cache_dir: folder of the hub's cache to search for the checkpoint.
        show_progress: show a bar where standard error is a terminal.
        tokenizer: vocab.txt of Bio_ClinicalBERT, or its folder; default: next to the checkpoint, or
            in the hub's cache.

    Attributes:
        embedder: the StudyEmbedder, for any other use.

    Raises: WeightsNotFound, saying how to get the files.
    """

    def __init__(
        self,
        checkpoint: str | os.PathLike[str] | None = None,
        device: "str | torch.device | None" = None,
        batch_size: int = 16,
        cache_dir: str | os.PathLike[str] | None = None,
        show_progress: bool = True,
        tokenizer: str | os.PathLike[str] | None = None,
    ) -> None:
        from vlscore.embedding import StudyEmbedder

        if checkpoint is None and cache_dir is not None:
            published = weights_of("limitr")
            assert published.hub is not None
            checkpoint = cached_file(
                published.hub, published.files[0].name, cache_dir=Path(cache_dir)
            )
        self.embedder = StudyEmbedder(
            "limitr",
            weights=None if checkpoint is None else os.fspath(checkpoint),
            tokenizer=None if tokenizer is None else os.fspath(tokenizer),
            device=None if device is None else str(device),
            batch_size=batch_size,
        )
        self.device = self.embedder.device
        self.batch_size = batch_size
        self.show_progress = show_progress

    def encode_images(self, image_paths: Sequence[Any]) -> NDArray[np.float32]:
        """Embed images -> (n, 768); unreadable ones are nan, and named in a warning."""
        return self._encode(
            _listed("image_paths", image_paths), self.embedder.embed_images, "images"
        )

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed reports -> (n, 768); what is no text is nan, and named in a warning."""
        return self._encode(_listed("texts", texts), self.embedder.embed_texts, "texts")

    def _encode(
        self, items: list[Any], embed: "Callable[[Sequence[Any]], EmbeddedRows]", what: str
    ) -> NDArray[np.float32]:
        vectors = np.full((len(items), self.embedder.dim), np.nan, np.float32)
        failures: dict[int, VLScoreError] = {}
        usable = []
        for row, item in enumerate(items):
            if isinstance(item, str) if what == "texts" else not is_missing(item):
                usable.append(row)
            else:
                failures[row] = VLScoreError(f"{type(item).__name__} instead of one of the {what}")
        for part in in_parts(usable, self.embedder.rows_at_once, what, self.show_progress):
            found = embed([items[row] for row in part])
            vectors[part] = found.vectors.numpy()
            failures |= {part[k]: error for k, error in found.failures.items()}
        _warn(failures, len(items), what, "nan is returned for them")
        return vectors


class VLscore:
    """VLScore of images, references ("gt") and candidates ("output") by LIMITR.

    Args:
        checkpoint, device, batch_size, cache_dir, show_progress, tokenizer: as in `LIMITREncoder`,
            which is loaded when it is first needed.
        norm: C, the area that scores 0.
        encoder: a LIMITREncoder; or any object with its methods `encode_images`, `encode_texts`.

    Raises: WeightsNotFound if `checkpoint` does not exist; on first use, if there is none.
        InvalidSetting for a norm or batch size that is no positive number.
    """

    def __init__(
        self,
        checkpoint: str | os.PathLike[str] | None = None,
        device: "str | torch.device | None" = None,
        batch_size: int = 16,
        norm: float = VLSCORE_NORM_LIMITR,
        cache_dir: str | os.PathLike[str] | None = None,
        show_progress: bool = True,
        encoder: Any = None,
        tokenizer: str | os.PathLike[str] | None = None,
    ) -> None:
        if checkpoint is not None and not Path(checkpoint).exists():
            raise WeightsNotFound(f"{checkpoint}: no such checkpoint file or folder")
        is_number = isinstance(norm, int | float | Real)
        if not (is_number and 0 < norm < math.inf):
            raise InvalidSetting(f"norm must be a positive number, not {norm!r}")
        if not (isinstance(batch_size, int) and batch_size >= 1):
            raise InvalidSetting(f"batch_size must be a whole number above 0, not {batch_size!r}")
        self.norm: float = norm
        self._settings = (checkpoint, device, batch_size, cache_dir, show_progress, tokenizer)
        if encoder is not None:
            self.encoder = encoder

    @cached_property
    def encoder(self) -> Any:
        """The LIMITREncoder, or the object that was given."""
        return LIMITREncoder(*self._settings)

    def compute(
        self, images: Sequence[Any], gt: Sequence[str], output: Sequence[str]
    ) -> NDArray[np.float64]:
        """Compute VLScore of n studies.

        A missing text, and an image that cannot be read, fails its own study alone: its score is
        nan, and one warning names all of them. Another says which texts the encoder truncated.

        Args:
            images: n paths of frontal radiographs.
            gt: n references.
            output: n candidates.

        Returns: (n,), in [0, 1] or nan.
        Raises: ValueError where lengths differ.
        """
        given = {"images": images, "gt": gt, "output": output}
        columns = [_listed(name, each) for name, each in given.items()]
        counts = [len(each) for each in columns]
        if len(set(counts)) > 1:
            raise ValueError("Length mismatch: images={}, gt={}, output={}".format(*counts))
        return self._compute(list(zip(*columns, strict=True)))

    def compute_from_embeddings(
        self, image_embs: ArrayLike, gt_embs: ArrayLike, output_embs: ArrayLike
    ) -> NDArray[np.float64]:
        """Compute VLScore of embeddings (n, d) -> (n,); as `triangle_vlscore` with this norm."""
        return triangle_vlscore(image_embs, gt_embs, output_embs, norm=self.norm)

    def compute_csv(
        self,
        csv_path: str | os.PathLike[str],
        image_root: str | os.PathLike[str] | None = None,
        image_col: str = "Path_frontal",
        gt_col: str = "gt",
        output_col: str = "output",
        out_csv: str | os.PathLike[str] | None = None,
    ) -> "pandas.DataFrame":
        """Compute VLScore of a csv table, as `compute`.

        Args:
            csv_path: table, one study a row.
            image_root: folder that relative paths of images start from.
            image_col, gt_col, output_col: its columns.
            out_csv: file to write, or to replace: the table with a further column "vlscore". The
                other cells are as in the file.

        Returns: the table as pandas reads it, with the column "vlscore".
        Raises: KeyError that names a column that the table lacks.
        """
        import pandas as pd

        table = pd.read_csv(csv_path)
        # As written: pandas makes numbers of ids with leading zeros, and nan of words such as NA.
        cells = pd.read_csv(csv_path, dtype=str, keep_default_na=False)
        for column in (image_col, gt_col, output_col):
            if column not in table.columns:
                raise KeyError(
                    f"{csv_path} has no column {column!r}; it has {', '.join(map(str, table))}"
                )
        root = "" if image_root is None else os.fspath(image_root)
        images = [path.strip() and os.path.join(root, path) for path in cells[image_col]]
        scores = self._compute(
            list(zip(images, cells[gt_col], cells[output_col], strict=True)),
        )
        table["vlscore"] = cells["vlscore"] = scores
        if out_csv is not None:
            with atomic_write(Path(out_csv)) as stream:
                cells.to_csv(stream, index=False)
        return table

    def _compute(self, rows: list[tuple[Any, Any, Any]]) -> NDArray[np.float64]:
        """Compute the scores of (image, reference, candidate); warn of rows without one."""
        failures = {row: error for row, each in enumerate(rows) if (error := _missing(*each))}
        usable = [row for row in range(len(rows)) if row not in failures]
        scores = np.full(len(rows), np.nan)
        if isinstance(self.encoder, LIMITREncoder):
            failures |= self._by_scorer(rows, usable, scores)
        elif usable:
            scores[usable] = triangle_vlscore(
                self.encoder.encode_images([rows[row][0] for row in usable]),
                self.encoder.encode_texts([rows[row][1] for row in usable]),
                self.encoder.encode_texts([rows[row][2] for row in usable]),
                norm=self.norm,
            )
        _warn(failures, len(rows), "studies", "their scores are nan")
        return scores

    def _by_scorer(
        self, rows: list[tuple[Any, Any, Any]], usable: list[int], scores: NDArray[np.float64]
    ) -> dict[int, VLScoreError]:
        """Set the scores of the usable rows; return the errors of those that fail."""
        from vlscore.embedding import StudyViews
        from vlscore.metrics import FLAGS, Item, Scorer

        embedder = self.encoder.embedder
        scorer = Scorer(embedder, C=float(self.norm))
        failures: dict[int, VLScoreError] = {}
        cut = 0
        for part in in_parts(usable, embedder.rows_at_once, "studies", self.encoder.show_progress):
            found = scorer.score_items(
                [
                    Item(candidate, reference, StudyViews((image,)))
                    for image, reference, candidate in (rows[row] for row in part)
                ]
            )
            scores[part] = found.scores
            failures |= {part[k]: error for k, error in found.failures.items()}
            cut += sum(int(found.geometry[flag].sum()) for flag in FLAGS)
        if cut:
            most = embedder.card.max_tokens
            warn_caller(f"{cut} texts have more than {most} tokens: LIMITR did not read their ends")
        return failures


def _listed(name: str, values: Any) -> list[Any]:
    """Return a list of images or texts; raise InvalidSetting for one, whose letters would count."""
    if isinstance(values, str | bytes | os.PathLike):
        raise InvalidSetting(f"{name} must be a list with one entry for each study, not one text")
    return list(values)


def in_parts(rows: list[int], size: int, what: str, shown: bool) -> Iterator[list[int]]:
    """Yield the rows in parts; show a bar if asked, and standard error is a terminal."""
    from rich.console import Console
    from rich.progress import track

    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    hidden = not shown or not sys.stderr.isatty()
    console = Console(stderr=True)
    yield from track(parts, f"LIMITR {what}", console=console, transient=True, disable=hidden)


def _missing(image: Any, reference: Any, candidate: Any) -> VLScoreError | None:
    """Return what a row lacks; None if it lacks nothing."""
    if is_missing(image):
        return UnreadableImage("the image is missing")
    for role, text in (("gt", reference), ("output", candidate)):
        if reason := why_missing(text, role):
            return InvalidReport(reason)
    return None


def _warn(failures: dict[int, VLScoreError], count: int, what: str, so: str) -> None:
    if not failures:
        return
    named = [f"{row}: {failures[row]}" for row in sorted(failures)[:_NAMED]]
    more = f"; and {len(failures) - _NAMED} more" if len(failures) > _NAMED else ""
    warn_caller(
        f"{len(failures)} of {count} {what} could not be used, and {so} (counted from 0) "
        f"{'; '.join(named)}{more}"
    )
