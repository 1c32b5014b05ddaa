"""View of `claims`: each study with its claims and what the image says about them."""

from collections.abc import Iterable, Mapping
from typing import Any

from vlscore.claims import CANNOT_TELL, CONTRADICTED, SUPPORTED
from vlscore.core import with_noun
from vlscore.data import Study
from vlscore.pages.page_parts import Block, CaseList, Highlight, RunView, pieces_of
from vlscore.pages.view_parts import PageOptions, cases_of, judged_block, studies_of
from vlscore.stats import Result

#: Column of the findings whose claims the image contradicts.
_WHICH = "contradicted claims"


def claims_view(run: Result, options: PageOptions, view: RunView) -> None:
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
    counts.insert(1, _WHICH, contradicted.reindex(ids, fill_value=""))
    values = counts.rename_axis("id").reset_index()
    view.cases = CaseList(
        "studies", values, CONTRADICTED, main=list(values)[1:], better=better, descending=True
    )
    by_id = {study.id: study for study in studies_of(run, view, options, str(role)).values()}
    view.cases.studies = [by_id.get(id) for id in ids]
    claims = {id: own.to_dict("records") for id, own in rows.groupby("id")}

    def blocks(row: int, study: Study) -> list[Block]:
        found = _block(study, claims[study.id])
        found.claims = claims_shown(claims[study.id])
        return [found]

    view.cases.cases = cases_of(view.cases.studies, options, blocks)


def claims_shown(claims: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what a page shows of claims, as `verdicts_of` returns them."""
    names = ("report", "finding", "claim", "verdict", "probability")
    return [{name: each[name] for name in names} for each in claims]


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
