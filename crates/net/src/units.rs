//! Times in other languages' units: instants of results in whole picoseconds, times of descriptions in milliseconds. `engine` has the type
//! of instants, and does not know serialization.

use engine::Time;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

const PS_PER_S: f64 = 1e12;
const PS_PER_MS: f64 = 1e9;
const US_PER_MS: f64 = 1e3;

/// Serializes an instant as its number of picoseconds.
pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    time.ps().serialize(serializer)
}

/// Serializes an instant as its number of picoseconds, or `None` as null.
pub(crate) fn serialize_some<S: Serializer>(
    time: &Option<Time>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(Time::ps).serialize(serializer)
}

/// Deserializes an instant from its number of picoseconds.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    u128::deserialize(deserializer).map(Time::from_ps)
}

/// Deserializes an instant from its number of picoseconds, or `None` from null.
pub(crate) fn deserialize_some<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Time>, D::Error> {
    Ok(Option::<u128>::deserialize(deserializer)?.map(Time::from_ps))
}

/// Deserializes an instant from its number of seconds, rounded to whole picoseconds. Fails for a negative number.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let time_s = f64::deserialize(deserializer)?;
    match time_s >= 0.0 {
        // Of two equally near numbers the even one, as in Python. The cast saturates.
        true => Ok(Time::from_ps((time_s * PS_PER_S).round_ties_even() as u128)),
        false => Err(Error::custom(format!("a time of {time_s} s is negative"))),
    }
}

/// Deserializes an instant from its number of seconds, or [`Time::NEVER`] from null. Fails for a negative number.
pub(crate) fn seconds_or_never<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Time, D::Error> {
    #[derive(Deserialize)]
    struct Seconds(#[serde(deserialize_with = "seconds")] Time);
    let time = Option::<Seconds>::deserialize(deserializer)?;
    Ok(time.map_or(Time::NEVER, |Seconds(time)| time))
}

/// A span of time in whole picoseconds that is written in milliseconds. Deserializing refuses a negative one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Milliseconds(pub(crate) u64);

impl TryFrom<f64> for Milliseconds {
    type Error = String;

    fn try_from(time_ms: f64) -> Result<Milliseconds, String> {
        match time_ms >= 0.0 {
            // Of two equally near numbers the even one, as in Python. The cast saturates; limits are checked elsewhere.
            true => Ok(Milliseconds((time_ms * PS_PER_MS).round_ties_even() as u64)),
            false => Err(format!("a time of {time_ms} ms is negative")),
        }
    }
}

impl Milliseconds {
    /// Returns the span as a signed number of picoseconds, at most the largest one.
    pub(crate) fn signed_ps(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

/// Spans of time in whole picoseconds that are written in milliseconds. Those that may be below zero in Rust are not read so.
pub(crate) mod milliseconds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(ps: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(*ps as f64 / PS_PER_MS)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Milliseconds::deserialize(deserializer).map(|time| time.0)
    }

    pub(crate) mod signed {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(ps: &i64, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_f64(*ps as f64 / PS_PER_MS)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<i64, D::Error> {
            Milliseconds::deserialize(deserializer).map(Milliseconds::signed_ps)
        }
    }

    pub(crate) mod list {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(
            times_ps: &[i64],
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(times_ps.iter().map(|&ps| ps as f64 / PS_PER_MS))
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Arc<[i64]>, D::Error> {
            let times = Vec::<Milliseconds>::deserialize(deserializer)?;
            Ok(times.into_iter().map(Milliseconds::signed_ps).collect())
        }
    }
}

/// Deserializes a span in milliseconds as whole microseconds, rounded.
pub(crate) fn microseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let time_ms = f64::deserialize(deserializer)?;
    Ok((time_ms * US_PER_MS).round_ties_even() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::Error;

    #[test]
    fn milliseconds_become_the_nearest_picosecond_and_of_two_the_even_one() {
        let read = |time_ms: f64| {
            milliseconds::deserialize(IntoDeserializer::<Error>::into_deserializer(time_ms))
        };
        let known = [
            (0.0, 0),
            (1.5e-9, 2),
            (2.5e-9, 2),
            (0.1, 100_000_000),
            (3.3, 3_300_000_000),
            (1e300, u64::MAX),
        ];
        for (time_ms, ps) in known {
            assert_eq!(read(time_ms), Ok(ps), "{time_ms} ms");
        }
        assert!(read(-1.0).is_err() && read(f64::NAN).is_err());
    }
}
