"""Tiny checkpoints of pseudo-random weights in the layout of RaTEScore's two models."""

import json
from pathlib import Path

from tests.metrics.networks.constructed import (
    BERT,
    REPORTS,
    tensors_of,
    write_bert,
    write_vocabulary,
)

TYPES = ("ABNORMALITY", "NON-ABNORMALITY", "DISEASE", "NON-DISEASE", "ANATOMY")
LABELS = ("O", *(f"{mark}-{name}" for name in TYPES for mark in "BI"))
DEBERTA = {
    "model_type": "deberta-v2",
    "architectures": ["DebertaV2ForTokenClassification"],
    "vocab_size": BERT["vocab_size"],
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
    "relative_attention": True,
    "position_buckets": 16,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "id2label": dict(enumerate(LABELS)),
    "label2id": {label: row for row, label in enumerate(LABELS)},
}
# Reports that RuSH cuts in ways of its own.
CUT = (
    *REPORTS[:5],
    *REPORTS[6:],
    "FINDINGS: The heart is normal.\n\nIMPRESSION:\n1. Small effusion.\n2. No pneumothorax",
    "Dr. Smith was told. left effusion , no edema .right lobe is clear. 2) The heart is large",
    "1.Large opacity  of the left base.\n- small effusion\n- the Lung is clear; edema, 2.5 cm. x",
)


def write_ratescore(folder: Path) -> tuple[Path, Path]:
    """The folders of the model that finds entities and of the one that encodes them."""
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification

    places = folder / "RaTE-NER", folder / "BioLORD"
    for place, settings, kind in (
        (places[0], DEBERTA, AutoModelForTokenClassification),
        (places[1], BERT, AutoModel),
    ):
        write_bert(place)
        write_vocabulary(place)
        (place / "config.json").write_text(json.dumps(settings))
        model = kind.from_config(AutoConfig.from_pretrained(place))
        tensors = tensors_of({key: tuple(t.shape) for key, t in model.state_dict().items()})
        for key, tensor in tensors.items():
            if key.startswith("classifier") or "embeddings.weight" in key:
                # Labels, and entities, that lie far enough apart.
                tensor *= 8
        save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    return places
