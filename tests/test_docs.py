"""README and every page of the documentation: their examples run as printed, their links lead on.

A page's blocks run in their order, in a folder that holds the files which the pages name and no
others. Python stands in fences marked `python` and shares one namespace per page; where a block
ends in comments, it must print exactly those. Of shell blocks the lines that begin with `vlscore`
run, in this process. What needs a download, a GPU or several processes has the comment
`<!-- not run: reason -->` above it; `<!-- needs: trl -->` has a block run where that is installed.
"""

import contextlib
import functools
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.command import run_command
from tests.conftest import REPOSITORY
from tests.demonstration import DEMO, demo_rows
from tests.example_blocks import PAGES, Block, blocks
from tests.tolerances import same_print
from vlscore.cli import commands
from vlscore.cli.demo import SHOWN

# What the words under the demonstration's table say.
PREFERRED = {
    "bleu-4 corpus": "fluent",
    "rouge-l": "fluent",
    "vlscore": "right",
    "judge": "right",
    "errors": "right",
}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables and pictures that the pages speak of, made of the demonstration."""
    from vlscore.data import render, sample_studies
    from vlscore.data.phantom.phantom_pairs import scene_at, write_dicom, write_png

    folder = tmp_path_factory.mktemp("pages")
    rows = demo_rows(4)
    files = folder / "files"
    files.mkdir()
    for row in rows:
        image = Path(row["image"])
        row["image"] = image.name
        for place in (folder, files):
            shutil.copyfile(image, place / image.name)
    demo = folder / DEMO.relative_to(REPOSITORY)
    demo.mkdir(parents=True)
    shutil.copy(DEMO / "phantom-2026-00017.png", demo)
    write_dicom(folder / "chest.dcm", render(scene_at(1, 1)))
    write_png(folder / "chest.png", render(scene_at(1, 0)))

    corpus = [
        {"id": f"t{number}", "report": f"FINDINGS: {study.reference} IMPRESSION: As above."}
        for number, study in enumerate(sample_studies(5, 80))
    ]
    _write_jsonl(folder / "train.jsonl", corpus)
    _write_jsonl(folder / "more.jsonl", [{"id": "m", "report": "FINDINGS: Old fracture."}])
    studies = [
        {
            "id": row["id"],
            "image": row["image"],
            "reference": f"FINDINGS: {row['reference']}",
            "candidate": row["candidate"],
            "patient_reports": f"t{number};t{number + 40}",
        }
        for number, row in enumerate(rows)
    ]
    _write_jsonl(folder / "studies.jsonl", studies)
    _write_csv(folder / "studies.csv", studies)
    for system, candidate in (("ours", "candidate"), ("theirs", "reference")):
        columns = {"reference": "reference", "candidate": candidate}
        texts = [
            {"id": row["id"]} | {name: row[key] for name, key in columns.items()} for row in rows
        ]
        _write_csv(folder / f"{system}.csv", texts)
    reports = [{"id": row["id"], "report": row["reference"]} for row in rows]
    _write_jsonl(folder / "test.jsonl", reports)
    _write_csv(
        folder / "reports.csv", [{"id": row["id"], "findings": row["report"]} for row in reports]
    )
    _write_csv(
        folder / "mimic_cxr_test.csv",
        [{"study_id": row["id"], "report": row["report"]} for row in reports],
    )
    _write_mimic_shaped(folder)
    _write_ratings(folder)
    tutorial = (REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")
    tables = re.findall(r"^```csv\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL)
    for name, table in zip(("first", "second"), tables, strict=True):
        (folder / f"{name}.csv").write_text(table, encoding="utf-8")
    return folder


def _write_mimic_shaped(folder: Path) -> None:
    """Eight studies as MIMIC-CXR-JPG and MIMIC-CXR's reports lie on a disk."""
    import csv
    import gzip

    from vlscore.data import render, sample_studies
    from vlscore.data.phantom.phantom_pairs import scene_at, write_png

    jpg, txt = folder / "mimic-cxr-jpg", folder / "mimic-cxr-reports"
    metadata, split = [], []
    for number, study in enumerate(sample_studies(7, 8)):
        patient, name = f"1000{number // 2:04d}", f"5000{number:04d}"
        place = f"files/p{patient[:2]}/p{patient}"
        for view, image in (("PA", f"{name}-a"), ("LATERAL", f"{name}-b")):
            path = jpg / place / f"s{name}" / f"{image}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            # A PNG under the other name: readers look at the content.
            write_png(path, render(scene_at(7, number)))
            row = {"dicom_id": image, "subject_id": patient, "study_id": name}
            metadata.append({**row, "ViewPosition": view})
            split.append({**row, "split": "validate" if number >= 6 else "train"})
        (txt / place).mkdir(parents=True, exist_ok=True)
        report = f"FINAL REPORT\n FINDINGS: {study.reference}\n IMPRESSION: As above.\n"
        (txt / place / f"s{name}.txt").write_text(report, encoding="utf-8")
    for table, rows in (("metadata", metadata), ("split", split)):
        with gzip.open(jpg / f"mimic-cxr-2.0.0-{table}.csv.gz", "wt", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def _write_ratings(folder: Path) -> None:
    """Ratings of three candidates of eight studies by two raters, who sometimes disagree."""
    reference = "Small left pleural effusion. Heart size is normal."
    candidates = {
        "copy": (reference, 0),
        "near": ("Small left pleural effusion. Heart is mildly enlarged.", 1),
        "wrong": ("Large right pneumothorax. The heart is enlarged.", 3),
    }
    rows: list[dict[str, Any]] = []
    for study in range(8):
        for name, (text, errors) in candidates.items():
            for rater in ("ann", "bob"):
                doubtful = rater == "bob" and study % 3 == 0 and name != "copy"
                names = {"study_id": study, "candidate_id": name, "rater": rater}
                texts = {"reference": reference, "candidate": text}
                rows.append({**names, "rating": errors + doubtful, **texts})
    _write_csv(folder / "ratings.csv", rows)


def _write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    import csv

    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def _run_commands(block: Block) -> None:
    for command in block.commands():
        done = run_command(*command, columns=100)
        assert done.exit_code == 0, (block.place, command, done.output)


def _run_python(block: Block, names: dict[str, Any]) -> None:
    printed = io.StringIO()
    # As many empty lines in front as make a traceback show the page's own line numbers.
    code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    if block.said():
        found = printed.getvalue().splitlines()
        assert same_print(found, block.said()), (block.place, found)


def _name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_examples_run_as_printed(
    page: Path, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(prepared, tmp_path / "folder"))
    # In a module, as a reader's script is one: what travels to other processes is found by it.
    script = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, script.__name__, script)
    names = vars(script)
    for block in blocks(page):
        if block.not_run is not None or block.needs is not None:
            continue
        if block.language == "python":
            _run_python(block, names)
        else:
            _run_commands(block)


@functools.cache
def _options(name: str) -> set[str]:
    """Options of a command, short names as well."""
    return set(
        re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", run_command(*name.split(), "--help").stdout)
    )


def test_every_option_that_a_page_names_exists() -> None:
    """In each command of a block, those of this command; in a sentence, those of any command."""
    every = set().union(*map(_options, commands())) | _options("")
    unknown: dict[Any, set[str]] = {}
    for page in PAGES:
        for block in blocks(page):
            for words in block.commands():
                name = " ".join(words[:2]) if " ".join(words[:2]) in commands() else words[0]
                named = {w.partition("=")[0] for w in words[1:] if re.match("--?[A-Za-z]", w)}
                unknown[block.place, name] = named - {"-h"} - _options(name)
        prose = [c for c in re.findall(r"`([^`]+)`", _prose(page)) if not re.match(_OTHER_TOOLS, c)]
        named = set(re.findall(r"(?<![\w-])--[A-Za-z][\w-]*", " ".join(prose)))
        unknown[_name(page)] = named - every
    assert {place: names for place, names in unknown.items() if names} == {}


def _prose(page: Path) -> str:
    """The text of a page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


# Programs whose options a page may name, too.
_OTHER_TOOLS = r"(python|pip|lm_eval|uv|make|torchrun|ray|git|mypy|ruff|pytest|\w+\.py)\b"


def test_most_examples_are_run() -> None:
    """The mechanism finds them: it did not fall silent, nor is everything excused."""
    found = [block for page in PAGES for block in blocks(page)]
    run = [block for block in found if block.not_run is None]
    assert sum(block.language == "python" for block in run) >= 8
    assert sum(len(block.commands()) for block in run) >= 25
    # The page for people with credentials has tests of its own.
    excused = [b for b in found if b.not_run is not None and b.page.name != "reproduce.md"]
    assert len(excused) <= len(found) / 5, [block.place for block in excused]


def test_python_stands_in_fences_that_say_so() -> None:
    for page in PAGES:
        for block in blocks(page):
            if block.language not in ("python", "toml"):
                assert not re.search(r"^(import|from) \w+", block.text, re.MULTILINE), block.place


def test_readme_shows_what_the_demonstration_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table, and the words under it, which the table must bear out."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert "$(BIN)/vlscore demo --out $(OUT) --overwrite" in makefile
    # Another encoder than the bundled one would make the words wrong.
    monkeypatch.setenv("VLSCORE_ENCODER", "biovil")
    monkeypatch.chdir(tmp_path)
    done = run_command("demo", columns=80)
    assert done.exit_code == 0, done.output
    printed = _lines(done.stdout)
    shown = [block for block in blocks(REPOSITORY / "README.md") if block.language == ""]
    (expected,) = [_lines(block.text) for block in shown]
    first = printed.index(expected[0]) if expected[0] in printed else 0
    words = _lines(SHOWN)
    table = expected[: -len(words)]
    assert printed[-len(words) :] == words
    assert same_print(printed[first : first + len(table)], table), printed
    assert expected[len(table) :] == words

    result = json.loads((tmp_path / "out" / "demo" / "result.json").read_text(encoding="utf-8"))
    tests = {
        test["metric"]: test
        for test in result["frames"]["differences"]
        if (test["first"], test["second"]) == ("right", "fluent")
    }
    for metric, winner in PREFERRED.items():
        better = -1 if metric == "errors" else 1
        assert better * tests[metric]["difference"] * (1 if winner == "right" else -1) > 0, metric
        assert tests[metric]["adjusted_p"] < 0.01, metric


@pytest.mark.parametrize("encoder", ["phantom", "phantom-judging"])
def test_the_demonstration_has_the_scores_that_its_page_shows(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every score as it is printed: a golden of the whole way, decoder to table."""
    page = REPOSITORY / "weights" / encoder / "README.md"
    (shown,) = [b for b in blocks(page) if b.text.startswith("$ vlscore ")]
    command, *expected = _lines(shown.text)
    printed = _printed(command.split()[2:], tmp_path, monkeypatch)
    assert same_print(printed, expected), printed


def _printed(command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that a command on the demonstration prints."""
    shutil.copytree(DEMO, folder / "weights" / "phantom" / "demo")
    monkeypatch.chdir(folder)
    done = run_command(*command, columns=80)
    assert done.exit_code == 0, done.output
    return _lines(done.stdout)


def _lines(text: str) -> list[str]:
    """Lines that are not blank; a signature names the version of sacrebleu that is installed."""
    lines = [re.sub(r"(sacrebleu):[\d.]+", r"\1", line.rstrip()) for line in text.splitlines()]
    return [line for line in lines if line]


def test_links_lead_somewhere() -> None:
    lost = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not re.match(r"[a-z]+:", target) and not (file.exists() and _has(file, anchor)):
                lost.append((_name(page), target))
    assert lost == []


def _has(file: Path, anchor: str) -> bool:
    """Whether a page has a heading of this anchor; without one there is nothing to find."""
    if not anchor:
        return True
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in map(_anchor, headings)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_that_are_named_exist(page: str) -> None:
    """A newcomer who follows the page opens every file that it names."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:vlscore|tests|docs|weights|benchmarks|perturbations)/[^`\s]*)`", text)
    assert named
    # A name in capitals stands for any member.
    named = [name for name in named if not re.search(r"[A-Z]{2,}", name)]
    assert [name for name in named if not any(REPOSITORY.glob(name.rstrip("/")))] == []


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_readme_type_checks(tmp_path: Path) -> None:
    """What a user copies from the README passes a type checker, and slips in it do not."""
    text = "\n".join(
        block.text for block in blocks(REPOSITORY / "README.md") if block.language == "python"
    )
    packages = [path.parent.name for path in (REPOSITORY / "vlscore").glob("[a-z]*/__init__.py")]
    good = [
        text,
        *(f"vlscore.{package}.__name__" for package in packages if package != "cli"),
        "vlscore.score(['a'], ['b'], ['c']).scores",
        "vlscore.score('a', ['b', 'c'], 'd', on_error='keep').mean()",
        "float(vlscore.Scorer(metrics='bleu-1').score(None, 'a', 'b'))",
        "vlscore.Scorer().score(('a', 'b'), 'c', 'd').area",
    ]
    slips = [
        "import vlscore",
        "vlscore.scorre",
        "vlscore.score('', '', '').scores",
        "vlscore.score()",
    ]
    for name, lines in (("readme_examples", good), ("readme_slips", slips)):
        (tmp_path / f"{name}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # The cache is the one that `make types` has just filled.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *tmp_path.glob("*.py")],
        cwd=REPOSITORY,
        env={"MYPYPATH": str(REPOSITORY), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    # The package's own types are checked by `make types`, against the newest stubs alone. From its
    # cache mypy may name a file by an earlier run's folder, so the name alone decides.
    wrong = re.findall(r"^\S*/(readme_\w+)\.py:(\d+): error", done.stdout, re.MULTILINE)
    assert wrong == [("readme_slips", str(number)) for number in range(2, len(slips) + 1)], done


def test_the_picture_is_what_its_script_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pixels of the image within a grey level, the numbers to the last but one place."""
    import base64

    import numpy as np
    from PIL import Image

    monkeypatch.syspath_prepend(REPOSITORY / "docs")
    import picture

    image = re.compile(r'(?<=base64,)[^"]+')
    drawn, stored = picture.draw(), picture.PICTURE.read_text(encoding="utf-8")
    assert same_print(image.sub("", drawn).splitlines(), image.sub("", stored).splitlines())
    pixels = []
    for text in (drawn, stored):
        (found,) = image.findall(text)
        pixels.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(found))), dtype=float))
    assert np.abs(pixels[0] - pixels[1]).mean() < 1
