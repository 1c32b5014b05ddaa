"""What a comparison tells while it runs, and of texts that are nearly the same."""

import json

import pytest

from vlscore.data.phantom.phantom_pairs import write_dataset
from vlscore.errors import InvalidTable
from vlscore.evaluation import compare
from vlscore.metrics import Scorer

QUICK = {"resamples": 40, "permutations": 99}
REFERENCES = [f"There is an effusion of size {k}. No edema." for k in range(5)]


@pytest.fixture
def write(tmp_path):
    def write(name, candidates, references=REFERENCES):
        path = tmp_path / f"{name}.jsonl"
        rows = [
            {"id": f"s{k}", "reference": reference, "candidate": text}
            for k, (reference, text) in enumerate(zip(references, candidates, strict=True))
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def scorer():
    return Scorer(metrics="rouge-l,bleu-2", cache=False)


def test_references_that_differ_in_blanks_alone_are_matched_on_request(write, tmp_path):
    spaced = [text.replace(". ", ".\n ", 1) if k < 2 else text for k, text in enumerate(REFERENCES)]
    tables = [write("ours", REFERENCES), write("theirs", REFERENCES[::-1], spaced)]
    with pytest.raises(InvalidTable, match=r"2 studies \(s0, s1\) differ in blanks") as told:
        compare(tables, tmp_path / "no", scorer(), **QUICK)
    assert "--ignore-blanks" in str(told.value)
    run = compare(tables, tmp_path / "yes", scorer(), ignore_blanks=True, **QUICK)
    assert "2 studies (s0, s1) differ in blanks alone" in " ".join(run.notes)
    plain = [write("ours", REFERENCES), write("theirs", REFERENCES[::-1])]
    same = compare(plain, tmp_path / "plain", scorer(), **QUICK)
    assert run.content["measured"] == same.content["measured"]
    # Another word is another reference.
    other = [spaced[0].replace("effusion", "edema"), *spaced[1:]]
    with pytest.raises(InvalidTable, match=r"references of 1 study \(s0\) differ between"):
        compare(
            [tables[0], write("third", REFERENCES, other)],
            tmp_path / "x",
            scorer(),
            ignore_blanks=True,
            **QUICK,
        )


def test_a_system_that_says_the_same_of_every_study_is_named(write, tmp_path):
    tables = [write("ours", REFERENCES), write("lazy", ["The lungs are clear."] * 5)]
    run = compare(tables, tmp_path / "o", scorer(), baselines=True, **QUICK)
    assert [note for note in run.notes if "one and the same" in note] == [
        "lazy has one and the same report for all 5 studies, whatever they show"
    ]


def test_every_phase_has_a_name_and_a_total(write, tmp_path):
    tables = [write("ours", REFERENCES), write("theirs", REFERENCES[::-1])]
    phases = []

    def on_phase(what, total):
        counts = []
        phases.append((what, total, counts))
        return lambda done, failed: counts.append(done)

    compare(tables, tmp_path / "o", scorer(), on_phase=on_phase, **QUICK)
    # rouge-l, bleu-2 and bleu-2 of the corpus.
    assert [phase[:2] for phase in phases] == [("studies", 5), ("intervals and tests", 3)]
    for _, total, counts in phases:
        assert counts == sorted(counts)
        assert counts[-1] == total


def test_a_data_set_of_phantoms_says_how_far_it_is(tmp_path):
    done = []
    write_dataset(tmp_path, seed=0, count=3, size=32, on_progress=done.append)
    assert done == [1, 2, 3]
