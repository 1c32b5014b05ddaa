"""What is missing for a network is said before anything is computed."""

import pytest

from tests.metrics.networks.constructed import write_chexbert
from vlscore.errors import MissingDependency, WeightsNotFound
from vlscore.metrics import Plan
from vlscore.metrics.networks.model_files import radgraph_files


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


def test_another_vocabulary_is_not_taken_for_one_that_is_not_there(radgraph_weights, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(WeightsNotFound, match="no such vocabulary file or folder"):
        radgraph_files(radgraph_weights, tmp_path / "vocabulary.txt")
    assert radgraph_files(radgraph_weights, tmp_path)[1] == tmp_path / "vocab.txt"
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(WeightsNotFound, match=f"{tmp_path.name} has no vocab.txt or"):
        radgraph_files(radgraph_weights, tmp_path)
