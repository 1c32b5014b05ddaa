"""Self-contained HTML pages: `report` of result folders, `explain_study` of one study."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from vlscore.core import (
    RECORD,
    OnProgress,
    __version__,
    atomic_write,
    no_progress,
    printable,
    reading_result,
    with_noun,
)
from vlscore.data import Study, select
from vlscore.errors import InvalidSetting
from vlscore.metrics import Explanation, Judgement, RuleJudge, Score, Scorer, explain_with
from vlscore.pages.claim_views import claims_shown
from vlscore.pages.page_parts import (
    IMAGE_BYTES,
    CaseList,
    RunView,
    add_images,
    plain_value,
)
from vlscore.pages.run_views import view_of
from vlscore.pages.view_parts import PageOptions, judged_study, triangle_of
from vlscore.stats import Result, is_demonstration

PAGE = "report.html"


# Id of a study that `write_dataset` or the demonstration makes.
_PHANTOM = re.compile(r"phantom-\d+-\d{5,}")
# Parts of a section from top to bottom: where cases matter, and where means matter.
_OF_CASES = ("cards", "why", "list", "scatter", "forests", "curves")
_OF_MEANS = ("forests", "curves", "cards", "why", "list", "scatter")
_CASES_FIRST = {"evaluate", "judge", "claims", "findings", "oracle"}


class Holding(NamedTuple):
    """Which patients' data a page holds.

    Attributes: is_private: whether it holds any; title, text: the same in words.
    """

    is_private: bool
    title: str
    text: str


@dataclass(frozen=True)
class ReportPage:
    """A page that was written.

    Attributes:
        path: of the file.
        bytes: its size.
        holds: which patients' data it holds.
        notes: what could not be shown, and why.
    """

    path: Path
    bytes: int
    holds: Holding
    notes: tuple[str, ...]


def report(
    *folders: str | Path,
    out: str | Path | None = None,
    texts: bool = True,
    images: bool = False,
    sentences: int = 0,
    weights: str | Path | None = None,
    table: str | Path | None = None,
    image_root: str | Path | None = None,
    on_progress: OnProgress = no_progress,
) -> ReportPage:
    """Write one HTML page that shows result folders; an earlier page is replaced.

    The page is one file, needs no network, and runs no code but its own. It holds reports, which
    are patients' data, unless `texts` is False; and images only if `images` is True.

    Args:
        folders: of finished commands, each of which becomes a section.
        out: the file; default: report.html in the first folder.
        texts: whether the page holds reports, ids, paths and notes. Without them it holds numbers
            by row, and tables.
        images: whether the page holds the images, shrunk; refused without texts.
        sentences: in how many studies, those with the worst score, the page shows what each
            sentence costs (`vlscore.explain`), and with images where it looks; the run's encoder is
            then loaded.
        weights: checkpoint of that encoder, where it is not found by itself.
        table: table of the studies, where run.json names none or it was moved.
        image_root: folder that image paths start from, where it is not the run's.
        on_progress: called with (cases read, 0).

    Raises: InvalidSetting where a folder holds no finished run; ChecksumMismatch where its results
        were changed; OutputFailed.
    """
    if not folders:
        raise InvalidSetting("name at least one result folder")
    if images and not texts:
        raise InvalidSetting(
            "images are patients' data, and a page without texts must not contain any: leave one "
            "out"
        )
    options = PageOptions(texts, table, image_root, on_progress)
    views: list[RunView] = []
    images_so_far = 0
    for folder in folders:
        opened = Result.open(folder)
        # Results that somebody wrote by hand can lack anything.
        with reading_result(opened.folder / RECORD):
            view = view_of(opened, options)
        if sentences and texts:
            from vlscore.pages.sentence_maps import add_shares

            add_shares(view, opened, sentences, weights, maps=images)
        if images:
            images_so_far += add_images(view, IMAGE_BYTES - images_so_far)
        views.append(view)
    path = Path(out) if out is not None else Path(folders[0]) / PAGE
    return write_page(path, views, texts)


def write_page(path: Path, views: Sequence[RunView], texts: bool = True) -> ReportPage:
    """Write the page of these views. Raises: OutputFailed."""
    holds = holding_of(views, texts)
    page = page_of(views, holds)
    with atomic_write(path, "wb") as stream:
        stream.write(page)
    notes = tuple(note for view in views for note in view.notes)
    return ReportPage(path, len(page), holds, notes)


def holding_of(views: Sequence[RunView], texts: bool) -> Holding:
    """Return which patients' data a page holds."""
    if not texts:
        return Holding(
            False,
            "Numbers alone.",
            "This page contains no report, no image and no id of a study: rows have numbers. Small "
            "groups can still say something about a person; read the tables before you share it.",
        )
    reports, images = (sum(getattr(view, name) for view in views) for name in ("texts", "images"))
    ids = sum(len(view.cases.values) for view in views if view.cases is not None)
    counts = {"report": reports, "image": images, "row": ids}
    parts = [with_noun(n, name) for name, n in counts.items() if n]
    if ids:
        parts[-1] += " with ids or texts"
    if not parts:
        return Holding(
            False, "No patients' data.", "This page contains numbers and names of files."
        )
    if all(_is_of_phantoms(view) for view in views):
        return Holding(
            False,
            "No patients' data.",
            f"This page contains {' and '.join(parts)}, all of synthetic phantoms.",
        )
    return Holding(
        True,
        "Patients' data.",
        f"This page contains {' and '.join(parts)}. Treat it like the "
        "data that it was made from. A page made with --no-texts contains only numbers.",
    )


def _is_of_phantoms(view: RunView) -> bool:
    """Return whether a section holds nothing but studies with the ids that phantoms get."""
    if view.cases is None:
        return not (view.texts or view.images)
    names = view.cases.values.iloc[:, 0]
    return all(isinstance(name, str) and _PHANTOM.fullmatch(name) for name in names)


def page_of(views: Sequence[RunView], holds: Holding) -> bytes:
    """Return the HTML of a page."""
    import jinja2

    place = files("vlscore.pages") / "templates"
    style, script, source = (
        (place / name).read_text(encoding="utf-8")
        for name in ("report.css", "report.js", "report.html.j2")
    )
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    shown = [
        {
            **vars(view),
            "every_note": [*view.run_notes, *view.notes],
            "parts": _OF_CASES if view.command in _CASES_FIRST else _OF_MEANS,
            "has_open_tables": not view.forests and not view.curves and view.command != "evaluate",
            "is_demonstration": is_demonstration(view.signatures),
        }
        for view in views
    ]
    title = ", ".join(dict.fromkeys(f"{view.name} ({view.command})" for view in views))
    # The browser hashes the text between the tags; Jinja2 must not change it.
    page = environment.from_string(source).render(
        title=printable(title, one_line=True),
        runs=shown,
        version=__version__,
        holds=holds,
        style=_raw(style),
        style_digest=_digest(style),
        script=_raw(script),
        script_digest=_digest(script),
        payload=_packed(plain_value({"runs": views})),
    )
    encoded: bytes = page.encode("utf-8")
    return encoded


def _raw(text: str) -> Any:
    """Mark a file of the package as safe; nothing that comes from a table may pass here."""
    from markupsafe import Markup

    if "</style" in text or "</script" in text:
        raise ValueError("a file of the package would end its own element")
    return Markup(text)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _packed(data: Any) -> str:
    """Return json as gzip in base64: it cannot end its element, and is a fourth as long."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii")


@dataclass(frozen=True)
class ExplainedStudy:
    """Explanation of one study.

    Attributes:
        study: its images and reports, with the sections that were scored.
        score: its values.
        judgement: errors of the candidate, as the judge by rules finds them.
        explanation: shares of the sentences.
        maps: where each sentence of the candidate and of the reference looks on the first image, as
            `maps_to_dict` writes it; None where they were not asked for, or the encoder has no
            local vectors. With `judge-image`: where the evidence of each claim lies, by occlusion.
        claims: claims with the image's verdicts, with `judge-image`.
    """

    study: Study
    score: Score
    judgement: Judgement
    explanation: Explanation
    maps: Mapping[str, Any] | None = None
    claims: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json can write."""
        return {
            **self.score.to_dict(),
            **({"claims": list(self.claims)} if self.claims else {}),
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
        lines = [
            f"{found.metric} {found.score:.4f}; the reference itself has {found.best:.4f}",
            *triangle,
            "what each sentence costs (below 0: it helps): how much better the score is without "
            "it, or with the reference's sentence added",
        ]
        for side, sentences in (("candidate", found.candidate), ("reference", found.reference)):
            lines += [f"  {side}  {each.share:+z.4f}  {each.text}" for each in sentences]
        maps = [] if self.maps is None else ["maps: moved copies that a map beats (chance: half)"]
        if self.claims:
            maps = ["claims: the image's verdict, and the probability that the claim is true"]
            for each in self.claims:
                chance = each["probability"]
                shown = "no evidence" if chance is None else f"{chance:.2f}"
                maps.append(
                    f"  {each['report']}  {each['verdict']:<12}  {shown:<11}  "
                    f"{each['claim']}: {each['finding']}"
                )
        for each in () if self.maps is None or self.claims else self.maps["sentences"]:
            maps.append(f"  {each['beaten']:4.1f} of {each['copies']}  {each['text']}")
        lines += [*maps, "errors, with severity from 1 to 5" if errors else "no error", *errors]
        return "\n".join([*lines, str(found.signature)])

    def write(self, path: str | Path, *, images: bool = False) -> ReportPage:
        """Write a page of the study; it holds both reports, and the images if they are wanted.

        Maps lie on an image, so that a page without images has none.
        """
        import pandas

        (block,) = judged_study(self.study, [error.to_dict() for error in self.judgement.errors])
        block.shares = self.explanation.to_dict()
        block.maps = self.maps if images else None
        block.claims = claims_shown(self.claims)
        block.triangle = triangle_of(self.score.geometry)
        numbers = {name: float(value) for name, value in self.score.values.items()}
        values = pandas.DataFrame([{"study": self.study.id, **numbers}])
        view = RunView("One study", "explain", signatures=[str(self.explanation.signature)])
        view.cases = CaseList(
            "studies", values, "study", main=[*numbers], cases=[[block]], studies=[self.study]
        )
        if images:
            add_images(view, IMAGE_BYTES)
        return write_page(Path(path), [view])


def explain_study(
    scorer: Scorer, images: Sequence[Any], candidate: str, reference: str, *, maps: bool = False
) -> ExplainedStudy:
    """Explain the score of one study.

    Args:
        scorer: its first metric is explained.
        images: paths of the views; empty for metrics that read no image.
        candidate, reference: one report each.
        maps: also compute where each sentence looks on the first image, which embeds some 80
            blurred copies of it for each sentence.

    Raises: InvalidSetting for a metric without a reference; those of `Scorer.score`.
    """
    views = tuple(images)
    shown = views or None
    explanation = explain_with(scorer, shown, candidate, reference)
    score = scorer.score(shown, candidate, reference)
    chosen = select(candidate, scorer.text_policy, "candidate")
    true = select(reference, scorer.text_policy, "reference")
    study = Study("study", views, reference=true, candidate=chosen, row=1)
    judgement = RuleJudge().judge(chosen, true)
    claims: list[dict[str, Any]] = []
    drawn = None
    if scorer.embedder is not None:
        from vlscore.pages.sentence_maps import claims_and_maps  # loads torch

        claims, drawn = claims_and_maps(scorer, views, chosen, true, explanation, maps=maps)
    return ExplainedStudy(study, score, judgement, explanation, drawn, claims)
