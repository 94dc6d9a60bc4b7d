"""The examples in README.md run, and its lists are complete."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from holdfast._core import Program
from holdfast.apps.bng import test_split
from holdfast.apps.bng.conftest import Bench, discovery
from holdfast.apps.bng.program import BALANCER_REASONS, REASONS, Variant
from holdfast.apps.bng.single import SinglePlane
from holdfast.apps.bng.tests import load
from holdfast.subscribers import commands
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


def test_the_measurements_of_the_readme_are_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [words] = re.findall(r"python -P -m holdfast.apps.bng.tests.load ([\w|]+)`", (HERE / "README.md").read_text())
    for part in words.split("|"):
        given: dict[str, object] = {}
        monkeypatch.setattr(load, part, lambda given=given, **named: given.update(named) or {"done": 1})
        monkeypatch.setattr(sys, "argv", ["load", part, "--number", "7"])
        load.main()
        assert json.loads(capsys.readouterr().out) == {"part": part, "done": 1}
        assert given["number"] == 7
    monkeypatch.setattr(sys, "argv", ["load", "no-such-part"])
    with pytest.raises(SystemExit):
        load.main()
    assert f"{{{','.join(words.split('|'))}}}" in capsys.readouterr().err


def test_the_readmes_simulation_is_a_test() -> None:
    [(file, name)] = re.findall(r"python -m pytest (\S+) -k (\w+)`", (HERE / "README.md").read_text())
    assert (HERE / Path(file).name).is_file()
    assert [each for each in vars(test_split) if each.startswith("test_") and name in each] == [
        "test_a_planned_handover_loses_no_packet_at_100000_packets_per_second"
    ]


def test_the_readme_has_every_command_of_an_operator() -> None:
    names = {each.name for each in commands.app.registered_commands}
    assert names == set(re.findall(r"holdfast bng (\w+)", (HERE / "README.md").read_text())) | {"undrain"}
