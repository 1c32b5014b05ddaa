"""The json manifest of ReXrank (Zhang et al. 2024), as rows with the columns of any table.

One object: study id -> its fields. The data files (github.com/rajpurkarlab/ReXrank, folder `data`)
have `image_path` (one or several, from the folder of images), `frontal_lateral` (their views),
`section_findings`, `section_impression` and `context`; a model's output file (example_files/
prediction.json) has `model_prediction` besides.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vlscore.studies.cells import is_missing

_FIELDS = ("model_prediction", "section_findings", "section_impression", "image_path")
# As ReXrank writes the reports that it compares ("Findings: ... Impression: ..."). The line's end
# is white space to every metric, and lets a text policy find the sections.
_SECTIONS = (("Findings", "section_findings"), ("Impression", "section_impression"))


def is_manifest(content: Any) -> bool:
    """Whether the content of a json file is laid out so."""
    if not isinstance(content, dict):
        return False
    entries = (entry for entry in content.values() if isinstance(entry, dict))
    return any(name in entry for entry in entries for name in _FIELDS)


def rows_of(content: Mapping[str, Any]) -> Iterator[Any]:
    """The studies in the order of the file; what is no object stays what it is."""
    for study, entry in content.items():
        yield _row(study, entry) if isinstance(entry, dict) else entry


def _row(study: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"id": study}
    said = [
        f"{title}: {entry[name]}" for title, name in _SECTIONS if not is_missing(entry.get(name))
    ]
    if any(name in entry for _, name in _SECTIONS):
        row["reference"] = "\n".join(said)
    elif "report" in entry:
        row["reference"] = entry["report"]
    if "model_prediction" in entry:
        row["candidate"] = entry["model_prediction"]
    if "image_path" in entry:
        row["image"] = _from_the_root(entry["image_path"])
    if "frontal_lateral" in entry:
        row["view"] = entry["frontal_lateral"]
    # What the file says is there under its own names, too.
    return row | {name: value for name, value in entry.items() if name not in row}


def _from_the_root(paths: Any) -> Any:
    """Paths without the slash at their beginning: they start from the folder of images."""
    if isinstance(paths, str):
        return paths.lstrip("/")
    if isinstance(paths, list):
        return [_from_the_root(path) for path in paths]
    return paths
