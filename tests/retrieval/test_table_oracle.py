"""The oracle of a table: its files, what it excludes, what is refused, what a stop costs."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.doubles import HashEncoder, KeptEncoder
from vlscore.data import TextPolicy, open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidIndex, InvalidSetting, InvalidTable
from vlscore.metrics import compute, text_metric
from vlscore.retrieval import (
    HITS,
    Oracle,
    OracleSettings,
    TextSearch,
    index_build,
    index_search,
    oracle,
)

STUDIES = 11


def embedder(**settings):
    return StudyEmbedder(HashEncoder(), device="cpu", **settings)


@pytest.fixture
def index(tmp_path):
    rows = [{"id": f"r{k}", "report": f"finding {k % 20} on the side {k % 4}"} for k in range(60)]
    return index_build(write_jsonl(tmp_path / "reports.jsonl", rows), tmp_path / "i", embedder())


@pytest.fixture
def studies(tmp_path):
    """Eleven studies of four references; the fifth has no image file, the ninth is no study."""
    rows = []
    for k in range(STUDIES):
        pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        reference = f"finding {k % 4} on the side 1"
        rows.append({"id": f"s{k}", "image": f"{k}.png", "reference": reference})
    rows[4]["image"] = "absent.png"
    rows[8]["reference"] = ""
    return write_jsonl(tmp_path / "studies.jsonl", rows)


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    monkeypatch.setattr(index_search, "STUDIES_AT_ONCE", 3)


def hits_of(result):
    """id -> rows of hits.parquet, best first."""
    found = {}
    for row in pq.read_table(result.folder / HITS).to_pylist():
        found.setdefault(row["study_id"], []).append(row)
    return found


def files_of(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name not in (".lock", "run.json")}


def test_hits_are_those_of_the_search_of_arrays(index, studies, tmp_path):
    result = oracle(studies, tmp_path / "a", index, embedder(), OracleSettings(k=3))
    found = hits_of(result)
    assert [row for row, _, _ in result.failures] == [5, 9]
    assert list(found) == [f"s{k}" for k in range(STUDIES) if k not in (4, 8)]
    encoder = HashEncoder()
    rows = [row for row in read_jsonl(studies) if row["id"] in found]
    images = encoder.encode_images([str(tmp_path / row["image"]) for row in rows]).numpy()
    references = encoder.encode_reports([row["reference"] for row in rows]).numpy()
    vectors = np.array(index.vectors)
    expected = Oracle(vectors, C=encoder.card.C).search(images, references, k=3, ranks=True)
    for row, hits in zip(rows, expected, strict=True):
        for rank, (mine, hit) in enumerate(zip(found[row["id"]], hits, strict=True), start=1):
            assert mine["rank"] == rank
            assert {name: mine[name] for name in vars(hit)} == vars(hit)
            assert mine["text"] == index.text(hit.row)
            assert mine["ids"].split(";") == index.ids(hit.row)
            assert mine["verbatim"] == (mine["text"] == row["reference"])
    best = [hits[0]["score"] for hits in found.values()]
    (summary,) = result.frame("summary").to_dict("records")
    assert summary["mean"] == pytest.approx(np.mean(best), abs=1e-12)
    assert summary["mean.low"] < np.mean(best) < summary["mean.high"]
    assert (summary["studies"], summary["searched"], summary["failed"]) == (STUDIES, 9, 2)
    (signature,) = result.signatures.values()
    assert signature.startswith("vlscore|C:20|txt:all|enc:hash@")
    assert "|oracle:exact|guard:none|index:" in signature
    assert result.tables[0].title == "Best reports of the corpus"


def test_a_stopped_search_takes_its_hits_from_the_cache(index, studies, tmp_path, monkeypatch):
    def kept():
        return StudyEmbedder(KeptEncoder(), device="cpu", cache=tmp_path / "cache")

    table = tmp_path / "reports.jsonl"
    index = index_build(table, tmp_path / "j", kept())
    whole = oracle(studies, tmp_path / "whole", index, kept())
    searched = []
    real = Oracle.search

    def search(self, images, *given, **options):
        searched.append(len(images))
        return real(self, images, *given, **options)

    def stop(done, failed):
        if done == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(Oracle, "search", search)
    settings, out = OracleSettings(k=4), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        oracle(studies, out, index, kept(), settings, on_progress=stop)
    assert [path.name for path in out.iterdir()] == [".lock"]
    before, again = sum(searched), kept()
    told = []
    oracle(studies, out, index, again, settings, on_progress=lambda *at: told.append(at))
    assert told[-1] == (STUDIES, 2)
    assert (before, sum(searched)) == (5, 9)
    # A folder made without a stop, or with all hits from the cache, has the same bytes.
    repeated = oracle(studies, tmp_path / "repeated", index, kept())
    assert sum(searched) == 9
    assert files_of(repeated.folder) == files_of(whole.folder)
    assert again.work.images_embedded <= STUDIES - 6
    unchanged = oracle(studies, tmp_path / "whole", index, kept())
    assert unchanged.unchanged


def test_what_differs_is_refused_unless_it_is_to_be_overwritten(index, studies, tmp_path):
    out = tmp_path / "out"
    oracle(studies, out, index, embedder())
    before = files_of(out)
    for settings in (
        OracleSettings(k=2),
        OracleSettings(guard="window"),
        OracleSettings(metric="cosine"),
        OracleSettings(metric="vlscore(C=7)"),
    ):
        with pytest.raises(InvalidSetting, match="--overwrite"):
            oracle(studies, out, index, embedder(), settings)
    # The same texts, one of which belongs to another study as well: other ids are found.
    with (tmp_path / "reports.jsonl").open("a") as stream:
        stream.write(json.dumps({"id": "n", "report": "finding 1 on the side 1"}) + "\n")
    more_ids = index_build(tmp_path / "reports.jsonl", tmp_path / "j", embedder())
    with pytest.raises(InvalidSetting, match=r"index reports\.parquet"):
        oracle(studies, out, more_ids, embedder())
    assert files_of(out) == before
    found = oracle(studies, out, more_ids, embedder(), overwrite=True)
    assert any("n" in hit["ids"].split(";") for hits in hits_of(found).values() for hit in hits)


def test_what_is_wrong_is_found_before_the_folder_is_made(index, studies, tmp_path):
    out, path = tmp_path / "out", index.folder
    for error, message, table, options in (
        (InvalidTable, "no such file", tmp_path / "no.jsonl", {}),
        (InvalidTable, "no column own", studies, {"settings": OracleSettings(exclude_ids="own")}),
        (
            InvalidSetting,
            "no such folder",
            open_studies(studies, needs=(), image_root=tmp_path / "nowhere"),
            {},
        ),
        (InvalidIndex, "txt: all against findings", studies, {"text_policy": "findings"}),
        (
            InvalidSetting,
            "text-to-image searches an index of images",
            studies,
            {"settings": OracleSettings(metric="text-to-image")},
        ),
        (
            InvalidSetting,
            "has no approximate index",
            studies,
            {"settings": OracleSettings(mode="approximate")},
        ),
    ):
        with pytest.raises(error, match=message):
            oracle(table, out, path, embedder(), **options)
    assert not out.exists()


def test_own_copies_and_own_studies_are_excluded(index, studies, tmp_path):
    (row,) = [k for k, ids in enumerate(index.all_ids()) if "r5" in ids]
    assert index.ids(row) == ["r5", "r25", "r45"]
    rows = [{**each, "own": "r5; r25;r45; r99"} for each in read_jsonl(studies)]
    # Of a study that lists two of three reports with one text, the third's copy stays.
    rows[1]["own"] = ["r5", "r25"]
    del rows[2]["own"]
    write_jsonl(studies, rows)

    def found(name, **options):
        settings = OracleSettings(k=60, **options)
        result = oracle(studies, tmp_path / name, index, embedder(), settings)
        rows = {id: {hit["row"] for hit in hits} for id, hits in hits_of(result).items()}
        return rows, result

    everything, result = found("all")
    hits = hits_of(result)
    assert all(len(rows) == len(index) for rows in everything.values())
    exact, result = found("exact", exclude_exact=True)
    for id, rows in exact.items():
        assert rows == everything[id] - {hit["row"] for hit in hits[id] if hit["verbatim"]}
    assert "|excl:exact|" in next(iter(result.signatures.values()))
    assert not any("own id" in note for note in result.notes)
    own, result = found("own", exclude_ids="own")
    assert own["s0"] == everything["s0"] - {row}
    assert own["s1"] == everything["s1"]
    reasons = {failure.id: failure.reason for failure in result.failures}
    assert reasons["s2"] == 'no column "own" to exclude ids by'
    assert "|excl:ids(own)|" in next(iter(result.signatures.values()))


def test_studies_whose_best_hit_is_their_own_report_are_counted(index, studies, tmp_path):
    rows = read_jsonl(studies)
    best = {id: hits[0] for id, hits in hits_of(_found(studies, tmp_path / "a", index)).items()}
    for row in rows[:2]:
        row["id"] = best[row["id"]]["ids"].split(";")[0]
    write_jsonl(studies, rows)
    result = _found(studies, tmp_path / "b", index)
    assert "the best hit of 2 of 9 studies has the study's own id" in " ".join(result.notes)
    result = _found(studies, tmp_path / "c", index, exclude_ids="id")
    assert not any("own id" in note for note in result.notes)


def _found(studies, out, index, **options):
    return oracle(studies, out, index, embedder(), OracleSettings(k=3, **options))


def test_a_metric_that_does_not_look_at_the_image_needs_none(index, studies, tmp_path):
    """What is there describes the hits; what is not there, or not readable, fails no study."""
    settings = OracleSettings(metric="cosine", k=2)
    described = oracle(studies, tmp_path / "a", index, embedder(), settings)
    hits = hits_of(described)
    assert [failure.id for failure in described.failures] == ["s8"]
    assert all(hit["area"] is None for hit in hits["s4"])
    assert all(hit["area"] is not None for hit in hits["s3"])
    assert [hit["distance_rank"] for hit in hits["s4"]] == [
        hit["distance_rank"] for hit in hits["s0"]
    ]
    settings = OracleSettings(metric="clipscore", k=2)
    images = oracle(studies, tmp_path / "c", index, embedder(), settings)
    assert [failure.id for failure in images.failures] == ["s4"]
    first = hits_of(images)["s8"][0]
    for name in ("distance_rank", "verbatim", "distance", "area"):
        assert first[name] is None


@pytest.mark.parametrize(
    ("options", "needs", "wants"),
    [
        ({}, {"image", "reference"}, set()),
        ({"metric": "cosine"}, {"reference"}, {"image"}),
        ({"metric": "image-to-text"}, {"image"}, {"reference"}),
        ({"metric": "bleu-1"}, {"reference"}, set()),
        ({"metric": "clipscore", "exclude_exact": True}, {"image", "reference"}, set()),
    ],
)
def test_what_is_read_besides_is_what_describes_the_hits(index, options, needs, wants):
    settings = OracleSettings(**options)
    search = index_search.IndexSearch(index, embedder(), settings, TextPolicy())
    assert (search.needs, search.wants) == (needs, wants)


def test_text_to_image_finds_images(studies, tmp_path):
    images = index_build(open_studies(studies, needs={"image"}), tmp_path / "images", embedder())
    settings = OracleSettings(metric="text to image", k=2)
    result = oracle(studies, tmp_path / "out", images, embedder(), settings)
    assert all(hit["text"] in images.texts() for hit in hits_of(result)["s0"])
    assert {failure.id for failure in result.failures} == {"s8"}
    with pytest.raises(InvalidSetting, match="vlscore searches an index of reports"):
        oracle(studies, tmp_path / "b", images, embedder())


def test_recall_of_approximate_search_is_printed(index, studies, tmp_path):
    table = tmp_path / "reports.jsonl"
    approximate = index_build(table, tmp_path / "j", embedder(), approximate="HNSW4")
    settings = OracleSettings(mode="approximate", effort=2, k=4)
    result = oracle(studies, tmp_path / "a", approximate, embedder(), settings)
    (summary,) = result.frame("summary").to_dict("records")
    assert 0 < summary["recall@4"] <= 1
    assert 0 < summary["recall@1"] <= 1
    assert "|oracle:approximate(effort=2)|" in next(iter(result.signatures.values()))
    exact = oracle(studies, tmp_path / "b", approximate, embedder(), OracleSettings(k=4))
    assert "recall@1" not in exact.frame("summary")


def test_auto_searches_exactly_up_to_a_number_of_rows(index, tmp_path, monkeypatch):
    table = tmp_path / "reports.jsonl"
    large = index_build(table, tmp_path / "j", embedder(), approximate="HNSW4")

    def is_approximate(corpus, **options):
        settings = OracleSettings(**options)
        return index_search.IndexSearch(corpus, embedder(), settings, TextPolicy()).is_approximate

    for limit, expected in ((len(large), False), (len(large) - 1, True)):
        monkeypatch.setattr(index_search, "_EXACT_UP_TO", limit)
        assert is_approximate(large) == expected
        # Neither an index without approximate search nor a wish for the exact one is overruled.
        assert not is_approximate(index)
        assert not is_approximate(large, mode="exact")


def test_a_metric_of_texts_over_the_whole_corpus_loads_no_encoder(index, studies, tmp_path):
    settings = OracleSettings(metric="bleu-2", k=1, candidates=0)
    result = oracle(studies, tmp_path / "a", index.folder, None, settings)
    found = hits_of(result)
    for study in read_jsonl(studies):
        if study["reference"]:
            references = [study["reference"]] * len(index)
            scores = compute(["bleu-2"], index.texts(), references)["bleu-2"]
            (hit,) = found[study["id"]]
            assert (hit["row"], hit["score"]) == (scores.argmax(), scores.max())
            assert hit["verbatim"] == (hit["score"] == 1)
    assert result.record["encoder"] is None
    (signature,) = result.signatures.values()
    assert signature.endswith("|candidates:all")


def test_a_metric_of_texts_ranks_the_nearest_candidates(index, studies, tmp_path):
    settings = OracleSettings(metric="bleu-2", k=3, candidates=5)
    result = oracle(studies, tmp_path / "a", index, embedder(), settings)
    nearest = Oracle(np.array(index.vectors), metric="cosine")
    references = {row["id"]: row["reference"] for row in read_jsonl(studies)}
    for id, hits in hits_of(result).items():
        vector = HashEncoder().encode_reports([references[id]]).numpy()
        rows = nearest.hits(None, vector, k=5).rows.tolist()
        (expected,) = TextSearch("bleu-2", index.texts()).search([references[id]], k=3, rows=rows)
        assert [(hit["row"], hit["score"]) for hit in hits] == expected
    assert "|candidates:5" in next(iter(result.signatures.values()))


def test_the_table_of_hits_has_the_same_columns_without_any_hit(index, studies, tmp_path):
    rows = [{**row, "image": "absent.png"} for row in read_jsonl(studies)[:4]]
    table = write_jsonl(tmp_path / "none.jsonl", rows)
    nothing = oracle(table, tmp_path / "none", index, embedder())
    assert len(nothing.failures) == 4
    assert nothing.frame("summary").to_dict("records")[0]["searched"] == 0
    some = oracle(studies, tmp_path / "some", index, embedder())
    schemas = [pq.read_schema(result.folder / HITS) for result in (nothing, some)]
    assert schemas[0].names == schemas[1].names
    assert schemas[0].types == schemas[1].types


def test_a_metric_of_ones_own_is_never_taken_from_the_cache(index, studies, tmp_path, monkeypatch):
    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache"))
    for sign in (1, -1):
        own = text_metric("length", "characters")(
            lambda candidate, reference, sign=sign: sign * len(candidate)
        )
        settings = OracleSettings(metric=own, k=1, candidates=0)
        result = oracle(studies, tmp_path / str(sign), index, None, settings)
        lengths = [sign * len(text) for text in index.texts()]
        assert {hits[0]["score"] for hits in hits_of(result).values()} == {max(lengths)}
