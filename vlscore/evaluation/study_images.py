"""Images of studies by id, for rows that bring reports alone."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from vlscore.data import Study, StudyTable
from vlscore.errors import Failure, InvalidSetting

if TYPE_CHECKING:
    from vlscore.embedding import StudyViews

#: Returns the images of a study, a new object each time; None where it has none.
ImagesOf = Callable[[str], "StudyViews | None"]


def images_of(rows: Mapping[str, Study]) -> ImagesOf:
    """Return the images of studies by id."""

    def shown(study: str) -> "StudyViews | None":
        from vlscore.embedding import StudyViews  # loads torch

        row = rows.get(study)
        return None if row is None else StudyViews.of(row)

    return shown


def images_by_study(
    studies: StudyTable, wanted: Collection[str], what: str
) -> tuple[ImagesOf, list[str]]:
    """Return the images of some studies, and notes about their table.

    Args:
        wanted: ids.
        what: what these are of, for messages, as in "rated pair".

    Raises: InvalidSetting where the table has none of them.
    """
    rows: dict[str, Study] = {}
    notes = list(studies.notes)
    for row in studies:
        if isinstance(row, Failure):
            notes += [f"{studies.path}, row {row.row}: {row.reason}"] * (row.id in wanted)
        elif row.id in wanted:
            rows[row.id] = row
    if not rows:
        raise InvalidSetting(f"{studies.path}: none of its studies has the id of a {what}")
    return images_of(rows), notes
