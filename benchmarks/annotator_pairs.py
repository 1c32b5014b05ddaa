"""Constructed checkpoints of full size, read by the released packages and by ours.

BERT-base over bert-base-uncased's vocabulary with random numbers; RadGraph's heads are shifted so
that about one span in twenty is an entity and one pair of spans in thirty a relation, of which few
join two entities.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, BertConfig, BertTokenizer

from vlscore.metrics import CheXbert, RadGraph

HIDDEN_OF_HEADS, WIDEST_SPAN = 150, 8
ENTITIES, RELATIONS = 1 / 20, 1 / 30
_NEAR = 30
LABELS = {
    "radgraph__ner_labels": "\nANAT-DP\nOBS-DP\nOBS-U\nOBS-DA\n",
    "radgraph__relation_labels": "modify\nlocated_at\nsuggestive_of\n",
    "non_padded_namespaces": "*tags\n*labels\n",
}


@dataclass(frozen=True)
class Pair:
    """A released package and ours over the same checkpoint.

    Attributes:
        ours: our annotator of a precision.
        package: reads reports as it does by itself, one at a time.
        answers: of ours or of the package, in the same form: what was read in each report.
        lengths: word pieces of each report, [CLS] and [SEP] included.
    """

    ours: Callable[[str], Any]
    package: Callable[[Sequence[str]], Any]
    answers: Callable[[Any], list[Any]]
    lengths: Callable[[Sequence[str]], list[int]]


def write_bert(folder: Path, vocabulary: Path) -> Path:
    folder.mkdir()
    pieces = vocabulary.read_text(encoding="utf-8")
    (folder / "vocab.txt").write_text(pieces, encoding="utf-8")
    BertConfig(vocab_size=len(pieces.splitlines())).save_pretrained(folder)
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def radgraph_pair(
    folder: Path, bert: Path, vocabulary: Path, reports: list[str], device: str
) -> Pair:
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
    cuda = -1 if device == "cpu" else 0
    package = Package(model_type="radgraph", model_cache_dir=str(folder), cuda=cuda)

    def answers(read: Any) -> list[Any]:
        if isinstance(read, dict):
            return [read[str(row)]["entities"] for row in range(len(read))]
        return [annotation.to_dict()["entities"] for annotation in read]

    def lengths(texts: Sequence[str]) -> list[int]:
        plain = RadGraph(place)
        return [sum(map(len, each)) + 2 for each in plain._pieces(plain.scores(texts)[0])]

    return Pair(
        ours=lambda precision: RadGraph(place, device=device, precision=precision),
        package=lambda texts: package(list(texts)),
        answers=answers,
        lengths=lengths,
    )


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


def chexbert_pair(
    folder: Path, bert: Path, vocabulary: Path, reports: list[str], device: str
) -> Pair:
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
    model = package.F1CheXbert(device=device)

    def answers(read: Any) -> list[Any]:
        rows = [x if isinstance(x, list) else list(x.labels.values()) for x in read]
        return [["" if label is None else label for label in row] for row in rows]

    def lengths(texts: Sequence[str]) -> list[int]:
        tokenizer = CheXbert(folder / "chexbert.pth", vocabulary)._tokenizer
        return list(tokenizer(texts, max_tokens=512).lengths.tolist())

    return Pair(
        ours=lambda precision: CheXbert(
            folder / "chexbert.pth", vocabulary, device=device, precision=precision
        ),
        package=lambda texts: [model.get_label(text, mode="classification") for text in texts],
        answers=answers,
        lengths=lengths,
    )
