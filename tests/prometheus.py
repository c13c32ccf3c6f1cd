"""Prometheus's text format, read as its own client library reads it, and held against what we promise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]


@dataclass
class Metric:
    type: str
    help: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def value(self, **labels: str) -> float:
        """Of the sample with exactly these labels."""
        (found,) = [v for (_, of), v in self.samples.items() if dict(of) == labels]
        return found


def parse(text: str | bytes) -> dict[str, Metric]:
    """By the name that stands in the text: a counter's ends with `_total`."""
    metrics: dict[str, Metric] = {}
    for family in text_string_to_metric_families(text if isinstance(text, str) else text.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert name not in metrics, f"{name} twice"
        assert family.type in ("counter", "gauge", "histogram")
        metric = metrics[name] = Metric(family.type, family.documentation)
        for sample in family.samples:
            key = (sample.name, tuple(sample.labels.items()))
            assert key not in metric.samples, f"{sample} twice"
            assert metric.type == "gauge" or sample.value >= 0
            metric.samples[key] = sample.value
        assert metric.samples, f"{name} has no sample"
        if metric.type == "histogram":
            _check_histogram(name, metric)
    return metrics


def _check_histogram(name: str, metric: Metric) -> None:
    """Buckets in order and cumulative, the last one infinite and as large as the count."""
    series: dict[Labels, list[tuple[float, float]]] = {}
    for (sample, labels), value in metric.samples.items():
        if sample == f"{name}_bucket":
            rest = tuple(label for label in labels if label[0] != "le")
            series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
    assert series
    for labels, buckets in series.items():
        ends, values = zip(*buckets, strict=True)
        assert list(ends) == sorted(set(ends))
        assert list(values) == sorted(values)
        assert ends[-1] == math.inf
        assert metric.samples[f"{name}_count", labels] == values[-1]
        assert (f"{name}_sum", labels) in metric.samples
