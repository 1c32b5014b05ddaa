"""What metrics lose by each kind of change, whether the image counts, tables and figures.

Source: Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024: Table 2 (removing a pathology's sentence
against an insignificant one), Table 3 (another place or severity against [UNK] for a word that
says nothing), Figure 2 (normal reports replaced by a standard normal report).

Swapped images show whether the image counts: the same candidates with the right image, another
study's and a black one. A metric that never looks at the image gives the same values and ranks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnPhase, frame, no_phase
from vlscore.errors import InvalidSetting
from vlscore.evaluation.command_settings import IN_SAMPLE
from vlscore.evaluation.sensitivities.changed_pairs import Array, ScoredPairs, score_pairs
from vlscore.evaluation.study_images import Shown
from vlscore.metrics import (
    Scorer,
    find_metric,
    named_as_in_papers,
    paper_name,
)
from vlscore.perturb import KINDS
from vlscore.stats import (
    COLOURS,
    Interval,
    TextTable,
    auc,
    benjamini_hochberg,
    correlation_interval,
    dot_plots,
    figure_style,
    finish,
    grouped_auc,
    grouped_difference,
    grouped_mean,
    grouped_ratio,
    interval_in,
    new_figure,
    note_with_mark,
    paired_p_value,
    places_by_group,
    text_table,
    two_sample_p_value,
    with_mark,
)

if TYPE_CHECKING:
    from pandas import DataFrame

NORMAL_KIND = "standard-normal"
#: Table of the paper, significant kind and its control.
COMPARISONS = (
    ("Table 2", "remove-pathology", "remove-insignificant"),
    ("Table 3", "change-location", "replace-uninformative"),
    ("Table 3", "change-severity", "replace-uninformative"),
)


def compare_kinds(
    pairs: "DataFrame",
    scored: ScoredPairs,
    *,
    resamples: int = 2000,
    seed: int = 0,
    on_phase: OnPhase = no_phase,
) -> "dict[str, DataFrame]":
    """Return what every metric loses by each kind of change; intervals resample studies.

    Returns:
        "kinds": metric, kind, is_significant, pairs, studies, value (mean of the perturbed
            reports), drop (mean loss against the unperturbed report; above 0 is worse).
        "contrasts": of a kind and its control: delta (difference of their mean drops), ratio (of
            these, nan where the interval of the control's holds 0), auc (chance that the
            significant change drops further), test, p_value; adjusted_p (Benjamini-Hochberg over
            all contrasts of the run).
        "normal": value of every normal report against the standard one.
        "strengths": a row a metric: sees (chance that a significant change costs more than a
            harmless one; .5: it cannot tell them apart), ignores (1 less the mean absolute change
            by a harmless one over the mean drop of a significant one; 1: harmless changes move
            nothing), significant and harmless (numbers of pairs).
        "metrics": name, higher_is_better, n (pairs with both values).
    """
    study, kind = pairs["study_id"].to_numpy(dtype=object), pairs["kind"].to_numpy(dtype=object)
    significant = dict(zip(kind, pairs["is_significant"].tolist(), strict=True))
    common = np.all([np.isfinite(v).all(0) for v in scored.values.values()], axis=0)
    there = [name for name in dict.fromkeys([*KINDS, *kind]) if (common & (kind == name)).any()]
    rows_of = {name: np.flatnonzero(common & (kind == name)) for name in there}
    options: dict[str, Any] = {"resamples": resamples, "seed": seed}
    kinds, contrasts, normal, strengths = [], [], [], []
    resampling = on_phase("resampling metrics", len(scored.values))
    for number, name in enumerate(scored.values, start=1):
        drops, values = scored.drop(name), scored.values[name][1]
        drop_of = {k: (drops[rows], study[rows].tolist()) for k, rows in rows_of.items()}
        for k, (drop, studies) in drop_of.items():
            value = values[rows_of[k]]
            kinds.append(
                {
                    "metric": name,
                    "kind": k,
                    "is_significant": significant[k],
                    "pairs": len(studies),
                    "studies": len(set(studies)),
                    "value": grouped_mean(value, studies, **options),
                    "drop": grouped_mean(drop, studies, **options),
                }
            )
            if k == NORMAL_KIND:
                normal += [{"metric": name, "value": each} for each in value.tolist()]
        strengths += _strengths(name, drop_of, significant, options)
        mean_of = {each["kind"]: each["value"] for each in kinds if each["metric"] == name}
        contrasts += [
            {
                "metric": name,
                "table": table,
                "significant": of,
                "control": control,
                "value": mean_of[of],
                "control_value": mean_of[control],
                **_contrast(drop_of[of], drop_of[control], options),
            }
            for table, of, control in COMPARISONS
            if {of, control} <= drop_of.keys()
        ]
        resampling(number, 0)
    for each, p in zip(
        contrasts, benjamini_hochberg([each["p_value"] for each in contrasts]), strict=True
    ):
        each["adjusted_p"] = float(p)
    found = {"kinds": kinds, "contrasts": contrasts, "normal": normal, "strengths": strengths}
    return {"metrics": scored.metrics(), **{name: frame(rows) for name, rows in found.items()}}


def _strengths(
    metric: str,
    drop_of: Mapping[str, tuple[Array, Sequence[str]]],
    significant: Mapping[str, bool],
    options: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return how well a metric tells all significant changes from all harmless ones.

    A standard normal report in place of a normal one is another text, so it is neither.
    """
    kinds = [kind for kind in drop_of if kind != NORMAL_KIND]
    (drop, studies), (other, other_studies) = (
        (
            np.concatenate(
                [np.empty(0), *(drop_of[k][0] for k in kinds if significant[k] == is_so)]
            ),
            [study for k in kinds if significant[k] == is_so for study in drop_of[k][1]],
        )
        for is_so in (True, False)
    )
    if not len(drop) or not len(other):
        return []
    is_significant = np.arange(len(drop) + len(other)) < len(drop)
    cost = grouped_ratio(np.abs(other), other_studies, drop, studies, **options)
    return [
        {
            "metric": metric,
            "sees": grouped_auc(
                np.concatenate([drop, other]),
                is_significant,
                [*studies, *other_studies],
                **options,
            ),
            "ignores": Interval(1 - cost.estimate, 1 - cost.high, 1 - cost.low),
            "significant": len(drop),
            "harmless": len(other),
        }
    ]


def _contrast(
    of: tuple[Array, Sequence[str]],
    control: tuple[Array, Sequence[str]],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Compare the drops of a kind, and their studies, with those of its control."""
    (drop, studies), (other, other_studies) = of, control
    mine, theirs = _by_study(studies, drop), _by_study(other_studies, other)
    both = sorted(mine.keys() & theirs.keys())
    # Wilcoxon's test over the studies that have both kinds, where these are at least half.
    if 2 * len(both) >= len(mine.keys() | theirs.keys()):
        test = "Wilcoxon signed-rank"
        p_value = paired_p_value([mine[s] for s in both], [theirs[s] for s in both])
    else:
        test = "Mann-Whitney U"
        p_value = two_sample_p_value(list(mine.values()), list(theirs.values()))
    means = [grouped_mean(drop, studies, **options), grouped_mean(other, other_studies, **options)]
    excludes_0 = means[1].low > 0 or means[1].high < 0
    return {
        "delta": grouped_difference(drop, studies, other, other_studies, **options),
        "significant_drop": means[0],
        "control_drop": means[1],
        "pairs": len(drop),
        "control_pairs": len(other),
        "ratio": means[0].estimate / means[1].estimate if excludes_0 else float("nan"),
        "auc": auc(drop, other),
        "test": test,
        "p_value": p_value,
    }


def _by_study(studies: Sequence[str], values: Array) -> dict[str, float]:
    """Return study -> mean of its values."""
    return {s: float(values[rows].mean()) for s, rows in places_by_group(studies).items()}


def image_swap(
    pairs: "DataFrame",
    scorer: Scorer,
    shown: Shown,
    *,
    resamples: int = 2000,
    seed: int = 0,
    workers: int = 0,
) -> "DataFrame":
    """Compare the metrics of the image with another study's image, and with a black one.

    `cosine`, which does not look at the image, is the control. The perturbed reports are the
    candidates. All metrics are compared on the pairs that each has a value for, whatever the image.

    Returns: a row a metric and image: right, wrong (mean values), shift (mean absolute change),
        relative_shift (over the standard deviation of the values with the right image), preference
        (chance that a candidate does better with the right image; ties count half),
        rank_agreement (tau_b of all candidates), rank_agreement_within (of those of one study,
        averaged over studies), detection_right and detection_wrong (areas under the ROC curve by
        which the values tell significant from insignificant changes), test, p_value, adjusted_p.
    Raises: InvalidSetting without images of two studies.
    """
    from vlscore.embedding import StudyViews

    embedder = scorer.embedder
    if embedder is None:
        raise InvalidSetting("swapping images needs images: pass a table of studies")
    looking = [m for m in scorer.metrics if m.uses_embeddings and m.uses_image]
    control = [m for m in scorer.metrics if m.name == "cosine"] or [find_metric("cosine")]
    scorer = scorer.of_some([*looking, *control])

    def values(images: Shown) -> dict[str, Array]:
        scored = score_pairs(pairs, scorer, images, which=["perturbed"], workers=workers)
        return {name: each[0] for name, each in scored.values.items()}

    right = values(shown)
    is_right = np.all([np.isfinite(each) for each in right.values()], axis=0)
    donor = _donors(sorted(set(pairs["study_id"][is_right])), seed)
    black = embedder.embed_black()
    wrong = {
        "other study": values(lambda study: shown(donor.get(study, study))),
        "black": values(lambda study: StudyViews((), vector=black)),
    }
    every = [each for found in wrong.values() for each in found.values()]
    rows = np.flatnonzero(is_right & np.all([np.isfinite(each) for each in every], axis=0))
    if not len(rows):
        raise InvalidSetting("none of the pairs could be embedded")
    study, significant = pairs["study_id"][rows].tolist(), pairs["is_significant"][rows].to_numpy()
    found = [
        {
            "metric": str(metric),
            "signature": str(scorer.signatures[str(metric)]),
            "image": image,
            "pairs": len(rows),
            **_swap(
                right[str(metric)][rows],
                values_of[str(metric)][rows],
                metric.sign,
                study,
                significant,
                {"resamples": resamples, "seed": seed},
            ),
        }
        for metric in scorer.metrics
        for image, values_of in wrong.items()
    ]
    adjusted = benjamini_hochberg([each["p_value"] for each in found])
    return frame({**each, "adjusted_p": float(p)} for each, p in zip(found, adjusted, strict=True))


def _donors(studies: Sequence[str], seed: int) -> dict[str, str]:
    """Return study -> the study whose image it is shown: the next one in a shuffled cycle."""
    if len(studies) < 2:
        raise InvalidSetting("swapping images needs two studies at least")
    shuffled = np.random.default_rng(seed).permutation(len(studies)).tolist()
    following = [*shuffled[1:], shuffled[0]]
    return {studies[k]: studies[n] for k, n in zip(shuffled, following, strict=True)}


def _swap(
    right: Array,
    wrong: Array,
    sign: int,
    studies: Sequence[str],
    significant: NDArray[np.bool_],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    spread, moved = float(right.std()), np.abs(right - wrong)
    better = np.sign(sign * (right - wrong)) / 2 + 0.5
    has_both = significant.any() and not significant.all()
    means = (list(_by_study(studies, each).values()) for each in (right, wrong))
    p_value = paired_p_value(*means)
    return {
        "right": grouped_mean(right, studies, **options),
        "wrong": grouped_mean(wrong, studies, **options),
        "shift": grouped_mean(moved, studies, **options),
        "relative_shift": float(moved.mean() / spread) if spread > 0 else float("nan"),
        "preference": grouped_mean(better, studies, **options),
        "rank_agreement": correlation_interval(right, wrong, groups=studies, **options),
        "rank_agreement_within": _within_studies(studies, right, wrong, options),
        **{
            name: grouped_auc(-sign * values, significant, studies, **options) if has_both else None
            for name, values in (("detection_right", right), ("detection_wrong", wrong))
        },
        "test": "Wilcoxon signed-rank",
        "p_value": p_value,
    }


def _within_studies(
    studies: Sequence[str], right: Array, wrong: Array, options: Mapping[str, Any]
) -> Interval | None:
    """Return the mean tau_b within studies; None without candidates of different values."""
    found = {}
    for study, rows in places_by_group(studies).items():
        x, y = (np.sign(values[rows][:, None] - values[rows]) for values in (right, wrong))
        if (untied := float(np.abs(x).sum() * np.abs(y).sum())) > 0:
            found[study] = float((x * y).sum()) / untied**0.5
    return grouped_mean(list(found.values()), list(found), **options) if found else None


_STRENGTHS = (
    "sees: chance that a significant change costs more than a harmless one (.5: the metric cannot "
    "tell them apart). ignores: 1 less the mean absolute change by a harmless one over the mean "
    "drop of a significant one (1: harmless changes move nothing; below 0: they move more). 95 % "
    "bootstrap intervals over studies; pairs of each."
)
_CONTRAST = (
    "Δ: difference of the two mean drops, 95 % bootstrap interval over studies. ratio: of these "
    "drops, where the interval of the control's excludes 0. AUC: chance that the significant "
    "change drops further. p: Wilcoxon or Mann-Whitney (result.json says which), adjusted "
    "(Benjamini-Hochberg). n: pairs of the change and of the control."
)
_COMPARED = {
    "Table 2": "Removed sentences: a pathology's against an insignificant one",
    "Table 3": "Changed words against [UNK] for a word that says nothing",
}
_IN_SAMPLE = (
    f"{IN_SAMPLE}: the metric reads reports by the rules that found what to change, so it notices "
    "what these rules read, and its numbers are no evidence of quality."
)
_SWAP = (
    "shift: mean absolute change, in units of the metric's spread. prefers right: share of "
    "candidates that do better with the right image. rank agreement: tau_b of all candidates; "
    "within a study. detection: area under the ROC curve, significant against insignificant "
    "changes, right and wrong image."
)


def sensitivity_tables(
    frames: "Mapping[str, DataFrame]", signatures: Mapping[str, Any], in_sample: Collection[str]
) -> list[TextTable]:
    """Return the tables of the paper, of all kinds, and of swapped images; those that have rows.

    Args: in_sample: metrics that read reports by the rules which found what was changed; tables
        mark them.
    """
    tables = [_strengths_table(frames["strengths"])]
    tables += [_contrast_table(frames["contrasts"], name) for name in _COMPARED]
    tables += [_normal_table(frames), _kinds_table(frames["kinds"])]
    if "swaps" in frames:
        tables.append(_swap_table(frames["swaps"]))
    names = {paper_name(name) for name in in_sample}
    shown = (_marked(named_as_in_papers(table), names) for table in tables if table.rows)
    return with_mark(shown, signatures.values())


def _strengths_table(strengths: "DataFrame") -> TextTable:
    columns = {name: name for name in ("metric", "sees", "ignores", "significant", "harmless")}
    return text_table("What a metric sees, what it ignores", strengths, _STRENGTHS, columns=columns)


def _marked(table: TextTable, names: Collection[str]) -> TextTable:
    """Return the table with a mark at these metrics, and what it means."""

    def mark(cell: str) -> str:
        return f"{cell} ({IN_SAMPLE})" if cell in names else cell

    rows = tuple((mark(row[0]), *row[1:]) for row in table.rows)
    columns = tuple(map(mark, table.columns))
    if (rows, columns) == (table.rows, table.columns):
        return table
    caption = f"{table.caption} {_IN_SAMPLE}".strip()
    return replace(table, rows=rows, columns=columns, caption=caption)


def _contrast_table(contrasts: "DataFrame", name: str) -> TextTable:
    title = f"{name}. {_COMPARED[name]}"
    if contrasts.empty:
        return TextTable(title, (), ())
    rows = contrasts[contrasts["table"] == name]
    rows = rows.assign(
        drop=rows["significant_drop"],
        other=rows["control_drop"],
        n=[f"{a} / {b}" for a, b in zip(rows["pairs"], rows["control_pairs"], strict=True)],
    )
    columns = {"metric": "metric", "significant": "change", "value": "mean"}
    columns |= {"control_value": "control's mean", "drop": "drop", "other": "control's drop"}
    columns |= {"delta": "Δ", "ratio": "ratio", "auc": "AUC", "adjusted_p": "p", "n": "n"}
    return text_table(title, rows, _CONTRAST, columns=columns)


def _normal_table(frames: "Mapping[str, DataFrame]") -> TextTable:
    """Return the numbers of Figure 2: normal reports against the standard normal report."""
    title, kinds = "Standard normal report for a normal one", frames["kinds"]
    if frames["normal"].empty:
        return TextTable(title, (), ())
    quantiles = frames["normal"].groupby("metric")["value"].quantile([0.05, 0.5, 0.95]).unstack()
    quantiles.columns = ["5 %", "median", "95 %"]
    rows = kinds[kinds["kind"] == NORMAL_KIND].merge(quantiles, left_on="metric", right_index=True)
    columns = {"metric": "metric", "pairs": "pairs", "value": "mean"}
    return text_table(title, rows, columns=columns | {name: name for name in quantiles})


def _kinds_table(kinds: "DataFrame") -> TextTable:
    """Return mean drop of every kind there is, one column a metric; significant kinds first."""
    title, columns = "Mean drop by kind (above 0 is worse)", ["kind", "pairs", "studies"]
    if kinds.empty:
        return TextTable(title, (), ())
    metrics = {str(name): rows for name, rows in kinds.groupby("metric", sort=False)}
    first = next(iter(metrics.values()))
    shown = first[columns].reset_index(drop=True)
    meaning = first["is_significant"].map({True: "significant", False: "insignificant"})
    shown.insert(1, "meaning", meaning.to_numpy())
    for name, rows in metrics.items():
        for bound in ("", ".low", ".high"):
            shown[f"{name}{bound}"] = rows[f"drop{bound}"].to_numpy()
    return text_table(title, shown.sort_values("meaning", ascending=False, kind="stable"))


def _swap_table(swaps: "DataFrame") -> TextTable:
    """Return whether the image counts: right image against another study's and a black one."""
    columns = {name: name for name in ("metric", "image", "pairs", "right", "wrong")}
    columns |= {"relative_shift": "shift / sd", "preference": "prefers right"}
    columns |= {"rank_agreement": "rank agreement", "rank_agreement_within": "within study"}
    columns |= {"detection_right": "detection", "detection_wrong": "wrong image's detection"}
    title = "Does the image count? Right image against a wrong one"
    return text_table(title, swaps, _SWAP, columns=columns | {"adjusted_p": "p"})


#: Names of the figures, without suffix.
FIGURES = ("drops", "normal_reports")


def draw_sensitivity(
    frames: "Mapping[str, DataFrame]", signatures: Mapping[str, Any], folder: Path, format: str
) -> list[Path]:
    """Draw drops by kind, and Figure 2 of the paper, into a folder; return their paths.

    Raises: MissingDependency where matplotlib is not installed.
    """
    drops, normal = (folder / f"{name}.{format}" for name in FIGURES)
    kinds = frames["kinds"].sort_values("is_significant", ascending=False, kind="stable")
    panels = {
        str(name): {
            f"{r['kind']} ({'should' if r['is_significant'] else 'should not'} notice)": (
                interval_in(r, "drop")
            )
            for r in rows.to_dict("records")
        }
        for name, rows in kinds.groupby("metric", sort=False)
    }
    note = note_with_mark(
        "Above 0 is worse; bars: 95 % bootstrap intervals over studies.", signatures.values()
    )
    lines = {name: {"": 0.0} for name in panels}
    dot_plots(panels, drops, title="Mean drop by kind", lines=lines, note=note)
    if frames["normal"].empty:
        return [drops]
    # Metrics of which lower is better have no common scale.
    better = set(frames["metrics"].query("higher_is_better")["name"])
    shown = {
        str(name): rows["value"].tolist()
        for name, rows in frames["normal"].groupby("metric", sort=False)
        if name in better
    }
    _draw_normal(shown, normal, map(str, signatures.values()))
    return [drops, normal]


def _draw_normal(shown: Mapping[str, list[float]], path: Path, signatures: Iterable[str]) -> None:
    note = note_with_mark("Box: quartiles; whiskers: 5 % and 95 %.", signatures)
    with figure_style():
        figure = new_figure(len(shown) + 2)
        axes = figure.subplots()
        if shown:
            axes.boxplot(
                list(shown.values()),
                orientation="horizontal",
                whis=(5, 95),
                medianprops={"color": COLOURS[1]},
                flierprops={"markersize": 2},
            )
            axes.set_yticks(range(1, len(shown) + 1), list(shown))
        axes.invert_yaxis()
        axes.set_xlabel("value for a standard normal report")
        finish(figure, path, "Normal reports", note)
