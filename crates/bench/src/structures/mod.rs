//! Lookup structures of the hand-written versions. They share no code with the engine.

pub mod count;
pub mod dir24;
pub mod hash;
pub mod ipv4;
pub mod routes;
pub mod trie;
pub mod tuples;
