"""Real reports and radiographs: every command, against brute force in float64."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from vlscore import metrics
from vlscore import metrics as similarity
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import load_encoder
from vlscore.metrics import foot, triangle_area
from vlscore.retrieval import HITS, TARGETS, OracleSettings, index_build, oracle

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
    assert (len(built), built.facts.items) == (len(texts), sum(map(len, texts.values())))
    assert (len(built), built.facts.items, len(empty)) == (2_200, 2_688, 20)
    assert (built.texts(), built.all_ids()) == (list(texts), list(texts.values()))
    assert [tuple(failure) for failure in built.failures] == empty
    assert built.facts.demonstration
    assert built.facts.signature.endswith("|DEMONSTRATION-ENCODER")


def hits_of(table, out, built, embedder, **settings):
    """id -> rows of hits.parquet."""
    result = oracle(table, out, built, embedder, OracleSettings(**settings))
    found = {}
    for row in pq.read_table(result.folder / HITS).to_pylist():
        found.setdefault(row["study_id"], []).append(row)
    return found, result


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


@pytest.mark.parametrize("metric", [name for name in TARGETS if name != "text-to-image"])
def test_the_oracle_of_real_radiographs_is_brute_force(
    built, shared, encoder, embedded, metric, tmp_path
):
    records, images, references = embedded
    embedder = StudyEmbedder(encoder, device="cpu")
    table = shared / "data" / "studies.jsonl"
    found, result = hits_of(table, tmp_path / "out", built, embedder, metric=metric, k=K)
    assert list(found) == [record["id"] for record in records]
    (signature,) = result.signatures.values()
    assert signature.startswith(f"{metric}|")
    assert "|DEMONSTRATION-ENCODER" in signature
    vectors = np.array(built.vectors, np.float64)
    for hits, i, r in zip(found.values(), images, references, strict=True):
        scores = brute_force(metric, vectors, i, r)
        wanted = np.sort(scores)[::-1][:K]
        assert scores[[hit["row"] for hit in hits]] == pytest.approx(wanted, abs=1e-9)
        distances = np.linalg.norm(vectors - r, axis=1)
        for hit in hits:
            row = hit["row"]
            assert hit["ids"].split(";") == built.ids(row)
            assert hit["distance"] == pytest.approx(distances[row], abs=1e-9)
            below, level = (distances < hit["distance"] + e for e in (-1e-9, 1e-9))
            assert 1 + below.sum() <= hit["distance_rank"] <= 1 + level.sum()
            if metric == "vlscore":
                expected = max(1 + scores[row] / encoder.card.C, 0)
                assert hit["score"] == pytest.approx(expected, abs=1e-9)
            triangle = [torch.from_numpy(x)[None] for x in (i, vectors[row], r)]
            assert hit["area"] == pytest.approx(float(triangle_area(*triangle)), abs=1e-9)
            assert hit["foot"] == pytest.approx(float(foot(*triangle)), abs=1e-9)


def test_bleu_over_the_whole_collection(built, encoder, embedded, tmp_path):
    (record, *_), _, _ = embedded
    table = tmp_path / "one.jsonl"
    table.write_text(json.dumps(record) + "\n", encoding="utf-8")
    texts = built.texts()
    scores = metrics.compute(["bleu-2"], texts, [record["reference"]] * len(texts))["bleu-2"]
    settings = {"metric": "bleu-2", "k": K}
    found, _ = hits_of(table, tmp_path / "all", built, None, candidates=0, **settings)
    expected = np.argsort(-scores, kind="stable")[:K]
    assert [hit["row"] for hit in found[record["id"]]] == expected.tolist()
    embedder = StudyEmbedder(encoder, device="cpu")
    found, _ = hits_of(table, tmp_path / "near", built, embedder, candidates=300, **settings)
    assert len(found[record["id"]]) == K


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
    first = []
    for name, options in enumerate(({}, {"exclude_exact": True}, {"exclude_ids": "id"})):
        found, _ = hits_of(table, tmp_path / str(name), built, embedder, k=1, **options)
        first.append([hits[0] for hits in found.values()])
    plain, exact, own = first
    assert all(hit["verbatim"] and hit["score"] > 0.999 for hit in plain)
    assert not any(hit["verbatim"] for hit in exact)
    assert all(a["score"] <= b["score"] for a, b in zip(exact, plain, strict=True))
    for row, hit in zip(chosen, own, strict=True):
        ids = hit["ids"].split(";")
        assert row["id"] not in ids or len(ids) > 1
