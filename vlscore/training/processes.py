"""Processes that torchrun started: which one this is, its device, and sums over all of them."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

import torch
import torch.distributed as dist
from torch import Tensor

from vlscore.encoders import check_device
from vlscore.errors import InvalidSetting

# The end of a process is noticed at once. This limit is for a machine that vanished silently.
_SILENCE = timedelta(hours=1)


@dataclass(frozen=True)
class TrainingProcesses:
    """Processes of one training run; a single process, as by default, sends nothing.

    Attributes:
        rank: number of this process, 0 for the first.
        count: number of all processes.
        local_rank: its number among the processes of its machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    @classmethod
    def launched(cls) -> Self:
        """Read rank and world size from torchrun's environment variables.

        Raises: InvalidSetting if a variable is not as torchrun sets it.
        """
        count = _number("WORLD_SIZE", 1)
        if count <= 1:
            return cls()
        return cls(_number("RANK", 0), count, _number("LOCAL_RANK", 0))

    @property
    def leads(self) -> bool:
        """Return True in the first process, which reads and writes for all."""
        return self.rank == 0

    def own_device(self, device: str | None) -> torch.device:
        """Return the device that this process computes on.

        Args: device: the user's setting; default: a GPU if there is one.
        Returns: the k-th GPU for the k-th process of a machine, which becomes its current one.
        Raises: InvalidSetting if there is no such device, or if a GPU is named by its number, which
            all processes would share.
        """
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if self.count == 1:
            return check_device(device)
        if device.startswith("cuda:"):
            raise InvalidSetting(
                f"{device} was given to {self.count} processes, which would share it; leave the "
                "device out, or give cuda: then each process takes a GPU of its own"
            )
        if device != "cuda":
            return check_device(device)
        found = check_device(f"cuda:{self.local_rank}")
        torch.cuda.set_device(found)
        return found

    def share(self, rows: int) -> slice:
        """Return this process's rows of a batch; `rows` is a multiple of `count`."""
        own = rows // self.count
        return slice(self.rank * own, (self.rank + 1) * own)

    def gather(self, own: Tensor) -> Tensor:
        """Return the rows of all processes, by rank, from equal shapes; without gradient."""
        own = own.detach().contiguous()
        if self.count == 1:
            return own
        if own.dtype == torch.bool:
            # Not every backend can send booleans.
            return self.gather(own.to(torch.uint8)).bool()
        parts = [torch.empty_like(own) for _ in range(self.count)]
        dist.all_gather(parts, own)
        return torch.cat(parts)

    def largest(self, value: int, device: torch.device) -> int:
        """Return the largest value of all processes."""
        if self.count == 1:
            return value
        found = torch.tensor(value, device=device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace the gradients in every process by their sum over all processes."""
        if self.count == 1:
            return
        listed = list(parameters)
        has = torch.tensor([p.grad is not None for p in listed], device=listed[0].device).int()
        dist.all_reduce(has, dist.ReduceOp.MAX)
        used = [p for p, there in zip(listed, has.tolist(), strict=True) if there]
        for each in used:
            if each.grad is None:
                each.grad = torch.zeros_like(each)
        for kind in {p.dtype for p in used}:
            grads = [p.grad for p in used if p.dtype == kind and p.grad is not None]
            flat = torch.cat([grad.reshape(-1) for grad in grads])
            dist.all_reduce(flat)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view_as(grad))

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Copy the first process's values to every process."""
        if self.count > 1:
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def wait(self) -> None:
        """Wait until all processes have made this call."""
        if self.count > 1:
            dist.barrier()


@contextmanager
def connected(processes: TrainingProcesses, device: torch.device) -> Iterator[None]:
    """Connect the processes inside the block: by NCCL on GPUs, by gloo for data in memory."""
    if processes.count == 1:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=_SILENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    try:
        return int(text) if text else default
    except ValueError:
        raise InvalidSetting(
            f"{name} in the environment must be a number that torchrun sets, not {text!r}; unset "
            "it, or start the processes by torchrun"
        ) from None
