"""Quantities with units, in every field whose name ends in one, and what is said of unknown keys."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast import HoldfastError, TopologyError, units, yaml_model
from holdfast.compare.inputs import Times
from holdfast.compare.traffic_file import TrafficFile
from holdfast.entries_files.yaml_entries import Entries
from holdfast.errors import ParameterError, ScenarioError, first_mistake
from holdfast.link import Direction, Jitter, Ordering, Red
from holdfast.p4runtime import rights_file
from holdfast.parameters import Checked, spelled_out
from holdfast.subscribers.configuration import RateLimits
from holdfast.suggestions import similar, unknown
from holdfast.topologies import load
from holdfast.topology import Link
from holdfast.traffic import UdpStream


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("10Mbps", 10_000_000),
        ("1.5 Gbit/s", 1_500_000_000),
        ("100kbit", 100_000),
        ("10 mb/s", 10_000_000),
        ("2.5Gb/s", 2_500_000_000),
        ("9600bps", 9600),
        ("40G", 40_000_000_000),
        ("1e9", 1_000_000_000),
        ("1000", 1000),
    ],
)
def test_rates_are_in_bits_per_second(text: str, bps: int) -> None:
    assert units.rate_bps(text) == bps


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5ms", 0.005),
        ("2s", 2),
        ("10us", 1e-5),
        ("10 \u00b5s", 1e-5),
        ("10 \u03bcs", 1e-5),
        ("3 ns", 3e-9),
        ("1.5min", 90),
    ],
)
def test_times_have_a_unit(text: str, seconds: float) -> None:
    assert units.time_s(text) == seconds
    assert math.isclose(units.time_ms(text), seconds * 1000, rel_tol=1e-15)


def test_sizes_are_decimal_or_binary_as_written() -> None:
    written = ("64KiB", "64kB", "64 KB", "1500", "1500 bytes", "1.5MiB", "2GB")
    assert [units.size_bytes(text) for text in written] == [65536, 64000, 64000, 1500, 1500, 1572864, 2 * 10**9]


def test_shares_are_percent_or_a_part_of_one() -> None:
    assert [units.share(text) for text in ("1%", "0.01", "0.5 %", "100%", "0")] == [0.01, 0.01, 0.005, 1, 0]


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (units.rate_bps, "fast", "'fast' is not a rate, such as 10Mbps"),
        (units.rate_bps, "10MB/s", "'10MB/s' is not a rate, such as 10Mbps; a rate is in bits"),
        (units.rate_bps, "10ms", "'10ms' is not a rate, such as 10Mbps"),
        (units.rate_bps, "-1Mbps", "-1Mbps is negative, and a rate is not"),
        (units.rate_bps, "0.5bps", "0.5bps is not a whole number of bits per second"),
        (units.time_s, "5", "5 has no unit; write a time such as 5ms"),
        (units.time_s, "5m", "'5m' is not a time, such as 5ms"),
        (units.time_ms, "", "'' is not a time, such as 5ms"),
        (units.size_bytes, "64K", "'64K' is not a size, such as 64KiB"),
        (units.size_bytes, "1.5", "1.5 is not a whole number of bytes"),
        (units.share, "101%", "101% is more than 100%"),
        (units.share, "lots", "'lots' is not a share, such as 1%"),
        (units.time_s, "\u0663s", "'\u0663s' is not a time, such as 5ms"),
        (units.time_s, "1_0s", "'1_0s' is not a time, such as 5ms"),
        (units.rate_bps, "9" * 5000 + "bps", "is not a rate, such as 10Mbps"),
        (units.rate_bps, "1e999999999bps", "'1e999999999bps' is not a rate, such as 10Mbps"),
    ],
)
def test_what_is_no_quantity_is_one_sentence(read: object, text: str, sentence: str) -> None:
    with pytest.raises(ParameterError) as error:
        read(text)  # type: ignore[operator]
    assert sentence in str(error.value)
    assert len(str(error.value)) < 200


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_an_error_of_the_family(text: str) -> None:
    for read in (units.rate_bps, units.time_s, units.time_ms, units.size_bytes, units.share):
        try:
            assert read(text) >= 0
        except ParameterError as error:
            assert "\n" not in str(error)


@given(st.decimals(0, 10**6, places=3), st.sampled_from(["ns", "us", "ms", "s"]))
def test_a_time_is_the_nearest_number_to_what_is_written(number: object, unit: str) -> None:
    power = {"ns": -9, "us": -6, "ms": -3, "s": 0}[unit]
    assert units.time_s(f"{number}{unit}") == float(f"{number}e{power}")


class Example(Checked):
    """A model with fields of each kind."""

    rate_bps: int = 1
    delay_ms: float = 0.0
    start_s: float = 0.0
    age_ns: int = 0
    queue_bytes: int | None = None
    queue_packets: int | None = None
    delays_ms: tuple[float, ...] = ()
    packets_per_s: float = 1.0
    part: float = 0.0
    title: str = ""
    size: int = 0
    size_bytes: int = 0


def test_a_field_takes_its_quantity_with_a_unit_under_its_own_name_and_without_it() -> None:
    short = Example.model_validate(
        {"rate": "10Mbps", "delay": "2s", "start": "100ms", "age": "1us", "queue": "64KiB", "delays": ["1ms", "5us"]}
    )
    full = Example.model_validate(
        {
            "rate_bps": "10Mbps",
            "delay_ms": "2s",
            "start_s": "100ms",
            "age_ns": "1us",
            "queue_bytes": "64KiB",
            "delays_ms": ["1ms", "5us"],
        }
    )
    numbers = Example(
        rate_bps=10_000_000, delay_ms=2000, start_s=0.1, age_ns=1000, queue_bytes=65536, delays_ms=(1, 0.005)
    )
    assert short == full == numbers
    assert Example.model_validate({"part": "1%", "title": "50%"}) == Example(part=0.01, title="50%")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"rate": 10}, "rate: 10 has no unit; write 10Mbps, or rate_bps: 10"),
        ({"rate": "10"}, "rate: 10 has no unit; write a rate such as 10Mbps"),
        ({"queue": 50}, "queue: 50 has no unit; write 64KiB, or queue_bytes: 50"),
        ({"rate": "10Mbps", "rate_bps": 5}, "rate: rate_bps is given, too, and they are the same"),
        ({"delay": "5 Mbps"}, "delay: '5 Mbps' is not a time, such as 5ms"),
        ({"packets_per": "3s"}, "packets_per: unknown key; did you mean 'packets_per_s'"),
        ({"size": "5kB"}, "size: Input should be a valid integer"),
        ({"part": "200%"}, "part: 200% is more than 100%"),
        ({"age": "0.5ns"}, "age_ns: Input should be a valid integer"),
        ({"dealy": "5ms"}, "dealy: unknown key; did you mean 'delay'"),
        ({"delay_MS": 5}, "delay_MS: unknown key; did you mean 'delay_ms'"),
        ({"x": 5}, "x: unknown key (known: rate_bps, delay_ms, start_s,"),
        ({5: 5}, "5: unknown key (known: "),
    ],
)
def test_a_mistake_is_said_of_the_key_that_was_written(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as error:
        Example.model_validate(fields)
    assert first_mistake(error.value).startswith(sentence)


def test_every_field_of_links_and_traffic_with_a_unit_takes_it() -> None:
    for model in (Direction, Link, Jitter, Ordering, Red, UdpStream, Times):
        for name, field in model.model_fields.items():
            named = units.of_name(name)
            if named is not None:
                text = {"a rate": "8kbps", "a time": "2s", "a size": "3kB"}[named[1].quantity.what]
                value = spelled_out(model, {named[0]: text})
                assert value.keys() == {name}, field
                assert value[name] in (2000, 2, 8000, 3000)


def test_units_in_a_topology(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(
        "hosts: [h1, h2]\nswitches: {s1: {latency: 2us}}\n"
        "link_defaults: {rate: 10Mbps, delay_ms: 3}\n"
        "links:\n"
        "- {a: h1, b: s1, loss: 1%, queue: 30kB, jitter: {distribution: uniform, high: 1ms}}\n"
        "- {a: s1, b: h2, rate_bps: 5e6, delay: 1s, reverse: {rate: 1Mbps, loss: {model: gilbert_elliott, p: 1%, r: 0.3}}}\n"
        "packet_generators: [{switch: s1, port: 9, packet: '0200', period: 10ms}]\n"
    )
    topology = load(str(path))
    first, second = topology.links
    assert (first.rate_bps, first.delay_ms, first.loss, first.queue_bytes) == (10_000_000, 3, 0.01, 30_000)
    assert (second.rate_bps, second.delay_ms) == (5_000_000, 1000)
    assert second.reverse is not None
    assert second.reverse.rate_bps == 1_000_000
    assert topology.switches["s1"].latency_ms == 0.002
    assert topology.packet_generators[0].period_ms == 10
    (tmp_path / "again.yaml").write_text(topology.to_yaml())
    assert load(str(tmp_path / "again.yaml")).links == topology.links


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hots: [h1]\n", ":1: unknown key 'hots'; did you mean 'hosts'?"),
        ("hosts:\n  h1:\n    adress: 10.0.0.1/24\n", ":3: adress: unknown key; did you mean 'address'?"),
        ("hosts: {h1: {name: 3}}\n", ":1: name: unknown key"),
        ("switches:\n  s1: {latencyms: 3}\n", ":2: latencyms: unknown key; did you mean 'latency_ms'"),
        ("link_defaults:\n  rat: 5Mbps\n", ":2: rat: unknown key; did you mean 'rate'"),
        ("switches: [s1, s2]\nlinks:\n- a: s1\n  b: s2\n  dely: 5ms\n", ":5: dely: unknown key; did you mean 'delay'"),
        ("switches: [s1, s2]\nlinks:\n- {a: s1, b: s2, where: x, self: y}\n", ":3: where: unknown key"),
        ("switches: [s1]\npacket_generators: [{swich: s1}]\n", ":2: swich: unknown key; did you mean 'switch'?"),
    ],
)
def test_an_unknown_key_in_a_topology_names_similar_ones(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(text)
    with pytest.raises(TopologyError) as error:
        load(str(path))
    assert str(error.value).startswith(f"{path}{sentence}")


def test_an_unknown_key_in_traffic_entries_and_rights_names_similar_ones(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    cases = [
        (
            "udp:\n- {payload: 100B, packet_per_s: 3}\n",
            TrafficFile,
            ":2: udp.0.packet_per_s: unknown key; did you mean",
        ),
        ("tables:\n  t: [{matsh: {}}]\n", Entries, ":2: tables.t.0.matsh: unknown key; did you mean 'match'?"),
    ]
    for text, model, sentence in cases:
        path.write_text(text)
        with pytest.raises(ScenarioError) as error:
            yaml_model.read(path, model)
        assert str(error.value).startswith(f"{path}{sentence}")
    path.write_text("clients: [{certificat: x}]\n")
    with pytest.raises(HoldfastError, match=r"unknown key; did you mean 'certificate'\?"):
        rights_file.read(path)


def test_traffic_with_units(tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    path.write_text(
        "udp: [{payload: 100B, start: 500ms}]\ntcp: [{transfer: 50kB, after_failure: -200ms, every: 1s}, {rate: 2Mbps}]\n"
        "ping: [{interval: 10ms}]\n"
    )
    read = yaml_model.read(path, TrafficFile)
    assert (read.udp[0].payload_bytes, read.udp[0].start_s) == (100, 0.5)
    assert (read.tcp[0].transfer_bytes, read.tcp[0].after_failure_s, read.tcp[0].every_ms) == (50_000, -0.2, 1000)
    assert (read.tcp[1].rate_bps, read.ping[0].interval_ms) == (2_000_000, 10)


def test_the_unit_of_a_name_is_its_last_word() -> None:
    assert [
        units.of_name(name) for name in ("packets_per_s", "padi_per_line_s", "s", "ms", "bytes_per_s", "address")
    ] == [None] * 6
    assert units.of_name("up_bit_s") == ("up", units.SUFFIXES["bit_s"])
    assert units.of_name("bytes") == ("", units.SUFFIXES["bytes"])
    assert RateLimits.model_validate({"down": "10Mbps", "up_bit_s": "2Mbps"}) == RateLimits(
        down_bit_s=10_000_000, up_bit_s=2_000_000
    )


def test_similar_names() -> None:
    assert similar("adress", ["address", "ipv6"]) == ["address"]
    assert similar("DELAY_ms", ["delay_ms"]) == ["delay_ms"]
    assert similar("q" * 100_000, ["queue"]) == []
    assert unknown("key", "x" * 1000, ["a"]).endswith("(known: a)")
    assert len(unknown("key", "x" * 1000, [f"n{i}" for i in range(1000)])) < 300
