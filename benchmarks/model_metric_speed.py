"""BERTScore and RaTEScore at full size: our batches against the released packages.

Protocol. Both sides read the same constructed checkpoints, random numbers in the layouts of
roberta-large (BERTScore, up to layer 17), DeBERTa-v3-base and MPNet-base (RaTEScore). Speed does
not depend on the numbers. The tokenizers are trained on the reports. That of BERTScore is told in
its settings to read a first word as one in the middle: bert-score asks for it at each text, which
transformers 5 does not hear. RaTEScore's head is shifted so that about one token in four begins or
continues an entity. Both sides run in this process, in float32, on one thread, over the same pairs;
rounds alternate, each with other pairs, so that nothing remembered helps twice. Rates are of the
processor's time, so that other work on the machine does not count, and the ratio is the median over
the rounds. How far apart the two sides' numbers lie is shown.

RaTEScore runs beside NumPy 1 only, under Python 3.11; an environment of its own:

    pip install RaTEScore==0.6.0 medspacy==1.3.1 PyRuSH==1.0.13 'numpy<2' bert-score .

Run: python benchmarks/model_metric_speed.py FOLDER [--pairs 8] [--rounds 2]
     --out benchmarks/results/model_metric_speed.md
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_machine, publish
from metric_speed import read_pairs

from vlscore.metrics import Metric, compute, find_metric
from vlscore.stats import TextTable, number

Pairs = Sequence[tuple[str, str]]
Scores = Callable[[Pairs], Sequence[float]]
ENTITIES = 1 / 4
TYPES = ("ABNORMALITY", "NON-ABNORMALITY", "DISEASE", "NON-DISEASE", "ANATOMY")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with the five files named in data.py")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(11)
    pairs, sources = read_pairs(options.folder)
    random.Random(1).shuffle(pairs)
    texts = sorted({text for pair in pairs for text in pair})
    parts = [
        pairs[k :: len(pairs) // options.pairs][: options.pairs] for k in range(options.rounds)
    ]
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for name, package, prepare in (
            ("bert-score", "bert-score", prepare_bert_score),
            ("ratescore", "RaTEScore", prepare_ratescore),
        ):
            sides = prepare(Path(place) / name, texts)
            rates, apart = measure(sides, parts, pairs[-2:])
            ratio = statistics.median(a / b for a, b in zip(*rates, strict=True))
            medians = [number(statistics.median(part), 2) for part in rates]
            rows.append((name, *medians, number(ratio, 2), f"{apart:.1e}"))
            print(rows[-1], f"{package} {version(package)}", flush=True)
    columns = (
        "metric", "pairs/s and core", "the package's", "ratio", "largest difference of a value",
    )  # fmt: skip
    words = statistics.mean(len(text.split()) for part in parts for pair in part for text in pair)
    packages = ("bert-score", "RaTEScore", "medspacy", "transformers")
    installed = ", ".join(f"{name} {version(name)}" for name in packages)
    report = "\n\n".join(
        [
            "# Metrics that run networks: pairs of reports a second",
            f"{options.pairs} pairs in each of {options.rounds} rounds, {words:.0f} words a "
            f"report, one thread, no GPU. {installed}. {describe_machine()}",
            "\n".join(f"- {line}" for line in sources),
            TextTable("", columns, tuple(rows)).markdown(),
        ]
    )
    publish(report + "\n", options.out)


def measure(
    sides: tuple[Scores, Scores], parts: Sequence[Pairs], warm_up: Pairs
) -> tuple[list[list[float]], float]:
    """(sides, rounds) pairs a second of the processor's time, and how far apart the values lie."""
    for score in sides:
        score(warm_up)
    rates: list[list[float]] = [[], []]
    apart = 0.0
    for k, part in enumerate(parts):
        values: list[Any] = [None, None]
        for side in (0, 1) if k % 2 == 0 else (1, 0):
            before = time.process_time()
            values[side] = np.asarray(sides[side](part), dtype=np.float64)
            rates[side].append(len(part) / (time.process_time() - before))
        apart = max(apart, float(np.abs(values[0] - values[1]).max()))
    return rates, apart


def of_metric(metric: Metric) -> Scores:
    def score(pairs: Pairs) -> Sequence[float]:
        candidates, references = ([*each] for each in zip(*pairs, strict=True))
        found: Sequence[float] = compute(metric, candidates, references)[str(metric)].tolist()
        return found

    return score


def prepare_bert_score(folder: Path, texts: Sequence[str]) -> tuple[Scores, Scores]:
    from bert_score import BERTScorer
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel

    place = folder / "roberta-large"
    place.mkdir(parents=True)
    trained = ByteLevelBPETokenizer(add_prefix_space=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(texts, vocab_size=8000, special_tokens=special)
    trained.save_model(str(place))
    (place / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "RobertaTokenizer", "model_max_length": 512, "add_prefix_space": true}'
    )
    RobertaModel(
        RobertaConfig(
            vocab_size=trained.get_vocab_size(),
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            max_position_embeddings=514,
            type_vocab_size=1,
            layer_norm_eps=1e-5,
        )
    ).save_pretrained(place)
    scorer = BERTScorer(model_type=str(place), num_layers=17, device="cpu")

    def theirs(pairs: Pairs) -> Sequence[float]:
        candidates, references = ([*each] for each in zip(*pairs, strict=True))
        found: Sequence[float] = scorer.score(candidates, references)[2].tolist()
        return found

    return of_metric(find_metric("bert-score")(model=str(place))), theirs


def prepare_ratescore(folder: Path, texts: Sequence[str]) -> tuple[Scores, Scores]:
    from loguru import logger
    from tokenizers import BertWordPieceTokenizer
    from transformers import (
        AutoTokenizer,
        DebertaV2Config,
        DebertaV2ForTokenClassification,
        MPNetConfig,
        MPNetModel,
    )

    logger.remove()  # PyRuSH prints every token that it looks at
    from RaTEScore import RaTEScore

    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(texts, vocab_size=8000)
    size = trained.get_vocab_size()
    labels = ["O", *(f"{mark}-{name}" for name in TYPES for mark in "BI")]
    finder = DebertaV2ForTokenClassification(
        DebertaV2Config(
            vocab_size=size,
            hidden_size=768,
            num_hidden_layers=12,
            num_attention_heads=12,
            intermediate_size=3072,
            max_position_embeddings=512,
            relative_attention=True,
            position_buckets=256,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            position_biased_input=False,
            type_vocab_size=0,
            id2label=dict(enumerate(labels)),
            label2id={x: k for k, x in enumerate(labels)},
        )
    ).eval()
    encoder = MPNetModel(MPNetConfig(vocab_size=size))
    places = folder / "RaTE-NER-Deberta", folder / "BioLORD-2023-C"
    for place in places:
        place.mkdir(parents=True)
        trained.save_model(str(place))
        (place / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    tokens = AutoTokenizer.from_pretrained(places[0])(list(texts[:8]), padding=True)
    with torch.no_grad():
        logits = finder(torch.tensor(tokens.input_ids), torch.tensor(tokens.attention_mask)).logits
        ahead = logits[..., 1:].amax(-1) - logits[..., 0]
        finder.classifier.bias[0] += ahead.flatten().quantile(1 - ENTITIES)
    for place, model in zip(places, (finder, encoder), strict=True):
        model.save_pretrained(place)
    scorer = RaTEScore(str(places[0]), str(places[1]), use_gpu=False)

    def theirs(pairs: Pairs) -> Sequence[float]:
        candidates, references = ([*each] for each in zip(*pairs, strict=True))
        found: Sequence[float] = scorer.compute_score(candidates, references)
        return found

    ner, synonyms = map(str, places)
    return of_metric(find_metric("ratescore")(ner=ner, synonyms=synonyms)), theirs


if __name__ == "__main__":
    main()
