"""Studies whose film is shown in place of another's: which are drawn, and in what time."""

import time
from pathlib import Path

import numpy as np

from vlscore.data import Study
from vlscore.evaluation import AuditSettings
from vlscore.evaluation.audit import altered_films
from vlscore.evaluation.audit.audit_settings import OTHER, SAME


def _shown(count, findings=12, share=0.1):
    """Studies with random views and findings; every tenth has the film of the one before."""
    rng = np.random.default_rng(0)
    names = [f"finding {k}" for k in range(findings)]
    paths = [Path(f"{k - (k % 10 == 9)}.png") for k in range(count)]
    return [
        altered_films._Shown(
            Study(f"s{k}", (path,)),
            path,
            str(rng.choice(["PA", "AP", "AP"])),
            {name: ((), ()) for name in names if rng.random() < share},
            {},
        )
        for k, path in enumerate(paths)
    ]


def test_donors_are_drawn_among_all_that_fit():
    shown = _shown(40)
    drawn = {}
    for seed in range(60):
        settings = AuditSettings(alterations=(SAME, OTHER), seed=seed)
        for film in altered_films._films(shown, settings):
            if film.donor is not None:
                drawn.setdefault((film.study, film.alteration), set()).add(film.donor)
    for each in shown:
        own = set(each.findings)
        others = {
            other.study.id: set(other.findings)
            for other in shown
            if other.view == each.view and other.path != each.path
        }
        same = {id for id, found in others.items() if found == own}
        apart = {id for id, found in others.items() if not own & found and found != own}
        # Of so few, nearly all are drawn in the end.
        for alteration, fitting in ((SAME, same), (OTHER, apart)):
            found = drawn.get((each.study.id, alteration), set())
            assert found <= fitting
            assert len(found) >= 0.8 * len(fitting)


def test_donors_of_10_000_studies_take_seconds():
    shown = _shown(10_000, findings=20, share=0.06)
    began = time.process_time()
    films = altered_films._films(shown, AuditSettings(alterations=(SAME, OTHER)))
    assert sum(film.donor is not None for film in films) > 15_000
    # Comparing every study with every other took minutes.
    assert time.process_time() - began < 20
