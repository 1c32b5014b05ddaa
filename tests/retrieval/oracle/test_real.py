"""Real reports and radiographs: every command, against brute force in float64."""

import csv
import json

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.doubles import HashEncoder
from tests.retrieval.index.test_index import content
from vlscore import metrics
from vlscore import metrics as similarity
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import load_encoder
from vlscore.metrics import foot, triangle_area
from vlscore.retrieval import (
    OBJECTIVES,
    OracleRun,
    OracleSettings,
    index_add,
    index_build,
    load_index,
    verify_index,
)

K = 5


@pytest.fixture(scope="module")
def iu_rows(shared):
    lines = (shared / "data" / "iu_reports.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("phantom", device="cpu")


@pytest.fixture(scope="module")
def built(shared, encoder, tmp_path_factory):
    """An index over all reports of the collection."""
    out = tmp_path_factory.mktemp("iu") / "index"
    table = shared / "data" / "iu_reports.jsonl"
    return index_build(table, out, StudyEmbedder(encoder, device="cpu"))


@pytest.fixture(scope="module")
def embedded(shared, encoder):
    """The nine studies: records, images and references in float64.

    By the engine, for the last digits of a report's vector depend on the reports in its batch.
    """
    path = shared / "data" / "studies.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    images = encoder.encode_images([str(path.parent / record["image"]) for record in records])
    embedder = StudyEmbedder(encoder, device="cpu", cache=False)
    references = embedder.embed_texts([record["reference"] for record in records]).vectors
    return records, images.double().numpy(), references.double().numpy()


def test_all_reports_of_the_collection(built, iu_rows):
    texts: dict[str, list[str]] = {}
    empty = []
    for number, row in enumerate(iu_rows, start=1):
        text = " ".join(row[name].strip() for name in ("findings", "impression") if row[name])
        if text.strip():
            texts.setdefault(text.strip(), []).append(row["id"])
        else:
            empty.append((number, row["id"], "no text in findings or impression"))
    index = built.index
    assert (len(index), index.manifest.items) == (len(texts), sum(map(len, texts.values())))
    assert (len(index), built.repeated, len(empty)) == (2_200, 488, 20)
    assert (index.texts(), index.all_ids()) == (list(texts), list(texts.values()))
    assert [(bad.row, bad.id, bad.reason) for bad in built.bad_rows] == empty
    assert index.manifest.demonstration
    assert index.manifest.signature.endswith("|DEMONSTRATION-ENCODER")
    verify_index(index.path)
    flat = faiss.read_index(str(index.file("flat")))
    np.testing.assert_array_equal(flat.reconstruct_n(0, 2_200), index.vectors)
    _, neighbours = flat.search(np.array(index.vectors[:50]), 1)
    near = np.linalg.norm(index.vectors[neighbours[:, 0]] - index.vectors[:50], axis=1)
    assert near.max() < 1e-3


def test_csv_and_parquet_hold_the_same_reports(iu_rows, shared, tmp_path):
    with (tmp_path / "iu.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, iu_rows[0])
        writer.writeheader()
        writer.writerows(iu_rows)
    pq.write_table(pa.Table.from_pylist(iu_rows), tmp_path / "iu.parquet")
    tables = (shared / "data" / "iu_reports.jsonl", tmp_path / "iu.csv", tmp_path / "iu.parquet")
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    first, *others = [
        content(index_build(table, tmp_path / table.suffix, embedder).index) for table in tables
    ]
    assert first[3] == 20
    assert others == [first, first]


def test_two_halves_added_are_the_whole(iu_rows, shared, tmp_path):
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    for name, part in (("a", iu_rows[:1_400]), ("b", iu_rows[1_300:])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    index_build(tmp_path / "a.jsonl", tmp_path / "halves", embedder)
    halves = index_add(tmp_path / "b.jsonl", tmp_path / "halves", embedder).index
    whole = index_build(shared / "data" / "iu_reports.jsonl", tmp_path / "whole", embedder).index
    assert (halves.texts(), halves.all_ids()) == (whole.texts(), whole.all_ids())
    np.testing.assert_array_equal(halves.vectors, whole.vectors)
    verify_index(halves.path)


def brute_force(metric, vectors, i, r):
    """Scores in the order of the corpus, C = 1 for VLScore."""
    n = len(vectors)
    images, references = (np.broadcast_to(x, (n, len(x))).copy() for x in (i, r))
    if metric == "vlscore":
        areas = triangle_area(*map(torch.from_numpy, (images, vectors, references)))
        return -areas.numpy()
    ours = {
        "height": similarity.height,
        "segment-distance": similarity.segment_distance,
        "midpoint-distance": similarity.midpoint_distance,
        "image-gain-distance": similarity.image_gain_distance,
        "image-gain-cosine": similarity.image_gain_cosine,
    }
    if metric in ours:
        values = ours[metric](*map(torch.from_numpy, (images, vectors, references))).numpy()
        return values if metric == "image-gain-cosine" else -values
    x, y = {
        "image-centred-cosine": (vectors - i, r - i),
        "cosine": (vectors, r),
        "clipscore": (vectors, i),
        "image-to-text": (vectors, i),
    }[metric]
    return x @ y / np.linalg.norm(x, axis=1) / np.linalg.norm(y)


@pytest.mark.parametrize("metric", [name for name in OBJECTIVES if name != "text-to-image"])
def test_the_oracle_of_real_radiographs_is_brute_force(built, shared, encoder, embedded, metric):
    records, images, references = embedded
    run = OracleRun(
        built.index, StudyEmbedder(encoder, device="cpu"), OracleSettings(metric=metric, k=K)
    )
    answers = list(run.answers(shared / "data" / "studies.jsonl"))
    assert [answer.id for answer in answers] == [record["id"] for record in records]
    assert run.signature.subject == metric
    assert run.signature.has("DEMONSTRATION-ENCODER")
    vectors = np.array(built.index.vectors, np.float64)
    for answer, i, r in zip(answers, images, references, strict=True):
        scores = brute_force(metric, vectors, i, r)
        wanted = np.sort(scores)[::-1][:K]
        assert scores[[hit.found.row for hit in answer.hits]] == pytest.approx(wanted, abs=1e-9)
        distances = np.linalg.norm(vectors - r, axis=1)
        for hit in answer.hits:
            assert hit.ids == built.index.ids(hit.found.row)
            assert hit.found.distance == pytest.approx(distances[hit.found.row], abs=1e-9)
            below, level = (distances < hit.found.distance + e for e in (-1e-9, 1e-9))
            assert 1 + below.sum() <= hit.found.distance_rank <= 1 + level.sum()
            if metric == "vlscore":
                assert hit.found.score == pytest.approx(
                    max(1 + scores[hit.found.row] / encoder.card.C, 0), abs=1e-9
                )
            g = vectors[hit.found.row]
            triangle = [torch.from_numpy(x)[None] for x in (i, g, r)]
            assert hit.found.area == pytest.approx(float(triangle_area(*triangle)), abs=1e-9)
            assert hit.found.foot == pytest.approx(float(foot(*triangle)), abs=1e-9)


def test_bleu_over_the_whole_collection(built, shared, encoder, embedded, tmp_path):
    records, _, _ = embedded
    (tmp_path / "one.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in records[:1]), encoding="utf-8"
    )
    embedder = StudyEmbedder(encoder, device="cpu")
    texts = built.index.texts()
    settings = OracleSettings(metric="bleu-2", k=K, candidates=0)
    run = OracleRun(built.index, None, settings)
    for record, answer in zip(records, run.answers(tmp_path / "one.jsonl"), strict=False):
        scores = metrics.compute(["bleu-2"], texts, [record["reference"]] * len(texts))["bleu-2"]
        expected = np.argsort(-scores, kind="stable")[:K]
        assert [hit.found.row for hit in answer.hits] == expected.tolist()
    settings = OracleSettings(metric="bleu-2", k=K, candidates=300)
    narrowed = list(OracleRun(built.index, embedder, settings).answers(tmp_path / "one.jsonl"))
    assert all(len(answer.hits) == K for answer in narrowed)


def test_copies_of_the_reference_can_be_left_out(built, encoder, iu_rows, shared, tmp_path):
    """Studies whose references are the collection's own: their oracle is a copy."""
    picture = str(shared / "data" / "radiographs" / "nih_00000001_000.png")
    chosen = [row for row in iu_rows if row["findings"] and row["impression"]][:20]
    rows = [
        {
            "id": row["id"],
            "image": picture,
            "reference": f"{row['findings'].strip()}\n{row['impression'].strip()}",
        }
        for row in chosen
    ]
    table = tmp_path / "studies.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    embedder = StudyEmbedder(encoder, device="cpu")
    first = {}
    for options in ({}, {"exclude_exact": True}, {"exclude_ids": "id"}):
        run = OracleRun(built.index, embedder, OracleSettings(k=1, **options))
        first[str(options)] = [answer.hits[0] for answer in run.answers(table)]
    plain, exact, own = first.values()
    assert all(hit.verbatim and hit.found.score > 0.999 for hit in plain)
    assert not any(hit.verbatim for hit in exact)
    assert all(a.found.score <= b.found.score for a, b in zip(exact, plain, strict=True))
    for row, hit in zip(chosen, own, strict=True):
        assert row["id"] not in hit.ids or len(hit.ids) > 1


def test_the_index_is_mapped(built):
    opened = load_index(built.index.path)
    assert isinstance(opened.vectors, np.memmap)
    assert str(opened.vectors.filename) == str(opened.file("vectors"))
