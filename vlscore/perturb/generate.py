"""From one report to its perturbations."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from vlscore.errors import InvalidSetting
from vlscore.perturb.chance import Chance
from vlscore.perturb.consistency import consistent
from vlscore.perturb.kind import Kind, NeedsStandardNormal
from vlscore.perturb.perturbation import Perturbation, apply_edits
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.registry import AnyKind, kinds_named
from vlscore.perturb.standard import default_standard_normal

# After so many refusals on end a kind gives a report up, so that time stays linear in its length.
# Of 2,708 real reports none has more than 42.
_MOST_REFUSALS = 200


def perturb(
    report: str,
    kinds: Iterable[AnyKind] | AnyKind | None = None,
    seed: int = 0,
    *,
    per_report: int = 1,
    study_id: str = "",
    standard_normal: str | None = None,
) -> Iterator[Perturbation]:
    """Changed copies of a report, each with one targeted change.

    Args:
        report: free text; what it allows decides what is generated, which may be nothing.
        kinds: names of kinds (see `KINDS`), "package.module:MyKind", or kinds of your own as
            objects; default: all that are registered.
        seed: with `study_id` and the kind, decides every choice.
        per_report: most changes of each kind.
        study_id: goes into the records.
        standard_normal: text that stands for a normal report; default: the recipe's own.

    Raises: UnknownName for an unknown kind; InvalidSetting for an object that is none, or where
        `per_report` is below 1; InvalidReport where the report is no text.

    >>> for p in perturb("Small left pleural effusion. Heart size is normal.", ["change-location"]):
    ...     print(p.perturbed, "|", p.rule)
    Small right pleural effusion. Heart size is normal. | side:left->right pleural_effusion
    """
    chosen = kinds_named(kinds)
    check_per_report(per_report)
    source = ReadReport.read(report, standard_normal or default_standard_normal())
    for kind in chosen:
        yield from perturbations_of(source, kind, seed, per_report, study_id)


def perturbations_of(
    source: ReadReport,
    kind: Kind,
    seed: int,
    per_report: int,
    study_id: str,
    refused: list[str] | None = None,
) -> Iterator[Perturbation]:
    """At most `per_report` changes of one kind, no two alike, each checked against the report.

    Args:
        refused: takes why changes were refused that the kind proposed.
    """
    chance = Chance(seed, study_id, kind.name)
    found = _distinct(source, kind, chance, study_id, [] if refused is None else refused)
    return islice(found, per_report)


def _distinct(
    source: ReadReport, kind: Kind, chance: Chance, study_id: str, refused: list[str]
) -> Iterator[Perturbation]:
    if source.is_foreign:
        return
    seen = {source.squeezed}
    on_end = 0
    for proposed in kind.changes(source, chance):
        change, reason = consistent(source, proposed)
        if change is None:
            refused.append(reason)
            on_end += 1
            if on_end == _MOST_REFUSALS:
                return
            continue
        on_end = 0
        edits = change.edits
        if source.is_upper_case:
            edits = tuple(e._replace(replacement=e.replacement.upper()) for e in edits)
        perturbed = apply_edits(source.text, edits)
        key = " ".join(perturbed.split())
        if key in seen or not key:
            continue
        seen.add(key)
        yield Perturbation(
            study_id=study_id,
            kind=kind.name,
            expected=kind.expected,
            category=kind.category,
            original=source.text,
            perturbed=perturbed,
            edits=edits,
            rule=change.rule,
        )


def check_per_report(per_report: int) -> None:
    """Raises InvalidSetting where it is below 1."""
    if per_report < 1:
        raise InvalidSetting(f"per_report is at least 1, not {per_report}")


def why_nothing(source: ReadReport, kind: Kind, refused: Sequence[str] = ()) -> str:
    """In words for the user, why a kind found nothing to change, or why what it found was refused.

    Args:
        refused: what `perturbations_of` left there.
    """
    if refused:
        return refused[0]
    if not source.sentences:
        return "the text holds no sentence"
    if source.is_foreign:
        return "the text is not in English"
    if isinstance(kind, NeedsStandardNormal) and source.standard_normal is None:
        return "there is no standard normal report"
    return kind.nothing
