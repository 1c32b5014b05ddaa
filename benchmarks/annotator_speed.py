"""RadGraph and CheXbert of full size: ours against the released packages.

Protocol. Both sides read the same constructed checkpoint (annotator_pairs.py). Everything runs in
this process, on the threads stated, in rounds that alternate; on a CPU rates are of the processor's
time, so that other work on the machine does not count, and the ratio is the median over the rounds
of ours to the package's.

- Distinct reports of the Indiana collection, each read once. The package reads them as it does by
  itself, in float32, one at a time; ours in batches, in float32 and with BERT's matrices in
  bfloat16. "BERT alone" is the bare network over our batches, in float32: what no reading in
  float32 can exceed; "BERT by MKL" is the same by the routine that PyTorch calls by itself.
- The files of five generators, as a person who compares the five has them read: candidates and
  references, file by file. The package reads every text; ours reads each distinct one once ("first
  run", the cache empty at its beginning), and none in a second run, which another process may
  begin. The package's rate does not depend on how many texts there are: it reads those of fewer
  studies. F1 itself is not part of either.

That both find the same is checked first: entities and relations, or labels, of every distinct
report. In bfloat16 the share of reports with the same result is stated beside how far scores move
and how far apart the two best scores lie; random weights give many near ties, so that nothing is
said of real ones.

The packages run under transformers 4 only:

    pip install --no-deps radgraph==0.1.18 f1chexbert==0.0.2 "transformers<5" "scikit-learn<1.6"
    pip install appdirs dotmap jsonpickle h5py nltk pandas requests

Run: python benchmarks/annotator_speed.py VOCAB.TXT iu_reports.jsonl GENERATED [--reports 24]
     [--studies 273] [--by-package 6] [--rounds 3] [--threads 1] [--device cpu]
     --out benchmarks/results/annotator_speed.md
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from annotator_pairs import Pair, chexbert_pair, radgraph_pair, write_bert
from data import GENERATED, INDIANA_REPORTS
from machine import describe_machine, publish

from vlscore.core import open_cache
from vlscore.encoders.blocks import bert as linear
from vlscore.metrics import RadGraph
from vlscore.metrics.networks.model_bert import groups_of_like_length, tokens_at_once
from vlscore.metrics.networks.model_files import AnnotationCache
from vlscore.stats import TextTable

PACKAGE = "the package"
Runs = Mapping[str, Callable[[], Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabulary", type=Path, help="vocab.txt of bert-base-uncased")
    parser.add_argument("table", type=Path, help="the Indiana reports")
    parser.add_argument("generated", type=Path, help="folder with the five files of data.py")
    parser.add_argument("--reports", type=int, default=24)
    parser.add_argument("--studies", type=int, default=273, help="of each file, read by ours")
    parser.add_argument("--by-package", type=int, default=6, help="of these, read by the package")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(11)
    origins = [INDIANA_REPORTS.check(options.table)]
    origins += [file.check(options.generated / f"{n}.jsonl") for n, file in GENERATED.items()]
    reports = read_reports(options.table, options.reports)
    files = read_files(options.generated, options.studies)
    some = read_files(options.generated, options.by_package)
    of_files, distinct = sum(map(len, files)), len({text for file in files for text in file})
    rows, notes = [], []
    with tempfile.TemporaryDirectory() as place:
        bert = write_bert(Path(place) / "bert-uncased", options.vocabulary)
        for name, prepare in (("RadGraph", radgraph_pair), ("CheXbert", chexbert_pair)):
            folder = Path(place) / name
            pair = prepare(folder, bert, options.vocabulary, reports, options.device)
            plain, half = pair.ours("fp32"), pair.ours("bf16")
            notes += agreement(name, pair, plain, half, reports)
            runs = distinct_runs(pair, plain, half, reports, options.device)
            counts = dict.fromkeys(runs, len(reports))
            rates = measure(runs, counts, options.rounds, options.device)
            rows += table_rows(f"{name}, distinct reports", rates)
            runs = file_runs(pair, plain, half, files, some, folder)
            counts = {**dict.fromkeys(runs, of_files), PACKAGE: sum(map(len, some))}
            rates = measure(runs, counts, options.rounds, options.device)
            rows += table_rows(f"{name}, five files", rates)
    said = [
        f"{len(reports)} distinct reports of {mean_words(reports):.0f} words on average. Five "
        f"files of {options.studies} studies: {of_files} texts, {distinct} of them distinct; the "
        f"package read those of {options.by_package} studies.",
        f"{options.rounds} rounds, {options.threads} thread(s), device {options.device}. "
        + ", ".join(f"{n} {version(n)}" for n in ("radgraph", "f1chexbert", "transformers"))
        + f". {describe_machine()}",
    ]
    columns = ("what", "read by", "reports/s", "to the package")
    body = [
        "# Annotators: reports a second" + (" of processor time" * (options.device == "cpu")),
        TextTable("", columns, tuple(rows)).markdown(),
        verdict(rows),
        "\n".join(f"- {line}" for line in [*notes, *said]),
        "\n".join(f"- {line}" for line in origins),
    ]
    publish("\n\n".join(body) + "\n", options.out)


def read_reports(table: Path, count: int) -> list[str]:
    rows = (json.loads(line) for line in table.read_text(encoding="utf-8").splitlines())
    texts = dict.fromkeys(f"{row['findings']} {row['impression']}".strip() for row in rows)
    return [text for text in texts if text][:count]


def read_files(folder: Path, studies: int) -> list[list[str]]:
    """Texts of each generator's file for studies drawn by lot, candidate and reference in turn."""
    found = []
    for name in GENERATED:
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        chosen = random.Random(0).sample(range(len(rows)), len(rows))[:studies]
        found.append([rows[k][role] for k in chosen for role in ("candidate", "reference")])
    return found


def distinct_runs(pair: Pair, plain: Any, half: Any, reports: list[str], device: str) -> Runs:
    bert, lengths = bert_of(plain), pair.lengths(reports)

    def by_mkl() -> None:
        uses = linear.uses_onednn
        linear.uses_onednn = lambda: False  # type: ignore[assignment]
        try:
            bare_bert(bert, lengths, device)
        finally:
            linear.uses_onednn = uses

    return {
        PACKAGE: lambda: pair.package(reports),
        "ours": lambda: plain.annotate(reports),
        "ours, bf16": lambda: half.annotate(reports),
        "BERT alone": lambda: bare_bert(bert, lengths, device),
        "BERT by MKL" if device == "cpu" else "BERT alone, again": by_mkl,
    }


def file_runs(
    pair: Pair, plain: Any, half: Any, files: list[list[str]], some: list[list[str]], folder: Path
) -> Runs:
    digests = {"weights": "0", "vocabulary": "0"}

    def read(annotator: Any, cache: Path) -> AnnotationCache:
        kept = AnnotationCache(open_cache(cache))
        for texts in files:
            kept.annotated(annotator, lambda: digests, texts)
        return kept

    def first(annotator: Any) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as cache:
            read(annotator, Path(cache))

    def second() -> None:
        kept = read(plain, folder / "cache")
        assert not kept.reports_annotated, "a second run must read nothing"

    read(plain, folder / "cache")
    return {
        PACKAGE: lambda: [pair.package(texts) for texts in some],
        "ours, first run": lambda: first(plain),
        "ours, first run, bf16": lambda: first(half),
        "ours, second run": second,
    }


def measure(
    runs: Runs, counts: Mapping[str, int], rounds: int, device: str
) -> dict[str, list[float]]:
    """Reports a second of each, round by round."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            before = now(device)
            run()
            rates[name].append(counts[name] / max(now(device) - before, 1e-6))
    return rates


def now(device: str) -> float:
    """Seconds of the processor, or by the clock where a GPU does the work."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def table_rows(what: str, rates: dict[str, list[float]]) -> list[tuple[str, str, str, str]]:
    found = []
    for name, mine in rates.items():
        ratio = statistics.median(a / b for a, b in zip(mine, rates[PACKAGE], strict=True))
        found.append((what, name, f"{statistics.median(mine):.4g}", f"{ratio:.3g}"))
    return found


def verdict(rows: Sequence[tuple[str, str, str, str]]) -> str:
    """Which of our lines reach five times the package's rate, and which do not."""
    ours = [row for row in rows if row[1].startswith("ours")]
    reached = [f"{what} ({name})" for what, name, _, ratio in ours if float(ratio) >= 5]
    missed = [f"{what} ({name}: {ratio})" for what, name, _, ratio in ours if float(ratio) < 5]
    return (
        f"At least 5 times the package: {'; '.join(reached) or 'none'}. "
        f"Less: {'; '.join(missed) or 'none'}."
    )


def agreement(name: str, pair: Pair, plain: Any, half: Any, reports: list[str]) -> list[str]:
    """Lines about what is read alike by the package, by ours, and by ours in bfloat16."""
    theirs, ours, lower = (
        pair.answers(read(reports)) for read in (pair.package, plain.annotate, half.annotate)
    )
    same = sum(map(list.__eq__ if name == "CheXbert" else dict.__eq__, theirs, ours))
    alike = sum(a == b for a, b in zip(ours, lower, strict=True))
    found = ""
    if name == "RadGraph":
        entities = sum(map(len, ours))
        relations = sum(len(e["relations"]) for each in ours for e in each.values())
        found = f" ({entities} entities, {relations} relations)"
    one, other = (scores_of(each, reports) for each in (plain, half))
    moved = torch.cat([(a - b).abs().flatten() for a, b in zip(one, other, strict=True)])
    best = torch.cat([a.topk(2, dim=1).values for a in one])
    margin = float((best[:, 0] - best[:, 1]).median())
    return [
        f"{name}: {same} of {len(reports)} reports read as by the package{found}. In bf16 {alike} "
        f"of {len(reports)} as in fp32; scores move by {float(moved.median()):.2g} (median; "
        f"{float(moved.max()):.2g} at most), where the two best lie {margin:.2g} apart (median)."
    ]


def scores_of(annotator: Any, reports: list[str]) -> list[torch.Tensor]:
    """(n, classes) scores that labels are chosen by: of spans, or of reports and observations."""
    if isinstance(annotator, RadGraph):
        return [s.entities for s in annotator.scores(reports)[1] if s is not None]
    return list(annotator.logits(reports)[0])


def bert_of(annotator: Any) -> Any:
    return annotator._model.bert if isinstance(annotator, RadGraph) else annotator._bert


def bare_bert(bert: Any, lengths: list[int], device: str) -> None:
    """Run the network over as many tokens in our batches, and nothing around it."""
    with torch.inference_mode():
        for rows in groups_of_like_length(lengths, tokens_at_once(device)):
            longest = max(lengths[row] for row in rows)
            mask = torch.tensor([[1] * lengths[r] + [0] * (longest - lengths[r]) for r in rows])
            bert(mask.to(device), mask.to(device))


def mean_words(reports: Sequence[str]) -> float:
    return statistics.mean(len(report.split()) for report in reports)


if __name__ == "__main__":
    main()
