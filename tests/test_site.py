"""The documentation as a site: built without a warning, with every page and what code makes."""

import re

import pytest

from tests.conftest import REPOSITORY, run_python

pytestmark = pytest.mark.slow

INSTALL = "pip install 'vlscore[docs]'"


@pytest.fixture(scope="module")
def warnings(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What Sphinx warns of. Results of benchmarks, which scripts write, are left out: `make site`
    reads them, too."""
    for library in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(library, reason=INSTALL)
    done = run_python(
        *("-m", "sphinx", "-q", "-b", "dummy", "-c", "docs"),
        *("-D", "exclude_patterns=CODE_OF_CONDUCT.md,benchmarks/results"),
        *(".", tmp_path_factory.mktemp("site")),
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_the_site_is_built_without_a_warning(warnings: list[str]) -> None:
    """Links between pages and to headings are checked by it."""
    assert [line for line in warnings if "benchmarks/results/" not in line] == []


def test_pages_made_from_code_have_every_command_and_metric(warnings: list[str]) -> None:
    from vlscore.cli import commands
    from vlscore.metrics import METRICS

    reference = REPOSITORY / "docs" / "reference"
    page = (reference / "commands.md").read_text(encoding="utf-8")
    for name in commands():
        assert f"# `vlscore {name}`" in page
    lists = (reference / "lists.md").read_text(encoding="utf-8")
    for name in METRICS:
        assert f"\n  {name} " in lists
    assert "vlscore.metrics.Scorer" in (reference / "metrics.md").read_text(encoding="utf-8")


def test_every_page_is_listed_or_added() -> None:
    """A page that the index does not name is added to the how-to guides when the site is built."""
    index = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^[a-z_]+$", index, re.MULTILINE))
    pages = {path.stem for path in (REPOSITORY / "docs").glob("*.md")}
    assert named <= pages
    assert "% further pages" in index
