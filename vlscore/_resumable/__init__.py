"""The one way to write results that take long to make: stop it at any moment, and it goes on.

    with ResumableFolder(out, key, results=("scores.parquet", "scores.csv")) as run:
        if run.record is not None:  # it had ended before: nothing to do
            return run.record
        done = run.rows
        for rows in chunks_of(islice(table, run.rows, None)):
            computed = compute(rows)
            with run.append(len(rows)) as folder:
                write_table(computed, folder / "rows.parquet")
            done += len(rows)

        def write(folder):
            join([chunk.path / "rows.parquet" for chunk in run.chunks()], folder / "scores.parquet")
            return {"signature": signature, "seconds": seconds}

        return run.finish(write, rows=done)

What holds, wherever the process is killed, and the same call made again:

* A finished chunk is never computed again; one that was changed or removed meanwhile is noticed,
  and so is an image that was replaced, if it is named in `append(..., inputs=...)`.
* The result files come out with the same bytes. `run.json`, which also has the caller's times, is
  replaced last: a folder whose `run.json` has the digests of its files is whole.
* Earlier results stay until all new ones are written. A result of another name that this command
  can write (`results`) does not stay beside the new ones.
* A run that failed before its first chunk leaves nothing but the empty folder.
* A second run into the same folder, of this process or another, is refused at once.

Check settings and read the first row of the table before the folder is entered: then a slip leaves
no folder at all. Rows are counted by the caller, and `finish` compares.

To add to a finished run (another metric; rows that failed), name the entries of the key that may
differ in `extends`, or give `retry`: `run.previous` then has the earlier results, which the caller
reads in `write` and joins with the new ones. Without an earlier run `previous` is None.

`sole_writer` and `Chunks` are the lock and the chunks alone, for a folder with an end of its own
kind (the search index).
"""

from vlscore._resumable.chunks import Chunk, Chunks
from vlscore._resumable.finish import RECORD, FinishedRun, finished_run
from vlscore._resumable.folder import ResumableFolder
from vlscore._resumable.lock import sole_writer

__all__ = [
    "RECORD",
    "Chunk",
    "Chunks",
    "FinishedRun",
    "ResumableFolder",
    "finished_run",
    "sole_writer",
]
