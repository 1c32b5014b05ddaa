"""A process that is killed at one of its operations on files, without a process of its own."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest


class Killed(BaseException):
    """A kill, after which nothing of the process runs: no clean-up, either."""


@contextmanager
def killed_at(
    patched: pytest.MonkeyPatch, number: int, operations: Mapping[str, Any]
) -> Iterator[None]:
    """Let the first `number` operations pass; each further one raises Killed.

    Args: operations: names of functions of `os` -> what is called instead.
    """
    count = 0

    def counted(name: str, *args: Any, **keywords: Any) -> Any:
        nonlocal count
        count += 1
        if count > number:
            raise Killed  # Every further operation fails, as of a process that is gone.
        return operations[name](*args, **keywords)

    with patched.context() as inner:
        for name in operations:
            inner.setattr(os, name, lambda *a, n=name, **k: counted(n, *a, **k))
        yield
