"""What reads reports, and judges them by rules, needs no library but numpy and regex."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
before = set(sys.modules)
import {module}
top = {{name.partition(".")[0] for name in set(sys.modules) - before}}
outside = sorted(n for n in top if n not in sys.stdlib_module_names and not n.startswith("_"))
ours = sorted({{n.split(".")[1] for n in sys.modules if n.startswith("vlscore.")}})
print(*outside, "|", *ours)
"""


@pytest.mark.parametrize(
    ("module", "packages"),
    [
        ("vlscore.text.sentences", {"text"}),
        ("vlscore.text.sections", {"text"}),
        ("vlscore.findings.extraction", {"text", "findings"}),
        ("vlscore.perturb.generate", {"text", "findings", "perturb"}),
        ("vlscore.metrics.judge.rules", {"text", "findings", "perturb", "metrics"}),
    ],
)
def test_what_reads_imports_little(module, packages):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
    )
    outside, _, ours = done.stdout.partition("|")
    assert set(outside.split()) <= {"vlscore", "lazy_loader", "regex", "numpy", "packaging"}
    assert set(ours.split()) <= packages | {"errors", "core"}
