"""A P4Info and a device config of different programs are refused with their first difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4

from holdfast import _core
from holdfast.p4runtime import Device, P4RuntimeError
from holdfast.p4runtime.p4info import parse_text

HERE = Path(__file__).parent
ACTIONS = p4.SetForwardingPipelineConfigRequest


@pytest.fixture(scope="module")
def program() -> _core.Program:
    return _core.Program.compile(str(HERE / "stateful.p4"))


def verify(program: _core.Program, p4info: Any) -> None:
    device = Device(1, _core.Switch(program))
    stream = p4.StreamMessageRequest()
    stream.arbitration.device_id = stream.arbitration.election_id.low = 1
    device.handle(device.open(lambda _: None), stream)
    request = ACTIONS(device_id=1, action=ACTIONS.VERIFY)
    request.election_id.low = 1
    request.config.p4info.CopyFrom(p4info)
    request.config.p4_device_config = program.artifact()
    device.set_forwarding_pipeline_config(request)


def of(objects: Any, alias: str) -> Any:
    return next(o for o in objects if o.preamble.alias == alias)


def wider_key(info: Any) -> None:
    of(info.tables, "encapsulation").match_fields[0].bitwidth += 1


def other_kind(info: Any) -> None:
    field = of(info.tables, "encapsulation").match_fields[0]
    field.match_type = p4info_pb2.MatchField.TERNARY


def one_key_less(info: Any) -> None:
    del of(info.tables, "encapsulation").match_fields[0]


def one_key_more(info: Any) -> None:
    fields = of(info.tables, "encapsulation").match_fields
    fields.add(id=9, name="more", bitwidth=8, match_type=p4info_pb2.MatchField.EXACT)


def one_table_less(info: Any) -> None:
    of_routes = [at for at, table in enumerate(info.tables) if table.preamble.alias == "learned"]
    del info.tables[of_routes[0]]


def unknown_table(info: Any) -> None:
    table = info.tables.add()
    table.CopyFrom(of(info.tables, "learned"))
    table.preamble.id, table.preamble.name = 0x0200_0001, "SteIngress.unknown"


def wider_parameter(info: Any) -> None:
    action = next(a for a in info.actions if a.params)
    action.params[0].bitwidth += 1


def no_parameter(info: Any) -> None:
    action = next(a for a in info.actions if a.params)
    del action.params[:]


def foreign_action(info: Any) -> None:
    table = of(info.tables, "learned")
    known = {ref.id for ref in table.action_refs}
    table.action_refs.add(id=next(a.preamble.id for a in info.actions if a.preamble.id not in known))


def no_meter(info: Any) -> None:
    del of(info.tables, "policers").direct_resource_ids[:]


def no_implementation(info: Any) -> None:
    of(info.tables, "encapsulation").implementation_id = 0


def more_cells(info: Any) -> None:
    info.registers[0].size += 1


def fewer_cells(info: Any) -> None:
    info.meters[0].size -= 1


def wider_cells(info: Any) -> None:
    info.registers[0].type_spec.bitstring.bit.bitwidth = 17


def wider_members(info: Any) -> None:
    info.value_sets[0].match[0].bitwidth = 8


def no_selector(info: Any) -> None:
    of(info.action_profiles, "ecmp").with_selector = False


def test_its_own_is_accepted(program: _core.Program) -> None:
    verify(program, parse_text(program.p4info))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (wider_key, r"table '.*encapsulation': match field '.*' has \d+ bits, in the P4Info \d+"),
        (other_kind, r"table '.*encapsulation': match field '.*' is exact, in the P4Info ternary"),
        (one_key_less, r"table '.*encapsulation': the P4Info leaves out match field"),
        (one_key_more, r"table '.*encapsulation': it has no match field with id 9"),
        (one_table_less, r"the P4Info leaves out table '.*learned'"),
        (unknown_table, r"the program has no table with id 33554433"),
        (wider_parameter, r"table '.*': action '.*': parameter '.*' has \d+ bits, in the P4Info \d+"),
        (no_parameter, r"table '.*': action '.*': the P4Info leaves out parameter"),
        (foreign_action, r"table '.*learned': it has no action with id \d+"),
        (no_meter, r"table '.*policers': its direct \w+ has id \d+, in the P4Info 0"),
        (no_implementation, r"table '.*encapsulation': its implementation has id \d+, in the P4Info 0"),
        (more_cells, r"register '.*marks' has 32 cells, in the P4Info 33"),
        (fewer_cells, r"meter '.*port_rates' has 16 cells, in the P4Info 15"),
        (wider_cells, r"register '.*marks' has 16 bits, in the P4Info 17"),
        (wider_members, r"value set '.*wanted_kinds' has a field of 16 bits, in the P4Info 8"),
        (no_selector, r"action profile '.*ecmp' is a selector for only one of them"),
    ],
)
def test_another_is_refused(program: _core.Program, change: Callable[[Any], None], says: str) -> None:
    info = parse_text(program.p4info)
    change(info)
    with pytest.raises(P4RuntimeError, match=f"INVALID_ARGUMENT.*not of one program: {says}"):
        verify(program, info)


def test_a_hidden_table_is_left_out() -> None:
    source = (HERE / "stateful.p4").read_text().replace("    table learned {", "    @hidden table learned {")
    hidden = _core.Program.compile_text(source, "hidden.p4", [str(HERE)])
    info = parse_text(hidden.p4info)
    assert not any(table.preamble.alias == "learned" for table in info.tables)
    verify(hidden, info)


def test_a_digest_of_another_width() -> None:
    program = _core.Program.compile(str(HERE / "basic.p4"))
    info = parse_text(program.p4info)
    info.digests[0].type_spec.Clear()
    info.digests[0].type_spec.bitstring.bit.bitwidth = 3
    with pytest.raises(P4RuntimeError, match=r"digest '.*' has \d+ bits, in the P4Info 3"):
        verify(program, info)
