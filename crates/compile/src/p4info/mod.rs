//! P4Info: the description of a program for the control plane, as in p4.config.v1 of P4Runtime.
//!
//! Names and ids are those the reference compiler gives: an id is a first byte for the kind of object and a hash of
//! the name, unless `@id` gives one ([`ids`]). [`P4Info::to_bytes`] gives the protobuf message, [`P4Info::to_text`] its
//! text format.

mod annotate;
mod build;
mod ids;
mod type_info;

pub(crate) use annotate::size_semantics;
pub(crate) use build::{INT32_MAX, build};

use prost::Message;
use proto::p4info;

/// The P4Info of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct P4Info(p4info::P4Info);

impl P4Info {
    /// Renders the P4Info in the text format of Protocol Buffers.
    pub fn to_text(&self) -> String {
        proto::text::p4info(&self.to_bytes())
    }

    /// Serializes the message `p4.config.v1.P4Info`.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }
}
