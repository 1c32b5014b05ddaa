"""Several files of one folder that appear together, or not at all.

`written_together` is for commands whose results lie among files of the user's, such as a table and
the list of what it lacks; a command with a folder of its own takes `output_folder`.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from vlscore.core.files import file_digest, writing
from vlscore.core.result_folder import sole_writer
from vlscore.errors import InvalidSetting


@contextlib.contextmanager
def written_together(
    folder: Path, names: Sequence[str], *, overwrite: bool = False
) -> Iterator[Path]:
    """Yield an empty folder; the files that are written there appear in `folder` at the end.

    They are written aside, in `.NAME.partial` of the last name. When all are complete, old ones are
    removed, the last one first, and the new ones moved, the last one last: where the last one is
    there, the others belong to it. What a killed process left aside is removed by the next call of
    the same names, which writes what is absent; after an error everything is as before.

    Args:
        folder: of the files; it is made where there is none.
        names: of the files, the main one last; one that is not written is removed from `folder`.
        overwrite: replace files that are there and differ.

    Raises:
        InvalidSetting: a file is there and differs; FolderInUse: another run writes these files.
        OutputFailed: the operating system refuses to write there.
    """
    aside = folder / f".{names[-1]}.partial"
    with writing(aside):
        folder.mkdir(parents=True, exist_ok=True)
    with sole_writer(aside):
        new = aside / "new"
        with writing(folder):
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
        try:
            yield new
            digests = {n: file_digest(new / n) for n in names if (new / n).is_file()}
            there = {n: file_digest(folder / n) for n in names if (folder / n).is_file()}
            changed = [n for n in names if n in there and there[n] != digests.get(n)]
            if changed and not overwrite:
                raise InvalidSetting(
                    f"{folder / changed[-1]} is there already, and differs from what this call "
                    "writes. Choose another name, or give --overwrite to replace it"
                )
            with writing(folder):
                if changed:
                    for name in reversed(names):
                        (folder / name).unlink(missing_ok=True)
                for name in digests:
                    os.replace(new / name, folder / name)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
