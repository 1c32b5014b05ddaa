"""The page on tables shows what the code prints."""

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def _block(kind: str) -> str:
    return PAGE.read_text(encoding="utf-8").split(f"```{kind}\n")[1].split("```")[0]


def test_the_example_prints_what_the_page_says(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "studies.csv").write_text(_block("csv"))
    monkeypatch.chdir(tmp_path)
    exec(compile(_block("python"), "docs/tables.md", "exec"), {})
    assert capsys.readouterr().out == _block("text")
