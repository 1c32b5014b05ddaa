"""Tables of the judge: readable files, checked when they are read."""

import shutil

import pytest

from vlscore.errors import InvalidLexicon
from vlscore.findings import severity_level
from vlscore.metrics import RuleJudge, load_tables
from vlscore.metrics.judge.judge_tables import FILES, FOLDER


@pytest.fixture
def folder(tmp_path):
    """A writable copy of the shipped tables."""
    target = tmp_path / "data"
    shutil.copytree(FOLDER, target)
    return target


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_every_observation_has_a_concept_and_every_file_its_sources():
    tables = load_tables()
    assert tables.of_observation.keys() == tables.lexicon.observations.keys()
    for name in ("concepts.toml", "relations.toml", "patients.toml", "positions.toml"):
        head = (FOLDER / name).read_text(encoding="utf-8").split("\n[[", 1)[0]
        assert "Sources" in head
    # The question to a language model is no table.
    assert {path.name for path in FOLDER.iterdir()} == {*FILES, "prompt.toml"}


def test_the_value_of_a_level_of_severity_is_one_of_its_words():
    lexicon = load_tables().lexicon
    levels = [level for scale in lexicon.scales.values() for level in scale]
    assert [severity_level(level.value, lexicon) for level in levels] == levels


def test_a_coarser_name_is_never_the_exact_one():
    tables = load_tables()
    assert not [pair for pair in tables.coarser if pair[::-1] in tables.coarser]
    assert all(0 < credit < 1 for credit in tables.coarser.values())


def test_a_users_tables_change_the_severity_and_the_name(folder):
    edit(
        folder / "concepts.toml",
        'name = "hernia"\nseverity = [2, 2, 2]',
        'name = "hernia"\nseverity = [4, 4, 4]',
    )
    own = RuleJudge(load_tables(folder))
    (error,) = own.judge("Clear lungs.", "Hiatal hernia.").errors
    assert error.severity == 4
    assert own.name != RuleJudge().name


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("concepts.toml", "severity = [5, 5, 5]", "severity = [5, 5, 6]", "three severities"),
        ("concepts.toml", 'name = "hernia"', 'name = "hernias"', "'hernias' is unknown"),
        (
            "relations.toml",
            'name = "volume_loss"',
            'name = "volume"',
            "these concepts do not exist: volume",
        ),
        ("patients.toml", '"osteopenia"', '"osteopeny"', "these concepts do not exist: osteopeny"),
        ("patients.toml", "raise = 1", "raised = 1", "wrong value: 'raise'"),
        ("positions.toml", "bad_good = 4", "bad_god = 4", "bad_good"),
        ("words.toml", "[[observation]]", "[[observation", "not valid TOML"),
        (
            "words.toml",
            'effect = "hypothetical"',
            'effect = "maybe"',
            r"words\.toml: unknown effect",
        ),
    ],
)
def test_a_broken_table_is_named(folder, file, old, new, message):
    edit(folder / file, old, new)
    with pytest.raises(InvalidLexicon, match=message):
        load_tables(folder)


def test_a_missing_table_is_named(folder):
    (folder / "relations.toml").unlink()
    with pytest.raises(
        InvalidLexicon, match=r"relations\.toml: this table of the rule judge does not exist"
    ):
        load_tables(folder)
