"""Processes that torchrun started: which one this is, its device, and messages among them.

Three commands share work among processes: `evaluate` sends messages, `oracle` splits an index, and
`train` splits batches.

* `Place` is the rank of this process and its device; alone, if torchrun did not start it.
* `Processes` sends messages. The first process leads: it reads the inputs, hands out the work and
  writes the results; the others send it what they computed. All messages are bytes over gloo, so
  that they also work without a GPU.
* `TrainingProcesses` splits the batches of one training run and adds up the gradients.
"""

import json
import os
import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from vlscore.errors import InvalidSetting, VLScoreError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# The end of a process is noticed at once. This limit is for a machine that vanished silently.
_SILENCE = timedelta(hours=1)


class ProcessLost(VLScoreError):
    """Another process of the same run has ended before its part was done."""


@dataclass(frozen=True)
class Place:
    """Rank and device of this process among those of its run; by default it is the only one.

    Attributes:
        rank: number of this process, 0 for the first.
        count: number of all processes.
        local_rank: its number among the processes of its machine.
        on_this_machine: number of processes of the run on this machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    on_this_machine: int = 1

    @classmethod
    def launched(cls) -> Self:
        """Read rank and world size from torchrun's environment variables.

        Raises: InvalidSetting if a variable is not as torchrun sets it.
        """
        count = _number("WORLD_SIZE", 1)
        if count <= 1:
            return cls()
        return cls(
            _number("RANK", 0), count, _number("LOCAL_RANK", 0), _number("LOCAL_WORLD_SIZE", 1)
        )

    @property
    def leads(self) -> bool:
        """Return True in the first process, which reads and writes for all."""
        return self.rank == 0

    def own_device(self, device: str | None) -> str | None:
        """Return the device that this process computes on.

        Args: device: the user's setting.
        Returns: the k-th GPU for the k-th process of a machine, which becomes its current one;
            any other device unchanged; None without a setting and without a GPU.
        Raises: InvalidSetting if a GPU is named by its number, which all processes would share.
        """
        if self.count == 1:
            return device
        import torch

        if device is not None and device.startswith("cuda:"):
            raise InvalidSetting(
                f"{device} was given to {self.count} processes, which would share it; leave the "
                "device out, or give cuda: then each process takes a GPU of its own"
            )
        if device == "cuda" or (device is None and torch.cuda.is_available()):
            device = f"cuda:{self.local_rank}"
            if self.local_rank < torch.cuda.device_count():
                torch.cuda.set_device(device)
        return device

    def join(self, device: str | None) -> None:
        """Join the other processes: gloo for data in memory, NCCL for data on a GPU.

        Args: device: the device from `own_device`.
        """

        if self.count == 1:
            return
        import torch.distributed as dist

        is_gpu = device is not None and device.startswith("cuda")
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if is_gpu else "gloo"
            dist.init_process_group(backend, timeout=_SILENCE)

    def leave(self) -> None:
        """Leave the other processes."""

        if self.count > 1:
            import torch.distributed as dist

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


# Messages in transit from one process: enough that no process waits for a busy one.
_AHEAD = 2
# Bytes of the number that holds a message's length.
_SIZE = 8


class Processes:
    """Messages between this process and the others of its run; by default it is the only one.

    Attributes:
        rank: number of this process, 0 for the first.
        count: number of all processes.
        device: device of this process; None without a setting and without a GPU.
        on_this_machine: number of processes of the run on this machine.
    """

    def __init__(
        self, rank: int = 0, count: int = 1, device: str | None = None, on_this_machine: int = 1
    ) -> None:
        self.rank, self.count, self.device = rank, count, device
        self.on_this_machine = on_this_machine
        self._sending: deque[Any] = deque()
        self._received: dict[int, queue.Queue[bytes | Exception]] = {}

    @classmethod
    def from_torchrun(cls, device: str | None = None) -> "Processes":
        """Join the processes that torchrun started, if it did.

        Args: device: the user's setting; see `Place.own_device`.
        Raises: InvalidSetting, as `Place.own_device`.
        """
        place = Place.launched()
        own = place.own_device(device)
        place.join(own)
        return cls(place.rank, place.count, own, place.on_this_machine)

    @property
    def leads(self) -> bool:
        """Return True in the first process, which reads and writes for all."""
        return self.rank == 0

    def send(self, content: bytes, to: int = 0, *, last: bool = False) -> None:
        """Send bytes to another process; wait if two messages are in transit already.

        Args: last: this is the last message to that process.
        Raises: ProcessLost.
        """
        import torch
        import torch.distributed as dist

        head = len(content).to_bytes(_SIZE, "little") + bytes([last])
        try:
            for part in (head, content):
                if part:
                    held = torch.frombuffer(bytearray(part), dtype=torch.uint8)
                    self._sending.append((dist.isend(held, to), held))
            while len(self._sending) > 2 * _AHEAD:
                self._sending.popleft()[0].wait()
        except RuntimeError:
            raise self._lost(to) from None

    def receive(self, source: int = 0) -> bytes:
        """Return the next bytes that another process sent to this one. Raises: ProcessLost."""
        if source not in self._received:
            # A second thread waits, because this one must receive Ctrl-C and may compute meanwhile.
            self._received[source] = queue.Queue(_AHEAD)
            threading.Thread(
                target=self._listen, args=(source,), name=f"vlscore-from-{source}", daemon=True
            ).start()
        while True:
            try:
                found = self._received[source].get(timeout=0.5)
            except queue.Empty:
                continue
            if isinstance(found, Exception):
                raise self._lost(source) from None
            return found

    def send_json(self, content: Any, to: int = 0, *, last: bool = False) -> None:
        """Send plain data. Raises: ProcessLost."""
        self.send(json.dumps(content).encode("utf-8"), to, last=last)

    def receive_json(self, source: int = 0) -> Any:
        """Return the plain data that another process sent. Raises: ProcessLost."""
        return json.loads(self.receive(source))

    def tell_all(self, content: Any, *, last: bool = False) -> None:
        """Send plain data from the first process to all others. Raises: ProcessLost."""
        for other in range(1, self.count):
            self.send_json(content, other, last=last)

    def close(self) -> None:
        """Leave the other processes, after the last message from and to each of them."""
        try:
            while self._sending:
                self._sending.popleft()[0].wait()
        except RuntimeError:
            raise self._lost(0) from None
        Place(self.rank, self.count).leave()

    def _listen(self, source: int) -> None:
        import torch
        import torch.distributed as dist

        head = torch.empty(_SIZE + 1, dtype=torch.uint8)
        is_last = False
        try:
            while not is_last:
                dist.recv(head, source)
                stated = head.numpy().tobytes()
                is_last = bool(stated[_SIZE])
                content = torch.empty(int.from_bytes(stated[:_SIZE], "little"), dtype=torch.uint8)
                if len(content):
                    dist.recv(content, source)
                self._received[source].put(content.numpy().tobytes())
        except (
            RuntimeError,
            ValueError,
        ) as error:  # the other process has ended, or the group was left
            self._received[source].put(error)

    def _lost(self, which: int) -> ProcessLost:
        if which == 0:
            return ProcessLost(
                f"process 0 of {self.count}, which leads the run, has ended; its own message says "
                "why"
            )
        return ProcessLost(f"process {which} of {self.count} has ended before its part was done")


@dataclass(frozen=True)
class TrainingProcesses(Place):
    """Processes of one training run; a single process sends nothing."""

    def share(self, rows: int) -> slice:
        """Return this process's rows of a batch; `rows` is a multiple of `count`."""
        own = rows // self.count
        return slice(self.rank * own, (self.rank + 1) * own)

    def gather(self, own: "Tensor") -> "Tensor":
        """Return the rows of all processes, by rank, from equal shapes; without gradient."""
        import torch
        import torch.distributed as dist

        own = own.detach().contiguous()
        if self.count == 1:
            return own
        if own.dtype == torch.bool:
            # Not every backend can send booleans.
            return self.gather(own.to(torch.uint8)).bool()
        parts = [torch.empty_like(own) for _ in range(self.count)]
        dist.all_gather(parts, own)
        return torch.cat(parts)

    def largest(self, value: int, device: "torch.device") -> int:
        """Return the largest value of all processes."""
        import torch
        import torch.distributed as dist

        if self.count == 1:
            return value
        found = torch.tensor(value, device=device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def add_gradients(self, parameters: "Iterable[Tensor]") -> None:
        """Replace the gradients in every process by their sum over all processes."""
        import torch
        import torch.distributed as dist

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

    def copy_from_first(self, tensors: "Iterable[Tensor]") -> None:
        """Copy the first process's values to every process."""
        import torch.distributed as dist

        if self.count > 1:
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def wait(self) -> None:
        """Wait until all processes have made this call."""
        import torch.distributed as dist

        if self.count > 1:
            dist.barrier()


@contextmanager
def connected(processes: TrainingProcesses, device: "torch.device") -> Iterator[None]:
    """Connect the processes inside the block: by NCCL on GPUs, else by gloo."""
    processes.join(str(device))
    try:
        yield
    finally:
        processes.leave()
