"""Reports and studies embedded as the authors' repository does it, to measure ours against.

Written anew from reading gefend/LIMITR (commit 891468e; Dawidowicz, Hirsch and Tal, ICCV 2023): one
study at a time, OpenCV reads, reduces and pads the image; 97 tokens whatever the length; BERT with
all its layers; a Python loop over tokens that adds pieces up to words; the global and the local
image maps; then the area.

Run by other benchmarks: python benchmarks/authors_way.py TABLE WEIGHTS OUT
"""

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from vlscore.data import clean_limitr

POSITIONS = 97


def add_up_pieces(states: Any, ids: Any, piece_of: Callable[[int], str]) -> Any:
    """(97, layers, 768) of one report: pieces added up to words, one token at a time.

    Args:
        states: (tokens, layers, 768).
        ids: (tokens,) the pieces' numbers.
        piece_of: the piece of a number.
    """
    words: list[Any] = []
    open_word: list[Any] = []
    for state, number in zip(states, ids, strict=True):
        piece = piece_of(number.item())
        if open_word and not piece.startswith("##"):
            words.append(torch.stack(open_word).sum(dim=0))
            open_word = []
        if piece == "[SEP]":
            words.append(state)
            break
        open_word.append(state)
    found = torch.stack(words)
    padding = torch.zeros(POSITIONS - len(found), *found.shape[1:], device=found.device)
    return torch.cat([found, padding])


def image_tower() -> Any:
    """Their ResNet-50 at 299 pixels with a global and a local head."""
    from torch import nn
    from torchvision.models import resnet50

    class Image50(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = resnet50(weights=None)
            self.model.fc = nn.Identity()
            self.global_embedder = nn.Linear(2048, 768)
            self.local_embedder = nn.Conv2d(1024, 768, kernel_size=1, bias=False)

        def forward(self, x: Any) -> Any:
            model = self.model
            x = nn.Upsample(size=(299, 299), mode="bilinear", align_corners=True)(x)
            x = model.maxpool(model.relu(model.bn1(model.conv1(x))))
            local = model.layer3(model.layer2(model.layer1(x)))
            pooled = nn.AdaptiveAvgPool2d((1, 1))(model.layer4(local)).flatten(1)
            return self.global_embedder(pooled), self.local_embedder(local)

    return Image50().eval()


def read_image(path: Path) -> Any:
    """(3, 224, 224) float32."""
    import cv2
    import numpy as np
    from PIL import Image
    from torchvision import transforms

    finish = transforms.Compose(
        [
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        ]
    )
    grey = cv2.imread(str(path), 0)
    height, width = grey.shape
    scale = 256 / float(max(height, width))
    size = (int(width * scale), 256) if height >= width else (256, int(height * scale))
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    rows, columns = 256 - small.shape[0], 256 - small.shape[1]
    padding = [(rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2)]
    square = np.pad(small, padding)
    return finish(Image.fromarray(square).convert("RGB"))


def loop(table: Path, weights: Path, out: Path) -> None:
    """One study after the other; the areas go to a file of the columns id and area.

    Args:
        table: of columns id, image, reference, candidate, as JSON lines.
        weights: a folder with the checkpoint model.ckpt and vocab.txt.
    """
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel

    def part(prefix: str) -> dict[str, Any]:
        return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}

    checkpoint = torch.load(weights / "model.ckpt", map_location="cpu", weights_only=True)
    tensors = checkpoint["state_dict"]
    tower = image_tower()
    tower.load_state_dict(part("limitr.img_encoder_f."))
    bert_tensors = part("limitr.text_encoder.model.")
    pieces = len(bert_tensors["embeddings.word_embeddings.weight"])
    bert = BertModel(BertConfig(vocab_size=pieces), add_pooling_layer=False).eval()
    bert.load_state_dict(bert_tensors)
    tokenizer = BertWordPieceTokenizer(str(weights / "vocab.txt"), lowercase=True)
    tokenizer.enable_truncation(POSITIONS)
    tokenizer.enable_padding(length=POSITIONS)
    names = {number: piece for piece, number in tokenizer.get_vocab().items()}

    def report_of(text: str) -> Any:
        encoded = tokenizer.encode(clean_limitr(text))
        ids, mask = torch.tensor([encoded.ids]), torch.tensor([encoded.attention_mask])
        layers = bert(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        states = torch.stack(layers[-4:]).permute(1, 2, 0, 3)
        by_word = torch.stack(
            [add_up_pieces(s, i, names.__getitem__) for s, i in zip(states, ids, strict=True)]
        )
        by_word.sum(dim=2)  # the local vectors, which the authors' forward pass gives as well
        return by_word.mean(dim=1).sum(dim=1)[0]

    with torch.no_grad(), out.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "area"])
        for line in table.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            i = tower(read_image(table.parent / row["image"])[None])[0][0].double()
            g, r = report_of(row["candidate"]).double(), report_of(row["reference"]).double()
            a, b = g - i, r - i
            area = 0.5 * torch.sqrt((a @ a) * (b @ b) - (a @ b) ** 2)
            writer.writerow([row["id"], float(area)])


if __name__ == "__main__":
    loop(*map(Path, sys.argv[1:]))
