#!/usr/bin/env python3
"""fuzz/p4runtime.py SECONDS: sends likely, wrong and damaged P4Runtime messages to the server's handlers in this process.

Two devices, one per executor, get the same messages. For any messages:

* the only exception is a P4RuntimeError, with a status of P4Runtime, and a message for each failed update;
* both devices give the same answer, word for word;
* a failed all-or-nothing batch has changed nothing, and the state can always be read;
* a pipeline pushed with RECONCILE_AND_COMMIT keeps the state.

FUZZ_SEED repeats a run. The messages before a finding are kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/p4runtime"))

from random_messages import Ids, ids_of, message_of  # noqa: E402

from holdfast import _core  # noqa: E402
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex, P4RuntimeError  # noqa: E402
from holdfast.p4runtime.p4info import MatchField, Table  # noqa: E402
from holdfast.p4runtime.stubs import code_pb2  # noqa: E402
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4  # noqa: E402

STATUSES = set(code_pb2.Code.keys()) - {"OK", "INTERNAL"}
RESET_EVERY = 400  # messages; so that a finding is short, and full tables are not all there is
ELECTION_ID = 1 << 64


class Likely:
    """Updates that are right more often than not, of few keys, so that they meet again."""

    def __init__(self, index: P4InfoIndex) -> None:
        self.index, info = index, index.message
        self.with_timeout = {t.preamble.id for t in info.tables if t.idle_timeout_behavior}
        meters = {meter.preamble.id for meter in info.direct_meters}
        self.with_meter = {t.preamble.id for t in info.tables if meters & set(t.direct_resource_ids)}
        self.selectors = {p.preamble.id for p in info.action_profiles if p.with_selector}

    def update(self, random: Random) -> Any:
        kinds = [self.entry] * 6 + [self.member, self.group, self.array, self.direct, self.value_set, self.replication]
        update = p4.Update(type=random.choice([1, 1, 1, 2, 2, 3]))
        random.choice(kinds)(random, update)
        return update

    def value(self, random: Random, width: int) -> bytes:
        number = random.choice([0, 1, 2, (1 << width) - 1, random.getrandbits(width)]) & ((1 << width) - 1)
        return bytes(random.choice([0, 0, 0, 1])) + number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")

    def match(self, random: Random, message: Any, field: MatchField) -> None:
        width, ones = field.width, (1 << field.width) - 1
        if field.kind in ("exact", "optional"):
            getattr(message, field.kind).value = self.value(random, width)
        elif field.kind == "lpm":
            length = random.choice([1, width // 2 or 1, width])
            value = random.getrandbits(width) & (ones << (width - length)) & ones
            message.lpm.value, message.lpm.prefix_len = value.to_bytes((width + 7) // 8, "big"), length
        elif field.kind == "ternary":
            mask = random.choice([1, ones, ones >> 1])
            message.ternary.mask = mask.to_bytes((width + 7) // 8, "big")
            message.ternary.value = (random.getrandbits(2) & mask).to_bytes((width + 7) // 8, "big")
        else:
            low = random.randrange(4)
            message.range.low = bytes([low])
            message.range.high = bytes([low + random.randrange(4)])

    def key(self, random: Random, table: Table, entry: Any) -> None:
        entry.table_id = table.id
        for field in table.fields:
            if field.kind == "exact" or random.random() < 0.7:
                self.match(random, entry.match.add(field_id=field.id), field)
        if table.needs_priority:
            entry.priority = random.randrange(1, 3)

    def call(self, random: Random, table: Table, message: Any) -> None:
        action = random.choice(list(table.actions))
        message.action_id = action.id
        for param in action.params:
            message.params.add(param_id=param.id, value=self.value(random, param.width))

    def entry(self, random: Random, update: Any) -> None:
        table, entry = random.choice(list(self.index.tables)), update.entity.table_entry
        if random.random() < 0.1:
            update.type, entry.table_id, entry.is_default_action = 2, table.id, True
            self.call(random, table, entry.action.action)
            return
        self.key(random, table, entry)
        action = entry.action
        if not table.implementation_id:
            self.call(random, table, action.action)
        elif random.random() < 0.4:
            action.action_profile_member_id = random.randrange(1, 4)
        elif random.random() < 0.7:
            action.action_profile_group_id = random.randrange(1, 3)
        else:
            for _ in range(random.randrange(3)):
                item = action.action_profile_action_set.action_profile_actions.add(weight=random.randrange(1, 3))
                self.call(random, table, item.action)
        self.extras(random, table, entry)

    def extras(self, random: Random, table: Table, entry: Any) -> None:
        if random.random() < 0.15:
            entry.metadata = b"m"
        if table.id in self.with_timeout and random.random() < 0.5:
            entry.idle_timeout_ns = random.choice((0, 999_999, 1_000_000, 2**62))
        if table.id in self.with_meter and random.random() < 0.5:
            self.config(random, entry.meter_config)
        if table.direct_counter_id and random.random() < 0.2:
            entry.counter_data.packet_count = random.randrange(3)
        if random.random() < 0.1:
            entry.ClearField("action")

    def config(self, random: Random, config: Any) -> None:
        config.cir = config.cburst = random.randrange(4)
        config.pir = config.pburst = config.cir + random.randrange(4)

    def member(self, random: Random, update: Any) -> None:
        profiles = list(self.index.action_profiles)
        if not profiles:
            return self.entry(random, update)
        profile, member = random.choice(profiles), update.entity.action_profile_member
        member.action_profile_id, member.member_id = profile.id, random.randrange(1, 6)
        return self.call(random, self.index.tables.by_id(profile.table_ids[0]), member.action)

    def group(self, random: Random, update: Any) -> None:
        profiles = [p for p in self.index.action_profiles if p.id in self.selectors]
        if not profiles:
            return self.entry(random, update)
        group = update.entity.action_profile_group
        group.action_profile_id, group.group_id = profiles[0].id, random.randrange(1, 3)
        for member_id in random.sample(range(1, 5), random.randrange(4)):
            member = group.members.add(member_id=member_id, weight=random.randrange(1, 3))
            if random.random() < 0.5:
                member.watch_port = b"\1"
        return None

    def array(self, random: Random, update: Any) -> None:
        info = self.index.message
        arrays: list[tuple[str, str, Any]] = [("register", "register_id", r) for r in info.registers]
        arrays += [("counter", "counter_id", c) for c in info.counters]
        arrays += [("meter", "meter_id", m) for m in info.meters]
        if not arrays:
            return self.entry(random, update)
        update.type = 2
        kind, id_field, array = random.choice(arrays)
        message = getattr(update.entity, f"{kind}_entry")
        setattr(message, id_field, array.preamble.id)
        if random.random() < 0.8:
            message.index.index = random.randrange(array.size + 1)
        if kind == "register":
            message.data.bitstring = self.value(random, 8)
        elif kind == "counter":
            message.data.packet_count = random.randrange(5)
        elif random.random() < 0.7:
            self.config(random, message.config)
        return None

    def direct(self, random: Random, update: Any) -> None:
        tables = [t for t in self.index.tables if t.direct_counter_id or t.id in self.with_meter]
        if not tables:
            return self.entry(random, update)
        table, update.type = random.choice(tables), 2
        if table.id in self.with_meter and random.random() < 0.5:
            self.key(random, table, update.entity.direct_meter_entry.table_entry)
            self.config(random, update.entity.direct_meter_entry.config)
        else:
            self.key(random, table, update.entity.direct_counter_entry.table_entry)
            update.entity.direct_counter_entry.data.byte_count = random.randrange(5)
        return None

    def value_set(self, random: Random, update: Any) -> None:
        value_sets = list(self.index.value_sets)
        if not value_sets:
            return self.entry(random, update)
        update.type, message = 2, update.entity.value_set_entry
        message.value_set_id = value_sets[0].id
        for _ in range(random.randrange(6)):
            member = message.members.add()
            for field in (self.index._match_field(f, "") for f in self.index.message.value_sets[0].match):
                self.match(random, member.match.add(field_id=field.id), field)
        return None

    def replication(self, random: Random, update: Any) -> None:
        message = update.entity.packet_replication_engine_entry
        if random.random() < 0.5:
            message.multicast_group_entry.multicast_group_id = random.randrange(1, 3)
            replicas = message.multicast_group_entry.replicas
        else:
            message.clone_session_entry.session_id = random.randrange(1, 3)
            replicas = message.clone_session_entry.replicas
        for _ in range(random.randrange(3)):
            replicas.add(port=bytes([random.randrange(1, 4)]), instance=random.randrange(3))


@dataclass
class Twins:
    """Two devices that are sent the same."""

    program: Any
    devices: list[Device]

    @staticmethod
    def of(program: Any) -> Twins:
        devices = []
        executors: tuple[Literal["interpreter", "jit"], ...] = ("interpreter", "jit")
        for executor in executors:
            device = Device(1, _core.Switch(program, executor=executor), executor=executor)
            client = LocalClient(device, ELECTION_ID)
            client.set_pipeline(program)
            devices.append(device)
        return Twins(program, devices)

    def answers(self, call: Callable[[Device], Any]) -> Any:
        """Call ``call`` with both devices, and return their answer. Raises AssertionError if the answers differ."""
        first, second = (outcome(call, device) for device in self.devices)
        assert first == second, f"interpreter: {first}\njit: {second}"
        return first

    def state(self) -> Any:
        """Return all entities that the devices answer to a Read."""
        kinds = [f for f in p4.Entity.DESCRIPTOR.fields if f.name != "packet_replication_engine_entry"]
        wanted = [p4.Entity(**{f.name: f.message_type._concrete_class()}) for f in kinds]
        wanted[1].table_entry.counter_data.SetInParent()
        wanted[1].table_entry.meter_config.SetInParent()
        tables = P4InfoIndex.from_text(self.program.p4info).tables
        wanted += [p4.Entity(table_entry=p4.TableEntry(table_id=table.id)) for table in tables]
        wanted += [p4.Entity(table_entry=p4.TableEntry(is_default_action=True))]
        for name in ("multicast_group_entry", "clone_session_entry"):
            engine = p4.PacketReplicationEngineEntry()
            getattr(engine, name).SetInParent()
            wanted.append(p4.Entity(packet_replication_engine_entry=engine))
        request = p4.ReadRequest(device_id=1, entities=wanted)
        return self.answers(lambda device: [e for r in device.read(request) for e in r.entities])


def unordered(state: Any) -> list[bytes]:
    """Return the entities of a Read as sorted bytes.

    A Read returns entries in the order of the table, which a new pipeline fills anew.
    """
    assert isinstance(state, list), state
    return sorted(entity.SerializeToString(deterministic=True) for entity in state)


def outcome(call: Callable[[Device], Any], device: Device) -> Any:
    """Return the result of a call, or the code, message and failures of its error."""
    try:
        return call(device)
    except P4RuntimeError as e:
        failed = [(f.index, f.code, f.message) for f in e.failures]
        assert e.code in STATUSES, e
        assert all(code in STATUSES and message for _, code, message in failed), e
        return (e.code, e.message, failed)


def write_request(random: Random, likely: Likely, ids: Ids) -> Any:
    request = p4.WriteRequest(device_id=1, atomicity=random.randrange(3))
    request.election_id.high = 1
    for _ in range(random.choice([1, 1, 2, 5])):
        wild = random.random()
        update = message_of(random, p4.Update, ids) if wild < 0.1 else likely.update(random)
        if 0.1 < wild < 0.3:  # one field replaced by something else
            part = getattr(update.entity, update.entity.WhichOneof("entity"))
            noise = message_of(random, type(part), ids)
            for field in random.sample(noise.ListFields(), min(1, len(noise.ListFields()))):
                part.ClearField(field[0].name)
                source = type(part)()
                source.CopyFrom(noise)
                for other, _ in noise.ListFields():
                    if other.name != field[0].name:
                        source.ClearField(other.name)
                part.MergeFrom(source)
        request.updates.append(update)
    return request


def damaged(random: Random, data: bytes) -> bytes:
    """Return the bytes with one to three random changes."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(changed))
        what = random.randrange(3)
        if what == 0:
            changed[at] = random.randrange(256)
        elif what == 1:
            del changed[at]
        else:
            changed.insert(at, random.randrange(256))
        if not changed:
            break
    return bytes(changed)


def step(random: Random, twins: Twins, likely: Likely, ids: Ids, kept: list[str]) -> None:
    """Send one random message to both devices."""
    what = random.random()
    if what < 0.75:
        request = write_request(random, likely, ids)
        kept.append(f"write {request}")
        before = twins.state() if request.atomicity else None
        answer = twins.answers(lambda device: device.write(request))
        if isinstance(answer, tuple) and before is not None:
            assert twins.state() == before, f"not rolled back: {answer}"
    elif what < 0.85:
        data = damaged(random, write_request(random, likely, ids).SerializeToString())
        kept.append(f"write {data!r}")
        twins.answers(lambda device: device.write_serialized(data))
    elif what < 0.95:
        wanted = p4.ReadRequest(device_id=1, entities=[message_of(random, p4.Entity, ids)])
        kept.append(f"read {wanted}")
        twins.answers(lambda device: [e for r in device.read(wanted) for e in r.entities])
    elif what < 0.98:
        message = message_of(random, p4.StreamMessageRequest, ids)
        message.arbitration.role.name = "another" if message.HasField("arbitration") else ""
        kept.append(f"stream {message}")
        for device in twins.devices:
            session = device.open(lambda _: None)
            outcome(lambda device: device.handle(session, message), device)  # noqa: B023 - called at once
            device.close(session)
    else:
        push(random, twins, ids, kept)
    twins.state()


def push(random: Random, twins: Twins, ids: Ids, kept: list[str]) -> None:
    """Set the pipeline: to the same one, which keeps all state, or to a damaged one, which is only verified."""
    request = p4.SetForwardingPipelineConfigRequest(device_id=1)
    request.election_id.high = 1
    request.config.p4info.CopyFrom(P4InfoIndex.from_text(twins.program.p4info).message)
    request.config.p4_device_config = twins.program.artifact()
    if random.random() < 0.5:
        request.action = p4.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT
        kept.append("reconcile")
        before = twins.state()
        answer = twins.answers(lambda device: device.set_forwarding_pipeline_config(request))
        assert not isinstance(answer, tuple), answer
        assert unordered(twins.state()) == unordered(before), "reconciling changed the state"
    else:
        request.action = p4.SetForwardingPipelineConfigRequest.VERIFY
        noise = message_of(random, p4.ForwardingPipelineConfig, ids)
        request.config.MergeFrom(noise)
        kept.append(f"verify with {noise}")
        twins.answers(lambda device: device.set_forwarding_pipeline_config(request))


def run(seconds: float, seed: int) -> int:
    """Send messages for ``seconds`` and return how many; on a failed check, raise it with the messages that led to it."""
    programs = [
        _core.Program.compile(str(ROOT / "tests/p4runtime" / name))
        for name in ("stateful.p4", "basic.p4", "translated.p4")
    ]
    end, sent = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        random, program = Random(seed), programs[seed % len(programs)]
        twins, index = Twins.of(program), P4InfoIndex.from_text(program.p4info)
        likely, ids, kept = Likely(index), ids_of(index), []
        try:
            for _ in range(RESET_EVERY):
                step(random, twins, likely, ids, kept)
                sent += 1
                if time.monotonic() >= end:
                    break
        except Exception:
            found = Path(os.environ.get("FUZZ_FINDINGS", ROOT / "target/fuzz/findings"))
            found.mkdir(parents=True, exist_ok=True)
            text = f"FUZZ_SEED={seed}\n\n{traceback.format_exc()}\n" + "\n\n".join(kept)
            (found / f"p4runtime-{seed}.txt").write_text(text, encoding="utf-8")
            print(f"seed {seed}, message {len(kept)}: kept in {found}/p4runtime-{seed}.txt", file=sys.stderr)
            raise
        seed += 1
    return sent


def main() -> None:
    """Run for the number of seconds in the first argument."""
    if len(sys.argv) != 2 or not sys.argv[1].isdecimal():
        sys.exit("usage: fuzz/p4runtime.py SECONDS")
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    print(f"p4runtime: {run(float(sys.argv[1]), seed)} messages from seed {seed}, nothing found")


if __name__ == "__main__":
    main()
