"""How well the findings agree with independent manual codings of real reports.

Protocol. The file is the Indiana University collection (Demner-Fushman et al. 2016) as JSON lines
with `id`, `findings`, `impression` and `mesh`: the coders' finding/anatomy/side/quality terms,
`;`-separated, "normal" where they coded nothing. Findings are extracted from findings and
impression, which is what the coders read. Reports coded "No Indexing" are left out.

What counts as present. The coders coded "probable atelectasis" and both of "atelectasis versus
scar", but not "may represent atelectasis". So a finding counts where it is stated or likely
(`Finding.is_likely`), of this patient, now; two more columns give F1 with stated findings alone
and with every uncertain one.

Development and held-out. The lexicons were developed on reports whose hashed id falls in the first
60 of 100 buckets; the texts and disagreements of the other 40 % were not looked at, and they are
scored only when the results file is made: `--development` leaves them out, and so do the tests.
They have been scored three times: after the first time, rules for rows with an F1 below .90 were
added from sentences of our own, without a look at a held-out report; after the second, words that
the lexicons lacked were added from sentences of all reports, without their codings.

Side: of the reports where both say an observation is present and the coding names a side, how
often the sets of sides are equal; a side that the report's words do not name counts as wrong
here, and the column "where named" leaves those out. Zone: likewise, every coded place must be among
ours, matched by level (a coded "base" may be our lower lobe, lower zone or retrocardiac).

    python benchmarks/findings_vs_codings.py iu_reports.jsonl [--development] [--disagreements 60]

The last option prints so many random disagreements of the development part, to read and classify.
The file is made of `indiana_reports.csv` of the collection (https://openi.nlm.nih.gov, CC BY-NC-ND
4.0; also kaggle.com/datasets/raddar/chest-xrays-indiana-university), columns uid, indication,
comparison, findings, impression, MeSH and Problems, one JSON line a report.
"""

import argparse
import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from machine import describe_machine, publish

from vlscore.findings import Finding, Polarity, ReportFindings, Side, Status, extract

SOURCE = "Indiana University chest X-ray collection (Open-i), CC BY-NC-ND 4.0"
RESULTS = Path(__file__).parent / "results" / "findings_vs_codings.md"
DEVELOPMENT_BUCKETS = 60


@dataclass(frozen=True)
class Concept:
    """One row of the table: which codings and which observations mean the same."""

    name: str
    coding: str
    observations: str
    note: str = ""


#: Codings that mean what the observation means.
CLEAN = (
    Concept(
        "opacity, any wording",
        r"(Opacity|Density|Airspace Disease|Infiltrate|Consolidation)(/|$)",
        "opacity nodular_opacity density airspace_disease infiltrate consolidation",
        "the coders choose among these five by the report's word, and code one phrase with two",
    ),
    Concept("atelectasis", r"Pulmonary Atelectasis", "atelectasis"),
    Concept("pneumonia", r"Pneumonia(/|$)", "pneumonia"),
    Concept("pleural effusion", r"Pleural Effusion", "pleural_effusion"),
    Concept("pneumothorax", r"(Pneumothorax|Hydropneumothorax)", "pneumothorax"),
    Concept("pulmonary edema", r"Pulmonary Edema", "edema"),
    Concept("vascular congestion", r"Pulmonary Congestion", "vascular_congestion"),
    Concept("cardiomegaly", r"(Cardiomegaly|Cardiac Shadow/.*enlarged)", "cardiomegaly"),
    Concept("nodule", r"Nodule", "nodule"),
    Concept("calcified granuloma", r"Calcified Granuloma", "calcified_granuloma"),
    Concept("granuloma, not said to be calcified", r"Granuloma(/|$)", "granuloma"),
    Concept("granulomatous disease", r"Granulomatous Disease", "granulomatous_disease"),
    Concept(
        "calcification",
        r"Calcinosis",
        "calcification lymph_node_calcification aortic_calcification",
        "wherever it lies: the codings name the site as a qualifier",
    ),
    Concept("atherosclerosis", r"Atherosclerosis", "atherosclerosis"),
    Concept("aortic tortuosity", r"Aorta.*/(tortuous|prominent|enlarged)", "aortic_tortuosity"),
    Concept("scar", r"Cicatrix", "scar"),
    Concept(
        "interstitial and bronchovascular markings",
        r"(Markings|Lung.*/interstitial)",
        "interstitial_markings vascular_crowding",
    ),
    Concept("interstitial lung disease", r"Lung Diseases, Interstitial", "interstitial_disease"),
    Concept("pulmonary fibrosis", r"(Pulmonary Fibrosis|Fibrosis)(/|$)", "fibrosis"),
    Concept("emphysema", r"(Pulmonary Emphysema|Emphysema|Bullous Emphysema)", "emphysema"),
    Concept("COPD", r"Pulmonary Disease, Chronic Obstructive", "copd"),
    Concept("hyperinflation", r"Lung.*/hyperdistention", "hyperinflation"),
    Concept("low lung volumes", r"Lung.*/hypoinflation", "hypoinflation"),
    Concept("elevated diaphragm", r"Diaphragm/.*elevated", "elevated_diaphragm"),
    Concept("flattened diaphragm", r"Diaphragm/.*flattened", "flattened_diaphragm"),
    Concept("blunted costophrenic angle", r"Costophrenic Angle.*blunted", "costophrenic_blunting"),
    Concept("pleural thickening", r"Thickening/pleura", "pleural_thickening"),
    Concept("diaphragmatic eventration", r"Diaphragmatic Eventration", "eventration"),
    Concept("hiatal hernia", r"Hernia", "hernia"),
    Concept(
        "degenerative change of spine or joint",
        r"(.*/degenerative|Osteophyte|Spondylosis|Arthritis|Hyperostosis)",
        "degenerative_change osteophyte spondylosis arthritis hyperostosis",
        "one report phrase is coded now as vertebrae/degenerative, now by one of the other terms",
    ),
    Concept("scoliosis", r"Scoliosis", "scoliosis"),
    Concept("kyphosis", r"Kyphosis", "kyphosis"),
    Concept("osteopenia", r"(Bone Diseases, Metabolic|Osteoporosis)", "osteopenia"),
    Concept("fracture", r"Fractures, Bone", "fracture"),
    Concept("catheter", r"Catheters, Indwelling", "catheter"),
    Concept("tube", r"Tube, Inserted", "tube"),
    Concept("foreign body", r"Foreign Bodies", "foreign_body"),
    Concept("spinal fusion", r"Spinal Fusion", "spinal_hardware"),
    Concept("surgical clips and staples", r"(Surgical Instruments|Sutures)", "surgical_material"),
)

#: Codings that mean something else than any one observation, and why.
UNCLEAR = (
    Concept(
        "density (alone)",
        r"Density",
        "density",
        "also coded for the adjective 'dense' or 'calcific' beside nodules and calcifications",
    ),
    Concept(
        "infiltrate (alone)",
        r"Infiltrate",
        "infiltrate",
        "differential diagnoses ('atelectasis or infiltrate') are coded in some reports only",
    ),
    Concept(
        "deformity",
        r"Deformity",
        "deformity vertebral_deformity",
        "a catch-all: irregular ribs, retracted hila, height loss, scaphoid abdomen",
    ),
    Concept(
        "implanted device",
        r"(Implanted Medical Device|Medical Device)",
        "pacemaker valve_prosthesis stimulator device joint_prosthesis",
        "valves and shunts are coded as instruments or catheters, or not at all; "
        "electrodes on the skin in some reports only",
    ),
    Concept(
        "sternotomy",
        r"Sternotomy",
        "sternotomy",
        "never coded, however plainly stated",
    ),
    Concept(
        "lucency", r"(Lung, Hyperlucent|Lucency)", "hyperlucency", "used for several unlike signs"
    ),
    Concept(
        "prominent hilum or mediastinum",
        r"(Lung/hilum.*(enlarged|prominent)|Mediastinum/.*(prominent|enlarged))",
        "hilar_enlargement mediastinal_widening lymphadenopathy",
        "the mask XXXX stands for 'hila' in many of these reports",
    ),
    Concept(
        "mass",
        r"Mass(/|$)",
        "mass",
        "masses seen before and no longer are coded or not; nodule/mass is coded as either",
    ),
)

#: Coded place -> our zones at the same level of the chest.
LEVELS = {
    "base": {"base", "lower lobe", "lower zone", "costophrenic angle", "retrocardiac"},
    "lower lobe": {"lower lobe", "base", "lower zone", "retrocardiac"},
    "upper lobe": {"upper lobe", "upper zone", "apex"},
    "apex": {"apex", "upper zone", "upper lobe"},
    "middle lobe": {"middle lobe", "mid zone"},
    "lingula": {"lingula", "mid zone"},
    "hilum": {"hilum"},
    "retrocardiac": {"retrocardiac", "base", "lower lobe"},
}


@dataclass
class Counts:
    """Agreement of one concept over reports."""

    both: int = 0
    ours_only: int = 0
    theirs_only: int = 0
    side_agree: int = 0
    side_unnamed: int = 0
    side_total: int = 0
    zone_agree: int = 0
    zone_total: int = 0
    ours_only_ids: list[str] = field(default_factory=list)
    theirs_only_ids: list[str] = field(default_factory=list)

    @property
    def coded(self) -> int:
        return self.both + self.theirs_only

    @property
    def precision(self) -> float:
        return _ratio(self.both, self.both + self.ours_only)

    @property
    def recall(self) -> float:
        return _ratio(self.both, self.coded)

    @property
    def f1(self) -> float:
        return _ratio(2 * self.both, 2 * self.both + self.ours_only + self.theirs_only)

    def __iadd__(self, other: "Counts") -> "Counts":
        for name in vars(other):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


def _ratio(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else float("nan")


@dataclass(frozen=True)
class Report:
    """One coded report with what we extract from it."""

    id: str
    codes: tuple[tuple[str, ...], ...]
    findings: ReportFindings

    @property
    def is_development(self) -> bool:
        return is_development(self.id)


def is_development(id: str) -> bool:
    """Whether the report of that id belongs to the part that the lexicons were developed on."""
    digest = hashlib.sha256(id.encode()).hexdigest()
    return int(digest, 16) % 100 < DEVELOPMENT_BUCKETS


def read_reports(path: Path, development_only: bool = False) -> list[Report]:
    """The coded reports of the file, with their findings; held-out ones unread where asked."""
    reports = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            codes = tuple(
                tuple(part.strip() for part in code.split("/")) for code in row["mesh"].split(";")
            )
            if ("No Indexing",) in codes or (development_only and not is_development(row["id"])):
                continue
            text = "\n".join(row[part] for part in ("findings", "impression") if row[part])
            reports.append(Report(row["id"], codes, extract(text)))
    return reports


def likely(finding: Finding) -> bool:
    return finding.is_likely


def compare(
    reports: Iterable[Report], row: Concept, counts_as: Callable[[Finding], bool] = likely
) -> Counts:
    """Agreement of the codings and the findings on one concept."""
    coding = re.compile(row.coding)
    counts = Counts()
    for report in reports:
        codes = [code for code in report.codes if coding.match("/".join(code))]
        ours = [f for f in report.findings.of(*row.observations.split()) if counts_as(f)]
        if ours and codes:
            counts.both += 1
            _compare_places(counts, codes, ours)
        elif ours:
            counts.ours_only += 1
            counts.ours_only_ids.append(report.id)
        elif codes:
            counts.theirs_only += 1
            counts.theirs_only_ids.append(report.id)
    return counts


def _compare_places(counts: Counts, codes: list[tuple[str, ...]], findings: list[Finding]) -> None:
    coded_sides = {side for code in codes for side in _sides(code)}
    our_sides = {side for finding in findings for side in _sides_of(finding)}
    if coded_sides:
        counts.side_total += 1
        counts.side_agree += coded_sides == our_sides
        counts.side_unnamed += not our_sides
    zones = {zone for finding in findings for zone in finding.zones}
    coded_zones = {part for code in codes for part in code if part in LEVELS}
    if coded_zones:
        counts.zone_total += 1
        counts.zone_agree += all(LEVELS[zone] & zones for zone in coded_zones)


def _sides(code: tuple[str, ...]) -> set[str]:
    return _with_sides_of_zones({part for part in code if part in ("left", "right")}, code)


def _sides_of(finding: Finding) -> set[str]:
    sides = {str(finding.side)} if finding.side and finding.side is not Side.BILATERAL else set()
    named = (*finding.zones, *(["bilateral"] if finding.side is Side.BILATERAL else []))
    return _with_sides_of_zones(sides, named)


def _with_sides_of_zones(sides: set[str], named: Iterable[str]) -> set[str]:
    also = {"bilateral": {"left", "right"}, "lingula": {"left"}, "middle lobe": {"right"}}
    return sides.union(*(also.get(name, set()) for name in named))


def pooled(counts: Iterable[Counts]) -> Counts:
    """Micro average: the counts of all concepts added up."""
    total = Counts()
    for one in counts:
        total += one
    return total


def table(reports: list[Report], rows: tuple[Concept, ...], notes: bool = False) -> list[str]:
    """A markdown table of the concepts."""
    heads = [
        "observation", "coded", "precision", "recall", "F1", "F1, stated only",
        "F1, with uncertain", "side", "side where named", "zone",
    ]  # fmt: skip
    lines = [
        "| " + " | ".join(heads + ["why not clean"] * notes) + " |",
        "|---|" + "---:|" * (len(heads) - 1) + "---|" * notes,
    ]
    for row in rows:
        line = _line(row.name, [compare(reports, row, rule) for rule in _RULES])
        lines.append(line + (f" {row.note} |" if notes else ""))
    if not notes:
        total = [pooled(compare(reports, row, rule) for row in rows) for rule in _RULES]
        lines.append(_line("**all (micro)**", total))
    return lines


_RULES = (
    likely,
    lambda finding: finding.is_present,
    lambda f: f.status is Status.CURRENT and f.polarity is not Polarity.NEGATIVE,
)


def _line(name: str, by_rule: list[Counts]) -> str:
    counts = by_rule[0]
    cells = [
        name,
        str(counts.coded),
        f"{counts.precision:.3f}",
        f"{counts.recall:.3f}",
        *(f"{c.f1:.3f}" for c in by_rule),
        _share(counts.side_agree, counts.side_total),
        _share(counts.side_agree, counts.side_total - counts.side_unnamed),
        _share(counts.zone_agree, counts.zone_total),
    ]
    return "| " + " | ".join(cells) + " |"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} of {whole}" if whole else ""


def render(reports: list[Report], seconds: float, path: Path) -> str:
    """The whole result as markdown; parts without reports are left out."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    development = [r for r in reports if r.is_development]
    kept_aside = [r for r in reports if not r.is_development]
    lines = [
        "# Findings against independent manual codings",
        "",
        f"`benchmarks/findings_vs_codings.py {path.name}`: {describe_machine()}",
        f"Data: {SOURCE}; {path.name}, sha256 {digest}.",
        "",
        f"{len(reports)} coded reports, {1000 * seconds / max(len(reports), 1):.2f} ms of CPU time "
        "a report on one core. Stated and likely findings count as present (the script's protocol "
        "says what that means and why).",
    ]
    for title, part in (
        (f"Held out ({len(kept_aside)} reports, which no rule was corrected on)", kept_aside),
        (f"Development ({len(development)} reports)", development),
        (f"All ({len(reports)} reports)", reports),
    ):
        if part:
            lines += ["", f"## {title}", "", *table(part, CLEAN)]
    lines += ["", "Where one row pools several codings:", ""]
    lines += [f"- {row.name}: {row.note}" for row in CLEAN if row.note]
    lines += ["", "## Codings that do not map cleanly (all reports)", ""]
    lines += table(reports, UNCLEAR, notes=True)
    return "\n".join(lines) + "\n"


def disagreements(reports: list[Report], count: int) -> list[str]:
    """Random disagreements of the development part, each with the sentences concerned."""
    development = {r.id: r for r in reports if r.is_development}
    lines = []
    for row in CLEAN:
        counts = compare(development.values(), row)
        for kind, ids in (("missed", counts.theirs_only_ids), ("extra", counts.ours_only_ids)):
            for id in ids:
                found = development[id].findings
                said = {f.sentence for f in found.of(*row.observations.split())}
                words = " / ".join(found.sentences[i].span.of(found.text) for i in sorted(said))
                lines.append(f"{id} {row.name}, {kind}: {words or found.text!r}")
    return random.Random(0).sample(lines, min(count, len(lines)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare findings with manual codings.")
    parser.add_argument("reports", type=Path, help="JSON lines with findings, impression and mesh")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--development", action="store_true", help="read no held-out report")
    parser.add_argument("--disagreements", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    extract("Warm up the lexicons.")
    start = time.process_time()
    reports = read_reports(arguments.reports, arguments.development)
    text = render(reports, time.process_time() - start, arguments.reports)
    publish(text, None if arguments.development else arguments.out)
    print("\n".join(disagreements(reports, arguments.disagreements)))


if __name__ == "__main__":
    main()
