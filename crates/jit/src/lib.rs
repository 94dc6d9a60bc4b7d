//! `jit`
