"""Rated sets of phantoms, in the layout of `vlscore align`: true errors take the raters' place."""

from collections.abc import Iterable
from typing import Any

from vlscore.phantom import PhantomFinding, split_errors

# The bundled encoder was trained on the numbers of errors between phantom reports.
TOLD = "upper bound, told the answer"


def rows_of_errors(
    study: str,
    candidate: str,
    stated: Iterable[PhantomFinding],
    true: Iterable[PhantomFinding],
    **columns: Any,
) -> list[dict[str, Any]]:
    """One row a category and significance, as `vlscore.alignment.read_ratings` reads them.

    Args: columns: further cells of every row, as reports and image.
    """
    found = split_errors(tuple(stated), tuple(true))
    return [
        {
            "study_id": study,
            "candidate_id": candidate,
            "category": category.replace("_", " "),
            "significant": str(is_significant).lower(),
            "rating": count,
            **columns,
        }
        for is_significant, errors in found.items()
        for category, count in errors.to_dict().items()
    ]
