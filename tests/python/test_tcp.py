"""TCP in simulated networks, from Python: options, measures, and the same bytes for the same seed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast import HoldfastError, Program
from holdfast.apps.router.controller import RouterController
from holdfast.errors import NetworkError, ParameterError
from holdfast.network import SimulatedNetwork
from holdfast.results import goodput, tcp_flows, tcp_window
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions, TcpTransfer

ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"


def dumbbell(rate_bps: int = 10_000_000, seed: int = 1) -> SimulatedNetwork:
    """Return a network with h1 and h2 at s1, h3 and h4 at s2, and a bottleneck between s1 and s2.

    The round trip over the bottleneck is 20 ms.
    """
    topology = Topology()
    for name in ("h1", "h2", "h3", "h4"):
        topology.add_host(name)
    for name in ("s1", "s2"):
        topology.add_switch(name)
    for host, switch in (("h1", "s1"), ("h2", "s1"), ("h3", "s2"), ("h4", "s2")):
        topology.add_link(host, switch, rate_bps=1_000_000_000, delay_ms=0.5)
    topology.add_link("s1", "s2", rate_bps=rate_bps, delay_ms=9, queue_bytes=30_000)
    program = Program.compile(str(ROUTER))
    return SimulatedNetwork(topology, program, [RouterController(reroute=False, reaction_delay_ms=0)], seed=seed)


@pytest.mark.parametrize("congestion", ["newreno", "cubic", "bbr"])
@pytest.mark.parametrize("recovery", ["newreno-impatient", "newreno-slow-but-steady", "sack", "sack-prr", "rack-tlp"])
def test_every_algorithm_delivers_a_transfer(congestion: str, recovery: str) -> None:
    if congestion == "bbr" and recovery.startswith("newreno"):
        pytest.skip("BBR needs selective acknowledgments")
    network = dumbbell()
    options = TcpOptions.model_validate({"congestion": congestion, "recovery": recovery})
    transfers = [
        TcpTransfer(source=a, destination=b, application="transfer", transfer_bytes=1_000_000, options=options)
        for a, b in (("h1", "h3"), ("h2", "h4"))
    ]
    flows = [network.add_tcp(transfer) for transfer in transfers]
    network.run(60.0)
    table = tcp_flows(network, flows)
    assert table["bytes_received"].to_list() == [1_000_000, 1_000_000]
    assert table["failure"].to_list() == [None, None]
    # 2 MB do not fit through 10 Mb/s in less.
    assert table["finished_ps"].max() > 1_600_000_000_000
    for flow in flows:
        assert goodput(network, flow, 600).sum() == 1_000_000


def test_two_flows_share_and_fill_the_bottleneck() -> None:
    network = dumbbell()
    options = TcpOptions(congestion="cubic", recovery="sack", timestamps=True)
    flows = [
        network.add_tcp(TcpTransfer(source=a, destination=b, options=options, log_window=True))
        for a, b in (("h1", "h3"), ("h2", "h4"))
    ]
    network.run(30.0)
    shares = [goodput(network, flow, 300)[100:].sum() * 8 / 20 / 10e6 for flow in flows]
    # 1436 of 1526 bytes on the wire are payload.
    assert sum(shares) == pytest.approx(1436 / 1526, rel=0.03)
    assert min(shares) > 0.2
    window = tcp_window(network, flows[0])
    assert window["time_ps"].is_sorted()
    assert window["srtt_ps"].max() > 19_000_000_000
    silent = network.add_tcp(TcpTransfer(source="h1", destination="h3", start_s=30))
    with pytest.raises(HoldfastError, match="log_window only"):
        tcp_window(network, silent)


def test_the_simulator_of_2001_is_slower_to_recover() -> None:
    """Check, after a cut of half a second, that a coarse clock with a timeout of at least a second waits longer than RACK-TLP."""

    def bytes_in_five_seconds(options: TcpOptions) -> int:
        network = dumbbell()
        flow = network.add_tcp(TcpTransfer(source="h1", destination="h3", options=options))
        network.set_link("s1-s2", up=False, at_s=2.0)
        network.set_link("s1-s2", up=True, at_s=2.5)
        network.run(7.0)
        return int(goodput(network, flow, 70)[20:].sum())

    old = bytes_in_five_seconds(TcpOptions(preset="ns2-2001"))
    new = bytes_in_five_seconds(TcpOptions(congestion="cubic", recovery="rack-tlp", rto_minimum_ms=200))
    assert 0 < old < new


@pytest.mark.parametrize("application", [{}, {"application": "transfer", "transfer_bytes": 10**12}])
def test_it_stops(application: dict[str, Any]) -> None:
    network = dumbbell()
    flow = network.add_tcp(TcpTransfer(source="h1", destination="h3", stop_s=2, **application))
    network.run(10)
    bins = goodput(network, flow, 100)
    # What was on the way at two seconds arrives: a window of some round trips.
    assert bins[:20].sum() > 1_000_000
    assert bins[25:].sum() == 0
    statistics = network.tcp_statistics(flow)
    assert 2e12 < statistics.finished_ps < 2.5e12
    assert statistics.failure is None


def test_a_seed_gives_the_same_run() -> None:
    def run(seed: int) -> list[int]:
        network = dumbbell(seed=seed)
        transfer = TcpTransfer(
            source="h1",
            destination="h3",
            application="on-off",
            transfer_bytes=20_000,
            silence_ms=30,
            exponential=True,
            goodput_bin_ms=10,
        )
        flow = network.add_tcp(transfer)
        network.run(5.0)
        return goodput(network, flow, 500).to_list()

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_tshark_reads_the_segments(tmp_path: Path) -> None:
    network = dumbbell()
    network.capture("h3", 0, tmp_path / "h3.pcap")
    network.add_tcp(
        TcpTransfer(
            source="h1",
            destination="h3",
            application="transfer",
            transfer_bytes=10_000,
            options=TcpOptions(recovery="sack", timestamps=True),
        )
    )
    network.run(2.0)
    try:
        fields = ["-T", "fields", "-e", "tcp.flags.str", "-e", "tcp.len", "-e", "tcp.checksum.status"]
        check = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
        command = ["tshark", "-r", str(tmp_path / "h3.pcap"), *check, *fields]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except FileNotFoundError:
        pytest.skip("tshark is not installed")
    rows = [line.split("\t") for line in output.splitlines()]
    assert sum(int(length) for _, length, _ in rows) == 10_000
    assert {status for *_, status in rows} == {"1"}
    assert "S" in rows[0][0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"application": "transfer"}, "transfer_bytes"),
        ({"transfer_bytes": 5}, "transfer_bytes"),
        ({"application": "on-off", "transfer_bytes": 5}, "silence_ms"),
        ({"start_s": 2.0, "stop_s": 1.0}, "before"),
        ({"options": {"congestion": "vegas"}}, "newreno"),
        ({"options": {"mss": 0}}, "mss"),
        ({"option": {}}, "TcpTransfer: option: unknown key; did you mean 'options'?"),
        ({"start_s": float("nan")}, "TcpTransfer: start_s: Input should be a finite number"),
        ({"stop_s": 1e30}, "TcpTransfer: stop_s: Input should be less than or equal to 9000000"),
        ({"options": {"rto_minimum_ms": -1}}, "TcpTransfer: options.rto_minimum_ms: Input should be"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        TcpTransfer(**{"source": "h1", "destination": "h3"} | fields)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_what_the_network_cannot_do_is_refused() -> None:
    network = dumbbell()
    transfer = TcpTransfer(source="h1", destination="h3", source_port=1)
    network.add_tcp(transfer)
    with pytest.raises(HoldfastError, match="ports"):
        network.add_tcp(transfer)
    with pytest.raises(NetworkError, match="'h9'"):
        network.add_tcp(TcpTransfer(source="h1", destination="h9"))
    with pytest.raises(HoldfastError, match="selective acknowledgments"):
        bbr = TcpOptions(congestion="bbr", recovery="newreno-impatient")
        network.add_tcp(TcpTransfer(source="h1", destination="h3", options=bbr))
    with pytest.raises(HoldfastError, match="window_limit_bytes"):
        network.add_tcp(TcpTransfer(source="h1", destination="h3", options=TcpOptions(mss=1000, window_limit_bytes=10)))


def test_slow_start_counts_as_it_is_told() -> None:
    def bytes_in(options: dict[str, object]) -> int:
        network = dumbbell(rate_bps=1_000_000_000)
        transfer = TcpTransfer(source="h1", destination="h3", options=TcpOptions.model_validate(options))
        flow = network.add_tcp(transfer)
        network.run(0.11)
        return tcp_flows(network, [flow])["bytes_sent"][0]

    # One acknowledgment per two segments: the window doubles each round trip, or grows by a half.
    doubled, by_half = bytes_in({}), bytes_in({"increase": "per-ack"})
    assert doubled > 1.5 * by_half
    assert bytes_in({"slow_start_limit_segments": 1}) == by_half


def test_cubic_can_do_without_the_region_of_reno() -> None:
    def recoveries(friendly: bool) -> int:
        network = dumbbell(rate_bps=20_000_000)
        options = TcpOptions(
            congestion="cubic", recovery="sack", cubic_tcp_friendly=friendly, cubic_fast_convergence=False
        )
        flow = network.add_tcp(TcpTransfer(source="h1", destination="h3", options=options))
        network.run(20.0)
        return tcp_flows(network, [flow])["fast_recoveries"][0]

    assert recoveries(True) > recoveries(False)


@pytest.mark.parametrize(
    ("options", "belongs"),
    [
        ({"cubic_tcp_friendly": False}, "cubic"),
        ({"recovery": "sack", "newreno_exit": "ssthresh"}, "newreno-impatient"),
        ({"increase": "per-ack", "slow_start_limit_segments": 1}, "per-byte"),
    ],
)
def test_details_of_another_algorithm_are_refused(options: dict[str, object], belongs: str) -> None:
    network = dumbbell()
    with pytest.raises(HoldfastError, match=belongs):
        network.add_tcp(TcpTransfer(source="h1", destination="h3", options=TcpOptions.model_validate(options)))
