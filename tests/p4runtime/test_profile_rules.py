"""The rules of the specification for members, groups, one-shot sets and default entries of indirect tables, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from device_bench import HERE
from raw import DELETE, INSERT, MODIFY, Raw, exact, failures, read_entries, request, update

from holdfast import SimulatedNetwork, Topology, _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex, P4RuntimeError
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

PROGRAM = HERE / "profile_rules.p4"


class Rules:
    """A device with a selector of size 8 and groups of at most 4, and a plain profile; messages for both."""

    def __init__(self) -> None:
        program = _core.Program.compile(str(PROGRAM))
        switch = _core.Switch(program, executor="interpreter")
        self.device = Device(1, switch, executor="interpreter")
        self.client = LocalClient(self.device)
        self.client.set_pipeline(program)
        self.raw = Raw(P4InfoIndex.from_text(program.p4info))

    def id(self, profile: str) -> int:
        """Return the id of the action profile with this name."""
        return self.raw.index.action_profiles[profile].id

    def member(self, kind: int, id: int, profile: str = "selector", action: str | None = "forward") -> Any:
        """Return an update of a member; with ``action`` None the member has no action."""
        message = p4.ActionProfileMember(action_profile_id=self.id(profile), member_id=id)
        if action is not None:
            values = (b"\x01",) if action == "forward" else ()
            message.action.CopyFrom(self.raw.action(action, *values).action)
        return update(kind, action_profile_member=message)

    def group(self, kind: int, id: int, *members: Any, size: int = 4, profile: str = "selector") -> Any:
        """Return an update of a group; each member is an id or a message."""
        message = p4.ActionProfileGroup(action_profile_id=self.id(profile), group_id=id, max_size=size)
        for member in members:
            message.members.append(of(member) if isinstance(member, int) else member)
        return update(kind, action_profile_group=message)

    def entry(self, kind: int, action: Any, table: str = "spread", key: int = 1) -> Any:
        """Return an update of an entry with this key and action in ``table``."""
        return update(kind, table_entry=self.raw.entry(table, [exact(1, bytes([key]))], action))

    def shot(self, **fields: Any) -> Any:
        """Return an inserted entry whose action is a one-shot set of one action."""
        item = p4.ActionProfileAction(action=self.raw.action("forward", b"\x01").action, **{"weight": 1, **fields})
        return self.entry(INSERT, one_shot(item))

    def default(self, table: str = "spread", action: Any = None) -> Any:
        """Return the default entry of a table."""
        return self.raw.entry(table, [], action, is_default_action=True)


def of(member: int, **fields: Any) -> Any:
    """Return a member of a group, with weight 1 unless ``fields`` give another."""
    return p4.ActionProfileGroup.Member(member_id=member, **{"weight": 1, **fields})


def to_member(id: int) -> Any:
    """Return an entry's action that refers to the member with this id."""
    return p4.TableAction(action_profile_member_id=id)


def to_group(id: int) -> Any:
    """Return an entry's action that refers to the group with this id."""
    return p4.TableAction(action_profile_group_id=id)


def one_shot(*items: Any, **fields: Any) -> Any:
    """Return an entry's action that is a one-shot set of these items."""
    return p4.TableAction(action_profile_action_set=p4.ActionProfileActionSet(action_profile_actions=items, **fields))


@pytest.fixture
def rules() -> Iterator[Rules]:
    rules = Rules()
    yield rules
    rules.client.close()


Update = Callable[[Rules], Any]

# What is there before: members 1 and 2, group 1 of both, and an entry for each kind of target.
BEFORE: list[Update] = [
    lambda r: r.member(INSERT, 1),
    lambda r: r.member(INSERT, 2),
    lambda r: r.member(INSERT, 3),
    lambda r: r.group(INSERT, 1, 1, 2),
    lambda r: r.group(INSERT, 2, 2),
    lambda r: r.entry(INSERT, to_group(1), key=8),
    lambda r: r.entry(INSERT, to_member(3), key=9),
    lambda r: r.member(INSERT, 1, "plain"),
]

INVALID, MISSING, EXISTS = "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS"
USED, FULL, DENIED, UNSUPPORTED = "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "PERMISSION_DENIED", "UNIMPLEMENTED"

RULES: list[tuple[str, str, Update]] = [
    # Member programming.
    ("member-insert", "", lambda r: r.member(INSERT, 4)),
    ("member-id-taken", EXISTS, lambda r: r.member(INSERT, 1)),
    ("member-id-zero", INVALID, lambda r: r.member(INSERT, 0)),
    ("member-without-action", INVALID, lambda r: r.member(INSERT, 4, action=None)),
    ("member-of-another-table's-action", INVALID, lambda r: r.member(INSERT, 4, action="other")),
    ("member-default-only-action", DENIED, lambda r: r.member(INSERT, 4, action="at_miss")),
    ("member-modify-missing", MISSING, lambda r: r.member(MODIFY, 9)),
    ("member-modify-without-action", INVALID, lambda r: r.member(MODIFY, 1, action=None)),
    ("member-delete-missing", MISSING, lambda r: r.member(DELETE, 9)),
    ("member-delete-in-group", USED, lambda r: r.member(DELETE, 1)),
    ("member-delete-in-entry", USED, lambda r: r.member(DELETE, 3)),
    ("member-delete-ignores-action", "", lambda r: r.member(DELETE, 1, "plain", action="other")),
    ("profile-unknown", INVALID, lambda r: update(INSERT, action_profile_member=p4.ActionProfileMember(member_id=1))),
    # Group programming.
    ("group-insert", "", lambda r: r.group(INSERT, 3, 1)),
    ("group-empty", "", lambda r: r.group(INSERT, 3)),
    ("group-id-taken", EXISTS, lambda r: r.group(INSERT, 1, 1)),
    ("group-id-zero", INVALID, lambda r: r.group(INSERT, 0, 1)),
    ("group-of-missing-member", MISSING, lambda r: r.group(INSERT, 3, 7)),
    ("group-modify-missing", MISSING, lambda r: r.group(MODIFY, 9, 1)),
    ("group-modify-to-missing-member", MISSING, lambda r: r.group(MODIFY, 1, 7)),
    ("group-modify-size", INVALID, lambda r: r.group(MODIFY, 1, 1, size=3)),
    ("group-duplicate", INVALID, lambda r: r.group(INSERT, 3, 1, 1)),
    ("group-delete-missing", MISSING, lambda r: r.group(DELETE, 9)),
    ("group-delete-in-entry", USED, lambda r: r.group(DELETE, 1)),
    ("group-delete-ignores-members", "", lambda r: r.group(DELETE, 2, 7, 7, size=99)),
    ("group-without-selector", INVALID, lambda r: r.group(INSERT, 3, 1, profile="plain")),
    ("group-size-zero", INVALID, lambda r: r.group(INSERT, 3, 1, size=0)),
    ("group-size-negative", INVALID, lambda r: r.group(INSERT, 3, 1, size=-1)),
    ("group-size-above", INVALID, lambda r: r.group(INSERT, 3, 1, size=5)),
    ("group-weights-above-size", FULL, lambda r: r.group(INSERT, 3, of(1, weight=3), size=2)),
    ("weight-zero", INVALID, lambda r: r.group(INSERT, 3, of(1, weight=0))),
    ("weight-negative", INVALID, lambda r: r.group(INSERT, 3, of(1, weight=-1))),
    ("watch-none", "", lambda r: r.group(INSERT, 3, of(1, watch_port=b""))),
    ("watch", "", lambda r: r.group(INSERT, 3, of(1, watch_port=b"\x02"))),
    ("watch-zeros-in-front", "", lambda r: r.group(INSERT, 3, of(1, watch_port=b"\0\0\x02"))),
    ("watch-drop-port", INVALID, lambda r: r.group(INSERT, 3, of(1, watch_port=b"\x01\xff"))),
    ("watch-too-wide", INVALID, lambda r: r.group(INSERT, 3, of(1, watch_port=b"\x02\0"))),
    ("watch-number-negative", INVALID, lambda r: r.group(INSERT, 3, of(1, watch=-1))),
    ("watch-number-too-wide", INVALID, lambda r: r.group(INSERT, 3, of(1, watch=512))),
    ("watch-modify", INVALID, lambda r: r.group(MODIFY, 1, of(1, watch_port=b"\x01\xff"))),
    # Entries of indirect tables.
    ("entry-member", "", lambda r: r.entry(INSERT, to_member(1))),
    ("entry-missing-member", MISSING, lambda r: r.entry(INSERT, to_member(7))),
    ("entry-missing-group", MISSING, lambda r: r.entry(INSERT, to_group(7))),
    ("entry-modify-to-missing-group", MISSING, lambda r: r.entry(MODIFY, to_group(7), key=8)),
    ("entry-action", INVALID, lambda r: r.entry(INSERT, r.raw.action("forward", b"\x01"))),
    ("entry-without-action", INVALID, lambda r: r.entry(INSERT, None)),
    ("entry-group-of-plain", INVALID, lambda r: r.entry(INSERT, to_group(1), "single")),
    ("entry-member-of-direct", INVALID, lambda r: r.entry(INSERT, to_member(1), "direct")),
    ("entry-shot-of-plain", INVALID, lambda r: r.entry(INSERT, one_shot(), "single")),
    ("shot-beside-members", INVALID, lambda r: r.shot()),
    # Default entries.
    (
        "default-of-group-table",
        DENIED,
        lambda r: update(MODIFY, table_entry=r.default(action=r.raw.action("NoAction"))),
    ),
    ("default-to-member", DENIED, lambda r: update(MODIFY, table_entry=r.default(action=to_member(1)))),
    ("default-to-group", DENIED, lambda r: update(MODIFY, table_entry=r.default(action=to_group(1)))),
    ("default-to-shot", DENIED, lambda r: update(MODIFY, table_entry=r.default(action=one_shot()))),
    ("default-reset", DENIED, lambda r: update(MODIFY, table_entry=r.default())),
    ("default-of-plain", DENIED, lambda r: update(MODIFY, table_entry=r.default("single", r.raw.action("NoAction")))),
    ("default-insert", INVALID, lambda r: update(INSERT, table_entry=r.default(action=r.raw.action("NoAction")))),
    ("default-delete", INVALID, lambda r: update(DELETE, table_entry=r.default())),
    ("default-of-direct", "", lambda r: update(MODIFY, table_entry=r.default("direct", r.raw.action("other")))),
    ("default-member-of-direct", INVALID, lambda r: update(MODIFY, table_entry=r.default("direct", to_member(1)))),
]


@pytest.mark.parametrize(("code", "change"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_each_rule(rules: Rules, code: str, change: Update) -> None:
    rules.device.write(request(*(update(rules) for update in BEFORE)))
    assert [failure.code for failure in failures(rules.device, change(rules))] == ([code] if code else [])


SHOTS: list[tuple[str, str, dict[str, Any]]] = [
    ("shot", "", {}),
    ("shot-weight-zero", INVALID, {"weight": 0}),
    ("shot-weight-above-size", INVALID, {"weight": 5}),
    ("shot-watch", "", {"watch_port": b"\x02"}),
    ("shot-watch-drop-port", INVALID, {"watch_port": b"\x01\xff"}),
    ("shot-watch-number", "", {"watch": 2}),
    ("shot-watch-number-negative", INVALID, {"watch": -2}),
]


@pytest.mark.parametrize(("code", "fields"), [shot[1:] for shot in SHOTS], ids=[shot[0] for shot in SHOTS])
def test_one_shot_sets(rules: Rules, code: str, fields: dict[str, Any]) -> None:
    assert [failure.code for failure in failures(rules.device, rules.shot(**fields))] == ([code] if code else [])
    if not code:
        rules_of_members = failures(rules.device, rules.member(INSERT, 1))
        assert [failure.code for failure in rules_of_members] == [INVALID]


def test_the_default_entry_of_an_indirect_table_is_constant(rules: Rules) -> None:
    for table, constant in (("spread", True), ("single", True), ("direct", False)):
        (entry,) = read_entries(rules.device, rules.default(table))
        assert (entry.is_const, entry.is_default_action) == (constant, True)


@pytest.mark.parametrize("watch", [{"watch_port": b"\x07"}, {"watch": 7}, {"watch_port": b"\x00"}])
def test_a_port_that_the_switch_does_not_have_is_not_watched(watch: dict[str, Any]) -> None:
    """Check that a switch of a network has only the ports that something is connected to."""
    topology = Topology("pair")
    for name in ("a", "b"):
        topology.add_switch(name)
    topology.add_link("a", "b")
    network = SimulatedNetwork(topology, _core.Program.compile(str(PROGRAM)))
    rules = Rules()
    client = network.clients["a"]

    def codes(*updates: Any) -> list[str]:
        message = request(*updates, device_id=client.device_id)
        message.election_id.CopyFrom(p4.Uint128(low=client.election_id))
        try:
            client._call_write(message.SerializeToString())
        except P4RuntimeError as e:
            return [failure.code for failure in e.failures]
        return []

    assert codes(rules.member(INSERT, 1), rules.group(INSERT, 1, of(1, watch_port=b"\x01"))) == []
    assert codes(rules.group(INSERT, 2, of(1, **watch))) == [INVALID]
    assert codes(rules.group(MODIFY, 1, of(1, **watch))) == [INVALID]
    assert codes(rules.group(DELETE, 1), rules.member(DELETE, 1)) == []
    assert codes(rules.shot(**watch)) == [INVALID]
    assert codes(rules.shot(watch_port=b"\x01")) == []
