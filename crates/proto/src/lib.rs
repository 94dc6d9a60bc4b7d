//! P4Info's and P4Runtime's protobuf messages, generated from the official definitions.
//!
//! `crates/protogen` writes `src/generated` from the descriptors in the official Python stubs, so no field number is typed by hand.
//! `tests/p4runtime/test_generated_messages.py` compares both, and writes the files with `UPDATE_EXPECT=1`. [`text`] prints P4Info
//! as protobuf text, [`difference`] compares two.

pub mod difference;
mod schema;
pub mod text;

/// The packages as prost arranges them: the messages refer to one another by these paths.
#[allow(
    missing_docs,
    clippy::all,
    reason = "generated; the official definitions document the messages"
)]
mod packages {
    pub mod google {
        pub mod rpc {
            include!("generated/google.rpc.rs");
        }
    }
    pub mod p4 {
        pub mod config {
            pub mod v1 {
                include!("generated/p4.config.v1.rs");
            }
        }
        pub mod v1 {
            include!("generated/p4.v1.rs");
        }
    }
}

pub use packages::p4::config::v1 as p4info;
pub use packages::p4::v1 as p4runtime;
pub use prost_types::Any;
