//! P4_16 text to tree: preprocessor, lexer, parser, diagnostics.
//!
//! This crate never fails: whatever the text, it returns a tree (perhaps with holes) and a list of diagnostics. It
//! deliberately does not know what names mean, what types things have, or which architecture a program is for; that is
//! the business of `compile`.
#![forbid(unsafe_code)]

pub mod ast;
pub mod source;
