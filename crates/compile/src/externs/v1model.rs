//! The externs of v1model, in all faces of its include file.

use ir::HashAlgorithm;

use super::{Algorithm, Externs, Function, Method, Object, ObjectRow, Preserved, Property};

/// The table. The custom CRCs have the parameters that the reference target starts with, which are those of the standard ones, and nothing
/// changes them.
pub(super) static EXTERNS: Externs = Externs {
    functions: &[
        (
            "void mark_to_drop(inout standard_metadata_t)",
            Function::MarkToDrop,
        ),
        ("void mark_to_drop()", Function::MarkToDrop),
        (
            "void hash(out _, in HashAlgorithm, in _, in _, in _)",
            Function::Hash,
        ),
        ("void random(out _, in _, in _)", Function::Random),
        ("void digest(in bit<32>, in _)", Function::Digest),
        (
            "void verify_checksum(in bool, in _, in _, HashAlgorithm)",
            VERIFY,
        ),
        // The declaration until 2018.
        (
            "void verify_checksum(in bool, in _, inout _, HashAlgorithm)",
            VERIFY,
        ),
        (
            "void verify_checksum_with_payload(in bool, in _, in _, HashAlgorithm)",
            VERIFY_PAYLOAD,
        ),
        (
            "void verify_checksum_with_payload(in bool, in _, inout _, HashAlgorithm)",
            VERIFY_PAYLOAD,
        ),
        (
            "void update_checksum(in bool, in _, inout _, HashAlgorithm)",
            Function::UpdateChecksum { payload: false },
        ),
        (
            "void update_checksum_with_payload(in bool, in _, inout _, HashAlgorithm)",
            Function::UpdateChecksum { payload: true },
        ),
        (
            "void clone(in CloneType, in bit<32>)",
            Function::Clone(Preserved::Nothing),
        ),
        (
            "void clone3(in CloneType, in bit<32>, in _)",
            Function::Clone(Preserved::Values),
        ),
        (
            "void clone_preserving_field_list(in CloneType, in bit<32>, bit<8>)",
            Function::Clone(Preserved::FieldList),
        ),
        ("void resubmit(in _)", Function::Resubmit(Preserved::Values)),
        (
            "void resubmit_preserving_field_list(bit<8>)",
            Function::Resubmit(Preserved::FieldList),
        ),
        (
            "void recirculate(in _)",
            Function::Recirculate(Preserved::Values),
        ),
        (
            "void recirculate_preserving_field_list(bit<8>)",
            Function::Recirculate(Preserved::FieldList),
        ),
        ("void truncate(in bit<32>)", Function::Truncate),
        ("void assert(in bool)", Function::Assert),
        ("void assume(in bool)", Function::Assert),
        ("void log_msg(string)", Function::LogMsg),
        ("void log_msg(string, in _)", Function::LogMsg),
    ],
    objects: &[
        ObjectRow {
            name: "register",
            type_params: &[1, 2],
            object: Object::Register,
            constructors: &["(bit<32>)"],
            methods: &[
                ("void read(out _, in _)", Method::RegisterReadTo),
                ("void write(in _, in _)", Method::RegisterWrite),
            ],
        },
        ObjectRow {
            name: "counter",
            type_params: &[0, 1],
            object: Object::Counter,
            constructors: &["(bit<32>, CounterType)"],
            methods: &[("void count(in _)", Method::Count)],
        },
        ObjectRow {
            name: "direct_counter",
            type_params: &[0],
            object: Object::DirectCounter,
            constructors: &["(CounterType)"],
            methods: &[("void count()", Method::CountDirect)],
        },
        ObjectRow {
            name: "meter",
            type_params: &[0, 1],
            object: Object::Meter,
            constructors: &["(bit<32>, MeterType)"],
            methods: &[("void execute_meter(in _, out _)", Method::MeterExecuteTo)],
        },
        ObjectRow {
            name: "direct_meter",
            type_params: &[1],
            object: Object::DirectMeter,
            constructors: &["(MeterType)"],
            methods: &[("void read(out _)", Method::DirectMeterReadTo)],
        },
        ObjectRow {
            name: "action_profile",
            type_params: &[0],
            object: Object::ActionProfile,
            constructors: &["(bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "action_selector",
            type_params: &[0],
            object: Object::ActionSelector,
            constructors: &["(HashAlgorithm, bit<32>, bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "Checksum16",
            type_params: &[0],
            object: Object::Checksum16,
            constructors: &["()"],
            methods: &[("bit<16> get(in _)", Method::Checksum16Get)],
        },
    ],
    properties: &[
        ("counters", Property::Counter),
        ("meters", Property::Meter),
        ("implementation", Property::Implementation),
        ("support_timeout", Property::Timeout),
        ("supportTimeout", Property::Timeout),
    ],
    algorithms: &[
        ("crc32", Algorithm::Of(HashAlgorithm::Crc32)),
        ("crc32_custom", Algorithm::Of(HashAlgorithm::Crc32)),
        ("crc16", Algorithm::Of(HashAlgorithm::Crc16)),
        ("crc16_custom", Algorithm::Of(HashAlgorithm::Crc16)),
        ("random", Algorithm::Random),
        ("identity", Algorithm::Of(HashAlgorithm::Identity)),
        ("csum16", Algorithm::Of(HashAlgorithm::Csum16)),
        ("xor16", Algorithm::Of(HashAlgorithm::Xor16)),
    ],
    enums: &[
        ("CounterType", &["packets", "bytes", "packets_and_bytes"]),
        ("MeterType", &["packets", "bytes"]),
        ("CloneType", &["I2E", "E2E"]),
    ],
};

const VERIFY: Function = Function::VerifyChecksum { payload: false };
const VERIFY_PAYLOAD: Function = Function::VerifyChecksum { payload: true };
