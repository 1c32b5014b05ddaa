"""Text of tables cannot act: in no terminal, spreadsheet, LaTeX document or page of HTML."""

import ast
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vlscore
from tests.command import run_command
from vlscore.core import safe_cells as safe
from vlscore.stats import TextTable, markdown

PACKAGE = Path(vlscore.__file__).parent
TITLE = "\x1b]0;TITLE OF A STRANGER\x07\x1b[2J\x9b2J"
FORMULA = '=HYPERLINK("http://127.0.0.1/?"&A1,"open")'
TEXTS = st.text() | st.from_regex(r"'{0,3}[=+\-@\t\r].{0,5}", fullmatch=True)


@given(TEXTS)
def test_a_cell_is_no_formula_and_comes_back(text):
    written = safe.cell(text)
    assert safe.from_cell(written) == text
    is_number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.I | re.A)
    assert is_number or not written.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_numbers_stay_numbers():
    assert safe.cells([-1.5, None, 3, "-1.5", "+2", "-1e-7"]) == [
        -1.5,
        None,
        3,
        "-1.5",
        "+2",
        "-1e-7",
    ]


@given(st.text())
def test_what_is_printed_has_no_control_sequence(text):
    shown = safe.printable(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert "\n" not in safe.printable(text, one_line=True)
    line = json.dumps(text, ensure_ascii=False)
    assert json.loads(safe.printable(line)) == text


def test_every_command_prints_through_one_function():
    """No file of the commands calls print or writes to a stream itself."""
    found = []
    for path in sorted((PACKAGE / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name == "print" or re.fullmatch(r"sys\.std\w+\.write", name):
                found.append((path.name, name))
    assert found == [("output.py", "print")]


def _escapes(text):
    """What of the planted title reached a terminal; colours of ours are no escapes of a table."""
    return [each for each in ("\x1b]", "\x07", "\x1b[2J", "\x9b") if each in text]


def _rows(folder, name, rows):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("shown", [("--show", "5"), ("--json",)])
def test_no_text_of_a_table_reaches_the_terminal_as_a_control_sequence(tmp_path, shown):
    rows = [
        {"id": f"a{TITLE}", "candidate": "x"},
        {"id": f"b{TITLE}", "reference": "x", "candidate": "x"},
    ]
    table = _rows(tmp_path, f"t{TITLE.replace('/', '')}.jsonl", rows)
    asked = ("evaluate", str(table), "-o", str(tmp_path / "o"), "--metrics", "bleu-1", *shown)
    done = run_command(*asked)
    assert "TITLE OF A STRANGER" in done.stderr
    assert not _escapes(done.stdout + done.stderr)
    findings = _rows(tmp_path, "r.jsonl", [{"id": f"a{TITLE}", "report": ""}])
    done = run_command("findings", str(findings), "-o", str(tmp_path / "f"))
    assert not _escapes(done.output)


def test_tables_in_every_form():
    table = TextTable(
        "T" + TITLE, ("a" + TITLE, FORMULA), ((TITLE, "<script>x</script>|\n# x"),), "c" + TITLE
    )
    for text in (
        table.text(),
        table.markdown(),
        table.latex(),
        markdown([table], [f"n`{TITLE}\n# x"]),
    ):
        assert not _escapes(text)
    assert "<script" not in table.markdown()
    assert "\n# x" not in table.markdown() + markdown([table], ["n\n# x"])
    latex = TextTable("", (r"\input{/etc/passwd}", "b^^5cinput"), (("$x$", "%"),)).latex()
    assert r"\input" not in latex
    assert "^^" not in latex
