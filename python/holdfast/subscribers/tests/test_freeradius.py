"""The service against FreeRADIUS on loopback, with a user plane in memory and subscribers in the same event loop."""

from __future__ import annotations

import asyncio
import os
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from holdfast.errors import LiveError
from holdfast.operations import verbs
from holdfast.subscribers import operator_requests
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.plane import Line, Rates, Session, Usage
from holdfast.subscribers.service import Service
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests import freeradius
from holdfast.subscribers.tests.worlds import configuration

pytestmark = pytest.mark.skipif(freeradius.missing() is not None, reason=freeradius.missing() or "")

USERS = """
alice Cleartext-Password := "secret"
    Framed-IP-Address = 100.64.7.7,
    Framed-IPv6-Prefix = 2001:db8:7:7::/64,
    Delegated-IPv6-Prefix = 2001:db8:7700::/56,
    WISPr-Bandwidth-Max-Up = 8000000,
    WISPr-Bandwidth-Max-Down = 16000000,
    MS-Primary-DNS-Server = 192.0.2.99,
    Acct-Interim-Interval = 1,
    Class = "gold"

bob Cleartext-Password := "hidden"

DEFAULT Auth-Type := Reject
    Reply-Message = "who are you"
"""


class Plane:
    """A user plane in memory, in the event loop."""

    def __init__(self) -> None:
        self.table: dict[int, Session] = {}
        self.traffic: dict[int, Usage] = {}
        self.hosts: dict[bytes, Callable[[bytes], None]] = {}
        self.handler: Callable[[Line, bytes], None] = lambda line, frame: None

    def install(self, sessions: Iterable[Session]) -> None:
        self.table |= {each.session_id: each for each in sessions}

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        gone = [each for each in session_ids if self.table.pop(each, None) is not None]
        return {each: self.traffic.get(each, Usage()) for each in gone}

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        return {each: self.traffic.get(each, Usage()) for each in session_ids if each in self.table}

    def installed(self) -> dict[int, Session]:
        return dict(self.table)

    def send(self, line: Line, frame: bytes) -> None:
        host = self.hosts.get(frame[:6])
        if host is not None:
            asyncio.get_running_loop().call_soon(host, frame)

    def receive(self, handler: Callable[[Line, bytes], None]) -> None:
        self.handler = handler

    def subscriber(self, number: int, user: str, password: str, **account: Any) -> Subscriber:
        mac, line = b"\x02\x01" + number.to_bytes(4, "big"), Line(1, 1, 1 + number % 4000)
        host = Subscriber(
            Account(user, password, **account), mac, AsyncClock(asyncio.get_running_loop()),
            lambda frame: self.handler(line, frame), seed=number,
        )  # fmt: skip
        self.hosts[mac] = host.receive
        return host


@pytest.fixture
def server(tmp_path: Path) -> Iterator[freeradius.FreeRadius]:
    made = freeradius.FreeRadius(tmp_path / "radius", USERS)
    made.start()
    yield made
    made.kill()


def settings(server: freeradius.FreeRadius, tmp_path: Path, **radius: object) -> Configuration:
    authorization = {"port": 0, "clients": {"127.0.0.1": freeradius.SECRET}}
    return configuration(
        name=f"test-{os.getpid()}", users={}, state=str(tmp_path / "state.db"), metrics_port=0, echo_interval_s=3,
        radius=server.settings(dynamic_authorization=authorization, **radius),
        limits={"padi_per_s": 100_000, "setups": 10_000},
    )  # fmt: skip


@asynccontextmanager
async def serving(
    server: freeradius.FreeRadius, tmp_path: Path, **radius: object
) -> AsyncIterator[tuple[Service, Plane]]:
    plane = Plane()
    async with Service(settings(server, tmp_path, **radius), plane) as service:
        yield service, plane


async def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    end_s = asyncio.get_running_loop().time() + timeout_s
    while not condition():
        assert asyncio.get_running_loop().time() < end_s
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("pap", [False, True])
def test_accept_with_attributes_accounting_and_reject(server: freeradius.FreeRadius, tmp_path: Path, pap: bool) -> None:
    async def scenario() -> None:
        async with serving(server, tmp_path) as (_, plane):
            alice, bob = plane.subscriber(1, "alice", "secret", pap=pap), plane.subscriber(2, "bob", "wrong", pap=pap)
            stranger = plane.subscriber(3, "mallory", "x", pap=pap)
            for each in (alice, bob, stranger):
                each.dial()
            await until(lambda: alice.state == "up" and bob.state == stranger.state == "failed")
            assert "who are you" in stranger.reason
            session = plane.table[alice.session]
            assert session.ipv4 == IPv4Address("100.64.7.7")
            assert session.ipv6_prefix == IPv6Network("2001:db8:7:7::/64")
            assert session.delegated == IPv6Network("2001:db8:7700::/56")
            assert session.rates == Rates(8_000_000, 16_000_000)
            assert IPv4Address(alice.dns[0]) == IPv4Address("192.0.2.99")
            plane.traffic[alice.session] = Usage(7, (2 << 32) + 9, 8, 10)
            await until(lambda: any(each["Acct-Status-Type"] == "Interim-Update" for each in server.accounted()))
            alice.hang_up()
            await until(lambda: server.accounted()[-1]["Acct-Status-Type"] == "Stop")
        on, start, *_, stop, off = server.accounted()
        assert [each["Acct-Status-Type"] for each in (on, start, off)] == ["Accounting-On", "Start", "Accounting-Off"]
        for each in (start, stop):
            assert each["User-Name"] == "alice"
            assert each["Framed-IP-Address"] == "100.64.7.7"
            assert each["Framed-IPv6-Prefix"] == "2001:db8:7:7::/64"
            assert each["Class"] == "0x676f6c64"
            assert each["Acct-Session-Id"] == start["Acct-Session-Id"]
            assert each["NAS-Identifier"] == "bng-1"
            assert each["Called-Station-Id"] == "02-00-00-00-00-0A"
        assert (stop["Acct-Input-Octets"], stop["Acct-Input-Gigawords"], stop["Acct-Output-Octets"]) == ("9", "2", "10")
        assert stop["Acct-Terminate-Cause"] == "User-Request"

    asyncio.run(scenario())


def test_servers_hear_when_a_gateway_begins_and_ends_without_sessions(
    server: freeradius.FreeRadius, tmp_path: Path
) -> None:
    """Check that a gateway that keeps its sessions sends neither Accounting-On nor -Off, as these end all sessions at a server."""

    def heard() -> list[str]:
        return [each["Acct-Status-Type"].removeprefix("Accounting-") for each in server.accounted()]

    async def scenario() -> None:
        plane = Plane()
        for state in (None, str(tmp_path / "state.db")):
            values = settings(server, tmp_path).model_copy(update={"state": state and Path(state)})
            async with Service(values, plane) as service:
                bob = plane.subscriber(1, "bob", "hidden")
                bob.dial()
                await until(lambda: bob.state == "up" and service.radius is not None and not len(service.radius.queue))  # noqa: B023
            plane.hosts.clear()
            if state is None:
                assert heard() == ["On", "Start", "Off"]
                plane.table.clear()
        assert heard() == ["On", "Start", "Off", "On", "Start"]
        async with Service(values, plane) as service:
            assert service.reconciled.kept == 1
            service.gateway.kick(list(service.gateway.sessions))
            await until(
                lambda: heard()[5:] == ["Stop"] and service.radius is not None and not len(service.radius.queue)
            )
            server.kill()
        assert heard() == ["On", "Start", "Off", "On", "Start", "Stop"]
        server.start()
        async with Service(values, plane) as service:  # the end was written down, and is told now
            await until(lambda: heard()[6:] == ["Off", "On"])

    asyncio.run(scenario())


def test_a_user_whom_freeradius_never_answers_does_not_make_it_dead(tmp_path: Path) -> None:
    """Make FreeRADIUS answer only Status-Server, as a proxy does whose realm's server is away.

    The gateway must not mark it as dead.
    """
    eve = 'eve@away Cleartext-Password := "x", Response-Packet-Type := Do-Not-Respond\n\n'
    first, second = (freeradius.FreeRadius(tmp_path / name, eve + USERS) for name in ("first", "second"))

    async def scenario() -> None:
        section = first.settings(timeout_s=1, tries=3)
        section["servers"] += second.settings()["servers"]  # type: ignore[operator]
        values = configuration(name=f"test-{os.getpid()}", users={}, radius=section)
        plane = Plane()
        async with Service(values, plane) as service:
            assert service.radius is not None
            away = plane.subscriber(1, "eve@away", "x")
            away.dial()
            await until(lambda: away.state == "failed")
            assert service.radius.events["status-answered"] == 2  # of each server, which were silent all the time
            assert service.radius.events["dead"] == 0
            alice = plane.subscriber(2, "alice", "secret")
            alice.dial()
            await until(lambda: alice.state == "up")
            first.kill()  # and one that answers no Status-Server any more is dead after one request
            bob = plane.subscriber(3, "bob", "wrong")
            bob.dial()
            await until(lambda: bob.state == "failed")
            assert "no authentication server answers" not in bob.reason
            assert service.radius.dead_until[0] is not None
            assert service.radius.dead_until[1] is None

    for each in (first, second):
        each.start()
    try:
        asyncio.run(scenario())
    finally:
        for each in (first, second):
            each.kill()


@pytest.mark.skipif(freeradius.missing("radclient") is not None, reason="not installed: radclient")
def test_radclient_changes_a_rate_and_ends_a_session(server: freeradius.FreeRadius, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(server, tmp_path) as (service, plane):
            alice = plane.subscriber(1, "alice", "secret")
            alice.dial()
            await until(lambda: alice.state == "up")
            port = service.addresses["dynamic_authorization"]

            async def ask(kind: str, stamped: bool = True, **attributes: str) -> str:
                named = {name.replace("_", "-"): value for name, value in attributes.items()}
                return await asyncio.to_thread(freeradius.radclient, port, kind, named, stamped)

            # Without a Message-Authenticator or an Event-Timestamp there is no answer; with both there is.
            said = await ask("coa", User_Name="alice", WISPr_Bandwidth_Max_Down="1000000")
            assert "No reply" in said
            assert plane.table[alice.session].rates == Rates(8_000_000, 16_000_000)
            said = await ask(
                "coa", False, User_Name="alice", WISPr_Bandwidth_Max_Down="1000000", Message_Authenticator="0x00"
            )
            assert "No reply" in said
            said = await ask("coa", User_Name="alice", WISPr_Bandwidth_Max_Down="1000000", Message_Authenticator="0x00")
            assert "Received CoA-ACK" in said, said
            assert plane.table[alice.session].rates == Rates(8_000_000, 1_000_000)
            said = await ask("coa", User_Name="bob", WISPr_Bandwidth_Max_Down="1000", Message_Authenticator="0x00")
            assert "Received CoA-NAK" in said
            assert "Session-Context-Not-Found" in said
            assert alice.state == "up"
            said = await ask("disconnect", Framed_IP_Address="100.64.7.7", Message_Authenticator="0x00")
            assert "Received Disconnect-ACK" in said
            await until(lambda: alice.state == "failed" and not plane.table)

    asyncio.run(scenario())


DONE = {1, 7, 8, 12, 18, 24, 25, 27, 28, 29, 80, 85, 88, 89, 97, 123, 169}
"""Attributes that FreeRADIUS may give with the values of :func:`freeradius.attributes`; a pool is named like the value."""

TABLES = (
    2865,
    2866,
    2867,
    2868,
    2869,
    3162,
    3576,
    4372,
    4675,
    4818,
    4849,
    5176,
    5447,
    5580,
    5607,
    6519,
    6572,
    6911,
    7055,
)


def test_each_attribute_that_freeradius_knows_is_done_or_refused(tmp_path: Path) -> None:
    """Check, with replies of one attribute each, that no subscriber is online whose attribute the gateway does not apply."""
    known = freeradius.attributes(*TABLES)
    assert len(known) > 120
    del known["Proxy-State"]  # one that was not sent is the sign of a forged answer (CVE-2024-3596)
    known |= {name: (known[name][0], "3600") for name in ("Session-Timeout", "Idle-Timeout")}
    known["Delegated-IPv6-Prefix"] = known["Delegated-IPv6-Prefix"][0], "2001:db8:7000::/56"  # one prefix is one user's
    users = "".join(f'{name} Cleartext-Password := "x"\n    {name} = {value}\n\n' for name, (_, value) in known.items())
    server = freeradius.FreeRadius(tmp_path / "radius", users)
    server.start()

    async def scenario() -> None:
        plane = Plane()
        values = settings(server, tmp_path)
        values = values.model_copy(update={"pools": {**values.pools, "text": IPv4Network("100.65.0.0/16")}})
        async with Service(values, plane) as service:
            hosts = {name: plane.subscriber(number, name, "x") for number, name in enumerate(known)}
            for each in hosts.values():
                each.dial()
            await until(lambda: all(each.state in ("up", "failed") for each in hosts.values()))
            online = {known[name][0] for name, each in hosts.items() if each.state == "up"}
            sent = service.radius.events["not-served"] if service.radius else 0
            reasons = {name: each.reason for name, each in hosts.items() if each.state == "failed"}
            others = {name: each for name, each in reasons.items() if "not served here" not in each}
            assert not others
            assert online <= DONE, {name for name, (number, _) in known.items() if number in online - DONE}
            assert len(online) + sent == len(known)
            assert online >= {1, 7, 18, 25, 27, 28, 88, 97, 123}

    try:
        asyncio.run(scenario())
    finally:
        server.kill()


def test_a_server_that_does_not_sign_is_named_and_not_called_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = freeradius.FreeRadius(tmp_path / "radius", USERS, signs=False)
    server.start()

    async def scenario() -> None:
        async with serving(server, tmp_path, timeout_s=2, tries=2) as (_, plane):
            alice = plane.subscriber(1, "alice", "secret")
            alice.dial()
            await until(lambda: alice.state == "failed")
            assert "no answer of an authentication server is signed" in alice.reason
        async with serving(server, tmp_path, require_message_authenticator=False) as (_, plane):
            alice = plane.subscriber(1, "alice", "secret")
            alice.dial()
            await until(lambda: alice.state == "up")

    try:
        asyncio.run(scenario())
    finally:
        server.kill()
    said = [each.getMessage() for each in caplog.records]
    assert ["127.0.0.1 answers without Message-Authenticator" in each for each in said] == [True]


def test_a_killed_server_comes_back_under_load(server: freeradius.FreeRadius, tmp_path: Path) -> None:
    """Check that sessions stay and accounting waits, and that new subscribers come online once the server is back."""

    async def scenario() -> None:
        async with serving(server, tmp_path, timeout_s=2, tries=2, dead_s=1) as (service, plane):
            first = [plane.subscriber(number, "bob", "hidden") for number in range(50)]
            for each in first:
                each.dial()
            await until(lambda: all(each.state == "up" for each in first))
            server.kill()
            second = [plane.subscriber(number, "bob", "hidden", redial_s=0.5) for number in range(100, 150)]
            for each in second:
                each.dial()
            for each in first[:25]:
                each.hang_up()
            await asyncio.sleep(2)
            assert all(each.state == "up" for each in first[25:])
            assert service.radius is not None
            assert len(service.radius.queue) >= 25
            server.start()
            await until(lambda: all(each.state == "up" for each in second))
            await until(lambda: service.radius is not None and len(service.radius.queue) == 0)
        kinds = [(each["Acct-Session-Id"], each["Acct-Status-Type"]) for each in server.accounted()]
        assert len({key for key, kind in kinds if kind == "Start"}) == 100
        assert len({key for key, kind in kinds if kind == "Stop"}) == 25

    asyncio.run(scenario())


A = TypeVar("A", bound=verbs.Answer)


class Dance(verbs.Verb):
    """A request that no gateway knows."""

    verb: Literal["dance"] = "dance"


def test_operators_and_prometheus_see_the_sessions(server: freeradius.FreeRadius, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(server, tmp_path) as (service, plane):
            alice, bob = plane.subscriber(1, "alice", "secret"), plane.subscriber(2, "bob", "hidden")
            alice.dial()
            bob.dial()
            await until(lambda: alice.state == bob.state == "up")
            name = f"test-{os.getpid()}"

            async def ask(request: Any, answer: type[A]) -> A:
                return await asyncio.to_thread(operator_requests.ask, name, request, answer)

            found = await ask(operator_requests.Sessions(usage=True), operator_requests.SessionsAnswer)
            assert {(each.user, each.ipv4, each.phase) for each in found.sessions} == {
                ("alice", "100.64.7.7", "network"),
                ("bob", "100.64.0.2", "network"),
            }
            with pytest.raises(LiveError, match="not a request"):
                await ask(Dance(), verbs.Answer)
            url = f"http://127.0.0.1:{service.addresses['metrics']}/metrics"
            page = (await asyncio.to_thread(lambda: urllib.request.urlopen(url).read())).decode()
            assert 'holdfast_bng_sessions{phase="network"} 2' in page
            assert 'holdfast_bng_radius_server_up{server="0"} 1' in page
            kick = operator_requests.Kick(sessions=[alice.session])
            assert (await ask(kick, operator_requests.KickAnswer)).kicked == 1
            await until(lambda: alice.state == "failed")
            drain = operator_requests.Drain(verb="drain")
            assert (await ask(drain, operator_requests.DrainAnswer)).sessions == 1
            late = plane.subscriber(3, "bob", "hidden")
            late.dial()
            await asyncio.sleep(0.2)
            assert late.state == "discovery"
            undrain = operator_requests.Drain(verb="undrain")
            assert (await ask(undrain, operator_requests.DrainAnswer)).sessions == 1
            await until(lambda: late.state == "up")
            with pytest.raises(LiveError, match="it has one plane, which hands nothing over"):
                drain = operator_requests.Drain(verb="drain", plane="forward1")
                await ask(drain, operator_requests.HandOverAnswer)
            with pytest.raises(LiveError, match="is running"):
                async with Service(settings(server, tmp_path / "..").model_copy(update={"state": None}), Plane()):
                    pass

    asyncio.run(scenario())
