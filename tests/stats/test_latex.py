"""Tables of LaTeX, set by a real TeX: they fit the column or the page."""

import random
import re
import shutil
import subprocess

import pytest

from vlscore.stats import TextTable
from vlscore.stats.latex import PREAMBLE

pdflatex = shutil.which("pdflatex")
needs_tex = pytest.mark.skipif(
    pdflatex is None,
    reason="pdflatex is missing: apt install texlive-latex-base texlive-latex-extra "
    "texlive-science",
)

SIGNATURE = "vlscore|C:5.137|txt:all|enc:phantom@bbec45dd6a4b|img:auto|views:first-frontal|v:0.1.0"
METRICS = ("VLScore ↑", "BLEU-4 ↑", "ROUGE-L ↑", "RadGraph F1 ↑", "CheXbert F1 (micro-13) ↑")
HARD = ("RadCliQ-v1 ↓", "GREEN ↑", "RaTEScore ↑", "50 % of a_b & c ↑", "[x] ~^\\{}$#|<>±×Δ−τ")


def _table(columns, systems=5, form="{:.3f}", signs=("", "†", "ab")):
    rng = random.Random(len(columns))
    rows = [
        (f"system {r}_&", *(form.format(rng.uniform(-3, 3), 0.012) for _ in columns))
        for r in range(systems)
    ]
    return TextTable(
        "100 % of systems",
        ("system", *columns),
        tuple(rows),
        "†: not significantly different from the best.",
        best=tuple((0, c + 1) for c in range(len(columns))),
        signs=tuple(("", *(rng.choice(signs) for _ in columns)) for _ in rows),
        notes=(SIGNATURE, SIGNATURE * 3),
        label="tab:systems",
    )


TABLES = {
    "column": _table(METRICS[:3]),
    "page": _table(METRICS[:4]),
    "half": _table(METRICS, form="{:.3f} ± {:.3f}"),
    "blocks": _table((*METRICS, *HARD) * 2),
    "text": _table(METRICS, form="{:.3f} [-0.123, 0.456]"),
    "one": TextTable("", ("n",), (("[1]",),)),
    "holes": TextTable("T", ("n", "a", "b"), (("x", "-", "0.1"), ("y", "12.25", "")), "c"),
}


@needs_tex
@pytest.mark.parametrize("layout", ["twocolumn", "onecolumn"])
def test_every_table_is_set_without_an_overfull_box(tmp_path, layout):
    body = "\n\\clearpage\n".join(table.latex() for table in TABLES.values())
    (tmp_path / "paper.tex").write_text(
        f"\\documentclass[10pt,{layout}]{{article}}\n{PREAMBLE}\n\\begin{{document}}\n"
        f"Table~\\ref{{tab:systems}}.\n{body}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    log = (tmp_path / "paper.log").read_text(encoding="latin-1")
    assert done.returncode == 0, log[-3000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
    for wrong in ("Overfull \\hbox", "Float too large", "Missing character"):
        assert wrong not in log, re.findall(rf"{re.escape(wrong)}.*", log)


def test_a_table_takes_a_column_where_it_fits_and_else_the_page():
    kinds = {name: re.search(r"\\begin{(table\*?)}", t.latex())[1] for name, t in TABLES.items()}
    assert (kinds["column"], kinds["page"], kinds["holes"]) == ("table", "table*", "table")
    assert r"\resizebox" not in TABLES["page"].latex()
    assert r"\resizebox{\linewidth}" in TABLES["blocks"].latex()


def test_cells_are_escaped_and_marked():
    shown = TABLES["column"].latex().splitlines()
    assert shown[0] == f"% {PREAMBLE}"
    first = next(line for line in shown if line.startswith(r"system 0\_\&"))
    assert first.count(r"\textbf{") == 3
    assert first.endswith(r" \\")
    assert r"\caption{100 \% of systems. Bold: best. \textdagger{}: not" in "\n".join(shown)
    assert r"\label{tab:systems}" in shown
    assert r"enc:\allowbreak" not in TABLES["column"].latex()
    assert r"vlscore\textbar{}\allowbreak{}C:5.137" in TABLES["column"].latex()
    assert r"{}[1] \\" in TABLES["one"].latex()
