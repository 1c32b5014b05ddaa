"""The page on statistics shows what the code prints."""

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_the_example_prints_what_the_page_says(capsys):
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    exec(compile(code, "docs/statistics.md", "exec"), {})
    assert capsys.readouterr().out == "0.7125\n"
    assert "# 0.7125\n" in code
