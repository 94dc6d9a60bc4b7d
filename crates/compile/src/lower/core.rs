//! The externs of the core library.

use super::room::{Externs, ObjectRow};
use crate::meaning::Meaning::Common;
use crate::meaning::{Function, Method, Object};

/// The externs that core.p4 declares, with their meanings.
pub(crate) static EXTERNS: Externs = Externs {
    functions: &[
        ("void verify(in bool, in error)", Common(Function::Verify)),
        (
            "bool static_assert(bool, string)",
            Common(Function::StaticAssert),
        ),
        ("bool static_assert(bool)", Common(Function::StaticAssert)),
    ],
    objects: &[
        ObjectRow {
            name: "packet_in",
            type_params: &[0],
            object: Common(Object::PacketIn),
            constructors: &[],
            methods: &[
                ("void extract(out _)", Common(Method::Extract)),
                ("void extract(out _, in bit<32>)", Common(Method::Extract)),
                ("_ lookahead()", Common(Method::Lookahead)),
                ("void advance(in bit<32>)", Common(Method::Advance)),
                ("bit<32> length()", Common(Method::PacketLength)),
            ],
        },
        ObjectRow {
            name: "packet_out",
            type_params: &[0],
            object: Common(Object::PacketOut),
            constructors: &[],
            methods: &[("void emit(in _)", Common(Method::Emit))],
        },
    ],
    properties: &[],
    algorithms: &[],
    enums: &[],
};
