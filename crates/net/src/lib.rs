//! `net`
