"""The JSON schemas of users' files, and the readers of these files, refuse the same values: examples, and changes of them."""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from holdfast_command import holdfast
from jsonschema import Draft202012Validator, ValidationError

from holdfast import apps, schemas, yaml_model
from holdfast.apps.bng.live import LiveConfiguration
from holdfast.apps.firewall.rules import RuleSet
from holdfast.compare import scenario
from holdfast.compare.traffic_file import TrafficFile
from holdfast.entries_files.yaml_entries import Entries
from holdfast.errors import HoldfastError
from holdfast.topologies import yaml_file

HERE = Path(apps.__file__).parent

TOPOLOGY = """
# yaml-language-server: $schema=topology.schema.json
name: example
hosts:
  h1: {address: 10.0.1.1/24, mac: "02:00:00:00:00:11", gateway: none, position: [1, 2.5], commands: [ip link], vlan: 7}
  h2: {ipv6: "2001:db8:0:2::1/64", neighbours: {10.0.2.7: "02:00:00:00:00:17"}, interfaces: [{address: 10.9.0.1/24}]}
  h3:
switches:
  s1: {position: [0, 0], queueing: {queues: 2}, latency: 10us, device_id: 7, cpu_port: 510}
  s2: {latency_ms: 0.5, processor: {packets_per_s: 1000, queue_packets: 10}}
link_defaults: {rate: 1Gbps, delay: 1ms, queue_packets: 100}
links:
  - {a: h1, b: s1, rate_bps: 1e9, cost: 3}
  - {a: s1, b: s2, a_port: 7, jitter: {distribution: uniform, high_ms: 1}, loss: 1%, mtu_bytes: 9000, bfd: {tx_ms: 50, rx_ms: 50}}
  - {a: s1, b: s2, loss: {model: gilbert_elliott, p: 0.1, r: 0.5}, reverse: {delay_ms: 3}, detection_delay_ms: 3}
  - {a: h2, b: s2, jitter: {distribution: trace, delays_ms: [1, 2]}, loss: 0.01}
  - {a: h2, b: s1}
  - {a: h3, b: s2, loss: {model: trace, lost_packets: [1, 2]}}
packet_generators:
  - {switch: s1, port: 9, packet: "0200", period: 10ms, count: 3}
srlg: {duct: [s1-s2, "s1-s2#2"], other: [h3-s2]}
"""

TRAFFIC = """
pairs: [[h1, h2]]
udp:
  - {packets_per_s: 500, payload_bytes: 100, spacing: poisson}
  - {source: h1, receivers: [h2, h3], start: 10ms}
tcp:
  - {transfer_bytes: 50KB, after_failure_s: -0.2, count: 8, every_ms: 100}
  - {source: h1, destination: h2, rate: 2Mbps, options: {congestion: bbr, mss: 1000}}
ping: [{source: h1, destination: h2, interval: 10ms}]
"""

ENTRIES = """
tables:
  RouterIngress.ipv4_lpm:
    - {match: {hdr.ipv4.dst_addr: [167772160, 8]}, action: RouterIngress.forward, params: {port: 1}, priority: 3}
    - {action: drop, default: true}
multicast_groups: {1: [[1, 0], [2, 0]]}
clone_sessions: {2: [[3, 1]]}
registers: {Ingress.cells: {0: 5}}
"""


def _reader(model: type[Any]) -> Callable[[Path], object]:
    return lambda path: yaml_model.read(path, model)


def _topology(path: Path) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return yaml_file.read(path)


def _rules() -> str:
    """Return the rules of the firewall's README."""
    text = (HERE / "firewall/README.md").read_text()
    return max(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL), key=len)


FILES: dict[str, tuple[list[str], Callable[[Path], object]]] = {
    "topology": ([TOPOLOGY], _topology),
    "traffic": ([TRAFFIC], _reader(TrafficFile)),
    "entries": ([ENTRIES], _reader(Entries)),
    "rules": ([_rules()], _reader(RuleSet)),
    "gateway": ([(HERE / f"bng/{name}.yaml").read_text() for name in ("example", "split")], _reader(LiveConfiguration)),
}

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""Libyaml's, if it is there: it takes a tenth of the time."""

VALUES = (None, True, -1, 0, 3, 0.5, 1e30, "", "some text", "5ms", "5%", [], ["x"], [1, 2, 3], {}, {"x": 1})

SEVERAL_VALUES = re.compile(
    # Names of others.
    r"there is no (node|switch|zone|limit|link) '|is not declared in ports|declared twice|is there twice|no core port|"
    r"no interface for port|has the name of a|has a link twice|group name '|"
    # Values that belong together, or do not.
    r"has a link already|has no link|give (one of|either|source and destination)|belongs to the distribution|"
    r"there must be (1 to|either)|ports need protocol|a limit needs|it matches nothing|somebody must know|"
    r"with pools, the gateway needs|"
    # Texts.
    r"is not a valid IPv[46]|is neither a prefix nor|a command has words|exceeded maximum size"
)
"""What a reader says of values that make no sense together, or of texts whose form it alone knows."""


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schemas.schema(name))


def in_json(value: Any) -> Any:
    """Return a document as an editor sees it: keys are texts."""
    if isinstance(value, dict):
        return {str(key): in_json(each) for key, each in value.items()}
    return [in_json(each) for each in value] if isinstance(value, list) else value


def deepest(errors: Iterable[ValidationError]) -> str | None:
    """Return the first error as text, of several forms that a value can have the one that fits best; None without an error."""
    for error in errors:
        while error.context:
            error = max(error.context, key=lambda each: (len(each.absolute_path), -len(each.context or ())))
        return f"{list(error.absolute_path)}: {error.message}"
    return None


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(each, (*at, key))


def changed(document: Any, at: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    result = copy.deepcopy(document)
    holder = result
    for key in at[:-1]:
        holder = holder[key]
    change(holder, at[-1])
    return result


def changes(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield each place with half of :data:`VALUES`, each key left out, and an unknown key in each mapping, with a description."""

    def put(value: Any) -> Callable[[Any, Any], None]:
        return lambda holder, key: holder.__setitem__(key, value)

    def add(holder: Any, key: Any) -> None:
        holder[key]["no_such_key"] = 1

    for number, at in enumerate(places(document)):
        if not at:
            continue
        # Every other value at one place, the others at the next.
        for value in VALUES[number % 2 :: 2]:
            yield f"{at} = {value!r}", changed(document, at, put(value))
        yield f"{at} left out", changed(document, at, lambda holder, key: holder.pop(key))
        inner = document
        for key in at:
            inner = inner[key]
        if isinstance(inner, dict):
            yield f"unknown key in {at}", changed(document, at, add)


@pytest.mark.parametrize("name", FILES)
def test_examples_are_valid(name: str, tmp_path: Path) -> None:
    Draft202012Validator.check_schema(schemas.schema(name))
    for text in FILES[name][0]:
        (tmp_path / "file.yaml").write_text(text)
        FILES[name][1](tmp_path / "file.yaml")
        assert [error.message for error in validator(name).iter_errors(in_json(yaml.safe_load(text)))] == []


@pytest.mark.parametrize("name", FILES)
def test_schema_and_reader_refuse_the_same(name: str, tmp_path: Path) -> None:
    """Check that what the schema refuses is refused by the reader, and that the reader refuses more only for several values."""
    texts, read = FILES[name]
    file, checks = tmp_path / "file.yaml", validator(name)
    counted = {True: 0, False: 0}
    wrong = []
    for text in texts:
        for what, document in changes(yaml.safe_load(text)):
            file.write_text(yaml.dump(document, Dumper=DUMPER))
            try:
                read(file)
                sentence = None
            except HoldfastError as error:
                sentence = str(error)
            refused = deepest(checks.iter_errors(in_json(document)))
            if refused is not None and sentence is None:
                wrong.append(f"{what}: the schema alone refuses it: {refused}"[:300])
            if refused is None and sentence is not None and not SEVERAL_VALUES.search(sentence):
                wrong.append(f"{what}: the reader alone refuses it: {sentence}"[:300])
            counted[refused is None] += 1
    assert wrong == []
    assert min(counted.values()) > 20


def test_the_command_prints_schemas(tmp_path: Path) -> None:
    listed = holdfast("schema")
    assert [line.partition(":")[0] for line in listed.stdout.splitlines()] == list(schemas.NAMES)
    for name in schemas.NAMES:
        assert json.loads(json.dumps(schemas.schema(name))) == schemas.schema(name)
    assert json.loads(holdfast("schema", "topology").stdout) == schemas.schema("topology")
    assert holdfast("schema", "rules", "--out", str(tmp_path / "rules.json")).stdout == ""
    assert json.loads((tmp_path / "rules.json").read_text()) == schemas.schema("rules")
    wrong = holdfast("schema", "topolgy")
    assert wrong.stderr == "error: there is no schema 'topolgy'; did you mean 'topology'?\n" and wrong.returncode == 1


def test_a_scenario_that_was_written_is_valid(tmp_path: Path) -> None:
    path = scenario.build("ring:3", fail="s1-s2").write(tmp_path)
    assert [error.message for error in validator("scenario").iter_errors(json.loads(path.read_text()))] == []


def test_keys_have_words_and_units() -> None:
    link = schemas.schema("topology")["$defs"]["Link"]["properties"]
    assert "most bytes behind the Ethernet header" in link["mtu_bytes"]["description"]
    assert link["delay"]["examples"] == ["5ms"] and "The same as delay_ms" in link["delay"]["description"]
    (pattern,) = (each["pattern"] for each in link["rate"]["anyOf"] if "pattern" in each)
    for text, is_rate in (
        ("10Mbps", True),
        ("1.5 Gbit/s", True),
        ("100kbit", True),
        ("10MB/s", False),
        ("5ms", False),
        ("10", False),
    ):
        assert bool(re.match(pattern, text)) is is_rate, text
