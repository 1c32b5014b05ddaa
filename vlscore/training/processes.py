"""The processes of one training run: one, or those that `torchrun` started."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from vlscore._torchrun import Place


@dataclass(frozen=True)
class Processes(Place):
    """Which process this is, of how many; with one, nothing is sent anywhere."""

    def share(self, rows: int) -> slice:
        """The rows of a batch that are this process's; `rows` is a multiple of `count`."""
        own = rows // self.count
        return slice(self.rank * own, (self.rank + 1) * own)

    def gather(self, own: Tensor) -> Tensor:
        """The rows of all processes in their order, from equal shapes. Carries no gradient."""
        own = own.detach().contiguous()
        if self.count == 1:
            return own
        if own.dtype == torch.bool:
            # Not every backend sends these.
            return self.gather(own.to(torch.uint8)).bool()
        parts = [torch.empty_like(own) for _ in range(self.count)]
        dist.all_gather(parts, own)
        return torch.cat(parts)

    def largest(self, value: int, device: torch.device) -> int:
        """The largest value that a process has."""
        if self.count == 1:
            return value
        found = torch.tensor(value, device=device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Make every process's gradients their sum over all processes."""
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
        """Give every process the first one's values."""
        if self.count > 1:
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.count > 1:
            dist.barrier()


@contextmanager
def connected(processes: Processes, device: torch.device) -> Iterator[None]:
    """Let the processes speak with each other: by NCCL on GPUs, else by gloo."""
    processes.join(str(device))
    try:
        yield
    finally:
        processes.leave()
