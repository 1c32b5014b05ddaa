#!/usr/bin/env bash
# Does an installed wheel work by itself, outside the checkout?
#     .github/smoke.sh FOLDER_WITH_PYTHON_AND_VLSCORE
set -euo pipefail

bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$bin/vlscore" --help > help.txt
"$bin/vlscore" encoders > encoders.txt
grep -q gloria encoders.txt
demo=$("$bin/python" -c '
import sys, vlscore
from vlscore.core import resource_path
assert "site-packages" in vlscore.__file__, f"this is the checkout: {vlscore.__file__}"
assert "torch" not in sys.modules
print(resource_path("weights", "phantom", "demo"))')
"$bin/vlscore" evaluate "$demo/studies.jsonl" --out results | tee table.txt
# The mean that README.md prints.
grep -q " 0.4888 " table.txt
"$bin/python" -c 'from vlscore.metrics import compute; compute(["bleu-4", "rouge-l"], ["a b"], ["a b"])'
"$bin/vlscore" perturb "$demo/studies.jsonl" --text-column reference --out perturbed --keep-going
test -s perturbed/perturbations.jsonl
echo "the wheel works"
