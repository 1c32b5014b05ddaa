"""The same input gives the same numbers: full precision, no training mode, a real device."""

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tests.doubles import HashEncoder
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import (
    check_device,
    check_precision,
    check_ready,
    inference,
    load_encoder,
    why_slow,
)
from vlscore.errors import BrokenContract, InvalidSetting, SlowPrecisionWarning

CPU = torch.device("cpu")
BACKENDS: Any = torch.backends


def switches() -> dict[str, Any]:
    """Everything that lets PyTorch compute float32 in fewer bits."""
    found: dict[str, Any] = {}
    readers: dict[str, Callable[[], Any]] = {
        "cudnn.allow_tf32": lambda: BACKENDS.cudnn.allow_tf32,
        "matmul.allow_tf32": lambda: BACKENDS.cuda.matmul.allow_tf32,
        "precision": torch.get_float32_matmul_precision,
        "matmul": lambda: BACKENDS.cuda.matmul.fp32_precision,
        "cudnn.conv": lambda: BACKENDS.cudnn.conv.fp32_precision,
        "cudnn.rnn": lambda: BACKENDS.cudnn.rnn.fp32_precision,
        "mkldnn.matmul": lambda: BACKENDS.mkldnn.matmul.fp32_precision,
    }
    for name, read in readers.items():
        try:
            found[name] = read()
        except (AttributeError, RuntimeError) as error:
            found[name] = type(error)
    return found


def check_full_precision() -> None:
    found = switches()
    for name in ("matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul"):
        assert found[name] in ("ieee", AttributeError), name
    assert found["cudnn.allow_tf32"] in (False, RuntimeError)
    assert found["matmul.allow_tf32"] in (False, RuntimeError)
    assert found["precision"] in ("highest", RuntimeError)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = switches()
    yield
    torch.backends.cudnn.allow_tf32 = before["cudnn.allow_tf32"]
    torch.backends.cuda.matmul.allow_tf32 = before["matmul.allow_tf32"]
    torch.set_float32_matmul_precision(before["precision"])


def tf32() -> None:
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.matmul.allow_tf32 = True


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_fp32_means_fp32_and_every_switch_is_set_back(precision):
    tf32()
    before = switches()
    with inference(CPU, precision):
        check_full_precision()
        with inference(CPU, precision):
            check_full_precision()
        check_full_precision()
    assert switches() == before
    with pytest.raises(ZeroDivisionError), inference(CPU, precision):
        raise ZeroDivisionError
    assert switches() == before


def test_the_last_thread_to_leave_sets_back():
    tf32()
    before, seen = switches(), []
    entered, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with inference(CPU, "fp32"):
            entered.set()
            may_leave.wait(10)
            seen.append(switches())

    thread = threading.Thread(target=stay)
    with inference(CPU, "fp32"):
        thread.start()
        assert entered.wait(10)
    check_full_precision()
    may_leave.set()
    thread.join()
    assert seen[0]["matmul.allow_tf32"] is False
    assert switches() == before


class WithDropout(HashEncoder):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def embed_images(self, pixels: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.dropout(super().embed_images(pixels))
        return found


def test_an_encoder_in_training_mode_is_refused():
    encoder = WithDropout()
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for embed in (
        lambda: encoder.encode_images([picture]),
        lambda: encoder.encode_reports(["x"]),
        lambda: check_ready(encoder),
    ):
        with pytest.raises(BrokenContract, match=r"hash is in training mode.*encoder\.eval\(\)"):
            embed()
    assert encoder.dropout.training, "the mode is the caller's"
    encoder.eval()
    check_ready(encoder)
    assert torch.equal(encoder.encode_images([picture]), encoder.encode_images([picture]))


@pytest.mark.parametrize("device", ["gpu", "", "cuda:x", None, "cpu:1", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(InvalidSetting, match="this machine has cpu"):
        check_device(device)


@pytest.mark.parametrize("precision", ["half", "", "FP32", None])
def test_a_precision_that_there_is_not_is_refused(precision):
    with pytest.raises(InvalidSetting, match='"fp32", "bf16" or "fp16"'):
        check_precision(precision)


def test_fp16_is_for_gpus():
    check_precision("fp16")
    check_precision("fp16", torch.device("cuda"))
    with pytest.raises(InvalidSetting, match="fp16 is for GPUs"):
        check_precision("fp16", CPU)
    with pytest.raises(InvalidSetting, match="fp16 is for GPUs"):
        StudyEmbedder("phantom", device="cpu", precision="fp16")


@pytest.mark.parametrize(
    ("flags", "slow"),
    [
        ({"avx2", "avx512f"}, True),
        ({"avx512f", "avx512_bf16"}, False),
        ({"amx_tile", "amx_bf16"}, False),
        ({"asimd", "bf16"}, False),
        (set(), False),  # nobody says what it can do
    ],
)
def test_bf16_without_units_for_it_is_said_to_be_slower(monkeypatch, flags, slow):
    monkeypatch.setattr("vlscore.encoders.devices._processor_flags", lambda: frozenset(flags))
    assert (why_slow("bf16", CPU) is not None) is slow
    assert why_slow("fp32", CPU) is None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SlowPrecisionWarning)
        StudyEmbedder(HashEncoder(), precision="bf16")
    said = [each for each in caught if each.category is SlowPrecisionWarning]
    assert len(said) == slow


@pytest.mark.gpu
def test_fp16_on_a_gpu_is_near_fp32():
    encoder = load_encoder("phantom", device="cuda")
    found = [
        encoder.encode_reports(["Small left effusion."], precision=p)
        for p in ("fp32", "bf16", "fp16")
    ]
    for half in found[1:]:
        assert not torch.equal(half, found[0])
        assert torch.allclose(half, found[0], atol=0.05 * float(found[0].norm()))
