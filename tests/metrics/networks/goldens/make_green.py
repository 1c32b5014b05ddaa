"""What GREEN's released code makes of constructed answers and reports, written to green.json.

Needs a clone of github.com/Stanford-AIMI/GREEN at d72c195, pandas, and transformers with jinja2:

    PYTHONPATH=. python tests/metrics/networks/goldens/make_green.py CLONE

It compares our parser with the released one on the five answers in the clone's own test as well.
"""

import ast
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from unittest.mock import MagicMock

from tests.metrics.networks.constructed_green import READABLE, write_green

# What the parser and the prompt do not use.
_UNUSED = (
    "datasets", "datasets.distributed", "sklearn", "sklearn.metrics", "sklearn.cluster",
    "sentence_transformers",
)  # fmt: skip
_PUBLISHED = "expected_green_score_list"
REPORTS = (
    ("Small  left effusion.\nNo edema.", "Left effusion. The heart is normal."),
    ("", "word " * 400),
)


def main(clone: str) -> None:
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as place:
        tokenizer = AutoTokenizer.from_pretrained(write_green(Path(place)))
    for name in _UNUSED:
        sys.modules.setdefault(name, MagicMock())
    sys.path.insert(0, clone)
    from green_score.green import GREEN
    from green_score.utils import clean_responses, make_prompt

    green = GREEN(cpu=True)

    def read(answer: str) -> list:
        kinds = [green.parse_error_counts(answer, name) for name in green.categories]
        return [green.compute_green(answer), kinds[2][0], kinds[0][1], kinds[1][1]]

    found = {"read": [read(answer) for answer in READABLE]}
    source = (Path(clone) / "green_score" / "green.py").read_text(encoding="utf-8")
    (template,) = [
        ast.literal_eval(line.split(" = ", 1)[1])
        for line in source.splitlines()
        if line.strip().startswith("chat_template = ")
    ]
    tokenizer.chat_template = template
    conversations = set()
    found["questions"] = []
    for candidate, reference in REPORTS:
        question = make_prompt(reference, candidate)
        asked = [{"from": "human", "value": question}, {"from": "gpt", "value": ""}]
        whole = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
        conversations.add(whole.replace(question, "QUESTION"))
        # The words are the authors', and are not kept here.
        found["questions"].append(hashlib.sha256(question.encode()).hexdigest())
    (found["conversation"],) = conversations
    found["reports"] = REPORTS
    asked = found["conversation"]
    responses = [
        f"{asked}\n[Explanation]:\n    <Explanation>\nWords\n\n[Matched Findings]:\n1. A.",
        f"{asked}Words without the heading.",
        "<|assistant|>\n[Explanation]:\nA\n[Explanation]:\nB</s>",
    ]
    found["responses"] = [[each, clean_responses(each)] for each in responses]
    target = Path(__file__).with_name("green.json")
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _compare_published(Path(clone), read)


def _compare_published(clone: Path, read) -> None:
    from vlscore.metrics import read_green_answer

    tree = ast.parse((clone / "tests" / "test_repro.py").read_text(encoding="utf-8"))
    (published,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == _PUBLISHED
    ]
    for answer in published:
        ours = read_green_answer(answer)
        rows = [ours.score, ours.matched, list(ours.significant), list(ours.insignificant)]
        print(rows, "equal" if rows == read(answer) else f"released: {read(answer)}")


if __name__ == "__main__":
    main(sys.argv[1])
