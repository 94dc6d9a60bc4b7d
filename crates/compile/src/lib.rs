//! `compile`
