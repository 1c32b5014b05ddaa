"""The encoder of an embedder: named encoders are read from their checkpoint when they are needed.

A run whose vectors are all in the cache needs the encoder's card, its checksum and its tokenizer,
but no network. The digest of a checkpoint's tensors, which the checksum needs, is remembered in the
cache for as long as the file does not change. So such a run reads no checkpoint.
"""

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from vlscore.core import Cache, Namespace, __version__, file_state
from vlscore.encoders import (
    EncoderCard,
    JointEncoder,
    PublishedEncoder,
    check_device,
    check_tokenizer,
    default_encoder,
    find_encoder,
    load_encoder,
)
from vlscore.errors import ChecksumMismatch

# Two threads must not read the same checkpoint; a lock cannot be sent to another process.
_LOCK = threading.Lock()


class EncoderSource:
    """An encoder, or what is known of one before its network is read.

    Args:
        known: the encoder; or, with `read`, the encoder without modules.
        read: loads the encoder.
        device: where `read` puts it.
    """

    def __init__(
        self,
        known: JointEncoder,
        read: Callable[[], JointEncoder] | None = None,
        device: torch.device | None = None,
    ) -> None:
        #: The encoder, which may have no modules: its card, checksum, tokens and preprocessing.
        self.known = known
        self._read, self._device = read, device

    def __getstate__(self) -> dict[str, Any]:
        """Return the encoder with its weights: another machine may not have the checkpoint."""
        self.encoder()
        return vars(self)

    @property
    def card(self) -> EncoderCard:
        return self.known.card

    @property
    def device(self) -> torch.device:
        return self.known.device if self._device is None else self._device

    def encoder(self) -> JointEncoder:
        """Return the encoder; the first call reads its checkpoint.

        Raises: ChecksumMismatch if the checkpoint is no longer the one whose digest is known; else
            as `load_encoder`.
        """
        if self._read is None:
            return self.known
        with _LOCK:
            # Another thread may have read it meanwhile.
            if self._read is not None:
                self._set(self._read())
        return self.known

    def _set(self, encoder: JointEncoder) -> None:
        before, now = self.known.checksum[:12], encoder.checksum[:12]
        if now != before:
            raise ChecksumMismatch(
                f"the checkpoint of {self.card.name} has the checksum {now}, not {before} as at "
                "the beginning: a file was replaced meanwhile. Run the command again; if it fails "
                "again, run `vlscore cache clear`"
            )
        self.known, self._read, self._device = encoder, None, None


def named_encoder(
    name: str | None,
    *,
    weights: str | Path | None,
    tokenizer: str | Path | None,
    device: str,
    cache: Cache | None,
) -> EncoderSource:
    """Find an encoder by name, and read it unless the digest of its checkpoint is remembered.

    Args: cache: remembers the digest; None reads the checkpoint.

    Raises: the errors of `load_encoder`.
    """
    read = partial(load_encoder, name, weights=weights, tokenizer=tokenizer, device=device)
    member, variant = find_encoder(name if name is not None else default_encoder())
    if cache is None or not isinstance(member, type) or not issubclass(member, PublishedEncoder):
        return EncoderSource(read())
    check_tokenizer(member, tokenizer)
    where = check_device(device)
    paths = member.find_files(weights)
    code = f"{member.__module__}:{member.__qualname__}"
    # Another class may refuse the same tensors.
    remembered = cache.namespace(
        {"holds": "digests of weights", "code": code, "vlscore": __version__}
    )
    state = _state_of(paths)
    digest = _remembered(remembered, state)
    if digest is not None:
        known = member.without_network(paths, tokenizer, variant, digest)
        known.is_as_loaded = True
        return EncoderSource(known.eval(), read, where)
    encoder = read()
    # A file that was changed meanwhile may have been read before or after.
    if state is not None and _state_of(paths) == state:
        remembered.put({state: encoder.weights_digest})
    return EncoderSource(encoder)


def _state_of(paths: Sequence[Path]) -> tuple[str, ...] | None:
    states = [file_state(path) for path in paths]
    if None in states:
        return None
    return tuple(
        f"{os.path.realpath(path)} {state}" for path, state in zip(paths, states, strict=True)
    )


def _remembered(names: Namespace, state: tuple[str, ...] | None) -> str | None:
    digest = names.get([state]).get(state) if state is not None else None
    return digest if isinstance(digest, str) else None
