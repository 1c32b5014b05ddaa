"""A result is current only while everything that it depends on is the same.

For every command, each argument of its function and each field of its settings is changed once, and
the second call into the same folder must say what differs. An argument that is neither changed here
nor listed in `FREE` fails the test of completeness. The commands' computations are left out: what a
result depends on is compared before them.
"""

import dataclasses
import inspect
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder, KeptEncoder
from tests.evaluation.golden_inputs import fill, some_perturbations
from tests.evaluation.samples import make_table, write_table
from vlscore.data import ColumnNames, ImagePolicy, TextPolicy, open_reports, open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting
from vlscore.evaluation import (
    AlignmentSettings,
    AuditSettings,
    BaselineSettings,
    ComparisonSettings,
    ControlledSettings,
    EvidenceSettings,
    SensitivitySettings,
    SheetSettings,
    align,
    audit_make,
    audit_read,
    baseline,
    baselines,
    claims,
    compare,
    controlled,
    evaluate,
    failure_modes,
    findings,
    judge,
    open_audited,
    ratings_make,
    ratings_read,
    read_ratings,
    retrieval,
    sensitivity,
)
from vlscore.findings import LabelPolicy
from vlscore.metrics import RuleJudge, Scorer
from vlscore.perturb import PerturbationSettings, perturb
from vlscore.retrieval import OracleSettings, index_build, oracle
from vlscore.stats import Content, Presentation, Result

# Results do not depend on them: where and how they are computed and shown.
FREE = {
    "out",
    "workers",
    "overwrite",
    "keep_going",
    "engine",
    "on_progress",
    "on_phase",
}


class World:
    """Inputs of every command in one folder, each with a second one that differs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.studies, self.records = make_table(folder / "films", 6)
        self.others = self._table("others", [{**r, "candidate": "Other."} for r in self.records])
        self.further = self._table(
            "further",
            [
                {
                    **{name: r[name] for name in ("id", "image")},
                    "reference": "Small left pleural effusion." if k % 2 else "No effusion.",
                    "truth": f"again {k}",
                    "age": 40,
                    "group": k % 2,
                    "candidate": "No effusion.",
                }
                for k, r in enumerate(self.records)
            ],
        )
        shutil.copytree(folder / "films", folder / "elsewhere")
        self.roots = folder / "films", folder / "elsewhere"
        self.embedder = StudyEmbedder(HashEncoder())
        self.other_embedder = StudyEmbedder(KeptEncoder())
        self.perturbed, self.perturbed_studies = some_perturbations(self._made("perturbed"))
        self.sheets = self._sheets()
        self.ratings = self.ratings_of("rated", 1)
        self.values = self.written("values.csv", "system,id,one\na,s0,1\nb,s0,2\n")
        rated = "study_id,candidate_id,one\n0,c0,1\n1,c1,2\n2,c0,1\n"
        self.rated_values = self.written("rated_values.csv", rated)
        labels = self.written("labels.csv", "id,Pleural Effusion\ns0,0.7\ns1,0.2\n")
        self.labels = str(labels)
        few = AuditSettings(alterations=("mirrored",))
        self.films = audit_make(open_audited(self.studies), folder / "films made", few).folder
        there = open_studies(self.others, needs=(), image_root=self.roots[1])
        again = audit_make(open_audited(there), folder / "others made", few)
        self.other_films = again.folder
        self.index = self.index_of(self.studies, "index")

    def _made(self, name: str) -> Path:
        (self.folder / name).mkdir()
        return self.folder / name

    def written(self, name: str, text: str) -> Path:
        """A file with this text."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def _table(self, name: str, records: list[dict[str, Any]]) -> Path:
        return write_table(self.folder / "films" / f"{name}.jsonl", records)

    def _sheets(self) -> Path:
        out = self.folder / "sheets"
        settings = SheetSettings(raters=("ann", "bob"), format=("csv",))
        ratings_make([f"a={self.studies}", f"b={self.others}"], out, settings)
        fill(out)
        return out

    def ratings_of(self, name: str, extra: int) -> Path:
        """A table of ratings by two raters."""
        rows = [
            f"{k},c{k % 2},{rater},{(k + extra) % 5 + 1},Reference {k}.,Candidate {k}."
            for k in range(6)
            for rater in ("ann", "bob")
        ]
        head = "study_id,candidate_id,rater,rating,reference,candidate"
        return self.written(f"{name}.csv", "\n".join([head, *rows]) + "\n")

    def film_reports(self, text: str) -> Path:
        """A generator's reports of the audited films."""
        rows = [{"id": f"f{k:02}", "candidate": f"{text} report {k}."} for k in range(1, 13)]
        return write_table(self.folder / f"{text}.jsonl", rows)

    def index_of(self, table: Path, name: str) -> Path:
        """An index of the reports of a table."""
        return index_build(table, self.folder / name, self.embedder).folder


def _shortened(perturbed: Path) -> Path:
    """The same perturbations without the last one."""
    lines = (perturbed / "perturbations.jsonl").read_text().splitlines(keepends=True)
    path = perturbed.parent / "shorter.jsonl"
    path.write_text("".join(lines[:-1]))
    return path


def _changed_values(world: World) -> Path:
    """Values computed elsewhere for the perturbed reports."""
    lines = (world.perturbed / "perturbations.jsonl").read_text().splitlines()
    pairs = [json.loads(line) for line in lines]
    rows = [f"{pair['study_id']},{pair['kind']},1,2" for pair in pairs]
    head = "study_id,kind,one.original,one.perturbed"
    return world.written("changed_values.csv", "\n".join([head, *rows]) + "\n")


def _refilled(sheets: Path) -> Path:
    """The same sheets, of which one has another answer."""
    copy = sheets.parent / "refilled"
    if not copy.exists():
        shutil.copytree(sheets, copy)
        sheet = copy / "sheet-ann.csv"
        sheet.write_text(sheet.read_text().replace(",1", ",2", 1))
    return copy


def _templates(folder: Path) -> Path:
    """A copy of the bundled templates with another comment."""
    bundled = Path(baselines.__file__).parent / "templates" / "chest.toml"
    path = folder / "templates.toml"
    path.write_text(bundled.read_text() + "# mine")
    return path


def _dimensions(folder: Path) -> Path:
    """A user's own dimensions."""
    path = folder / "dimensions.toml"
    path.write_text('[[dimension]]\nname = "x"\ntext = "y"\nlow = "a"\nhigh = "b"\n')
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@dataclasses.dataclass(frozen=True)
class Command:
    """A command's function, a call of it, and another value of every argument and setting."""

    function: Any
    call: dict[str, Any]
    changes: dict[str, Any]
    free: frozenset[str] = frozenset()
    # The argument that may be a table which is open already, with columns and images of its own.
    table: str = ""


def command_of(name: str, world: World) -> Command:
    """The command of a name; `settings.x` is the field x of the argument `settings`."""
    section = TextPolicy("findings")
    other_root = {"image_root": world.roots[1]}

    def opened(table: str, **columns: str) -> dict[str, Any]:
        """What a table that is open already can change."""
        found = {"columns": ColumnNames(**columns), **other_root, "limit": 2}
        return {f"{table}.{name}": value for name, value in found.items()}

    texts = Scorer(metrics="rouge-l")
    return {
        "evaluate": lambda: Command(
            evaluate,
            {"table": world.studies, "scorer": Scorer(world.embedder, metrics="vlscore")},
            {
                "table": world.others,
                "scorer": Scorer(world.other_embedder, metrics="vlscore"),
                **opened("table", candidate="reference"),
                "format": "csv",
                "keep": ["reference"],
                "by": ["reference"],
                "patient": "reference",
                "part": "1/2",
            },
            table="table",
        ),
        "compare": lambda: Command(
            compare,
            {
                "systems": [f"a={world.studies}", f"b={world.others}"],
                "scorer": Scorer(world.embedder, metrics="vlscore"),
                "settings": ComparisonSettings(),
            },
            {
                "systems": [f"a={world.others}", f"b={world.others}"],
                "scorer": Scorer(world.other_embedder, metrics="vlscore"),
                **other_root,
                "settings.train": open_reports(world.others),
                "settings.baselines": True,
                "settings.values": world.values,
                "settings.lower_is_better": (("one",), {"values": world.values}),
                "settings.resamples": 999,
                "settings.permutations": 999,
                "settings.reference_errors": (
                    "emergency-2026",
                    {"scorer": Scorer(metrics="findings-f1")},
                ),
                "settings.shared_errors": (
                    0.3,
                    {
                        "reference_errors": "emergency-2026",
                        "scorer": Scorer(metrics="findings-f1"),
                    },
                ),
                "settings.seed": 1,
                "settings.ignore_blanks": True,
                "settings.against": "b",
                "settings.by": ("reference",),
                "settings.patient_column": "id",
            },
            # How the one table is printed: it is written anew by every call.
            frozenset({"table"}),
        ),
        "align": lambda: Command(
            align,
            {
                "pairs": read_ratings(world.ratings),
                "scorer": texts,
                "settings": AlignmentSettings(),
            },
            {
                "pairs": read_ratings(world.ratings_of("rated again", 2)),
                "scorer": Scorer(metrics="bleu-1"),
                "settings.values": world.rated_values,
                "settings.lower_is_better": (("one",), {"values": world.rated_values}),
                "settings.fit": "rating",
                "settings.resamples": 999,
                "settings.seed": 1,
                "settings.columns": (
                    ("findings-f1.precision",),
                    {"scorer": Scorer(metrics="findings-f1")},
                ),
                "studies": open_studies(world.perturbed_studies, needs={"image"}),
                "figure": "svg",
            },
        ),
        "failure-modes": lambda: Command(
            failure_modes,
            {"pairs": read_ratings(world.ratings)},
            {
                "pairs": read_ratings(world.ratings_of("rated once more", 3)),
                "rate": 0.2,
                "resamples": 99,
                "seed": 1,
            },
        ),
        "sensitivity": lambda: Command(
            sensitivity,
            {
                "perturbations": world.perturbed,
                "scorer": Scorer(world.embedder, metrics="vlscore"),
                "settings": SensitivitySettings(),
                "studies": open_studies(world.perturbed_studies, needs={"image"}),
            },
            {
                "perturbations": _shortened(world.perturbed),
                "scorer": Scorer(world.other_embedder, metrics="vlscore", text_policy=section),
                "studies": open_studies(
                    world.perturbed_studies, needs={"image"}, image_root=world.roots[1]
                ),
                "image_root": world.roots[1],
                "settings.values": _changed_values(world),
                "settings.lower_is_better": (("one",), {"values": _changed_values(world)}),
                "settings.swap_images": True,
                "settings.resamples": 999,
                "settings.seed": 1,
                "limit": 9,
                "figure": "svg",
                "format": "parquet",
            },
        ),
        "controlled": lambda: Command(
            controlled,
            {
                "source": open_reports(world.further),
                "scorer": texts,
                "settings": ControlledSettings(),
            },
            {
                "source": open_reports(world.others),
                "scorer": Scorer(metrics="bleu-1"),
                "observations": ("Pleural Effusion",),
                "text_policy": section,
                "settings.references": 9,
                "settings.candidates": 9,
                "settings.resamples": 99,
                "settings.seed": 1,
            },
        ),
        "findings": lambda: Command(
            findings,
            {"reports": world.further},
            {
                "reports": world.others,
                "policy": LabelPolicy("positive"),
                "format": "jsonl",
                "text_policy": section,
            },
        ),
        "claims": lambda: Command(
            claims,
            {
                "studies": world.studies,
                "embedder": world.embedder,
                "fit": world.further,
                "settings": EvidenceSettings(),
            },
            {
                "studies": world.others,
                "embedder": world.other_embedder,
                "fit": world.others,
                "calibrate": world.others,
                "labels": [world.values],
                "rate": 0.2,
                **opened("studies", candidate="reference"),
                "settings.calibration_share": 0.3,
                "settings.no_zero_shot": True,
                "settings.group_column": "group",
                "settings.blank_labels": "unknown",
                "settings.seed": 1,
            },
            # It takes the place of `fit`, and has a test of its own.
            frozenset({"evidence"}),
            table="studies",
        ),
        "judge": lambda: Command(
            judge,
            {"studies": world.further, "evidence": world.values, "embedder": world.embedder},
            {
                "studies": world.others,
                "judge": RuleJudge(comparisons="ignored"),
                "evidence": world.rated_values,
                "embedder": world.other_embedder,
                "trust": 0.6,
                **opened("studies", candidate="reference"),
                "age_column": "group",
                "indication_column": "truth",
                "text_policy": section,
                "prices": (1, 2),
            },
            table="studies",
        ),
        "baseline": lambda: Command(
            baseline,
            {
                "name": "nearest-image",
                "studies": world.studies,
                "train": world.further,
                "embedder": world.embedder,
                "settings": BaselineSettings(),
            },
            {
                "name": "random",
                "studies": world.others,
                "train": world.others,
                "embedder": world.other_embedder,
                "text_policy": section,
                **opened("studies", reference="candidate"),
                "settings.seed": (1, {"name": "random"}),
                "settings.first": (9, {"name": "top-words"}),
                "settings.by_section": (True, {"name": "top-sentences"}),
                "settings.labels": ("zero-shot", {"name": "templates", "train": None}),
                "settings.threshold": (
                    0.6,
                    {"name": "templates", "labels": world.labels, "train": None},
                ),
                "settings.style": ("single", {"name": "templates", "labels": "probe"}),
                "settings.templates": (
                    _templates(world.folder),
                    {"name": "templates", "labels": "probe"},
                ),
            },
            table="studies",
        ),
        "retrieval": lambda: Command(
            retrieval,
            {"studies": world.studies, "embedder": world.embedder},
            {
                "studies": world.others,
                "embedder": world.other_embedder,
                "text_policy": section,
                **opened("studies", reference="candidate"),
            },
            table="studies",
        ),
        "ratings read": lambda: Command(
            ratings_read,
            {"folder": world.sheets},
            {
                "folder": _refilled(world.sheets),
                "groups": {"first": ["ann"]},
                "resamples": 99,
                "seed": 1,
            },
        ),
        "ratings make": lambda: Command(
            ratings_make,
            {
                "sources": [f"a={world.studies}", f"b={world.others}"],
                "settings": SheetSettings(images=True),
            },
            {
                "sources": [f"a={world.others}", f"b={world.others}"],
                "studies": world.further,
                **other_root,
                "settings.raters": ("eve",),
                "settings.ask": ("preferences",),
                "settings.format": ("html", "csv"),
                "settings.raters_per_study": 1,
                "settings.images": False,
                "settings.dimensions": (_dimensions(world.folder), {"ask": ("dimensions",)}),
                "settings.sample": 2,
                "settings.seed": 1,
            },
        ),
        "audit make": lambda: Command(
            audit_make,
            {"table": open_audited(world.studies), "settings": AuditSettings()},
            {
                "table": open_audited(
                    open_studies(world.others, needs=(), image_root=world.roots[1])
                ),
                "image_policy": ImagePolicy(window="minmax"),
                "settings.alterations": ("mirrored",),
                "settings.regions": 1,
                "settings.format": "dicom",
                "settings.seed": 1,
            },
        ),
        "audit read": lambda: Command(
            audit_read,
            {"folder": world.films, "reports": [world.film_reports("first")]},
            {
                "folder": world.other_films,
                "reports": [world.film_reports("second")],
                "columns": ColumnNames(candidate="image"),
                "figure": "svg",
                "seed": 1,
            },
        ),
        "oracle": lambda: Command(
            oracle,
            {
                "studies": world.studies,
                "index": world.index,
                "embedder": world.embedder,
                "settings": OracleSettings(),
            },
            {
                "studies": world.others,
                "index": world.index_of(world.further, "further index"),
                **opened("studies", reference="candidate"),
                "settings.metric": "cosine",
                "settings.k": 3,
                "settings.guard": "segment",
                "settings.exclude_exact": True,
                "settings.exclude_ids": "reference",
            },
            # Another encoder or section than the index's is refused; the other three belong to
            # another search.
            frozenset(
                {
                    "embedder",
                    "text_policy",
                    "settings.mode",
                    "settings.candidates",
                    "settings.effort",
                }
            ),
            table="studies",
        ),
        "index build": lambda: Command(
            index_build,
            {"table": world.studies, "embedder": world.embedder},
            {
                "table": world.others,
                "embedder": world.other_embedder,
                "text_policy": section,
                "approximate": "Flat",
            },
        ),
        "perturb": lambda: Command(
            perturb,
            {"path": world.further, "settings": PerturbationSettings()},
            {
                "path": world.others,
                "standard_normal": "Lungs are clear.",
                "id_column": "image",
                "text_column": "truth",
                "limit": 2,
                "settings.seed": 1,
                "settings.kinds": "remove-pathology",
                "settings.per_report": 2,
            },
        ),
    }[name]()


NAMES = (
    "evaluate",
    "compare",
    "align",
    "failure-modes",
    "sensitivity",
    "controlled",
    "findings",
    "claims",
    "judge",
    "baseline",
    "retrieval",
    "ratings read",
    "ratings make",
    "audit make",
    "audit read",
    "oracle",
    "index build",
    "perturb",
)


def parameters_of(command: Command) -> set[str]:
    """Names of the arguments of a function, of the fields of its settings, and of a table."""
    names = set(inspect.signature(command.function).parameters)
    if command.table:
        names |= {f"{command.table}.{name}" for name in ("columns", "image_root", "limit")}
    for name, value in command.call.items():
        if name == "settings":
            names.remove(name)
            names |= {f"{name}.{field.name}" for field in dataclasses.fields(value)}
    return names


def called_with(call: dict[str, Any], name: str, change: Any) -> dict[str, Any]:
    """The call with one argument or field changed, and what the change needs besides."""
    needed: dict[str, Any] = {}
    if isinstance(change, tuple) and len(change) == 2 and isinstance(change[1], dict):
        change, needed = change
    argument, _, field = name.partition(".")
    if not field:
        return {**call, **needed, name: change}
    if isinstance(call[argument], Path):
        return {**call, argument: open_studies(call[argument], needs=(), **{field: change})}
    own = {f.name for f in dataclasses.fields(call[argument])}
    fields = {n: v for n, v in needed.items() if n in own} | {field: change}
    others = {n: v for n, v in needed.items() if n not in own}
    return {**call, **others, argument: dataclasses.replace(call[argument], **fields)}


@pytest.fixture
def nothing_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results hold what they depend on, and nothing else."""
    made = Result.make.__func__

    def make(cls, out, key, compute, **options):
        return made(cls, out, key, lambda path: Content({}), **options)

    monkeypatch.setattr(Result, "make", classmethod(make))
    monkeypatch.setattr(Result, "presentation", Presentation())
    table = SimpleNamespace(markdown=lambda: "", latex=lambda: "")
    text = SimpleNamespace(markdown="", bibtex="")
    for name, stand_in in (("paper_table", table), ("paragraph", ""), ("MethodsText", text)):
        path = f"vlscore.evaluation.comparison.compare.{name}"
        monkeypatch.setattr(path, lambda *_, found=stand_in, **__: found)


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_changed_or_free(world, name):
    command = command_of(name, world)
    parameters = parameters_of(command)
    assert parameters - FREE - command.free == set(command.changes)


@pytest.mark.parametrize("name", NAMES)
def test_a_second_call_names_what_differs(world, name, tmp_path, nothing_computed):
    command = command_of(name, world)
    unnoticed = []
    for change, value in command.changes.items():
        out = tmp_path / change
        second = called_with(command.call, change, value)
        # What a change needs besides, such as another kind of baseline, is there before it.
        needed = value[1] if isinstance(value, tuple) and isinstance(value[-1], dict) else {}
        first = command.call
        for argument, other in needed.items():
            first = called_with(first, _full_name(first, argument), other)
        command.function(**first, out=out)
        try:
            command.function(**second, out=out)
        except InvalidSetting as error:
            if "differ" in str(error):
                continue
            raise
        unnoticed.append(change)
    assert not unnoticed


def _full_name(call: dict[str, Any], name: str) -> str:
    if "settings" in call and name in {f.name for f in dataclasses.fields(call["settings"])}:
        return f"settings.{name}"
    return name


@pytest.mark.parametrize(
    "name",
    ["evaluate", "compare", "sensitivity", "claims", "judge", "baseline", "retrieval", "oracle"],
)
def test_a_replaced_image_is_noticed(world, name, tmp_path, nothing_computed):
    command = command_of(name, world)
    out = tmp_path / "out"
    command.function(**command.call, out=out)
    assert command.function(**command.call, out=out).unchanged
    table = world.perturbed_studies if name == "sensitivity" else world.studies
    image = next(path for path in sorted(table.parent.rglob("*.png")))
    before = image.read_bytes()
    try:
        Image.fromarray(np.full((9, 9), 7, np.uint8)).save(image)
        with pytest.raises(InvalidSetting, match="has been replaced since"):
            command.function(**command.call, out=out)
    finally:
        image.write_bytes(before)
