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
    for name in ("concepts.toml", "relations.toml", "positions.toml"):
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
    assert all(0 < how.credit < 1 for how in tables.coarser.values())


def test_a_users_tables_change_the_severity_and_the_name(folder):
    entry = '[[concept]]\nname = "hernia"\nseverity = [4, 4, 4]\n'
    edit(folder / "concepts.toml", "\n[[refined]]\n", f"\n{entry}[[refined]]\n")
    own = RuleJudge(load_tables(folder))
    (error,) = own.judge("Clear lungs.", "Hiatal hernia.").errors
    assert error.severity == 4
    assert own.name != RuleJudge().name


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("concepts.toml", "severity = [3, 3, 4]", "severity = [3, 3, 6]", "not 6"),
        ("words.toml", "severity = [3, 3, 4]", 'concept = "airways"', "do not exist: airways"),
        ("words.toml", "severity", 'concept = "opacity"\nseverity', "two .* concept 'opacity'"),
        (
            "relations.toml",
            'name = "volume_loss"',
            'name = "volume"',
            "these concepts do not exist: volume",
        ),
        ("concepts.toml", ', "osteopenia"', ', "osteopeny"', "concepts do not exist: osteopeny"),
        ("concepts.toml", "raised = 1", "raise = 1", "patient has an unknown key raise"),
        ("concepts.toml", "device = true", 'device = "yes"', "'yes' is no bool"),
        ("words.toml", "severity = [", "severities = [", "unknown key severities"),
        ("concepts.toml", "good = [16, 70]", "good = [16]", "it needs 2 values"),
        ("positions.toml", "[extra_sev", "[extra-sev", "lacks extra_severity_if_misplaced"),
        ("positions.toml", "bad_good = 4", "bad_god = 4", "unknown key bad_god"),
        ("words.toml", "[[observation]]", "[[observation", "not valid TOML"),
        (
            "words.toml",
            'effect = "hypothetical"',
            'effect = "maybe"',
            r"words\.toml, effect: it is one of",
        ),
    ],
)
def test_a_broken_table_is_named(folder, file, old, new, message):
    edit(folder / file, old, new)
    with pytest.raises(InvalidLexicon, match=message):
        load_tables(folder)


@pytest.mark.parametrize(
    ("distance", "is_good"),
    [
        *((words, False) for words in ("7.2 cm", "8.3 cm", "12 cm", "72 mm", "0.2 cm", "one cm")),
        *((words, False) for words in ("seven cm", "9 millimeters", "1.5 cm", "13 centimeters")),
        *((words, True) for words in ("5 cm", "3.4 cm", "two point five cm", "66 mm", "4-5 cm")),
    ],
)
@pytest.mark.parametrize("where", ["above the carina", "from the carina", "proximal to the carina"])
def test_a_tip_lies_well_at_any_good_distance(distance, is_good, where):
    """Whatever number says it; 5 cm +- 2 is the rule of the field, 1.5 and 7 cm are too near and
    too far."""
    text = f"Endotracheal tube tip is {distance} {where}."
    errors = RuleJudge().judge(text, "Endotracheal tube in good position.").errors
    assert (not errors) is is_good, errors


@pytest.mark.parametrize(
    "text",
    [
        "PICC tip 1 cm above the cavoatrial junction.",
        "Right jugular catheter tip 1 cm above the carina.",
    ],
)
def test_a_distance_is_of_the_devices_that_the_table_names(text):
    assert not RuleJudge().judge(text, text.split(" tip")[0] + " in good position.").errors


def test_a_missing_table_is_named(folder):
    (folder / "relations.toml").unlink()
    with pytest.raises(
        InvalidLexicon, match=r"relations\.toml: this table of the rule judge does not exist"
    ):
        load_tables(folder)
