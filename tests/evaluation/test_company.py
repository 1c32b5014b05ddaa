"""A run gives the same numbers wherever it was stopped, to the last digit."""

import pytest

from tests.doubles import Sociable
from tests.evaluation.samples import BATCH, CHUNK, make_table
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer


def test_embeddings_do_not_depend_on_where_a_run_was_stopped(tmp_path):
    table, _ = make_table(tmp_path / "in", 3 * CHUNK)

    def scorer():
        return Scorer(Sociable(), device="cpu", batch_size=BATCH)

    def stop(done, failed):
        if done == 2 * CHUNK:
            raise KeyboardInterrupt

    whole = evaluate(table, tmp_path / "whole", scorer())
    with pytest.raises(KeyboardInterrupt):
        evaluate(table, tmp_path / "out", scorer(), on_progress=stop)
    went_on = evaluate(table, tmp_path / "out", scorer())
    assert went_on.resumed_from == 2 * CHUNK
    assert went_on.scores.read_bytes() == whole.scores.read_bytes()
