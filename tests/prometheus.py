"""A strict reader of Prometheus's text format: what it does not understand, Prometheus would not either."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? ([-+0-9.eEInfNa]+)")

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


def parse(text: str) -> dict[str, Metric]:
    assert text.endswith("\n")
    metrics: dict[str, Metric] = {}
    current = help = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current, help = line.removeprefix("# HELP ").split(" ", 1)
            assert current not in metrics, f"{current} twice"
        elif line.startswith("# TYPE "):
            name, type = line.removeprefix("# TYPE ").split(" ")
            assert name == current, "a TYPE belongs to the HELP before it"
            assert type in ("counter", "gauge", "histogram")
            metrics[name] = Metric(type, help)
        else:
            _read_sample(line, current, metrics[current])
    for name, metric in metrics.items():
        assert metric.samples, f"{name} has no sample"
        if metric.type == "counter":
            assert name.endswith("_total")
        if metric.type == "histogram":
            _check_histogram(name, metric)
    return metrics


def _read_sample(line: str, family: str, metric: Metric) -> None:
    found = SAMPLE.fullmatch(line)
    assert found, line
    name, written, number = found[1], found[2] or "", float(found[3])
    suffixes = ("_bucket", "_sum", "_count") if metric.type == "histogram" else ("",)
    assert name in {family + suffix for suffix in suffixes}, f"{name} is not of {family}"
    labels = _read_labels(written)
    assert (name, labels) not in metric.samples, f"{line} twice"
    assert metric.type == "gauge" or number >= 0
    metric.samples[name, labels] = number


def _read_labels(written: str) -> Labels:
    labels, rest = [], written
    while rest:
        found = LABEL.match(rest)
        assert found, written
        unescaped = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], found[2])
        labels.append((found[1], unescaped))
        rest = rest[found.end() :]
        assert not rest or rest.startswith(","), written
        rest = rest.removeprefix(",")
    assert len({name for name, _ in labels}) == len(labels)
    return tuple(labels)


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
    assert {labels for (sample, labels) in metric.samples if sample == f"{name}_count"} == set(series)
