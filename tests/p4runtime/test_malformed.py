"""Messages that parse but are invalid: for any value of a field, the answer is an error of P4Runtime.

A failure names its seed.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import pytest
from device_bench import Bench, make_bench
from random_messages import Ids, ids_of, message_of
from raw import read_entries

from holdfast.p4runtime import P4RuntimeError
from holdfast.p4runtime.p4data import from_p4data, to_p4data, to_plain, width_of
from holdfast.p4runtime.p4info import P4InfoIndex
from holdfast.p4runtime.stubs import p4data_pb2, p4info_pb2, p4types_pb2
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

ROUNDS = 400


@cache
def bench_of() -> tuple[Bench, Ids]:
    """Return one bench for all rounds, whose state carries over from round to round, and the program's ids."""
    bench = make_bench()
    bench.primary()
    return bench, ids_of(bench.index)


def quiet(call: Any, *args: Any) -> bool:
    """Make a call and return True if it was accepted; check the codes of the error if it was refused."""
    try:
        result = call(*args)
        if hasattr(result, "__next__"):
            list(result)
    except P4RuntimeError as e:
        assert e.code not in ("INTERNAL", "OK")
        assert all(f.code not in ("INTERNAL", "OK") and f.message for f in e.failures)
        return False
    return True


def test_writes() -> None:
    bench, ids = bench_of()
    accepted = 0
    for seed in range(ROUNDS):
        random = Random(seed)
        request = p4.WriteRequest(device_id=1, atomicity=random.randrange(4))
        request.election_id.low = 1
        for _ in range(random.randrange(1, 4)):
            request.updates.append(message_of(random, p4.Update, ids))
        accepted += quiet(bench.device.write, request)
        del request.updates[1:]
        request.updates[0].type = random.randrange(1, 4)
        accepted += quiet(bench.device.write, request)
        quiet(read_entries, bench.device, p4.TableEntry())  # still answers
    assert accepted > 0


def test_reads() -> None:
    bench, ids = bench_of()
    accepted = 0
    for seed in range(ROUNDS):
        request = p4.ReadRequest(device_id=1, entities=[message_of(Random(seed), p4.Entity, ids)])
        accepted += quiet(bench.device.read, request)
    assert accepted > 0


def test_stream_messages() -> None:
    bench, ids = bench_of()
    for seed in range(ROUNDS):
        random, sent = Random(seed), []
        session = bench.device.open(sent.append)
        for _ in range(4):
            message = message_of(random, p4.StreamMessageRequest, ids)
            if message.WhichOneof("update") == "arbitration":
                message.arbitration.role.name = "random"
                message.arbitration.role.ClearField("config")
                message.arbitration.device_id = random.choice([1, 1, 1, 2])
            quiet(bench.device.handle, session, message)
        bench.device.close(session)


def test_pipeline_configs() -> None:
    bench, _ = bench_of()
    for seed in range(ROUNDS // 2):
        random = Random(seed)
        request = p4.SetForwardingPipelineConfigRequest(device_id=1, action=1)
        request.election_id.low = 1
        request.config.CopyFrom(message_of(random, p4.ForwardingPipelineConfig, {}))
        if random.random() < 0.5:
            request.config.p4_device_config = bench.program.artifact()
        quiet(bench.device.set_forwarding_pipeline_config, request)


def test_type_specifications() -> None:
    accepted = 0
    for seed in range(ROUNDS):
        random = Random(seed)
        spec = message_of(random, p4types_pb2.P4DataTypeSpec, {})
        types = p4types_pb2.P4TypeInfo()
        for name in ("a", "learn_t"):
            types.structs[name].CopyFrom(message_of(random, p4types_pb2.P4StructTypeSpec, {}, 2))
            types.new_types[name].CopyFrom(message_of(random, p4types_pb2.P4NewTypeSpec, {}, 2))
            types.serializable_enums[name].CopyFrom(message_of(random, p4types_pb2.P4SerializableEnumTypeSpec, {}, 2))
        accepted += quiet(width_of, spec, types)
        quiet(from_p4data, spec, types, message_of(random, p4data_pb2.P4Data, {}))
        quiet(to_p4data, spec, types, 1)
        quiet(to_plain, spec, types, 1)
    assert accepted > 0


def test_p4info() -> None:
    for seed in range(ROUNDS // 2):
        quiet(P4InfoIndex, message_of(Random(seed), p4info_pb2.P4Info, {}))


def test_types_in_themselves() -> None:
    text = """
    registers { preamble { id: 1 name: "r" } type_spec { struct { name: "s" } } size: 1 }
    type_info { structs { key: "s" value { members { name: "m" type_spec { struct { name: "s" } } } } } }
    """
    index = P4InfoIndex.from_text(text)
    with pytest.raises(P4RuntimeError, match="nested too deeply"):
        width_of(index.registers["r"].type_spec, index.message.type_info)


def test_types_that_double_with_every_level() -> None:
    structs = "".join(
        f"""structs {{ key: "s{i}" value {{
            members {{ name: "a" type_spec {{ struct {{ name: "s{i + 1}" }} }} }}
            members {{ name: "b" type_spec {{ struct {{ name: "s{i + 1}" }} }} }} }} }}"""
        for i in range(25)
    )
    text = f"""
    registers {{ preamble {{ id: 1 name: "r" }} type_spec {{ struct {{ name: "s0" }} }} size: 1 }}
    type_info {{ {structs} structs {{ key: "s25" value {{}} }} }}
    """
    index = P4InfoIndex.from_text(text)
    with pytest.raises(P4RuntimeError, match="more than 4096 parts"):
        to_p4data(index.registers["r"].type_spec, index.message.type_info, 0)


@pytest.mark.parametrize("width", [-1, 0, 1 << 30])
def test_absurd_widths(width: int) -> None:
    for field in ("bit", "int"):
        spec = f"type_spec {{ bitstring {{ {field} {{ bitwidth: {width} }} }} }}"
        text = f'registers {{ preamble {{ id: 1 name: "r" }} {spec} }}'
        index = P4InfoIndex.from_text(text)
        with pytest.raises(P4RuntimeError, match=f"{width} bits"):
            width_of(index.registers["r"].type_spec, index.message.type_info)
    text = f'actions {{ preamble {{ id: 1 name: "a" }} params {{ id: 1 name: "p" bitwidth: {width} }} }}'
    if width:
        with pytest.raises(P4RuntimeError, match="bits"):
            P4InfoIndex.from_text(text)
    else:
        # An enum or error, which has no value that a client could give.
        assert P4InfoIndex.from_text(text).actions["a"].params["p"].width == 0
    with pytest.raises(P4RuntimeError, match="negative size"):
        P4InfoIndex.from_text('registers { preamble { id: 1 name: "r" } size: -1 }')
