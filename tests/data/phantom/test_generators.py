"""The two generators of the demonstration: made by their rules, and told apart with any seed."""

import numpy as np
import pytest
from PIL import Image

from tests.demonstration import DEMO, TABLES
from vlscore.data import KINDS, render
from vlscore.data.phantom.demonstration import sample_generators, write_demonstration
from vlscore.metrics import Scorer
from vlscore.text import split_sentences

# The bundled studies have seed 2026; the encoders learned from the scenes of seeds 1 to 3.
OTHER_SEEDS = (2027, 2028)


@pytest.mark.parametrize("seed", OTHER_SEEDS)
def test_the_errors_are_those_of_the_rules(seed):
    for study in sample_generators(seed, 60):
        right, fluent = study["right"], study["fluent"]
        assert right.reference == fluent.reference
        assert right.errors.total == 0
        kinds = [KINDS[finding.kind] for finding in right.scene.findings]
        altered = sum(bool(kind.sides or kind.zones or kind.severities) for kind in kinds)
        assert fluent.errors.total == (altered or 1)
        assert fluent.errors.false_finding == (altered == 0)
        assert not set(split_sentences(right.candidate)) & set(split_sentences(right.reference))


@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_the_bundled_files_are_made_by_the_rules(tmp_path, count):
    """The first studies, and all files byte for byte."""
    write_demonstration(tmp_path, seed=2026, count=count)
    for path in TABLES.values():
        lines = path.read_bytes().splitlines(keepends=True)
        assert (tmp_path / path.name).read_bytes() == b"".join(lines[:count])
        assert len(lines) == 100
    made = {path.name for path in tmp_path.iterdir()}
    for name in (name for name in made if name.endswith(".png")):
        with Image.open(DEMO / name) as stored, Image.open(tmp_path / name) as image:
            # Another processor may round a pixel to the next level.
            assert np.abs(np.asarray(stored, dtype=int) - np.asarray(image, dtype=int)).max() <= 1
    if count == 100:
        assert made == {path.name for path in DEMO.iterdir()}
        assert (tmp_path / "errors.csv").read_bytes() == (DEMO / "errors.csv").read_bytes()


def preferences(scorer, studies, images):
    """Metric -> by how much `right` has better values than `fluent`, in standard errors."""
    values = {}
    for name in TABLES:
        candidates = [study[name].candidate for study in studies]
        references = [study[name].reference for study in studies]
        values[name] = scorer.score(images, candidates, references).columns
    found = {}
    for metric in scorer.metrics:
        better = 1 if metric.higher_is_better else -1
        column = str(metric)
        gain = better * (np.array(values["right"][column]) - np.array(values["fluent"][column]))
        found[column] = gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain)))
    return found


@pytest.mark.parametrize("seed", OTHER_SEEDS)
def test_with_other_seeds_words_prefer_fluent_and_the_judge_right(seed):
    studies = list(sample_generators(seed, 60))
    found = preferences(Scorer(metrics="bleu-4,rouge-l,judge"), studies, None)
    assert found["bleu-4"] < -4
    assert found["rouge-l"] < -4
    assert found["judge"] > 4


@pytest.mark.filterwarnings("ignore::vlscore.errors.DemonstrationEncoderWarning")
@pytest.mark.parametrize(
    ("encoder", "metrics"),
    # The second learned from pairs alone, and reads no findings.
    [("phantom-judging", "vlscore,image-gain-distance"), ("phantom", "vlscore,clipscore")],
)
def test_with_another_seed_scores_of_images_prefer_right(encoder, metrics):
    studies = list(sample_generators(OTHER_SEEDS[0], 40))
    images = [render(study["right"].scene) / 4095 for study in studies]
    found = preferences(Scorer(encoder, metrics=metrics, device="cpu"), studies, images)
    assert min(found.values()) > 4, found
