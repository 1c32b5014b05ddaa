"""A forked process behaves as one that was started."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked

SHOWS = """
import os, sys
print(sys.argv[1:], __name__, os.getcwd(), os.environ["WORD"], len(os.environ))
print("error", file=sys.stderr)
{end}
"""


@pytest.mark.parametrize(
    "end", ["", "sys.exit(3)", "sys.exit('slip')", "raise ValueError('slip')", "os._exit(7)"]
)
def test_it_ends_as_one_that_was_started(tmp_path: Path, end: str) -> None:
    code, environment = SHOWS.format(end=end), {"WORD": "word"}
    found = forked.run("-c", code, "a", 5, env=environment, cwd=tmp_path)
    expected = subprocess.run(
        [sys.executable, "-c", code, "a", "5"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert found.returncode == expected.returncode
    assert found.stdout.startswith(f"['a', '5'] __main__ {tmp_path} word")
    assert found.stderr.splitlines()[0] == "error"
    assert found.stderr.splitlines()[-1] == expected.stderr.splitlines()[-1]


def test_a_module_and_a_file_run(tmp_path: Path) -> None:
    assert forked.run("-m", "vlscore", "--version").stdout.strip()
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nprint(sys.argv, torch.get_num_threads())\n")
    done = forked.run(script, "a", env={"OMP_NUM_THREADS": "2"})
    assert done.stdout == f"{[str(script), 'a']} 2\n"


def test_it_is_killed_and_waited_for() -> None:
    process = forked.Started("-c", "import time; time.sleep(60)")
    assert process.poll() is None
    with pytest.raises(TimeoutError):
        process.wait(0.01)
    process.kill()
    assert process.wait(30) == -9
    process.kill()
    assert process.poll() == -9


def test_each_chooses_its_processor_anew() -> None:
    """The server has computed nothing, so that a fork may still choose its instructions."""
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    done = forked.run("-c", code, env={"ATEN_CPU_CAPABILITY": "default"})
    assert done.stdout in ("DEFAULT\n", "NO AVX\n"), done.stderr


def test_two_run_at_once(tmp_path: Path) -> None:
    """The first ends only when the second has run."""
    sign = tmp_path / "sign"
    waits = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"
    first = forked.Started("-c", waits, sign)
    assert forked.run("-c", "import sys; open(sys.argv[1], 'w')", sign).returncode == 0
    assert first.wait(60) == 0
