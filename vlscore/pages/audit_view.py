"""View of an audit: each altered film beside the original, with the words that changed."""

from pathlib import Path

from vlscore.core import counted
from vlscore.data import Study
from vlscore.pages.page_parts import CaseList, RunView
from vlscore.pages.view_parts import PageOptions, changed_block, columns_of
from vlscore.stats import Result

_ORIGINAL = "original"


def audit_view(run: Result, options: PageOptions, view: RunView) -> list[Study | None]:
    """Fill the view of an audit: a case is an altered film, with the words that changed."""
    records = run.frames["generators"].to_dict("records")
    view.lead = (
        f"{counted(len(records), 'generator')}, {counted(run.record['films'], 'film')} of "
        f"{counted(run.record['studies'], 'study')}. "
        + " ".join(each["verdict"] for each in records)
    )
    view.answer = run.tables[0] if run.tables else None
    rows = columns_of(run, "reports.parquet")
    keys = list(zip(rows["generator"], rows["study"], strict=True))
    first = {key: k for k, key in enumerate(keys) if rows["alteration"][k] == _ORIGINAL}
    shown = [
        k
        for k, key in enumerate(keys)
        if rows["alteration"][k] != _ORIGINAL
        and rows["report"][k] is not None
        and key in first
        and rows["report"][first[key]] is not None
    ]
    names = {name: name for name in ("id", "generator", "alteration", "finding")}
    names |= {"gone": "findings gone", "new": "findings new"}
    values = {head: [rows[name][k] for k in shown] for name, head in names.items()}
    values["finding"] = [finding or "" for finding in values["finding"]]
    view.cases = CaseList(
        "films",
        values,
        "findings gone",
        main=list(values)[1:],
        descending=True,
        picks=("generator", "alteration"),
    )
    studies: list[Study | None] = []
    blocks = []
    for done, k in enumerate(shown, start=1):
        original = first[keys[k]]
        if options.texts:
            blocks.append([changed_block(rows["report"][original], rows["report"][k])])
        films = tuple(Path(rows["image"][each]) for each in (original, k))
        studies.append(Study(rows["id"][k], films, row=done))
        options.on_progress(done, 0)
    view.cases.cases = blocks if options.texts else None
    return studies
