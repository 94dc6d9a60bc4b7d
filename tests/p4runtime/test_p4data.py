"""Values of structured types: the canonical message of each, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.p4runtime import P4InfoIndex, P4RuntimeError
from holdfast.p4runtime.p4data import from_p4data, to_p4data, to_plain, width_of

TEXT = """
registers {
  preamble { id: 1 name: "r" }
  type_spec { struct { name: "outer" } }
  size: 1
}
registers {
  preamble { id: 2 name: "varbit" }
  type_spec { bitstring { varbit { max_bitwidth: 8 } } }
  size: 1
}
registers { preamble { id: 3 name: "missing" } type_spec { struct { name: "nowhere" } } size: 1 }
type_info {
  structs {
    key: "outer"
    value {
      members { name: "flag" type_spec { bool {} } }
      members { name: "signed" type_spec { bitstring { int { bitwidth: 12 } } } }
      members { name: "kind" type_spec { serializable_enum { name: "kind_t" } } }
      members { name: "pair" type_spec { tuple {
        members { bitstring { bit { bitwidth: 9 } } }
        members { new_type { name: "port_t" } }
      } } }
      members { name: "inner" type_spec { struct { name: "inner" } } }
    }
  }
  structs {
    key: "inner"
    value { members { name: "x" type_spec { bitstring { bit { bitwidth: 70 } } } } }
  }
  serializable_enums { key: "kind_t" value { underlying_type { bitwidth: 8 } } }
  new_types { key: "port_t" value { original_type { bitstring { bit { bitwidth: 5 } } } } }
}
"""
INDEX = P4InfoIndex.from_text(TEXT)
SPEC, TYPES = INDEX.registers["r"].type_spec, INDEX.message.type_info


def test_width() -> None:
    assert width_of(SPEC, TYPES) == 1 + 12 + 8 + 9 + 5 + 70


@given(st.integers(0, (1 << 105) - 1))
def test_round_trip(value: int) -> None:
    assert from_p4data(SPEC, TYPES, to_p4data(SPEC, TYPES, value)) == value


def test_parts() -> None:
    value = 1
    for width, part in ((12, (1 << 12) - 2), (8, 3), (9, 4), (5, 6), (70, 7)):
        value = value << width | part
    data = to_p4data(SPEC, TYPES, value)
    flag, signed, kind, pair, inner = data.struct.members
    assert flag.bool is True
    assert signed.bitstring == b"\xfe"
    assert kind.enum_value == b"\x03"
    assert [m.bitstring for m in pair.tuple.members] == [b"\x04", b"\x06"]
    assert inner.struct.members[0].bitstring == b"\x07"
    plain = {"flag": True, "signed": -2, "kind": 3, "pair": [4, 6], "inner": {"x": 7}}
    assert to_plain(SPEC, TYPES, value) == plain


def test_data_of_another_type() -> None:
    data = to_p4data(SPEC, TYPES, 0)
    del data.struct.members[4]
    with pytest.raises(P4RuntimeError, match="4 members, the type has 5"):
        from_p4data(SPEC, TYPES, data)
    data.struct.members.add().bitstring = b"\0"
    with pytest.raises(P4RuntimeError, match="of kind bitstring, the type asks for struct"):
        from_p4data(SPEC, TYPES, data)


def test_unsupported_and_unknown_types() -> None:
    for name, code in (("varbit", "UNIMPLEMENTED"), ("missing", "INVALID_ARGUMENT")):
        with pytest.raises(P4RuntimeError) as e:
            width_of(INDEX.registers[name].type_spec, TYPES)
        assert e.value.code == code
