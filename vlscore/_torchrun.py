"""The processes that torchrun started: which one this is, its device, and the group of them all.

Whatever is shared among processes is built on this: messages (evaluate), shards of an index
(oracle), and the batches of a training.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from vlscore.errors import InvalidSetting, VLScoreError

# A process that ended is noticed at once. This is for one whose machine has gone without a word.
_SILENCE = timedelta(hours=1)


class ProcessLost(VLScoreError):
    """Another process of the same run has ended before its part was done."""


@dataclass(frozen=True)
class Place:
    """The place of this process among those of its run; the default is to be alone.

    Attributes:
        rank: number of this process, 0 for the first.
        count: of all processes.
        local_rank: its number among those of its machine.
        on_this_machine: how many processes of the run share this machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    on_this_machine: int = 1

    @classmethod
    def launched(cls) -> Self:
        """As the environment says that torchrun makes.

        Raises: InvalidSetting where it is not torchrun's.
        """
        count = _number("WORLD_SIZE", 1)
        if count <= 1:
            return cls()
        return cls(
            _number("RANK", 0), count, _number("LOCAL_RANK", 0), _number("LOCAL_WORLD_SIZE", 1)
        )

    @property
    def leads(self) -> bool:
        """Whether this is the first process, which reads and writes for all."""
        return self.rank == 0

    def own_device(self, device: str | None) -> str | None:
        """What this process computes on.

        Args: device: as the user gave it.
        Returns: the k-th GPU for the k-th process of a machine, which becomes its current one;
            another device as it was given, and None where nothing was asked for and no GPU is here.
        Raises: InvalidSetting where a GPU is named by its number, which all processes would share.
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
        """Join the other processes: gloo for what lies in memory, NCCL for what is on a GPU.

        Args: device: of `own_device`.
        """
        if self.count == 1:
            return
        import torch.distributed as dist

        is_gpu = device is not None and device.startswith("cuda")
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if is_gpu else "gloo"
            dist.init_process_group(backend, timeout=_SILENCE)

    def leave(self) -> None:
        """Leave the others."""
        if self.count > 1:
            import torch.distributed as dist

            dist.destroy_process_group()


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    try:
        return int(text) if text else default
    except ValueError:
        raise InvalidSetting(
            f"{name} in the environment is a number that torchrun gives, not {text!r}; unset it, "
            "or start the processes by torchrun"
        ) from None
