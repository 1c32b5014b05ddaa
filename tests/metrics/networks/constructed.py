"""Checkpoints of pseudo-random weights in the layouts that CheXbert and RadGraph are published in.

Names and shapes of their tensors are those that the released packages' models have
(goldens/*.json); the numbers follow from the names.
"""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.encoders.goldens import fill

GOLDENS = Path(__file__).parent / "goldens"
WORDS = (
    "the", "no", "is", "are", "of", "right", "left", "lung", "heart", "effusion", "pleural",
    "normal", "size", "clear", "small", "large", "pneumothorax", "opacity", "##ly", "cardio",
    "##megaly", "consolid", "##ation", "edema", "none", "base", "##al", "lower", "lobe", "in",
    "there",
)  # fmt: skip
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PIECES = (
    *_SPECIAL, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *".,:;!?()/%'\"-`\\", *WORDS,
)  # fmt: skip
BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": len(PIECES),
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 512,
}
REPORTS = (
    "There is a small left pleural effusion. The heart is normal in size.",
    "There is a small right pleural effusion. The Heart is normal.",
    "No focal consolidation, effusion or pneumothorax.\nThe lungs are clear.",
    "LARGE right pneumothorax (30%), with collapse of the right lung; tube in place.",
    "Mild cardiomegaly: 2.5cm/3.0cm opacity. It's at the left base!",
    '  \\n None.\\f effusion\\u2122 \\"clear\\" 50%. 20%, ok?  ',
    "Clear",
    "unchanged /. opacity \u80ba \u00c9dema [UNK] ",
    " ".join(["The right lung is clear and the left lower lobe is opacified."] * 6),
)
# The last exceeds the 512 tokens that CheXbert reads.
LONG = " ".join(["No pleural effusion, and the heart is normal in size."] * 60)
UNUSUAL = ("", " \n ", "\u200b \x00")
LABELS = {
    "radgraph__ner_labels": ["", "ANAT-DP", "OBS-DP", "OBS-U", "OBS-DA"],
    "radgraph__relation_labels": ["modify", "located_at", "suggestive_of"],
}
MAX_PIECES = 40


def tensors_of(shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """The pseudo-random tensors of these names and shapes."""
    found = {}
    for key, shape in shapes.items():
        kind = "int64" if key.endswith("position_ids") else "float32"
        found[key] = torch.from_numpy(np.array(fill(key, tuple(shape), kind)))
    return found


def write_vocabulary(folder: Path) -> Path:
    path = folder / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    return path


def write_bert(folder: Path) -> Path:
    """What transformers needs to build the BERT and its tokenizer without a network."""
    folder.mkdir(parents=True, exist_ok=True)
    write_vocabulary(folder)
    (folder / "config.json").write_text(json.dumps(BERT))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )
    return folder


def golden(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDENS / f"{name}.json").read_text(encoding="utf-8"))
    return content


def write_chexbert(folder: Path, shapes: Mapping[str, Sequence[int]] | None = None) -> Path:
    """chexbert.pth as published: of DataParallel, beside an optimizer's state; and vocab.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    write_vocabulary(folder)
    tensors = tensors_of(golden("chexbert")["shapes"] if shapes is None else shapes)
    path = folder / "chexbert.pth"
    content = {
        "epoch": 1,
        "model_state_dict": {f"module.{key}": tensor for key, tensor in tensors.items()},
        "optimizer_state_dict": {"state": {}, "param_groups": []},
    }
    torch.save(content, path)
    return path


def radgraph_config(bert: str, max_pieces: int = MAX_PIECES) -> dict[str, Any]:
    """config.json with the settings that RadGraph was trained with."""
    embedder = {"type": "pretrained_transformer_mismatched", "model_name": bert}
    bert_settings = {"bert": {**embedder, "max_length": max_pieces}}
    return {
        "dataset_reader": {
            "type": "dygie",
            "max_span_width": 8,
            "token_indexers": bert_settings,
        },
        "model": {
            "type": "dygie",
            "embedder": {"token_embedders": bert_settings},
            "initializer": {},
            "module_initializer": {},
            "feature_size": 20,
            "max_span_width": 8,
            "target_task": "relation",
            "feedforward_params": {"num_layers": 2, "hidden_dims": 48, "dropout": 0.4},
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


def radgraph_tensors(shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """As `tensors_of`, with heads so far apart that reports have some entities and relations."""
    tensors = tensors_of(shapes)
    for key, tensor in tensors.items():
        if "_ner_scorers" in key and key.endswith("1._module.weight"):
            tensor *= 6
        if "_relation_scorers" in key and key.endswith("weight"):
            tensor *= 6
        if "_ner_scorers" in key and key.endswith("1._module.bias"):
            tensor -= 2.0
    return tensors


def write_radgraph(
    folder: Path,
    bert: str,
    tensors: Mapping[str, Tensor] | None = None,
    *,
    max_pieces: int = MAX_PIECES,
    dataset: str = "radgraph",
) -> Path:
    """The files of an archive, not yet packed, and vocab.txt."""
    (folder / "vocabulary").mkdir(parents=True, exist_ok=True)
    write_vocabulary(folder)
    (folder / "config.json").write_text(json.dumps(radgraph_config(bert, max_pieces)))
    (folder / "vocabulary" / "non_padded_namespaces.txt").write_text("*tags\n*labels\n")
    for name, labels in LABELS.items():
        path = folder / "vocabulary" / f"{name.replace('radgraph', dataset)}.txt"
        path.write_text("".join(f"{label}\n" for label in labels))
    if tensors is None:
        tensors = radgraph_tensors(golden("radgraph")["shapes"])
    renamed = {key.replace("radgraph__", f"{dataset}__"): t for key, t in tensors.items()}
    torch.save(renamed, folder / "weights.th")
    return folder


def pack(folder: Path, target: Path, *, extra: Mapping[str, bytes] | None = None) -> Path:
    """A .tar.gz of a folder, as AllenNLP makes it."""
    with tarfile.open(target, "w:gz") as tar:
        for path in sorted(folder.rglob("*")):
            if path.name != "vocab.txt":
                tar.add(path, f"./{path.relative_to(folder)}", recursive=False)
        for name, content in (extra or {}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return target
