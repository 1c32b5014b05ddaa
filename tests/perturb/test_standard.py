"""The standard normal report, made from what a corpus says most often."""

from vlscore.findings import extract
from vlscore.perturb import default_standard_normal, perturb_report, standard_normal_of
from vlscore.perturb.generate import recipe

DEFAULTS = {topic.name: topic.default for topic in recipe().topics}


def sentences(*said: str, times: int = 2) -> list[str]:
    return [sentence for sentence in said for _ in range(times)]


def test_the_default_says_one_sentence_on_each_topic_and_finds_nothing():
    assert default_standard_normal() == " ".join(DEFAULTS.values())
    found = extract(default_standard_normal())
    assert not found.present
    assert [len(sentence.findings) > 0 for sentence in found.sentences] == [True] * len(DEFAULTS)


def test_each_default_denies_what_its_topic_denies():
    for topic in recipe().topics:
        denied = {finding.observation for finding in extract(topic.default)}
        assert topic.denies <= denied <= topic.denies | topic.settles


def test_the_most_common_sentence_wins_and_the_first_of_equals():
    often, seldom = "Cardiac size is normal.", "Normal heart size."
    assert often in standard_normal_of(sentences(often, times=3) + sentences(seldom))
    assert often in standard_normal_of(sentences(often, seldom))
    assert often in standard_normal_of(sentences(seldom, often))


def test_what_is_said_once_is_not_taken():
    assert standard_normal_of(["Cardiac size is normal."]) == default_standard_normal()


def test_sentences_of_one_study_or_of_findings_are_not_taken():
    said = sentences(
        "Heart size is normal, stable.",
        "Heart size is normal compared with 2019.",
        "The XXXX heart is normal in size.",
        "Heart size is normal and there is mild edema.",
        times=9,
    )
    assert DEFAULTS["heart"] in standard_normal_of(said)


def test_a_sentence_stands_for_one_topic_alone():
    said = "The heart is normal in size and the lungs are clear."
    assert said not in standard_normal_of(sentences(said, times=9))


def test_wrapped_lines_count_as_one_sentence():
    said = ["Cardiac size\nis normal.", "Cardiac size is normal."]
    assert "Cardiac size is normal." in standard_normal_of(said)


def test_a_standard_normal_report_is_not_exchanged_for_itself():
    own = standard_normal_of(sentences("Cardiac size is normal.", "No effusion or pneumothorax."))
    kinds = ["standard-normal"]
    assert list(perturb_report(own, kinds, standard_normal=own)) == []
    assert list(perturb_report(own.replace(". ", ".\n"), kinds, standard_normal=own)) == []
    assert [p.perturbed for p in perturb_report(own, kinds)] == [default_standard_normal()]
