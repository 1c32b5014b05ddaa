"""Metrics by name. A new metric is one file under `definitions` and one line here.

A metric of a user's own carries its provider: `register(metric)` finds it by name in Python, an
entry point of the group "vlscore.metrics" everywhere, and "package.module:METRIC" without either.
"""

from collections.abc import Iterable
from typing import Any

from vlscore.core import Registry, split_call, split_names
from vlscore.errors import InvalidSetting, UnknownName
from vlscore.metrics.library.bert_score import BERT_SCORE
from vlscore.metrics.library.bleu import BLEU
from vlscore.metrics.library.chexbert import CHEXBERT
from vlscore.metrics.library.chrf import CHRF
from vlscore.metrics.library.cider_d import CIDER_D
from vlscore.metrics.library.composite import COMPOSITE, PREFIX, composite_metric
from vlscore.metrics.library.embedded import EMBEDDED
from vlscore.metrics.library.findings_f1 import FINDINGS_F1
from vlscore.metrics.library.green import GREEN
from vlscore.metrics.library.judge_metric import JUDGE
from vlscore.metrics.library.meteor import METEOR
from vlscore.metrics.library.mirqi import MIRQI
from vlscore.metrics.library.radcliq import RADCLIQ
from vlscore.metrics.library.radgraph import RADGRAPH
from vlscore.metrics.library.ratescore import RATESCORE
from vlscore.metrics.library.readability import READABILITY
from vlscore.metrics.library.rouge_l import ROUGE_L
from vlscore.metrics.metric import Metric
from vlscore.metrics.provider import Provider
from vlscore.metrics.provider_list import PROVIDERS


def _check(member: Any) -> None:
    if not isinstance(member, Metric):
        raise InvalidSetting(f"a metric is a vlscore.metrics.Metric, not a {type(member).__name__}")


METRICS: Registry[Metric] = Registry("metric", group="vlscore.metrics", check=_check)
for _metric in (*EMBEDDED, *BLEU, ROUGE_L, METEOR, FINDINGS_F1, JUDGE):
    METRICS.register(_metric)
for _metric in (*CHRF, CIDER_D, BERT_SCORE, MIRQI, *READABILITY):
    METRICS.register(_metric)
for _metric in (*CHEXBERT, *RADGRAPH, *RADCLIQ, RATESCORE, GREEN, COMPOSITE):
    METRICS.register(_metric)


def register(metric: Metric, *, aliases: tuple[str, ...] = ()) -> Metric:
    """Let a metric of one's own be found by its name, in this process.

    Raises: InvalidSetting where the name is taken, or nothing computes the metric.
    """
    _check(metric)
    provider_of(metric)
    METRICS.register(metric, aliases=aliases)
    return metric


def find_metric(name: str | Metric) -> Metric:
    """The metric of that name, with the parameters written behind it; or composite:FILE.

    Raises: UnknownName with what may have been meant; InvalidSetting for a wrong parameter.

    >>> str(find_metric("BLEU_4( smoothing=exp )")), str(find_metric("rouge-l(beta=1.0)"))
    ('bleu-4(smoothing=exp)', 'rouge-l')
    """
    if not isinstance(name, str):
        return METRICS.find(name)
    if name.strip().startswith(PREFIX):
        return composite_metric(name.strip().removeprefix(PREFIX))
    written, parameters = split_call(name)
    found = METRICS.find(written)
    if found is COMPOSITE and set(parameters) == {"file"}:
        return composite_metric(parameters["file"])
    return found(**parameters)


def find_metrics(names: Any) -> tuple[Metric, ...]:
    """Metrics from one name or Metric, or several; each once, in order.

    Raises: as `find_metric`; InvalidSetting for no name at all.

    >>> [str(metric) for metric in find_metrics("cosine,bleu-4(smoothing=exp,tokens=cxr)")]
    ['cosine', 'bleu-4(smoothing=exp,tokens=cxr)']
    """
    given = split_names(names) if isinstance(names, str) else names
    if not isinstance(given, Iterable):
        given = [given]
    found = tuple(dict.fromkeys(find_metric(name) for name in given))
    if not found:
        raise InvalidSetting(f"no metric is named; known: {', '.join(METRICS)}")
    return found


def inputs_of(metric: Metric) -> dict[str | Metric, Metric]:
    """The metrics that one is computed from, by the names under which it lists them."""
    found: dict[str | Metric, Metric] = {}
    for name in metric.inputs:
        given = {
            parameter: metric.settings[own]
            for listed, parameter, own in metric.passed
            if listed == name and metric.settings[own] is not None
        }
        found[name] = find_metric(name)(**given)
    return found


def provider_of(metric: Metric) -> Provider:
    """What computes a metric: its own provider, else the first of ours that can run here.

    Where none can, the first that could if its library were there. Raises UnknownName where no
    provider computes the metric.
    """
    if metric.provider is not None:
        if not isinstance(metric.provider, Provider):
            kind = type(metric.provider).__name__
            raise InvalidSetting(f"{metric.name}: its provider is a {kind}, not a Provider")
        return metric.provider
    able = [provider for provider in PROVIDERS if metric.name in provider.supports]
    if not able:
        raise UnknownName(
            f"nothing computes the metric {metric.name}: give it a provider, as in "
            "Metric(..., provider=MyProvider()), or make it with metrics.text_metric"
        )
    return next((provider for provider in able if provider.missing(metric) is None), able[0])
