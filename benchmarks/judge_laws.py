"""Claim: an invented finding never raises the judge's rating; order and repetition change nothing.

Protocol: pairs of real generators' reports and the radiologist's references, equal pairs once, a
sample by hash. The laws:

- *an invention never pays*: one of the sentences INVENTED is added to the candidate, where the
  reference states neither the finding nor another word for it, and the candidate no such finding.
  Broken where the rating or the grade rises.
- *an invention is an error*: of the same sentences. Broken where no error is added.
- *an invention behind "or" never pays*, *... is an error*: one of ALTERNATIVES is joined to a
  sentence of the candidate that states a finding, by each word of JOINTS. Broken as above.
- *a denial never pays*: "No ..." of a finding that the reference states and the candidate does not
  is added to the candidate. Broken where the rating or the grade rises.
- *order*: the sentences of the candidate, or of the reference, are shuffled. A report with a
  sentence that points back at another ("This may be ...") is left out. Broken where errors differ
  in category, finding or severity, or the rating differs.
- *repetition*: the candidate, or the reference, is written twice. Broken as above.

What a report states is read by the extraction of the code under test, so what it misreads counts
against the judge, or is not tried. With --before, the same script runs with the package of another
checkout, on the same pairs.

Run: python benchmarks/judge_laws.py FILE.jsonl ... [--before CHECKOUT] [--pairs N] [--write]
         [--out benchmarks/results/judge_laws.md]
--write puts the table into docs/judge.md between its marks.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from machine import describe_machine, publish

from vlscore.core import atomic_write
from vlscore.findings import Polarity, extract
from vlscore.metrics import Judgement, RuleJudge, rating
from vlscore.stats import TextTable

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- laws: begin -->", "<!-- laws: end -->"
#: Invented sentence -> observations that are the finding, or another word for it.
INVENTED = {
    "There is a 3 cm mass in the left upper lobe.": ("mass", "neoplasm"),
    "There is an 8 mm nodule in the right lower lobe.": ("nodule", "nodular_opacity", "lesion"),
    "Moderate pulmonary edema.": (
        *("edema", "vascular_congestion", "fluid_overload", "heart_failure"),
    ),
    "Large right pleural effusion.": ("pleural_effusion", "hemothorax"),
    "There is an acute fracture of the left sixth rib.": ("fracture",),
    "Small left apical pneumothorax.": ("pneumothorax",),
    "Left lower lobe consolidation.": (
        *("consolidation", "pneumonia", "infiltrate", "airspace_disease", "infection"),
        *("aspiration", "opacity", "atelectasis", "density"),
    ),
    "The heart is severely enlarged.": ("cardiomegaly", "chamber_enlargement"),
    "Large hiatal hernia.": ("hernia",),
    "There is free air under the diaphragm.": ("free_air",),
    "Right hilar lymphadenopathy.": ("lymphadenopathy", "hilar_enlargement"),
    "There is a cavity in the right upper lobe.": ("cavity",),
    "There is pulmonary fibrosis.": (
        *("fibrosis", "interstitial_disease", "interstitial_markings", "parenchymal_change"),
        *("scar",),
    ),
    "Compression fracture of L1.": ("vertebral_deformity", "fracture", "deformity"),
    "Aneurysm of the descending aorta.": ("aortic_aneurysm",),
}
#: Invented words -> observations that are the finding, or another word for it; none is likely to be
#: confused with what else the sentence states.
ALTERNATIVES = {
    "a large pneumothorax": ("pneumothorax", "hyperlucency"),
    "free air under the diaphragm": ("free_air",),
    "an acute rib fracture": ("fracture", "deformity", "bone_abnormality"),
    "aortic dissection": ("aortic_aneurysm", "aortic_tortuosity", "atherosclerosis"),
}
JOINTS = (" or", " versus", " vs", " and/or", ", possibly")
#: A sentence that denies an observation.
DENIED = {
    "pleural_effusion": "No pleural effusion.",
    "edema": "No pulmonary edema.",
    "pneumothorax": "No pneumothorax.",
    "cardiomegaly": "No cardiomegaly.",
    "fracture": "No fracture.",
    "nodule": "No nodule.",
    "atelectasis": "No atelectasis.",
    "consolidation": "No consolidation.",
}
_END = re.compile(r"(?<=[a-z)]\.)\s+|(?<= \.)\s+")
#: Beginnings of a sentence that only another one explains.
_POINTS_BACK = re.compile(
    r"(?:this|these|those|they|it|its|such|which|both|the (?:former|latter|same|findings?)"
    r"|findings?|appearances?|again|also|otherwise|however|there(?:fore)?,|and|or|but|unchanged"
    r"|stable|additional\w*|other|another)\b",
    re.IGNORECASE,
)
LAWS = (
    "an invention never pays",
    "an invention is an error",
    'an invention behind "or" never pays',
    'an invention behind "or" is an error',
    "a denial never pays",
    "order of the candidate's sentences",
    "order of the reference's sentences",
    "the candidate written twice",
    "the reference written twice",
)
Pair = tuple[str, str]


def pairs_of(paths: Sequence[Path]) -> list[Pair]:
    """Return the distinct (candidate, reference) of all tables, in the order of their hashes."""
    rows = [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
    pairs = dict.fromkeys((row["candidate"], row["reference"]) for row in rows)
    return sorted(pairs, key=lambda pair: hashlib.sha256(repr(pair).encode()).hexdigest())


def stated_in(report: str) -> frozenset[str]:
    """Return the observations that a report states, certain or not."""
    return frozenset(f.observation for f in extract(report) if f.polarity is not Polarity.NEGATIVE)


def errors_of(judgement: Judgement) -> Counter[tuple[str, str, int]]:
    """Return the errors without their words."""
    return Counter((str(e.category), e.finding, e.severity) for e in judgement.errors)


def shuffled(report: str, rng: np.random.Generator) -> str | None:
    """Return a report with its sentences in another order; None where one points back."""
    sentences = _END.split(report.strip())
    if len(sentences) < 2 or any(_POINTS_BACK.match(each) for each in sentences):
        return None
    if not all(each.endswith(".") for each in sentences):
        return None
    return " ".join(sentences[k] for k in rng.permutation(len(sentences)))


def with_alternative(report: str, words: str) -> str | None:
    """Return a report with words joined to its last sentence that only states findings, or None."""
    for sentence in reversed(extract(report).sentences):
        stated = [f.polarity is not Polarity.NEGATIVE for f in sentence.findings]
        end = (
            sentence.span.end
            - len(sentence.span.of(report))
            + len(sentence.span.of(report).rstrip(" ."))
        )
        if stated and all(stated):
            return f"{report[:end]}{words}{report[end:]}"
    return None


def broken_laws(pairs: Sequence[Pair]) -> dict[str, tuple[int, int]]:
    """Return law -> how often it is broken, and how often it was tried."""
    judge = RuleJudge()
    tried, broken = Counter[str](), Counter[str]()

    def count(law: str, is_broken: bool) -> None:
        tried[law] += 1
        broken[law] += is_broken

    for place, (candidate, reference) in enumerate(pairs):
        before = judge.judge(candidate, reference)
        true, said = stated_in(reference), stated_in(candidate)
        for sentence, words in INVENTED.items():
            if not (true | said).isdisjoint(words):
                continue
            after = judge.judge(f"{candidate} {sentence}", reference)
            count(LAWS[0], _is_better(after, before))
            count(LAWS[1], not errors_of(after) - errors_of(before))
        for phrase, words in ALTERNATIVES.items():
            for joint in JOINTS if (true | said).isdisjoint(words) else ():
                if (text := with_alternative(candidate, f"{joint} {phrase}")) is not None:
                    after = judge.judge(text, reference)
                    count(LAWS[2], _is_better(after, before))
                    count(LAWS[3], not errors_of(after) - errors_of(before))
        for name in sorted((true - said) & DENIED.keys()):
            after = judge.judge(f"{candidate} {DENIED[name]}", reference)
            count(LAWS[4], _is_better(after, before))
        rng = np.random.default_rng([0, place])
        if (other := shuffled(candidate, rng)) is not None:
            count(LAWS[5], _differs(judge.judge(other, reference), before))
        if (other := shuffled(reference, rng)) is not None:
            count(LAWS[6], _differs(judge.judge(candidate, other), before))
        count(LAWS[7], _differs(judge.judge(f"{candidate} {candidate}", reference), before))
        count(LAWS[8], _differs(judge.judge(candidate, f"{reference} {reference}"), before))
    return {law: (broken[law], tried[law]) for law in LAWS}


def _is_better(after: Judgement, before: Judgement) -> bool:
    return rating(after) > rating(before) + 1e-9 or after.grade > before.grade


def _differs(after: Judgement, before: Judgement) -> bool:
    """Return whether errors or the rating differ; of a finding that is right, once is enough."""
    return errors_of(after) != errors_of(before) or abs(rating(after) - rating(before)) > 1e-9


def _share(broken: int, tried: int) -> str:
    return f"{broken} of {tried} ({broken / max(tried, 1):.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json", action="store_true", help="print the counts alone")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    pairs = pairs_of(arguments.files)[: arguments.pairs]
    counts = broken_laws(pairs)
    if arguments.json:
        print(json.dumps(counts))
        return
    columns = {"broken": counts}
    if arguments.before is not None:
        columns = {"broken before": _counts_of(arguments.before, arguments)} | columns
    rows = tuple((law, *(_share(*each[law]) for each in columns.values())) for law in LAWS)
    table = TextTable("", ("law", *columns), rows).markdown().strip()
    text = f"{table}\n\n{len(pairs)} pairs of real generators; `benchmarks/judge_laws.py`."
    publish(
        f"# Laws of the judge\n\n{describe_machine()}\n\nJudge: `{RuleJudge().name}`.\n\n{text}\n",
        arguments.out,
    )
    if arguments.write:
        page = DOCS / "judge.md"
        start, rest = page.read_text("utf-8").split(BEGIN)
        with atomic_write(page) as stream:
            stream.write(f"{start}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def _counts_of(checkout: Path, arguments: argparse.Namespace) -> dict[str, tuple[int, int]]:
    """Return the counts of an earlier version's package."""
    files = [str(path.resolve()) for path in arguments.files]
    command = [sys.executable, __file__, *files, "--json", "--pairs", str(arguments.pairs)]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return {law: (broken, tried) for law, (broken, tried) in json.loads(done.stdout).items()}


if __name__ == "__main__":
    main()
