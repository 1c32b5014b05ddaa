"""F1 of labels: of each report, and over a corpus, with what it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vlscore.metrics.batch import Values
from vlscore.metrics.library.words import share
from vlscore.metrics.metric import Output

#: The observations of CheXpert's competition (Irvin et al. 2019, section 5).
COMPETITION = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")

#: Averages over the labels of CheXpert, the primary one first. Papers print the F1 of CheXbert as
#: Micro-F1-14, Macro-F1-14, Micro-F1-5 and Macro-F1-5 (Miura et al. 2021; Tu et al. 2024, Med-PaLM
#: M). Fourteen include No Finding, so an always-normal report is right wherever the reference is
#: normal. Five leave out most of what can be wrong, a pneumothorax for one.
LABEL_AVERAGES = tuple(
    Output(f"{average}-{count}", f"{what} {which}")
    for count, which in (
        (13, "thirteen observations: all but No Finding"),
        (14, "fourteen observations, No Finding among them"),
        (5, "five observations of CheXpert's competition"),
    )
    for average, what in (
        ("micro", "F1 of the pooled counts of the"),
        ("macro", "mean F1 of the"),
        ("weighted", "mean F1, weighted by how often the references state each, of the"),
    )
)


def slug(label: str) -> str:
    """Return the name of a label's F1, as in "pleural-effusion"."""
    return label.lower().replace(" ", "-")


def f1_precision_recall(
    tp: Values, fp: Values, fn: Values, of_nothing: float | NDArray[np.float64] = 1.0
) -> list[NDArray[np.float64]]:
    """Compute F1, precision and recall of each report from its counts.

    Args: of_nothing: value of 0 / 0, for all reports or for each; 1: there was nothing to find, and
        nothing was found.
    """
    parts = ((2 * tp, 2 * tp + fp + fn), (tp, tp + fp), (tp, tp + fn))
    return [share(part, whole, of_nothing) for part, whole in parts]


@dataclass(frozen=True)
class LabelF1:
    """F1 over a corpus of groups of labels, and of single labels, from (k, 3 m) sums.

    The sums are true positives, false positives and false negatives of m labels.

    Attributes:
        labels: names of the m labels.
        groups: suffix of a number's name -> the labels from which it is computed.
        shown: labels whose own F1 is a number.
    """

    labels: Sequence[str]
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    shown: Sequence[str] = ()

    @classmethod
    def of_chexpert(cls, labels: Sequence[str], shown: Sequence[str] = ()) -> "LabelF1":
        """Return the F1 of CheXpert's labels, in any order, in the groups of LABEL_AVERAGES."""
        chosen = {"-13": {*labels} - {"No Finding"}, "-14": {*labels}, "-5": {*COMPETITION}}
        groups = {
            suffix: [k for k, name in enumerate(labels) if name in names]
            for suffix, names in chosen.items()
        }
        return cls(labels, groups, shown)

    def values(self, sums: Values, absent: float = np.nan) -> dict[str, Values]:
        """Compute micro, macro and weighted F1 of each group (k,), and the F1 of shown labels.

        Args: absent: F1 of labels that no report has; nan: they are left out of averages. A
            weighted F1 is nan where no reference has any.
        """
        tp, fp, fn = np.split(sums, 3, axis=1)
        f1 = share(2 * tp, 2 * tp + fp + fn, np.nan)
        found = self._of_shown(f1)
        of_all = np.where(np.isnan(f1), absent, f1)
        for suffix, chosen in self.groups.items():
            t, p, n = (x[:, chosen].sum(1) for x in (tp, fp, fn))
            stated = (tp + fn)[:, chosen]
            total = (stated * np.nan_to_num(f1[:, chosen])).sum(1)
            found[f"micro{suffix}"] = share(2 * t, 2 * t + p + n, absent)
            found[f"macro{suffix}"] = mean_of_defined(of_all[:, chosen])
            found[f"weighted{suffix}"] = share(total, stated.sum(1), absent)
        return found

    def supports(self, sums: Values) -> dict[str, Values]:
        """Return how many times the references state the labels of each number.

        A micro and a weighted F1 rest on all of them; a macro F1 on the rarest label that has an
        F1, whose few mentions weigh as much as all those of another.
        """
        tp, fp, fn = np.split(sums, 3, axis=1)
        stated = tp + fn
        found = self._of_shown(stated)
        rarest = np.where(tp + fp + fn > 0, stated, np.inf)
        for suffix, chosen in self.groups.items():
            found[f"micro{suffix}"] = found[f"weighted{suffix}"] = stated[:, chosen].sum(1)
            fewest = rarest[:, chosen].min(1)
            found[f"macro{suffix}"] = np.where(np.isfinite(fewest), fewest, 0.0)
        return found

    def _of_shown(self, values: Values) -> dict[str, Values]:
        return {slug(name): values[:, self.labels.index(name)] for name in self.shown}


def mean_of_defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute (k,) means of (k, m) values over those that are not nan; nan if all are."""
    is_defined = ~np.isnan(values)
    total = np.where(is_defined, values, 0.0).sum(1)
    return share(total, is_defined.sum(1).astype(np.float64), np.nan)
