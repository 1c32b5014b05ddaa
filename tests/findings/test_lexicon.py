"""Lexicons: readable files, checked when loaded, extended by a line."""

import json
import shutil
from pathlib import Path

import pytest

from vlscore.core import resource_path
from vlscore.errors import InvalidLexicon
from vlscore.findings import extract, freeze, load_lexicon, severity_level
from vlscore.findings.lexicon_files import TABLES, our_lexicon
from vlscore.findings.phrases import PhraseTrie
from vlscore.findings.tokens import tokenize


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A writable copy of the shipped lexicons."""
    target = tmp_path / "lexicons"
    shutil.copytree(resource_path("perturbations", "lexicons"), target)
    return target


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_synonym_is_one_line(folder: Path) -> None:
    report = "Left pleural spillage."
    assert not extract(report).findings
    old = '"(pleural|) effusion"'
    edit(folder / "observations.toml", old, f'"pleural spillage", {old}')
    (finding,) = extract(report, load_lexicon(folder)).findings
    assert finding.observation == "pleural_effusion"


def test_a_trigger_is_one_line(folder: Path) -> None:
    edit(folder / "context.toml", '"denies", ', '"denies", "nowhere any", ')
    (finding,) = extract("Nowhere any effusion.", load_lexicon(folder)).findings
    assert finding.polarity == "negative"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("observations", 'chexpert = "Edema"', 'chexpert = "Oedema"', "has an unknown label"),
        ("observations", 'subject = "markings"', 'subject = "landmarks"', "unknown subject"),
        ("observations", 'name = "density"', 'name = "opacity"', "defined twice"),
        ("observations", "normal_states = [", "normal_states = [[", "not valid TOML"),
        ("context", 'effect = "uncertain"', 'effect = "doubtful"', "not 'doubtful'"),
        ("context", "\nends_scope =", "\nend_scope =", "unknown key end_scope"),
        ("context", '"denies", ', '"denies", "", ', "empty phrase"),
        ("location", 'side = "left"', 'side = "port"', "not 'port'"),
        ("change", 'value = "new"', 'value = "novel"', "is not a valid TemporalChange"),
        ("grammar", "copulas =", "cupolas =", "lacks copulas"),
        ("grammar", "denying =", "denies =", "lacks denying"),
        ("change", "parting =", "part =", "no list parting"),
        ("change", "[[compose]]\npattern", "[[compose]]\npaterns", "unknown key paterns"),
        ("severity", "rank = 1", "rang = 1", "unknown key rang"),
        ("observations", "\nmidline = true", "\nmidlin = true", "unknown key midlin"),
        ("coverage", '"edema", "air_fluid', '"oedema", "air_fluid', "observations do not exist"),
        (
            "observations",
            'region = "lungs"\n',
            "",
            "have no scope: opacity; give the entry of each a",
        ),
        (
            "observations",
            'region = "lungs"',
            'region = "lung"',
            "unknown region 'lung'; known: lungs",
        ),
        ("coverage", 'subjects = ["lungs"]', 'subjects = ["loins"]', "unknown subject"),
        ("coverage", '"lungs", "pleura", "vessels"]', '"lungs", "belly"]', "unknown part"),
    ],
)
def test_a_broken_lexicon_is_named(
    folder: Path, name: str, old: str, new: str, message: str
) -> None:
    edit(folder / f"{name}.toml", old, new)
    with pytest.raises(InvalidLexicon, match=message):
        load_lexicon(folder)


def test_a_missing_lexicon_is_named(folder: Path) -> None:
    (folder / "change.toml").unlink()
    with pytest.raises(InvalidLexicon, match=r"change\.toml: this lexicon does not exist"):
        load_lexicon(folder)


def test_scales_are_ordered() -> None:
    for levels in load_lexicon().scales.values():
        ranks = [level.rank for level in levels]
        assert ranks == sorted(ranks)
    mild, severe = severity_level("Mild"), severity_level("severely")
    assert mild is not None
    assert severe is not None
    assert mild.rank < severe.rank
    assert severity_level("green") is None


@pytest.mark.parametrize("phrase", ["a c d", "a c e", "b c d", "b c e", "c d", "c e"])
def test_alternatives_are_all_matched(phrase: str) -> None:
    trie = PhraseTrie()
    trie.add("layer", "(a|b|) c (d|e)", "entry")
    (match,) = trie.find(tokenize(phrase))["layer"]
    assert (match.first, match.last) == (0, len(phrase.split()))


@pytest.mark.parametrize("pattern", ["", "()", "(a|)", "(a", "a)", "hydro(thorax|pneumothorax)"])
def test_malformed_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        PhraseTrie().add("layer", pattern, "entry")


def test_longest_phrase_wins_in_each_layer() -> None:
    trie = PhraseTrie()
    trie.add("one", "lung", 1)
    trie.add("one", "lung base", 2)
    trie.add("two", "base", 3)
    found = trie.find(tokenize("Lung bases, lungs"))
    assert [(m.first, m.last, m.entry) for m in found["one"]] == [(0, 2, 2), (3, 4, 1)]
    assert [(m.first, m.last, m.entry) for m in found["two"]] == [(1, 2, 3)]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Opacities", ["opacity"]),
        ("Pneumothoraces", ["pneumothorax"]),
        ("masses", ["mass"]),
        ("atelectasis is", ["atelectasis", "is"]),
        ("air-space and/or", ["air", "space", "and", "or"]),
        ("2.5cm", ["2.5", "cm"]),
        ("___", ["xxxx"]),
        ("- a", ["-", "a"]),
    ],
)
def test_tokens_take_their_matching_form(text: str, forms: list[str]) -> None:
    tokens = tokenize(text)
    assert [t.form for t in tokens] == forms
    assert all(text[t.start : t.end].strip() for t in tokens)


def test_a_phrase_names_one_observation_unless_it_means_two() -> None:
    means_two = {
        "kyphoscoliosis",
        "collapse consolidation",
        "fracture deformity",
        *(
            f"{kind}{fluid}pneumothorax"
            for kind in ("", "tension ")
            for fluid in ("hydro", "hemo", "sero", "pyo")
        ),
        "metastatic nodule",
        *(f"{of} metastatic lesion" for of in ("bony", "bone", "osseous", "skeletal")),
        "pleuroparenchymal thickening",
        *(f"fibronodular{of}" for of in (" scarring", " change", " disease", " opacity")),
        *(
            f"{pleural}effusion {joint}{thickening}"
            for pleural in ("", "pleural ")
            for joint in ("versus ", "vs ", "or ", "and or ", "and ", ", ", ", or ", "")
            for thickening in ("thickening", "pleural thickening")
        ),
    }
    mentions = load_lexicon().trie.phrases("mention")
    doubled = {phrase for phrase, entries in mentions.items() if len(entries) > 1}
    assert doubled == means_two


def test_a_frozen_lexicon_needs_no_list_that_came_later(tmp_path: Path, folder: Path) -> None:
    tables = json.loads(freeze())
    del tables["grammar"]["words"]["labels_of_devices"]
    frozen = tmp_path / "lexicon.json"
    frozen.write_text(json.dumps(tables), encoding="utf-8")
    (found,) = extract("Small left effusion.", load_lexicon(frozen)).findings
    assert found.observation == "pleural_effusion"
    grammar = folder / "grammar.toml"
    lines = grammar.read_text(encoding="utf-8").splitlines(keepends=True)
    rest = [line for line in lines if not line.startswith("labels_of_devices")]
    grammar.write_text("".join(rest), encoding="utf-8")
    with pytest.raises(InvalidLexicon, match="lacks labels_of_devices"):
        load_lexicon(folder)


def test_every_table_of_the_folder_is_read() -> None:
    of_perturbations = {
        *("location_moves", "severity_changes", "statements", "wording"),
    }
    assert {p.stem for p in our_lexicon().glob("*.toml")} == {*TABLES, *of_perturbations}
