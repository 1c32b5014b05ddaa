"""Views of scores (evaluate, compare, judge, oracle) and tests (align, sensitivity, findings)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import LIMIT, with_noun
from vlscore.data import Study, open_reports
from vlscore.errors import Failure, VLScoreError
from vlscore.evaluation import BASELINE, heading_of, is_different, sign_of
from vlscore.metrics import FLAGS, NUMBERS
from vlscore.pages.page_parts import TRIANGLE, Block, CaseList, Forest, RunView
from vlscore.pages.run_studies import open_table, studies_by_row, text_policy_of
from vlscore.pages.view_parts import (
    PageOptions,
    bounds_of,
    cases_of,
    changed_block,
    findings_block,
    judged_block,
    judged_study,
    read_texts,
    studies_of,
    tables_named,
    triangle_of,
)
from vlscore.stats import Result, TextTable, interval, interval_in, p_value, text_table

# Rows of differences at the top of a comparison's page.
_MOST_ANSWERS = 20


def evaluate_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of an evaluation."""
    values = run.rows(f"scores.{run.key['format']}")
    summary = run.frames["summary"].to_dict("records")
    numbers = [each for each in summary if not each["of_corpus"]]
    better = {each["metric"]: sign_of(each) for each in numbers}
    means = {each["metric"]: bounds_of(each, "mean") for each in numbers}
    forest = [(each["metric"], *bounds_of(each, "mean")) for each in summary if each["of_corpus"]]
    if forest:
        view.forests.append(Forest("Values of the whole corpus", forest))
    mains = list(dict.fromkeys(each["of"] for each in numbers))
    counts = {each["what"]: each["n"] for each in run.frames["counts"].to_dict("records")}
    count, whole = (int(counts.pop(name)) for name in ("rows", "rows with every value"))
    view.lead = (
        f"{with_noun(count, 'study')} under {with_noun(len(mains), 'metric')}; {whole:,} "
        f"{'has' if whole == 1 else 'have'} every value."
    )
    view.notes += [f"{name}: {n:,}." for name, n in counts.items() if n]
    rows = values.pop("row")
    # The numbers of triangles and the flags say nothing of quality by themselves.
    numeric = {*better, *NUMBERS, *FLAGS, "view_guessed"}
    if "error" in values and not values["error"].notna().any():
        values = values.drop(columns="error")
    studies = studies_of(run, view, options, "reference", "candidate")
    descending = better.get(mains[0], 1) < 0
    view.cases = CaseList("studies", values, mains[0], mains, better, descending=descending)
    for column in view.cases.columns:
        column.text, column.mean = column.name not in numeric, means.get(column.name)
    if mains[0] == "vlscore" and "area" in values:
        # Many studies have the score 0: of these, the largest triangle is the worst.
        view.cases.ties = "area"
    numbers_of = values.reindex(columns=[*TRIANGLE]).to_dict("records")

    def blocks(row: int, study: Study) -> list[Block]:
        found = judged_study(study)
        for block in found:
            block.triangle = triangle_of(numbers_of[row])
        return found

    view.cases.studies = [studies.get(row) for row in rows]
    view.cases.cases = cases_of(view.cases.studies, options, blocks)
    if len(mains) > 1:
        view.cases.scatter = (mains[0], mains[1])


def compare_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of a comparison: its list begins with the differences of the systems."""
    records = run.frames["systems"].to_dict("records")
    systems = list(dict.fromkeys(each["system"] for each in records))
    better = {each["metric"]: sign_of(each) for each in records}
    mains = list(dict.fromkeys(each["of"] for each in records))
    studies = run.record["studies"]
    view.lead = ", ".join(
        with_noun(n, noun)
        for n, noun in ((len(systems), "system"), (studies, "study"), (len(mains), "metric"))
    )
    view.lead += "."
    view.answer = _answer(run, systems)
    own = [name for name in systems if not name.startswith(BASELINE)] or systems
    for name in dict.fromkeys(each["metric"] for each in records if each["primary"]):
        found = [each for each in records if each["metric"] == name]
        points = [(each["system"], *bounds_of(each, "value")) for each in found]
        view.forests.append(Forest(found[0]["title"], points, better[name]))
    rows = run.rows("values.parquet")
    ids = rows["id"].drop_duplicates().tolist()
    shown: dict[str, Any] = {}
    spreads: list[str] = []
    # Column of a system -> its metric.
    group: dict[str, str] = {}
    of_corpus = {each["of"] for each in records if each["primary"] and each["of_corpus"]}
    for name in (name for name in mains if name in rows):
        of = rows.pivot(index="id", columns="system", values=name).loc[ids, systems]
        # The words are typed into the search: a keyboard has no Δ.
        spread = f"{name} {'difference' if len(own) == 2 else 'spread'}"
        # The mean of studies is another number than the value of the corpus in the table above.
        spread += " per study" if name in of_corpus else ""
        if len(own) == 2:
            apart = of[own[0]] - of[own[1]]
        else:
            apart = of[own].max(axis=1) - of[own].min(axis=1)
            apart = apart.where(of[own].notna().sum(axis=1) > 1)
        shown[spread] = apart
        spreads.append(spread)
        shown |= {f"{name} {system}": of[system] for system in systems}
        group |= {f"{name} {system}": name for system in systems}
    if len(own) == 2:
        view.lead += f" A difference is {own[0]} minus {own[1]}."
        if of_corpus:
            view.lead += (
                f" {', '.join(sorted(of_corpus))}: the table has the value of the whole corpus, "
                "the list values of single studies. Their differences can have opposite signs."
            )
    main = [*spreads, *(group if len(systems) < 4 else ())]
    of_better = {column: better.get(name, 0) for column, name in group.items()}
    first = spreads[0] if spreads else "id"
    values = rows[["id"]].drop_duplicates().set_index("id").assign(**shown).reset_index()
    view.cases = CaseList("studies", values, first, main, of_better, descending=first != "id")
    for column in view.cases.columns:
        column.signed, column.group = column.name in spreads, group.get(column.name, "")
        column.card = column.name not in group
    if len(group) > 1:
        first_two = list(group)[:2]
        view.cases.scatter = (first_two[0], first_two[1])
        view.cases.diagonal = True
    of_systems = _studies_of_systems(run, options, view, systems)
    found = [{name: own[id] for name, own in of_systems.items() if id in own} for id in ids]
    view.cases.studies = [next(iter(own.values()), None) for own in found]
    view.cases.cases = cases_of(
        [own or None for own in found],
        options,
        lambda row, own: [
            b for name, study in own.items() for b in judged_study(study, title=name)
        ],
    )


def _answer(run: Result, systems: Sequence[str]) -> TextTable | None:
    """Return the differences in the primary numbers, of systems that are no baselines first.

    Baselines are compared where there is one system alone. None without tests.
    """
    if "differences" not in run.frames:
        return None
    tests = run.frame("differences")
    numbers = run.frame("systems").drop_duplicates("metric").set_index("metric")
    own = [name for name in systems if not name.startswith(BASELINE)]
    if len(own) > 1:
        tests = tests[tests["first"].isin(own) & tests["second"].isin(own)]
    rows = []
    for test in tests[tests["adjusted_p"].notna()].to_dict("records"):
        difference = interval_in(test, "difference")
        rows.append(
            {
                "number": heading_of(numbers.loc[test["metric"]]),
                "systems": f"{test['first']} - {test['second']}",
                "difference": interval(difference),
                "adjusted p": p_value(test["adjusted_p"]),
                "significant": is_different(difference, test["adjusted_p"]),
            }
        )
    caption = (
        "First system minus second, with the 95 % interval of the paired bootstrap; p of the "
        "paired permutation test, adjusted (Benjamini-Hochberg) over all tests of primary numbers. "
        "Significant: adjusted p below 0.05, and an interval without 0."
    )
    if len(rows) > _MOST_ANSWERS:
        caption += f" The first {_MOST_ANSWERS} of {len(rows)}; Tables has all."
    return text_table("Differences", rows[:_MOST_ANSWERS], caption) if rows else None


def _studies_of_systems(
    run: Result, options: PageOptions, view: RunView, systems: Sequence[str]
) -> dict[str, dict[str, Study]]:
    """Return the studies by id of each system whose table run.json names and is there."""
    tables, keys = tables_named(run.record), run.key["systems"]
    found: dict[str, dict[str, Study]] = {}
    for system in systems:
        if system not in tables:
            continue

        def read(system: str = system) -> dict[str, Study]:
            entry = keys[system]
            table = open_table(
                tables[system],
                entry["table_sha256"],
                entry["columns"],
                ("reference", "candidate"),
                options.image_root or run.key.get("image_root"),
                limit=entry.get(LIMIT),
            )
            rows = studies_by_row(table, text_policy_of(run, view.signatures))
            return {study.id: study for study in rows.values()}

        found[system] = read_texts(view, options, read)
    return found


def judge_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of judgements, with the errors as they were judged."""
    lines = run.rows("judgements.jsonl")
    view.lead = f"{with_noun(run.record['reports'], 'report')} judged."
    better = {"rating": 1, "grade": 1, "sum": -1, "maximum": -1, "count": -1, "significant": -1}
    better |= {"rating_with_image": 1} if "rating_with_image" in lines else {}
    values = lines.reindex(columns=["study_id", *better])
    main = ("rating", "sum")
    view.cases = CaseList("reports", values, "rating", main=main, better=better, scatter=main)
    rows = studies_of(run, view, options, "reference", "candidate")
    by_id = {study.id: study for study in rows.values()}
    view.cases.studies = [by_id.get(id) for id in values["study_id"]]
    view.cases.cases = cases_of(
        view.cases.studies, options, lambda row, study: judged_study(study, lines["errors"][row])
    )


def oracle_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of an oracle: each study with the hits of the corpus."""
    hits = run.rows("hits.parquet")
    best = hits[hits["rank"] == 1]
    view.lead = f"The best reports of a corpus for {with_noun(len(best), 'study')}."
    names = ["score", "area", "foot", "height", "distance", "distance_rank"]
    values = best[["study_id", *names]].rename(columns={"study_id": "id"}).reset_index(drop=True)
    view.cases = CaseList(
        "studies",
        values,
        "distance_rank",
        main=[name for name in names if name != "height"],
        better={"score": 1},
        descending=True,
        scatter=("score", "foot"),
    )
    rows = studies_of(run, view, options, "reference")
    view.cases.studies = [rows.get(row) for row in best["study_row"]]
    of_study = dict(list(hits.groupby("study_row")))
    view.cases.cases = cases_of(
        view.cases.studies,
        options,
        lambda row, study: [
            judged_block(hit.text, study.reference or "", title=f"hit {hit.rank}")
            for hit in of_study[study.row].itertuples()
        ],
    )


def align_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of an alignment: metrics and ratings of each rated report."""
    from vlscore.evaluation import read_ratings

    record = run.record
    frames = {
        name: run.frames[name].to_dict("records") for name in ("metrics", "agreements", "ceilings")
    }
    better = {m["name"]: 1 if m["higher_is_better"] else -1 for m in frames["metrics"]}
    view.lead = (
        f"{with_noun(len(better), 'metric')} against {with_noun(len(record['raters']), 'rater')} "
        f"on {with_noun(record['pairs'], 'report')} of {with_noun(record['studies'], 'study')}."
    )
    for rating in dict.fromkeys(row["rating"] for row in frames["agreements"]):
        rows = [
            (row.get("metric", "raters among themselves"), *bounds_of(row, n))
            for name, n in (("agreements", "tau_b"), ("ceilings", "between"))
            for row in frames[name]
            if row["rating"] == rating
        ]
        view.forests.append(Forest(f"Kendall's tau_b with {rating}", rows, 1, zero=True))
    values = run.rows("values.csv")
    keys = list(zip(values.pop("study_id"), values.pop("candidate_id"), strict=True))
    numbers = [*values]
    ratings = [name for name in numbers if name not in better]
    values.insert(0, "pair", [f"{study} · {candidate}" for study, candidate in keys])
    view.cases = CaseList(
        "rated reports",
        values,
        ratings[0] if ratings else numbers[0],
        main=numbers,
        better=better,
        descending=record["meaning"] != "quality",
    )
    if ratings and len(numbers) > len(ratings):
        view.cases.scatter = (next(n for n in numbers if n in better), ratings[0])

    def read() -> dict[tuple[str, str], tuple[str, str]]:
        path = options.table
        if path is None:
            files = record["files"]
            path = files[0] if len(files) == 1 else Path(files[0]).parent
        pairs = read_ratings(path)
        if pairs.sha256 != run.key["pairs_sha256"] or not (pairs.references and pairs.texts):
            raise VLScoreError("the run used ratings that the default settings do not read")
        rated = zip(pairs.studies, pairs.candidates, strict=True)
        return dict(zip(rated, zip(pairs.texts, pairs.references, strict=True), strict=True))

    texts = read_texts(view, options, read)
    view.cases.cases = cases_of(
        [texts.get(key) for key in keys], options, lambda row, pair: [judged_block(*pair)]
    )


def sensitivity_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of a sensitivity test: each change, with its words marked."""
    from vlscore.evaluation import read_pairs

    view.lead = f"{run.record['pairs']:,} changed reports."
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for row in run.frames["kinds"].to_dict("records"):
        kinds.setdefault(row["metric"], []).append(row)
    for metric, own in kinds.items():
        own.sort(key=lambda row: -row["drop"] if row["drop"] == row["drop"] else 0)
        rows = [(row["kind"], row["drop"], row["drop.low"], row["drop.high"]) for row in own]
        harmless = [row["kind"] for row in own if not row["is_significant"]]
        note = "mean drop of the score; hollow: changes that are no error"
        view.forests.append(Forest(metric, rows, zero=True, hollow=harmless, note=note))
    name = next(n for n in run.digests if n.startswith("values."))
    values = run.rows(name)
    values["expected"] = ["an error" if flag else "no error" for flag in values["significant"]]
    drops = [n for n in values if n.endswith(".drop")]
    values = values[["study_id", "kind", "expected", *(name for name in values if "." in name)]]
    picks = ("kind", "expected")
    view.cases = CaseList("changes", values, drops[0], main=drops, descending=True, picks=picks)
    if len(drops) > 1:
        view.cases.scatter = (drops[0], drops[1])

    def read() -> dict[tuple[str, str], list[Block]]:
        path = run.record["perturbations"] if options.table is None else options.table
        pairs = read_pairs(path)
        if pairs.attrs["sha256"] != run.key["perturbations_sha256"]:
            raise VLScoreError(f"{path} holds other changes than the run read")
        blocks: dict[tuple[str, str], list[Block]] = {}
        for pair in pairs.itertuples():
            block = changed_block(pair.original, pair.perturbed)
            blocks.setdefault((pair.study_id, pair.kind), []).append(block)
        return blocks

    changes = read_texts(view, options, read)
    # Changes of one kind to one study are in the order of the file.
    found = [
        changes.get((row.study_id, row.kind), [])[row.place : row.place + 1] or None
        for row in values.assign(place=values.groupby(["study_id", "kind"]).cumcount()).itertuples()
    ]
    view.cases.cases = cases_of(found, options, lambda row, blocks: blocks)


def findings_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of labels: each report, with its findings marked."""
    name = next(n for n in run.digests if n.startswith("labels."))
    values = run.rows(name)
    first = values.columns[0]
    view.lead = f"{with_noun(len(values), 'report')} labelled."
    view.cases = CaseList("reports", values, first, main=[*values][1:])
    for column in view.cases.columns:
        column.card = False

    def read() -> dict[str, str]:
        path = options.table or run.record["table"]
        id_column, *texts = run.key["columns"]
        text_column = texts[0] if len(texts) == 1 else None
        table = open_reports(path, id_column=id_column, text_column=text_column)
        if table.sha256 != run.key["table_sha256"]:
            raise VLScoreError(f"{path} is not the table that the run read")
        return {row.id: row.text for row in table if not isinstance(row, Failure)}

    texts = read_texts(view, options, read)
    view.cases.cases = cases_of(
        [texts.get(id) for id in values[first]], options, lambda row, text: [findings_block(text)]
    )
