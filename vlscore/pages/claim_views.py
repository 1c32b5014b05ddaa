"""View of `claims`: each study with its claims and what the image says about them."""

from collections.abc import Iterable, Mapping
from typing import Any

from vlscore.claims import CANNOT_TELL, CONTRADICTED, SUPPORTED
from vlscore.core import with_noun
from vlscore.data import Study
from vlscore.pages.page_parts import (
    Block,
    CaseList,
    Highlight,
    RunView,
    pieces_of,
    plain_value,
)
from vlscore.pages.view_parts import PageOptions, judged_block, studies_of
from vlscore.stats import Result

#: Column of the findings whose claims the image contradicts.
_WHICH = "contradicted claims"


def claims_view(run: Result, options: PageOptions, view: RunView) -> list[Study | None]:
    """Fill the view of claims: studies whose image contradicts most of the candidate come first.

    Counts are those of the candidate's claims; of the reference's in a table without candidates.
    The contradicted ones are named.
    """
    # The larger the number of supported claims, the longer the report: neither is better.
    better = {CONTRADICTED: -1, SUPPORTED: 0, CANNOT_TELL: 0}
    rows = run.rows("claims.csv")
    role = rows["report"].iloc[0] if len(rows) else "candidate"
    own = rows[rows["report"] == role]
    counts = own.groupby(["id", "verdict"]).size().unstack(fill_value=0)
    denied = own["claim"].map({"stated": "", "denied": "no "})
    names = (denied + own["finding"])[own["verdict"] == CONTRADICTED]
    contradicted = names.groupby(own["id"]).agg("; ".join)
    ids = list(dict.fromkeys(rows["id"]))
    counts = counts.reindex(index=ids, columns=list(better), fill_value=0)
    view.lead = f"{with_noun(len(rows), 'claim')} of {with_noun(len(ids), 'study')}."
    values: dict[str, list[Any]] = {"id": ids, CONTRADICTED: counts[CONTRADICTED].tolist()}
    values[_WHICH] = [contradicted.get(id, "") for id in ids]
    values |= {name: counts[name].tolist() for name in better}
    view.cases = CaseList(
        "studies", values, CONTRADICTED, main=list(values)[1:], better=better, descending=True
    )
    by_id = {study.id: study for study in studies_of(run, view, options, str(role)).values()}
    found = [by_id.get(id) for id in ids]
    if any(found):
        claims = {id: own.to_dict("records") for id, own in rows.groupby("id")}
        view.cases.cases = []
        for study in found:
            blocks: list[Block] = []
            if study is not None:
                blocks.append(_block(study, claims[study.id]))
                blocks[0].claims = cells_of(claims[study.id])
            view.cases.cases.append(blocks)
            options.on_progress(len(view.cases.cases), 0)
    return found


def cells_of(claims: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Return claims as `Block.claims` has them, from rows of `verdicts_of`."""
    return [
        [
            *(each[name] for name in ("report", "finding", "claim", "verdict")),
            plain_value(each["probability"]),
        ]
        for each in claims
    ]


def _block(study: Study, claims: Iterable[Mapping[str, Any]]) -> Block:
    """Return the reports, with the words that the image supports or contradicts marked; and with
    the judge's errors where there are two."""
    marks: dict[str, list[Highlight]] = {"candidate": [], "reference": []}
    for each in claims:
        if each["verdict"] != CANNOT_TELL:
            mark = Highlight(int(each["start"]), int(each["end"]), str(each["verdict"]))
            marks[each["report"]].append(mark)
    if study.candidate and study.reference:
        return judged_block(study.candidate, study.reference, also=marks)
    texts = {"candidate": study.candidate, "reference": study.reference}
    return Block("", [(role, pieces_of(text, marks[role])) for role, text in texts.items() if text])
