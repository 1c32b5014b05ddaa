"""RadGraph and CheXbert of full size: our batches against the released packages.

Protocol. Both sides read the same constructed checkpoint (BERT-base over bert-base-uncased's
vocabulary, random numbers; RadGraph's heads are shifted so that about one span in twenty is an
entity and one pair of spans in thirty a relation, of which few join two entities). Both run in this
process, in float32, on the threads stated, over the same distinct reports: the package as it runs
by itself, one report at a time, and ours in batches. Rounds alternate; rates are of the processor's
time, so that other work on the machine does not count, and the ratio is the median over the rounds.
"BERT alone" is the rate of the bare network, the same for both sides, over our batches: what no
reading of reports through it in float32 can exceed. That both find the same is checked first:
entities and relations, or labels, of every report.

The packages run under transformers 4 only:

    pip install --no-deps radgraph==0.1.18 f1chexbert==0.0.2 "transformers<5" "scikit-learn<1.6"
    pip install appdirs dotmap jsonpickle h5py nltk pandas requests

Run: python benchmarks/annotator_speed.py VOCAB.TXT iu_reports.jsonl [--reports 32] [--threads 1]
     --out benchmarks/results/annotator_speed.md
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from data import INDIANA_REPORTS
from machine import describe_machine, publish
from transformers import AutoConfig, BertConfig, BertTokenizer

from vlscore.annotators import CheXbert, RadGraph
from vlscore.annotators.batches import groups_of_like_length, tokens_at_once

HIDDEN_OF_HEADS, WIDEST_SPAN = 150, 8
ENTITIES, RELATIONS = 1 / 20, 1 / 30
_NEAR = 30
LABELS = {
    "radgraph__ner_labels": "\nANAT-DP\nOBS-DP\nOBS-U\nOBS-DA\n",
    "radgraph__relation_labels": "modify\nlocated_at\nsuggestive_of\n",
    "non_padded_namespaces": "*tags\n*labels\n",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabulary", type=Path, help="vocab.txt of bert-base-uncased")
    parser.add_argument("table", type=Path, help="the Indiana reports")
    parser.add_argument("--reports", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(11)
    origin = INDIANA_REPORTS.check(arguments.table)
    reports = read_reports(arguments.table, arguments.reports)
    lines = []
    with tempfile.TemporaryDirectory() as place:
        bert = write_bert(Path(place) / "bert-uncased", arguments.vocabulary)
        for name, prepare in (("RadGraph", prepare_radgraph), ("CheXbert", prepare_chexbert)):
            runs, same = prepare(Path(place) / name, bert, arguments.vocabulary, reports)
            rates = measure(runs, len(reports), arguments.rounds)
            ratio = statistics.median(a / b for a, b in zip(*rates[:2], strict=True))
            shown = " | ".join(f"{statistics.median(part):.2f}" for part in rates)
            lines.append(f"| {name} | {shown} | {ratio:.2f} | {same} |")
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("radgraph", "f1chexbert", "transformers")
    )
    words = statistics.mean(len(report.split()) for report in reports)
    report = (
        "# Annotators: reports a second of processor time\n\n"
        "| | ours, batched | the package | BERT alone | ours / package (median of rounds) "
        "| same result |\n|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n\n"
        f"{len(reports)} distinct reports of {words:.0f} words on average, {arguments.rounds} "
        f"rounds, {arguments.threads} thread(s), float32, no GPU. {packages}.\n{origin}\n\n"
        f"{describe_machine()}\n"
    )
    publish(report, arguments.out)


def read_reports(table: Path, count: int) -> list[str]:
    rows = (json.loads(line) for line in table.read_text(encoding="utf-8").splitlines())
    texts = dict.fromkeys(f"{row['findings']} {row['impression']}".strip() for row in rows)
    return [text for text in texts if text][:count]


def write_bert(folder: Path, vocabulary: Path) -> Path:
    folder.mkdir()
    pieces = vocabulary.read_text(encoding="utf-8")
    (folder / "vocab.txt").write_text(pieces, encoding="utf-8")
    BertConfig(vocab_size=len(pieces.splitlines())).save_pretrained(folder)
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def measure(runs: Sequence[Callable[[], Any]], count: int, rounds: int) -> list[list[float]]:
    """Reports a second of processor time of each, round by round."""
    rates: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for found, run in zip(rates, runs, strict=True):
            before = time.process_time()
            run()
            found.append(count / (time.process_time() - before))
    return rates


def bare_bert(bert: Any, lengths: list[int]) -> Callable[[], None]:
    """Runs the network over as many tokens in our batches, and nothing around it."""

    def run() -> None:
        with torch.inference_mode():
            for rows in groups_of_like_length(lengths, tokens_at_once("cpu")):
                longest = max(lengths[row] for row in rows)
                mask = torch.tensor([[1] * lengths[r] + [0] * (longest - lengths[r]) for r in rows])
                bert(mask, mask)

    return run


def prepare_radgraph(folder: Path, bert: Path, vocabulary: Path, reports: list[str]) -> Any:
    from radgraph import RadGraph as Package

    place = folder / "radgraph"
    (place / "vocabulary").mkdir(parents=True)
    for name, labels in LABELS.items():
        (place / "vocabulary" / f"{name}.txt").write_text(labels)
    (place / "vocab.txt").write_text(vocabulary.read_text(encoding="utf-8"), encoding="utf-8")
    (place / "config.json").write_text(json.dumps(radgraph_config(bert)))
    # The package builds its model and then asks for weights: the first ones are its own.
    load, kept = torch.nn.Module.load_state_dict, {}

    def keep(module: Any, state: Any, strict: bool = True, **options: Any) -> Any:
        kept.setdefault("model", module)
        return load(module, module.state_dict(), strict, **options)

    torch.save({}, place / "weights.th")
    torch.nn.Module.load_state_dict = keep  # type: ignore[method-assign]
    try:
        Package(model_type="radgraph", model_cache_dir=str(folder), cuda=-1)
    finally:
        torch.nn.Module.load_state_dict = load  # type: ignore[method-assign]
    tensors = kept["model"].state_dict()
    torch.save(tensors, place / "weights.th")
    shift(tensors, RadGraph(place), reports)
    torch.save(tensors, place / "weights.th")
    package = Package(model_type="radgraph", model_cache_dir=str(folder), cuda=-1)
    ours = RadGraph(place)
    theirs = package(reports)
    found = [annotation.to_dict()["entities"] for annotation in ours.annotate(reports)]
    same = sum(found[row] == theirs[str(row)]["entities"] for row in range(len(reports)))
    entities = sum(map(len, found))
    relations = sum(len(e["relations"]) for each in found for e in each.values())
    said = f"{same} of {len(reports)} ({entities} entities, {relations} relations)"
    words, _ = ours.scores(reports)
    lengths = [sum(map(len, each)) + 2 for each in ours._pieces(words)]
    bare = bare_bert(ours._model.bert, lengths)
    return (lambda: ours.annotate(reports), lambda: package(reports), bare), said


def shift(tensors: dict[str, torch.Tensor], model: RadGraph, reports: list[str]) -> None:
    """Move the heads' biases so that as many spans and pairs are something as in real reports."""
    _, scores = model.scores(reports)
    entities = torch.cat([s.entities[:, 1:].amax(1) for s in scores if s is not None])
    pairs = torch.cat([s.relations[..., 1:].amax(-1).flatten() for s in scores if s is not None])
    ends = (
        ("_ner._ner_scorers.radgraph__ner_labels.1._module.bias", entities, ENTITIES),
        ("_relation._relation_scorers.radgraph__relation_labels.bias", pairs, RELATIONS),
    )
    for name, values, share in ends:
        # In the widest gap near by, or a span would lie on the border, where rounding decides.
        place = int(len(values) * (1 - share))
        near = values.sort().values[place - _NEAR : place + _NEAR]
        widest = int(near.diff().argmax())
        tensors[name] -= near[widest : widest + 2].mean()


def radgraph_config(bert: Path) -> dict[str, Any]:
    pieces = {"bert": {"model_name": str(bert), "max_length": 512}}
    return {
        "dataset_reader": {"max_span_width": WIDEST_SPAN, "token_indexers": pieces},
        "model": {
            "type": "dygie",
            "embedder": {"token_embedders": pieces},
            "initializer": {},
            "module_initializer": {},
            "feature_size": 20,
            "max_span_width": WIDEST_SPAN,
            "target_task": "relation",
            "feedforward_params": {
                "num_layers": 2,
                "hidden_dims": HIDDEN_OF_HEADS,
                "dropout": 0.4,
            },
            "loss_weights": {"ner": 0.2, "relation": 1.0, "coref": 0.0, "events": 0.0},
            "modules": {
                "ner": {},
                "relation": {"spans_per_word": 0.5},
                "coref": {"spans_per_word": 0.3, "max_antecedents": 100, "coref_prop": 0},
                "events": {
                    "trigger_spans_per_word": 0.3,
                    "argument_spans_per_word": 0.8,
                    "loss_weights": {"trigger": 1.0, "arguments": 1.0},
                },
            },
        },
    }


def prepare_chexbert(folder: Path, bert: Path, vocabulary: Path, reports: list[str]) -> Any:
    import f1chexbert.f1chexbert as package

    class Here:
        """Reads the folder in the place of the hub's bert-base-uncased."""

        def __init__(self, kind: Any) -> None:
            self.kind = kind

        def from_pretrained(self, name: str) -> Any:
            return self.kind.from_pretrained(str(bert))

    package.AutoConfig, package.BertTokenizer = Here(AutoConfig), Here(BertTokenizer)
    package.CACHE_DIR = str(folder)
    folder.mkdir()
    tensors = package.bert_labeler(inference=True).state_dict()
    torch.save({"model_state_dict": tensors}, folder / "chexbert.pth")
    model = package.F1CheXbert(device="cpu")
    ours = CheXbert(folder / "chexbert.pth", vocabulary)

    def theirs() -> list[Any]:
        return [model.get_label(report, mode="classification") for report in reports]

    found = [
        ["" if label is None else label for label in each.labels.values()]
        for each in ours.annotate(reports)
    ]
    same = sum(mine == other for mine, other in zip(found, theirs(), strict=True))
    lengths = ours._tokenizer(reports, max_tokens=512).lengths.tolist()
    runs = (lambda: ours.annotate(reports), theirs, bare_bert(ours._bert, lengths))
    return runs, f"{same} of {len(reports)}"


if __name__ == "__main__":
    main()
