"""Figures of results."""

import pytest

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    Interval,
    curves,
    dot_plots,
    histograms,
    save,
    scatter,
)
from vlscore.stats.figures import check_format

NAN = float("nan")
PANELS = {"tau": {"a": Interval(0.5, 0.4, 0.6), "b": Interval(NAN, NAN, NAN)}}


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_bytes_of_a_figure_repeat(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    drawn = []
    for k in range(2):
        path = tmp_path / f"{k}.{suffix}"
        dot_plots(PANELS, path, title="T", lines={"tau": {"ceiling": 0.7}}, note="n = 2")
        drawn.append(path.read_bytes())
    assert drawn[0] == drawn[1]


def test_a_dot_and_a_bar_for_every_estimate_that_is_defined(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    kept = []
    monkeypatch.setattr("vlscore.stats.figures.save", lambda figure, path: kept.append(figure))
    dot_plots(PANELS, tmp_path / "x.png", title="T", lines={"tau": {"ceiling": 0.7}})
    (axis,) = kept[0].axes
    data = [list(line.get_xdata()) for line in axis.lines]
    assert data == [[0.4, 0.6], [0.5], [0.7, 0.7]]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(InvalidSetting, match="png, svg, pdf"):
        check_format("gif")
    with pytest.raises(InvalidSetting, match="png, svg, pdf"):
        save(None, tmp_path / "a.bmp")


def test_every_kind_of_figure_is_drawn_in_the_width_of_a_paper(tmp_path, monkeypatch):
    """A column has 3.4 inches, a page 7; the style does not stay behind."""
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    kept = []
    monkeypatch.setattr("vlscore.stats.figures.save", lambda figure, path: kept.append(figure))
    x, y = [0.1, 0.5, NAN, 0.9], [1.0, 2.0, 3.0, 2.5]
    scatter(x, y, "x.pdf", title="T", labels=("metric", "raters"))
    histograms({"a": x, "b": y}, "x.pdf", title="T", means={"a": Interval(0.5, 0.4, 0.6)})
    curves({"Loss": {"training": ([1, 2], [0.5, 0.4])}}, "x.pdf", title="T", label="step")
    assert [round(figure.get_figwidth(), 1) for figure in kept] == [3.4, 7.0, 3.4]
    (points,) = kept[0].axes[0].collections
    assert points.get_offsets().tolist() == [[0.1, 1.0], [0.5, 2.0], [0.9, 2.5]]
    (line,) = kept[2].axes[0].lines
    assert line.get_ydata().tolist() == [0.5, 0.4]
    assert dict(matplotlib.rcParams) == before
