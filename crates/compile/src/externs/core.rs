//! The externs of the core library.

use super::{Externs, Function, Method, Object, ObjectRow};

/// The externs that core.p4 declares, with their meanings.
pub(super) static EXTERNS: Externs = Externs {
    functions: &[
        ("void verify(in bool, in error)", Function::Verify),
        ("bool static_assert(bool, string)", Function::StaticAssert),
        ("bool static_assert(bool)", Function::StaticAssert),
    ],
    objects: &[
        ObjectRow {
            name: "packet_in",
            type_params: &[0],
            object: Object::PacketIn,
            constructors: &[],
            methods: &[
                ("void extract(out _)", Method::Extract),
                ("void extract(out _, in bit<32>)", Method::Extract),
                ("_ lookahead()", Method::Lookahead),
                ("void advance(in bit<32>)", Method::Advance),
                ("bit<32> length()", Method::PacketLength),
            ],
        },
        ObjectRow {
            name: "packet_out",
            type_params: &[0],
            object: Object::PacketOut,
            constructors: &[],
            methods: &[("void emit(in _)", Method::Emit)],
        },
    ],
    properties: &[],
    algorithms: &[],
    enums: &[],
};
