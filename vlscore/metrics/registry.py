"""Metrics by name. A new metric is one file under `definitions` and one line here."""

import re

from vlscore.errors import InvalidSetting, UnknownName
from vlscore.metrics.definitions.bleu import BLEU
from vlscore.metrics.definitions.embedded import EMBEDDED
from vlscore.metrics.definitions.meteor import METEOR
from vlscore.metrics.definitions.rouge_l import ROUGE_L
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers import PROVIDERS, Provider

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*EMBEDDED, *BLEU, ROUGE_L, METEOR)}

_WRITTEN = re.compile(r"\s*([^\s()]+)\s*(?:\((.*)\))?\s*")


def find_metric(name: str | Metric) -> Metric:
    """The metric of that name, with the parameters written behind it.

    Raises: UnknownName listing the metrics there are; InvalidSetting for a wrong parameter.

    >>> str(find_metric("bleu-4( smoothing=exp )")), str(find_metric("rouge-l(beta=1.0)"))
    ('bleu-4(smoothing=exp)', 'rouge-l')
    """
    if isinstance(name, Metric):
        return name
    written = _WRITTEN.fullmatch(name)
    metric = METRICS.get(written[1]) if written else None
    if written is None or metric is None:
        raise UnknownName(f"no metric is called {name!r}; known: {', '.join(METRICS)}")
    return metric(**_parameters(written[2] or ""))


def provider_of(metric: Metric) -> Provider:
    """The first provider that supports a metric; raises UnknownName where none does."""
    for provider in PROVIDERS:
        if provider.supports(metric):
            return provider
    raise UnknownName(f"no provider computes {metric.name}")


def _parameters(text: str) -> dict[str, str]:
    values = {}
    for part in filter(str.strip, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidSetting(f'parameters are written "name=value", not {part.strip()!r}')
        values[name.strip()] = value.strip()
    return values
