"""The processes that torchrun started: which one this is, its device, and messages between them.

The first process leads: it reads what to do, hands it out and writes the results. The others send
it what they computed. All messages are bytes over gloo, so that they run where no GPU is.
"""

import json
import os
import queue
import threading
from collections import deque
from datetime import timedelta
from typing import Any

from vlscore.errors import InvalidSetting, VLScoreError

# A process that ended is noticed at once. This is for one whose machine has gone without a word.
_SILENCE = timedelta(hours=1)
# Messages on their way from one process: enough that none waits for another at work.
_AHEAD = 2
# Bytes that state a message's length.
_SIZE = 8


class ProcessLost(VLScoreError):
    """Another process of the same run has ended before its part was done."""


def own_device(device: str | None, count: int) -> str | None:
    """What this one of `count` processes that torchrun started computes on.

    Args: device: as the user gave it.
    Returns: the k-th GPU for the k-th process of a machine, which becomes its current one; another
        device as it was given, and None where nothing was asked for and no GPU is here.
    Raises: InvalidSetting where a GPU is named by its number, which all processes would share.
    """
    if count == 1:
        return device
    import torch

    if device is not None and device.startswith("cuda:"):
        raise InvalidSetting(
            f"{device} was given to {count} processes, which would share it; leave the device "
            "out, or give cuda: then each process takes a GPU of its own"
        )
    if device == "cuda" or (device is None and torch.cuda.is_available()):
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        if int(device[5:]) < torch.cuda.device_count():
            torch.cuda.set_device(device)
    return device


class Processes:
    """This process among those of its run; the default is to be alone.

    Attributes:
        rank: number of this process, 0 for the first.
        count: of all processes.
        device: what this one computes on; None where nothing was asked for and no GPU is here.
    """

    def __init__(self, rank: int = 0, count: int = 1, device: str | None = None) -> None:
        self.rank, self.count, self.device = rank, count, device
        self._sending: deque[Any] = deque()
        self._received: dict[int, queue.Queue[bytes | Exception]] = {}

    @classmethod
    def from_torchrun(cls, device: str | None = None) -> "Processes":
        """Join the processes that torchrun started, if it did.

        Args and Raises: as of `own_device`.
        """
        count = int(os.environ.get("WORLD_SIZE", "1"))
        if count == 1:
            return cls(device=device)
        import torch.distributed as dist

        device = own_device(device, count)
        if not dist.is_initialized():
            is_gpu = device is not None and device.startswith("cuda")
            backend = "cpu:gloo,cuda:nccl" if is_gpu else "gloo"
            dist.init_process_group(backend, timeout=_SILENCE)
        return cls(dist.get_rank(), dist.get_world_size(), device)

    @property
    def leads(self) -> bool:
        """Whether this is the first process, which reads and writes for all."""
        return self.rank == 0

    @property
    def on_this_machine(self) -> int:
        """How many processes of the run share this machine."""
        return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if self.count > 1 else 1

    def send(self, content: bytes, to: int = 0, *, last: bool = False) -> None:
        """Send bytes to another process; waits where two messages are on their way already.

        Args: last: nothing is sent to that process after this.
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
        """The next bytes that another process sent to this one. Raises: ProcessLost."""
        if source not in self._received:
            # A thread waits, for this one must hear of Ctrl-C, and may compute meanwhile.
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
        """The plain data that another process sent. Raises: ProcessLost."""
        return json.loads(self.receive(source))

    def tell_all(self, content: Any, *, last: bool = False) -> None:
        """Send plain data from the first process to all others. Raises: ProcessLost."""
        for other in range(1, self.count):
            self.send_json(content, other, last=last)

    def close(self) -> None:
        """Leave the others, once each has sent its last message, and has this one's."""
        if self.count == 1:
            return
        import torch.distributed as dist

        try:
            while self._sending:
                self._sending.popleft()[0].wait()
        except RuntimeError:
            raise self._lost(0) from None
        dist.destroy_process_group()

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
        except (RuntimeError, ValueError) as error:  # the other has gone, or the group was left
            self._received[source].put(error)

    def _lost(self, which: int) -> ProcessLost:
        if which == 0:
            return ProcessLost(
                f"process 0 of {self.count}, which leads the run, has ended; its own message says "
                "why"
            )
        return ProcessLost(f"process {which} of {self.count} has ended before its part was done")
