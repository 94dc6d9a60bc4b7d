"""Families of metrics, those of ``prometheus_client``, as Prometheus' text (version 0.0.4) and as JSON.

The library's own text writes whole numbers as ``1.0`` and sorts labels. Ours leaves labels as they are given and whole numbers
whole, so that what reads a page as text goes on to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from prometheus_client import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample: TypeAlias = tuple[Sequence[str], float]
"""The values of a sample's labels, and its value."""

_WHOLE = 1 << 53
"""Below this number, every whole number is exact in floating point."""


def family(
    kind: Literal["counter", "gauge"], name: str, about: str, labels: Sequence[str], samples: Iterable[Sample]
) -> Metric:
    """Return a family of metrics with one sample for each of ``samples``. The name of a counter must end in ``_total``."""
    metric = Metric(name.removesuffix("_total") if kind == "counter" else name, about, kind)
    for values, value in samples:
        metric.add_sample(name, dict(zip(labels, values, strict=True)), +value)  # a truth is a number, too
    return metric


def histogram(
    name: str,
    about: str,
    labels: Sequence[str],
    bounds: Sequence[str],
    samples: Iterable[tuple[Sequence[str], Sequence[int], int, float]],
) -> Metric:
    """Return a histogram. Each sample is the values of the labels, a count for each of ``bounds``, the total count, and the sum."""
    metric = Metric(name, about, "histogram")
    for values, counts, count, total in samples:
        own, below = dict(zip(labels, values, strict=True)), 0
        for bound, each in zip(bounds, counts, strict=False):
            below += each
            metric.add_sample(f"{name}_bucket", own | {"le": bound}, below)
        metric.add_sample(f"{name}_bucket", own | {"le": "+Inf"}, count)
        metric.add_sample(f"{name}_sum", own, total)
        metric.add_sample(f"{name}_count", own, count)
    return metric


def counted(
    kind: Literal["counter", "gauge"], name: str, about: str, label: str, counts: Mapping[str, float]
) -> Metric:
    """Return a family of metrics with one label, and one sample for each of ``counts``, sorted by name."""
    return family(kind, name, about, [label], (((key,), count) for key, count in sorted(counts.items())))


def single(kind: Literal["counter", "gauge"], name: str, about: str, value: float) -> Metric:
    """Return a family of metrics with one sample without labels."""
    return family(kind, name, about, (), [((), value)])


def text(families: Iterable[Metric]) -> str:
    """Return families of metrics in Prometheus' text format, version 0.0.4."""
    return "".join(line for metric in families for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    about = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {about}\n# TYPE {name} {metric.type}\n"
    for sample in metric.samples:
        if sample.name == f"{metric.name}_created":
            continue  # of the newer format alone
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels.items())
        yield (
            f"{sample.name}{{{labels}}} {_number(sample.value)}\n"
            if labels
            else f"{sample.name} {_number(sample.value)}\n"
        )


_ENDS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and characters that readers other than Prometheus may take for the end of a line."""


def _escaped(value: str) -> str:
    known = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return _ENDS.sub(lambda found: f"U+{ord(found[0]):04X}", known)


def _number(value: float) -> str:
    if isinstance(value, int) or (-_WHOLE < value < _WHOLE and value == int(value)):
        return str(int(value))
    return f"{value:.10g}"


def as_json(families: Iterable[Metric]) -> dict[str, Any]:
    """Return metrics as values of JSON: for each sample's name its ``labels``, and ``values`` nested by the labels' values.

    Without labels, ``values`` is the value.
    """
    found: dict[str, Any] = {}
    for metric in families:
        for name, labels, value, *_ in metric.samples:
            if name == f"{metric.name}_created":
                continue
            entry = found.setdefault(name, {"labels": list(labels), "values": {}})
            if not labels:
                entry["values"] = value
                continue
            *path, last = labels.values()
            place = entry["values"]
            for key in path:
                place = place.setdefault(key, {})
            place[last] = value
    return found


__all__ = ["CONTENT_TYPE", "as_json", "counted", "family", "histogram", "single", "text"]
