"""`vlscore oracle` and `vlscore retrieval`: what is printed, written and refused."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.doubles import HashEncoder
from vlscore.errors import InvalidIndex, InvalidSetting, InvalidTable, UnknownName
from vlscore.index import load_index
from vlscore.oracle import oracle_metric
from vlscore.similarity import triangle_area

pytestmark = pytest.mark.usefixtures("hash_encoder")

NUMBERS = ("score", "area", "foot", "height", "distance", "distance_rank")


@pytest.fixture
def index(command, corpus, tmp_path):
    command("index", "build", corpus, "--out", tmp_path / "index")
    return tmp_path / "index"


def found(path):
    """id -> rows found, of the studies that were searched."""
    return {
        answer["id"]: [hit["row"] for hit in answer["hits"]]
        for answer in read_jsonl(path)
        if answer["error"] is None
    }


def test_hits_are_printed_with_what_the_score_cannot_see(command, index, studies):
    done = command("oracle", studies, "--index", index, "--top-k", 2)
    assert done.exit_code == 1
    assert "row 2 (s2): " in done.stderr
    assert "absent.png" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "s1"
    assert lines[2].startswith("   1  score 1.0000  area 0  foot 1  h/|r-i| 0  |g-r| 0  rank 1")
    assert lines[2].endswith("VERBATIM  [a1, a3]")
    assert lines[3] == "      Clear lungs."
    assert lines[4].startswith("   2  score ")
    assert lines[7] == "s3"
    assert "2 studies searched, 1 failed; best hits: mean score " in done.stdout
    assert "1 of 2 equal the reference" in done.stdout
    assert "|C:20|sim:vlscore|" in lines[-1]
    assert "|oracle:exact|guard:none|index:" in lines[-1]
    assert command("oracle", studies, "--index", index, "--keep-going").exit_code == 0


def test_the_file_holds_every_study_and_the_numbers_are_the_kernels(
    command, index, studies, tmp_path
):
    out = tmp_path / "hits.jsonl"
    done = command("oracle", studies, "--index", index, "--out", out)
    assert "score 1.0000" not in done.stdout
    assert f"hits      {out}" in done.stdout
    assert "searching" in done.stderr
    answers = read_jsonl(out)
    assert [(answer["row"], answer["id"]) for answer in answers] == [
        (1, "s1"),
        (2, "s2"),
        (3, "s3"),
    ]
    assert "absent.png" in answers[1]["error"]
    assert answers[1]["hits"] == []
    assert answers[0]["signature"].startswith("vlscore|enc:hash@")
    encoder, vectors = HashEncoder(), load_index(index).vectors
    image = encoder.encode_images([str(tmp_path / "x.png")]).double()
    reference = encoder.encode_reports(["Clear\nlungs. "]).double()
    areas = triangle_area(
        image.expand(4, -1), vectors_as_double(vectors), reference.expand(4, -1)
    ).numpy()
    hits = answers[0]["hits"]
    assert [hit["row"] for hit in hits] == np.argsort(areas, kind="stable").tolist()
    assert [hit["area"] for hit in hits] == pytest.approx(np.sort(areas), abs=1e-9)
    assert [hit["score"] for hit in hits] == pytest.approx(
        np.maximum(1 - np.sort(areas) / 20, 0), abs=1e-9
    )
    distances = np.linalg.norm(vectors - reference.numpy(), axis=1)
    for hit in hits:
        assert hit["distance"] == pytest.approx(distances[hit["row"]], abs=1e-9)
        assert hit["distance_rank"] == 1 + (distances < distances[hit["row"]] - 1e-9).sum()
    shown = command("oracle", studies, "--index", index, "--out", out, "--show", 1)
    assert "VERBATIM" in shown.stdout
    assert "\ns3\n" not in shown.stdout


def vectors_as_double(vectors):
    import torch

    return torch.from_numpy(np.array(vectors)).double()


def test_exclusions(command, index, studies, tmp_path):
    out = tmp_path / "hits.jsonl"

    def rows(*options):
        done = command("oracle", studies, "--index", index, "--out", out, *options)
        assert done.exit_code == 1, done.output
        return found(out)

    assert set(rows()["s1"]) == {0, 1, 2, 3}
    assert set(rows("--exclude-exact")["s1"]) == {1, 2, 3}
    assert set(rows("--exclude-exact")["s3"]) == {0, 1, 2, 3}
    listed = rows("--exclude-ids", "own")
    assert set(listed["s1"]) == {1, 2, 3}
    assert set(listed["s3"]) == {0, 2, 3}
    # "Clear lungs." belongs to a1 and a3: of one listed alone, the other's copy stays.
    one = [{**row, "own": ["a1"]} for row in read_jsonl(studies)]
    write_jsonl(studies, one)
    assert set(rows("--exclude-ids", "own")["s1"]) == {0, 1, 2, 3}
    assert "|excl:exact+ids(own)|" in (
        command(
            "oracle", studies, "--index", index, "--exclude-exact", "--exclude-ids", "own"
        ).stdout
    )
    refused = command("oracle", studies, "--index", index, "--exclude-ids", "patient")
    assert isinstance(refused.exception, InvalidTable)
    assert "no column patient to exclude ids by; found: " in str(refused.exception)
    write_jsonl(studies, [one[0], {k: v for k, v in one[2].items() if k != "own"}])
    done = command("oracle", studies, "--index", index, "--exclude-ids", "own")
    assert 'row 2 (s3): no column "own" to exclude ids by' in done.stderr


@pytest.mark.parametrize("metric", ["cosine", "image_centred_cosine", "clipscore", "image-to-text"])
def test_other_metrics_of_embeddings(command, index, studies, tmp_path, metric):
    out = tmp_path / "hits.jsonl"
    done = command("oracle", studies, "--index", index, "--metric", metric, "--out", out)
    assert done.exit_code == 1
    assert f"|sim:{oracle_metric(metric)}|" in done.stdout
    assert "guard" not in done.stdout
    vectors = np.array(load_index(index).vectors, np.float64)
    encoder = HashEncoder()
    for answer in read_jsonl(out)[::2]:
        name = {"s1": "x", "s3": "z"}[answer["id"]]
        text = {"s1": "Clear\nlungs. ", "s3": "Left effusion."}[answer["id"]]
        i = encoder.encode_images([str(tmp_path / f"{name}.png")]).double().numpy()[0]
        r = encoder.encode_reports([text]).double().numpy()[0]
        x, y = {
            "cosine": (vectors, r),
            "image_centred_cosine": (vectors - i, r - i),
            "clipscore": (vectors, i),
            "image-to-text": (vectors, i),
        }[metric]
        expected = x @ y / np.linalg.norm(x, axis=1) / np.linalg.norm(y)
        if metric == "clipscore":
            expected = 2.5 * np.maximum(expected, 0)
        scores = [hit["score"] for hit in answer["hits"]]
        assert scores == pytest.approx(np.sort(expected)[::-1], abs=1e-9)
        assert all(hit["area"] is not None and hit["foot"] is not None for hit in answer["hits"])


def test_a_table_needs_only_what_the_metric_looks_at(command, index, tmp_path):
    out = tmp_path / "hits.jsonl"
    no_images = write_jsonl(
        tmp_path / "texts.jsonl",
        [{"id": "t", "image": "absent.png", "reference": "Clear lungs."}, {"id": "u"}],
    )
    done = command("oracle", no_images, "-i", index, "-m", "text-to-text", "-o", out)
    (hit, *_), nothing = (answer["hits"] for answer in read_jsonl(out))
    assert (hit["score"], hit["verbatim"], hit["area"], nothing) == (
        pytest.approx(1),
        True,
        None,
        [],
    )
    assert 'row 2 (u): column "reference" is absent' in done.stderr
    Image.new("L", (16, 16), 90).save(tmp_path / "a.png")
    no_texts = write_jsonl(tmp_path / "images.jsonl", [{"id": "v", "image": "a.png"}])
    done = command("oracle", no_texts, "-i", index, "-m", "image-to-text", "-o", out)
    assert done.exit_code == 1  # an even picture is refused
    Image.effect_noise((16, 16), 40).save(tmp_path / "a.png")
    assert command("oracle", no_texts, "-i", index, "-m", "clipscore", "-o", out).exit_code == 0
    hit = read_jsonl(out)[0]["hits"][0]
    assert (hit["verbatim"], hit["distance"], hit["distance_rank"]) == (None, None, None)
    refused = command("oracle", no_texts, "-i", index, "-m", "vlscore")
    assert isinstance(refused.exception, InvalidTable)
    assert "no column reference" in str(refused.exception)
    refused = command("oracle", no_texts, "-i", index, "-m", "clipscore", "--exclude-exact")
    assert "no reference whose copies" in refused.stderr


def test_text_to_image(command, studies, tmp_path):
    images = tmp_path / "images"
    command("index", "build", studies, "--out", images, "--images")
    out = tmp_path / "hits.jsonl"
    done = command("oracle", studies, "--index", images, "-m", "text to image", "--out", out)
    assert done.exit_code == 0, done.output
    assert "equal the reference" not in done.stdout
    first = read_jsonl(out)[0]["hits"]
    assert {hit["text"] for hit in first} == {str(tmp_path / "x.png"), str(tmp_path / "z.png")}
    assert first[0]["score"] >= first[1]["score"]
    assert first[0]["area"] is None
    refused = command("oracle", studies, "--index", images)
    assert "vlscore searches an index of reports" in str(refused.exception)
    refused = command("oracle", studies, "-i", images, "-m", "text-to-image", "--exclude-exact")
    assert "only reports equal a reference" in str(refused.exception)


def test_bleu_reranks_candidates_or_scores_all(command, index, studies, tmp_path):
    out = tmp_path / "hits.jsonl"
    done = command("oracle", studies, "-i", index, "-m", "bleu-2", "--candidates", 0, "--out", out)
    assert done.exit_code == 0, done.output  # no image is needed
    assert "|candidates:all|metric:bleu-2|smoothing:" in done.stdout
    best = {answer["id"]: answer["hits"][0] for answer in read_jsonl(out)}
    assert best["s1"]["text"] == "Clear lungs."
    assert best["s1"]["score"] == pytest.approx(1)
    assert best["s3"]["text"] == "Small left effusion."
    assert best["s3"]["area"] is None
    options = ("-m", "bleu-2", "--candidates", 4, "--top-k", 1, "--out", out)
    command("oracle", studies, "-i", index, *options)
    assert found(out) == {"s1": [0], "s2": [0], "s3": [1]}
    command("oracle", studies, "-i", index, *options, "--exclude-exact")
    assert found(out)["s1"] != [0]


def test_guards_and_approximate_mode(command, index, studies, corpus, tmp_path):
    out = tmp_path / "hits.jsonl"
    for guard in ("segment", "window"):
        done = command("oracle", studies, "-i", index, "--guard", guard, "--out", out)
        assert f"|guard:{guard}|" in done.stdout
        feet = [hit["foot"] for answer in read_jsonl(out) for hit in answer["hits"]]
        assert guard == "segment" or all(0.5 <= foot <= 1.5 for foot in feet)
    approximate = tmp_path / "approximate"
    command("index", "build", corpus, "-o", approximate, "--approximate", "HNSW4")
    done = command("oracle", studies, "-i", approximate, "--mode", "approximate", "-k", 3)
    assert (
        "approximate search; on a sample of these studies: recall@1 1.0000, recall@3" in done.stdout
    )
    assert "|oracle:approximate|" in done.stdout
    done = command(
        "oracle", studies, "-i", approximate, "--mode", "approximate", "--effort", 3, "-k", 3
    )
    assert "|oracle:approximate(effort=3)|" in done.stdout
    assert "|oracle:exact|" in command("oracle", studies, "-i", approximate).stdout


def test_what_does_not_fit_is_refused(command, index, studies, tmp_path, monkeypatch):
    for options, kind, said in (
        (("--section", "findings"), InvalidIndex, r"made with txt:all; here it is txt:findings"),
        (("--precision", "bf16"), InvalidIndex, r"made with prec:fp32; here it is prec:bf16"),
        (("--guard", "wall"), InvalidSetting, "guard is one of none, segment, window"),
        (("--guard", "window", "-m", "cosine"), InvalidSetting, "a guard belongs to vlscore"),
        (("--guard", "window", "-m", "bleu-2"), InvalidSetting, "a guard belongs to vlscore"),
        (("--mode", "quick"), InvalidSetting, "mode is one of"),
        (("--mode", "approximate"), InvalidSetting, "has no approximate index"),
        (("-m", "nonsense"), UnknownName, "image-centred-cosine, .*of texts: bleu-1"),
        (("-m", "bounding_sphere"), InvalidSetting, "no oracle searches by bounding_sphere"),
        (("--image-column", "picture"), InvalidTable, "no column picture"),
    ):
        done = command("oracle", studies, "--index", index, *options)
        with pytest.raises(kind, match=said):
            raise done.exception
    missing = command("oracle", studies, "--index", tmp_path / "none")
    assert isinstance(missing.exception, InvalidIndex)
    # Another encoder of the same name, as after a new training.
    monkeypatch.setattr(HashEncoder, "checksum", "0" * 64)
    done = command("oracle", studies, "--index", index)
    assert isinstance(done.exception, InvalidIndex)
    assert "was made with hash (sha256 " in str(done.exception)
    assert "not with hash (000000000000)" in str(done.exception)


def test_a_damaged_index_is_refused(command, index, studies):
    manifest = json.loads((index / "index.json").read_text())
    for record in manifest["files"].values():
        file = index / record["name"]
        whole = file.read_bytes()
        for damaged in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
            file.write_bytes(damaged)
            done = command("oracle", studies, "--index", index)
            assert isinstance(done.exception, InvalidIndex)
            assert record["name"] in str(done.exception)
        file.write_bytes(whole)
    assert command("oracle", studies, "--index", index, "--keep-going").exit_code == 0


def test_retrieval(command, studies, tmp_path):
    out = tmp_path / "retrieval.json"
    done = command("retrieval", studies, "--out", out)
    assert done.exit_code == 1
    assert "row 2 (s2): " in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("image to text  R@1 ")
    assert lines[0].endswith("(2 queries, 2 to search)")
    assert lines[1].startswith("text to image  R@1 ")
    assert lines[2].startswith("signature vlscore|enc:hash@")
    written = json.loads(out.read_text())
    encoder = HashEncoder()
    i = encoder.encode_images([str(tmp_path / f"{name}.png") for name in "xz"]).double().numpy()
    r = encoder.encode_reports(["Clear\nlungs. ", "Left effusion."]).double().numpy()
    cosines = i @ r.T / np.linalg.norm(i, axis=1)[:, None] / np.linalg.norm(r, axis=1)
    for name, table in (("image to text", cosines), ("text to image", cosines.T)):
        assert written[name]["recall"]["1"] == np.mean(table.argmax(1) == [0, 1])
        assert written[name]["recall"]["5"] == 1
    bad = write_jsonl(tmp_path / "bad.jsonl", [{"id": 1, "image": "no.png", "reference": "x"}])
    refused = command("retrieval", bad)
    assert isinstance(refused.exception, InvalidTable)
    assert "no row can be embedded; row 1: " in str(refused.exception)
