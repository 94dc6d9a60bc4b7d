//! Tests of whole connections. `channel` joins two ends, `script` plays the other end from a text; the rest is grouped by
//! mechanism.

mod bulk;
mod channel;
mod histories;
