"""Registry of metrics. A new metric is one file under `library` and one line here.

A user's own metric is a subclass of `Metric`, or a function of two texts (`text_metric`).
`register(metric)` makes it known by name in this process, an entry point of the group
"vlscore.metrics" makes it known everywhere, and "package.module:name" names it without either.
`GROUPS` are names of several metrics, as in `-m text` or `-m bleu,image`; so are the presets of
`vlscore.metrics.presets`, the columns of published tables.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vlscore.core import Registry, check_word, plain_name, registered_name, split_call, split_names
from vlscore.errors import InvalidSetting
from vlscore.metrics.metric import Metric
from vlscore.metrics.presets import PRESETS, Preset

if TYPE_CHECKING:
    from vlscore.stats import TextTable

# Function that decides whether a metric belongs to the group.
_Belongs = Callable[[Metric], bool]

GROUPS: dict[str, tuple[str, _Belongs]] = {
    "text": (
        "every free metric of texts that can run here",
        lambda metric: not metric.uses_embeddings,
    ),
    "image": (
        "every free metric that looks at the image",
        lambda metric: metric.uses_image,
    ),
    "bleu": ("bleu-1 to bleu-4", lambda metric: metric.name.startswith("bleu-")),
}

# Name -> file and class below vlscore.metrics.library. A file is imported on first use.
_MEMBERS = {
    "vlscore": "embedded:VLScoreMetric",
    "cosine": "embedded:CosineMetric",
    "image-centred-cosine": "embedded:ImageCentredCosineMetric",
    "bounding-sphere": "embedded:BoundingSphereMetric",
    "clipscore": "embedded:CLIPScoreMetric",
    "refclipscore": "embedded:RefCLIPScoreMetric",
    "height": "embedded:HeightMetric",
    "segment-distance": "embedded:SegmentDistanceMetric",
    "midpoint-distance": "embedded:MidpointDistanceMetric",
    "image-gain-distance": "embedded:ImageGainDistanceMetric",
    "image-gain-cosine": "embedded:ImageGainCosineMetric",
    "bleu-1": "bleu:Bleu1",
    "bleu-2": "bleu:Bleu2",
    "bleu-3": "bleu:Bleu3",
    "bleu-4": "bleu:Bleu4",
    "rouge-l": "rouge_l:RougeL",
    "meteor": "meteor:Meteor",
    "meteor-nltk": "meteor_nltk:MeteorNltk",
    "findings-f1": "findings_f1:FindingsF1",
    "change-f1": "change_f1:ChangeF1",
    "judge": "judge_metric:JudgeScore",
    "judge-image": "image_judge:ImageJudge",
    "chrf": "chrf:Chrf",
    "chrf++": "chrf:ChrfPlusPlus",
    "cider-d": "cider_d:CiderD",
    "bert-score": "bert_score:BertScore",
    "mirqi": "mirqi:Mirqi",
    "flesch-kincaid": "readability:FleschKincaid",
    "gunning-fog": "readability:GunningFog",
    "dale-chall": "readability:DaleChall",
    "dale-chall-clinical": "readability:DaleChallClinical",
    "chexbert-f1": "chexbert:CheXbertF1",
    "chexbert-similarity": "chexbert:CheXbertSimilarity",
    "radgraph-f1": "radgraph:RadGraphF1",
    "radgraph-simple": "radgraph:RadGraphSimple",
    "radgraph-partial": "radgraph:RadGraphPartial",
    "radgraph-complete": "radgraph:RadGraphComplete",
    "radcliq-v0": "radcliq:RadCliQv0",
    "radcliq-v1": "radcliq:RadCliQv1",
    "ratescore": "ratescore:RaTEScore",
    "green": "green:Green",
    "composite": "composite:CompositeMetric",
}
COMPOSITE_PREFIX = "composite:"
# Name of a metric, its settings in parentheses, and one of its numbers: "findings-f1.recall".
_VALUE = re.compile(r"([\w+-]+)(\(.*\))?(?:\.([\w-]+))?")


def _check(member: Any) -> None:
    kind = member if isinstance(member, type) else type(member)
    if not issubclass(kind, Metric) or not kind.name:
        raise InvalidSetting(
            "a metric must be a vlscore.metrics.Metric with a name, or its class, not a "
            f"{kind.__name__}"
        )


METRICS = Registry[Metric](
    "metric",
    group="vlscore.metrics",
    check=_check,
    # Of its class, the metric with the defaults of all parameters.
    made=lambda member: member() if isinstance(member, type) else member,
    listed_by="vlscore metrics",
)
for _name, _target in _MEMBERS.items():
    METRICS.register(f"vlscore.metrics.library.{_target}", _name)

Member = TypeVar("Member", Metric, type[Metric])


def register(metric: Member, *, aliases: tuple[str, ...] = ()) -> Member:
    """Register a user's metric, or its class, under its name in this process; return it.

    Raises: InvalidSetting if the name is taken, or it is no metric.
    """
    METRICS.register(metric, aliases=aliases)  # type: ignore[arg-type]
    return metric


def find_metric(name: str | Metric) -> Metric:
    """Return the metric of a name such as "bleu-4(smoothing=exp)" or composite:FILE.

    Raises: UnknownName with similar names; InvalidSetting for a wrong parameter.

    >>> str(find_metric("BLEU_4( smoothing=exp )")), str(find_metric("rouge-l(beta=1.0)"))
    ('bleu-4(smoothing=exp)', 'rouge-l')
    """
    if not isinstance(name, str):
        return METRICS.find(name)
    if name.strip().startswith(COMPOSITE_PREFIX):
        return METRICS.find("composite")(file=name.strip().removeprefix(COMPOSITE_PREFIX))
    written, parameters = split_call(name)
    found = METRICS.find(written)
    return found(**parameters) if parameters else found


def metric_from_file(name: str, source: str | Path) -> Metric:
    """Return the metric that a file, or a column header of a table, names.

    Args: source: the file, for the message.
    Raises: UnknownName for a name that is not registered, and for a parameter that may name a
        hub's repository; InvalidSetting for a wrong parameter.
    """
    written, parameters = split_call(name)
    registered_name(METRICS, written, source, "--metrics")
    if parameters:
        from vlscore.encoders import path_from_file  # most metrics have none

        for value in parameters.values():
            path_from_file(value, source)
    return find_metric(name)


def find_metrics(names: Any, comparisons: str | None = None) -> tuple[Metric, ...]:
    """Return metrics from one name or Metric, or several; each once, in order.

    Names may be separated by commas; "text", "image" and "bleu" are groups of several metrics
    (`vlscore.metrics.registry`), "rexrank" and "r2gen" presets (`vlscore.metrics.presets`).

    Args: comparisons: "ignored": metrics that read findings leave comparisons with earlier
        examinations out of both reports; see `without_comparisons`.
    Raises: those of `find_metric`; InvalidSetting if there is no name.

    >>> [str(metric) for metric in find_metrics("cosine,bleu-4(smoothing=exp,tokens=cxr)")]
    ['cosine', 'bleu-4(smoothing=exp,tokens=cxr)']
    """
    given = split_names(names) if isinstance(names, str) else names
    if not isinstance(given, Iterable):
        given = [given]
    found = tuple(dict.fromkeys(metric for name in given for metric in _named(name)))
    if not found:
        raise InvalidSetting("no metric is named; `vlscore metrics` lists all names")
    if comparisons is None:
        return found
    check_word("comparisons", comparisons, ("ignored",))
    return tuple(map(without_comparisons, found))


def without_comparisons(metric: Metric) -> Metric:
    """Return the metric with comparisons left out, if it reads findings.

    Raises: InvalidSetting for a metric that measures nothing else, such as change-f1.

    >>> from vlscore.metrics import find_metric
    >>> [str(without_comparisons(find_metric(name))) for name in ("bleu-4", "findings-f1")]
    ['bleu-4', 'findings-f1(comparisons=ignored)']
    """
    if not metric.uses_findings:
        return metric
    if "comparisons" not in metric.settings:
        raise InvalidSetting(
            f"{metric} cannot leave comparisons out: it measures them; name other metrics"
        )
    return metric(comparisons="ignored")


def with_constant(metrics: tuple[Metric, ...], C: float) -> tuple[Metric, ...]:
    """Return the metrics with a constant C, those that use one and name none themselves.

    Raises: InvalidSetting if no metric would use it.
    """
    # A constant in the metric's own name, as in "vlscore(C=20)", takes precedence.
    undecided = [metric for metric in metrics if metric.settings.get("C", C) is None]
    if not undecided:
        names = ", ".join(map(str, metrics))
        raise InvalidSetting(f"C={C} was passed, but none of these metrics uses it: {names}")
    return tuple(metric(C=C) if metric in undecided else metric for metric in metrics)


def corpus_name(metric: Metric | str, name: str) -> str:
    """Return the name that tables use for a value of the whole corpus."""
    return f"{metric} {name}" if name == "corpus" else f"{metric} {name} (corpus)"


def column_of(metric: Metric, number: str) -> str:
    """Return the name by which `--columns` knows a number: "mean", or a value of the corpus."""
    return f"{metric}.mean" if number == "mean" else corpus_name(metric, number)


def paper_name(value: str) -> str:
    """Return how papers name a metric or one of its numbers; any other text unchanged.

    >>> paper_name("bleu-4"), paper_name("findings-f1.recall"), paper_name("anything")
    ('BLEU-4', 'Findings F1 recall', 'anything')
    """
    found = _VALUE.fullmatch(value)
    if found is None or found[1] not in METRICS:
        return value
    name, settings, number = found.groups(default="")
    title = METRICS[name].title or name
    return " ".join(part for part in (title, settings, number) if part)


def named_as_in_papers(table: "TextTable") -> "TextTable":
    """Return the table with the papers' names of metrics in its headings and first two columns."""
    rows = tuple((*map(paper_name, row[:2]), *row[2:]) for row in table.rows)
    return replace(table, columns=tuple(map(paper_name, table.columns)), rows=rows)


def _named(given: Any) -> list[Metric]:
    """Return the metrics of one name, of names separated by commas, or of a group."""
    if not isinstance(given, str):
        return [find_metric(given)]
    found: list[Metric] = []
    for name in split_names(given) or [given]:
        if presets := presets_in(name):
            found += [m for preset in presets.values() for m in preset if m.missing() is None]
        elif name not in METRICS and (members := _members_of(name)) is not None:
            found += members
        else:
            found.append(find_metric(name))
    return found


def presets_in(names: Any) -> dict[str, dict[Metric, tuple[str, ...]]]:
    """Return preset -> its metrics -> their numbers that its table prints.

    Args: names: as of `find_metrics`. Metrics that cannot run here are among those returned.
    """
    given = names if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    written = [n for each in given if isinstance(each, str) for n in split_names(each)]
    return {
        name: {find_metric(metric): own for metric, own in preset.numbers.items()}
        for name in written
        if name not in METRICS and (preset := PRESETS.get(plain_name(name))) is not None
    }


def preset_named(name: str) -> Preset:
    """Return the preset of a name in any spelling."""
    return PRESETS[plain_name(name)]


class PresetFacts(NamedTuple):
    """What the presets among names of metrics say.

    Attributes:
        section: of the reports; None without a preset.
        notes: what a user must know of each, one sentence each.
        columns: of a table of systems; empty without a preset. A metric named with the preset has
            its primary number.
    """

    section: str | None = None
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def read_presets(names: Any, *, sections_may_differ: bool = False) -> PresetFacts:
    """Return what the presets among names of metrics say.

    Raises: InvalidSetting for presets of different sections, unless these do not count.
    """
    presets = presets_in(names)
    if not presets:
        return PresetFacts()
    sections = sorted({preset_named(name).section for name in presets})
    if len(sections) > 1 and not sections_may_differ:
        raise InvalidSetting(
            f"the presets score different sections: {', '.join(sections)}; name one with "
            "--section (Python: text_policy=)"
        )
    notes = []
    for name, metrics in presets.items():
        preset = preset_named(name)
        notes.append(
            f"{name}: {preset.description} ({preset.source}). Section: {preset.section}, unless "
            f"another one is named. Left out: {preset.left_out}"
        )
        notes += [
            f"{name}: {metric} cannot run here and is left out: {reason}"
            for metric in metrics
            if (reason := metric.missing()) is not None
        ]
    of_presets = {metric: numbers for each in presets.values() for metric, numbers in each.items()}
    columns: list[str] = []
    for metric in find_metrics(names):
        numbers = of_presets.get(metric)
        columns += [str(metric)] if numbers is None else [column_of(metric, n) for n in numbers]
    return PresetFacts(sections[0], tuple(notes), tuple(columns))


def _members_of(name: str) -> list[Metric] | None:
    """Return the metrics of a group, in the registry's order; None if no group has the name.

    A group holds only free metrics whose library is installed.

    Args: name: name of the group, in any spelling.
    """
    group = GROUPS.get(plain_name(name))
    if group is None:
        return None
    return [
        metric
        for metric in METRICS.values()
        if metric.cost == "free" and group[1](metric) and metric.missing() is None
    ]
