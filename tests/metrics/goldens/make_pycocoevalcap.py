"""CIDEr and BLEU of real generated reports by pycocoevalcap 1.2, written to pycocoevalcap.json.

Needs `pip install pycocoevalcap`, and the shared reports beside the repository:

    python tests/metrics/goldens/make_pycocoevalcap.py ../shared/data/generated
"""

import json
import sys
from pathlib import Path


def main(folder: str) -> None:
    """Score every file of reports in the folder."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider

    found = {}
    for path in sorted(Path(folder).glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        references, candidates = (
            {number: [_words(row[role])] for number, row in enumerate(rows)}
            for role in ("reference", "candidate")
        )
        mean, values = Cider().compute_score(references, candidates)
        bleu, _ = Bleu(4).compute_score(references, candidates, verbose=0)
        found[path.stem] = {
            "rows": len(rows),
            "cider": float(mean),
            "first": [float(value) for value in values[:20]],
            "bleu": [float(value) for value in bleu],
        }
    target = Path(__file__).with_name("pycocoevalcap.json")
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _words(text: str) -> str:
    return " ".join(text.lower().replace(".", " .").split())


if __name__ == "__main__":
    main(sys.argv[1])
