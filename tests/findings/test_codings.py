"""Findings of real reports against their independent manual codings.

Only the development part is read here: a test that looked at the held-out part on every run would
tune the lexicons to it. Its figures are in `benchmarks/results/findings_vs_codings.md`.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "findings_vs_codings.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    sys.path.insert(0, str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("findings_vs_codings", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.path.remove(str(SCRIPT.parent))
    return module


@pytest.fixture(scope="module")
def reports(benchmark: ModuleType, shared: Path) -> list:
    path = shared / "data" / "iu_reports.jsonl"
    if not path.is_file():
        pytest.skip("the coded reports are not in ../shared/data")
    return benchmark.read_reports(path, development_only=True)


def test_the_held_out_part_is_not_read(reports: list) -> None:
    assert len(reports) > 1_000
    assert all(report.is_development for report in reports)


def test_presence_and_side_reach_the_bars(benchmark: ModuleType, reports: list) -> None:
    total = benchmark.pooled(benchmark.compare(reports, row) for row in benchmark.CLEAN)
    assert total.f1 >= 0.965
    assert total.side_agree / (total.side_total - total.side_unnamed) >= 0.985


def test_no_frequent_observation_is_weak(benchmark: ModuleType, reports: list) -> None:
    counts = {row.name: benchmark.compare(reports, row) for row in benchmark.CLEAN}
    weak = {name: c.f1 for name, c in counts.items() if c.coded >= 20 and c.f1 < 0.9}
    assert not weak


def test_side_agrees_over_all_reports_even_where_unnamed(
    benchmark: ModuleType, reports: list
) -> None:
    total = benchmark.pooled(benchmark.compare(reports, row) for row in benchmark.CLEAN)
    assert total.side_agree / total.side_total >= 0.94
    assert total.zone_agree / total.zone_total >= 0.94
