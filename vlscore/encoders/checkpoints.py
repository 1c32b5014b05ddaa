"""Tensors from checkpoint files of any usual container; nothing in a file is ever run."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlscore.encoders.unpickling import read_archive
from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint, WeightsNotFound

_ZIP = b"PK\x03\x04"


def load_checkpoint(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, a torch state_dict or a lightning checkpoint, by key.

    Of a checkpoint that holds a "state_dict" beside other things, only that is kept. Tensors share
    memory with the file, which must stay as long as they are in use.

    Raises:
        WeightsNotFound: there is no such file.
        UnsafeCheckpoint: it would run code, lies about its content, or is damaged.
        IncompatibleCheckpoint: it holds no tensors.
    """
    path = Path(path)
    if not path.is_file():
        raise WeightsNotFound(f"{path}: no such checkpoint file")
    content = _read(path)
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict):
        raise IncompatibleCheckpoint(f"{path} holds no dictionary of tensors")
    tensors = {key: x for key, x in content.items() if isinstance(x, Tensor)}
    if not tensors:
        raise IncompatibleCheckpoint(f"{path} holds no tensors by name")
    return {str(key): value.detach() for key, value in tensors.items()}


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """Hexadecimal sha256 of keys, types, shapes and values, whatever the order and container.

    >>> tensors_digest({"a": torch.zeros(2)}) == tensors_digest({"a": torch.zeros(2).clone()})
    True
    """
    with ThreadPoolExecutor() as pool:
        parts = pool.map(_digest_of_one, sorted(tensors), [tensors[key] for key in sorted(tensors)])
        return hashlib.sha256(b"".join(parts)).hexdigest()


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        head = file.read(len(_ZIP))
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if head == _ZIP:
        return read_archive(path)
    return _read_legacy(path)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, ValueError) as error:
        raise UnsafeCheckpoint(f"{path} is damaged: {error}; download it again") from None


def _read_legacy(path: Path) -> Any:
    """Files of torch before 1.6: plain state_dicts only."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can fail in any way
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsafeCheckpoint(
            f"{path} was not loaded: {reason} Give a state_dict saved by torch, or safetensors"
        ) from None


def _digest_of_one(key: str, tensor: Tensor) -> bytes:
    digest = hashlib.sha256(f"{key}\n{tensor.dtype}\n{tuple(tensor.shape)}\n".encode())
    digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()
