"""Float32 products stay float32, whichever of PyTorch's switches was used before."""

import pytest
import torch

from tests.conftest import run_python
from vlscore.core import FULL_PRECISION

SEARCH = """
import numpy as np, torch
torch.backends.fp32_precision = "tf32"
from vlscore.retrieval import Oracle
x = np.eye(6, dtype=np.float32)
print(len(Oracle(x, C=1.0).search(x[:2], x[2:4], ranks=True)))
"""
NEWER = hasattr(torch.backends.cuda.matmul, "fp32_precision")


@pytest.mark.skipif(not NEWER, reason="this PyTorch has one generation of switches")
@pytest.mark.slow
def test_the_newer_switches_do_not_end_a_search():
    # They cannot be set back for the other tests: a process of its own.
    done = run_python("-c", SEARCH)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_it_is_entered_again_inside():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with FULL_PRECISION:
            with FULL_PRECISION:
                assert not torch.backends.cudnn.allow_tf32
            assert not torch.backends.cuda.matmul.allow_tf32
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
