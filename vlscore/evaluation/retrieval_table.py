"""Retrieval evaluation of a table: does an encoder find each image's report, and back?"""

import time
from pathlib import Path

from vlscore.core import OnProgress, Signature, __version__, checked_arguments, frame, no_progress
from vlscore.data import StudyTable, TextPolicy, as_table
from vlscore.embedding import StudyEmbedder, embed_table
from vlscore.retrieval import evaluate_retrieval
from vlscore.stats import Content, Presentation, Result, text_table

_CAPTION = "In brackets: 95 % bootstrap intervals over queries."


@checked_arguments
def retrieval(
    studies: str | Path | StudyTable,
    out: str | Path,
    embedder: StudyEmbedder | None = None,
    *,
    text_policy: TextPolicy | str | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Embed the studies of a table and evaluate the encoder on them.

    Args:
        studies: table with columns id, image, reference.
        out: folder for the results.
        embedder: what is evaluated; default: the default encoder.
        text_policy: which section of a report counts.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: compute again; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, rows failed).

    Returns: the result with the frame "directions": R@1, R@5, R@10 and the median rank with
        intervals, from image to text and from text to image.
    Raises:
        InvalidTable: the table cannot be read, or no row can be embedded.
        InvalidSetting: `out` holds another run's results.
        FolderInUse: another run is writing there.
    """
    embedder = embedder or StudyEmbedder()
    policy = TextPolicy.named(text_policy)
    table = as_table(studies, {"image", "reference"})
    embedder = embedder.for_table(table)
    signature = Signature("retrieval").plus(txt=policy.signature())
    signature = signature.plus(embedder.signature).plus(v=__version__)
    key = {"command": "retrieval", **table.key, "signature": str(signature)}

    def compute(path: Path) -> Content:
        began = time.monotonic()
        found = embed_table(table, embedder, policy, workers=workers, on_progress=on_progress)
        ways = evaluate_retrieval(
            found.vectors["image"], found.vectors["reference"], found.references
        )
        directions = frame(
            {
                "direction": name,
                **{f"R@{k}": share for k, share in way.recall.items()},
                "median rank": way.median_rank,
                "queries": way.queries,
                "to search": way.candidates,
            }
            for name, way in zip(("image to text", "text to image"), ways, strict=True)
        )
        return Content(
            {"directions": directions},
            failures=found.failed,
            signatures={"retrieval": signature},
            facts={
                "table": str(table.path.resolve()),
                "encoder": embedder.card.to_dict(),
                "device": str(embedder.device),
                "batch_size": embedder.batch_size,
                "seconds": round(time.monotonic() - began, 3),
            },
        )

    notes = (*table.notes, *embedder.notes, *embedder.training_notes(table))
    return Result.make(
        out, key, compute, images=table.image_files, overwrite=overwrite, notes=notes
    )


PRESENTATION = Presentation(
    lambda run: [text_table("Retrieval", run.frames["directions"], _CAPTION)]
)
