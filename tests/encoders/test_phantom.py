"""The bundled encoders: what they promise, and that they load without the code of phantoms."""

import numpy as np
import pytest

from tests.demonstration import demo_rows
from tests.encoders.goldens import DATA, row_error
from vlscore.encoders import encoder_card, load_encoder

GOLDENS = {"phantom": "demo.npz", "phantom-judging": "demo_judging.npz"}


@pytest.fixture(scope="module", params=GOLDENS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def encoder(name):
    return load_encoder(name)


def test_its_card_is_known_without_its_weights(name, encoder):
    assert encoder.card == encoder_card(name)
    assert encoder.card.demonstration


def test_the_default_is_the_encoder_for_judging():
    assert load_encoder().checksum == load_encoder("phantom-judging").checksum


# Of another machine or version of a library; a changed weight or pixel changes far more.
SAME = 1e-5


def test_the_demonstration_has_the_embeddings_it_had(name, encoder):
    """Stored when they were right; regenerate with tests/encoders/data/make_demo.py."""
    studies = demo_rows()
    with np.load(DATA / GOLDENS[name]) as stored:
        assert str(stored["checksum"]) == encoder.checksum
        found = {
            "image": encoder.encode_images([study["image"] for study in studies]),
            "reference": encoder.encode_reports([study["reference"] for study in studies]),
            "candidate": encoder.encode_reports([study["candidate"] for study in studies]),
        }
        for role, vectors in found.items():
            assert row_error(vectors, stored[role]) <= SAME, role
