"""Registry of metrics. A new metric is one file under `library` and one line here.

A user's own metric has its provider as an attribute; `text_metric` makes one from a function of two
texts. `register(metric)` makes it known by name in
this process, an entry point of the group "vlscore.metrics" makes it known everywhere, and
"package.module:METRIC" names it without either. `GROUPS` are names of several metrics, as in
`-m text` or `-m bleu,image`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import Registry, plain_name, registered_name, split_call, split_names
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Bounds, Metric
from vlscore.metrics.provider import Provider, provider_of, why_missing

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

# Name -> file and object below vlscore.metrics.library. A file is imported on first use.
_MEMBERS = {
    "vlscore": "embedded:VLSCORE",
    "cosine": "embedded:COSINE",
    "image-centred-cosine": "embedded:IMAGE_CENTRED_COSINE",
    "bounding-sphere": "embedded:BOUNDING_SPHERE",
    "clipscore": "embedded:CLIPSCORE",
    "refclipscore": "embedded:REFCLIPSCORE",
    "height": "embedded:HEIGHT",
    "segment-distance": "embedded:SEGMENT_DISTANCE",
    "midpoint-distance": "embedded:MIDPOINT_DISTANCE",
    "image-gain-distance": "embedded:IMAGE_GAIN_DISTANCE",
    "image-gain-cosine": "embedded:IMAGE_GAIN_COSINE",
    "bleu-1": "bleu:BLEU_1",
    "bleu-2": "bleu:BLEU_2",
    "bleu-3": "bleu:BLEU_3",
    "bleu-4": "bleu:BLEU_4",
    "rouge-l": "rouge_l:ROUGE_L",
    "meteor": "meteor:METEOR",
    "findings-f1": "findings_f1:FINDINGS_F1",
    "judge": "judge_metric:JUDGE",
    "chrf": "chrf:CHRF_ALONE",
    "chrf++": "chrf:CHRF_PLUS_PLUS",
    "cider-d": "cider_d:CIDER_D",
    "bert-score": "bert_score:BERT_SCORE",
    "mirqi": "mirqi:MIRQI",
    "flesch-kincaid": "readability:FLESCH_KINCAID",
    "gunning-fog": "readability:GUNNING_FOG",
    "dale-chall": "readability:DALE_CHALL",
    "dale-chall-clinical": "readability:DALE_CHALL_CLINICAL",
    "chexbert-f1": "chexbert:CHEXBERT_F1",
    "chexbert-similarity": "chexbert:CHEXBERT_SIMILARITY",
    "radgraph-f1": "radgraph:RADGRAPH_F1",
    "radgraph-simple": "radgraph:RADGRAPH_SIMPLE",
    "radgraph-partial": "radgraph:RADGRAPH_PARTIAL",
    "radgraph-complete": "radgraph:RADGRAPH_COMPLETE",
    "radcliq-v0": "radcliq:RADCLIQ_V0",
    "radcliq-v1": "radcliq:RADCLIQ_V1",
    "ratescore": "ratescore:RATESCORE",
    "green": "green:GREEN",
    "composite": "composite:COMPOSITE",
}
COMPOSITE_PREFIX = "composite:"
# Name of a metric, its settings in parentheses, and one of its numbers: "findings-f1.recall".
_VALUE = re.compile(r"([\w+-]+)(\(.*\))?(?:\.([\w-]+))?")


def _check(member: Any) -> None:
    if not isinstance(member, Metric):
        raise InvalidSetting(
            f"a metric must be a vlscore.metrics.Metric, not a {type(member).__name__}"
        )


METRICS: Registry[Metric] = Registry(
    "metric", group="vlscore.metrics", check=_check, listed_by="vlscore metrics"
)
for _name, _target in _MEMBERS.items():
    METRICS.register(f"vlscore.metrics.library.{_target}", _name)


def register(metric: Metric, *, aliases: tuple[str, ...] = ()) -> Metric:
    """Register a user's metric under its name, in this process.

    Raises: InvalidSetting if the name is taken, or the metric has no provider.
    """
    _check(metric)
    provider_of(metric)
    METRICS.register(metric, aliases=aliases)
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
        return _composite(name.strip().removeprefix(COMPOSITE_PREFIX))
    written, parameters = split_call(name)
    found = METRICS.find(written)
    if found.name == "composite" and set(parameters) == {"file"}:
        return _composite(parameters["file"])
    return found(**parameters)


def _composite(file: str) -> Metric:
    # The composite's file imports this one, so it is imported only when a composite is needed.
    made: Metric = METRICS.find("composite").provider.metric_of(file)
    return made


def metric_from_file(name: str, source: str | Path, option: str = "--metrics") -> Metric:
    """Return the metric that a file, or a column header of a table, names.

    Args:
        source: the file, for the message.
        option: the command-line option that names a user's own metric, for the message.

    Raises: UnknownName for a name that is not registered, and for a parameter that may name a
        hub's repository; InvalidSetting for a wrong parameter.
    """
    from vlscore.encoders import path_from_file  # loads torch

    written, parameters = split_call(name)
    registered_name(METRICS, written, source, option)
    for value in parameters.values():
        path_from_file(value, source)
    return find_metric(name)


def find_metrics(names: Any) -> tuple[Metric, ...]:
    """Return metrics from one name or Metric, or several; each once, in order.

    Names may be separated by commas; "text", "image" and "bleu" are groups of several metrics
    (`vlscore.metrics.registry`).

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
    return found


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
        if name not in METRICS and (members := _members_of(name)) is not None:
            found += members
        else:
            found.append(find_metric(name))
    return found


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
        if metric.cost == "free" and group[1](metric) and why_missing(metric) is None
    ]


def inputs_of(metric: Metric) -> dict[str | Metric, Metric]:
    """Return the metrics from which a metric is computed, by their keys in its `inputs`."""
    found: dict[str | Metric, Metric] = {}
    for name in metric.inputs:
        given = {
            parameter: metric.settings[own]
            for listed, parameter, own in metric.passed
            if listed == name and metric.settings[own] is not None
        }
        found[name] = find_metric(name)(**given)
    return found


def missing_inputs(metric: Metric) -> list[str]:
    """Return what the metrics from which a metric is computed lack here, each after its name."""
    reasons = {
        given.name: provider_of(given).missing(given) for given in inputs_of(metric).values()
    }
    return [f"{name}: {reason}" for name, reason in reasons.items() if reason is not None]


TextFunction = Callable[[str, str], float]


def text_metric(
    name: str,
    description: str,
    *,
    bounds: Bounds = (None, None),
    higher_is_better: bool = True,
    version: str = "1",
    citation: str = "",
) -> Callable[[TextFunction], Metric]:
    """Make a metric from a function (candidate, reference) -> number.

    Args:
        name: name in tables and signatures.
        description: one sentence.
        bounds: smallest and largest possible value.
        higher_is_better: direction.
        version: change it whenever the function returns other numbers; signatures contain it.
        citation: where it was published.

    Returns: a decorator that turns the function into the metric. If the function raises for a
        candidate, this candidate has no value; the others are not affected.

    >>> @text_metric("length-ratio", "words of the candidate for each of the reference")
    ... def length_ratio(candidate, reference):
    ...     return len(candidate.split()) / max(len(reference.split()), 1)
    >>> from vlscore.metrics import compute
    >>> compute([length_ratio], ["clear lungs"], ["The lungs are clear."])["length-ratio"].tolist()
    [0.5]
    """

    def make(function: TextFunction) -> Metric:
        return Metric(
            name=name,
            description=description,
            higher_is_better=higher_is_better,
            bounds=bounds,
            citation=citation,
            provider=_FunctionProvider(function, version),
        )

    return make


class _FunctionProvider(Provider):
    library = "own"

    def __init__(self, function: TextFunction, version: str) -> None:
        self._function, self._version = function, version

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        values = np.full(len(batch), np.nan)
        failures: dict[int, VLScoreError] = {}
        for row, (candidate, reference) in enumerate(batch.pairs()):
            try:
                values[row] = float(self._function(candidate, reference))
            except Exception as error:  # a user's function may raise whatever it likes
                failures[row] = VLScoreError(f"{metric.name}: {type(error).__name__}: {error}")
        return Computed([values], failures=failures)

    def missing(self, metric: Metric) -> str | None:
        return None

    def facts(self, metric: Metric) -> dict[str, Any]:
        return {"own": self._version}
