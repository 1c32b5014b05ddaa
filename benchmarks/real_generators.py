"""Claim: real generators on real films, under metrics of texts, of labels and of images, in one
`vlscore compare` each, with baselines made of training reports.

Protocol: five generators wrote reports for the same test studies of the Indiana collection, a
sixth for others (data.py has files and digests; the sixth, `cvt2distilgpt2.jsonl`, is of
aehrc/cvt2distilgpt2, experiment/iu_x_ray_chen). Studies that STUDIES, a table of `vlscore
dataset`, has with films are compared: the five against each other with the references of their own
files; the six on the studies that all of them have, against STUDIES' findings. Baselines (the
constant report, random reports, the report that is always normal) come from STUDIES' training part
without the studies compared. Every free metric of texts that runs; with --encoder and --weights
the image-aware ones and the nearest image's report, too. Intervals over studies, paired
permutation tests.

Run: python benchmarks/real_generators.py GENERATED STUDIES [--encoder small --weights FOLDER]
         [--out benchmarks/results/real_generators.md]
"""

import argparse
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from data import GENERATED, describe_file
from machine import describe_machine, publish

from vlscore.core.files import write_jsonl
from vlscore.data import open_reports, read_rows
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import ComparisonRun, compare
from vlscore.metrics import METRICS, Scorer, usable_metrics
from vlscore.stats import markdown

SIXTH = "cvt2distilgpt2"
IMAGE_AWARE = ("vlscore", "cosine", "clipscore", "refclipscore", "image-gain-cosine")
Rows = dict[str, dict[str, Any]]


def rows_of(path: Path) -> Rows:
    """Id -> row of a table."""
    return {str(row["id"]): row for _, row in read_rows(path) if not isinstance(row, str)}


def written(
    place: Path, systems: Mapping[str, Rows], studies: Rows, root: Path, own: bool
) -> list[Path]:
    """One table a system, of the studies that all of them and `studies` have.

    Args: own: whether references are those of the systems' files; else the studies' findings.
    """
    ids = [
        name
        for name, study in studies.items()
        if all(name in rows for rows in systems.values()) and (own or study.get("findings"))
    ]
    for system, rows in systems.items():
        write_jsonl(
            place / f"{system}.jsonl",
            (
                {
                    "id": name,
                    "image": [str(root / path) for path in studies[name]["image"]],
                    "view": studies[name]["view"],
                    "reference": rows[name]["reference"] if own else studies[name]["findings"],
                    "candidate": rows[name]["candidate"],
                }
                for name in ids
            ),
        )
    return [place / f"{system}.jsonl" for system in systems]


def compared(
    tables: list[Path], studies: Rows, place: Path, embedder: StudyEmbedder | None
) -> ComparisonRun:
    """One `vlscore compare` with baselines of training reports that are of none of its studies."""
    seen = set(rows_of(tables[0]))
    training: Iterable[dict[str, Any]] = (
        {"id": name, "findings": row.get("findings"), "impression": row.get("impression")}
        for name, row in studies.items()
        if row.get("split") == "train" and name not in seen
    )
    write_jsonl(place / "train.jsonl", training)
    metrics = usable_metrics()[0]
    if embedder is not None:
        metrics += [METRICS[name] for name in IMAGE_AWARE]
    scorer = Scorer(embedder, metrics=metrics)
    train = open_reports(place / "train.jsonl")
    return compare(tables, place / "compared", scorer, baselines=True, train=train)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generated", type=Path, help="folder with the generators' files")
    parser.add_argument("studies", type=Path, help="table of `vlscore dataset`")
    parser.add_argument("--encoder")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    paths = {name: options.generated / f"{name}.jsonl" for name in GENERATED}
    sources = [GENERATED[name].check(path) for name, path in paths.items()]
    sixth = options.generated / f"{SIXTH}.jsonl"
    sources += [f"Data: {describe_file(path)}" for path in (sixth, options.studies)]
    five = {name: rows_of(path) for name, path in paths.items()}
    studies = rows_of(options.studies)
    embedder = None
    if options.encoder is not None:
        embedder = StudyEmbedder(options.encoder, weights=options.weights and str(options.weights))
    sections = []
    groups = (
        ("Five generators", five, True),
        ("Six generators, on the studies that all have", five | {SIXTH: rows_of(sixth)}, False),
    )
    with tempfile.TemporaryDirectory() as folder:
        for title, systems, own in groups:
            place = Path(folder) / str(own)
            place.mkdir()
            tables = written(place, systems, studies, options.studies.parent, own)
            run = compared(tables, studies, place, embedder)
            sections += [
                f"## {title}: {run.content['studies']} studies",
                markdown(run.tables, run.signatures),
            ]
    report = [
        "# Real generators on real films",
        describe_machine(),
        "\n".join(f"- {line}" for line in sources),
        *sections,
    ]
    publish("\n\n".join(report) + "\n", options.out)


if __name__ == "__main__":
    main()
