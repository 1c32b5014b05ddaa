"""Rebuilds the authors' checkpoints from their manifests, and compares encoders with goldens.

The folder data beside this file holds a slice of the goldens, enough to prove every encoder in a
clean checkout: one image, three reports, every fourth number of long vectors. The whole of them is
compared too where ../shared is present.
"""

import hashlib
import json
import lzma
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.data import ImagePolicy, Radiograph, as_radiograph
from vlscore.encoders import ImagePipeline, JointEncoder, load_encoder

DATA = Path(__file__).parent / "data"
SALT = "public"
STEP = 4
# Which encoders read which vocabulary, by the folders' names.
VOCABULARIES: dict[str, tuple[str, ...]] = {
    "bert-base-cased": (
        "convirt",
        "convirt_mgca",
        "gloria",
        "limitr",
        "medclip_resnet",
        "medclip_vit",
        "mgca_resnet50",
        "mgca_vit",
    ),
    "bert-base-uncased": ("biomedclip",),
    "cxr-bert": ("biovil", "biovil_t"),
}
TOLERANCE = 2e-5
INDEPENDENCE = 1e-5


@dataclass(frozen=True)
class Golden:
    """What one encoder's authors' code returned, and what it was given.

    Attributes:
        name: the encoder's folder of goldens.
        arrays: the stored arrays by name; "image" and "report" are the global vectors.
        images: the paths of the input images.
        texts: the input reports that the authors' code did not drop.
        step: 4 where only every fourth number of a long vector is stored.
    """

    name: str
    arrays: dict[str, NDArray]
    images: list[Path]
    texts: list[str]
    step: int = 1

    @classmethod
    def of(cls, name: str) -> "Golden":
        """The slice that lies in this repository."""
        name = name.partition(":")[0].replace("-", "_")
        with np.load(DATA / "goldens.npz") as stored:
            arrays = {
                key.removeprefix(f"{name}/"): stored[key]
                for key in stored.files
                if key.startswith(f"{name}/")
            }
        return cls(name, arrays, [DATA / "film.png"], described()["texts"], STEP)

    def whole(self, shared: Path) -> "Golden":
        """All of them, from ../shared."""
        encoders = shared / "encoders"
        with np.load(encoders / self.name / f"golden_{SALT}.npz") as stored:
            arrays = dict(stored)
        inputs = encoders / f"inputs_{SALT}"
        texts = json.loads((inputs / "texts.json").read_text(encoding="utf-8"))
        kept = arrays.get("text_index", np.arange(len(texts)))
        arrays["image"] = arrays["img_global"]
        # Of MedCLIP's, those that depend on no batch: alone, no text is averaged over padding.
        alone = "txt_global_single"
        arrays["report"] = arrays[alone if alone in arrays else "txt_global"]
        images = sorted(inputs.glob("img*.png"))
        return Golden(self.name, arrays, images, [texts[i] for i in kept])

    def __getitem__(self, name: str) -> NDArray:
        return self.arrays[name]

    def compare(self, found: Tensor, name: str) -> float:
        """The largest relative error of a row of vectors against those stored."""
        vectors = found.numpy()
        if self.step > 1 and vectors.shape[1] > 128:
            vectors = vectors[:, :: self.step]
        return row_error(vectors, self[name])

    def tensors(self, manifest: str = "manifest.json") -> dict[str, Tensor]:
        """The whole checkpoint of pseudo-random tensors that the goldens were made with."""
        return {
            key: torch.from_numpy(fill(key, tuple(shape), dtype))
            for key, shape, dtype in described()["manifests"][self.name][manifest]
        }

    def vocabulary(self, folder: Path) -> Path:
        """A vocab.txt in `folder`: the pieces that the goldens need, at their places."""
        (vocabulary,) = (name for name, users in VOCABULARIES.items() if self.name in users)
        listed = described()["vocabularies"][vocabulary]
        # In a full vocabulary these places hold words that no golden has.
        pieces = [f"\u00a7{number}" for number in range(listed["size"])]
        for number, piece in listed["pieces"]:
            pieces[number] = piece
        path = folder / "vocab.txt"
        path.write_text("\n".join(pieces) + "\n", encoding="utf-8")
        return path


@cache
def described() -> dict[str, Any]:
    """Manifests of the authors' checkpoints, texts, vocabularies."""
    content: dict[str, Any] = json.loads(lzma.decompress((DATA / "described.json.xz").read_bytes()))
    return content


def clinical_vocabulary(shared: Path) -> Path:
    return shared / "encoders" / "vocab" / "bert-base-cased" / "vocab.txt"


def save_lightning(path: Path, tensors: Mapping[str, Tensor], hyper_parameters: object) -> Path:
    """A checkpoint as lightning 1.1 wrote it, callback class and all."""
    model_checkpoint = foreign_class(
        "pytorch_lightning.callbacks.model_checkpoint", "ModelCheckpoint"
    )
    torch.save(
        {
            "epoch": 12,
            "global_step": 34,
            "pytorch-lightning_version": "1.1.4",
            "callbacks": {model_checkpoint: {"best_model_score": torch.tensor(0.5)}},
            "optimizer_states": [],
            "state_dict": dict(tensors),
            "hyper_parameters": hyper_parameters,
        },
        path,
    )
    return path


def omegaconf_dict() -> object:
    """An instance that pickles as OmegaConf's DictConfig, a class the loader must not need."""
    config = foreign_class("omegaconf.dictconfig", "DictConfig")()
    config.__dict__.update(_content={"model": {"text": {"norm": False}}}, _metadata=None)
    return config


def foreign_class(module: str, name: str) -> type:
    """A class that pickles under the name of one from a library that is not installed."""
    created = type(name, (), {"__module__": module})
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    setattr(sys.modules[module], name, created)
    return created


def forget_foreign_classes() -> None:
    """Take the invented libraries away again."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("omegaconf", "pytorch_lightning")]:
        del sys.modules[name]


def load_as_authors(name: str, weights: Path, tokenizer: Path | None) -> JointEncoder:
    """Through the public loader, reading image files as the authors' code does."""
    return load_encoder(name, weights=weights, tokenizer=tokenizer, image_policy="authors")


def assert_same(encoder: JointEncoder, golden: Golden) -> None:
    """The authors' pixels and token ids exactly, and their global vectors."""
    assert_same_pixels(encoder.image_pipeline, golden)
    assert_same_tokens(encoder, golden)
    assert_same_embeddings(encoder, golden)


def assert_same_pixels(pipeline: ImagePipeline, golden: Golden) -> None:
    """Exactly the authors' pixels: from files read their way, and from 8-bit radiographs."""
    for policy, images in ((ImagePolicy(as_authors=True), golden.images), (ImagePolicy(), None)):
        # The last of the whole material's four has 16 bits, which only the authors' way darkens.
        for number, path in enumerate(images or golden.images[:3]):
            pixels = pipeline.load(path, policy)
            assert pixels.dtype == torch.float32
            assert sha256(pixels) == golden["pix_sha256"][number], f"{path.name}, {policy}"


def assert_same_tokens(encoder: JointEncoder, golden: Golden) -> None:
    """Exactly the authors' token ids, padding included."""
    tokens = encoder.tokenize(golden.texts)
    width = tokens.ids.shape[1]
    # Three reports need not be padded as far as six.
    expected, rest = golden["input_ids"][:, :width], golden["input_ids"][:, width:]
    np.testing.assert_array_equal(tokens.ids.numpy(), expected)
    assert (rest == golden["input_ids"][0, -1]).all()
    if "attention_mask" in golden.arrays:
        np.testing.assert_array_equal(tokens.mask.numpy(), golden["attention_mask"][:, :width])
        assert not golden["attention_mask"][:, width:].any()


def assert_same_embeddings(encoder: JointEncoder, golden: Golden) -> None:
    """The authors' global vectors, whatever the batch."""
    images = encoder.encode_images(golden.images)
    assert images.shape == (len(golden.images), encoder.card.dim)
    assert images.dtype == torch.float32
    assert golden.compare(images, "image") <= TOLERANCE
    texts = encoder.encode_reports(golden.texts)
    assert texts.shape == (len(golden.texts), encoder.card.dim)
    assert texts.dtype == torch.float32
    assert golden.compare(texts, "report") <= TOLERANCE
    alone = encoder.encode_reports(golden.texts[:1])
    assert row_error(alone, texts[:1]) <= INDEPENDENCE
    if len(golden.images) > 1:
        assert row_error(encoder.encode_images(golden.images[:1]), images[:1]) <= INDEPENDENCE


def row_error(found: Tensor | NDArray, expected: Tensor | NDArray) -> float:
    """Largest relative error of a row, in the Euclidean norm; of zeros, the absolute error."""
    found, expected = (np.asarray(x, np.float64).reshape(len(x), -1) for x in (found, expected))
    distances, lengths = (np.linalg.norm(x, axis=1) for x in (found - expected, expected))
    return float((distances / np.where(lengths > 0, lengths, 1)).max())


def sha256(pixels: Tensor) -> str:
    return hashlib.sha256(np.ascontiguousarray(pixels.numpy()).tobytes()).hexdigest()


def radiograph(path: Path) -> Radiograph:
    return as_radiograph(path, ImagePolicy())


def fill(key: str, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """The pseudo-random tensor that stands under a key in every constructed checkpoint.

    The rule is that of the material's fill.py: values near a normal distribution of Philox's raw
    output, seeded by the key, of a size that keeps activations in bounds. A key that is read by a
    wrong name, or a shape that is turned, so gives other embeddings.
    """
    kind = np.dtype(dtype)
    leaf = key.rsplit(".", 1)[-1]
    if kind.kind in "iu":
        if leaf == "num_batches_tracked":
            return np.zeros(shape, kind)
        if leaf == "relative_position_index":
            return _swin_positions(shape[0]).reshape(shape).astype(kind)
        assert leaf == "position_ids", key
        return np.broadcast_to(np.arange(shape[-1]), shape).astype(kind)
    offset, scale = _offset_and_scale(key, leaf, shape)
    values = _near_normal(key, math.prod(shape), offset, scale)
    return values.astype(kind, copy=False).reshape(shape)


_POSITIONS = (
    "position_embedding", "positional_embedding", "pos_embed", "cls_token", "class_embedding",
    "type_embed", "missing_previous_emb",
)  # fmt: skip


def _offset_and_scale(key: str, leaf: str, shape: tuple[int, ...]) -> tuple[float, float]:
    if leaf == "logit_scale":
        return 2.659260036932778, 0.05
    if leaf == "running_var":
        return 1.0, 0.07
    if leaf == "running_mean" or leaf in _POSITIONS or leaf.startswith("relative_position_bias"):
        return 0.0, 0.1
    if leaf in ("text_projection", "proj") and len(shape) == 2:
        return 0.0, 1.0 / math.sqrt(shape[0])
    if len(shape) <= 1:
        if leaf != "weight":
            return 0.0, 0.05
        return (0.25, 0.025) if ".bn3." in key else (1.0, 0.1)
    if "embeddings." in key and leaf == "weight" and len(shape) == 2:
        return 0.0, 0.05
    gain = math.sqrt(2.0) if len(shape) == 4 else 1.0
    return 0.0, gain / math.sqrt(math.prod(shape[1:]))


def _near_normal(key: str, count: int, offset: float, scale: float) -> NDArray[np.float32]:
    """The sum of the four 16-bit lanes of each of Philox's words, centred and scaled."""
    digest = hashlib.sha256(f"{SALT}\n{key}".encode()).digest()
    generator = np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8"), counter=0)
    values = np.empty(count, dtype=np.float32)
    # Parts that stay in the processor's cache: checkpoints have 10^8 numbers.
    step = 1 << 14
    for start in range(0, count, step):
        halves = generator.random_raw(min(step, count - start)).view(np.uint32)
        pairs = (halves & 0xFFFF) + (halves >> 16)
        part = np.subtract(pairs[::2] + pairs[1::2], 131070.0)
        part *= 1.0 / 37837.227347
        part *= scale
        part += offset
        values[start : start + step] = part
    return values


def _swin_positions(count: int) -> NDArray[Any]:
    side = math.isqrt(count)
    rows, columns = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    places = np.stack([rows.ravel(), columns.ravel()])
    apart = (places[:, :, None] - places[:, None, :]).transpose(1, 2, 0) + (side - 1)
    return np.asarray(apart[:, :, 0] * (2 * side - 1) + apart[:, :, 1])
