"""Metrics as people choose among them.

`vlscore metrics`: what can be computed.
"""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from vlscore.cli.output import echo

if TYPE_CHECKING:
    from vlscore.metrics import Metric

_WIDTH = 80
_INDENT = 25
_COSTS = {
    "free": "no model, no network",
    "model": "runs a neural network",
    "paid": "a service may charge money",
}


def metrics_text(metrics: "Iterable[Metric]") -> str:
    """Return name, direction and what it is of each metric, by what it reads, in 80 columns.

    Of a description, what comes before its first semicolon.
    """
    groups: dict[str, list[str]] = {}
    marked = False
    for metric in metrics:
        missing = metric.missing()
        marked = marked or bool(missing)
        direction = "↑" if metric.higher_is_better else "↓"
        sign = (direction if metric.has_direction else "–") + ("*" if missing else " ")
        head = f"  {metric!s:<{_INDENT - 5}} {sign}"
        groups.setdefault(_group(metric), []).append(
            textwrap.fill(
                metric.description.partition(";")[0],
                _WIDTH,
                initial_indent=f"{head} ",
                subsequent_indent=" " * (len(head) + 1),
                break_long_words=False,
            )
        )
    blocks = ["\n".join([f"{heading}:", *lines]) for heading, lines in groups.items()]
    notes = ["↑ higher is better, ↓ lower, – neither. `vlscore metrics NAME` describes one."]
    if marked:
        notes.append("* needs a library or a file that is not here; the same command names it.")
    return "\n\n".join([*blocks, "\n".join(notes)])


def _group(metric: "Metric") -> str:
    if metric.uses_embeddings:
        return "Of an encoder's embeddings of image, candidate and reference"
    if metric.uses_reference:
        return "Of the texts of candidate and reference"
    return "Of the candidate's text alone"


def metric_text(metric: "Metric") -> str:
    """All that is known of one metric, a fact a line."""
    missing = metric.missing()
    direction = f"{'higher' if metric.higher_is_better else 'lower'} is better"
    direction = direction if metric.has_direction else "neither higher nor lower is better"
    low, high = ("unbounded" if bound is None else f"{bound:.4g}" for bound in metric.bounds)
    facts = {
        "what": metric.description,
        "reads": _inputs(metric),
        "direction": f"{direction}, from {low} to {high}",
        "cost": _COSTS[metric.cost],
        "computed by": metric.library,
        "signature": _signature(metric) if not missing else "",
        "missing": missing or "",
        "citation": metric.citation,
    }
    blocks = [str(metric), *(_fact(name, value) for name, value in facts.items() if value)]
    for parameter in metric.parameters:
        choices = f" ({', '.join(map(str, parameter.choices))})" if parameter.choices else ""
        default = "" if parameter.default is None else f" [default: {parameter.default}]"
        blocks.append(_fact(parameter.name, f"{parameter.description}{choices}{default}", "  "))
    for output in metric.further:
        blocks.append(_fact(f"{metric.name}.{output.name}", output.description, "  "))
    for output in metric.corpus:
        blocks.append(_fact(f"corpus {output.name}", output.description, "  "))
    return "\n".join(blocks)


def presets_text() -> str:
    """Return name and description of each group and preset, in 80 columns."""
    from vlscore.metrics import GROUPS, PRESETS

    groups = [_fact(name, what, "  ") for name, (what, _) in GROUPS.items()]
    presets = [_fact(name, preset.description, "  ") for name, preset in PRESETS.items()]
    return "\n".join(["Groups:", *groups, "", "Presets, columns of published tables:", *presets])


def preset_text(name: str) -> str:
    """All that is known of one preset, a fact a line."""
    from vlscore.metrics import preset_named, presets_in

    preset, (metrics,) = preset_named(name), presets_in(name).values()
    facts = [
        name,
        _fact("what", preset.description),
        _fact("section", preset.section),
        _fact("left out", preset.left_out),
        _fact("source", preset.source),
        "numbers:",
    ]
    for metric, numbers in metrics.items():
        missing = metric.missing()
        facts.append(_fact(str(metric), ", ".join(numbers), "  "))
        if missing:
            facts.append(_fact("missing", missing, "    "))
    return "\n".join(facts)


def _fact(name: str, value: str, before: str = "") -> str:
    head = f"{before}{name}: "
    return textwrap.fill(
        value,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * min(len(head), 16),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _signature(metric: "Metric") -> str:
    """The facts that a value is printed with; blanks between them, so that lines can break."""
    if metric.uses_embeddings:
        return "its parameters, the encoder, and how images and reports were read"
    from vlscore.metrics import Plan

    return str(Plan([metric]).signature_of(metric)).replace("|", " | ")


def _inputs(metric: "Metric") -> str:
    parts = [
        *(["the image"] if metric.uses_image else []),
        "the candidate",
        *(["the reference"] if metric.uses_reference else []),
    ]
    by = " by an encoder" if metric.uses_embeddings else ""
    of = f" (from {', '.join(map(str, metric.inputs))})" if metric.inputs else ""
    return ", ".join(parts) + by + of


def metrics(name: str | None = None, /) -> None:
    """List the metrics, or show everything about one.

    Other commands take several metrics with commas between them, and parameters in parentheses:
    vlscore,bleu-4(smoothing=exp). A group or preset is a name for several metrics. A metric of your
    own is package.module:METRIC.

    Example: vlscore metrics findings-f1

    Args:
        name: Show everything about this metric or preset.
    """
    from vlscore.metrics import METRICS, find_metric, presets_in

    if name is None:
        echo(f"{metrics_text(METRICS.values())}\n\n{presets_text()}")
    else:
        echo(preset_text(name) if presets_in(name) else metric_text(find_metric(name)))
