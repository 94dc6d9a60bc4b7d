//! The externs of the Portable Switch Architecture.

use ir::HashAlgorithm;

use super::{Algorithm, Externs, Function, Method, Object, ObjectRow, Predicate, Property};

/// The table. The custom CRCs have the parameters of the standard ones, and nothing changes them; the target's choice is CRC-32.
pub(super) static EXTERNS: Externs = Externs {
    functions: &[
        ("void assert(in bool)", Function::Assert),
        ("void assume(in bool)", Function::Assert),
        (
            "bool psa_clone_i2e(in psa_ingress_output_metadata_t)",
            Function::Predicate(Predicate::Clone),
        ),
        (
            "bool psa_resubmit(in psa_ingress_output_metadata_t)",
            Function::Predicate(Predicate::Resubmit),
        ),
        (
            "bool psa_normal(in psa_ingress_output_metadata_t)",
            Function::Predicate(Predicate::Normal),
        ),
        (
            "bool psa_clone_e2e(in psa_egress_output_metadata_t)",
            Function::Predicate(Predicate::Clone),
        ),
        (
            "bool psa_recirculate(in psa_egress_output_metadata_t, in psa_egress_deparser_input_metadata_t)",
            Function::Predicate(Predicate::Recirculate),
        ),
    ],
    objects: &[
        ObjectRow {
            name: "PacketReplicationEngine",
            type_params: &[0],
            object: Object::Engine,
            constructors: &["()"],
            methods: &[],
        },
        ObjectRow {
            name: "BufferingQueueingEngine",
            type_params: &[0],
            object: Object::Engine,
            constructors: &["()"],
            methods: &[],
        },
        ObjectRow {
            name: "Hash",
            type_params: &[1],
            object: Object::Hash,
            constructors: &["(PSA_HashAlgorithm_t)"],
            methods: &[
                ("_ get_hash(in _)", Method::HashGet),
                ("_ get_hash(in _, in _, in _)", Method::HashGetInRange),
            ],
        },
        ObjectRow {
            name: "Checksum",
            type_params: &[1],
            object: Object::Checksum,
            constructors: &["(PSA_HashAlgorithm_t)"],
            methods: &[
                ("void clear()", Method::SumClear),
                ("void update(in _)", Method::SumAdd),
                ("_ get()", Method::SumGet),
            ],
        },
        ObjectRow {
            name: "InternetChecksum",
            type_params: &[0],
            object: Object::InternetChecksum,
            constructors: &["()"],
            methods: &[
                ("void clear()", Method::SumClear),
                ("void add(in _)", Method::SumAdd),
                ("void subtract(in _)", Method::SumSubtract),
                ("bit<16> get()", Method::SumGet),
                ("bit<16> get_state()", Method::SumGetState),
                ("void set_state(in bit<16>)", Method::SumSetState),
            ],
        },
        ObjectRow {
            name: "Counter",
            type_params: &[2],
            object: Object::Counter,
            constructors: &["(bit<32>, PSA_CounterType_t)"],
            methods: &[("void count(in _)", Method::Count)],
        },
        ObjectRow {
            name: "DirectCounter",
            type_params: &[1],
            object: Object::DirectCounter,
            constructors: &["(PSA_CounterType_t)"],
            methods: &[("void count()", Method::CountDirect)],
        },
        ObjectRow {
            name: "Meter",
            type_params: &[1],
            object: Object::Meter,
            constructors: &["(bit<32>, PSA_MeterType_t)"],
            methods: &[
                (
                    "PSA_MeterColor_t execute(in _, in PSA_MeterColor_t)",
                    Method::MeterExecute,
                ),
                ("PSA_MeterColor_t execute(in _)", Method::MeterExecute),
            ],
        },
        ObjectRow {
            name: "DirectMeter",
            type_params: &[0],
            object: Object::DirectMeter,
            constructors: &["(PSA_MeterType_t)"],
            methods: &[
                (
                    "PSA_MeterColor_t execute(in PSA_MeterColor_t)",
                    Method::DirectMeterExecute,
                ),
                ("PSA_MeterColor_t execute()", Method::DirectMeterExecute),
            ],
        },
        ObjectRow {
            name: "Register",
            type_params: &[2],
            object: Object::Register,
            constructors: &["(bit<32>)", "(bit<32>, _)"],
            methods: &[
                ("_ read(in _)", Method::RegisterRead),
                ("void write(in _, in _)", Method::RegisterWrite),
            ],
        },
        ObjectRow {
            name: "Random",
            type_params: &[1],
            object: Object::Random,
            constructors: &["(_, _)"],
            methods: &[("_ read()", Method::RandomRead)],
        },
        ObjectRow {
            name: "ActionProfile",
            type_params: &[0],
            object: Object::ActionProfile,
            constructors: &["(bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "ActionSelector",
            type_params: &[0],
            object: Object::ActionSelector,
            constructors: &["(PSA_HashAlgorithm_t, bit<32>, bit<32>)"],
            methods: &[],
        },
        ObjectRow {
            name: "Digest",
            type_params: &[1],
            object: Object::Digest,
            constructors: &["()"],
            methods: &[("void pack(in _)", Method::DigestPack)],
        },
    ],
    properties: &[
        ("psa_direct_counter", Property::Counter),
        ("psa_direct_meter", Property::Meter),
        ("psa_implementation", Property::Implementation),
        ("psa_idle_timeout", Property::TimeoutEnum),
        ("psa_empty_group_action", Property::EmptyGroupAction),
    ],
    algorithms: &[
        ("IDENTITY", Algorithm::Of(HashAlgorithm::Identity)),
        ("CRC32", Algorithm::Of(HashAlgorithm::Crc32)),
        ("CRC32_CUSTOM", Algorithm::Of(HashAlgorithm::Crc32)),
        ("CRC16", Algorithm::Of(HashAlgorithm::Crc16)),
        ("CRC16_CUSTOM", Algorithm::Of(HashAlgorithm::Crc16)),
        ("ONES_COMPLEMENT16", Algorithm::Of(HashAlgorithm::Csum16)),
        ("TARGET_DEFAULT", Algorithm::Of(HashAlgorithm::Crc32)),
    ],
    enums: &[
        (
            "PSA_PacketPath_t",
            &[
                "NORMAL",
                "NORMAL_UNICAST",
                "NORMAL_MULTICAST",
                "CLONE_I2E",
                "CLONE_E2E",
                "RESUBMIT",
                "RECIRCULATE",
            ],
        ),
        (
            "PSA_CounterType_t",
            &["PACKETS", "BYTES", "PACKETS_AND_BYTES"],
        ),
        ("PSA_MeterType_t", &["PACKETS", "BYTES"]),
        ("PSA_IdleTimeout_t", &["NO_TIMEOUT", "NOTIFY_CONTROL"]),
        ("PSA_MeterColor_t", &["RED", "GREEN", "YELLOW"]),
    ],
};
