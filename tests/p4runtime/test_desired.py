"""A switch comes to hold what is wanted, whatever it holds and whatever fails: arbitrary states one after another, with faults.

The client watches every update that it sends, in a model that knows P4Runtime's messages and nothing of the writer: no update
changes nothing, and after none does anything refer to what is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from holdfast import _core
from holdfast.control import desired
from holdfast.control.desired import Desired, Entity, Scope, Writer, read_state
from holdfast.control.entities import (
    CloneSession,
    DefaultAction,
    Digest,
    Meter,
    MulticastGroup,
    ProfileGroup,
    ProfileMember,
    Register,
    ValueSet,
)
from holdfast.control.tables import TableEntry
from holdfast.p4runtime import Device, LocalClient, P4RuntimeError
from holdfast.p4runtime.received import Group, Member
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

PROGRAM = _core.Program.compile(str(Path(__file__).parent / "desired.p4"))
INGRESS = "DesiredIngress"
FORWARD, REPLICATE, MIRROR, DROP = (f"{INGRESS}.{name}" for name in ("forward", "replicate", "mirror", "drop"))
ECMP, TUNNELS = f"{INGRESS}.ecmp", f"{INGRESS}.tunnels"
ROUTES, ENCAPSULATION, POLICERS, COPIES = (
    f"{INGRESS}.{name}" for name in ("routes", "encapsulation", "policers", "copies")
)
METER, REGISTER, KINDS, DIGEST = f"{INGRESS}.rates", f"{INGRESS}.marks", "DesiredParser.kinds", "seen_t"
METER_CELLS = 8
SCOPE: Scope = {
    TableEntry: (ROUTES, ENCAPSULATION, POLICERS, COPIES, "a table that the program does not have"),
    DefaultAction: (COPIES, POLICERS),
    ProfileMember: (ECMP, TUNNELS),
    ProfileGroup: (ECMP,),
    MulticastGroup: range(1, 100),
    CloneSession: range(1, 100),
    Meter: ((METER, None),),
    Register: ((REGISTER, None),),
    ValueSet: (KINDS,),
    Digest: (DIGEST,),
}


class Violation(AssertionError):
    """An update that should not have been sent."""


class Model:
    """What a switch holds, as the messages that it took say."""

    def __init__(self, client: LocalClient) -> None:
        self._info = client.p4info
        self.held: dict[tuple[Any, ...], bytes] = {}
        self._messages: dict[tuple[Any, ...], Any] = {}

    def apply(self, update: Any, watched: bool) -> None:
        """Apply an update that the switch took; with ``watched``, raise :class:`Violation` if it should not have been sent."""
        before = dict(self.held)
        for key, message in self._cells(update):
            if message is None:
                self.held.pop(key, None)
                self._messages.pop(key, None)
            else:
                self.held[key] = message.SerializeToString(deterministic=True)
                self._messages[key] = message
        if watched and before == self.held:
            raise Violation(f"this changes nothing: {update}")
        if watched:
            for key, message in self._messages.items():
                for wanted in self._references(message):
                    if wanted not in self.held:
                        raise Violation(f"{key} refers to {wanted}, which is not there after {update}")

    def _cells(self, update: Any) -> Iterator[tuple[tuple[Any, ...], Any | None]]:
        """Yield the key of each object that an update writes, and its message; None if it is gone, or as it was at first."""
        kind = update.entity.WhichOneof("entity")
        message = getattr(update.entity, kind)
        gone = update.type == p4.Update.DELETE
        if kind == "table_entry":
            match = tuple(sorted(field.SerializeToString(deterministic=True) for field in message.match))
            key = kind, message.table_id, match, message.priority, message.is_default_action
            yield key, None if gone or not message.HasField("action") else message
        elif kind == "packet_replication_engine_entry":
            inner = message.WhichOneof("type")
            message = getattr(message, inner)
            number = message.session_id if inner == "clone_session_entry" else message.multicast_group_id
            yield (inner, number), None if gone else message
        elif kind == "meter_entry":
            cells = [message.index.index] if message.HasField("index") else range(METER_CELLS)
            for cell in cells:
                yield (kind, message.meter_id, cell), message.config if message.HasField("config") else None
        elif kind == "register_entry":
            value = int.from_bytes(message.data.bitstring, "big")
            yield (kind, message.register_id, message.index.index), message if value else None
        elif kind == "value_set_entry":
            yield (kind, message.value_set_id), message if message.members else None
        elif kind == "digest_entry":
            yield (kind, message.digest_id), None if gone else message
        elif kind == "action_profile_member":
            yield (kind, message.action_profile_id, message.member_id), None if gone else message
        else:
            yield (kind, message.action_profile_id, message.group_id), None if gone else message

    def _references(self, message: Any) -> Iterator[tuple[Any, ...]]:
        profiles = self._info.action_profiles
        if isinstance(message, p4.TableEntry):
            profile = profiles[TUNNELS if message.table_id == self._info.tables[ENCAPSULATION].id else ECMP].id
            how = message.action.WhichOneof("type")
            if how == "action_profile_member_id":
                yield "action_profile_member", profile, message.action.action_profile_member_id
            elif how == "action_profile_group_id":
                yield "action_profile_group", profile, message.action.action_profile_group_id
            else:
                yield from self._named(message.action.action)
        elif isinstance(message, p4.ActionProfileMember):
            yield from self._named(message.action)
        elif isinstance(message, p4.ActionProfileGroup):
            for member in message.members:
                yield "action_profile_member", message.action_profile_id, member.member_id

    def _named(self, action: Any) -> Iterator[tuple[Any, ...]]:
        kinds = {REPLICATE: "multicast_group_entry", MIRROR: "clone_session_entry"}
        name = self._info.actions.by_id(action.action_id).name
        if name in kinds:
            yield kinds[name], int.from_bytes(action.params[0].value, "big")


class Watched(LocalClient):
    """A client that checks its updates, and whose connection is lost as ``faults`` says."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.set_pipeline(PROGRAM)
        self.model = Model(self)
        self.faults: list[str] = []
        self.watched = True
        self.updates = 0

    def _call_write(self, request: bytes) -> None:
        fault = self.faults.pop() if self.faults else "none"
        if fault == "lost before":
            raise P4RuntimeError("UNAVAILABLE", "the connection was lost")
        super()._call_write(request)
        for update in p4.WriteRequest.FromString(request).updates:
            self.updates += 1
            self.model.apply(update, self.watched)
        if fault == "lost behind":
            raise P4RuntimeError("UNAVAILABLE", "the connection was lost")


def connected() -> Watched:
    return Watched(Device(1, _core.Switch(PROGRAM)))


def held(client: LocalClient) -> dict[tuple[Any, ...], Entity]:
    """Return what the switch holds by key; a meter cell by cell."""
    return {entity.key: entity for entity in by_cell(read_state(client, SCOPE))}


def by_cell(state: Sequence[Entity]) -> list[Entity]:
    found: list[Entity] = []
    for entity in state:
        if isinstance(entity, Meter) and entity.index is None:
            found += (Meter(entity.name, cell, entity.rates) for cell in range(METER_CELLS))
        else:
            found.append(entity)
    return found


# ---- Arbitrary states ----

PORTS = st.integers(1, 5)
FLOWS = st.integers(1, 4)
RATES = st.tuples(*(st.integers(*bounds) for bounds in ((1, 3), (1, 3), (3, 4), (3, 4))))
REPLICAS = st.lists(st.tuples(PORTS, st.integers(1, 3)), max_size=3, unique=True).map(tuple)


def subset(numbers: range, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[int, Any]]:
    return st.dictionaries(st.sampled_from(numbers), values, max_size=len(numbers))


@st.composite
def states(draw: st.DrawFn) -> Desired:
    """Draw what a switch may hold: all references are to what is there."""
    groups = [MulticastGroup(number, to) for number, to in draw(subset(range(1, 5), REPLICAS)).items()]
    lengths = st.sampled_from((0, 64))
    sessions = [
        CloneSession(number, to, length)
        for number, (to, length) in draw(subset(range(1, 4), st.tuples(REPLICAS, lengths))).items()
    ]
    plain = [(FORWARD, {"port": port}) for port in range(1, 4)] + [(DROP, {})]
    copying = [(REPLICATE, {"group": group.number}) for group in groups]
    mirroring = [(MIRROR, {"session": session.number}) for session in sessions]
    members = draw(subset(range(1, 6), st.sampled_from(plain + copying)))
    paths = draw(subset(range(1, 4), st.integers(1, 3)))
    found: list[Entity] = [*groups, *sessions]
    found += (ProfileMember(ECMP, number, action, params) for number, (action, params) in members.items())
    found += (ProfileMember(TUNNELS, n, f"{INGRESS}.encapsulate", {"path": path}) for n, path in paths.items())
    users: list[Member | Group] = [Member(number) for number in members]
    if members:
        weights = st.dictionaries(st.sampled_from(sorted(members)), st.integers(1, 2), min_size=1, max_size=3)
        for number, chosen in draw(subset(range(1, 4), weights)).items():
            watched = {member: draw(PORTS) for member in chosen if draw(st.booleans())}
            found.append(ProfileGroup(ECMP, number, chosen, watched))
            users.append(Group(number))
    found += draw(entries(users, [Member(number) for number in paths], [(DROP, {}), *copying, *mirroring]))
    if draw(st.booleans()):
        action, params = draw(st.sampled_from([(FORWARD, {}), *copying, *mirroring]))
        found += [] if action == FORWARD else [DefaultAction(COPIES, action, params)]
    if draw(st.booleans()):
        found.append(Meter(METER, None, draw(RATES)))
    else:
        cells = draw(subset(range(METER_CELLS), RATES))
        found += (Meter(METER, cell, rates) for cell, rates in cells.items())
    found += (Register(REGISTER, cell, value) for cell, value in draw(subset(range(4), st.integers(1, 3))).items())
    if kinds := draw(st.frozensets(st.integers(1, 9), max_size=4)):
        found.append(ValueSet(KINDS, kinds))
    if draw(st.booleans()):
        found.append(Digest(DIGEST, draw(st.integers(0, 2)), draw(st.integers(1, 3)), 0))
    return tuple(draw(st.permutations(found)))


@st.composite
def entries(
    draw: st.DrawFn, users: Sequence[Any], tunnels: Sequence[Any], copying: Sequence[tuple[str, dict[str, int]]]
) -> list[Entity]:
    found: list[Entity] = []
    if users:
        for flow, action in draw(subset(range(1, 5), st.sampled_from(users))).items():
            found.append(TableEntry(ROUTES, {"hdr.h.flow": (flow << 24, 8)}, action))
    if tunnels:
        for flow, action in draw(subset(range(1, 4), st.sampled_from(tunnels))).items():
            found.append(TableEntry(ENCAPSULATION, {"hdr.h.flow": flow}, action))
    for flow, rates in draw(subset(range(1, 4), st.none() | RATES)).items():
        found.append(TableEntry(POLICERS, {"hdr.h.flow": flow}, f"{INGRESS}.police", rates=rates))
    values = st.tuples(st.sampled_from(copying), st.sampled_from((0, 10**9)), st.sampled_from((b"", b"x")))
    for flow, ((action, params), idle, metadata) in draw(subset(range(1, 6), values)).items():
        match: Mapping[str, Any] = {"hdr.h.flow": (flow, 0xFF), "hdr.h.kind": flow % 3}
        found.append(TableEntry(COPIES, match, action, params, flow, metadata, idle))
    return found


# ---- Faults ----

FAULTS = ("none", "lost before", "lost behind", "somebody else", "takeover", "restart")


def interfere(client: Watched, writer: Writer, wanted: Desired) -> None:
    """Change by other means some of what the next write is about, so that the switch refuses it."""
    client.watched = False
    known = writer.installed
    for entity in wanted:
        if isinstance(entity, MulticastGroup) and entity.key not in known:
            client.multicast_group(entity.number, ((9, 9),))
        if isinstance(entity, TableEntry) and entity.table == POLICERS and entity.key not in known:
            entity._replace(rates=(9, 9, 9, 9)).write(client, "insert")
    keys = {entity.key for entity in wanted}
    for key, entity in known.items():
        if isinstance(entity, TableEntry) and entity.table == COPIES and key not in keys:
            entity.write(client, "delete")
    client.watched = True


def take_over(client: Watched, foreign: Desired, most: int | None) -> Writer:
    """Return the writer of another controller, after a third one has left what it wanted."""
    client.watched = False
    third = Writer(client)
    third.adopt(read_state(client, SCOPE))
    third.write(foreign)
    client.watched = True
    writer = Writer(client, most=most)
    writer.adopt(read_state(client, SCOPE))
    return writer


def converge(client: Watched, writer: Writer, wanted: Desired) -> None:
    """Write until nothing fails. A write that fails finds out about one batch, and there are less than 100."""
    for _ in range(99):
        with suppress(P4RuntimeError):
            writer.write(wanted)
            return
    writer.write(wanted)


STEPS = st.lists(st.tuples(states(), st.sampled_from(FAULTS), states()), min_size=1, max_size=4)


def play(steps: Sequence[tuple[Desired, str, Desired]], most: int | None) -> None:
    """Bring a switch from each state to the next, with a fault in each step, and check it after each."""
    client = connected()
    writer = Writer(client, most=most)
    for wanted, fault, foreign in steps:
        if fault == "somebody else":
            interfere(client, writer, wanted)
        elif fault == "takeover":
            writer = take_over(client, foreign, most)
        elif fault == "restart":
            client = connected()
            writer = take_over(client, foreign, most)
        client.faults = [fault] if fault.startswith("lost") else []
        converge(client, writer, wanted)
        client.faults = []
        expected = {entity.key: entity for entity in by_cell(wanted)}
        assert held(client) == expected
        assert {entity.key: entity for entity in by_cell(list(writer.installed.values()))} == expected
        updates = client.updates
        assert writer.write(wanted) == 0
        assert client.updates == updates


@settings(
    max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # to shrink takes minutes
@given(STEPS, st.none() | st.integers(1, 5))
def test_a_switch_comes_to_hold_what_is_wanted(steps: list[tuple[Desired, str, Desired]], most: int | None) -> None:
    play(steps, most)


# ---- Single properties ----


def copy_to(group: int) -> Desired:
    """Return an entry and the multicast group that it refers to."""
    match = {"hdr.h.flow": (1, 0xFF), "hdr.h.kind": 1}
    return TableEntry(COPIES, match, REPLICATE, {"group": group}, 1), MulticastGroup(group, ((1, 1),))


@pytest.mark.parametrize(
    ("name", "value"),
    [("_ORDER", {kind: -place for kind, place in desired._ORDER.items()}), ("_REFERRED", ())],
)
def test_a_wrong_order_is_found(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """Check the checks: with another order, something refers for a moment to what is not there."""
    steps = [(copy_to(1), "none", ()), (copy_to(2), "none", ())]
    play(steps, None)
    monkeypatch.setattr(desired, name, value)
    with pytest.raises(Violation, match="which is not there"):
        play(steps, None)


def test_a_refused_batch_changes_nothing_and_names_the_update_at_fault() -> None:
    client = connected()
    writer = Writer(client)
    writer.write(copy_to(1))
    wrong = TableEntry(ROUTES, {"hdr.h.flow": (0, 8)}, Member(7))
    with pytest.raises(P4RuntimeError) as refused:
        writer.write([*copy_to(2), wrong])
    own = [failure for failure in refused.value.failures if failure.code != "ABORTED"]
    assert len(own) == 1
    assert own[0].what == f"insert {ROUTES} {{hdr.h.flow: (0, 8)}}"
    assert held(client) == {entity.key: entity for entity in copy_to(1)}
    assert writer.write(copy_to(1)) == 0


def test_what_was_in_doubt_is_read_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    client = connected()
    writer = Writer(client)
    writer.write([*copy_to(1), Register(REGISTER, 1, 5)])
    client.faults = ["lost behind"]
    with pytest.raises(P4RuntimeError, match="UNAVAILABLE"):
        writer.write([*copy_to(1), Register(REGISTER, 1, 6)])
    reads: list[str] = []
    plain = client._call_read

    def read(request: Any) -> Any:
        reads.extend(entity.WhichOneof("entity") for entity in request.entities)
        return plain(request)

    monkeypatch.setattr(client, "_call_read", read)
    assert writer.write([*copy_to(1), Register(REGISTER, 1, 6)]) == 0
    assert reads == ["register_entry"]


def test_cells_that_packets_change_are_set_whatever_they_are() -> None:
    client = connected()
    writer = Writer(client)
    client.write_register(REGISTER, 3, 9)
    assert writer.change(copy_to(1), also=[Register(REGISTER, 3, 0)]) == 3
    assert client.register(REGISTER, 3) == 0
    assert all(not isinstance(entity, Register) for entity in writer.installed.values())


def test_what_is_put_and_removed_is_put() -> None:
    client = connected()
    writer = Writer(client)
    entry, group = copy_to(1)
    writer.write([entry, group])
    assert writer.change([entry], [entry.key]) == 0
    assert entry.key in held(client)
