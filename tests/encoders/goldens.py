"""Rebuilds the authors' checkpoints from their manifests, and compares encoders with goldens."""

import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.encoders import ImagePipeline, JointEncoder, load_encoder
from vlscore.images import ImagePolicy, Radiograph, as_radiograph

SALT = "public"
TOLERANCE = 2e-5
INDEPENDENCE = 1e-5


@dataclass(frozen=True)
class Golden:
    """What one encoder's authors' code returned, and what it was given.

    Attributes:
        folder: the encoder's folder of manifests and goldens.
        arrays: the stored arrays by name.
        images: the paths of the input images.
        texts: the input reports that the authors' code did not drop.
    """

    folder: Path
    arrays: dict[str, NDArray]
    images: list[Path]
    texts: list[str]

    @classmethod
    def of(cls, shared: Path, name: str) -> "Golden":
        encoders = shared / "encoders"
        with np.load(encoders / name / f"golden_{SALT}.npz") as stored:
            arrays = dict(stored)
        inputs = encoders / f"inputs_{SALT}"
        texts = json.loads((inputs / "texts.json").read_text(encoding="utf-8"))
        kept = arrays.get("text_index", np.arange(len(texts)))
        return cls(
            encoders / name, arrays, sorted(inputs.glob("img*.png")), [texts[i] for i in kept]
        )

    def __getitem__(self, name: str) -> NDArray:
        return self.arrays[name]

    def tensors(
        self, manifest: str = "manifest.json", known: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """The whole checkpoint of pseudo-random tensors that the goldens were made with.

        Args:
            known: tensors of another checkpoint; those of the same key and shape are the same.
        """
        filler = _load_filler(self.folder.parent / "fill.py")
        listed = json.loads((self.folder / manifest).read_text(encoding="utf-8"))["tensors"]
        tensors = {}
        for key, shape, dtype in (
            (entry["key"], entry["shape"], entry["dtype"]) for entry in listed
        ):
            tensor = (known or {}).get(key)
            if tensor is None or list(tensor.shape) != shape:
                tensor = torch.from_numpy(np.array(filler.fill(key, shape, dtype, SALT)))
            tensors[key] = tensor
        return tensors


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


def assert_same_pixels(pipeline: ImagePipeline, golden: Golden) -> None:
    """Exactly the authors' pixels: from files read their way, and from 8-bit radiographs."""
    for policy, images in ((ImagePolicy(as_authors=True), golden.images), (ImagePolicy(), None)):
        for number, path in enumerate(images or golden.images[:3]):
            pixels = pipeline.load(path, policy)
            assert pixels.dtype == torch.float32
            assert sha256(pixels) == golden["pix_sha256"][number], f"{path.name}, {policy}"


def assert_same_tokens(encoder: JointEncoder, golden: Golden) -> None:
    """Exactly the authors' token ids, padding included."""
    tokens = encoder.tokenize(golden.texts)
    np.testing.assert_array_equal(tokens.ids.numpy(), golden["input_ids"])
    if "attention_mask" in golden.arrays:
        np.testing.assert_array_equal(tokens.mask.numpy(), golden["attention_mask"])


def assert_same_embeddings(
    encoder: JointEncoder, golden: Golden, *, reports: str = "txt_global"
) -> None:
    """The authors' global vectors, whatever the batch."""
    images = encoder.encode_images(golden.images)
    assert images.shape == (len(golden.images), encoder.card.dim)
    assert images.dtype == torch.float32
    assert row_error(images, golden["img_global"]) <= TOLERANCE
    texts = encoder.encode_reports(golden.texts)
    assert texts.shape == (len(golden.texts), encoder.card.dim)
    assert texts.dtype == torch.float32
    assert row_error(texts, golden[reports]) <= TOLERANCE
    alone = encoder.encode_reports(golden.texts[::-1], batch_size=1).flip(0)
    assert row_error(alone, texts) <= INDEPENDENCE
    assert row_error(encoder.encode_images(golden.images[:2], batch_size=1), images[:2]) <= (
        INDEPENDENCE
    )


def row_error(found: Tensor | NDArray, expected: Tensor | NDArray) -> float:
    """Largest relative error of a row, in the Euclidean norm."""
    found, expected = (np.asarray(x, np.float64).reshape(len(x), -1) for x in (found, expected))
    distances = np.linalg.norm(found - expected, axis=1)
    return float((distances / np.linalg.norm(expected, axis=1)).max())


def sha256(pixels: Tensor) -> str:
    return hashlib.sha256(np.ascontiguousarray(pixels.numpy()).tobytes()).hexdigest()


def radiograph(path: Path) -> Radiograph:
    return as_radiograph(path, ImagePolicy())


def _load_filler(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_fill", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module._normal = normal_values(module)
    return module


def normal_values(filler: ModuleType) -> Callable[[str, int, str], NDArray[np.float64]]:
    """The filler's own values, bit for bit, in a quarter of its time."""

    def normal(key: str, count: int, salt: str) -> NDArray[np.float64]:
        digest = hashlib.sha256(f"{salt}\n{key}".encode()).digest()
        generator = np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8"), counter=0)
        values = np.empty(count, dtype=np.float64)
        step = 1 << 18
        for start in range(0, count, step):
            raw = generator.random_raw(min(step, count - start))
            # The sum of the four 16-bit lanes of each 64-bit word.
            pairs = (raw & 0x0000FFFF0000FFFF) + ((raw >> 16) & 0x0000FFFF0000FFFF)
            lanes = ((pairs & 0xFFFFFFFF) + (pairs >> 32)).astype(np.int64)
            values[start : start + step] = (lanes - filler._CENTRE) * filler._INV_STD
        return values

    return normal
