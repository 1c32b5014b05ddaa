"""Building a model in code and filling it with a checkpoint's tensors."""

import contextlib
import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from vlscore.errors import IncompatibleCheckpoint

# Buffers that some library versions store and others rebuild.
_REBUILT = ("position_ids", "relative_position_index", "num_batches_tracked", "attn_mask")
_SHOWN = 5


class _SkipInitialisation(TorchFunctionMode):
    _RANDOM = (torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.erfinv_)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in self._RANDOM or getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


@contextlib.contextmanager
def without_initialisation() -> Iterator[None]:
    """Modules built inside keep unset memory: a checkpoint is about to replace all of it."""
    with _SkipInitialisation():
        yield


def fill(
    module: nn.Module,
    tensors: Mapping[str, Tensor],
    *,
    source: Path,
    what: str | None = None,
    unused: Sequence[str] = (),
    key_of: Callable[[str], str] = str,
    share: bool = False,
) -> None:
    """Give every parameter and buffer of `module` its tensor; nothing may be left over.

    Args:
        tensors: the checkpoint's tensors by key, of any float precision.
        source: the checkpoint, for messages.
        what: what the module is called in messages; default: its class.
        unused: patterns, as fnmatch takes them, of keys that belong to parts of the authors'
            model not needed here.
        key_of: a name in `module.state_dict()` -> the checkpoint's key for it.
        share: let the module use the tensors themselves, where their type is that of the module.

    Raises:
        IncompatibleCheckpoint: naming the keys that are missing, unexpected or mis-shaped.
    """
    expected = {key_of(name): (name, value) for name, value in module.state_dict().items()}
    needless = re.compile("|".join(map(fnmatch.translate, unused)) or "(?!)")
    problems = [
        *_problem("missing", [k for k in expected if k not in tensors and not _rebuilt(k)]),
        *_problem(
            "unexpected",
            [k for k in tensors if not (k in expected or _rebuilt(k) or needless.match(k))],
        ),
        *_problem(
            "mis-shaped",
            [
                f"{key} {tuple(tensors[key].shape)} instead of {tuple(value.shape)}"
                for key, (_, value) in expected.items()
                if key in tensors and tensors[key].shape != value.shape
            ],
        ),
    ]
    if problems:
        raise IncompatibleCheckpoint(
            f"{source} does not fit {what or type(module).__name__}: {'; '.join(problems)}; "
            "is it the checkpoint of another model?"
        )
    module.load_state_dict(
        {
            # A copy, for the tensors may lie in a mapped file that somebody changes later.
            name: tensors[key].to(value.dtype, copy=not share)
            for key, (name, value) in expected.items()
            if key in tensors
        },
        strict=False,
        assign=True,
    )


def _rebuilt(name: str) -> bool:
    return name.rsplit(".", 1)[-1] in _REBUILT


def _problem(kind: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"{len(names)} {kind} ({', '.join(names[:_SHOWN])}{more})"]
