"""Columns of published tables under one name, as in `--metrics rexrank`.

A preset is one entry of `PRESETS`: which numbers a table prints, each with the settings of its
metric, and which section of the reports. `--metrics`, `Scorer` and `vlscore metrics` read it here.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """The columns of a published table.

    Attributes:
        description: whose columns they are.
        numbers: metric with its settings -> the numbers of it that are printed: "mean" for the
            mean over reports, else the name of a value of the whole corpus.
        section: which section of the reports, as `TextPolicy.named` reads it.
        left_out: what the published table has and this one has not.
        source: where it can be looked up.
    """

    description: str
    numbers: Mapping[str, tuple[str, ...]]
    section: str
    left_out: str
    source: str


_FINDINGS = "reference=findings,candidate=all"

PRESETS: dict[str, Preset] = {
    "rexrank": Preset(
        "the seven columns of ReXrank's board of findings; systems are ranked by 1/RadCliQ-v1, "
        "the inverse of its mean",
        {
            "radcliq-v1": ("inverse",),
            # The other inputs of RadCliQ, with the settings of CXR-Report-Metric.
            "bleu-2(smoothing=floor,tokens=cxr)": ("mean",),
            "bert-score(model=distilroberta-base,layer=5,rescale=library,blanks=collapsed)": (
                "mean",
            ),
            "chexbert-similarity": ("mean",),
            "radgraph-f1": ("mean",),
            "ratescore": ("mean",),
            "green": ("mean",),
        },
        _FINDINGS,
        "1/FineRadScore, which a language model at a service computes, and earlier boards had; its "
        "private test set",
        "github.com/rajpurkarlab/ReXrank-metric, scripts/aggregate_metrics.py; Zhang et al. 2024, "
        "ReXrank, arXiv:2411.15122",
    ),
    "r2gen": Preset(
        "the columns of papers since R2Gen: words as pycocoevalcap counts them on lower-case "
        "texts; F1 of CheXbert's labels, uncertain as positive, an absent label as 0",
        {
            **{f"bleu-{n}(tokens=cxr)": ("corpus",) for n in (1, 2, 3, 4)},
            "meteor": ("corpus",),
            "rouge-l(beta=1.2,tokens=blanks)": ("mean",),
            "cider-d(tokens=cxr)": ("mean",),
            "chexbert-f1(absent=zero)": (
                *(f"{average}-14" for average in ("micro", "macro", "weighted")),
                *(f"{average}-5" for average in ("micro", "macro", "weighted")),
            ),
        },
        _FINDINGS,
        "precision and recall over the corpus; R2Gen's cleaning, which deletes punctuation and the "
        "numbers of lists in both reports: clean the texts first to compare with its numbers",
        "Chen et al. 2020, R2Gen, EMNLP (words); Smit et al. 2020, CheXbert, and f1chexbert 0.0.2 "
        "(labels)",
    ),
}
