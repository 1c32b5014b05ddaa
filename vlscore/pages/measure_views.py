"""Views of tests of metrics and of labels: align, sensitivity, findings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlscore.data import BadRow, Study, open_reports
from vlscore.errors import VLScoreError
from vlscore.pages.page_parts import Block, CaseList, Column, Forest, RunView
from vlscore.pages.result_folder import ResultFolder
from vlscore.pages.view_parts import (
    PageOptions,
    changed_block,
    findings_block,
    interval_of,
    judged_block,
    read_texts,
)


def align_view(folder: ResultFolder, options: PageOptions, view: RunView) -> list[Study | None]:
    """Fill the view of an alignment: metrics and ratings of each rated report."""
    from vlscore.evaluation import read_ratings

    content = folder.content
    better = {m["name"]: 1 if m["higher_is_better"] else -1 for m in content["metrics"]}
    view.lead = (
        f"{len(better)} metrics against {len(content['raters'])} raters on {content['pairs']:,} "
        f"reports of {content['studies']:,} studies."
    )
    for rating in dict.fromkeys(a["rating"] for a in content["agreements"]):
        rows = [
            (a["metric"], *interval_of(a["by_study"].get("tau_b")))
            for a in content["agreements"]
            if a["rating"] == rating
        ]
        rows += [
            ("raters among themselves", *interval_of(ceiling["between"]))
            for ceiling in content["ceilings"]
            if ceiling["rating"] == rating
        ]
        view.forests.append(Forest(f"Kendall's tau_b with {rating}", rows, 1, zero=True))
    values = folder.columns("values.csv", texts=("study_id", "candidate_id"))
    ids = [f"{s} · {c}" for s, c in zip(values["study_id"], values["candidate_id"], strict=True)]
    numbers = [name for name in values if name not in ("study_id", "candidate_id")]
    ratings = [name for name in numbers if name not in better]
    columns = [Column("pair", is_text=True)]
    columns += [Column(name, better.get(name, 0), is_main=True) for name in numbers]
    shown = {"pair": ids, **{name: values[name] for name in numbers}}
    sort = ratings[0] if ratings else numbers[0]
    view.cases = CaseList("rated reports", columns, shown, sort, content["meaning"] != "quality")
    if ratings and len(numbers) > len(ratings):
        view.cases.scatter = (next(n for n in numbers if n in better), ratings[0])
    texts: dict[tuple[str, str], tuple[str, str]] = {}

    def read() -> dict[Any, Study]:
        files = folder.record["files"]
        pairs = read_ratings(options.table or _common(files))
        if pairs.sha256 != folder.key["pairs_sha256"] or not (pairs.references and pairs.texts):
            raise VLScoreError("the run used ratings that the default settings do not read")
        for s, c, reference, text in zip(
            pairs.studies, pairs.candidates, pairs.references, pairs.texts, strict=True
        ):
            texts[s, c] = (text, reference)
        return {}

    read_texts(view, options, read)
    if texts:
        keys = zip(values["study_id"], values["candidate_id"], strict=True)
        view.cases.cases = [[judged_block(*texts[k])] if k in texts else [] for k in keys]
    return [None] * len(ids)


def _common(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else str(Path(files[0]).parent)


def sensitivity_view(
    folder: ResultFolder, options: PageOptions, view: RunView
) -> list[Study | None]:
    """Fill the view of a sensitivity test: each change, with its words marked."""
    from vlscore.evaluation import read_pairs

    content = folder.content
    view.lead = f"{content['pairs']:,} changed reports of {content['studies']:,} studies."
    for metric in content["metrics"]:
        kinds = sorted(metric["kinds"], key=lambda k: -(k["drop"]["estimate"] or 0))
        rows = [(k["kind"], *interval_of(k["drop"])) for k in kinds]
        harmless = frozenset(k["kind"] for k in kinds if not k["is_significant"])
        note = "mean drop of the score; hollow: changes that are no error"
        view.forests.append(Forest(metric["name"], rows, zero=True, hollow=harmless, note=note))
    name = next(n for n in folder.files if n.startswith("values."))
    values = folder.columns(name, texts=("study_id", "kind", "category"))
    flags = values.pop("significant")
    values["expected"] = ["an error" if flag else "no error" for flag in flags]
    drops = [n for n in values if n.endswith(".drop")]
    columns = [Column("study_id", is_text=True), Column("kind", is_text=True)]
    columns += [Column("expected", is_text=True)]
    columns += [Column(n, is_main=n.endswith(".drop")) for n in values if "." in n]
    values = {column.name: values[column.name] for column in columns}
    view.cases = CaseList("changes", columns, values, drops[0], True, picks=("kind", "expected"))
    if len(drops) > 1:
        view.cases.scatter = (drops[0], drops[1])
    blocks: dict[tuple[str, str], list[Block]] = {}

    def read() -> dict[Any, Study]:
        path = folder.record["perturbations"] if options.table is None else options.table
        for pair in read_pairs(path):
            block = changed_block(pair.original, pair.perturbed)
            blocks.setdefault((pair.study_id, pair.kind), []).append(block)
        return {}

    read_texts(view, options, read)
    if blocks:
        # Changes of one kind to one study are in the order of the file.
        taken: dict[tuple[str, str], int] = {}
        view.cases.cases = []
        for key in zip(values["study_id"], values["kind"], strict=True):
            place = taken[key] = taken.get(key, -1) + 1
            view.cases.cases.append(blocks.get(key, [])[place : place + 1])
    return [None] * len(values["study_id"])


def findings_view(folder: ResultFolder, options: PageOptions, view: RunView) -> list[Study | None]:
    """Fill the view of labels: each report, with its findings marked."""
    name = next(n for n in folder.files if n.startswith("labels."))
    values = folder.columns(name, texts=("study_id",))
    first = next(iter(values))
    view.lead = f"{len(values[first]):,} reports labelled."
    columns = [Column(n, is_text=n == first, is_main=n != first, has_card=False) for n in values]
    view.cases = CaseList("reports", columns, values, first)
    texts: dict[str, str] = {}

    def read() -> dict[Any, Study]:
        if options.table is None:
            raise VLScoreError("run.json does not name a table of reports")
        id_column, text_column = folder.key["columns"]
        table = open_reports(options.table, id_column=id_column, text_column=text_column)
        if table.sha256 != folder.key["table_sha256"]:
            raise VLScoreError(f"{options.table} is not the table that the run read")
        texts.update({row.id: row.text for row in table if not isinstance(row, BadRow)})
        return {}

    read_texts(view, options, read)
    if texts:
        view.cases.cases = [[findings_block(texts[i])] if i in texts else [] for i in values[first]]
    return [None] * len(values[first])
