"""The kinds of perturbation by name; a new kind is one file under `kinds/` and one line here."""

from collections.abc import Iterable

from vlscore.errors import UnknownName
from vlscore.perturb.kind import Kind
from vlscore.perturb.kinds.add_false_finding import AddFalseFinding
from vlscore.perturb.kinds.affirm_finding import AffirmFinding
from vlscore.perturb.kinds.change_location import ChangeLocation
from vlscore.perturb.kinds.change_severity import ChangeSeverity
from vlscore.perturb.kinds.drop_comparison import DropComparison
from vlscore.perturb.kinds.invent_comparison import InventComparison
from vlscore.perturb.kinds.negate_finding import NegateFinding
from vlscore.perturb.kinds.paraphrase import Paraphrase
from vlscore.perturb.kinds.remove_insignificant import RemoveInsignificant
from vlscore.perturb.kinds.remove_pathology import RemovePathology
from vlscore.perturb.kinds.replace_uninformative import ReplaceUninformative
from vlscore.perturb.kinds.shuffle_sentences import ShuffleSentences
from vlscore.perturb.kinds.standard_normal import StandardNormal
from vlscore.perturb.kinds.unmention_negatives import UnmentionNegatives

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        RemovePathology(),
        RemoveInsignificant(),
        ChangeLocation(),
        ChangeSeverity(),
        ReplaceUninformative(),
        StandardNormal(),
        NegateFinding(),
        AffirmFinding(),
        AddFalseFinding(),
        DropComparison(),
        InventComparison(),
        ShuffleSentences(),
        Paraphrase(),
        UnmentionNegatives(),
    )
}


def kinds_named(names: Iterable[str] | None) -> list[Kind]:
    """The kinds with these names, in the order of the registry; all by default.

    Raises: UnknownName listing the kinds there are.
    """
    if names is None:
        return list(KINDS.values())
    wanted = set(names)
    unknown = sorted(wanted - KINDS.keys())
    if unknown:
        raise UnknownName(
            f"no kind of perturbation is called {', '.join(unknown)}; there are {', '.join(KINDS)}"
        )
    return [kind for name, kind in KINDS.items() if name in wanted]
