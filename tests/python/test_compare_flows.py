"""A flow with several receivers: a P4 program copies it, or its source sends copies; each receiver is measured."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from holdfast._core import Program
from holdfast.compare import advice, figures, flows, live, results, runs, scenario, traffic_file
from holdfast.compare import mechanisms as registry
from holdfast.compare.comparison import Comparison
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.compare.traffic_file import Ends
from holdfast.controller import Controller
from holdfast.errors import HoldfastError
from holdfast.paths import path_by_cost

MULTICAST = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<8> version_ihl; bit<8> tos; bit<16> length; bit<16> id; bit<16> fragment; bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t {}
parser P(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { b.extract(h.ethernet); b.extract(h.ipv4); transition accept; }
}
control C(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action replicate(bit<16> tree) { s.mcast_grp = tree; }
    action drop() { mark_to_drop(s); }
    table groups {
        key = { h.ipv4.dst: exact; }
        actions = { replicate; drop; }
        default_action = drop();
    }
    apply { groups.apply(); }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out b, in headers_t h) { apply { b.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""

RATE, SENT = 1000, 600
"""Packets per second, and in the 0.6 s of a run."""
RECEIVERS = ("h2", "h3", "h4")
TRAFFIC = f"""
udp:
  - {{source: h1, receivers: [{", ".join(RECEIVERS)}], packets_per_s: {RATE}}}
"""


class Trees(Controller):
    """For each group the union of the routers' paths, along which a tree's switches copy."""

    def __init__(self, given: list[Ends]) -> None:
        super().__init__(reaction_delay_ms=0)
        self._given = given

    def on_start(self) -> None:
        topology = self.topology
        for tree, ends in enumerate(self._given, start=1):
            ports: dict[str, dict[int, None]] = {}
            root = topology.attachment(ends.source).switch
            for receiver in ends.receivers:
                leaf = topology.attachment(receiver)
                path = path_by_cost(topology, root, leaf.switch)
                for here, there in pairwise(path):
                    ports.setdefault(here, {})[topology.port_towards(here, there)] = None
                ports.setdefault(leaf.switch, {})[leaf.port] = None
            for switch, outgoing in ports.items():
                self.clients[switch].multicast_group(tree, [(port, 1) for port in outgoing])
                self.clients[switch].insert("I.groups", {"h.ipv4.dst": ends.group}, "I.replicate", {"tree": tree})


def trees(setting: Setting) -> Built:
    several = [ends for ends in setting.flows if ends.group is not None]
    unprotected = [pair for ends in several for pair in ends.pairs]
    return Built(Program.compile_text(MULTICAST, "multicast.p4"), Trees(several), unprotected)


@pytest.fixture(scope="module")
def with_trees() -> Iterator[Mechanism]:
    mechanism = Mechanism("trees", "a tree per flow, and nobody reacts", ("#000000", "#ffffff"), trees, multicast=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.MECHANISMS, "trees", mechanism)
        yield mechanism


def givens(folder: Path, traffic: str = TRAFFIC, *, fail: str = "s1-s2", live: bool = False) -> scenario.Scenario:
    path = folder / "traffic.yaml"
    path.write_text(traffic)
    when: dict[str, float | None] = {"before_s": 0.2, "down_s": 0.3, "after_s": 0.1, "detection_delay_ms": 20.0}
    return scenario.build("ring:4", fail=fail, traffic=path, when=when, live=live)


@pytest.fixture(scope="module")
def compared(with_trees: Mechanism, tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    folder = tmp_path_factory.mktemp("flows")
    chosen = registry.find(["static", "trees", "reroute", "1+1"])
    return results.run(givens(folder), chosen, [1], folder / "out"), folder / "out"


@pytest.fixture
def found(compared: tuple[Comparison, Path]) -> Comparison:
    return compared[0]


def test_each_receiver_is_measured_and_the_flow_follows_from_them(compared: tuple[Comparison, Path]) -> None:
    found, out = compared
    receivers = pl.read_parquet(out / "receivers.parquet").filter(pl.col("failure") == "s1-s2")
    flow = pl.read_parquet(out / "flows.parquet").filter(pl.col("failure") == "s1-s2")
    assert flow["destination"].unique().to_list() == ["h2 h3 h4"]
    for name in ("static", "trees"):
        each = receivers.filter(pl.col("mechanism") == name)
        (whole,) = flow.filter(pl.col("mechanism") == name).to_dicts()
        assert each["receiver"].to_list() == list(RECEIVERS)
        # s2 and s3 are behind the link that fails for 0.3 s, and s4 is not.
        lost = dict(zip(each["receiver"], each["lost"], strict=True))
        assert lost["h4"] == 0
        assert lost["h2"] == pytest.approx(0.3 * RATE, abs=4)
        assert lost["h3"] == pytest.approx(0.3 * RATE, abs=4)
        assert whole["sent"] == SENT * len(RECEIVERS)
        assert whole["lost"] == sum(lost.values())
        assert whole["outage_ms"] == each["outage_ms"].max() == pytest.approx(300, abs=4)
        # Of h2 nothing arrived meanwhile, so the flow has no mean.
        assert each["latency_ms"].is_null().to_list() == [True, True, False]
        assert whole["latency_ms"] is None
        case = next(case for case in found.cases if case.mechanism == name)
        assert (case.lost, case.sent, case.affected_streams) == (whole["lost"], whole["sent"], 1)


def test_the_network_copies_only_where_it_can(found: Comparison) -> None:
    by_name = {summary.mechanism: summary for summary in found.summaries}
    # The tree has s1-s2, s2-s3 and s1-s4; of a source that copies s1-s2 carries two of each packet.
    assert by_name["trees"].bytes_ratio == pytest.approx(3 / 4, abs=0.01)
    assert by_name["static"].bytes_ratio == 1
    assert by_name["1+1"].lost_mean < 5
    assert 0 < by_name["reroute"].lost_mean < by_name["static"].lost_mean
    assert by_name["trees"].lost_mean == pytest.approx(by_name["static"].lost_mean, abs=4)
    # State counts replicas: one entry on each of four switches, and 2 + 2 + 1 + 1 copies.
    assert by_name["trees"].entries_mean == (4 + 6) / 4
    assert by_name["trees"].unprotected_flows == 1
    assert by_name["1+1"].unprotected_flows == 0


def test_reports_speak_of_flows(compared: tuple[Comparison, Path], tmp_path: Path) -> None:
    found, out = compared
    assert traffic_file.describe(found.scenario.traffic) == f"1 UDP stream of {RATE} packets/s; 1 flow"
    assert any("Under trees the network copies packets, else the source." in note for note in advice.notes(found))
    assert any("trees" in note and "of 1 flows." in note for note in advice.notes(found))
    text = (out / "report.html").read_text()
    assert "of 1 flows<" in text and "pairs" not in text
    assert "<b>h1 to h2 h3 h4</b>" in text
    name, outage_ms, lost = found.worst_receiver("static", [0, 1, 2])
    assert (name, lost) == ("h2", pytest.approx(0.3 * RATE, abs=4))
    assert outage_ms == pytest.approx(300, abs=4)
    results.WORLD.report(found, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == text


def test_a_receiver_at_a_switch_that_fails_is_not_counted(tmp_path: Path, with_trees: Mechanism) -> None:
    found = results.run(givens(tmp_path, fail="s2"), registry.find(["static", "trees"]), [1], tmp_path / "out")
    assert [found.probes[i].receiver for i in found.measured(found.probes, "s2")] == ["h3", "h4"]
    for case in found.cases:
        # Only h3 is behind s2 for the others.
        assert case.sent == SENT * 2
        assert case.lost == pytest.approx(0.3 * RATE, abs=4)


def test_a_pair_is_the_case_of_one_receiver(tmp_path: Path) -> None:
    pair = "udp: [{source: h1, destination: h3, packets_per_s: 500}]"
    one = "udp: [{source: h1, receivers: [h3], packets_per_s: 500}]"
    rows = []
    for i, traffic in enumerate((pair, one)):
        path = givens(tmp_path, traffic).write(tmp_path / str(i))
        rows.append(runs.Prepared(str(path), "static", 1).run("s1-s2"))
    assert rows[0] == rows[1]
    assert givens(tmp_path, one).traffic.flows() == [Ends("h1", ("h3",))]


def test_flows_are_told_apart_by_their_groups(tmp_path: Path) -> None:
    entry = "{{source: {}, receivers: [{}]}}"
    text = f"udp: [{entry.format('h1', 'h2, h3')}, {entry.format('h1', 'h2, h3')}, {entry.format('h2', 'h3, h4')}]"
    given = givens(tmp_path, text)
    assert [ends.group for ends in given.traffic.flows()] == ["239.192.0.1", "239.192.0.2"]
    assert [flow.ends.group for flow in flows.flows_of(given)] == ["239.192.0.1", "239.192.0.1", "239.192.0.2"]
    assert [each.receiver for each in flows.receptions_of(given)] == ["h2", "h3", "h2", "h3", "h3", "h4"]
    setting = runs.setting_of(str(given.write(tmp_path / "runs")), given)
    assert setting.pairs == [("h1", "h2"), ("h1", "h3"), ("h2", "h3"), ("h2", "h4")]
    assert flows.not_protected(setting.flows, [("h4", "h2")]) == [1]
    assert flows.not_protected(setting.flows, [("h3", "h2"), ("h3", "h1")]) == [0, 1]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{source: h1, receivers: [h2, h2]}", "a receiver is given twice"),
        ("{source: h1, receivers: [h2, h1]}", "source and destination are both 'h1'"),
        ("{source: h1, receivers: [h2], destination: h3}", "give destination or receivers, not both"),
        ("{receivers: [h2, h3]}", "give source and destination, or neither"),
        ("{source: h1, receivers: []}", "at least 1 item"),
        ("{source: h1, receivers: [h2, h9]}", "there is no host 'h9'"),
        ("{source: h1, receivers: [h2, h3], packets_per_s: 600000}", "1.2e.06 packets per second in all"),
    ],
)
def test_receivers_that_make_no_sense_are_one_sentence(entry: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match=message):
        givens(tmp_path, f"udp: [{entry}]")


def test_live_a_source_sends_once_to_the_group_that_receivers_join(tmp_path: Path, with_trees: Mechanism) -> None:
    given = givens(tmp_path, live=True)
    live.check(given, registry.find(["static", "trees"]), [1])
    told = live._given(given, 1, multicast=True)
    (sent,) = [stream for each in told.values() for stream in each["udp_send"]]
    (group,) = {ends.group for ends in given.traffic.flows()}
    assert (sent["flow"], sent["address"]) == (0, group)
    joined = [told[host]["udp_receive"][0] for host in RECEIVERS]
    assert joined == [{"flow": i, "port": sent["port"], "group": group} for i in range(3)]


def test_live_a_source_sends_each_receiver_its_own(tmp_path: Path) -> None:
    told = live._given(givens(tmp_path, live=True), 1, multicast=False)
    assert [each["flow"] for each in told["h1"]["udp_send"]] == [0, 1, 2]
    assert [told[host]["udp_receive"][0]["flow"] for host in RECEIVERS] == [0, 1, 2]
    assert len({each["port"] for each in told["h1"]["udp_send"]}) == 3


def test_figures_of_a_flow() -> None:
    row = {
        "sent": [10, 10, 7],
        "lost": [1, 4, 0],
        "duplicated": [0, 2, 0],
        "reordered": [3, 0, 0],
        "outage_ms": [5.0, 9.0, 0.0],
        "latency_ms": [1.0, 3.0, None],
        "jitter_ms": [0.5, 0.25, 0.0],
    }
    flow = figures.figures(row, [0, 1])  # type: ignore[arg-type]
    assert (flow.sent, flow.lost, flow.duplicated, flow.reordered) == (20, 5, 2, 3)
    assert (flow.outage_ms, flow.latency_ms, flow.jitter_ms) == (9.0, 2.0, 0.375)
    assert figures.figures(row, [0, 1, 2]).latency_ms is None  # type: ignore[arg-type]
