"""The lexicons of the perturbations: readable files, checked against each other."""

from vlscore.findings import extract, load_lexicon
from vlscore.perturb import lexicons


def test_sides_move_there_and_back_or_to_another_side():
    sides = lexicons.location_moves().sides
    for words, other in sides.items():
        assert extract(f"{words} opacity").findings, words
        assert lexicons.matching_form(other) != words
    for words in ("left", "right", "left sided", "rt", "lll", "rul", "levoscoliosis"):
        assert lexicons.matching_form(sides[lexicons.matching_form(sides[words])]) == words


def test_no_zone_moves_to_itself():
    for words, options in lexicons.location_moves().zones.items():
        assert options
        assert words not in map(lexicons.matching_form, options)


def test_grades_become_other_grades_of_the_same_shape():
    table = lexicons.severity_changes()
    for change in table.change:
        for new in (*change.to, *change.before_adjective):
            assert new not in change.words
            assert table.of(new) is not None, f"{new} cannot be changed back"
        assert len({new.endswith("ly") for new in change.to}) == 1


def test_false_findings_are_what_they_say():
    families = lexicons.alike().same
    for name, finding in lexicons.false_findings().items():
        for sentence in finding.sentences:
            present = {found.observation for found in extract(sentence).present}
            assert name in present, sentence
            # What comes along must not stand in the report either.
            assert present <= finding.unless.union([name], families.get(name, ())), sentence


def test_false_findings_have_numbers_of_their_own():
    orders = [finding.order for finding in lexicons.false_findings().values()]
    assert orders == list(range(1, len(orders) + 1))


def test_observations_that_tables_name_exist():
    known = set(load_lexicon().observations)
    named = {n for added in lexicons.false_findings().values() for n in added.unless}
    assert named <= known, named - known


def test_zones_of_levels_are_those_of_the_lexicon():
    levels = set().union(*lexicons.location_moves().same_height)
    zones = {
        match.entry.zone
        for level in levels
        for match in load_lexicon().trie.find(load_lexicon().tokenize(level)).get("place", ())
    }
    assert zones == levels


def test_equivalents_find_the_same():
    """What one phrase of a group says in a sentence, every other says."""
    telling = 0
    for group in lexicons.statements().paraphrase.group:
        before = f"{min(group.after, key=len)} " if group.after else ""
        after = f" {min(group.before, key=len)}" if group.before else ""
        if group.at == "start" and group.phrases[0].endswith(("of", "for", "no")):
            after = " effusion"
        told = [
            {(f.observation, f.polarity, f.side) for f in extract(f"{before}{phrase}{after}.")}
            for phrase in group.phrases
        ]
        assert all(said == told[0] for said in told), (group.phrases, told)
        telling += bool(told[0])
    assert telling >= 15
