"""Claim: read one by one, at most 3 % of the perturbations are wrong in each kind, 1.5 % over all.

Protocol: the reports are those of the Indiana University collection (findings and impression
joined), those that five report generators wrote for its images, and phantom reports; equal texts
count once. The sha256 of a fixed sentence and the study's id puts every report into one of two
halves: on "development" the rules are mended, "final" alone is read. Every kind is applied to each
report, seed 0, one change a kind; of each kind's changes, 100 are drawn, or all where there are
fewer, by the sha256 of the drawing's seed, the id and the kind. Readers who have not seen the rules
get numbered items in random order: the report before, after, the kind, and what was meant.

A change is wrong where it takes the wrong words, breaks the grammar, does not change the meaning as
the kind claims, or is belied by another sentence of the report. Doubtful is what readers may differ
on. Where several readers read an item, the worse verdict counts. Intervals are exact (Clopper and
Pearson), 95 %. No reader is a radiologist.

What was found stands in `perturbations/reading.jsonl`, without any report's text: for each item the
study, the kind, a digest of the changed text, the verdict, the reason where it was not right. A
line before them says which rules (version, digest of code and lexicons) and drawing they are of.

Draw:   python benchmarks/perturbation_reading.py draw --reports iu_reports.jsonl
            [--candidates vlm.jsonl ...] [--half final] [--seed 1] [--known key.jsonl] --out FOLDER
Record: python benchmarks/perturbation_reading.py record FOLDER verdicts.jsonl ...
Prune:  python benchmarks/perturbation_reading.py prune --reports iu_reports.jsonl
            [--candidates ...] (removes from the record what the rules of today do not make)
Table:  python benchmarks/perturbation_reading.py table [--out FILE]
"""

import argparse
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import binomtest

from vlscore.core import __version__, atomic_write, resource_path, write_json
from vlscore.data import Report, open_reports, sample_studies
from vlscore.perturb import KINDS, Perturbation, lexicons_digest, perturb_report

READING = resource_path("perturbations") / "reading.jsonl"
PACKAGE = Path(__file__).resolve().parent.parent / "vlscore"
VERDICTS = ("right", "doubtful", "wrong")
HALVES = ("development", "final")
_PHANTOM_SEED = 2026
_PHANTOMS = 200
_FOR_READERS = """Each line is one change of a radiology report: the report before ("original") and
after ("changed"), the kind of change, what the kind does, and what was meant here.

Write one line an item: {"item": 7, "verdict": "right" | "doubtful" | "wrong", "reason": "..."}

wrong     it takes the wrong words, breaks the grammar, does not change the meaning as the kind
          says, or another sentence of the changed report contradicts it or speaks of what is gone
doubtful  readers may differ
right     otherwise

What was ungrammatical or contradictory in the original already is not the change's fault. XXXX
stands for words that were taken out for privacy; [UNK] is meant where the kind says so. A reason is
needed where the verdict is not "right".
"""


class Item(NamedTuple):
    """One change to read."""

    number: int
    perturbation: Perturbation

    def to_dict(self) -> dict[str, Any]:
        """As the reader gets it; the study is left out, so that no item points at another."""
        p = self.perturbation
        return {
            "item": self.number,
            "kind": p.kind,
            "what the kind does": KINDS[p.kind].description,
            "meant": p.rule,
            "original": p.original,
            "changed": p.perturbed,
        }


def half_of(study_id: str) -> str:
    """Which half a report belongs to; all reports of one study to the same."""
    study = study_id.partition(":")[0]
    return HALVES[int(digest(f"vlscore perturbation reading {study}")[:8], 16) % 2]


def reports_of(
    tables: Iterable[Path], candidates: Iterable[Path], phantoms: int
) -> Iterator[tuple[str, str]]:
    """(id, text) of every report."""
    for table in tables:
        yield from ((r.id, r.text) for r in open_reports(table) if isinstance(r, Report))
    for table in candidates:
        rows = open_reports(table, text_column="candidate")
        yield from ((f"{r.id}:{table.stem}", r.text) for r in rows if isinstance(r, Report))
    for number, study in enumerate(sample_studies(_PHANTOM_SEED, phantoms)):
        yield f"phantom-{number}", study.reference


def distinct(reports: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The reports without those whose text came before."""
    seen = set()
    for study_id, text in reports:
        words = " ".join(text.lower().split())
        if words not in seen:
            seen.add(words)
            yield study_id, text


def drawn(
    reports: Iterable[tuple[str, str]], seed: int, each: int, known: Collection[tuple[str, ...]]
) -> list[Item]:
    """At most `each` changes of each kind but the known ones, in random order, from 1 on."""
    made: dict[str, list[Perturbation]] = defaultdict(list)
    for study_id, text in reports:
        for perturbation in perturb_report(text, study_id=study_id):
            if (study_id, perturbation.kind, digest(perturbation.perturbed)) not in known:
                made[perturbation.kind].append(perturbation)

    def place(p: Perturbation) -> str:
        return digest(f"{seed} {p.study_id} {p.kind}")

    chosen = [p for kind in KINDS for p in sorted(made[kind], key=place)[:each]]
    ordered = sorted(chosen, key=lambda p: digest(place(p)))
    return [Item(number, p) for number, p in enumerate(ordered, start=1)]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def rules_digest() -> str:
    """Of the code and the lexicons that decide what is generated."""
    files = [
        file
        for package in ("perturb", "findings")
        for file in sorted((PACKAGE / package).rglob("*.py"))
    ]
    return digest("".join(file.read_text(encoding="utf-8") for file in files) + lexicons_digest())


def draw(options: argparse.Namespace) -> None:
    """Write the items: all in one file, and in parts for several readers."""
    reports = distinct(reports_of(options.reports, options.candidates, options.phantoms))
    half = [(name, text) for name, text in reports if half_of(name) == options.half]
    earlier = _read(options.known) if options.known else []
    known = {(entry["study_id"], entry["kind"], entry["digest"]) for entry in earlier}
    items = drawn(half, options.seed, options.each, known)
    _write(options.out / "items.jsonl", (item.to_dict() for item in items))
    for start in range(0, len(items), options.part):
        part = items[start : start + options.part]
        name = f"part-{start // options.part + 1:02}.jsonl"
        _write(options.out / name, (item.to_dict() for item in part))
    _write(options.out / "key.jsonl", map(_key, items))
    facts = {
        "vlscore": __version__,
        "rules": rules_digest(),
        "half": options.half,
        "seed": options.seed,
        "reports": len(half),
        "items": len(items),
    }
    if known:
        facts["known"] = len(known)
    write_json(options.out / "drawing.json", facts)
    with atomic_write(options.out / "README.txt") as stream:
        stream.write(_FOR_READERS)
    counts = Counter(item.perturbation.kind for item in items)
    print(f"{len(items)} changes of {len(half)} reports in {options.out}: {dict(counts)}")


def _key(item: Item) -> dict[str, Any]:
    p = item.perturbation
    return {
        "item": item.number,
        "study_id": p.study_id,
        "kind": p.kind,
        "digest": digest(p.perturbed),
    }


def record(options: argparse.Namespace) -> None:
    """Take the readers' verdicts into `perturbations/reading.jsonl`.

    A verdict is {"item": 7, "verdict": "right" | "doubtful" | "wrong", "reason": "..."}.
    """
    verdicts = verdicts_of(options.verdicts)
    key = _read(options.folder / "key.jsonl")
    missing = [entry["item"] for entry in key if entry["item"] not in verdicts]
    unknown = sorted(verdicts.keys() - {entry["item"] for entry in key})
    if missing or unknown:
        raise SystemExit(f"items without a verdict: {missing}; verdicts on no item: {unknown}")
    facts = json.loads((options.folder / "drawing.json").read_text(encoding="utf-8"))
    facts["readers"] = len(options.verdicts)
    records = [{**entry, **verdicts[entry["item"]]} for entry in key]
    drawn_as = ("half", "seed")
    others = [
        reading
        for reading in readings()
        if any(reading[0][name] != facts[name] for name in drawn_as)
    ]
    _write(READING, [line for reading in [*others, [facts, *records]] for line in reading])


def verdicts_of(files: Iterable[Path]) -> dict[int, dict[str, str]]:
    """Item -> the worst verdict on it, with its reason."""
    found: dict[int, dict[str, str]] = {}
    for file in files:
        for row, line in enumerate(_read(file), start=1):
            item, verdict = line.get("item"), line.get("verdict")
            if not isinstance(item, int) or verdict not in VERDICTS:
                raise SystemExit(f"{file}, row {row}: needs an item's number and one of {VERDICTS}")
            reason = str(line.get("reason") or "")
            if verdict != "right" and not reason:
                raise SystemExit(f"{file}, row {row}: a change that is not right needs a reason")
            old = found.get(item)
            if old is None or VERDICTS.index(verdict) > VERDICTS.index(old["verdict"]):
                found[item] = {"verdict": verdict}
                if verdict != "right":
                    found[item]["reason"] = reason
    return found


def table(records: list[dict[str, Any]]) -> str:
    """One row a kind and one of all: read, wrong with its interval, doubtful."""
    lines = [
        "| kind | read | wrong | wrong, % (95 % interval) | doubtful |",
        "|---|---:|---:|---|---:|",
    ]
    for name in (*KINDS, "all"):
        own = Counter(r["verdict"] for r in records if name in (r["kind"], "all"))
        read, wrong = own.total(), own["wrong"]
        if not read:
            continue
        low, high = binomtest(wrong, read).proportion_ci(0.95, "exact")
        share = f"{100 * wrong / read:.1f} ({100 * low:.1f} to {100 * high:.1f})"
        lines.append(f"| {name} | {read} | {wrong} | {share} | {own['doubtful']} |")
    return "\n".join(lines)


def still_made(
    records: Iterable[dict[str, Any]], reports: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    """The records of the changes that the rules of today make, to the letter."""
    texts, wanted = dict(reports), defaultdict(list)
    for entry in records:
        wanted[entry["study_id"]].append(entry)
    found = []
    for study_id, own in wanted.items():
        kinds = [entry["kind"] for entry in own]
        changes = perturb_report(texts.get(study_id, ""), kinds, study_id=study_id)
        made = {(p.kind, digest(p.perturbed)) for p in changes}
        found += [entry for entry in own if (entry["kind"], entry["digest"]) in made]
    return sorted(found, key=lambda entry: entry["item"])


def prune(options: argparse.Namespace) -> None:
    """Remove from the record what the rules of today do not make."""
    reports = list(reports_of(options.reports, options.candidates, options.phantoms))
    rest = [[facts, *still_made(records, reports)] for facts, *records in readings()]
    _write(READING, [line for reading in rest for line in reading])


def report_of() -> str:
    """Return the page on all drawings."""
    parts = ["# Perturbations, read one by one", "## All drawings", table(read_changes())]
    for facts, *records in readings():
        reasons = [
            f"- {r['verdict']}, {r['kind']}, {r['study_id']}: {r['reason']}"
            for r in sorted(records, key=lambda r: VERDICTS.index(r["verdict"]), reverse=True)
            if r["verdict"] != "right"
        ]
        new = ", none of which earlier rules made" if "known" in facts else ""
        parts += [
            f"## Drawing {facts['seed']}",
            f"{facts['items']} changes of {facts['reports']} reports (half {facts['half']!r})"
            f"{new}; files of verdicts: {facts['readers']}; vlscore {facts['vlscore']}, rules "
            f"{facts['rules']}. Of these changes the rules of today make {len(records)}:",
            table(records),
            "What was not right:",
            "\n".join(reasons) or "Nothing.",
        ]
    return "\n\n".join(parts) + "\n"


def show(options: argparse.Namespace) -> None:
    """Print what is recorded."""
    from machine import publish

    publish(report_of(), options.out)


def readings() -> list[list[dict[str, Any]]]:
    """Return for each drawing that was read its facts and one record an item."""
    found: list[list[dict[str, Any]]] = []
    for line in _read(READING):
        if "rules" in line:
            found.append([])
        found[-1].append(line)
    return found


def read_changes() -> list[dict[str, Any]]:
    """Return the records of all drawings; of a change that two of them have, the worse verdict."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for _, *records in readings():
        for entry in sorted(records, key=lambda r: VERDICTS.index(r["verdict"])):
            key = entry["study_id"], entry["kind"], entry["digest"]
            if key not in found or entry["verdict"] != "right":
                found[key] = entry
    return list(found.values())


def _write(path: Path, records: Iterable[dict[str, Any]]) -> None:
    with atomic_write(path) as stream:
        for entry in records:
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _read(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    drawing = commands.add_parser("draw", help="what there is to read")
    drawing.add_argument("--half", choices=HALVES, default="final")
    drawing.add_argument("--seed", type=int, default=1)
    drawing.add_argument("--each", type=int, default=100, help="changes of each kind")
    drawing.add_argument("--known", type=Path, help="changes of earlier rules, not drawn again")
    drawing.add_argument("--part", type=int, default=175, help="items in one reader's file")
    drawing.add_argument("--out", type=Path, required=True)
    drawing.set_defaults(run=draw)
    recording = commands.add_parser("record", help="what the readers found")
    recording.add_argument("folder", type=Path)
    recording.add_argument("verdicts", type=Path, nargs="+")
    recording.set_defaults(run=record)
    showing = commands.add_parser("table", help="what is recorded")
    showing.add_argument("--out", type=Path)
    showing.set_defaults(run=show)
    pruning = commands.add_parser("prune", help="remove what the rules of today do not make")
    pruning.set_defaults(run=prune)
    for command in (drawing, pruning):
        command.add_argument("--reports", type=Path, nargs="*", default=[])
        command.add_argument("--candidates", type=Path, nargs="*", default=[])
        command.add_argument("--phantoms", type=int, default=_PHANTOMS)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
