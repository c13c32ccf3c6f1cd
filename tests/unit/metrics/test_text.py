"""One line that Prometheus cannot read costs all metrics of that scrape."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailout.metrics.model import labels
from mailout.metrics.text import Family, exposition
from tests.prometheus import parse

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters='\n\\"{},'))


@given(st.dictionaries(TEXT, st.integers(0, 2**50) | st.floats(0, 1e15), min_size=1), TEXT)
def test_whatever_is_in_a_label_is_read_as_it_was(values: dict[str, float], help: str) -> None:
    written = {("x_total", labels(of=label, also=label)): float(value) for label, value in values.items()}
    (metric,) = parse(exposition([Family("x_total", "counter", help, written)])).values()
    assert {dict(of)["of"]: value for (_, of), value in metric.samples.items()} == values
    assert all(dict(of)["also"] == dict(of)["of"] for _, of in metric.samples)


def test_a_metric_without_samples_is_left_out() -> None:
    assert exposition([Family("x", "gauge", "nothing"), Family("y", "gauge", "y", {("y", ""): 1.5})]) == (
        "# HELP y y\n# TYPE y gauge\ny 1.5\n"
    )
