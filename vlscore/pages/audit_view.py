"""View of an audit: each altered film next to the original, with the words that changed."""

from pathlib import Path

from vlscore.core import with_noun
from vlscore.data import Study
from vlscore.pages.page_parts import CaseList, Forest, RunView
from vlscore.pages.view_parts import PageOptions, bounds_of, changed_block, columns_of
from vlscore.stats import Result

_ORIGINAL = "original"
# Cases of a finding that is drawn, and findings of a chart, those with most cases.
_LEAST_DRAWN, _MOST_DRAWN = 5, 12
_NOTE = "1: every statement depends on it; 0: none does"


def audit_view(run: Result, options: PageOptions, view: RunView) -> list[Study | None]:
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
    names = {"id": "id", "generator": "generator", "alteration": "alteration"}
    names |= {"finding": "covered", "findings_gone": "gone", "findings_new": "new"}
    names |= {"gone": "number gone", "new": "number new"}
    values = {head: [rows[name][k] for k in shown] for name, head in names.items()}
    values["covered"] = [(name or "").replace("_", " ") for name in values["covered"]]
    view.cases = CaseList(
        "films",
        values,
        "number gone",
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
