"""`vlscore oracle`: the best reports of a corpus for each study."""

import contextlib
import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group

from vlscore.cli.output import OutputOptions, print_encoder_warning, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    EncoderOptions,
    OptionalOut,
    Table,
    TableOptions,
    options,
    worker_count,
)
from vlscore.retrieval import OracleSettings

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexEncoderOptions(EncoderOptions):
    """The encoder of an index.

    Attributes:
        encoder: Encoder of the index. Default: the one that the index names, not VLSCORE_ENCODER.
    """

    encoder: str | None = None


def oracle(
    studies: Table,
    /,
    *,
    index: Path,
    no_check: bool = False,
    search: Annotated[OracleSettings, options(Group("Search", sort_key=1))] = OracleSettings(),
    table: TableOptions = TableOptions(),
    encoding: Annotated[
        IndexEncoderOptions, options(without=("comparisons",))
    ] = IndexEncoderOptions(),
    out: OptionalOut = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Find the reports of a corpus with the best scores for a study.

    Prints each hit with its foot (projection onto the line from image, 0, to reference, 1) and its
    rank by the distance from the reference (1 is the nearest). Any report on this line has the
    perfect score 1, however far it is from the reference: look at foot and rank, or use --guard.

    With --out, hits.parquet has one row for each hit, also with its area, and its distances from
    this line and from the reference. After a stop, give the same command again; earlier hits come
    from the cache.

    The encoder is that of the index; --section and --precision must be those with which the index
    was built.

    Example: vlscore oracle studies.jsonl --index train-index --k 10 --out oracle

    Args:
        index: Folder of the index.
        no_check: Do not compare the index with its sha256 (which reads all).
    """
    from vlscore.retrieval import load_index
    from vlscore.retrieval import oracle as run

    if encoding.C is not None:
        search = dataclasses.replace(search, metric=search.target.metric(C=encoding.C))
    opened = table.opened(studies, "id", "image", "reference", "view")
    corpus = load_index(index, check=not no_check)
    embedder: StudyEmbedder | None = None
    if search.uses_encoder:
        chosen = encoding.encoder or corpus.encoder_name()
        embedder = dataclasses.replace(encoding, encoder=chosen).embedder()
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with row_progress(
            opened.count, "searching", quiet=output.is_silent, embedder=embedder
        ) as on_progress:
            result = run(
                opened,
                folder,
                corpus,
                embedder,
                search,
                text_policy=encoding.section,
                workers=worker_count(encoding.workers),
                overwrite=output.overwrite,
                on_progress=on_progress,
            )
        print_encoder_warning(embedder)
        show(
            result,
            output,
            "studies failed",
            "study failed",
            verb="searched for",
            folder_is_temporary=out is None,
        )
