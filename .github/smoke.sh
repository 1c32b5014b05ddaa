#!/usr/bin/env bash
# Does an installed wheel work by itself, outside the checkout?
#     .github/smoke.sh FOLDER_WITH_PYTHON_AND_VLSCORE
set -euo pipefail

bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$bin/vlscore" --help > help.txt
"$bin/vlscore" doctor > doctor.txt || { cat doctor.txt; exit 1; }
grep -q "bundled: phantom" doctor.txt
demo=$("$bin/python" -c '
import sys, vlscore
from vlscore.core import resource_path
assert "site-packages" in vlscore.__file__, f"this is the checkout: {vlscore.__file__}"
assert "torch" not in sys.modules
print(resource_path("weights", "phantom", "demo"))')
"$bin/vlscore" evaluate "$demo/fluent.jsonl" --metrics vlscore,bleu-4 --out results | tee table.txt
# The mean that weights/phantom-judging/README.md prints, but for its last place.
grep -Eq " 0\.(519|520)" table.txt
"$bin/vlscore" demo > demo.txt
grep -q "^right " demo.txt
test -s out/demo/table.tex
"$bin/vlscore" perturb "$demo/studies.jsonl" --rename report=reference --out perturbed --keep-going
test -s perturbed/perturbations.jsonl
echo "the wheel works"
