"""The examples in README.md run, and its lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast._core import Program
from holdfast.apps.bng.conftest import Bench, discovery
from holdfast.apps.bng.program import BALANCER_REASONS, REASONS, Variant
from holdfast.apps.bng.single import SinglePlane
from holdfast.subscribers.plane import Line

HERE = Path(__file__).parent


def test_the_example_makes_a_user_plane(programs: dict[Variant, Program]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    bench = Bench(programs["single"])
    names: dict[str, object] = {"client": bench.client}
    exec(example, names)
    plane = names["plane"]
    assert isinstance(plane, SinglePlane)
    heard: list[Line] = []
    plane.receive(lambda line, frame: heard.append(line))
    frame = discovery(Line(1, 5), 9, "02:00:00:00:00:33")
    [(port, packet)] = bench.switch.process(1, frame)
    assert port == 510
    plane.packet_in(packet[2:], {"ingress_port": 1})
    assert heard == [Line(1, 5)]


def test_reasons_have_their_names() -> None:
    for file, names in (("reasons.p4", REASONS), ("balancer.p4", BALANCER_REASONS)):
        text = (HERE / file).read_text()
        found = re.findall(r"const reason_t (\w+) += (\d+);", text)
        assert [(name.lower(), int(number)) for name, number in found] == [
            (name, number) for number, name in enumerate(names)
        ]
        assert f"#define REASONS {len(names)}" in text
