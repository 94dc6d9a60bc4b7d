//! Instants in serialized results: whole picoseconds. `engine` has the type, and does not know serialization.

use engine::Time;
use serde::{Serialize, Serializer};

/// Serializes an instant as its number of picoseconds.
pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    time.ps().serialize(serializer)
}

/// Serializes an instant as its number of picoseconds, or nothing as nothing.
pub(crate) fn serialize_some<S: Serializer>(
    time: &Option<Time>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(Time::ps).serialize(serializer)
}
