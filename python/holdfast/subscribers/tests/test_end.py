"""The end of a gateway whose user plane ends, too: every subscriber hears of it, in bounded time, and is accounted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.operations import directory
from holdfast.subscribers import commands, dialer, passwords, service
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.plane import Line
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, configuration

TERMINATE_REQUEST, PADT = "terminate-request", "padt"


def kind_of(frame: bytes) -> str:
    if frame[12:14] == b"\x88\x63":
        return PADT if frame[15] == 0xA7 else "discovery"
    return TERMINATE_REQUEST if frame[20:23] == b"\xc0\x21\x05" else "ppp"


async def end(directory: Path, answering: int, silent: int, patience_s: float) -> None:
    loop = asyncio.get_running_loop()
    plane = MemoryPlane(AsyncClock(loop))  # type: ignore[arg-type]
    records: list[Record] = []
    settings = configuration(state=str(directory / "state.db"))
    heard: dict[int, list[str]] = {}
    hosts = []
    async with service.Service(settings, plane) as running:
        running.gateway._accountant = type("Ledger", (), {"account": staticmethod(records.append)})()
        for number in range(answering + silent):
            line, mac = Line(1, 100, number + 1), bytes.fromhex("020000000100")[:5] + bytes((number + 1,))
            host = Subscriber(
                Account("alice", "secret"), mac, AsyncClock(loop),
                lambda frame, line=line: plane.from_line(line, frame), seed=number,
            )  # fmt: skip
            heard[number] = []

            def hear(frame: bytes, host: Subscriber = host, number: int = number) -> None:
                heard[number].append(kind_of(frame))
                host.receive(frame)

            plane.hosts[line, mac] = hear
            hosts.append(host)
            host.dial()
        for _ in range(500):
            if all(each.state == "up" for each in hosts):
                break
            await asyncio.sleep(0.02)
        assert {each.state for each in hosts} <= {"up"}
        for each in hosts[answering:]:
            each.vanish()
        before = loop.time()
        assert await running.end_sessions(patience_s) == answering + silent
        spent_s = loop.time() - before
        await asyncio.sleep(0.05)
        assert not running.gateway.sessions
        assert not plane.table
    assert spent_s < patience_s + 2
    assert silent or spent_s < patience_s
    for number in range(answering + silent):
        assert [each for each in heard[number] if each in (TERMINATE_REQUEST, PADT)] == [TERMINATE_REQUEST, PADT]
    assert {each.state for each in hosts[:answering]} <= {"failed"}
    stops = [each for each in records if each.kind is Kind.STOP]
    assert len(stops) == answering + silent
    assert {each.cause for each in stops} <= {Cause.ADMIN_REBOOT}
    store = SqliteStore(directory / "state.db")
    assert store.load() == []
    store.close()


@pytest.mark.parametrize(("answering", "silent"), [(0, 0), (1, 0), (150, 0), (3, 2)])
def test_all_sessions_are_ended_by_terminate_request_and_padt(
    answering: int, silent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "DIRECTORY", tmp_path)
    asyncio.run(end(tmp_path, answering, silent, patience_s=10.0 if not silent else 0.5))


@pytest.mark.parametrize(
    ("words", "keepalive_s", "failures"),
    [([], 10.0, 3), (["--keepalive-s", "2.5", "--keepalive-failures", "5"], 2.5, 5), (["--keepalive-s", "0"], None, 3)],
)
def test_dial_keeps_alive_unless_it_is_told_not_to(
    words: list[str], keepalive_s: float | None, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    accounts = []

    async def online(interface: str, account: Account, *more: object) -> None:
        accounts.append(account)

    monkeypatch.setattr(dialer, "dial", online)
    done = CliRunner().invoke(
        commands.app, ["dial", "eth0", "--user", "alice", *words], env={passwords.VARIABLE: "secret"}
    )
    assert done.exit_code == 0, done.output
    [account] = accounts
    assert (account.keepalive_s, account.keepalive_failures) == (keepalive_s, failures)


def test_dial_refuses_a_payload_that_the_interface_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialer, "mtu_of", lambda interface: 1500)
    with pytest.raises(dialer.LiveError, match="eth0: its MTU is 1500, and a payload of 1500 needs 1508"):
        asyncio.run(dialer.dial("eth0", Account("alice", "secret", max_payload=1500), "ppp7", print))
