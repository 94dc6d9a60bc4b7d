"""Identities are the same bytes from the subscriber's wire to RADIUS, to the disk and back: never read as text, cut, or empty."""

from __future__ import annotations

import json
import random
import sqlite3
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.authentication import Credentials, Question, Verdict
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.keeping import Stored
from holdfast.subscribers.plane import Line, Session
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.session import Grant
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.tests.radius_server import SECRET, Online, authorization_request, values, vendors
from holdfast.subscribers.tests.worlds import VirtualClock, seeded

NAMES = [
    b"alice",
    b"m\xfcller",
    b"\xff\xfe\x00",
    b"a\0b",
    "münchen".encode(),
    b" ",
    b"\x80" * 253,
    bytes(range(1, 254)),
]


def access_line(circuit: bytes, remote: bytes) -> bytes:
    """Return the value of TR-101's vendor-specific PPPoE tag with a circuit id and a remote id."""
    return b"\0\0\x0d\xe9" + bytes((1, len(circuit))) + circuit + bytes((2, len(remote))) + remote


@pytest.mark.parametrize("pap", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_identities_go_from_wire_to_wire(name: bytes, pap: bool) -> None:
    classes = [b"\x00\xff\x80", name]
    online = Online([(25, each) for each in classes])
    circuit, remote = b"\xe9" + name[:200], name[:200][::-1]
    host = online.dial(user=name.decode(errors="surrogateescape"), pap=pap, access_tags=access_line(circuit, remote))
    assert host.state == "up"
    host.hang_up()
    online.clock.run(1)
    (access,) = online.requests(1)
    start, stop = online.requests(4)
    for each in (access, start, stop):
        assert values(each, 1) == [name]
        assert vendors(each, 3561, 1) == [circuit]
        assert vendors(each, 3561, 2) == [remote]
        assert values(each, 30) == [b"02-00-00-00-00-0A"]
        assert b"" not in [value for kind in range(256) for value in values(each, kind)]
    for each in (start, stop):
        assert values(each, 25) == classes


def test_all_single_bytes_and_random_names_are_told_apart() -> None:
    """Check that different user names always give different attributes, so that a server tells the users apart."""
    draw = random.Random(5)
    names = [bytes((each,)) for each in range(256)] + [draw.randbytes(draw.randint(1, 253)) for _ in range(100)]
    told = set()
    for name in names:
        asked = Asked(name)
        (request,) = asked.seen
        told.update(values(request, 1))
    assert told == set(names)


class Asked:
    """A question, and what became of it."""

    def __init__(self, user: bytes, password: bytes | None = b"pw", circuit: bytes = b"", remote: bytes = b"") -> None:
        self.seen: list[bytes] = []
        self.verdicts: list[Verdict] = []
        settings = Radius.model_validate({"servers": [{"host": "127.0.0.1", "secret": SECRET}], "nas_identifier": "n"})
        clock = VirtualClock()
        client = RadiusClient(
            settings, clock, lambda server, accounting, channel, data: self.seen.append(data),
            random=seeded(1), wall=clock.now,
        )  # fmt: skip
        credentials = Credentials(user, password, 1, bytes(16), bytes(16))
        client.authenticate(Question(credentials, 7, "abc", Line(1), bytes(6), circuit, remote), self.verdicts.append)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ({"user": b"u" * 254}, "user name"),
        ({"user": b"\xff" * 1000, "password": None}, "user name"),
        ({"user": b"u", "password": b"p" * 129}, "password"),
        ({"user": b"u", "circuit": b"c" * 248}, "circuit id"),
        ({"user": b"u", "remote": b"r" * 255}, "remote id"),
    ],
)
def test_what_does_not_fit_is_refused_and_not_cut(question: dict[str, bytes], word: str) -> None:
    asked = Asked(**question)
    assert not asked.seen
    (verdict,) = asked.verdicts
    assert not verdict.accepted
    assert word in verdict.message


def test_what_just_fits_goes_whole() -> None:
    asked = Asked(b"u" * 253, b"p" * 128, b"c" * 247, b"r" * 247)
    (request,) = asked.seen
    assert values(request, 1) == [b"u" * 253]
    assert len(values(request, 2)[0]) == 128
    assert vendors(request, 3561, 1) == [b"c" * 247]
    assert vendors(request, 3561, 2) == [b"r" * 247]


def test_a_name_that_is_too_long_is_a_failed_login() -> None:
    online = Online()
    host = online.dial(user="u" * 254)
    assert host.state == "failed"
    assert "too long" in host.reason
    online.clock.run(60)
    assert not online.server.seen
    assert not online.gateway.sessions


@pytest.mark.parametrize("password", [b"", b"pw", None])
def test_an_empty_name_is_left_out(password: bytes | None) -> None:
    (request,) = Asked(b"", password).seen
    assert not values(request, 1)
    assert all(value for kind in range(256) for value in values(request, kind))


def test_the_name_of_the_accept_is_the_name_in_accounting_and_for_coa() -> None:
    clients = {"port": 0, "clients": {"127.0.0.9": SECRET}}
    online = Online([(1, b"alice@\xff.example")], {"dynamic_authorization": clients})
    host = online.dial()
    host.hang_up()
    online.clock.run(1)
    assert [values(each, 1) for each in online.requests(1)] == [[b"alice"]]
    assert [values(each, 1) for each in online.requests(4)] == [[b"alice@\xff.example"]] * 2
    host.dial()
    online.clock.run(1)
    assert online.configuration.radius is not None
    server = DynamicAuthorization(online.configuration.radius, online.gateway)
    answers = []
    for number, name in enumerate((b"alice", b"alice@\xff.example")):
        answer = server.received(
            IPv4Address("127.0.0.9"), 1, authorization_request(40, number, [(1, name)], online.wall()), online.wall()
        )
        assert answer is not None
        answers.append(answer[0])
    assert answers == [42, 41]


SESSION = Session(7, Line(1, 2, 3), bytes(6), 1)


def test_identities_are_kept_on_disk_as_they_are(tmp_path: Path) -> None:
    name = bytes(range(256))
    stored = Stored(
        Grant(name, SESSION, (), classes=(b"\xff",)), "abc", 1.0, True, None, False, False, 1492, name, b"\xe9", b"\x80"
    )
    record = Record(Kind.STOP, "abc", name, SESSION, 1, circuit_id=name[::-1], remote_id=b"\0", called=b"\xff")
    store = SqliteStore(tmp_path / "state.db")
    store.save([stored], [])
    store.put(record)
    store.close()
    store = SqliteStore(tmp_path / "state.db")
    assert store.load() == [stored]
    assert [each for _, each in store.after(0, 9)] == [record]


def test_a_state_file_of_before_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    store.save([Stored(Grant("mü".encode(), SESSION, ()), "abc", 1.0, True, None, True, False, 1492, b"dsl-1")], [])
    store.put(Record(Kind.START, "abc", "mü".encode(), SESSION, 1, remote_id=b"home"))
    expected = store.load(), store.after(0, 9)
    store.close()
    with sqlite3.connect(path) as database:  # version 1 had text, and no Called-Station-Id
        for table, key, column in (("session", "id", "state"), ("accounting", "number", "record")):
            for row, text in database.execute(f"SELECT {key}, {column} FROM {table}").fetchall():
                fields = json.loads(text)
                for part in (fields, fields.get("grant", {})):
                    for each in ("user", "circuit_id", "remote_id", "service"):
                        if each in part:
                            part[each] = bytes.fromhex(part[each]).decode()
                for each in ("called", "chargeable"):
                    fields.pop(each, None)
                for each in ("chargeable", "dns6"):
                    fields.get("grant", {}).pop(each, None)
                database.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (json.dumps(fields), row))
        database.execute("PRAGMA user_version = 1")
    database.close()
    for _ in range(2):
        store = SqliteStore(path)
        assert (store.load(), store.after(0, 9)) == expected
        store.close()
