"""The documentation quotes the results file."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_quoted_row_is_the_one_measured() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    results = (ROOT / "benchmarks" / "results" / "findings_vs_codings.md").read_text("utf-8")
    quoted = page.split("<!-- held out: begin -->")[1].split("<!-- held out: end -->")[0].strip()
    head, _, row = quoted.splitlines()
    assert f"\n{head}\n" in results
    assert f"\n{row}\n" in results
