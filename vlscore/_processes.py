"""Messages between the processes that torchrun started.

The first process leads: it reads what to do, hands it out and writes the results. The others send
it what they computed. All messages are bytes over gloo, so that they run where no GPU is.
"""

import json
import queue
import threading
from collections import deque
from typing import Any

from vlscore._torchrun import Place, ProcessLost

# Messages on their way from one process: enough that none waits for another at work.
_AHEAD = 2
# Bytes that state a message's length.
_SIZE = 8


class Processes:
    """This process among those of its run; the default is to be alone.

    Attributes:
        rank: number of this process, 0 for the first.
        count: of all processes.
        device: what this one computes on; None where nothing was asked for and no GPU is here.
        on_this_machine: how many processes of the run share this machine.
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

        Args: device: as the user gave it; see `Place.own_device`.
        Raises: InvalidSetting, as `Place.own_device`.
        """
        place = Place.launched()
        own = place.own_device(device)
        place.join(own)
        return cls(place.rank, place.count, own, place.on_this_machine)

    @property
    def leads(self) -> bool:
        """Whether this is the first process, which reads and writes for all."""
        return self.rank == 0

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
        except (RuntimeError, ValueError) as error:  # the other has gone, or the group was left
            self._received[source].put(error)

    def _lost(self, which: int) -> ProcessLost:
        if which == 0:
            return ProcessLost(
                f"process 0 of {self.count}, which leads the run, has ended; its own message says "
                "why"
            )
        return ProcessLost(f"process {which} of {self.count} has ended before its part was done")
