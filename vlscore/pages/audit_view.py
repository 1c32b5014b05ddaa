"""View of an audit: each altered film next to the original, with the words that changed."""

from pathlib import Path

from vlscore.core import with_noun
from vlscore.data import Study
from vlscore.pages.page_parts import CaseList, Forest, RunView
from vlscore.pages.view_parts import PageOptions, bounds_of, cases_of, changed_block
from vlscore.stats import Result

_ORIGINAL = "original"
# Cases of a finding that is drawn, and findings of a chart, those with most cases.
_LEAST_DRAWN, _MOST_DRAWN = 5, 12
_NOTE = "1: every statement depends on it; 0: none does"


def audit_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of an audit: a case is an altered film, with the words that changed."""
    records = run.frames["generators"].to_dict("records")
    view.lead = (
        f"{with_noun(len(records), 'generator')}, {with_noun(run.record['films'], 'film')} of "
        f"{with_noun(run.record['studies'], 'study')}. "
        + " ".join(each["verdict"] for each in records)
    )
    verdicts = [each["verdict"] for each in records]
    view.run_notes = [note for note in view.run_notes if note not in verdicts]
    view.answer = run.tables[0] if run.tables else None
    view.forests += _forests(run)
    rows = run.rows("reports.parquet")
    rows = rows[rows["report"].notna()]
    is_original = rows["alteration"] == _ORIGINAL
    key = ["generator", "study"]
    originals = rows.loc[is_original, [*key, "report", "image"]].drop_duplicates(key, keep="last")
    shown = rows[~is_original].merge(originals, on=key, suffixes=("", "_before"))
    names = {"id": "id", "generator": "generator", "alteration": "alteration"}
    names |= {"finding": "covered", "findings_gone": "gone", "findings_new": "new"}
    names |= {"gone": "number gone", "new": "number new"}
    values = shown[[*names]].set_axis([*names.values()], axis="columns")
    values["covered"] = values["covered"].fillna("").str.replace("_", " ")
    view.cases = CaseList(
        "films",
        values,
        "number gone",
        main=list(values)[1:],
        descending=True,
        picks=("generator", "alteration"),
    )
    films = zip(shown["image_before"], shown["image"], strict=True)
    view.cases.studies = [
        Study(id, tuple(map(Path, both)), row=row)
        for row, (id, both) in enumerate(zip(shown["id"], films, strict=True), start=1)
    ]
    if options.texts:
        texts = list(zip(shown["report_before"], shown["report"], strict=True))
        view.cases.cases = cases_of(texts, options, lambda row, both: [changed_block(*both)])


def _forests(run: Result) -> list[Forest]:
    """Return the grounding of the findings of each generator, by their region and by the film."""
    found = []
    records = run.frame("findings").to_dict("records")
    for generator in dict.fromkeys(each["generator"] for each in records):
        own = [each for each in records if each["generator"] == generator]
        for way, what in (("region", "the region is covered"), ("film", "another film is shown")):
            rows = [
                (each["finding"].replace("_", " "), *bounds_of(each, f"grounding_{way}"))
                for each in sorted(own, key=lambda each: -each[f"n_{way}"])
                if each[f"n_{way}"] >= _LEAST_DRAWN
            ]
            if rows:
                title = f"{generator}: grounding, where {what}"
                found.append(Forest(title, rows[:_MOST_DRAWN], 1, zero=True, note=_NOTE))
    return found
