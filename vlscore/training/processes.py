"""The processes of one training run: one, or those that `torchrun` started."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """Which process this is, of how many; with one, nothing is sent anywhere.

    Attributes:
        rank: from 0 on; the first one writes and speaks.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes the results."""
        return self.rank == 0

    def share(self, rows: int) -> slice:
        """The rows of a batch that are this process's; `rows` is a multiple of `size`."""
        own = rows // self.size
        return slice(self.rank * own, (self.rank + 1) * own)

    def gather(self, own: Tensor) -> Tensor:
        """The rows of all processes in their order, from equal shapes. Carries no gradient."""
        own = own.detach().contiguous()
        if self.size == 1:
            return own
        if own.dtype == torch.bool:
            # Not every backend sends these.
            return self.gather(own.to(torch.uint8)).bool()
        parts = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(parts, own)
        return torch.cat(parts)

    def largest(self, value: int, device: torch.device) -> int:
        """The largest value that a process has."""
        if self.size == 1:
            return value
        found = torch.tensor(value, device=device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Make every process's gradients their sum over all processes."""
        if self.size == 1:
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
        """Give every process the first one's values."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.size > 1:
            dist.barrier()


def launched() -> Processes:
    """This process among those that `torchrun` started, as its environment says."""
    return Processes(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


@contextmanager
def connected(processes: Processes, device: torch.device) -> Iterator[None]:
    """Let the processes speak with each other: by NCCL on GPUs, else by gloo."""
    if processes.size == 1:
        yield
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()
