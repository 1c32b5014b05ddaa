"""No change is made that another sentence of the report would belie."""

import pytest

from tests.perturb.kinds.changed import changed

# Kind, report, the sentence that stands in the way.
BELIED = [
    ("remove-pathology", "Left basilar opacity.", "Focal consolidation at the left base."),
    ("remove-pathology", "Mild cardiomegaly.", "Findings were discussed with Dr. Smith."),
    ("remove-pathology", "Nodule in the right lung.", "CT is recommended."),
    ("remove-pathology", "Left effusion.", "The remaining lungs are clear."),
    ("negate-finding", "There is atelectasis.", "Findings may represent pneumonia."),
    ("negate-finding", "There is a pneumothorax.", "Mediastinal shift to the left."),
    ("affirm-finding", "No focal consolidation.", "The lungs are clear."),
    ("affirm-finding", "No rib fracture.", "Osseous structures are intact."),
    ("change-severity", "Severe cardiomegaly.", "The heart is top normal in size."),
    ("change-severity", "Small nodule.", "This measures 8 mm."),
    ("change-severity", "Large right effusion.", "It is 4 cm deep."),
    ("change-location", "Left pleural effusion.", "A left chest tube is in place."),
    ("change-location", "Left pleural effusion.", "Shift from left to right."),
    ("change-location", "Upper lobe opacity.", "Atelectasis in the upper lobe."),
    ("drop-comparison", "Stable effusion.", "These findings are similar to the prior examination."),
    ("drop-comparison", "Worsening atelectasis.", "Worsening interstitial markings."),
    ("add-false-finding", "No nodule.", "The heart and mediastinum are not enlarged."),
]
_MANY = {"add-false-finding"}


@pytest.mark.parametrize(("kind", "report", "other"), BELIED)
def test_a_change_that_would_be_belied_is_not_made(kind, report, other):
    """It is made where the other sentence says nothing of the kind."""
    made = changed(kind, f"{report} {other}")
    if kind in _MANY:
        assert not any("The heart is moderately enlarged." in text for text in made)
        assert not any("There is mild cardiomegaly." in text for text in made)
        return
    assert not any(other in text and report not in text for text in made)
    assert any(report not in text for text in changed(kind, f"{report} No free air is seen."))
