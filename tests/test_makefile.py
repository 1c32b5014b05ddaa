"""Setting up: PyTorch for processors where there is no GPU; the package index alone otherwise."""

import os
import shutil
import subprocess

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
SMALL = (
    "-m pip install --quiet --disable-pip-version-check --only-binary :all: --timeout 5 "
    "--retries 0 --index-url https://download.pytorch.org/whl/cpu torch torchvision"
)
WHOLE = "-m pip install --quiet --disable-pip-version-check -e ."


@pytest.fixture
def install(tmp_path):
    """Set up a folder whose Python notes what it is called with; returns the calls."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/calls\n'
        f'echo "$PIP_FIND_LINKS$PIP_EXTRA_INDEX_URL" >> {tmp_path}/mixed\n'
        'case "$@" in *$REFUSED*) exit 1;; esac\n'
    )
    python.chmod(0o755)

    def run(*variables, refused="nothing", path=None):
        for old in ("calls", "venv/.torch", "venv/.installed"):
            (tmp_path / old).unlink(missing_ok=True)
        target = f"{tmp_path}/venv/.installed"
        done = subprocess.run(
            ["make", "-C", REPOSITORY, f"VENV={tmp_path}/venv", *variables, target],
            env={
                "PATH": os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}",
                "REFUSED": refused,
                "PIP_FIND_LINKS": "/a/folder",
                "PIP_EXTRA_INDEX_URL": "https://an.index",
            },
            capture_output=True,
            text=True,
        )
        return done, (tmp_path / "calls").read_text().splitlines()

    return run


def test_without_a_gpu_pytorchs_index_comes_first(install, tmp_path):
    done, calls = install("GPU=")
    assert done.returncode == 0, done.stderr
    assert calls == [SMALL, WHOLE]
    # A user's further indexes are not mixed with PyTorch's, and are there for all the rest.
    assert (tmp_path / "mixed").read_text() == "\n/a/folderhttps://an.index\n"


def test_where_that_index_cannot_be_reached_the_package_index_alone_is_enough(install):
    done, calls = install("GPU=", refused="download.pytorch.org")
    assert done.returncode == 0, done.stderr
    assert calls == [SMALL, WHOLE]
    assert done.stderr == ""
    failed, _ = install("GPU=", refused="-e")
    assert failed.returncode != 0


@pytest.mark.parametrize("variable", ["GPU=/dev/nvidiactl", "CPU_WHEELS="])
def test_with_a_gpu_or_on_request_the_package_index_alone_is_asked(install, variable):
    done, calls = install("GPU=", variable)
    assert done.returncode == 0, done.stderr
    assert calls == [WHOLE]


@pytest.mark.parametrize("command", ["nvidia-smi", "sbatch"])
def test_what_leads_to_a_gpu_is_found(install, tmp_path, command):
    """A driver; or a batch system, whose other machines run what is set up here."""
    (tmp_path / command).write_text("#!/bin/sh\n")
    (tmp_path / command).chmod(0o755)
    done, calls = install(path=tmp_path)
    assert done.returncode == 0, done.stderr
    assert calls == [WHOLE]
