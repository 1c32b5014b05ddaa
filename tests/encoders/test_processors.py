"""What differs by processor, computed in each way that torch can be made to take on this machine.

Each setting runs in a process of its own, for torch chooses its instructions when it computes
first. The tests that run there compare with kept numbers, with another library, and bfloat16 with
float32. Their tolerances are those of tests/tolerances.py.
"""

import os

import pytest

from tests import forked
from tests.conftest import REPOSITORY
from vlscore.encoders.devices import processor_facts

TESTS = (
    "tests/evaluation/test_demo.py::test_every_number_is_the_kept_one",
    "tests/evaluation/test_drift.py::test_the_drift_is_that_of_two_runs",
)
# Torch's own trunk takes the same instructions as ours, so that one way differs from the usual one.
TRUNK = "tests/encoders/test_blocks.py::test_the_trunk_is_that_of_torchvision"
# Name -> (flags that the processor must have, variables).
SETTINGS = {
    "SSE, one thread": (
        ("sse4_2",),
        {
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
            "OMP_NUM_THREADS": "1",
            "VLSCORE_TEST_PROCESSOR": "GenuineIntel sse4_2",
        },
    ),
    "AVX2, two threads": (
        ("avx2",),
        {
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "OMP_NUM_THREADS": "2",
            "VLSCORE_TEST_PROCESSOR": "AuthenticAMD avx2",
        },
    ),
    "AVX-512 of AMD without units for bf16": (
        ("avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"),
        {
            "ATEN_CPU_CAPABILITY": "avx512",
            "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "OMP_NUM_THREADS": "1",
            "VLSCORE_TEST_PROCESSOR": "AuthenticAMD avx2 avx512f",
        },
    ),
    "without oneDNN, two threads": ((), {"VLSCORE_TEST_ONEDNN": "off", "OMP_NUM_THREADS": "2"}),
}
_VARIABLES = {name for _, variables in SETTINGS.values() for name in variables}


@pytest.mark.parametrize("setting", SETTINGS)
def test_numbers_are_right_in_every_way_of_computing_them(setting):
    needed, variables = SETTINGS[setting]
    if lacking := set(needed) - processor_facts().flags:
        pytest.skip(f"this processor has no {', '.join(sorted(lacking))}")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _VARIABLES and not name.startswith("PYTEST_")
    }
    tests = [*TESTS, TRUNK] if "VLSCORE_TEST_ONEDNN" in variables else TESTS
    # At its end, the plugin collects the garbage of all that was imported, which takes seconds.
    without = [f"no:{name}" for name in ("cacheprovider", "xdist", "unraisableexception")]
    plugins = [word for name in (*without, "tests.pretended_processor") for word in ("-p", name)]
    done = forked.run(
        *("-m", "pytest", "-q", *plugins, *tests),
        cwd=REPOSITORY,
        env={**environment, **variables, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(tests)} passed" in done.stdout
