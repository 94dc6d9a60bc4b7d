"""A P4Info and a device config of different programs are refused with their first difference.

The device config holds the compiler's P4Info, so whatever has a meaning is compared: every field of every message is changed
here, one at a time, by the descriptors of the official definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
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


MEANINGLESS = {
    "doc",
    "annotation_locations",
    "action_profiles.sum_of_weights",  # the default
    "type_info.error",  # says nothing unless it has members
    "pkg_info.name",
    "pkg_info.version",
    "pkg_info.organization",
    "pkg_info.contact",
    "pkg_info.url",
    "pkg_info.platform_properties",
}
"""Fields that are for people, or about the device, and may be what they want: of any message, or of the one before the dot."""

Path_ = tuple[str, ...]


def mutations(whole: Any, part: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield (path, copy of ``whole``) with one change each: a scalar that differs, a part that is missing, doubled or added.

    ``part`` is a message within ``whole``, which is changed and restored.
    """
    for field in part.DESCRIPTOR.fields:
        here = (*path, field.name)
        if field.message_type is not None and field.message_type.full_name == "google.protobuf.Any":
            continue
        is_repeated = field.is_repeated
        if is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield from changed_maps(whole, part, field, here)
        elif is_repeated:
            yield from changed_lists(whole, part, field, here)
        elif field.message_type is None:
            yield from changed_scalars(whole, part, field, here)
        elif part.HasField(field.name):
            yield from mutations(whole, getattr(part, field.name), here)
            yield from changed(whole, part, here, lambda it, name=field.name: it.ClearField(name))
        elif len(here) < 6:
            yield from changed(whole, part, here, lambda it, name=field.name: say_something(getattr(it, name)))


def changed(whole: Any, part: Any, path: Path_, change: Callable[[Any], object]) -> Iterator[tuple[Path_, Any]]:
    """Yield (path, copy of ``whole``) after a change of ``part``, then undo it; yield nothing if the change has no effect."""
    saved = type(part)()
    saved.CopyFrom(part)
    change(part)
    copy = type(whole)()
    copy.CopyFrom(whole)
    differs = part.SerializeToString(deterministic=True) != saved.SerializeToString(deterministic=True)
    part.CopyFrom(saved)
    if differs:
        yield path, copy


def other_value(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        numbers = [each.number for each in field.enum_type.values]
        return numbers[(numbers.index(value) + 1) % len(numbers)]
    if isinstance(value, bool):
        return not value
    return value + (1 if isinstance(value, int) else type(value)(b"x" if isinstance(value, bytes) else "x"))


def changed_scalars(whole: Any, part: Any, field: Any, path: Path_) -> Iterator[tuple[Path_, Any]]:
    value = getattr(part, field.name)
    yield from changed(whole, part, path, lambda it: setattr(it, field.name, other_value(field, value)))


def changed_lists(whole: Any, part: Any, field: Any, path: Path_) -> Iterator[tuple[Path_, Any]]:
    values = getattr(part, field.name)
    for at, value in enumerate(list(values)):
        label = f"{field.name}[{at}]"
        if field.message_type is not None:
            yield from mutations(whole, getattr(part, field.name)[at], (*path[:-1], label))
        yield from changed(whole, part, (*path[:-1], label), lambda it, at=at: getattr(it, field.name).pop(at))
        if field.message_type is None:
            yield from changed(
                whole,
                part,
                (*path[:-1], label),
                lambda it, at=at, value=value: getattr(it, field.name).__setitem__(at, other_value(field, value)),
            )
    if field.message_type is not None:
        yield from changed(whole, part, path, lambda it: say_something(getattr(it, field.name).add()))
    else:
        new = {str: "x", bytes: b"x"}.get(str if field.type == field.TYPE_STRING else int, 1)
        yield from changed(whole, part, path, lambda it: getattr(it, field.name).append(new))


def changed_maps(whole: Any, part: Any, field: Any, path: Path_) -> Iterator[tuple[Path_, Any]]:
    for key in list(getattr(part, field.name)):
        yield from mutations(whole, getattr(part, field.name)[key], (*path, key))
        yield from changed(whole, part, (*path, key), lambda it, key=key: getattr(it, field.name).pop(key))
    yield from changed(whole, part, path, lambda it: say_something(getattr(it, field.name)["new"]))


def say_something(message: Any) -> None:
    """Set the first scalar field of a message, so that it differs from one that is absent."""
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated:
            continue
        if field.message_type is not None:
            say_something(getattr(message, field.name))
        else:
            setattr(message, field.name, other_value(field, getattr(message, field.name)))
        return
    message.SetInParent()


def is_meaningless(path: Path_) -> bool:
    if path in (("pkg_info",), ("type_info",)):
        return True  # the first may be left out; the second, added, says nothing
    names = [name.partition("[")[0] for name in path]
    pairs = {f"{a}.{b}" for a, b in pairwise(names)}
    return bool(MEANINGLESS & ({*names} | pairs))


@pytest.mark.parametrize(
    "source", ["stateful.p4", "basic.p4", "translated.p4", "translated_matches.p4", "profile_rules.p4"]
)
def test_every_field_that_means_something_is_compared(source: str) -> None:
    program = _core.Program.compile(str(HERE / source))
    info = p4info_pb2.P4Info.FromString(program.p4info_message)
    accepted, refused, wrong = 0, 0, []
    for path, given in mutations(info, info):
        if {name.partition("[")[0] for name in path} & {"annotations", "structured_annotations"}:
            continue  # a control plane may add some; a role that cannot be read is refused (see test_roles)
        try:
            _core.Pipeline(program, given.SerializeToString())
        except _core.ControlError as e:
            refused += 1
            if (is_meaningless(path) and path[0] != "type_info") or e.code != "INVALID_ARGUMENT" or not str(e):
                wrong.append((path, e.code, str(e)))
        else:
            accepted += 1
            if not is_meaningless(path):
                wrong.append((path, "accepted", ""))
    assert not wrong, f"{len(wrong)} of {accepted + refused}: {wrong[:20]}"
    assert refused > 150
    assert accepted > 20


def test_a_device_config_without_its_p4info_is_taken() -> None:
    """Check a config of another compiler, which is compared with what the program itself says."""
    program = _core.Program.compile(str(HERE / "stateful.p4"))
    bare = _core.Program.from_artifact(program.ir_text.encode())
    assert bare.p4info == ""
    assert bare.artifact() == program.ir_text.encode()
    info = parse_text(program.p4info)
    verify(bare, info)
    more_cells(info)
    with pytest.raises(P4RuntimeError, match="has 32 cells, in the P4Info 33"):
        verify(bare, info)


def test_the_order_of_objects_means_nothing(program: _core.Program) -> None:
    info = parse_text(program.p4info)
    for objects in (info.tables, info.actions, info.registers, info.tables[0].action_refs, info.tables[0].match_fields):
        turned = list(objects)[::-1]
        del objects[:]
        objects.extend(turned)
    info.ClearField("pkg_info")
    verify(program, info)
