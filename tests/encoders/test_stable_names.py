"""Names of classes in checksums and cache keys: written down, so that files and classes can move.

A changed name empties every user's cache, or changes every signature of an encoder.
"""

import pytest

from vlscore.core import stable_class, stable_module, stable_name
from vlscore.encoders import ENCODERS, ImagePipeline, JointEncoder
from vlscore.metrics import CheXbert, RadGraph

# The names under which version 0.1.0 wrote checksums and caches.
ENCODER_NAMES = {
    "phantom-judging": "vlscore.encoders.phantom_judging:PhantomJudgingEncoder",
    "phantom": "vlscore.encoders.phantom:PhantomEncoder",
    "phantom-supervised": "vlscore.encoders.phantom_supervised:SupervisedPhantomEncoder",
    "small": "vlscore.encoders.small:SmallEncoder",
    "ensemble": "vlscore.encoders.ensemble:EnsembleEncoder",
    "limitr": "vlscore.encoders.limitr:LimitrEncoder",
    "gloria": "vlscore.encoders.gloria:GloriaEncoder",
    "convirt": "vlscore.encoders.convirt:ConvirtEncoder",
    "convirt-mgca": "vlscore.encoders.mgca:ConvirtMgcaEncoder",
    "biovil": "vlscore.encoders.biovil:BiovilEncoder",
    "biovil-t": "vlscore.encoders.biovil:BiovilTEncoder",
    "medclip-resnet": "vlscore.encoders.medclip:MedclipResNetEncoder",
    "medclip-vit": "vlscore.encoders.medclip:MedclipSwinEncoder",
    "mgca-resnet50": "vlscore.encoders.mgca:MgcaResNetEncoder",
    "mgca-vit": "vlscore.encoders.mgca:MgcaVisionTransformerEncoder",
    "chexzero": "vlscore.encoders.chexzero:ChexzeroEncoder",
    "biomedclip": "vlscore.encoders.openclip:BiomedClipEncoder",
    "openclip": "vlscore.encoders.openclip:OpenClipEncoder",
}
PIPELINE_NAMES = {
    "vlscore.encoders.biovil:ResizeCropPipeline",
    "vlscore.encoders.blocks.levels:LevelsPipeline",
    "vlscore.encoders.blocks.openclip_model:OpenClipPipeline",
    "vlscore.encoders.blocks.pad_crop:PadCropPipeline",
    "vlscore.encoders.chexzero:CanvasPipeline",
    "vlscore.encoders.convirt:StretchPipeline",
    "vlscore.encoders.medclip:SquareCanvasPipeline",
    "vlscore.encoders.phantom_supervised:PhantomPipeline",
    "vlscore.encoders.small:SquarePipeline",
    "vlscore.training.preparing:KeptPixels",
}


@pytest.mark.parametrize(("name", "expected"), ENCODER_NAMES.items())
def test_encoders_have_the_names_of_the_first_version(name, expected):
    found = ENCODERS.find(name)
    assert isinstance(found, type)
    assert stable_name(found) == expected


def _subclasses(kind: type) -> set[type]:
    direct = {each for each in kind.__subclasses__() if each.__module__.startswith("vlscore.")}
    return direct.union(*map(_subclasses, direct))


def test_pipelines_have_the_names_of_the_first_version():
    import vlscore.training.training_pairs  # the last pipeline's file

    assert vlscore.training.training_pairs.StoredPixels
    for _name, encoder in ENCODERS.items():
        assert encoder
    # A later pipeline needs no entry: nothing was stored under another name of it.
    assert {stable_name(kind) for kind in _subclasses(ImagePipeline)} >= PIPELINE_NAMES


def test_annotators_have_the_names_of_the_first_version():
    assert stable_name(CheXbert) == "vlscore.annotators.chexbert:CheXbert"
    assert stable_name(RadGraph) == "vlscore.annotators.radgraph:RadGraph"


def test_a_subclass_of_a_users_own_has_a_name_of_its_own():
    class Own(ENCODERS.find("small")):  # type: ignore[misc]
        pass

    assert issubclass(Own, JointEncoder)
    assert stable_module(Own) == __name__
    assert stable_class(Own).endswith("Own")
