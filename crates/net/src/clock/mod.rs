//! The two clocks that drive one event loop.

pub mod r#virtual;
pub mod wall;
