"""Hostile YAML: each reader answers at once with one sentence, whatever the kind of file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import yaml_model
from holdfast.compare.traffic_file import TrafficFile
from holdfast.entries_files.yaml_entries import Entries
from holdfast.errors import HoldfastError
from holdfast.parameters import ps_of_s
from holdfast.topology import Topology

READERS: dict[str, Callable[[Path], object]] = {
    "traffic": lambda path: yaml_model.read(path, TrafficFile),
    "entries": lambda path: yaml_model.read(path, Entries),
    "topology": Topology.from_yaml,
}


def doubled(text: str, first: str, times: int) -> str:
    """Return YAML text of ``times`` lines, each with nine aliases of the line before."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{i}: &a{i} " + text % ",".join([f"*a{i - 1}"] * 9) for i in range(1, times)]
    return "\n".join(lines) + "\n"


FILES = {
    "lists of lists": (doubled("[%s]", "[x, x]", 10), "its aliases stand for more than 100000 values"),
    "merged mappings": (doubled("{<<: [%s]}", "{x: 1}", 10), "its aliases stand for more than 100000 values"),
    "within traffic": ("udp: [{}]\n" + doubled("[%s]", "[x, x]", 10), "its aliases stand for more than 100000 values"),
    "brackets": ("[" * 5000, "it is nested too deeply, more than 100 deep"),
    "a chain": ("a0: &a0 []\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 300)), "more than 100 deep"),
    "itself": ("a: &a [*a]\n", "an alias that contains itself"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", FILES)
def test_a_bomb_is_one_sentence_at_once(name: str, reader: str, tmp_path: Path) -> None:
    text, message = FILES[name]
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    begin_s = time.process_time()
    with pytest.raises(HoldfastError) as error:
        READERS[reader](path)
    assert time.process_time() - begin_s < 2
    assert str(error.value).startswith(f"{path}:")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_aliases_that_people_write_are_read(tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    path.write_text(
        "pairs: [[h1, h2]]\nudp:\n  - &slow {packets_per_s: 10}\n  - {<<: *slow, payload_bytes: 50}\n  - *slow\n"
    )
    read = yaml_model.read(path, TrafficFile)
    assert [(each.packets_per_s, each.payload_bytes) for each in read.udp] == [(10, 100), (10, 50), (10, 100)]


BOOLEANS = [
    ("topology", "switches: [s1, s2]\nlinks: [{a: s1, b: s2, bfd: {multiplier: true}}]", "multiplier"),
    ("topology", "switches: [s1, s2]\nlinks: [{a: s1, b: s2, bfd: {tx_ms: true}}]", "tx_ms"),
    ("topology", "switches: [s1, s2]\nlinks: [{a: s1, b: s2, rate_bps: true}]", "rate_bps"),
    ("topology", "switches: [s1, s2]\nlinks: [{a: s1, b: s2, loss: true}]", "loss"),
    ("topology", "switches: [s1, s2]\nlinks: [{a: s1, b: s2, reverse: {delay_ms: false}}]", "delay_ms"),
    ("topology", "switches: {s1: {queueing: {queues: true}}}", "queues"),
    ("topology", "switches: {s1: {position: [true, 0]}}", "position"),
    ("traffic", "udp: [{packets_per_s: true}]", "packets_per_s"),
    ("traffic", "ping: [{start_s: false}]", "start_s"),
    ("traffic", "tcp: [{transfer_bytes: true}]", "transfer_bytes"),
]


@pytest.mark.parametrize(("reader", "text", "field"), BOOLEANS)
def test_a_boolean_is_no_number(reader: str, text: str, field: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(HoldfastError, match=rf"{field}.*: a number is expected, not true or false"):
        READERS[reader](path)


def test_a_boolean_is_no_time() -> None:
    with pytest.raises(HoldfastError, match="end_s is True; it must be a number"):
        ps_of_s("end_s", True)
