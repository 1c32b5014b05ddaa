"""What docs/perturbations.md says of kinds, files and fields is so; tests/test_docs.py runs it."""

import re
import shlex
import subprocess
import sys

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.command import run_command
from tests.conftest import REPOSITORY, run_python

PAGE = (REPOSITORY / "docs" / "perturbations.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_runs_as_printed(tmp_path, monkeypatch):
    """As a file: alone, by the command, and where the kinds of ours are."""
    (tmp_path / "my_kinds.py").write_text(EXAMPLE)
    done = run_python("my_kinds.py", cwd=tmp_path)
    assert sorted(done.stdout.splitlines()) == [
        "Left haemothorax. No edema.",
        "Left hemothorax. No oedema.",
        "There is edema.",
    ], done.stderr
    write_jsonl(tmp_path / "test.jsonl", [{"id": "a", "report": "There is oedema."}])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (command,) = re.findall(r"^    PYTHONPATH=\. (vlscore .*)$", PAGE, re.MULTILINE)
    done = run_command(*shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    (made,) = read_jsonl(tmp_path / "spelled" / "perturbations.jsonl")
    assert made["perturbed"] == "There is edema."


def test_a_kind_may_import_from_the_package_wherever_it_lies():
    """The registry imports no kind before it is asked for, so that no circle arises."""
    program = (
        "import sys, vlscore.perturb\n"
        "assert not [m for m in sys.modules if m.startswith('vlscore.perturb.kinds.')]\n"
        "vlscore.perturb.KINDS['paraphrase']\n"
        "print('vlscore.perturb.kinds.rewordings' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
