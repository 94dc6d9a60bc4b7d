"""Roles that programs name in `@p4runtime_role`: other roles are refused, for each spelling of the name."""

from __future__ import annotations

from typing import Any

import pytest
from device_bench import HERE, P4INFO, accept, make_bench
from raw import INSERT, MODIFY, Raw, exact, request, update

from holdfast import _core
from holdfast.errors import HoldfastError
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex, P4RuntimeError
from holdfast.p4runtime.p4info import parse_text
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

SOURCE = (HERE / "stateful.p4").read_text()
ROLE = '@p4runtime_role("policy")'


def program(role: str, macros: str = "") -> Any:
    """Compile stateful.p4 with the annotation of its table's role replaced by ``role``."""
    assert ROLE in SOURCE
    return _core.Program.compile_text(macros + SOURCE.replace(ROLE, role), "roles.p4")


WRITINGS = {
    "string": (ROLE, ""),
    "macro": ("@p4runtime_role(POLICY)", '#define POLICY "policy"\n'),
    "macro of a macro": ("@p4runtime_role(A)", '#define A B\n#define B "policy"\n'),
    "the annotation by a macro": ("OWNED_BY(policy)", "#define OWNED_BY(x) @p4runtime_role(#x)\n"),
    "parts": ('@p4runtime_role("pol" ++ "icy")', ""),
    "structured": ("@p4runtime_role[POLICY]", '#define POLICY "policy"\n'),
    "pragma": ('\n@pragma p4runtime_role "policy"\n', ""),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_another_role_may_not_write(writing: str) -> None:
    compiled = program(*WRITINGS[writing])
    raw = Raw(P4InfoIndex.from_text(compiled.p4info))
    device = Device(1, _core.Switch(compiled, executor="interpreter"), executor="interpreter")
    with LocalClient(device) as client:
        client.set_pipeline(compiled)
        for role in ("policy", "statistics"):
            LocalClient(device, election_id=5, role=role)
        table = raw.index.tables["policers"]
        entry = raw.entry("policers", [exact(1, b"\0\0\0\1")], raw.action("police"))
        default = p4.TableEntry(table_id=table.id, is_default_action=True, action=raw.action("NoAction"))
        for kind, wanted in ((INSERT, entry), (MODIFY, default)):
            with pytest.raises(P4RuntimeError) as e:
                device.write(request(update(kind, table_entry=wanted), election_id=5, role="statistics"))
            assert [f.code for f in e.value.failures] == ["PERMISSION_DENIED"]
            device.write(request(update(kind, table_entry=wanted), election_id=5, role="policy"))


@pytest.mark.parametrize("role", ["@p4runtime_role(policy)", "@p4runtime_role", "@p4runtime_role(1)", ROLE + ROLE])
def test_a_role_that_is_not_one_string_is_refused_by_the_compiler(role: str) -> None:
    with pytest.raises(HoldfastError, match=r"roles.p4:81:\d+"):
        program(role)


@pytest.mark.parametrize(
    "annotation",
    [
        "annotations: '@p4runtime_role(POLICY)'",
        "annotations: '@p4runtime_role'",
        'annotations: \'@p4runtime_role("a" "b")\'',
        "annotations: '@p4runtime_role(\"a\")' annotations: '@p4runtime_role(\"b\")'",
        "structured_annotations { name: 'p4runtime_role' kv_pair_list {} }",
    ],
)
def test_a_p4info_whose_roles_are_not_understood_is_refused(annotation: str) -> None:
    """Check roles in another compiler's P4Info; if they were ignored, every role could write."""
    text = P4INFO.replace("tables {\n  preamble {", "tables { preamble { " + annotation, 1)
    with pytest.raises(P4RuntimeError, match="role"):
        accept(text)


def test_roles_of_a_p4info() -> None:
    for annotation in (
        "annotations: '@p4runtime_role(\"policy\")'",
        "structured_annotations { name: 'p4runtime_role' expression_list { expressions { string_value: 'policy' } } }",
    ):
        program = make_bench().program
        info = parse_text(program.p4info.replace("tables {\n  preamble {", "tables { preamble { " + annotation, 1))
        pipeline = _core.Pipeline(program, info.SerializeToString())
        ids = [table.preamble.id for table in info.tables]
        assert [id for id in ids if not pipeline.role_may("statistics", id)] == ids[:1]
        assert all(pipeline.role_may(role, id) for role in ("policy", "") for id in ids)


def test_the_name_of_a_role_may_hold_a_quote() -> None:
    annotation = r'annotations: "@p4runtime_role(\"a\\\"b\")" '
    program = make_bench().program
    info = parse_text(program.p4info.replace("tables {\n  preamble {", "tables { preamble { " + annotation, 1))
    pipeline = _core.Pipeline(program, info.SerializeToString())
    assert pipeline.role_may('a"b', info.tables[0].preamble.id)
    assert not pipeline.role_may("a", info.tables[0].preamble.id)
