"""Whether the tensors of a module have changed, told fast enough to be asked for every image."""

from typing import Any

from torch import nn

# Identities of tensors and submodules, and how often each tensor was changed in place.
Stamp = list[int]
_Tables = list[dict[str, Any]]


class Changes:
    """Looks at the tensors and submodules of a module, again and again.

    PyTorch's own walk (`parameters`, `buffers`) takes milliseconds for an encoder of some hundred
    layers: more than everything else that an image costs whose embedding is in the cache.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._tensors, self._modules = _tables(module)
        self._seen: Stamp | None = None

    def are_new(self) -> bool:
        """Whether anything has changed since the call before; True at first.

        Always True where tensors were made in inference mode: PyTorch counts no changes of those.
        """
        stamp = self._stamp()
        if stamp is not None and stamp == self._seen:
            return False
        # Another submodule brings tables of its own.
        self._tensors, self._modules = _tables(self._module)
        self._seen = self._stamp()
        return True

    def _stamp(self) -> Stamp | None:
        stamp: Stamp = []
        try:
            for tensors in self._tensors:
                for tensor in tensors.values():
                    if tensor is not None:
                        stamp += (id(tensor), tensor._version)
        except RuntimeError:
            return None
        for modules in self._modules:
            stamp += map(id, modules.values())
        return stamp


def _tables(module: nn.Module) -> tuple[_Tables, _Tables]:
    """Where every module keeps its tensors, and where its submodules."""
    modules = list(module.modules())
    tensors = [table for each in modules for table in (each._parameters, each._buffers)]
    return tensors, [each._modules for each in modules]
