"""The supervised phantom encoder: what it promises, and that it stands without the phantom room."""

import json
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import forked
from tests.encoders.goldens import DATA, row_error
from vlscore.core import resource_path
from vlscore.encoders import load_encoder
from vlscore.encoders.blocks.word_tokenizers import (
    MAX_TOKENS,
    PAD,
    STOP,
    WordTokenizer,
    split_token_ids,
)
from vlscore.errors import ChecksumMismatch


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("phantom-supervised")


def test_it_loads_without_the_phantom_room():
    program = (
        "import sys; from vlscore.encoders import load_encoder; "
        "load_encoder('phantom-supervised'); "
        "print(any(name.startswith('vlscore.data.phantom') for name in sys.modules))"
    )
    done = forked.run("-c", program)
    assert done.stdout.strip() == "False", done.stderr


def test_the_bundle_is_small_and_its_constant_is_the_calibrated_one(encoder):
    folder = resource_path("weights", "phantom-supervised")
    assert (folder / "model.safetensors").stat().st_size < 10 * 2**20
    facts = json.loads((folder / "facts.json").read_text())
    assert encoder.checksum == facts["sha256"]
    assert facts["C"] == encoder.card.C
    assert float(encoder.gap) == facts["gap"]


# Of another machine or version of a library; a changed weight or pixel changes far more.
SAME = 1e-5


def demo(folder):
    """The demonstration's studies, as its table lists them."""
    rows = (folder / "studies.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row) for row in rows]


def test_the_demonstration_has_the_embeddings_it_had(encoder):
    """Stored when they were right; regenerate with tests/encoders/data/make_demo.py."""
    folder = resource_path("weights", "phantom", "demo")
    studies = demo(folder)
    with np.load(DATA / "demo_supervised.npz") as stored:
        assert str(stored["checksum"]) == encoder.checksum
        found = {
            "image": encoder.encode_images([folder / study["image"] for study in studies]),
            "reference": encoder.encode_reports([study["reference"] for study in studies]),
            "candidate": encoder.encode_reports([study["candidate"] for study in studies]),
        }
        for name, vectors in found.items():
            assert row_error(vectors, stored[name]) <= SAME, name


def test_changed_weights_are_refused(tmp_path):
    shutil.copytree(resource_path("weights", "phantom-supervised"), tmp_path / "phantom")
    content = bytearray((tmp_path / "phantom" / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "phantom" / "model.safetensors").write_bytes(content)
    with pytest.raises(ChecksumMismatch, match=r"facts\.json"):
        load_encoder("phantom-supervised", weights=tmp_path / "phantom")


def test_the_order_of_sentences_does_not_matter(encoder):
    sentences = ["Small left pleural effusion.", "The heart is normal in size.", "Mild edema."]
    there, back = encoder.encode_reports([" ".join(sentences), " ".join(sentences[::-1])])
    torch.testing.assert_close(there, back, rtol=1e-5, atol=1e-5)


def test_it_sees_side_and_severity_but_not_small_talk(encoder):
    report = "There is a small left pleural effusion. Heart size is normal."
    changed = {
        "side": report.replace("left", "right"),
        "severity": report.replace("small", "large"),
        "[UNK]": report.replace("There is a", "[UNK] is a"),
        "technique": report + " Portable chest radiograph.",
        "paraphrase": "Small left effusion. The cardiac silhouette is within normal limits.",
    }
    vectors = encoder.encode_reports([report, *changed.values()])
    moved = dict(zip(changed, (vectors[1:] - vectors[0]).norm(dim=1).tolist(), strict=True))
    errors = min(moved["side"], moved["severity"])
    assert errors > 3 * max(moved["[UNK]"], moved["technique"])
    assert errors > 2 * moved["paraphrase"]


def test_long_reports_lose_their_tail_and_say_so(encoder):
    long = "the heart is normal . " * 200
    tokens = encoder.tokenize([long, "normal heart"])
    assert tokens.truncated.tolist() == [True, False]
    assert tokens.lengths[0] == MAX_TOKENS
    other_tail, same = encoder.encode_reports([long + "large left effusion", long])
    assert torch.equal(other_tail, same)


words = st.sampled_from(["no", "left", "effusion", ".", ";", "\n", "ångström", "[UNK]", "7"])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(words, max_size=70).map(" ".join), min_size=1, max_size=5))
def test_sentences_hold_every_word_once_and_in_order(reports):
    tokens = WordTokenizer(["no", "left", "effusion"])(reports)
    sentences, owner = split_token_ids(tokens.ids)
    for row in range(len(reports)):
        expected = [k for k in tokens.ids[row].tolist() if k not in (PAD, STOP)]
        found = [k for k in sentences[owner == row].flatten().tolist() if k != PAD]
        assert found == expected
