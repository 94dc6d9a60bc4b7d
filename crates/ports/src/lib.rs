//! `ports`
