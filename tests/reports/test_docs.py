"""The page on reports shows what the code prints."""

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"


def test_the_example_prints_what_the_page_says(capsys):
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    exec(compile(code, "docs/reports.md", "exec"), {})
    stated = [line[2:] for line in code.splitlines() if line.startswith("# ")]
    assert capsys.readouterr().out.splitlines() == stated
    assert len(stated) == 3
