"""A second run computes what is new alone, and a run that was stopped ends with the same result."""

import json

import pytest

from tests.doubles import KeptEncoder
from tests.evaluation.samples import BATCH, CHUNK, make_table, results_of, write_table
from vlscore.cli.progress import row_progress
from vlscore.core import open_cache
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer

ROWS = 2 * CHUNK + 3


@pytest.fixture
def cache(cache_folder):
    cache = open_cache()
    yield cache
    for store in cache.stores:
        store.close()


def scorer_of(encoder=None, metrics="vlscore", **options):
    options = {"device": "cpu", "batch_size": BATCH, **options}
    return Scorer(encoder or KeptEncoder(), metrics=metrics, **options)


def work_of(result):
    return json.loads(result.record.read_text())["work"]


@pytest.mark.usefixtures("cache")
def test_a_warm_run_computes_nothing_and_writes_the_same_bytes(tmp_path):
    table, _ = make_table(tmp_path / "in", ROWS)
    cold = evaluate(table, tmp_path / "cold", scorer_of(), workers=1)
    assert work_of(cold)["images_decoded"] == work_of(cold)["images_embedded"] == ROWS
    assert work_of(cold)["reports_embedded"] == ROWS + 3
    encoder = KeptEncoder()
    warm = evaluate(table, tmp_path / "warm", scorer_of(encoder), workers=1)
    work = work_of(warm)
    assert (work["images_decoded"], work["images_embedded"], work["reports_embedded"]) == (0, 0, 0)
    assert (work["images_from_cache"], work["pixels_from_cache"]) == (ROWS, 0)
    assert (encoder.image_calls, encoder.report_rows) == (0, 0)
    assert results_of(tmp_path / "warm") == results_of(tmp_path / "cold")


@pytest.mark.usefixtures("cache")
def test_a_second_generator_costs_its_texts_alone(tmp_path):
    table, records = make_table(tmp_path, ROWS)
    evaluate(table, tmp_path / "one", scorer_of())
    other = [{**record, "candidate": f"another {k}"} for k, record in enumerate(records)]
    result = evaluate(write_table(tmp_path / "other.jsonl", other), tmp_path / "two", scorer_of())
    work = work_of(result)
    assert (work["images_decoded"], work["images_embedded"]) == (0, 0)
    assert work["reports_embedded"] == ROWS


@pytest.mark.usefixtures("cache")
def test_images_of_several_systems_in_one_table_are_decoded_once(tmp_path):
    table, records = make_table(tmp_path, 6)
    rows = [{**r, "id": f"{r['id']}-{k}", "candidate": f"c{k}"} for r in records for k in range(5)]
    for cache in (True, False):
        out = tmp_path / str(cache)
        result = evaluate(write_table(table, rows), out, scorer_of(cache=cache))
        assert (
            work_of(result)["images_decoded"]
            == work_of(result)["images_embedded"]
            == 6
            + (
                # Without a cache, chunks know nothing of each other.
                0 if cache else 1
            )
        )


class Killed(BaseException):
    pass


class Mortal(KeptEncoder):
    """Dies after so many passes."""

    def __init__(self, passes):
        super().__init__()
        self.left = passes

    def _pass(self):
        self.left -= 1
        if self.left < 0:
            raise Killed

    def embed_images(self, pixels):
        self._pass()
        return super().embed_images(pixels)

    def embed_reports(self, tokens):
        self._pass()
        return super().embed_reports(tokens)


@pytest.mark.parametrize("cached", [True, False])
def test_killed_at_every_pass_the_next_call_ends_with_the_same_bytes(tmp_path, monkeypatch, cached):
    """The encoder's numbers depend on what is computed together, so that any other batch shows."""
    table, records = make_table(tmp_path / "in", ROWS)
    # Failures and repeated texts must not move the batches either.
    (tmp_path / "in" / "3.png").write_bytes(b"no image")
    (tmp_path / "in" / "20.png").unlink()
    records[5]["candidate"] = "untokenizable"
    records[9]["candidate"] = records[30]["candidate"]
    for k, record in enumerate(records):
        record["reference"] += " normal" * (k % 9) + f" {k % 7}"
    write_table(table, records)

    def run(out, encoder):
        return evaluate(table, tmp_path / out, scorer_of(encoder, cache=cached))

    def fresh_cache(name):
        monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / f"cache {name}"))

    fresh_cache("whole")
    encoder = Mortal(10_000)
    run("whole", encoder)
    whole, passes = results_of(tmp_path / "whole"), 10_000 - encoder.left
    assert passes > 20
    for count in range(1, passes, 4):
        fresh_cache(count)
        with pytest.raises(Killed):
            run(f"out{count}", Mortal(count))
        run(f"out{count}", Mortal(10_000))
        assert results_of(tmp_path / f"out{count}") == whole, count


def test_cached_and_uncached_runs_agree(tmp_path, cache):
    """In another order of rows the batches are others; KeptEncoder exaggerates what that does."""
    table, records = make_table(tmp_path, ROWS)
    evaluate(write_table(tmp_path / "turned.jsonl", records[::-1]), tmp_path / "first", scorer_of())
    cached = evaluate(table, tmp_path / "cached", scorer_of())
    uncached = evaluate(table, tmp_path / "uncached", scorer_of(cache=False))
    for one, other in zip(cached.first_scores(ROWS), uncached.first_scores(ROWS), strict=True):
        assert one["vlscore"] == pytest.approx(other["vlscore"], rel=1e-4)
    assert work_of(uncached)["images_from_cache"] == 0


@pytest.mark.usefixtures("cache")
def test_progress_says_what_came_from_the_cache(tmp_path, monkeypatch, capsys):
    table, _ = make_table(tmp_path, 5)
    evaluate(table, tmp_path / "cold", scorer_of())
    monkeypatch.setattr("vlscore.cli.progress._LOG_PAUSE", 0.0)
    scorer = scorer_of()
    with row_progress(5, also=scorer.embedder.engine.work.said) as on_progress:
        evaluate(table, tmp_path / "warm", scorer, on_progress=on_progress)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("cache: 100% of images, 100% of reports")
