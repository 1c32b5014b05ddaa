"""Imperfect references: every error is counted, against the reference and against the scene."""

import numpy as np
import pytest
from imperfect_references import FORMS, imperfect_studies

from vlscore.data import count_errors
from vlscore.data.phantom.phantom_pairs import scene_at

CATEGORY = {
    "omits": ("omitted_finding", "false_finding"),
    "states": ("false_finding", "omitted_finding"),
    "wrong-side": ("wrong_location", "wrong_location"),
}


@pytest.mark.parametrize("form", FORMS)
def test_both_candidates_are_one_error_of_one_category_from_the_reference(form):
    of_reference, of_candidates = CATEGORY[form]
    drawn = 0
    for position in range(300):
        shown = scene_at(5, position).findings
        found = FORMS[form](np.random.default_rng(position), shown)
        if found is None:
            continue
        drawn += 1
        stated, false = found
        wrong = count_errors(stated, shown)
        assert (wrong.total, getattr(wrong, of_reference)) == (1, 1)
        for candidate in (shown, false):
            errors = count_errors(candidate, stated)
            assert (errors.total, getattr(errors, of_candidates)) == (1, 1)
        assert count_errors(false, shown).total == 2
        assert [f.kind for f in false] == sorted({f.kind for f in false})
    assert drawn > 150


@pytest.mark.parametrize("form", FORMS)
def test_studies_do_not_depend_on_how_many_are_drawn(form):
    few = list(imperfect_studies(5, 12, form, split="held_out"))
    many = list(imperfect_studies(5, 40, form, split="held_out"))
    assert many[: len(few)] == few
    assert [study.scene for study in few] == [scene_at(5, study.position) for study in few]
    assert len({study.position for study in many}) == len(many) > len(few)
    for study in many:
        assert study.reference
        assert study.true != study.false


def test_a_normal_film_has_no_imperfect_reference():
    normal = next(k for k in range(100) if not scene_at(5, k).findings)
    for form in FORMS:
        assert normal not in {study.position for study in imperfect_studies(5, normal + 1, form)}
        assert FORMS[form](np.random.default_rng(0), ()) is None


def test_phrasings_are_those_asked_for():
    (trained,) = imperfect_studies(5, 1, "omits", split="train")
    (held_out,) = imperfect_studies(5, 1, "omits", split="held_out")
    assert trained.stated == held_out.stated
    assert trained.reference != held_out.reference
