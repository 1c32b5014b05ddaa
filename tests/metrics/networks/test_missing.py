"""What is missing for a network is said before anything is computed."""

import pytest

from tests.metrics.networks.constructed import write_chexbert
from vlscore.errors import MissingDependency
from vlscore.metrics import Plan


@pytest.mark.parametrize(
    ("name", "variable", "named", "said"),
    [
        ("chexbert-f1", "VLSCORE_CHEXBERT", "absent.pth", r"absent\.pth"),
        ("radgraph-f1", "VLSCORE_RADGRAPH", "absent.tar.gz", "no such RadGraph archive"),
        ("green", "VLSCORE_GREEN", "", r"no config\.json"),
        ("ratescore", "VLSCORE_RATESCORE_NER", "", r"BioLORD.*ratescore\(synonyms=PATH\)"),
    ],
)
def test_the_variable_and_the_absent_file_are_named(
    monkeypatch, tmp_path, name, variable, named, said
):
    monkeypatch.delenv("VLSCORE_RATESCORE_SYNONYMS", raising=False)
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(MissingDependency, match=f"set {variable}"):
        Plan(name).require()
    monkeypatch.setenv(variable, str(tmp_path / named))
    with pytest.raises(MissingDependency, match=said):
        Plan(name).require()


def test_what_the_variable_names_is_enough(monkeypatch, tmp_path):
    monkeypatch.setenv("VLSCORE_CHEXBERT", str(write_chexbert(tmp_path)))
    Plan("chexbert-f1").require()
