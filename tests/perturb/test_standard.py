"""The standard normal report, made from what a corpus says most often."""

from vlscore.findings import extract
from vlscore.perturb import default_standard_normal, standard_normal_of
from vlscore.perturb.standard_normal import recipe

DEFAULTS = {topic.name: topic.default for topic in recipe().topics}


def sentences(*said: str, times: int = 2) -> list[str]:
    return [sentence for sentence in said for _ in range(times)]


def test_each_default_denies_what_its_topic_denies():
    for topic in recipe().topics:
        denied = {finding.observation for finding in extract(topic.default)}
        assert topic.denies <= denied <= topic.denies | topic.may_deny


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
