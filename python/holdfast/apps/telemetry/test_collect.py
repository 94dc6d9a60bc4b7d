"""``holdfast collect``: from the socket, from captures, to Parquet, to Prometheus, on a terminal."""

from __future__ import annotations

import errno
import os
import re
import socket
import threading
import time
import urllib.request
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from holdfast import SimulatedNetwork, UdpStream, _core, cli, whole_files
from holdfast.apps.telemetry import TelemetryController, Watch, collect, metrics, showing
from holdfast.apps.telemetry.collector import Collector
from holdfast.apps.telemetry.conftest import Compile
from holdfast.apps.telemetry.program import COLLECTOR_PORT
from holdfast.apps.telemetry.rows import MOST_ROWS, RowWriter, take
from holdfast.apps.telemetry.test_collector import GOOD, md, report
from holdfast.apps.telemetry.test_network import line
from holdfast.errors import LiveError


def send(port: int, *payloads: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for payload in payloads:
            sender.sendto(payload, ("127.0.0.1", port))


def test_reports_from_the_socket() -> None:
    collector = Collector()
    receiver = collect.Receiver(collector, "127.0.0.1", 0)
    send(receiver.port, GOOD, b"nonsense", b"", md(1, (1, 5), own=(3, 7)))
    while collector.counts().packets < 4:
        assert receiver.receive(60) > 0
    assert receiver.receive(0.01) == 0
    assert (collector.counts().reports, sum(collector.malformed().values())) == (2, 2)


def test_what_is_beyond_capacity_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "RECEIVE_BUFFER_BYTES", 4096)
    collector = Collector()
    sent = 500
    receiver = collect.Receiver(collector, "127.0.0.1", 0)
    send(receiver.port, *(md(number, (1, 5), own=(3, 7)) for number in range(sent)))
    while receiver.receive(0.2):
        pass
    receiver.count_drops()
    receiver.count_drops()  # counted once
    assert collector.receive_drops > 0
    assert collector.counts().packets + collector.receive_drops == sent


def numbered(number: int) -> bytes:
    """Return a report whose sequence number, node and metadata are all ``number``."""
    return report(number, node=number, bits=0x2000, metadata=number.to_bytes(4, "big"))


def test_made_up_ports_make_no_page_longer_and_take_no_series_away() -> None:
    collector = Collector()
    collector.take(0, md(1, (2, 20), (1, 10), own=(3, 30)))
    for number in range(30_000):
        collector.take(0, numbered(1000 + number))
    page = metrics.text(collector)
    assert len(page) < 3 << 20
    series = [line for line in page.splitlines() if line.startswith("holdfast_int_hop_packets_total")]
    assert len(series) == metrics.MOST_SERIES
    assert series[:3] == [f'holdfast_int_hop_packets_total{{node="{node}",port="unknown"}} 1' for node in (1, 2, 3)]
    kept = collector.counts().hops
    assert f"holdfast_int_hops {kept}" in page
    assert f"holdfast_int_hops_without_series {kept - metrics.MOST_SERIES}" in page


@pytest.mark.parametrize("with_rows", [False, True])
def test_what_is_made_of_reports_does_not_hold_up_their_receiving(tmp_path: Path, with_rows: bool) -> None:
    """Checks that all packets are taken that arrive while the view is made, for long."""
    collector = Collector(with_rows=with_rows, most_rows=MOST_ROWS)
    rows = RowWriter(tmp_path / "rows", collector) if with_rows else None
    receiver = collect.Receiver(collector, "127.0.0.1", 0, rows)
    taken: list[int] = []

    def slow() -> None:
        if taken:
            return
        send(receiver.port, *(md(number, own=(3, 7)) for number in range(500)))
        end_s = time.monotonic() + 30
        while collector.counts().packets < 500 and time.monotonic() < end_s:
            time.sleep(0.01)
        taken.append(collector.counts().packets)

    receiver.run(time.monotonic() + 0.1, slow)
    assert taken == [500]
    if rows is not None:
        rows.close()
        written = sum(pl.read_parquet(file).height for file in (tmp_path / "rows").glob("*.parquet"))
        assert written + collector.counts().rows_refused == collector.counts().reports


def test_packets_that_wait_at_the_end_are_taken_or_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for drain_s, everything in ((10.0, True), (0.0, False)):
        monkeypatch.setattr(collect, "DRAIN_S", drain_s)
        collector = Collector()
        receiver = collect.Receiver(collector, "127.0.0.1", 0)
        send(receiver.port, *(md(number, own=(3, 7)) for number in range(1000)))
        receiver._ended.set()
        receiver._take()
        packets = collector.counts().packets
        assert packets + collector.left + collector.receive_drops == 1000
        assert (collector.left == 0) is everything
        send(receiver.port, md(1, own=(3, 7)))
        assert receiver.receive(0.05) == 0
        assert collector.receive_drops == 0


def test_a_failure_of_the_socket_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = collect.Receiver(Collector(), "127.0.0.1", 0)

    def fail(timeout_s: float, for_s: float = 0.0) -> int:
        raise _core.HoldfastError("no network")

    monkeypatch.setattr(receiver, "receive", fail)
    with pytest.raises(LiveError, match="cannot receive reports: no network"):
        receiver.run(None, lambda: None)


def test_rows_that_cannot_be_written_are_counted_and_the_next_file_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Collector(with_rows=True)
    rows = RowWriter(tmp_path / "out", collector, rows_per_file=3)
    write_bytes = whole_files.write_bytes

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for number, write in enumerate((full, write_bytes, full, write_bytes)):
        monkeypatch.setattr(whole_files, "write_bytes", write)
        collector.take(number, md(number, (2, 20), (1, 10), own=(3, 30)))
        rows.write_full()
    rows.close()
    files = sorted((tmp_path / "out").iterdir())
    assert [pl.read_parquet(file).height for file in files] == [3, 3]
    assert collector.rows_lost == 6
    assert rows.failure is not None
    assert "No space left on device" in rows.failure
    assert "6 rows in no file" in showing.summary(collector)


def test_rows_beyond_memory_are_counted() -> None:
    collector = Collector(with_rows=True, most_rows=4)
    for number in range(5):
        collector.take(number, md(number, (2, 20), (1, 10), own=(3, 30)))
    assert (collector.core.rows, collector.counts().rows_refused) == (6, 9)
    assert take(collector).height == 6


def test_it_listens_until_its_time_is_over() -> None:
    refreshed = []
    receiver = collect.Receiver(Collector(), "::1" if socket.has_ipv6 else "127.0.0.1", 0)
    receiver.run(time.monotonic() + 0.05, lambda: refreshed.append(None))
    assert refreshed


def test_where_it_cannot_listen() -> None:
    receiver = collect.Receiver(Collector(), "127.0.0.1", 0)
    with pytest.raises(LiveError, match="cannot listen for reports"):
        collect.Receiver(Collector(), "127.0.0.1", receiver.port)
    with pytest.raises(LiveError, match="is no IP address"):
        collect.Receiver(Collector(), "localhost", 0)


def test_metrics() -> None:
    collector = Collector()
    for payload in (GOOD, md(3, (2, 25), (1, 10), own=(3, 30)), b"x"):
        collector.take(0, payload)
    page = metrics.text(collector)
    lines = page.splitlines()
    for expected in (
        "holdfast_int_reports_total 2",
        "holdfast_int_reports_lost_total 2",
        'holdfast_int_malformed_total{reason="short group header"} 1',
        "holdfast_int_flows 1",
        'holdfast_int_hop_packets_total{node="2",port="unknown"} 2',
        'holdfast_int_hop_latency_seconds_bucket{node="2",port="unknown",le="2e-05"} 1',
        'holdfast_int_hop_latency_seconds_bucket{node="2",port="unknown",le="+Inf"} 2',
        'holdfast_int_hop_latency_seconds_sum{node="2",port="unknown"} 4.5e-05',
    ):
        assert expected in lines
    # Every family is declared once, before its samples.
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


def test_rows(tmp_path: Path) -> None:
    collector = Collector(with_rows=True)
    rows = RowWriter(tmp_path / "out", collector, rows_per_file=4)
    for number in range(3):
        collector.take(number, md(number, (2, 20), (1, 10), own=(3, 30)))
        rows.write_full()
    collector.take(9, report(3, in_type=0))
    rows.close()
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(files) == 2
    frame = pl.concat(pl.read_parquet(file) for file in files)
    assert frame["node_id"].to_list() == [1, 2, 3] * 3 + [1]
    assert frame["latency"].to_list() == [10, 20, 30] * 3 + [None]
    assert frame["hop"].to_list() == [0, 1, 2] * 3 + [0]
    assert frame["source"].to_list() == ["10.0.0.1"] * 9 + [None]
    with pytest.raises(LiveError, match="there are reports in"):
        RowWriter(tmp_path / "out", collector)


def unwrapped(output: str) -> str:
    """Return the printed text, independent of the terminal's width; cells of one column follow each other."""
    lines = [re.split("[│┃]", line)[1:-1] or [line] for line in output.splitlines()]
    rows = [line for line in lines if len(line) > 1]
    columns = [" ".join(cell.strip() for cell in column) for column in zip_longest(*rows, fillvalue="")]
    return " ".join((output.replace("\n", " ") + " " + " ".join(columns)).split())


def test_the_command_reads_a_simulations_capture(tmp_path: Path, compiled: Compile) -> None:
    controller = TelemetryController([Watch()], collector="c", reaction_delay_ms=1)
    network = SimulatedNetwork(line(3), compiled(), [controller])
    network.capture("c", 0, tmp_path / "c.pcap")
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=0.02))
    network.run(until_s=0.1)
    arguments = ["collect", "--capture", str(tmp_path / "c.pcap"), "--parquet", str(tmp_path / "rows")]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    printed = unwrapped(result.output)
    assert "20 reports in 20 packets; 0 lost on the way, 0 beyond capacity, 0 malformed; 0 drops reported" in printed
    assert "10.0.1.1:5001 > 10.0.2.1:5001 udp" in printed
    assert "1 2 3" in printed
    frame = pl.read_parquet(tmp_path / "rows" / "reports-00000.parquet")
    assert frame.height == 60
    assert frame["time_ns"].is_sorted()


def test_the_command_listens(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with socket.socket() as free_too:
        free_too.bind(("127.0.0.1", 0))
        shown = free_too.getsockname()[1]
    done = threading.Event()
    pages: list[str] = []

    def keep_sending() -> None:
        number = 0
        while not done.wait(0.05):
            send(port, md(number, (1, 5), own=(3, 7)))
            number += 1
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{shown}/metrics", timeout=60) as answer:
                pages.append(answer.read().decode())

    sender = threading.Thread(target=keep_sending)
    sender.start()
    try:
        arguments = ["collect", "--listen", f"127.0.0.1:{port}", "--for", "1.5", "--metrics", f"127.0.0.1:{shown}"]
        result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, arguments)
    finally:
        done.set()
        sender.join()
    assert result.exit_code == 0, result.output
    assert f"listening at 127.0.0.1, port {port}" in result.output
    assert "10.0.0.1:1 > 10.0.0.2:80 tcp" in unwrapped(result.output)
    assert "holdfast_int_packets_total" in pages[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listen", "nowhere"], "--listen is 'nowhere'; it must be ADDRESS:PORT"),
        (["--metrics", "127.0.0.1:70000"], "--metrics is '127.0.0.1:70000'"),
        (["--listen", "[::1:0", "--for", "0.1"], "--listen is '[::1:0'; it must be ADDRESS:PORT"),
        (["--listen", "::1]:0", "--for", "0.1"], "--listen is '::1]:0'; it must be ADDRESS:PORT"),
        (["--listen", "[[::1]]:0", "--for", "0.1"], "--listen is '[[::1]]:0'; it must be ADDRESS:PORT"),
        (["--metrics", "[]:0", "--for", "0.1"], "--metrics is '[]:0'; it must be ADDRESS:PORT"),
        (["--capture", "/nonexistent.pcap"], "cannot read '/nonexistent.pcap': No such file"),
        (["--capture", "c.pcap", "--metrics", "127.0.0.1:0"], "--metrics and --for belong to listening"),
        (["--capture", "c.pcap", "--for", "1"], "--metrics and --for belong to listening"),
    ],
)
def test_what_the_command_refuses(arguments: list[str], message: str) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["collect", *arguments])
    assert isinstance(result.exception, LiveError)
    assert message in str(result.exception)


def test_a_capture_without_reports(tmp_path: Path) -> None:
    _core.write_pcap(tmp_path / "none.pcap", [(0, bytes(60))])
    result = CliRunner().invoke(cli.app, ["collect", "--capture", str(tmp_path / "none.pcap")])
    assert f"no UDP packets to port {COLLECTOR_PORT}" in str(result.exception)
    (tmp_path / "text").write_text("text")
    result = CliRunner().invoke(cli.app, ["collect", "--capture", str(tmp_path / "text")])
    assert result.exit_code != 0
