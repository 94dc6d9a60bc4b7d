"""What gateways, collectors, switches and networks show over HTTP keeps the same bounds, whoever asks."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast import LiveNetwork, Topology, _core
from holdfast.apps.telemetry import metrics as collector_metrics
from holdfast.apps.telemetry.collector import Collector
from holdfast.errors import LiveError
from holdfast.live import metrics as switch_metrics
from holdfast.live import network_metrics
from holdfast.live.switch import LiveSwitch
from holdfast.operations import clients, directory, exposition, pages, verbs
from holdfast.operations.events import Events
from holdfast.p4runtime.server import Server
from holdfast.subscribers import service
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.tests.worlds import MemoryPlane, configuration

ROUTER = Path(__file__).parents[2] / "apps/router/router.p4"
INTERFACES = pytest.mark.skipif(_core.interfaces_ready() is not None, reason="interfaces need root")


@contextmanager
def collector() -> Iterator[pages.Pages]:
    found = Collector()
    with pages.Pages(lambda: collector_metrics.families(found), 0) as shown:
        yield shown


@contextmanager
def gateway() -> Iterator[pages.Pages]:
    """Run a gateway in an event loop of its own."""
    running: list[tuple[pages.Pages, asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()

    async def run() -> None:
        plane = MemoryPlane(AsyncClock(asyncio.get_running_loop()))  # type: ignore[arg-type]
        over = asyncio.Event()
        named = configuration(metrics_port=0).model_copy(update={"name": f"pages-{os.getpid()}"})
        async with service.Service(named, plane) as serving:
            assert serving.shown is not None
            running.append((serving.shown, asyncio.get_running_loop(), over))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert ready.wait(60)
    shown, loop, over = running[0]
    try:
        yield shown
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(60)


@contextmanager
def switch() -> Iterator[pages.Pages]:
    with ExitStack() as stack:
        live = stack.enter_context(LiveSwitch(_core.Program.compile(str(ROUTER))))
        server = stack.enter_context(Server([live.device], "127.0.0.1:0"))
        yield stack.enter_context(switch_metrics.pages(live, server, pages.LOOPBACK, 0, events=Events()))


@contextmanager
def network() -> Iterator[pages.Pages]:
    topology = Topology("pages")
    for name in ("s1", "s2"):
        topology.add_switch(name)
    topology.add_link("s1", "s2")
    with (
        LiveNetwork(topology, _core.Program.compile(str(ROUTER)), interfaces={}) as running,
        network_metrics.pages(running) as shown,
    ):
        yield shown


Shown = Callable[[], AbstractContextManager[pages.Pages]]
PROGRAMS = [collector, gateway, pytest.param(switch, marks=INTERFACES), pytest.param(network, marks=INTERFACES)]


@pytest.fixture(params=PROGRAMS)
def shown(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pages.Pages]:
    monkeypatch.setattr(directory, "DIRECTORY", tmp_path)
    with request.param() as found:
        yield found


def get(port: int, path: str, *, host: str | None = None, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def raw(port: int, data: bytes) -> bytes:
    """Send bytes and their end, and return all that comes back."""
    answer = bytearray()
    with socket.create_connection(("127.0.0.1", port), 60) as connection, suppress(OSError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(1 << 16):
            answer += part
    return bytes(answer)


def test_metrics_are_what_prometheus_reads(shown: pages.Pages) -> None:
    status, headers, body = get(shown.port, "/metrics")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(body.decode()))
    names = [family.name for family in families]
    assert len(names) > 5
    assert len(set(names)) == len(names), "each family is declared once"
    assert all(family.documentation.endswith(".") for family in families)
    assert all(
        name.startswith(("holdfast_int_", "holdfast_bng_", "holdfast_switch_", "holdfast_network_")) for name in names
    )


def test_the_snapshot_has_the_same_numbers(shown: pages.Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FRESH_S", 60.0)
    page = get(shown.port, "/metrics")[2].decode()
    status, headers, body = get(shown.port, "/snapshot")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    metrics = json.loads(body)["metrics"]
    count = 0
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found = metrics[sample.name]
            value = found["values"]
            for label in found["labels"]:
                value = value[sample.labels[label]]
            assert value == pytest.approx(sample.value, rel=1e-9)
            count += 1
    assert count > 5


def test_it_listens_on_loopback_unless_told_otherwise(shown: pages.Pages) -> None:
    assert shown.host == "127.0.0.1"
    listening = f"0100007F:{shown.port:04X} 00000000:0000 0A"
    assert any(listening in line for line in Path("/proc/net/tcp").read_text().splitlines())


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", 200),
        (b'GET /metrics?x=%00"} HTTP/1.1\r\nHost: x\r\n' + b"A: b\r\n" * 50 + b"\r\n", 200),
        (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET http://127.0.0.1/metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET http://127.0.0.1/snapshot HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200),
        (b"GET http://evil.example/snapshot HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 421),
        (b"GET /snapshot HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET / HTTP/1.0\r\n\r\n", 404),
        (b"GET http://127.0.0.1 HTTP/1.0\r\n\r\n", 404),
        (b"GET /../../etc/passwd HTTP/1.0\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\n", 405),
        # RFC 9112: a Host is demanded (3.2), one alone, and no blank is in front of its colon (5.1).
        (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET /snapshot HTTP/1.1\r\nHost : evil.example\r\n\r\n", 400),
        (b"GET /metrics\xff HTTP/1.0\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/2\r\n\r\n", 400),
        (b"GET /metrics HTTP/2.0\r\nHost: x\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\0\xff\xfe\r\n\r\n", 400),
        (b"\xff" * 99 + b"\r\n\r\n", 400),
        (b"GET /metrics", 400),
        (b"", 400),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", 400),
        (b"x" * 100_000, 400),
    ],
)
def test_any_bytes_get_a_page_or_a_status(head: bytes, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as shown:
        answer = raw(shown.port, head)
        if answer or len(head) <= pages.HEAD_BYTES:
            assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:100]
        if head.startswith(b"HEAD"):
            assert answer.endswith(b"\r\n\r\n")
        assert get(shown.port, "/metrics")[0] == 200


def test_slow_clients_keep_nobody_out(shown: pages.Pages) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", shown.port), 60)) for _ in range(60)]
        for each in slow:
            with suppress(OSError):
                each.send(b"GET /metrics HTTP/1.1\r\nX: ")
        for path in ("/metrics", "/snapshot", "/metrics"):
            assert get(shown.port, path)[0] == 200
        assert len(shown.clients) <= clients.MOST_CLIENTS
        end_s = time.monotonic() + 60
        while threading.active_count() - before > clients.MOST_CLIENTS and time.monotonic() < end_s:
            time.sleep(0.01)
        assert threading.active_count() - before <= clients.MOST_CLIENTS


def test_slow_clients_do_not_stay(shown: pages.Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks this for clients that say nothing, that drip, and that take nothing."""
    monkeypatch.setattr(clients, "QUESTION_S", 0.5)
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", shown.port), 60)) for _ in range(6)]
        end_s, began_s = time.monotonic() + 60, time.monotonic()
        while len(shown.clients) or time.monotonic() < began_s + 0.2:
            assert time.monotonic() < end_s
            for each in slow[3:]:
                with suppress(OSError):
                    each.send(b"G")
            time.sleep(0.02)


def test_a_page_is_made_once_for_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []

    def families() -> list[Any]:
        made.append(time.monotonic())
        return [exposition.single("gauge", "made", "Made.", len(made))]

    with pages.Pages(families, 0) as shown:
        while len(made) < 3:
            assert get(shown.port, "/metrics")[0] == get(shown.port, "/snapshot")[0] == 200
    assert all(later - earlier >= pages.FRESH_S for earlier, later in pairwise(made))


def test_what_cannot_be_made_is_a_status() -> None:
    def families() -> list[Any]:
        raise verbs.RefusedError("it has ended", "UNAVAILABLE")

    with pages.Pages(families, 0) as shown:
        assert get(shown.port, "/metrics")[::2] == (503, b"it has ended\n")
        assert get(shown.port, "/snapshot")[0] == 503
        assert get(shown.port, "/events")[0] == 503


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (None, 200),
        ("localhost", 200),
        ("LOCALHOST:9100", 200),
        ("127.0.0.1:9100", 200),
        ("127.1.2.3", 200),
        ("[::1]:9100", 200),
        ("attacker.example", 421),
        ("localhost.attacker.example:9100", 421),
        ("127.0.0.1.attacker.example", 421),
        ("192.0.2.1", 421),
        ("[::ffff:192.0.2.1]", 421),
        ("[", 421),
    ],
)
def test_a_strangers_name_for_this_machine_leads_nowhere(host: str | None, status: int) -> None:
    """Checks that a page of a stranger, whose name is made to lead to loopback, cannot read what is local."""
    with collector() as shown:
        assert get(shown.port, "/snapshot", host=host)[0] == status
        if status != 200:
            assert get(shown.port, "/events", host=host)[0] == status
        assert "Access-Control-Allow-Origin" not in get(shown.port, "/snapshot")[1]


def test_an_address_that_is_not_loopback_takes_any_name() -> None:
    found = Collector()
    with pages.Pages(lambda: collector_metrics.families(found), 0, "0.0.0.0") as shown:
        assert get(shown.port, "/snapshot", host="collector.example:9100")[0] == 200


def test_where_it_cannot_listen() -> None:
    with collector() as shown, pytest.raises(LiveError, match=f"cannot serve metrics at 127.0.0.1:{shown.port}"):
        pages.Pages(list, shown.port)
    with pytest.raises(LiveError, match="cannot serve metrics"):
        pages.Pages(list, 0, "192.0.2.1")
    with pytest.raises(LiveError, match="cannot serve metrics"):
        pages.Pages(list, 0, "no address")


class EventStream:
    """A client of ``/events``."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.request("GET", "/events")
        self.answer = self._connection.getresponse()

    def next(self) -> tuple[str, Any]:
        """Return kind and data of the next event."""
        lines = []
        while line := self.answer.readline().decode().rstrip("\n"):
            lines.append(line)
        if lines == [":"]:
            return "", None
        (kind, data) = lines
        return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


def test_events_begin_with_the_snapshot_and_tell_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FRESH_S", 0.1)
    value, events = [1], Events()
    with pages.Pages(
        lambda: [exposition.counted("gauge", "level", "Level.", "of", {"a": value[0], "b": 5})], 0, events=events
    ) as shown:
        stream = EventStream(shown.port)
        assert stream.answer.headers["Content-Type"] == "text/event-stream"
        kind, whole = stream.next()
        assert (kind, whole["metrics"]["level"]["values"]) == ("snapshot", {"a": 1, "b": 5})
        value[0] = 2
        assert stream.next() == ("change", {"metrics": {"level": {"values": {"a": 2}}}})
        events.publish("port", port=3, up=False)
        assert stream.next() == ("port", {"port": 3, "up": False})
        value[0] = 7
        assert stream.next() == ("change", {"metrics": {"level": {"values": {"a": 7}}}})
        stream.close()


def test_every_program_tells_its_events(shown: pages.Pages) -> None:
    stream = EventStream(shown.port)
    kind, whole = stream.next()
    assert kind == "snapshot"
    assert whole["metrics"].keys() == json.loads(get(shown.port, "/snapshot")[2])["metrics"].keys()
    stream.close()


def test_streams_of_events_are_few_and_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FRESH_S", 0.1)
    monkeypatch.setattr(pages, "KEEPALIVE_S", 0.2)
    with collector() as shown:
        streams = [EventStream(shown.port) for _ in range(pages.MOST_STREAMS)]
        assert all(each.next()[0] == "snapshot" for each in streams)
        assert get(shown.port, "/events")[0] == 503
        with ExitStack() as stack:
            for _ in range(40):
                stack.enter_context(socket.create_connection(("127.0.0.1", shown.port), 60))
            assert get(shown.port, "/metrics")[0] == 200
        # Silent ones have pushed none of them out.
        assert all(each.next()[0] == "" for each in streams)
        for each in streams:
            each.close()
        end_s = time.monotonic() + 60
        while get(shown.port, "/metrics")[0] == 200 and len(shown.clients) > 1:
            assert time.monotonic() < end_s
            time.sleep(0.05)
        again = EventStream(shown.port)
        assert again.next()[0] == "snapshot"
        again.close()


def test_who_does_not_take_events_loses_some_and_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that nothing piles up for a listener, and that whoever tells events does not wait."""
    monkeypatch.setattr(clients, "QUESTION_S", 0.5)
    events = Events()
    with pages.Pages(list, 0, events=events) as shown:
        deaf = EventStream(shown.port)
        assert deaf.next()[0] == "snapshot"
        began_s, text = time.monotonic(), "x" * (1 << 14)
        told = 0
        while len(shown.clients) and time.monotonic() < began_s + 60:
            events.publish("noise", text=text)
            told += 1
        assert len(shown.clients) == 0
        assert told > 256
        deaf.close()


def test_lost_events_are_counted() -> None:
    events = Events()
    with events.listener() as listener:
        for number in range(1000):
            events.publish("tick", number=number)
        found = []
        while (event := listener.next(0)) is not None:
            found.append(event)
    assert [data["number"] for kind, data in found if kind == "tick"] == list(range(len(found) - 1))
    assert found[-1] == ("lost", {"events": 1000 - (len(found) - 1)})
    events.publish("tick", number=0)
    assert listener.next(0) is None
