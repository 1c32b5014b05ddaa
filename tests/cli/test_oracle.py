"""`vlscore oracle` and `vlscore retrieval`: what is printed, written and refused."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.doubles import HashEncoder
from vlscore.errors import InvalidIndex, InvalidSetting, InvalidTable, UnknownName
from vlscore.metrics import triangle_area
from vlscore.retrieval import load_index, oracle_metric

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
    done = command("oracle", studies, "--index", index, "--k", 2)
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
    assert "2 studies searched, 1 failed" in done.stdout
    assert re.search(r"best hits: mean score 0\.\d{4} \[0\.\d{4}, 1\.0000\], median", done.stdout)
    assert "1 of 2 equal the reference" in done.stdout
    assert lines[-1].startswith("vlscore|C:20|txt:all|enc:hash@")
    assert "|oracle:exact|guard:none|index:" in lines[-1]
    assert command("oracle", studies, "--index", index, "--keep-going").exit_code == 0
    old = command("oracle", studies, "--index", index, "--top-k", 2)
    assert old.stdout == done.stdout


def test_the_file_holds_every_study_and_the_numbers_are_the_kernels(
    command, index, studies, tmp_path
):
    out = tmp_path / "out"
    done = command("oracle", studies, "--index", index, "--out", out, "--overwrite")
    assert "score 1.0000" not in done.stdout
    names = ["hits.jsonl", "hits.parquet", "run.json", "summary.json"]
    assert sorted(path.name for path in out.iterdir() if path.name != ".lock") == names
    assert all(f"wrote {out / name}\n" in done.stdout for name in names)
    answers = read_jsonl(out / "hits.jsonl")
    assert [(answer["row"], answer["id"]) for answer in answers] == [
        (1, "s1"),
        (2, "s2"),
        (3, "s3"),
    ]
    assert "absent.png" in answers[1]["error"]
    assert answers[1]["hits"] == []
    assert answers[0]["signature"].startswith("vlscore|C:20|txt:all|enc:hash@")
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
    assert "holds these results already" in shown.stderr
    assert "VERBATIM" in shown.stdout
    assert "\ns3\n" not in shown.stdout


def vectors_as_double(vectors):
    import torch

    return torch.from_numpy(np.array(vectors)).double()


def test_exclusions(command, index, studies, tmp_path):
    out = tmp_path / "out"

    def rows(*options):
        done = command("oracle", studies, "--index", index, "--out", out, "--overwrite", *options)
        assert done.exit_code == 1, done.output
        return found(out / "hits.jsonl")

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
    assert "no column patient; found: " in str(refused.exception)
    write_jsonl(studies, [one[0], {k: v for k, v in one[2].items() if k != "own"}])
    done = command("oracle", studies, "--index", index, "--exclude-ids", "own")
    assert 'row 2 (s3): no column "own" to exclude ids by' in done.stderr


@pytest.mark.parametrize("metric", ["cosine", "image_centred_cosine", "clipscore", "image-to-text"])
def test_other_metrics_of_embeddings(command, index, studies, tmp_path, metric):
    out = tmp_path / "out"
    done = command("oracle", studies, "--index", index, "--metric", metric, "--out", out)
    # The cosine with the reference does not look at the image, which one study lacks.
    assert done.exit_code == (0 if metric == "cosine" else 1)
    assert f"\n{oracle_metric(metric).name}|txt:all|" in done.stdout
    assert "guard" not in done.stdout
    vectors = np.array(load_index(index).vectors, np.float64)
    encoder = HashEncoder()
    for answer in read_jsonl(out / "hits.jsonl")[::2]:
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


@pytest.mark.parametrize("weight", [0.25, 4.0])
def test_the_weight_of_the_image_is_the_metrics(command, index, studies, tmp_path, weight):
    out = tmp_path / "out"
    name = f"image-gain-distance(image={weight})"
    done = command("oracle", studies, "--index", index, "--metric", name, "--out", out)
    assert f"\nimage-gain-distance|image:{weight:g}|" in done.stdout
    vectors = np.array(load_index(index).vectors, np.float64)
    encoder = HashEncoder()
    answer = read_jsonl(out / "hits.jsonl")[0]
    i = encoder.encode_images([str(tmp_path / "x.png")]).double().numpy()[0]
    r = encoder.encode_reports(["Clear\nlungs. "]).double().numpy()[0]
    square = ((vectors - r) ** 2).sum(1)
    gain = ((r - i) ** 2).sum() - ((vectors - i) ** 2).sum(1)
    scores = [hit["score"] for hit in answer["hits"]]
    assert scores == pytest.approx(np.sort(square - weight * gain), abs=1e-9)


def test_a_table_needs_only_what_the_metric_looks_at(command, index, tmp_path):
    out = tmp_path / "out"
    no_images = write_jsonl(
        tmp_path / "texts.jsonl",
        [{"id": "t", "image": "absent.png", "reference": "Clear lungs."}, {"id": "u"}],
    )
    assert oracle_metric("text-to-text") == oracle_metric("cosine")
    done = command("oracle", no_images, "-i", index, "-m", "text-to-text", "-o", out)
    (hit, *_), nothing = (answer["hits"] for answer in read_jsonl(out / "hits.jsonl"))
    assert (hit["score"], hit["verbatim"], hit["area"], nothing) == (
        pytest.approx(1),
        True,
        None,
        [],
    )
    assert 'row 2 (u): column "reference" is absent' in done.stderr
    Image.new("L", (16, 16), 90).save(tmp_path / "a.png")
    no_texts = write_jsonl(tmp_path / "images.jsonl", [{"id": "v", "image": "a.png"}])
    done = command("oracle", no_texts, "-i", index, "-m", "image-to-text", "-o", out, "--overwrite")
    assert done.exit_code == 1  # an even picture is refused
    Image.effect_noise((16, 16), 40).save(tmp_path / "a.png")
    done = command("oracle", no_texts, "-i", index, "-m", "clipscore", "-o", out, "--overwrite")
    assert done.exit_code == 0, done.output
    hit = read_jsonl(out / "hits.jsonl")[0]["hits"][0]
    assert (hit["verbatim"], hit["distance"], hit["distance_rank"]) == (None, None, None)
    refused = command("oracle", no_texts, "-i", index, "-m", "vlscore")
    assert isinstance(refused.exception, InvalidTable)
    assert "no column reference" in str(refused.exception)
    refused = command("oracle", no_texts, "-i", index, "-m", "clipscore", "--exclude-exact")
    assert "no column reference" in str(refused.exception)


def test_text_to_image(command, studies, tmp_path):
    images = tmp_path / "images"
    command("index", "build", studies, "--out", images, "--images")
    out = tmp_path / "out"
    done = command("oracle", studies, "--index", images, "-m", "text to image", "--out", out)
    assert done.exit_code == 0, done.output
    assert "equal the reference" not in done.stdout
    first = read_jsonl(out / "hits.jsonl")[0]["hits"]
    assert {hit["text"] for hit in first} == {str(tmp_path / "x.png"), str(tmp_path / "z.png")}
    assert first[0]["score"] >= first[1]["score"]
    assert first[0]["area"] is None
    refused = command("oracle", studies, "--index", images)
    assert "vlscore searches an index of reports" in str(refused.exception)
    refused = command("oracle", studies, "-i", images, "-m", "text-to-image", "--exclude-exact")
    assert "only reports equal a reference" in str(refused.exception)


def test_bleu_reranks_candidates_or_scores_all(command, index, studies, tmp_path):
    out = tmp_path / "out"
    options = ("-m", "bleu-2", "--candidates", 0, "--out", out)
    done = command("oracle", studies, "-i", index, *options)
    assert done.exit_code == 0, done.output  # no image is needed
    assert "\nbleu-2|smoothing:none|" in done.stdout
    assert "|candidates:all\n" in done.stdout
    assert "enc:" not in done.stdout  # nothing is embedded
    best = {answer["id"]: answer["hits"][0] for answer in read_jsonl(out / "hits.jsonl")}
    assert best["s1"]["text"] == "Clear lungs."
    assert best["s1"]["score"] == pytest.approx(1)
    assert best["s3"]["text"] == "Small left effusion."
    assert best["s3"]["area"] is None
    options = ("-m", "bleu-2", "--candidates", 4, "--top-k", 1, "--out", out, "--overwrite")
    done = command("oracle", studies, "-i", index, *options)
    assert "|enc:hash@" in done.stdout
    assert "|candidates:4\n" in done.stdout
    assert found(out / "hits.jsonl") == {"s1": [0], "s2": [0], "s3": [1]}
    command("oracle", studies, "-i", index, *options, "--exclude-exact")
    assert found(out / "hits.jsonl")["s1"] != [0]


def test_guards_and_approximate_mode(command, index, studies, corpus, tmp_path):
    for guard in ("segment", "window"):
        out = tmp_path / guard
        done = command("oracle", studies, "-i", index, "--guard", guard, "--out", out)
        assert f"|guard:{guard}|" in done.stdout
        feet = [hit["foot"] for answer in read_jsonl(out / "hits.jsonl") for hit in answer["hits"]]
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
        (("--section", "findings"), InvalidIndex, r"txt: all against findings"),
        (("--precision", "bf16"), InvalidIndex, r"prec: fp32 against bf16"),
        (("--guard", "wall"), InvalidSetting, "guard is one of none, segment, window"),
        (("--guard", "window", "-m", "cosine"), InvalidSetting, "a guard belongs to vlscore"),
        (("--guard", "window", "-m", "bleu-2"), InvalidSetting, "a guard belongs to vlscore"),
        (("--mode", "quick"), InvalidSetting, "mode is one of"),
        (("--mode", "approximate"), InvalidSetting, "has no approximate index"),
        (("-m", "nonsense"), UnknownName, "image-centred-cosine, .*of texts: bleu-1"),
        (("-m", "bleu4"), UnknownName, "did you mean bleu-4"),
        (("-m", "bounding_sphere"), InvalidSetting, "no oracle searches by bounding-sphere"),
        (("-m", "cosine", "--C", 3), InvalidSetting, "cosine has no parameter 'C'"),
        (("--C", 0), InvalidSetting, "C must be greater than 0"),
        (("--format", "xlsx"), InvalidSetting, "format is parquet or csv"),
        (("--image-root", "nowhere"), InvalidSetting, "nowhere: no such folder"),
        (("--image-column", "picture"), InvalidTable, "no column picture"),
    ):
        done = command("oracle", studies, "--index", index, *options)
        with pytest.raises(kind, match=said):
            raise done.exception
    for option, value, least in (("--k", 0, 1), ("--candidates", -3, 0), ("--effort", 0, 1)):
        done = command("oracle", studies, "--index", index, option, value)
        assert done.exit_code == 2
        assert f"Invalid value for '{option}'" in done.stderr
        assert str(least) in done.stderr
    missing = command("oracle", studies, "--index", tmp_path / "none")
    assert isinstance(missing.exception, InvalidIndex)
    # Another encoder of the same name, as after a new training.
    monkeypatch.setattr(HashEncoder, "checksum", "0" * 64)
    done = command("oracle", studies, "--index", index)
    assert isinstance(done.exception, InvalidIndex)
    assert "was made with hash (sha256 " in str(done.exception)
    assert "candidate" not in str(done.exception)
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
    out = tmp_path / "retrieval"
    done = command("retrieval", studies, "--out", out)
    assert done.exit_code == 1
    assert "row 2 (s2): " in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split("  ")[0] == "direction"
    assert re.match(r"image to text +[01]\.\d{3} \[[01]\.\d{3}, [01]\.\d{3}\] ", lines[1])
    assert lines[2].startswith("text to image ")
    assert "\nretrieval|txt:all|enc:hash@" in done.stdout
    written = json.loads((out / "retrieval.json").read_text())
    assert (written["failed"], written["failures"][0]["row"]) == (1, 2)
    encoder = HashEncoder()
    i = encoder.encode_images([str(tmp_path / f"{name}.png") for name in "xz"]).double().numpy()
    r = encoder.encode_reports(["Clear\nlungs. ", "Left effusion."]).double().numpy()
    cosines = i @ r.T / np.linalg.norm(i, axis=1)[:, None] / np.linalg.norm(r, axis=1)
    for name, table in (("image to text", cosines), ("text to image", cosines.T)):
        share = written[name]["recall"]["1"]
        assert share["low"] <= share["estimate"] <= share["high"]
        assert share["estimate"] == np.mean(table.argmax(1) == [0, 1])
        assert written[name]["recall"]["5"]["estimate"] == 1
        assert f"| {name} | " in (out / "retrieval.md").read_text()
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = command("retrieval", studies, "--out", out)
    assert again.exit_code == 1
    assert "holds these results already" in again.stderr
    assert again.stdout == done.stdout
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    refused = command("retrieval", studies, "--out", out, "--section", "auto")
    assert isinstance(refused.exception, InvalidSetting)
    assert "--overwrite" in str(refused.exception)
    shown = command("retrieval", studies, "--json", "--keep-going")
    assert json.loads(shown.stdout) == written
    bad = write_jsonl(tmp_path / "bad.jsonl", [{"id": 1, "image": "no.png", "reference": "x"}])
    refused = command("retrieval", bad)
    assert isinstance(refused.exception, InvalidTable)
    assert "no row can be embedded; row 1: " in str(refused.exception)


def test_without_a_folder_the_first_studies_are_printed(command, index, studies, monkeypatch):
    from vlscore.cli import oracle

    monkeypatch.setattr(oracle, "_SHOWN_STUDIES", 1)
    first = command("oracle", studies, "--index", index)
    assert "\ns1\n" in first.stdout
    assert "\ns3\n" not in first.stdout
    assert "... and 1 more; --show N prints more, --out FOLDER writes all" in first.stdout
    assert "2 studies searched, 1 failed" in first.stdout
    both = command("oracle", studies, "--index", index, "--show", 2)
    assert "\ns3\n" in both.stdout
    assert "more; " not in both.stdout
    shown = json.loads(command("oracle", studies, "--index", index, "--json").stdout)
    assert (shown["searched"], shown["failed"]) == (2, 1)
    assert shown["mean"]["low"] <= shown["mean"]["estimate"]
    assert command("oracle", studies, "--index", index, "--quiet").stdout == ""


@pytest.mark.parametrize("name", ["oracle", "retrieval"])
def test_ctrl_c_says_what_is_kept(command, index, studies, tmp_path, monkeypatch, name):
    from vlscore.retrieval import queries as queries

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(queries.QueryTable, "_embed", stop)
    options = ("--index", index) if name == "oracle" else ()
    early = command(name, studies, *options, "--out", tmp_path / "out")
    lost = command(name, studies, *options)
    assert (early.exit_code, lost.exit_code) == (130, 130)
    assert f"stopped; nothing was stored in {tmp_path / 'out'} yet. The same" in early.stderr
    assert re.search(r"nothing was stored\. With --out FOLDER, \w+ \w+ are stored\.", lost.stderr)


def test_an_output_that_is_a_file_is_refused_before_the_search(command, index, studies, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for name, options in (("oracle", ("--index", index)), ("retrieval", ())):
        refused = command(name, studies, *options, "--out", file)
        assert isinstance(refused.exception, InvalidSetting)
        assert "is a file" in str(refused.exception)
    assert file.read_text() == "mine"


def test_half_a_letter_in_an_id_costs_its_own_row(command, index, studies, tmp_path):
    with studies.open("a") as stream:
        stream.write('{"id": "a\\ud800b", "image": "x.png", "reference": "Clear.", "own": ""}\n')
    done = command("oracle", studies, "--index", index, "--out", tmp_path / "out")
    assert "surrogate" in done.stderr
    answers = read_jsonl(tmp_path / "out" / "hits.jsonl")
    assert [answer["error"] is None for answer in answers] == [True, False, True, False]
