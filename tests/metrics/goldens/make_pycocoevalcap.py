"""CIDEr and BLEU of real generated reports by pycocoevalcap 1.2, written to pycocoevalcap.json.

Needs `pip install pycocoevalcap`, and the shared reports beside the repository:

    python tests/metrics/goldens/make_pycocoevalcap.py ../shared/data/generated
"""

import json
import sys
from pathlib import Path

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider

found = {}
for path in sorted(Path(sys.argv[1]).glob("*.jsonl")):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    texts = {
        role: {
            k: [" ".join(row[role].lower().replace(".", " .").split())]
            for k, row in enumerate(rows)
        }
        for role in ("reference", "candidate")
    }
    mean, values = Cider().compute_score(texts["reference"], texts["candidate"])
    bleu, _ = Bleu(4).compute_score(texts["reference"], texts["candidate"], verbose=0)
    found[path.stem] = {
        "rows": len(rows),
        "cider": float(mean),
        "first": [float(value) for value in values[:20]],
        "bleu": [float(value) for value in bleu],
    }
target = Path(__file__).with_name("pycocoevalcap.json")
target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
