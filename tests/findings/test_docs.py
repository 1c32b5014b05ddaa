"""The documentation quotes the results file."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_quoted_table_is_the_one_measured() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    results = (ROOT / "benchmarks" / "results" / "findings_vs_codings.md").read_text("utf-8")
    quoted = page.split("<!-- held out: begin -->")[1].split("<!-- held out: end -->")[0].strip()
    assert quoted.startswith("| observation |")
    assert quoted in results
