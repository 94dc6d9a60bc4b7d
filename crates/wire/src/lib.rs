//! `wire`
