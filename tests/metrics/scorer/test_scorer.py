"""Scores equal the kernels on the embeddings, and carry what a reader needs to trust them."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

import vlscore
from tests.doubles import HashEncoder
from vlscore import metrics as similarity
from vlscore.core import Signature
from vlscore.embedding import StudyEmbedder
from vlscore.embedding.encoder_source import EncoderSource
from vlscore.errors import (
    InvalidReport,
    InvalidSetting,
    InvalidStudy,
    UnreadableImage,
)
from vlscore.metrics import Scorer, compute

REPORTS = ["no effusion", "left effusion is large", "heart size is normal", "clear"]


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (16, 12), dtype=np.uint8)


@pytest.fixture
def scorer():
    return Scorer(HashEncoder(), device="cpu")


KERNELS = {
    "vlscore": lambda i, g, r: similarity.vlscore(i, g, r, 20.0),
    "vlscore(C=30)": lambda i, g, r: similarity.vlscore(i, g, r, 30.0),
    "cosine": lambda i, g, r: similarity.cosine(g, r),
    "image-centred-cosine": similarity.image_centred_cosine,
    "bounding-sphere": similarity.bounding_sphere_radius,
    "clipscore": lambda i, g, r: similarity.clipscore(i, g),
    "refclipscore": similarity.refclipscore,
}


@pytest.mark.parametrize("metric", KERNELS)
def test_a_batch_equals_the_kernels_on_its_embeddings(metric):
    encoder = HashEncoder()
    scorer = Scorer(encoder, metrics=metric, device="cpu", batch_size=2)
    images = [picture(k) for k in range(3)]
    table = scorer.score(images, REPORTS[:3], REPORTS[1:4])
    i, g, r = (
        encoder.encode_images(images),
        encoder.encode_reports(REPORTS[:3]),
        encoder.encode_reports(REPORTS[1:4]),
    )
    np.testing.assert_allclose(table.scores, KERNELS[metric](i, g, r).numpy(), rtol=1e-12)
    geometry = {
        "area": similarity.triangle_area(i, g, r),
        "foot": similarity.foot(i, g, r),
        **dict(
            zip(
                ("image_candidate", "image_reference", "candidate_reference"),
                similarity.sides(i, g, r),
                strict=True,
            )
        ),
    }
    looked_at = {
        "cosine": {"candidate_reference"},
        "clipscore": {"image_candidate"},
    }.get(metric, set(geometry))
    flags = {"candidate_truncated", "reference_truncated"}
    if metric == "clipscore":
        flags = {"candidate_truncated"}
    assert set(table.geometry) == looked_at | flags
    for name in looked_at:
        np.testing.assert_allclose(table.columns[name], geometry[name], rtol=1e-12)


def test_several_metrics_are_those_computed_one_by_one():
    names = ["bleu-1", "vlscore", "findings-f1", "cosine"]
    images = [picture(k) for k in range(3)]
    table = Scorer(HashEncoder(), metrics=names).score(images, REPORTS[:3], REPORTS[1:4])
    assert [str(metric) for metric in table.metrics] == names
    for name in names:
        alone = Scorer(HashEncoder(), metrics=name).score(images, REPORTS[:3], REPORTS[1:4])
        np.testing.assert_array_equal(table.columns[name], alone.scores)
        assert table.signatures[name] == alone.signature
    texts = compute(["bleu-1", "findings-f1"], REPORTS[:3], REPORTS[1:4])
    for name, values in texts.items():
        np.testing.assert_array_equal(table.columns[name], values)
    np.testing.assert_array_equal(table.scores, texts["bleu-1"])


def test_metrics_of_texts_need_neither_encoder_nor_image(monkeypatch):
    from vlscore.embedding import embedder as studies

    monkeypatch.setattr(studies, "named_encoder", None)
    scorer = Scorer(metrics="bleu-1,rouge-l")
    assert scorer.embedder is None
    score = scorer.score(None, "no effusion", "no effusion")
    assert (score.score, score.values["rouge-l"], score.geometry) == (1.0, 1.0, {})
    assert np.isnan(score.area)
    table = vlscore.score(None, ["no effusion", "x"], "no effusion", metrics=["bleu-1"])
    assert table.scores.tolist() == [1.0, 0.0]


def test_one_study_is_the_batch_of_one(scorer):
    one = scorer.score(picture(0), REPORTS[0], REPORTS[1])
    table = scorer.score([picture(0)], [REPORTS[0]], [REPORTS[1]])
    assert float(one) == one.score == table[0].score == table.mean()
    assert 0 < one.score < 1
    assert one.to_dict() == table[0].to_dict()


def test_a_single_value_beside_lists_holds_for_all(scorer):
    table = scorer.score(picture(0), REPORTS[:3], REPORTS[0])
    assert len(table) == 3
    assert table[0].score == 1.0
    assert table[1] == scorer.score(picture(0), REPORTS[1], REPORTS[0])


@pytest.mark.parametrize("kind", ["path", "pil", "array", "tensor"])
def test_an_image_in_any_form_scores_the_same(scorer, tmp_path, kind):
    pixels = picture(3)
    path = tmp_path / "image.png"
    Image.fromarray(pixels).save(path)
    forms = {
        "path": path,
        "pil": Image.fromarray(pixels),
        "array": pixels,
        "tensor": torch.from_numpy(pixels),
    }
    expected = scorer.score(str(path), REPORTS[0], REPORTS[1])
    assert scorer.score(forms[kind], REPORTS[0], REPORTS[1]) == expected


def test_truncation_is_said(scorer):
    long = "word " * 50
    score = scorer.score(picture(0), long, REPORTS[0])
    assert score.candidate_truncated
    assert not score.reference_truncated
    assert "truncated: candidate" in str(score)
    assert "truncated" not in str(scorer.score(picture(0), REPORTS[1], REPORTS[0]))


def test_the_text_policy_is_applied_once_to_each_side():
    report = "FINDINGS: left effusion is large.\nIMPRESSION: no effusion"
    for policy, candidate, reference in (
        ("impression", report, report),
        (vlscore.TextPolicy(reference_section="impression"), "no effusion", report),
    ):
        scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1", text_policy=policy)
        score = scorer.score(picture(0), candidate, reference)
        expected = Scorer(HashEncoder(), metrics="vlscore,bleu-1").score(
            picture(0), "no effusion", "no effusion"
        )
        assert score.values == expected.values == {"vlscore": 1.0, "bleu-1": 1.0}
        assert {s.get("txt") for s in score.signatures.values()} == {scorer.text_policy.signature()}


def test_the_signature_names_every_choice():
    scorer = Scorer(
        HashEncoder(), C=7, device="cpu", image_policy="minmax", text_policy="impression"
    )
    shown = str(scorer.signature)
    checksum = HashEncoder.checksum[:12]
    for part in (
        "vlscore",
        f"enc:hash@{checksum}",
        "C:7",
        "img:minmax",
        "views:first-frontal",
        "txt:impression",
        "prec:fp32",
        f"v:{vlscore.__version__}",
    ):
        assert part in shown.split("|")
    assert Signature.parse(shown) == scorer.signature
    cosine = Scorer(HashEncoder(), metrics="cosine").signature
    # What a metric does not look at is no part of what its numbers depend on.
    assert not any(cosine.has(name) for name in ("C", "img", "views"))


def test_results_are_plain_data(scorer):
    table = scorer.score([picture(0), picture(1)], REPORTS[:2], REPORTS[1:3])
    assert json.loads(json.dumps(table.to_dict()))["vlscore"] == table.scores.tolist()
    assert json.loads(json.dumps(table[0].to_dict()))["signature"] == str(table.signature)
    assert f"{table.mean():.4f}" in str(table)
    assert [float(score) for score in table] == table.scores.tolist()
    assert [float(score) for score in table[:1]] == table.scores[:1].tolist()
    with pytest.raises(IndexError, match="no score 2"):
        table[2]
    assert table[-1] == table[1]


def test_a_failed_row_is_no_number(scorer, tmp_path):
    table = scorer.score(
        [picture(0), tmp_path / "absent.png"], REPORTS[:2], REPORTS[:2], on_error="keep"
    )
    failed = table[1]
    assert np.isnan(failed.score)
    with pytest.raises(UnreadableImage, match="absent"):
        float(failed)
    assert str(failed).startswith("failed: ")
    assert "absent.png" in failed.to_dict()["error"]
    assert table[0].error is None
    assert "1 failed" in str(table)


def test_the_mean_has_an_interval_and_its_n(scorer):
    table = scorer.score([picture(k) for k in range(4)], REPORTS, REPORTS[:1] * 4)
    interval = table.interval()
    assert interval.estimate == table.mean() == pytest.approx(table.scores.mean())
    assert interval.low < interval.estimate < interval.high
    assert f"{table.mean():.4f} [{interval.low:.4f}, {interval.high:.4f}] of 4" in str(table)


def test_tables_become_data_frames(monkeypatch, tmp_path):
    class DataFrame(dict):
        """As much of pandas as is used here; vlscore does not need pandas."""

        def __init__(self, columns):
            super().__init__(columns)
            self.attrs = {}

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=DataFrame))
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1")
    images = [picture(0), tmp_path / "absent.png"]
    table = scorer.score(images, REPORTS[:2], REPORTS[1:3], on_error="keep")
    frame = table.to_pandas()
    assert {"vlscore", "bleu-1", "area"} <= set(frame)
    assert frame["error"][0] is None
    assert "absent.png" in frame["error"][1]
    assert frame.attrs["signatures"]["vlscore"] == str(scorer.signature)


def test_values_of_columns_have_the_index_of_their_frame():
    import pandas

    whole = pandas.DataFrame(
        {"sex": list("FMFM"), "candidate": REPORTS, "reference": REPORTS[::-1]}
    )
    part = whole[whole.sex == "M"].copy()
    scorer = Scorer(metrics="rouge-l,bleu-1")
    alone = scorer.score(None, part.candidate.tolist(), part.reference.tolist()).columns["rouge-l"]
    for reference in (part.reference, part.reference.tolist()):
        part["value"] = scorer.score(None, part.candidate, reference).to_pandas()["rouge-l"]
        np.testing.assert_array_equal(part["value"], alone)
    part = part.set_index(pandas.Index(["s2", "s4"], name="id"))
    assert list(scorer.score(None, part.candidate, part.reference).to_pandas().index) == [
        "s2",
        "s4",
    ]


def test_columns_of_different_rows_are_not_paired(scorer):
    import pandas

    candidates = pandas.Series(REPORTS, ["a", "b", "c", "d"])
    for call in (
        lambda r: Scorer(metrics="rouge-l").score(None, candidates, r),
        lambda r: compute("rouge-l", candidates, r),
    ):
        call(candidates.rename("reference"))
        with pytest.raises(InvalidStudy, match="row 0 is 'a' of the one and 'd' of the other"):
            call(candidates[::-1])


def test_a_bad_study_raises_or_is_listed(scorer, tmp_path):
    images = [picture(0), tmp_path / "absent.png", picture(1)]
    with pytest.raises(UnreadableImage, match=r"study 1: .*absent\.png"):
        scorer.score(images, REPORTS[:3], REPORTS[:1] * 3)
    table = scorer.score(images, REPORTS[:3], REPORTS[:1] * 3, on_error="keep")
    assert list(table.failures) == [1]
    assert np.isnan(table.scores).tolist() == [False, True, False]
    alone = scorer.score([images[0], images[2]], [REPORTS[0], REPORTS[2]], REPORTS[:1] * 2)
    np.testing.assert_allclose(table.scores[[0, 2]], alone.scores, rtol=1e-12)


def test_an_empty_reference_has_no_score():
    scorer = Scorer(metrics="judge")
    with pytest.raises(InvalidReport, match="the reference is empty"):
        scorer.score(None, REPORTS[0], " ")
    assert [*scorer.score(None, REPORTS[:2], ["", REPORTS[1]], on_error="keep").failures] == [0]
    with pytest.raises(InvalidReport, match=r"references\[1\] is empty"):
        compute("judge", REPORTS[:2], [REPORTS[0], ""])


@pytest.mark.parametrize("absent", [None, np.nan, 3])
def test_a_report_that_is_no_text_fails_its_study_alone(absent):
    scorer = Scorer(metrics="rouge-l")
    for role, texts in (
        ("candidate", ([REPORTS[0], absent], REPORTS[:2])),
        ("reference", (REPORTS[:2], [REPORTS[0], absent])),
    ):
        table = scorer.score(None, *texts, on_error="keep")
        assert {k: str(e) for k, e in table.failures.items()} == {
            1: f"a {role} is a text, not a {type(absent).__name__}"
        }
        with pytest.raises(InvalidReport, match=rf"{role}s\[1\] must be a text"):
            scorer.score(None, *texts)


def test_missing_texts_and_a_forgotten_image_are_named():
    texts = Scorer(metrics="rouge-l")
    with pytest.raises(InvalidReport, match=r"candidates\[1\] must be a text, not nan; \.fillna"):
        texts.score(None, ["Clear.", float("nan")], ["Clear.", "Clear."])
    with pytest.raises(InvalidStudy, match="without an image, pass None first"):
        texts.score(["Clear."], ["Clear."])


def test_lists_of_different_length_are_refused(scorer):
    with pytest.raises(InvalidStudy, match="candidates 2, references 3"):
        scorer.score(picture(0), REPORTS[:2], REPORTS[:3])


def test_settings_without_a_use_are_refused():
    embedder = StudyEmbedder(HashEncoder())
    with pytest.raises(InvalidSetting, match="views=mean was passed, but the StudyEmbedder"):
        Scorer(embedder, views="mean")
    with pytest.raises(InvalidSetting, match="no metric needs an encoder"):
        Scorer("gloria", weights="/no/such.ckpt", metrics="bleu-1")


def test_C_goes_to_the_metrics_that_leave_it_open():
    scorer = Scorer(HashEncoder(), metrics="vlscore,vlscore(C=3),cosine", C=7)
    assert [str(metric) for metric in scorer.metrics] == ["vlscore(C=7)", "vlscore(C=3)", "cosine"]
    assert [s.get("C") for s in scorer.signatures.values()] == ["7", "3", None]


def test_an_encoder_without_C_asks_for_one():
    class Unknown(HashEncoder):
        card = HashEncoder.card.__class__(**{**vars(HashEncoder.card), "C": None})

    with pytest.raises(InvalidSetting, match=r"needs the constant C.*--C 20"):
        Scorer(Unknown())
    assert float(Scorer(Unknown(), C=20).score(picture(0), "a", "b")) == float(
        Scorer(HashEncoder()).score(picture(0), "a", "b")
    )


class Series:
    """What a pandas Series looks like to us."""

    def __init__(self, values):
        self._values = list(values)
        self.shape = (len(self._values),)

    def tolist(self):
        return list(self._values)


@pytest.mark.parametrize("kind", [list, tuple, np.array, Series])
def test_lists_of_texts_and_paths_come_in_any_kind(scorer, tmp_path, kind):
    paths = []
    for k in range(3):
        paths.append(tmp_path / f"{k}.png")
        Image.fromarray(picture(k)).save(paths[-1])
    expected = scorer.score(paths, REPORTS[:3], REPORTS[1:4]).scores
    texts = kind(REPORTS[:3]), kind(REPORTS[1:4])
    np.testing.assert_array_equal(scorer.score(paths, *texts).scores, expected)
    if kind is not tuple:
        column = kind([str(path) for path in paths])
        np.testing.assert_array_equal(scorer.score(column, *texts).scores, expected)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("channels", [False, True])
def test_a_batch_of_patients_is_never_blended_into_one(scorer, count, tensor, channels):
    images = [picture(k) for k in range(count)]
    candidates = [f"candidate {k}" for k in range(count)]
    references = [f"reference {k}" for k in range(count)]
    expected = scorer.score(images, candidates, references).scores
    batch = np.stack(images)[:, None] if channels else np.stack(images)
    batch = torch.from_numpy(batch) if tensor else batch
    if count in (3, 4) and not channels:
        # Three or four grey images may also be one in colour: nobody can tell.
        with pytest.raises(InvalidStudy, match=r"pass list\(batch\)"):
            scorer.score(batch, candidates, references)
    else:
        found = scorer.score(batch, candidates, references).scores
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        scorer.score(list(batch), candidates, references).scores, expected
    )


def test_equal_channels_are_one_grey_picture(scorer):
    expected = scorer.score(picture(0), REPORTS[:3], REPORTS[1:4]).scores
    stacked = np.stack([picture(0)] * 3)
    np.testing.assert_array_equal(scorer.score(stacked, REPORTS[:3], REPORTS[1:4]).scores, expected)


def test_batches_of_four_axes_are_images_with_channels(scorer):
    grey = [picture(k) for k in range(2)]
    expected = scorer.score(grey, REPORTS[:2], REPORTS[1:3]).scores
    first = np.stack([np.stack([image] * 3) for image in grey])
    for batch in (first, np.moveaxis(first, 1, 3), torch.from_numpy(first)):
        found = scorer.score(batch, REPORTS[:2], REPORTS[1:3]).scores
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(InvalidStudy, match=r"list\(batch\)"):
        scorer.score(first, REPORTS[:3], REPORTS[:3])
    # Three patients in the place of three channels are seen in each image.
    mixed = np.stack([np.stack([picture(3 * k + c) for c in range(3)]) for k in range(2)])
    with pytest.raises(UnreadableImage, match="channels that differ"):
        scorer.score(mixed, REPORTS[:2], REPORTS[1:3])


def test_two_images_with_one_candidate_and_one_reference_are_no_batch(scorer):
    views = [picture(0), picture(1)]
    with pytest.raises(InvalidStudy, match="several views of one study as a tuple"):
        scorer.score(views, REPORTS[0], REPORTS[1])
    with pytest.warns(UserWarning, match="it is unknown which image is frontal"):
        assert isinstance(scorer.score(tuple(views), REPORTS[0], REPORTS[1]), vlscore.Score)
    batch = [picture(2), *[tuple(views)] * 7]
    with pytest.warns(UserWarning, match=r"in 7 studies .*from 0: 1, 2, 3, 4, 5, \.\.\.\);"):
        scorer.score(batch, [REPORTS[0]] * 8, [REPORTS[1]] * 8)


def test_one_text_for_several_patients_is_warned_of(scorer):
    views = [picture(0), picture(1)]
    with pytest.warns(UserWarning, match="the same reference is used for all 2 studies") as caught:
        scorer.score(views, REPORTS[:2], REPORTS[1])
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="the same candidate is used for all 2 studies"):
        scorer.score(views, REPORTS[0], REPORTS[:2])


def test_what_is_needed_and_absent_is_said(scorer):
    with pytest.raises(InvalidStudy, match="needs the image"):
        scorer.score(None, REPORTS[0], REPORTS[1])
    with pytest.raises(InvalidStudy, match="needs the reference"):
        scorer.score(picture(0), REPORTS[0])
    clipscore = Scorer(HashEncoder(), metrics="clipscore")
    assert 0 <= float(clipscore.score(picture(0), REPORTS[0])) <= 2.5


def test_a_candidate_without_the_section_fails_alone_for_every_metric():
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1", text_policy="impression")
    good = "IMPRESSION: no effusion"
    images = [picture(k) for k in range(3)]
    table = scorer.score(images, [good, "no heading", ""], [good] * 3, on_error="keep")
    assert list(table.failures) == [1]
    assert "the candidate has no section for 'impression'" in str(table.failures[1])
    for values in table.values.values():
        assert np.isnan(values.columns[0]).tolist() == [False, True, False]
    # Silence is an answer, and is scored under every policy.
    empty = Scorer(HashEncoder()).score(picture(2), "", "no effusion")
    assert table.scores[2] == float(empty)


class TestTheFace:
    """`vlscore.score`."""

    @pytest.fixture(autouse=True)
    def fresh(self):
        from vlscore.metrics import one_call as once

        once._shared_scorer.cache_clear()
        yield
        once._shared_scorer.cache_clear()

    @pytest.fixture
    def loaded(self, monkeypatch):
        """Names under which an encoder was loaded."""
        from vlscore.embedding import embedder as studies

        names = []

        def load(name, **_):
            names.append(name)
            return EncoderSource(HashEncoder())

        monkeypatch.setattr(studies, "named_encoder", load)
        return names

    def test_an_encoder_is_loaded_once_for_equal_options(self, loaded):
        for metrics in (["vlscore", "cosine"], ("vlscore", "cosine"), ["vlscore", "cosine"]):
            vlscore.score(picture(0), "a", "b", encoder="one", metrics=metrics)
        assert loaded == ["one"]

    def test_warnings_point_to_the_caller(self, loaded):
        """Python shows a warning once a line: one inside the package would hide later ones."""
        pictures = [picture(k) for k in range(2)]
        scorer = Scorer(HashEncoder())
        for score in (vlscore.score, scorer.score):
            with pytest.warns(UserWarning, match="the same reference is used") as caught:
                score(pictures, REPORTS[:2], REPORTS[0])
            assert [each.filename for each in caught] == [__file__]
            with pytest.warns(UserWarning, match="it is unknown which image is frontal") as caught:
                score(tuple(pictures), REPORTS[0], REPORTS[0])
            assert [each.filename for each in caught] == [__file__]

    def test_a_checkpoint_that_was_replaced_is_loaded_again(self, loaded, tmp_path, monkeypatch):
        file = tmp_path / "model.safetensors"
        for content, count in (("one", 1), ("one", 1), ("another", 2)):
            if not file.exists() or file.read_text() != content:
                file.write_text(content)
            vlscore.score(picture(0), "a", "b", encoder="one", weights=str(file))
            assert len(loaded) == count
        monkeypatch.setenv("VLSCORE_WEIGHTS", str(tmp_path))
        for content, count in (("another", 3), ("a third", 4)):
            file.write_text(content)
            vlscore.score(picture(0), "a", "b", encoder="one")
            assert len(loaded) == count
        monkeypatch.setenv("VLSCORE_CACHE_GIB", "3")
        vlscore.score(picture(0), "a", "b", encoder="one")
        assert len(loaded) == 5


def test_threads_share_a_scorer():
    import threading

    scorer = Scorer(HashEncoder(), metrics="vlscore,findings-f1")
    expected = [float(scorer.score(picture(k), REPORTS[k], REPORTS[1])) for k in range(4)]
    found: dict[int, float] = {}

    def work(k):
        found[k] = float(scorer.score(picture(k % 4), REPORTS[k % 4], REPORTS[1]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(16)] == expected * 4
