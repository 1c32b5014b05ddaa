"""One study explained: its score, its errors, and what each sentence costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.data import Study, select
from vlscore.metrics import Explanation, Judgement, RuleJudge, Score, Scorer, explain_with
from vlscore.pages.page_parts import FILM_BYTES, TRIANGLE, CaseList, Column, RunView, add_films
from vlscore.pages.report_page import ReportPage, write_page
from vlscore.pages.view_parts import judged_block


@dataclass(frozen=True)
class ExplainedStudy:
    """Explanation of one study.

    Attributes:
        study: its images and reports, with the sections that were scored.
        score: its values.
        judgement: errors of the candidate, as the judge by rules finds them.
        explanation: shares of the sentences.
        maps: where each sentence of the candidate and of the reference looks on the first film, as
            `maps_to_dict` writes it; None where they were not asked for, or the encoder has no
            local vectors.
    """

    study: Study
    score: Score
    judgement: Judgement
    explanation: Explanation
    maps: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json can write."""
        return {
            **self.score.to_dict(),
            "explanation": self.explanation.to_dict(),
            "judgement": self.judgement.to_dict(),
        }

    def __str__(self) -> str:
        errors = [
            f"  {error.severity}  {str(error.category).replace('_', ' ')}: {error.finding}; "
            f"{error.reason}"
            for error in self.judgement.errors
        ]
        geometry = self.score.geometry
        triangle: list[str] = []
        if "foot" in geometry:
            triangle = [f"area {geometry['area']:.4f}, foot {geometry['foot']:.4f}"]
        found = self.explanation
        costs = (
            "the costs add up to the loss"
            if found.method == "additive"
            else "a cost is the score without the sentence, or with the reference's, less the score"
        )
        lines = [
            f"{found.metric} {found.score:.4f}; the reference itself has {found.best:.4f}",
            *triangle,
            f"what each sentence costs (below 0: it helps); {costs}",
        ]
        for side, sentences in (("candidate", found.candidate), ("reference", found.reference)):
            lines += [f"  {side}  {each.share:+.4f}  {each.text}" for each in sentences]
        maps = [] if self.maps is None else ["maps: moved copies that a map beats (chance: half)"]
        for each in () if self.maps is None else self.maps["sentences"]:
            maps.append(f"  {each['beaten']:4.1f} of {each['copies']}  {each['text']}")
        lines += [*maps, "errors, with severity from 1 to 5" if errors else "no error", *errors]
        return "\n".join([*lines, str(found.signature)])

    def write(self, path: str | Path, *, films: bool = False) -> ReportPage:
        """Write a page of the study; it holds both reports, and the films if they are wanted.

        Maps lie on a film, so that a page without films has none.
        """
        study, score = self.study, self.score
        errors = [error.to_dict() for error in self.judgement.errors]
        block = judged_block(study.candidate or "", study.reference or "", errors)
        block.shares = self.explanation.to_dict()
        block.maps = self.maps if films else None
        if set(TRIANGLE) <= set(score.geometry):
            block.triangle = [float(score.geometry[name]) for name in TRIANGLE]
        numbers = {name: [float(value)] for name, value in score.values.items()}
        columns = [Column("study", is_text=True)]
        columns += [Column(name, is_main=True) for name in numbers]
        cases = CaseList("studies", columns, {"study": [study.id], **numbers}, "study")
        cases.cases = [[block]]
        view = RunView("One study", "explain", signatures=[str(self.explanation.signature)])
        view.cases = cases
        if films:
            add_films(view, [study], FILM_BYTES)
        return write_page(Path(path), [view])


def explain_study(
    scorer: Scorer, images: Sequence[Any], candidate: str, reference: str, *, maps: bool = False
) -> ExplainedStudy:
    """Explain the score of one study.

    Args:
        scorer: its first metric is explained.
        images: paths of the views; empty for metrics that read no image.
        candidate, reference: one report each.
        maps: also compute where each sentence looks on the first film, which embeds some 80
            blurred copies of it for each sentence.

    Raises: InvalidSetting for a metric without a reference; those of `Scorer.score`.
    """
    views = tuple(images)
    shown = views or None
    explanation = explain_with(scorer, shown, candidate, reference)
    score = scorer.score(shown, candidate, reference)
    chosen = select(candidate, scorer.text_policy, "candidate")
    true = select(reference, scorer.text_policy, "reference")
    study = Study("study", views, true, chosen, 1)
    judgement = RuleJudge().judge(chosen, true)
    drawn = None
    if maps:
        from vlscore.pages.sentence_maps import maps_of

        drawn = maps_of(scorer, views, explanation)
    return ExplainedStudy(study, score, judgement, explanation, drawn)
