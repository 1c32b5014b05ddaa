"""False and omitted comparisons, by the definitions of ReXVal's categories."""

import pytest

from vlscore.metrics import RuleJudge, apply_corrections

FALSE, OMITTED = "false_comparison", "omitted_comparison"


def errors(candidate: str, reference: str) -> list[tuple[str, int]]:
    found = RuleJudge().judge(candidate, reference).errors
    return [(str(e.category), e.severity) for e in found]


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("The effusion is larger than before.", "Pleural effusion.", [(FALSE, 3)]),
        ("The effusion is larger than before.", "Stable effusion.", [(FALSE, 3)]),
        # Opposite directions are as bad as missing the finding.
        ("The effusion has decreased.", "The effusion has increased.", [(FALSE, 3)]),
        ("Pleural effusion.", "New pleural effusion.", [(OMITTED, 2)]),
        ("Effusion, unchanged.", "The effusion has increased.", [(OMITTED, 3)]),
        # Resolved is the end of improved; new and worse are both more than before.
        ("Worsening effusion.", "New effusion.", []),
        # To say that nothing has changed is no change.
        ("Stable cardiomegaly.", "Cardiomegaly.", []),
        ("Cardiomegaly.", "Unchanged cardiomegaly. No interval change.", []),
        # Of a finding of no consequence, the change is of none.
        ("Degenerative changes have progressed.", "Degenerative changes.", [(FALSE, 1)]),
        # A finding that is gone, and a part without a finding.
        ("The effusion has resolved.", "Clear lungs.", [(FALSE, 2)]),
        ("Clear lungs.", "The effusion has resolved.", [(OMITTED, 2)]),
        ("Aeration has improved.", "Clear lungs.", [(FALSE, 2)]),
        ("Aeration has improved.", "Improved aeration of the lungs.", []),
        # One statement about two findings is one error.
        ("Cardiomegaly and edema have improved.", "Cardiomegaly and edema.", [(FALSE, 2)]),
    ],
)
def test_comparisons(candidate: str, reference: str, expected: list[tuple[str, int]]) -> None:
    assert errors(candidate, reference) == expected


def test_a_false_comparison_quotes_its_words_and_can_be_corrected() -> None:
    candidate, reference = "Opacity at the left base. This was not present before.", "Left opacity."
    judgement = RuleJudge().judge(candidate, reference)
    (error,) = judgement.errors
    assert error.candidate is not None
    assert error.candidate.words == "was not present before"
    candidate, reference = "The effusion has resolved. Cardiomegaly.", "Cardiomegaly."
    judgement = RuleJudge().judge(candidate, reference)
    corrected = apply_corrections(candidate, reference, judgement).text
    assert errors(corrected, reference) == []
    assert "ardiomegaly" in corrected
