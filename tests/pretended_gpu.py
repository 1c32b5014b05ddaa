"""A GPU that is not there: its tensors lie on the CPU, and still refuse to meet others.

Code for GPUs mostly fails on machines that have one in one way: a tensor that was left on the CPU
meets one that was moved. Here every tensor that code sends to "cuda" claims to lie there, is
computed on the CPU, and raises, as CUDA does, where it meets a tensor of another device or is read
by numpy. So such mistakes are found on any machine. What CUDA itself computes is not: kernels,
their rounding, memory and streams are tested where there is a GPU (marker `gpu`). It takes a
PyTorch that was built for CUDA; no driver.
"""

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CPU = torch.device("cpu")
# What CUDA, too, lets read from one device and write to another.
_COPIES = {"copy_", "_to_copy", "to", "type_as"}
# What the pretended GPUs answer.
_ANSWERS: dict[str, Callable[..., Any]] = {
    "_lazy_init": lambda: None,
    "is_available": lambda: True,
    "is_bf16_supported": lambda *_, **__: True,
    "get_device_name": lambda *_: "a GPU that is not there",
    "get_device_properties": lambda *_: SimpleNamespace(total_memory=32 << 30),
    "empty_cache": lambda: None,
    "current_device": lambda: 0,
    "is_current_stream_capturing": lambda: False,
    "set_device": lambda _: None,
}


class OnGPU(Tensor):
    """A tensor that says that it lies on a GPU.

    Attributes:
        held: the same on the CPU.
    """

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor, number: int) -> "OnGPU":
        found: OnGPU = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device("cuda", number),
        )
        found.held = held
        return found

    def tolist(self) -> Any:
        return self.held.tolist()

    def new_tensor(self, values: Any, **options: Any) -> Tensor:  # type: ignore[override]
        return self.held.new_tensor(values, **options).to(self.device)

    def numpy(self, **_: Any) -> NoReturn:  # type: ignore[override]
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def __array__(self, *_: Any) -> NoReturn:
        self.numpy()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"OnGPU({self.held})"

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _computed(operation, args, kwargs or {})


class _Everywhere(TorchDispatchMode):
    """Sees what makes tensors out of none, too."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _computed(operation, args, kwargs or {})


@contextlib.contextmanager
def pretended_gpu(count: int = 1) -> Iterator[None]:
    """A machine with so many GPUs, until the end of the block.

    Backward passes are not computed, for PyTorch runs them in threads of the device: gradients are
    zeros of the right shape, on the right device.
    """
    if torch.cuda.is_available():
        pytest.skip("a GPU is here; the tests marked gpu use it")
    # Lets PyTorch name the device without a driver; FakeTensorMode does the same.
    prepare = getattr(torch._C, "_ensureCUDADeviceGuardSet", None)
    if prepare is None or torch.version.cuda is None:
        pytest.skip(f"PyTorch {torch.__version__} cannot name a GPU that is not there")
    prepare()
    overwrites = torch.__future__.get_overwrite_module_params_on_conversion()
    cudnn = torch.backends.cudnn.enabled
    with contextlib.ExitStack() as stack:
        answers = _ANSWERS | {"device_count": lambda: count}
        for name, answer in answers.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, answer))
        for name in ("tensor", "as_tensor"):
            stack.enter_context(mock.patch.object(torch, name, _then_moved(getattr(torch, name))))
        # Views of inference tensors cannot be wrapped; what is computed is the same.
        stack.enter_context(mock.patch.object(torch, "inference_mode", torch.no_grad))
        stack.enter_context(mock.patch.object(torch.autograd, "backward", _backward))
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, overwrites)
        torch.backends.cudnn.enabled = False
        stack.callback(setattr, torch.backends.cudnn, "enabled", cudnn)
        stack.enter_context(_Everywhere())
        yield


def _computed(operation: Any, args: Any, kwargs: Any) -> Any:
    leaves = tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    places = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    there = [tensor for tensor in tensors if isinstance(tensor, OnGPU)]
    name = operation.overloadpacket.__name__
    # A single number of the CPU may meet any tensor.
    met = {t.device for t in tensors if t.dim() or isinstance(t, OnGPU)}
    if len(met) > 1 and name not in _COPIES:
        raise RuntimeError(f"{operation}: tensors on {sorted(map(str, met))} meet")
    if places:
        place = places[-1]
    elif name == "type_as" or str(operation) == "aten.to.other":
        place = tensors[1].device
    elif name == "copy_":
        place = tensors[0].device
    else:
        place = there[0].device if there else CPU
    args, kwargs = tree_map(_on_cpu, (args, kwargs))
    kwargs.pop("pin_memory", None)
    found = operation(*args, **kwargs)
    given = {id(_on_cpu(tensor)): tensor for tensor in tensors}

    def placed(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        same = given.get(id(leaf))
        if same is not None and same.device.type == place.type:
            return same
        return OnGPU(leaf, place.index or 0) if place.type == "cuda" else leaf

    return tree_map(placed, found)


def _on_cpu(leaf: Any) -> Any:
    if isinstance(leaf, OnGPU):
        return leaf.held
    return CPU if isinstance(leaf, torch.device) else leaf


def _then_moved(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What makes tensors of numbers; PyTorch would ask the driver for their device at once."""

    def made(values: Any, *, device: Any = None, **options: Any) -> Tensor:
        found = make(values, **options)
        return found if device is None else found.to(device)

    return made


def _backward(tensors: Any, grad_tensors: Any = None, *_: Any, **__: Any) -> None:
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for tensor, gradient in zip(tensors, grad_tensors or [None] * len(tensors), strict=True):
        if gradient is not None and (gradient.device, gradient.shape) != (
            tensor.device,
            tensor.shape,
        ):
            raise RuntimeError(f"{gradient.shape} on {gradient.device} is no gradient of {tensor}")
    ahead, seen = [tensor.grad_fn for tensor in tensors], set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf.grad is None:
            leaf.grad = torch.zeros_like(leaf)
        ahead += [following for following, _ in node.next_functions]
