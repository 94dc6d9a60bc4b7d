"""The primary and the pipeline: every rule of the specification's arbitration and pipeline sections."""

from __future__ import annotations

from typing import Any

import pytest
from device_bench import Bench
from raw import INSERT, MODIFY, Raw, exact, failures, group, read, read_entries, request, update, write

from holdfast._core import Program
from holdfast.p4runtime import LocalClient, P4RuntimeError
from holdfast.p4runtime.limits import MAX_ROLES, MAX_STREAMS_PER_ROLE
from holdfast.p4runtime.stubs import any_pb2
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

OK, ALREADY_EXISTS, NOT_FOUND = 0, 6, 5
ACTIONS = p4.SetForwardingPipelineConfigRequest


class Stream:
    """A stream without a transport."""

    def __init__(self, bench: Bench) -> None:
        self.device = bench.device
        self.received: list[Any] = []
        self.session = bench.device.open(self.received.append)

    def arbitrate(self, election_id: int | None, role: str = "", device_id: int = 1) -> Stream:
        message = p4.StreamMessageRequest()
        message.arbitration.device_id = device_id
        if election_id is not None:
            message.arbitration.election_id.high = election_id >> 64
            message.arbitration.election_id.low = election_id & (1 << 64) - 1
        if role:
            message.arbitration.role.name = role
        self.device.handle(self.session, message)
        return self

    def statuses(self) -> list[tuple[int, int | None]]:
        """Return (status code, highest election id) of each arbitration update since the last call."""
        found = []
        for message in self.received:
            assert message.WhichOneof("update") == "arbitration"
            update = message.arbitration
            assert update.device_id == 1
            highest = update.election_id.high << 64 | update.election_id.low if update.HasField("election_id") else None
            found.append((update.status.code, highest))
        self.received.clear()
        return found

    def close(self) -> None:
        self.device.close(self.session)


def stream(bench: Bench, election_id: int | None, role: str = "") -> Stream:
    return Stream(bench).arbitrate(election_id, role)


def code_of(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(P4RuntimeError) as e:
        call(*args, **kwargs)
    return e.value.code


def may_write(bench: Bench, election_id: int | None, role: str = "") -> str:
    """Return the status code of an empty write.

    It is FAILED_PRECONDITION (no pipeline) for the primary, PERMISSION_DENIED for others.
    """
    return code_of(bench.device.write, request(election_id=election_id, role=role))


# ---- Arbitration ----


def test_first_client_is_primary(bench: Bench) -> None:
    assert stream(bench, 5).statuses() == [(OK, 5)]
    assert may_write(bench, 5) == "FAILED_PRECONDITION"


def test_zero_is_an_election_id_and_unset_is_not(bench: Bench) -> None:
    backup = stream(bench, None)
    assert backup.statuses() == [(NOT_FOUND, None)]
    primary = stream(bench, 0)
    assert primary.statuses() == [(OK, 0)]
    assert backup.statuses() == [(ALREADY_EXISTS, 0)]
    assert may_write(bench, None) == "PERMISSION_DENIED"
    assert may_write(bench, 0) == "FAILED_PRECONDITION"


def test_highest_id_wins_and_everyone_hears(bench: Bench) -> None:
    a, b = stream(bench, 10), stream(bench, 3)
    assert a.statuses() == [(OK, 10)]
    assert b.statuses() == [(ALREADY_EXISTS, 10)]
    c = stream(bench, 1 << 100)
    for backup in (a, b):
        assert backup.statuses() == [(ALREADY_EXISTS, 1 << 100)]
    assert c.statuses() == [(OK, 1 << 100)]
    assert may_write(bench, 10) == "PERMISSION_DENIED"
    assert may_write(bench, 1 << 100) == "FAILED_PRECONDITION"


def test_others_hear_before_the_new_primary(bench: Bench) -> None:
    order: list[str] = []
    old = stream(bench, 1)
    old.session.send = lambda _: order.append("old")
    new = Stream(bench)
    new.session.send = lambda _: order.append("new")
    new.arbitrate(2)
    assert order == ["old", "new"]


def test_primary_leaves_and_nobody_follows_by_itself(bench: Bench) -> None:
    a, b = stream(bench, 10), stream(bench, 3)
    b.statuses()
    a.close()
    assert b.statuses() == [(NOT_FOUND, 10)]
    assert may_write(bench, 3) == "PERMISSION_DENIED"
    assert may_write(bench, 10) == "PERMISSION_DENIED"
    b.arbitrate(9)  # still below the highest ever seen
    assert b.statuses() == [(NOT_FOUND, 10)]
    b.arbitrate(10)
    assert b.statuses() == [(OK, 10)]


def test_backup_leaves_quietly(bench: Bench) -> None:
    a, b = stream(bench, 10), stream(bench, 3)
    a.statuses()
    b.close()
    assert a.statuses() == []
    Stream(bench).close()  # never arbitrated


def test_primary_steps_down(bench: Bench) -> None:
    for lower in (2, None):
        a, b = stream(bench, 10), stream(bench, 3)
        a.statuses(), b.statuses()
        a.arbitrate(lower)
        assert a.statuses() == [(NOT_FOUND, 10)]
        assert b.statuses() == [(NOT_FOUND, 10)]
        assert may_write(bench, 10) == "PERMISSION_DENIED"
        a.close(), b.close()


def test_primary_repeats_itself(bench: Bench) -> None:
    a, b = stream(bench, 10), stream(bench, 3)
    a.statuses(), b.statuses()
    a.arbitrate(10)
    assert a.statuses() == [(OK, 10)]
    assert b.statuses() == [(ALREADY_EXISTS, 10)]


def test_duplicate_election_id_ends_the_stream(bench: Bench) -> None:
    a, b = stream(bench, 10), stream(bench, 3)
    assert code_of(stream, bench, 10) == "INVALID_ARGUMENT"
    assert code_of(stream, bench, 3) == "INVALID_ARGUMENT"
    assert code_of(b.arbitrate, 10) == "INVALID_ARGUMENT"
    a.arbitrate(10)  # its own is no duplicate
    stream(bench, 10, role="other")  # nor is another role's
    a.close()
    stream(bench, 10)  # nor that of a client that is gone


def test_wrong_device_and_changes_on_a_stream(bench: Bench) -> None:
    assert code_of(Stream(bench).arbitrate, 1, device_id=7) == "NOT_FOUND"
    a = stream(bench, 1)
    assert code_of(a.arbitrate, 2, device_id=7) == "FAILED_PRECONDITION"
    assert code_of(a.arbitrate, 2, role="other") == "FAILED_PRECONDITION"


def test_roles_are_apart(bench: Bench) -> None:
    a, b = stream(bench, 1), stream(bench, 1, role="acl")
    assert a.statuses() == b.statuses() == [(OK, 1)]
    assert may_write(bench, 1) == may_write(bench, 1, "acl") == "FAILED_PRECONDITION"
    assert may_write(bench, 1, "unheard") == "NOT_FOUND"
    backup = stream(bench, None, role="acl")
    b.close()
    assert may_write(bench, 1, "acl") == "PERMISSION_DENIED"
    backup.close()
    assert may_write(bench, 1, "acl") == "NOT_FOUND"
    assert may_write(bench, 1) == "FAILED_PRECONDITION"


def test_role_is_given_back(bench: Bench) -> None:
    a = stream(bench, 1, role="acl")
    assert a.received[0].arbitration.role.name == "acl"
    assert not stream(bench, 1).received[0].arbitration.HasField("role")


def test_role_configurations_and_role_ids_are_refused(bench: Bench) -> None:
    message = p4.StreamMessageRequest()
    message.arbitration.device_id = 1
    message.arbitration.role.config.CopyFrom(any_pb2.Any(type_url="x"))
    assert code_of(bench.device.handle, Stream(bench).session, message) == "INVALID_ARGUMENT"
    message.arbitration.role.ClearField("config")
    message.arbitration.role.id = 4
    assert code_of(bench.device.handle, Stream(bench).session, message) == "INVALID_ARGUMENT"


def test_limits(bench: Bench) -> None:
    for i in range(MAX_STREAMS_PER_ROLE):
        stream(bench, i)
    assert code_of(stream, bench, 99) == "RESOURCE_EXHAUSTED"
    open_streams = []
    for i in range(MAX_ROLES - 1):
        open_streams.append(stream(bench, 1, role=f"role{i}"))
    assert code_of(stream, bench, 1, "one more") == "RESOURCE_EXHAUSTED"
    open_streams.pop().close()
    stream(bench, 1, "one more")


def test_a_role_is_forgotten_with_its_last_stream(bench: Bench) -> None:
    """Check that the role's highest election id is forgotten, too, while that of the default role is remembered."""
    for i in range(2 * MAX_ROLES):
        stream(bench, 9, role=f"role{i}").close()
    assert stream(bench, 1, role="role0").received[-1].arbitration.status.code == OK
    stream(bench, 9).close()
    assert stream(bench, 1).received[-1].arbitration.status.code == NOT_FOUND


def test_order_of_checks_in_a_write(bench: Bench) -> None:
    assert code_of(bench.device.write, request(device_id=2)) == "NOT_FOUND"
    assert code_of(bench.device.write, request(role="x")) == "NOT_FOUND"
    assert code_of(bench.device.write, request()) == "PERMISSION_DENIED"
    stream(bench, 1)
    assert code_of(bench.device.write, request()) == "FAILED_PRECONDITION"


def test_deprecated_role_id_is_unknown(bench: Bench) -> None:
    stream(bench, 1)
    message = request()
    message.role_id = 3
    assert code_of(bench.device.write, message) == "NOT_FOUND"


def test_read_needs_a_pipeline_but_no_session(bench: Bench) -> None:
    assert code_of(bench.device.read, p4.ReadRequest(device_id=1)) == "FAILED_PRECONDITION"
    assert code_of(bench.device.read, p4.ReadRequest(device_id=2)) == "NOT_FOUND"
    bench.primary().close()
    assert len(read(bench.device, table_entry=p4.TableEntry())) == 2


def test_backup_may_not_write_or_set_the_pipeline(bench: Bench) -> None:
    primary = bench.primary()
    raw = Raw(bench.index)
    stream(bench, 0)
    entry = update(INSERT, table_entry=raw.route())
    assert code_of(bench.device.write, request(entry, election_id=0)) == "PERMISSION_DENIED"
    assert code_of(push, bench, election_id=0) == "PERMISSION_DENIED"
    primary.close()
    assert code_of(bench.device.write, request(entry)) == "PERMISSION_DENIED"
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []


# ---- Pipelines ----


def push(
    bench: Bench, action: int = ACTIONS.VERIFY_AND_COMMIT, config: Any = None, *, election_id: int = 1, **fields: Any
) -> None:
    message = ACTIONS(device_id=1, action=action, config=config, **fields)
    message.election_id.low = election_id
    bench.device.set_forwarding_pipeline_config(message)


def get(bench: Bench, kind: int = 0) -> Any:
    response = bench.device.get_forwarding_pipeline_config(
        p4.GetForwardingPipelineConfigRequest(device_id=1, response_type=kind)
    )
    return response.config if response.HasField("config") else None


def test_get_pipeline(bench: Bench) -> None:
    kinds = p4.GetForwardingPipelineConfigRequest
    assert get(bench) is None
    stream(bench, 1)
    config = bench.config()
    config.cookie.cookie = 77
    push(bench, config=config)
    assert get(bench) == config
    cookie = p4.ForwardingPipelineConfig(cookie=config.cookie)
    assert get(bench, kinds.COOKIE_ONLY) == cookie
    assert get(bench, kinds.P4INFO_AND_COOKIE) == p4.ForwardingPipelineConfig(
        p4info=config.p4info, cookie=config.cookie
    )
    device_config = p4.ForwardingPipelineConfig(p4_device_config=config.p4_device_config, cookie=config.cookie)
    assert get(bench, kinds.DEVICE_CONFIG_AND_COOKIE) == device_config
    push(bench, config=bench.config())
    assert not get(bench).HasField("cookie")
    assert code_of(get, bench, 9) == "INVALID_ARGUMENT"
    wrong = kinds(device_id=3)
    assert code_of(bench.device.get_forwarding_pipeline_config, wrong) == "NOT_FOUND"


def test_verify_changes_nothing(bench: Bench) -> None:
    stream(bench, 1)
    push(bench, ACTIONS.VERIFY, bench.config())
    assert get(bench) is None
    assert may_write(bench, 1) == "FAILED_PRECONDITION"


def test_commit_clears(bench: Bench) -> None:
    bench.primary()
    raw = Raw(bench.index)
    write(bench.device, update(INSERT, table_entry=raw.route(metadata=b"m")))
    write(bench.device, update(INSERT, packet_replication_engine_entry=group(1)))
    push(bench, config=bench.config())
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []
    assert read(bench.device, packet_replication_engine_entry=group(0)) == []
    assert len(read_entries(bench.device, raw.entry("classes"))) == 2


def bad_config(bench: Bench, **changes: Any) -> Any:
    config = bench.config()
    for name, value in changes.items():
        setattr(config, name, value) if isinstance(value, bytes) else config.ClearField(name)
    return config


@pytest.mark.parametrize(
    "action", [ACTIONS.VERIFY, ACTIONS.VERIFY_AND_SAVE, ACTIONS.VERIFY_AND_COMMIT, ACTIONS.RECONCILE_AND_COMMIT]
)
def test_wrong_configs(bench: Bench, action: int) -> None:
    stream(bench, 1)
    assert code_of(push, bench, action) == "INVALID_ARGUMENT"
    for config in (
        bad_config(bench, p4info=None),
        bad_config(bench, p4_device_config=None),
        bad_config(bench, p4_device_config=b"no artifact"),
        bad_config(bench, p4_device_config=bench.program.artifact()[:40]),
    ):
        assert code_of(push, bench, action, config) == "INVALID_ARGUMENT"
    foreign = bench.config()
    foreign.p4info.tables[0].preamble.id = 33550000
    assert code_of(push, bench, action, foreign) == "INVALID_ARGUMENT"
    assert get(bench) is None


def test_wrong_actions(bench: Bench) -> None:
    stream(bench, 1)
    for action in (0, 9):
        assert code_of(push, bench, action, bench.config()) == "INVALID_ARGUMENT"
    assert code_of(push, bench, ACTIONS.COMMIT) == "NOT_FOUND"
    assert code_of(push, bench, ACTIONS.COMMIT, bench.config()) == "INVALID_ARGUMENT"
    wrong = ACTIONS(device_id=4, action=ACTIONS.COMMIT)
    assert code_of(bench.device.set_forwarding_pipeline_config, wrong) == "NOT_FOUND"


def running_state(bench: Bench) -> list[str]:
    """Return the kinds of the routes and groups that the running switch has."""
    running = bench.device.owner.running
    assert running is not None
    wanted = p4.ReadRequest()
    wanted.entities.add().table_entry.table_id = bench.index.tables["ipv4_lpm"].id
    wanted.entities.add().packet_replication_engine_entry.multicast_group_entry.SetInParent()
    reading = running.core.read(bench.switch, wanted.SerializeToString())
    responses = map(p4.ReadResponse.FromString, iter(lambda: reading.next(bench.switch), None))
    return [entity.WhichOneof("entity") for response in responses for entity in response.entities]


def test_save_write_commit(bench: Bench) -> None:
    bench.primary()
    raw = Raw(bench.index)
    write(bench.device, update(INSERT, table_entry=raw.route()))
    config = bench.config()
    config.cookie.cookie = 2
    push(bench, ACTIONS.VERIFY_AND_SAVE, config)
    # Reads and writes refer to the saved config now; the switch forwards as before.
    assert get(bench).cookie.cookie == 2
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []
    saved = raw.route(prefix=b"\x0c\0\0\0", metadata=b"s")
    write(bench.device, update(INSERT, table_entry=saved))
    write(bench.device, update(INSERT, packet_replication_engine_entry=group(1)))
    assert [f.code for f in failures(bench.device, update(INSERT, table_entry=saved))] == ["ALREADY_EXISTS"]
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [saved]
    assert running_state(bench) == ["table_entry"]
    push(bench, ACTIONS.COMMIT)
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [saved]
    assert running_state(bench) == ["table_entry", "packet_replication_engine_entry"]
    assert code_of(push, bench, ACTIONS.COMMIT) == "NOT_FOUND"


def test_first_pipeline_by_save_and_commit(bench: Bench) -> None:
    stream(bench, 1)
    push(bench, ACTIONS.VERIFY_AND_SAVE, bench.config())
    raw = Raw(bench.index)
    write(bench.device, update(INSERT, table_entry=raw.route()))
    push(bench, ACTIONS.COMMIT)
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route()]


def test_reconcile_keeps_the_state(bench: Bench) -> None:
    bench.primary()
    raw = Raw(bench.index)
    learned = raw.entry("learned", [exact(1, b"\1")], raw.action("pass"))
    default = raw.entry("keyless", [], raw.action("set_class", b"\3"), is_default_action=True)
    counted = raw.route(metadata=b"m", counter_data=p4.CounterData(packet_count=4, byte_count=5))
    register = p4.RegisterEntry(
        register_id=raw.index.registers["last_seen"].id, index=p4.Index(index=2), data={"bitstring": b"\6"}
    )
    counter = p4.CounterEntry(
        counter_id=raw.index.counters["port_packets"].id, index=p4.Index(index=1), data=p4.CounterData(packet_count=8)
    )
    write(
        bench.device,
        update(INSERT, table_entry=counted),
        update(INSERT, table_entry=learned),
        update(MODIFY, table_entry=default),
        update(INSERT, packet_replication_engine_entry=group(3, [p4.Replica(port=b"\1")])),
        update(MODIFY, register_entry=register),
        update(MODIFY, counter_entry=counter),
        update(INSERT, digest_entry=p4.DigestEntry(digest_id=raw.index.digests["learn_t"].id)),
    )
    wanted = [
        {"table_entry": p4.TableEntry()},
        {"table_entry": raw.entry("ipv4_lpm", counter_data=p4.CounterData())},
        {"table_entry": p4.TableEntry(is_default_action=True)},
        {"packet_replication_engine_entry": group(0)},
        {"register_entry": p4.RegisterEntry()},
        {"counter_entry": p4.CounterEntry()},
        {"digest_entry": p4.DigestEntry()},
    ]
    before = [read(bench.device, **w) for w in wanted]
    assert all(before)
    push(bench, ACTIONS.RECONCILE_AND_COMMIT, bench.config())
    assert [read(bench.device, **w) for w in wanted] == before


def test_reconcile_to_another_program(bench: Bench) -> None:
    bench.primary()
    raw = Raw(bench.index)
    write(bench.device, update(INSERT, table_entry=raw.route(metadata=b"m")))
    larger = bench.variant("register<bit<32>>(16)", "register<bit<32>>(32)")
    push(bench, ACTIONS.RECONCILE_AND_COMMIT, larger.config())
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route(metadata=b"m")]
    assert len(read(bench.device, register_entry=p4.RegisterEntry())) == 32
    assert get(bench).p4info == larger.index.message


def test_reconcile_refuses_what_it_cannot_keep(bench: Bench) -> None:
    bench.primary()
    raw = Raw(bench.index)
    other = bench.variant("hdr.ipv4.dst_addr: lpm", "hdr.ipv4.src_addr: lpm")
    write(bench.device, update(INSERT, table_entry=raw.route()))
    assert code_of(push, bench, ACTIONS.RECONCILE_AND_COMMIT, other.config()) == "INVALID_ARGUMENT"
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route()]
    assert get(bench).p4info == bench.index.message
    push(bench, config=bench.config())
    push(bench, ACTIONS.RECONCILE_AND_COMMIT, other.config())  # nothing to keep
    assert get(bench).p4info == other.index.message


def test_loading_without_a_client(bench: Bench) -> None:
    bench.device.load(bench.program)
    found = get(bench)
    assert found.p4info == bench.index.message
    assert found.p4_device_config == bench.program.artifact()
    assert not found.HasField("cookie")
    with LocalClient(bench.device) as client:
        client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "drop")
    bare = Program.from_artifact(bench.program.ir_text.encode())
    assert code_of(bench.device.load, bare) == "INVALID_ARGUMENT"


def test_capabilities(bench: Bench) -> None:
    assert bench.device.capabilities(p4.CapabilitiesRequest()).p4runtime_api_version == "1.5.0"
    assert bench.device.capabilities(p4.CapabilitiesRequest(device_id=1)).p4runtime_api_version == "1.5.0"
    assert code_of(bench.device.capabilities, p4.CapabilitiesRequest(device_id=2)) == "NOT_FOUND"
