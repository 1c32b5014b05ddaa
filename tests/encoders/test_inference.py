"""The same input gives the same numbers: full precision, no training mode, a real device."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tests.doubles import HashEncoder
from vlscore.encoders.inference import check_device, check_ready, inference
from vlscore.errors import BrokenContract, InvalidSetting

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


def as_it_starts() -> None:
    pass


def tf32() -> None:
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.matmul.allow_tf32 = True


def medium() -> None:
    torch.set_float32_matmul_precision("medium")


@pytest.mark.parametrize("settings", [as_it_starts, tf32, medium])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_fp32_means_fp32_and_every_switch_is_set_back(settings, precision):
    settings()
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


def test_precision_is_one_of_two():
    with pytest.raises(InvalidSetting, match='"fp32" or "bf16", not \'fp16\''):
        HashEncoder().encode_reports(["x"], precision="fp16")  # type: ignore[arg-type]


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


def test_one_image_is_no_list():
    for image in ("/a/b.png", torch.ones):
        with pytest.raises(InvalidSetting, match="give a list of images"):
            HashEncoder().encode_images(image)  # type: ignore[arg-type]


def test_no_reports_need_no_tokenizer():
    assert HashEncoder().encode_reports([]).shape == (0, 8)


@pytest.mark.parametrize("device", ["gpu", "", "cuda:x", None, "cpu:1", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(InvalidSetting, match="this machine has cpu"):
        check_device(device)


def test_devices():
    assert check_device("cpu") == check_device(CPU) == CPU
    if torch.cuda.is_available():
        assert check_device("cuda:0") == torch.device("cuda", 0)
    else:
        with pytest.raises(InvalidSetting, match=r"no device 'cuda' here.*no CUDA GPU"):
            check_device("cuda")
