"""Entities and scores by the released package RaTEScore 0.6.0, written to ratescore.json.

It runs over the constructed checkpoints of constructed_ratescore.py. medspaCy 1.3.1 needs NumPy 1,
so this needs an environment of its own (Python 3.11):

    pip install RaTEScore==0.6.0 medspacy==1.3.1 PyRuSH==1.0.13 'numpy<2' transformers torch
    PYTHONPATH=. python tests/metrics/networks/goldens/make_ratescore.py

With a folder of jsonl files of candidates and references it also compares with ours the sentences
of their reports, and of reports into which punctuation and line breaks are thrown.
"""

import json
import random
import sys
import tempfile
from pathlib import Path

from tests.metrics.networks.constructed_ratescore import CUT, write_ratescore

_THROWN_IN = (
    "\n", "\n\n", "  ", " \n ", ". ", ".", "1. ", "\n2) ", ": ", ",", ";", "-", "\n- ", "(", ")",
    '"', "*", "A", "Dr. ", "\n1.", "FINDINGS:\n", "IMPRESSION: ", "?", "! ", "\t", "3.5 cm ", "'s",
    "___", "\u2019", "\xa0",
)  # fmt: skip


def main() -> None:
    from loguru import logger

    logger.remove()  # PyRuSH prints every token that it looks at
    from RaTEScore import RaTEScore
    from RaTEScore.utils import sentence_split

    found = {"sentences": [sentence_split([text])[0] for text in CUT]}
    for affinity in ("long", "short"):
        with tempfile.TemporaryDirectory() as place:
            ner, synonyms = write_ratescore(Path(place))
            scorer = RaTEScore(
                str(ner),
                str(synonyms),
                use_gpu=False,
                visualization_path=f"{place}/said/",
                affinity_matrix=affinity,
            )
            candidates, references = CUT[1:] + CUT[:1], CUT
            found[affinity] = [
                float(x) for x in scorer.compute_score(list(candidates), list(references))
            ]
            text = (Path(place) / "said" / "rate_score.json").read_text()
            found["entities"] = [
                json.loads(line)["reference_entities"] for line in text.splitlines()
            ]
    target = Path(__file__).with_name("ratescore.json")
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for folder in sys.argv[1:]:
        _compare_sentences(Path(folder), sentence_split)


def _compare_sentences(folder: Path, sentence_split) -> None:
    from vlscore.metrics.networks.clinical_sentences import sentences

    rows = [json.loads(x) for p in sorted(folder.glob("*.jsonl")) for x in p.open()]
    reports = list(dict.fromkeys(row[role] for row in rows for role in ("candidate", "reference")))
    chance = random.Random(11)
    changed = []
    for text in reports * 3:
        for _ in range(6):
            at = chance.randrange(max(len(text), 1))
            text = text[:at] + chance.choice(_THROWN_IN) + text[at + chance.choice((0, 0, 1, 3)) :]
        changed.append(text)
    for name, texts in (("reports", reports), ("changed reports", changed)):
        other = sum(sentence_split([text])[0] != sentences(text) for text in texts)
        print(f"{name}: {len(texts)}, cut otherwise: {other}")


if __name__ == "__main__":
    main()
