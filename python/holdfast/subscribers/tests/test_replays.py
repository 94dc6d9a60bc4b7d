"""Requests of dynamic authorization that somebody recorded and sends again: each is obeyed once, whatever the clock does."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.subscribers import replays
from holdfast.subscribers.authentication import Question, Verdict
from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.radius_server import SECRET, authorization_request, decode
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded

CLIENTS = ("127.0.0.9", "127.0.0.10")
ACKS, NAKS = (41, 44), (42, 45)
BEGIN_S = 1_700_000_000.0


class World:
    """A gateway with subscribers, its wall clock that may be set, and a server that obeys clients with one secret."""

    def __init__(self, directory: Path | None = None, **authorization: object) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.step_s = BEGIN_S
        section = {
            "servers": [{"host": "127.0.0.1", "secret": SECRET}],
            "nas_identifier": "bng-1",
            "dynamic_authorization": {"clients": dict.fromkeys(CLIENTS, SECRET), **authorization},
        }
        state = {} if directory is None else {"state": str(directory / "state.db")}
        self.configuration = configuration(users={}, radius=section, **state)
        self.obeyed: Counter[bytes] = Counter()
        self.start()

    def wall(self) -> float:
        return self.step_s + self.clock.now()

    def start(self) -> None:
        """Start a new gateway process, which has no memory of the one before."""
        self.gateway = Gateway(
            self.configuration, self.plane, self.clock, self, random=seeded(3), wall=self.wall
        )  # fmt: skip
        assert self.configuration.radius is not None
        self.server = DynamicAuthorization(self.configuration.radius, self.gateway)
        obey: Callable[[object], int] = self.server._obey

        def counted(request: object) -> int:
            self.obeyed[request.raw_packet] += 1  # type: ignore[attr-defined]
            return obey(request)

        self.server._obey = counted  # type: ignore[method-assign]

    def authenticate(self, question: Question, answer: Callable[[Verdict], None]) -> None:
        answer(Verdict(True))

    def dial(self) -> Subscriber:
        line, mac = Line(1, 1), bytes.fromhex("020000000102")
        host = Subscriber(
            Account("alice", "secret"), mac, self.clock, lambda frame: self.plane.from_line(line, frame), seed=1
        )
        self.plane.hosts[line, mac] = host.receive
        host.dial()
        self.clock.run(1)
        assert host.state == "up"
        return host

    def send(self, packet: bytes, port: int = 1, client: str = CLIENTS[0]) -> int | None:
        """Send a packet to the server and return the code of its answer, or None if there is no answer."""
        answer = self.server.received(IPv4Address(client), port, packet, self.wall())
        return None if answer is None else answer[0]


def disconnect(world: World, identifier: int = 1, ahead_s: float | None = 0.0) -> bytes:
    stamp_s = None if ahead_s is None else world.wall() + ahead_s
    return authorization_request(40, identifier, [(1, b"alice")], stamp_s)


@pytest.mark.parametrize("port", [1, 2])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("after_s", [0, 60, 299, 301, 3600, 86400])
def test_a_recorded_disconnect_ends_no_later_session(port: int, client: str, after_s: float) -> None:
    world = World()
    world.dial()
    packet = disconnect(world)
    assert world.send(packet) == 41
    world.clock.run(after_s)
    again = world.dial()
    repeated = after_s < 29 and (port, client) == (1, CLIENTS[0])  # the client's own, who has lost the answer
    assert world.send(packet, port, client) == (41 if repeated else None)
    world.clock.run(1)
    assert again.state == "up"
    assert world.obeyed == {packet: 1}


def test_a_request_without_a_time_is_dropped_unless_a_setting_takes_it(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    host = world.dial()
    packet = disconnect(world, ahead_s=None)
    assert [world.send(packet, port) for port in (1, 2)] == [None, None]
    assert world.server.events["undated"] == 2
    assert host.state == "up"
    [sentence] = [each.getMessage() for each in caplog.records]
    assert "no Event-Timestamp" in sentence
    assert "dynamic_authorization.require_event_timestamp: false takes them" in sentence
    waived = World(require_event_timestamp=False)
    waived.dial()
    assert waived.send(disconnect(waived, ahead_s=None)) == 41


@pytest.mark.parametrize("ahead_s", [-250.0, -1.0, 0.0, 1.0, 250.0])
@pytest.mark.parametrize("down_s", [1.0, 3.0, 40.0])
def test_a_request_of_before_a_restart_is_not_obeyed_again(ahead_s: float, down_s: float, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.clock.run(300)
    world.dial()
    packet = disconnect(world, ahead_s=ahead_s)
    assert world.send(packet) == 41
    world.clock.run(down_s)
    world.start()
    again = world.dial()
    assert world.send(packet, port=2) is None
    assert again.state == "up"
    assert world.server.events["before-start"] == 1
    world.clock.run(max(0.0, ahead_s) + 2)
    assert world.send(disconnect(world, 2)) == 41


def test_without_a_state_file_the_start_alone_counts() -> None:
    world = World()
    world.dial()
    packet = disconnect(world)
    assert world.send(packet) == 41
    world.clock.run(2)
    world.start()
    again = world.dial()
    assert world.send(packet) is None
    assert again.state == "up"
    assert world.send(disconnect(world)) == 41


def test_a_file_that_cannot_be_written_is_said_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path / "gone")
    world.dial()
    assert world.send(disconnect(world)) == 41
    assert "may be taken again after a restart" in caplog.text
    for content in ("", "x", "9" * 100, "1\n2"):
        (tmp_path / "state.db-authorization").write_text(content)
        assert World(tmp_path).server._replays._kept == -1


def test_what_is_known_is_bounded_and_nothing_known_is_forgotten_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MOST_KNOWN", 50)
    world = World()
    world.dial()
    packets = [authorization_request(40, each, [(1, b"bob")], world.wall()) for each in range(60)]
    codes = [world.send(each) for each in packets]
    assert codes == [42] * 60  # no session of bob's; then no room
    assert world.server.events["busy"] == 10
    busy = world.server.received(IPv4Address(CLIENTS[0]), 1, packets[55], world.wall())
    assert busy is not None
    assert dict(decode(busy))[101] == (506).to_bytes(4, "big")
    assert len(world.server._replays) == 50
    world.clock.run(301)
    assert world.send(disconnect(world)) == 41
    assert [world.send(each) for each in packets] == [None] * 60


class Recorder(RuleBasedStateMachine):
    """Clients with clocks of their own, somebody who repeats what they sent, restarts, and an operator who sets the clock."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.world = World(Path(self.directory.name))
        self.packets: list[bytes] = []

    def teardown(self) -> None:
        """Remove the directory with the state file, if there is one."""
        if hasattr(self, "directory"):
            self.directory.cleanup()

    @rule(client=st.sampled_from(CLIENTS), ahead_s=st.sampled_from([-400, -299, -5, 0, 0, 0, 5, 299, 400]))
    def ask(self, client: str, ahead_s: int) -> None:
        packet = authorization_request(
            43, len(self.packets) % 256, [(1, b"x"), (27, b"\0\0\0\1")], self.world.wall() + ahead_s
        )
        self.packets.append(packet)
        code = self.world.send(packet, 1, client)
        assert code in (None, 45)

    @rule(data=st.data(), client=st.sampled_from(CLIENTS), port=st.integers(1, 3))
    def repeat(self, data: st.DataObject, client: str, port: int) -> None:
        if self.packets:
            self.world.send(data.draw(st.sampled_from(self.packets)), port, client)

    @rule(seconds=st.sampled_from([0.3, 1, 5, 100, 299, 301, 3600, 200_000]))
    def wait(self, seconds: float) -> None:
        self.world.clock.run(seconds)

    @rule()
    def restart(self) -> None:
        self.world.start()

    @rule(seconds=st.sampled_from([-200_000, -3600, -301, -299, -100, -5, 5, 100, 299, 3600]))
    def set_the_clock(self, seconds: float) -> None:
        self.world.step_s += seconds

    @invariant()
    def nothing_is_obeyed_twice(self) -> None:
        if hasattr(self, "world"):
            assert max(self.world.obeyed.values(), default=1) == 1


TestRecorder = Recorder.TestCase
TestRecorder.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
