"""Perturbations of one report."""

from collections.abc import Iterable, Iterator, Sequence

from vlscore.perturb.consistency import consistent
from vlscore.perturb.edits import Chance, Perturbation, PerturbationSettings, apply_edits
from vlscore.perturb.parsed_report import ParsedReport
from vlscore.perturb.registry import AnyKind, Kind, kinds_named
from vlscore.perturb.standard_normal import default_standard_normal

# After so many refusals in a row a kind gives a report up, so that time stays linear in its length.
# Of 2,708 real reports none has more than 42.
_MOST_REFUSALS = 200


def perturb_report(
    report: str,
    kinds: Iterable[AnyKind] | AnyKind | None = None,
    seed: int = 0,
    *,
    per_report: int = 1,
    study_id: str = "",
    standard_normal: str | None = None,
) -> Iterator[Perturbation]:
    """Yield changed copies of a report, each with one targeted change.

    Args:
        report: free text; what it allows decides what is generated, which may be nothing.
        kinds, seed, per_report: see `PerturbationSettings`.
        study_id: goes into the records.
        standard_normal: text that stands for a normal report; default: the recipe's own.

    Raises: UnknownName for an unknown kind; InvalidSetting for an object that is none, or where
        `per_report` is below 1; InvalidReport where the report is no text.

    >>> report = "Small left pleural effusion. Heart size is normal."
    >>> for p in perturb_report(report, ["change-location"]):
    ...     print(p.perturbed, "|", p.rule)
    Small right pleural effusion. Heart size is normal. | side:left->right pleural_effusion
    """
    settings = PerturbationSettings(kinds=kinds, seed=seed, per_report=per_report)
    chosen = kinds_named(settings.kinds)
    source = ParsedReport.read(report, standard_normal or default_standard_normal())
    for kind in chosen:
        yield from perturbations_of(source, kind, seed, per_report, study_id)


def perturbations_of(
    source: ParsedReport,
    kind: Kind,
    seed: int,
    per_report: int,
    study_id: str,
    refused: list[str] | None = None,
) -> Iterator[Perturbation]:
    """Yield at most `per_report` different changes of one kind, each checked against the report.

    Args:
        refused: list to which the reasons of refused changes are added.
    """
    if source.is_foreign:
        return
    # A change of white space alone is none.
    known = {" ".join(source.text.split()), ""}
    count = in_a_row = 0
    for proposed in kind.changes(source, Chance(seed, study_id, kind.name)):
        change, reason = consistent(source, proposed)
        if change is None:
            if refused is not None:
                refused.append(reason)
            in_a_row += 1
            if in_a_row == _MOST_REFUSALS:
                return
            continue
        in_a_row = 0
        edits = change.edits
        if source.text.isupper():
            edits = tuple(e._replace(replacement=e.replacement.upper()) for e in edits)
        perturbed = apply_edits(source.text, edits)
        key = " ".join(perturbed.split())
        if key in known:
            continue
        known.add(key)
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
        count += 1
        if count == per_report:
            return


def why_nothing(source: ParsedReport, kind: Kind, refused: Sequence[str] = ()) -> str:
    """Return a message why a kind found nothing to change, or why its changes were refused.

    Args:
        refused: reasons that `perturbations_of` has added.
    """
    if refused:
        return refused[0]
    if not source.sentences:
        return "the report has no sentence"
    if source.is_foreign:
        return "the report is not in English"
    return kind.nothing
