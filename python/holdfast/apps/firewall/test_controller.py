"""The controller in simulated networks, with the thesis's network, and the rule set of the README."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import Ping, SimulatedNetwork, TcpTransfer, Topology, UdpStream
from holdfast._core import Program
from holdfast.apps.firewall import FirewallController, RuleSet, analyse, compile_firewall, read
from holdfast.apps.firewall.program import HERE, Variant
from holdfast.apps.firewall.tests import packets as make
from holdfast.errors import NetworkError


def thesis_network() -> Topology:
    """Return the network of the thesis's figure 3.2: two hosts at each of two edge switches, and a switch between."""
    topology = Topology("thesis")
    for host in ("h1", "h2", "h3", "h4"):
        topology.add_host(host, ipv6=f"2001:db8:{host[1]}::1/64")
    for switch in ("s1", "s2", "s3"):
        topology.add_switch(switch)
    for a, b in (("h1", "s1"), ("h2", "s1"), ("h3", "s2"), ("h4", "s2"), ("s1", "s3"), ("s3", "s2")):
        topology.add_link(a, b, rate_bps=1e9, delay_ms=0.1)
    return topology


def rules(*hosts: str, **changes: Any) -> RuleSet:
    return RuleSet.model_validate(
        {
            "zones": {"hosts": {"hosts": list(hosts)}, "core": {"switches": True}},
            "rules": [{"name": "all", "action": "allow"}],
            **changes,
        }
    )


@pytest.mark.parametrize("variant", ["bindings", "routed"])
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_host_has_no_access_until_it_is_bound(variant: Variant, family: Any) -> None:
    """The thesis's test (section 3.4): host 4 is outside until an entry says otherwise."""
    controller = FirewallController(rules("h1", "h2", "h3"), reaction_delay_ms=1)
    network = SimulatedNetwork(thesis_network(), compile_firewall(variant, {"WAY_BITS": "8"}), [controller], seed=1)
    inside = network.add(UdpStream(source="h1", destination="h3", stop_s=1, family=family))
    to, of = (
        network.add(UdpStream(source=a, destination=b, stop_s=1, source_port=7, family=family))
        for a, b in (("h1", "h4"), ("h4", "h1"))
    )
    network.run(until_s=0.5)
    assert network.statistics(to).delivered == network.statistics(of).delivered == 0
    assert controller.drops("s2")["unknown_port"][0] > 490
    assert controller.drops("s2")["unknown_receiver"][0] > 490
    controller.replace(rules("h1", "h2", "h3", "h4"))
    network.run(until_s=1.5)
    assert network.statistics(inside).lost == 0
    for flow in (to, of):
        assert 490 < network.statistics(flow).delivered < 510


def test_flows_of_all_kinds_go_through_a_network() -> None:
    controller = FirewallController(rules("h1", "h3"), reaction_delay_ms=1)
    network = SimulatedNetwork(thesis_network(), compile_firewall("routed", {"WAY_BITS": "8"}), [controller], seed=1)
    transfer = network.add_tcp(
        TcpTransfer(source="h1", destination="h3", application="transfer", transfer_bytes=2_000_000)
    )
    ping = network.add(Ping(source="h3", destination="h1", stop_s=1))
    network.run(until_s=3)
    assert network.tcp_statistics(transfer).bytes_received == 2_000_000
    assert network.statistics(ping).lost == 0
    assert all(controller.drops(switch) == {} for switch in ("s1", "s2", "s3"))
    # Edge switches judge the first packet of each flow, the one between none.
    assert [controller.hits(switch)["all"] for switch in ("s1", "s2", "s3")] == [2, 2, 0]


def test_a_zone_that_may_only_reply_replies() -> None:
    zones = {"a": {"hosts": ["h1"]}, "b": {"hosts": ["h3"], "may": "reply"}, "core": {"switches": True}}
    controller = FirewallController(rules(zones=zones), reaction_delay_ms=1)
    network = SimulatedNetwork(thesis_network(), compile_firewall("routed", {"WAY_BITS": "8"}), [controller], seed=1)
    asked = network.add(Ping(source="h1", destination="h3", stop_s=0.5))
    asking = network.add(Ping(source="h3", destination="h1", stop_s=0.5))
    network.run(until_s=1)
    assert network.statistics(asked).lost == 0
    assert network.statistics(asking).delivered == 0
    assert set(controller.drops("s2")) == {"reply_only"}
    assert {(entry.switch, entry.reason) for entry in controller.log} == {("s2", "reply_only")}


def test_hosts_that_are_not_there_are_an_error() -> None:
    controller = FirewallController(rules("h9"), reaction_delay_ms=1)
    with pytest.raises(NetworkError, match="zone 'hosts' names host 'h9'"):
        SimulatedNetwork(thesis_network(), compile_firewall("bindings"), [controller], seed=1).run(until_s=0.1)


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    """Write the rule file of the README to a file, and return its path."""
    [text] = re.findall(r"```yaml\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    return file


def test_the_program_of_the_readme_prints_what_it_says(
    readme: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(readme.parent)
    exec(program, {})
    [printed] = re.findall(r"print\(.*\)  # (9.*)\n", program)
    first, last = capsys.readouterr().out.splitlines()
    assert first == printed
    assert "reason='no_rule', port=3" in last


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(NetworkError, match="variant is 'open'; there are routed, bridged, bindings"):
        compile_firewall("open")  # type: ignore[arg-type]


def test_the_rules_of_the_readme_do_what_it_says(
    readme: Path, standalone: Any, programs: dict[Variant, Program], executor: str
) -> None:
    rules = read(readme).value
    assert analyse(rules) == []
    bridge = standalone(programs["bridged"], rules, executor)

    def frame(src: int, dst: int, packet: bytes) -> bytes:
        return make.ethernet(make.mac(dst), make.mac(src), 0x86DD if packet[0] >> 4 == 6 else 0x0800, packet)

    web = make.ipv4("203.0.113.9", "10.0.2.1", 6, make.tcp(4000, 443, make.SYN, seq=1))
    assert bridge.reason(3, frame(3, 2, web)) == "passes"
    answer = make.ipv4("10.0.2.1", "203.0.113.9", 6, make.tcp(443, 4000, make.SYN | make.ACK, seq=5, ack=2))
    assert bridge.reason(2, frame(2, 3, answer)) == "passes"
    begins = make.ipv4("10.0.2.1", "203.0.113.9", 6, make.tcp(4001, 443, make.SYN))
    assert bridge.reason(2, frame(2, 3, begins)) == "reply_only"
    ssh = make.ipv4("203.0.113.9", "10.0.2.1", 6, make.tcp(4000, 22, make.SYN))
    assert bridge.reason(3, frame(3, 2, ssh)) == "no_rule"
    telnet = make.ipv4("10.0.1.1", "203.0.113.9", 6, make.tcp(4000, 23, make.SYN))
    assert bridge.reason(1, frame(1, 3, telnet)) == "denied"
    ping = make.ipv6("2001:db8:1::1", "2001:db8:f::9", 58, make.icmp(128, 0, 7, 1))
    assert bridge.reason(1, frame(1, 3, ping)) == "passes"
    names = make.ipv4("10.0.1.1", "203.0.113.9", 17, make.udp(5000, 53))
    assert [bridge.reason(1, frame(1, 3, names)) for _ in range(101)] == 100 * ["passes"] + ["rate_limit"]


def test_the_tables_of_the_readme_are_those_of_the_program() -> None:
    text = (HERE / "README.md").read_text()
    for variant in ("routed", "bridged", "bindings"):
        p4info = compile_firewall(variant).p4info  # type: ignore[arg-type]
        for name in re.findall(r'preamble \{\s+id: \d+\s+name: "FirewallIngress\.([\w.]+)"', p4info):
            short = name.removeprefix("judge_flow.")
            assert f"`{short}" in text, (variant, name)
