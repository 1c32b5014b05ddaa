"""Sentences that a careless change would turn into nonsense, and what comes out instead."""

import pytest

from tests.perturb.kinds.changed import changed

NOTHING = [
    # One side compared with the other.
    ("change-location", "Right effusion, larger than the left."),
    ("change-location", "Right effusion greater than left."),
    ("change-location", "The effusion on the right is larger than the one on the left."),
    ("change-location", "Mild left and moderate right effusions."),
    ("change-location", "Small left effusion, previously on the right."),
    ("change-location", "The right lung demonstrates diffuse opacities, the left is clear."),
    ("change-location", "Right hilar mass. Left hilum is normal."),
    # Grades of a change, grades with bounds, two grades at once.
    ("change-severity", "Mild improvement in left effusion."),
    ("change-severity", "Effusion has slightly decreased."),
    ("change-severity", "Mild edema, previously moderate."),
    ("change-severity", "Mild edema has progressed to moderate edema."),
    ("change-severity", "Mild or moderate cardiomegaly."),
    ("change-severity", "Moderately advanced emphysema."),
    ("change-severity", "No more than mild edema."),
    ("change-severity", "At least moderate cardiomegaly."),
    ("change-severity", "Minimal if any effusion."),
    ("change-severity", "FINDINGS: Small left effusion. IMPRESSION: Trace left effusion."),
    # What stays would speak of what went, or stand under the wrong header.
    ("remove-pathology", "Mild edema. No other abnormality."),
    ("remove-insignificant", "Technique: PA and lateral. Small effusion."),
    # Not in English, whatever the words look like.
    ("remove-pathology", "Kein Erguss, keine Infiltrate. Herz normal groß."),
    ("add-false-finding", "Derrame pleural izquierdo leve. Corazón de tamaño normal."),
]

SOMETHING = {
    ("drop-comparison", "Mild, stable cardiomegaly."): "Mild cardiomegaly.",
    ("drop-comparison", "A stable 8 mm nodule is seen."): "An 8 mm nodule is seen.",
    ("drop-comparison", "Small effusions, which are new."): "Small effusions.",
    (
        "affirm-finding",
        "No evidence of pneumothorax is seen.",
    ): "Evidence of a pneumothorax is seen.",
}


@pytest.mark.parametrize(("name", "report"), NOTHING)
def test_nothing_comes_out(name, report):
    assert changed(name, report) == set()


@pytest.mark.parametrize(("name", "report", "expected"), [(*k, e) for k, e in SOMETHING.items()])
def test_what_comes_out(name, report, expected):
    assert changed(name, report) == {expected}
