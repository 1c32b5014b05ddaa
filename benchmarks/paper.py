"""Claim: the numbers of the VLScore paper (arXiv 2410.17357) come out again from its data: Tables 1
to 5 and Figure 2.

Protocol: FOLDER has, under fixed names, as much of the following as the user has; what is absent is
named and left out (docs/reproduce.md says where to get each).

- rexval/: ReXVal 1.0.0. Tables 1, 4 and 5: tau_b of each metric with the mean over raters of all
  errors, over the 200 candidates; 95 % bootstrap intervals over studies.
- mimic-cxr-jpg/ and mimic-cxr-reports.zip: images of ReXVal's studies by study_id (of several, the
  first frontal one), and the test reports.
- weights/limitr/, weights/gloria/, ...: checkpoints; without the folder, what `vlscore weights
  fetch` has downloaded.
- perturbed/: the tables that the authors' script makes of their control files. Tables 2 and 3 and
  Figure 2 are computed of them, and once more of our own perturbations of a random sample (seed 0)
  of MIMIC-CXR's test reports. The reference is the report as it was, the candidate the changed one.

Where the paper does not say which variant of a metric it used, all that we have are shown: CheXbert
as cosine of vectors and as F1, BERTScore of two models. No parameter is chosen by the result.
Verdicts compare with the digits that the paper prints. Nobody has run this on the real data yet;
tests/test_paper.py runs the whole on a stand-in of the same layout.

Run: make paper DATA=FOLDER
or: python benchmarks/paper.py FOLDER [--work out/paper] [--out benchmarks/results/paper.md]
"""

import argparse
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from machine import describe_machine
from paper_verdicts import (
    LEFT_OUT,
    MEANING,
    Line,
    headline,
    left_out,
    lines_of,
    paper_numbers,
    summary,
    table_of,
)

from vlscore.core import atomic_write, write_json
from vlscore.data import StudyTable, open_studies, read_dataset
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import encoder_card, is_here, weights_of
from vlscore.errors import VLScoreError
from vlscore.evaluation import (
    AlignmentSettings,
    RatedPairs,
    SensitivitySettings,
    align,
    read_ratings,
    sensitivity,
)
from vlscore.metrics import Scorer, find_metric
from vlscore.perturb import perturb
from vlscore.stats import Interval, TextTable, interval_in, markdown

# The paper's name of a metric -> ours; several where it does not say which it used.
METRICS = {
    "BLEU-1": ("bleu-1",),
    "BLEU-4": ("bleu-4",),
    "METEOR": ("meteor",),
    "ROUGE-L": ("rouge-l",),
    "BERTScore": ("bert-score(model=distilroberta-base)", "bert-score(model=roberta-large)"),
    "CheXbert": ("chexbert-similarity", "chexbert-f1"),
    "RadGraph F1": ("radgraph-f1",),
}
DIFFERENCE = "difference"
OTHER_PROGRAM = "CheXpert's labeller is another program (align --values takes its values)"
SIMILARITIES = ("cosine", "bounding-sphere", "image-centred-cosine", "vlscore")
ENCODERS = ("limitr", "gloria", "convirt", "biovil", "medclip-vit")
RATING = "total errors"
# No area reaches this, so that the value tells the area: (1 - value) * BEYOND.
BEYOND = 1_000_000
CONTRASTS = {
    "Table 2": [("remove-pathology", "remove-insignificant")],
    "Table 3": [
        ("change-location", "replace-uninformative"),
        ("change-severity", "replace-uninformative"),
    ],
}
NOT_ESTABLISHED = (
    "Not established from the paper: the numbers of Table 3, tau of the encoders of Table 4 other "
    "than LIMITR, which variants of METEOR, BERTScore and CheXbert it used, and the comparison of "
    "report generators, which is left out."
)


@dataclass
class PaperRun:
    """The data that are there, and what was computed of them.

    Attributes:
        folder: what `make paper DATA=FOLDER` names.
        work: folder for what is computed; a repeated run does not compute it again.
        reports: how many of MIMIC-CXR's test reports are perturbed.
        resamples: of the bootstrap.
        absent: what the folder lacks, and where that comes from.
        signatures: of every number.
    """

    folder: Path
    work: Path
    reports: int
    resamples: int
    absent: dict[str, str] = field(default_factory=dict)
    signatures: list[str] = field(default_factory=list)

    def has(self, name: str, where: str) -> bool:
        """Return whether the folder has a file or folder; note it otherwise."""
        is_there = (self.folder / name).exists()
        if not is_there:
            self.absent[name] = where
        return is_there

    @cached_property
    def pairs(self) -> RatedPairs | None:
        """ReXVal's rated candidates."""
        is_there = self.has("rexval", "physionet.org/content/rexval-dataset, credentialed")
        return read_ratings(self.folder / "rexval") if is_there else None

    @cached_property
    def mimic(self) -> Any:
        """MIMIC-CXR-JPG's studies with their reports; None without them."""
        name, archive = "mimic-cxr-jpg", "mimic-cxr-reports.zip"
        images = self.has(name, "physionet.org/content/mimic-cxr-jpg, credentialed")
        reports = self.has(archive, "physionet.org/content/mimic-cxr, credentialed")
        if not (images and reports):
            return None
        return read_dataset(
            name, self.folder / name, reports=self.folder / archive, check_files=False
        )

    def written(self, name: str, studies: Any) -> Path | None:
        """Write some of MIMIC-CXR's studies as a table; None if there are none."""
        if not len(studies):
            return None
        found = type(self.mimic)(
            self.mimic.dataset, studies, self.mimic.left_out, self.mimic.image_root
        )
        path = self.work / f"{name}.parquet"
        found.write(path)
        return path

    @cached_property
    def rated_studies(self) -> Path | None:
        """Table of the images of ReXVal's studies."""
        pairs, mimic = self.pairs, self.mimic
        if pairs is None or mimic is None:
            return None
        known = mimic.studies
        return self.written("rated", known[known["id"].isin(set(pairs.studies))])

    @cached_property
    def sample(self) -> Path | None:
        """Table of the test studies whose reports are perturbed."""
        if self.mimic is None:
            return None
        known = self.mimic.studies
        test = known[known["split"] == "test"]
        return self.written("sample", test.sample(min(self.reports, len(test)), random_state=0))

    def weights(self, encoder: str) -> Path | None:
        """Return the folder of an encoder's checkpoint; None: where `weights fetch` puts it."""
        own = self.folder / "weights" / encoder
        return own if own.exists() else None

    def why_no_encoder(self, encoder: str) -> str | None:
        """Return what to do where an encoder has no checkpoint; None if it has one."""
        if self.weights(encoder) is not None or is_here(encoder):
            return None
        if weights_of(encoder).hub:
            return f"no checkpoint: `vlscore weights fetch {encoder}`"
        return f"no checkpoint in weights/{encoder}/: `vlscore weights list` says how to get it"

    def embedder(self, encoder: str) -> StudyEmbedder:
        """Return an encoder that embeds studies, with the cache."""
        return StudyEmbedder(encoder, weights=self.weights(encoder))


def metrics_here() -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the paper's name -> our metrics that can run here, and why others cannot."""
    found, reasons = {}, {"CheXpert": OTHER_PROGRAM}
    for name, candidates in METRICS.items():
        missing = {each: find_metric(each).missing() for each in candidates}
        usable = [each for each, reason in missing.items() if reason is None]
        if usable:
            found[name] = usable
        else:
            reasons[name] = next(iter(filter(None, missing.values())))
    return found, reasons


def agreement(
    run: PaperRun, name: str, scorer: Scorer, studies: StudyTable | None = None
) -> dict[str, Interval]:
    """Return metric -> tau_b with the raters' mean of all errors, by `vlscore align`."""
    assert run.pairs is not None
    settings = AlignmentSettings(resamples=run.resamples)
    result = align(run.pairs, run.work / name, scorer, settings, studies=studies, overwrite=True)
    run.signatures += result.signatures.values()
    rows = result.frame("agreements").query("rating == @RATING").to_dict("records")
    return {str(row["metric"]): interval_in(row, "tau_b") for row in rows}


def table1(run: PaperRun) -> list[Line]:
    """Metrics of texts with ReXVal's raters. VLScore's line comes from Table 5."""
    numbers = {k: v for k, v in paper_numbers()["table1"].items() if k != "VLScore"}
    usable, reasons = metrics_here()
    if run.pairs is None:
        return lines_of("Table 1", numbers, {}, dict.fromkeys(numbers, "rexval/ is absent"))
    chosen = [each for names in usable.values() for each in names]
    found = agreement(run, "table1", Scorer(metrics=chosen))
    ours = {
        name: [(each, found[str(find_metric(each))]) for each in names]
        for name, names in usable.items()
    }
    return lines_of("Table 1", numbers, ours, reasons)


def tables4_and_5(run: PaperRun) -> Iterator[Line]:
    """Encoders and similarities with ReXVal's raters; the first lines are VLScore's of Table 1."""
    numbers = paper_numbers()
    for encoder in ENCODERS:
        reason = run.why_no_encoder(encoder)
        if run.rated_studies is None:
            needed = ("rexval", "mimic-cxr-jpg", "mimic-cxr-reports.zip")
            held = [name for name in needed if name in run.absent]
            one = "is" if len(held) == 1 else "are"
            reason = f"{', '.join(held)} {one} absent" if held else "no image of ReXVal's studies"
        tau: dict[str, Interval] = {}
        largest = None
        if reason is None:
            try:
                studies = open_studies(str(run.rated_studies), needs={"image"})
                embedder = run.embedder(encoder)
                scorer = Scorer(embedder, metrics=list(SIMILARITIES))
                tau = agreement(run, f"encoder-{encoder}", scorer, studies)
                largest = largest_area(run, encoder, Scorer(embedder, metrics="vlscore", C=BEYOND))
            except VLScoreError as error:
                reason = str(error)
        of = numbers["table4"]
        if encoder == "limitr":
            for table, known in (("Table 1", {"vlscore": numbers["table1"]["VLScore"]}),
                                 ("Table 5", numbers["table5"])):  # fmt: skip
                for name, paper in known.items():
                    shown = "VLScore" if table == "Table 1" else name
                    computed = f"{name} of {encoder}" if name in tau else ""
                    why = reason or ""
                    yield Line(table, shown, "", computed, paper, tau.get(name), why)
        title = encoder_card(encoder).title
        row = {"table": "Table 4", "name": title, "reason": reason or ""}
        yield Line(**row, what="tau", paper=of["tau"].get(encoder), ours=tau.get("vlscore"))
        yield Line(**row, what="C", paper=of["C"].get(encoder), ours=largest)


def largest_area(run: PaperRun, encoder: str, scorer: Scorer) -> Interval:
    """Return the largest area of a triangle on ReXVal, which is C; it has no interval."""
    assert run.pairs is not None
    studies = open_studies(str(run.rated_studies), needs={"image"})
    settings = AlignmentSettings(resamples=run.resamples)
    out = run.work / f"areas-{encoder}"
    result = align(run.pairs, out, scorer, settings, studies=studies, overwrite=True)
    values = pd.read_csv(result.folder / "values.csv")
    (column,) = (name for name in values if name.startswith("vlscore"))
    area = float((1 - values[column].min()) * BEYOND)
    return Interval(area, float("nan"), float("nan"))


def perturbed_sources(run: PaperRun) -> dict[str, dict[str, Any]]:
    """Return the perturbations that there are: title -> arguments of `sensitivity`."""
    found: dict[str, dict[str, Any]] = {}
    if run.has("perturbed", "tables that the script of the authors' repository makes"):
        images = run.folder / "mimic-cxr-jpg"
        found["the authors' perturbations"] = {
            "perturbations": run.folder / "perturbed",
            "image_root": images if images.exists() else run.folder,
        }
    if run.sample is not None:
        made = perturb(run.sample, run.work / "perturbed", overwrite=True)
        studies = open_studies(run.sample, needs={"image"})
        found["our perturbations of MIMIC-CXR's test reports"] = {
            "perturbations": made.folder,
            "studies": studies,
        }
    return found


def noticed(
    run: PaperRun, source: str, arguments: Mapping[str, Any], reason: str | None = None
) -> Iterator[Line]:
    """Lines of Tables 2 and 3 and of Figure 2 for one source of perturbations.

    Args: reason: why VLScore is left out; default: LIMITR has no checkpoint.
    """
    usable, reasons = metrics_here()
    embedder = None
    reason = reason or run.why_no_encoder("limitr")
    if reason is None:
        usable["VLScore"] = ["vlscore"]
        embedder = run.embedder("limitr")
    else:
        reasons["VLScore"] = reason
        arguments = {k: v for k, v in arguments.items() if k not in ("studies", "image_root")}
    chosen = [each for held in usable.values() for each in held]
    out = run.work / f"noticed-{source.split()[0]}-{source.split()[1]}"
    result = sensitivity(
        out=out,
        scorer=Scorer(embedder, metrics=chosen),
        settings=SensitivitySettings(resamples=run.resamples),
        overwrite=True,
        **arguments,
    )
    run.signatures += result.signatures.values()
    if failures := result.failures:
        # Metrics are compared on the changes for which all have values.
        run.absent[f"{len(failures)} changes of {source}"] = f"no value: {failures[0].reason}"
    numbers = paper_numbers()
    contrasts = result.frame("contrasts")
    for table, kinds in CONTRASTS.items():
        for kind, control in kinds:
            mine = contrasts.query("significant == @kind and control == @control")
            rows = {str(row["metric"]): row for row in mine.to_dict("records")}
            columns = {control: "control_value", kind: "value", DIFFERENCE: "delta"}
            for position, (what, column) in enumerate(columns.items()):
                # Two changes of Table 3 have one control.
                what = what if table == "Table 2" else f"{kind.partition('-')[2]}: {what}"
                printed = numbers["table2"] if table == "Table 2" else {}
                known = {name: each[position] for name, each in printed.items()}
                ours = _ours(usable, rows, column)
                why = {n: reasons.get(n, f"no {kind} and {control}") for n in (*usable, *reasons)}
                yield from lines_of(f"{table}, {source}", known, ours, why, what)
    normal = result.frame("kinds").query("kind == 'standard-normal'")
    rows = {str(row["metric"]): row for row in normal.to_dict("records")}
    ours = _ours(usable, rows, "value")
    why = {name: reasons.get(name, "no normal report") for name in (*usable, *reasons)}
    yield from lines_of(f"Figure 2, {source}", numbers["figure2"], ours, why)


def _ours(
    usable: Mapping[str, list[str]], rows: Mapping[str, Any], column: str
) -> dict[str, list[tuple[str, Interval]]]:
    found = {
        name: [
            (each, interval_in(rows[str(find_metric(each))], column))
            for each in held
            if str(find_metric(each)) in rows
        ]
        for name, held in usable.items()
    }
    return {name: values for name, values in found.items() if values}


TITLES = {
    "Table 1": "metrics with ReXVal's raters (tau_b, all errors)",
    "Table 2": "a removed insignificant sentence, a removed pathology",
    "Table 3": "changed place or severity, [UNK] for a word that says nothing",
    "Table 4": "VLScore by encoder on ReXVal, and C",
    "Table 5": "similarities of LIMITR's vectors on ReXVal (tau_b)",
    "Figure 2": "a standard normal report for a normal one (mean)",
}


def is_for_terminal(line: Line) -> bool:
    """Return whether a line can be compared, or sums up others."""
    return line.paper is not None or not line.what or line.what.endswith(DIFFERENCE)


def tables_of(lines: list[Line]) -> Iterator[TextTable]:
    """Yield the lines as tables, in the paper's order."""
    named = dict.fromkeys(line.table for line in lines)
    for name in sorted(named, key=lambda name: list(TITLES).index(name.split(",")[0])):
        base, _, source = name.partition(", ")
        title = f"{base}. {TITLES[base][0].upper()}{TITLES[base][1:]}"
        held = [line for line in lines if line.table == name]
        yield table_of(f"{title}: {source}" if source else title, held)


def all_lines(run: PaperRun) -> list[Line]:
    """Compute everything that the folder allows."""
    lines = [*table1(run), *tables4_and_5(run)]
    sources = perturbed_sources(run)
    for source, arguments in sources.items():
        try:
            lines += noticed(run, source, arguments)
        except VLScoreError as error:
            # Such as images that are not where the authors' tables say; texts are compared alone.
            lines += noticed(run, source, arguments, str(error))
    if not any(line.table.startswith("Table 2") for line in lines):
        numbers = paper_numbers()
        why = "neither perturbed/ nor MIMIC-CXR's test reports"
        for position, what in enumerate((*CONTRASTS["Table 2"][0][::-1], DIFFERENCE)):
            known = {name: each[position] for name, each in numbers["table2"].items()}
            lines += lines_of("Table 2", known, {}, dict.fromkeys(known, why), what)
        known = numbers["figure2"]
        lines += lines_of("Figure 2", known, {}, dict.fromkeys(known, why))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--work", type=Path, default=Path("out/paper"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--reports", type=int, default=500)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    if not options.folder.is_dir():
        raise SystemExit(f"{options.folder} is no folder; docs/reproduce.md says what to put there")
    options.work.mkdir(parents=True, exist_ok=True)
    run = PaperRun(options.folder, options.work, options.reports, options.resamples)
    lines = all_lines(run)
    width = max(80, shutil.get_terminal_size((120, 40)).columns)
    absent = [f"{name}: absent, {where}" for name, where in run.absent.items()]
    absent += left_out(lines)
    computed = [line for line in lines if line.verdict != LEFT_OUT]
    for table in tables_of([line for line in computed if is_for_terminal(line)]):
        print(f"{table.text(width)}\n")
    meaning = [f"{verdict}: {what}" for verdict, what in MEANING.items()]
    for said in (*meaning, *absent, NOT_ESTABLISHED, headline(lines)):
        print(textwrap.fill(said, width, subsequent_indent="  "))
    page = "\n\n".join(
        [
            "# The VLScore paper's numbers, and ours",
            headline(lines),
            describe_machine(),
            summary(lines),
            "\n".join(f"- {said}" for said in absent),
            NOT_ESTABLISHED,
            markdown(tables_of(lines), dict.fromkeys(run.signatures)),
        ]
    )
    if options.out is not None:
        with atomic_write(options.out) as stream:
            stream.write(page.rstrip() + "\n")
        held = {"lines": [line.to_dict() for line in lines], "absent": run.absent}
        write_json(options.out.with_suffix(".json"), held)
        print(f"wrote {options.out} and {options.out.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
