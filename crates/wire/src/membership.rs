//! What IGMP and MLD have in common: their messages differ in the length of addresses, in types, and in units. `igmp` and `mld` have those.

use crate::{Error, at_least, u16_at};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An address of one of the two protocols.
pub trait GroupAddress: Copy + Ord + std::fmt::Debug {
    /// Bytes.
    const LEN: usize;
    /// From that many bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Appends the bytes.
    fn put(self, out: &mut Vec<u8>);
    /// Whether it is a group's.
    fn is_group(self) -> bool;
}

impl GroupAddress for Ipv4Addr {
    const LEN: usize = 4;
    fn read(bytes: &[u8]) -> Ipv4Addr {
        crate::array::<4>(bytes, 0).into()
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets());
    }
    fn is_group(self) -> bool {
        self.is_multicast()
    }
}

impl GroupAddress for Ipv6Addr {
    const LEN: usize = 16;
    fn read(bytes: &[u8]) -> Ipv6Addr {
        crate::array::<16>(bytes, 0).into()
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets());
    }
    fn is_group(self) -> bool {
        self.is_multicast()
    }
}

/// Kinds of group records (RFC 3376, section 4.2.12; RFC 3810, section 5.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// The filter mode is INCLUDE, with these sources.
    ModeIsInclude = 1,
    /// The filter mode is EXCLUDE, with these sources.
    ModeIsExclude = 2,
    /// The filter mode has changed to INCLUDE.
    ChangeToInclude = 3,
    /// The filter mode has changed to EXCLUDE.
    ChangeToExclude = 4,
    /// These sources are wanted besides.
    AllowNewSources = 5,
    /// These sources are no longer wanted.
    BlockOldSources = 6,
}

impl RecordKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [RecordKind; 6] = [
        RecordKind::ModeIsInclude,
        RecordKind::ModeIsExclude,
        RecordKind::ChangeToInclude,
        RecordKind::ChangeToExclude,
        RecordKind::AllowNewSources,
        RecordKind::BlockOldSources,
    ];
}

/// What a report says of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<A> {
    /// What the sources are.
    pub kind: RecordKind,
    /// The group.
    pub group: A,
    /// Sources.
    pub sources: Vec<A>,
}

impl<A: GroupAddress> Record<A> {
    /// Bytes of a record with so many sources.
    pub const fn len_with(sources: usize) -> usize {
        4 + A::LEN * (1 + sources)
    }
}

/// A query. One of an older version has no sources, flags and interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<A> {
    /// Of the protocol: IGMP 1 to 3, MLD 1 or 2.
    pub version: u8,
    /// The group; none in a general query.
    pub group: Option<A>,
    /// Within which hosts answer.
    pub max_response_ms: u32,
    /// Sources of the group.
    pub sources: Vec<A>,
    /// Routers that hear the query do not lower their timers.
    pub suppress: bool,
    /// The querier's robustness variable, below 8; zero if it does not tell.
    pub robustness: u8,
    /// The querier's query interval; zero if it does not tell.
    pub interval_s: u32,
}

/// A message of IGMP or MLD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<A> {
    /// A router asks.
    Query(Query<A>),
    /// A report of the latest version, without the records of unknown kinds.
    Report(Vec<Record<A>>),
    /// A report of an older version.
    OldReport {
        /// Of the protocol.
        version: u8,
        /// The group.
        group: A,
    },
    /// An older host leaves a group: IGMPv2's Leave Group, MLDv1's Done.
    Leave {
        /// The group.
        group: A,
    },
}

/// The value of a code with a floating form, whose mantissa has `bits` bits (RFC 3376, sections 4.1.1 and 4.1.7; RFC 3810, section 5.1.3).
pub fn decoded(code: u32, bits: u32) -> u32 {
    if code < 1 << (bits + 3) {
        return code;
    }
    let mantissa = code & ((1 << bits) - 1) | 1 << bits;
    mantissa << ((code >> bits & 7) + 3)
}

/// The code of the largest value that is not above the given one; `OutOfRange` if that is above all.
pub(crate) fn encoded(value: u32, bits: u32) -> Result<u32, Error> {
    if value < 1 << (bits + 3) {
        return Ok(value);
    }
    let exponent = 32 - value.leading_zeros() - bits - 4;
    if exponent > 7 {
        return Err(Error::OutOfRange);
    }
    let mantissa = value >> (exponent + 3) & ((1 << bits) - 1);
    Ok(1 << (bits + 3) | exponent << bits | mantissa)
}

pub(crate) fn group_at<A: GroupAddress>(bytes: &[u8], offset: usize) -> Result<A, Error> {
    let group = A::read(&bytes[offset..offset + A::LEN]);
    group.is_group().then_some(group).ok_or(Error::Malformed)
}

/// The group of a query, where zeros are none.
pub(crate) fn queried_at<A: GroupAddress>(bytes: &[u8], offset: usize) -> Result<Option<A>, Error> {
    if bytes[offset..offset + A::LEN].iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    group_at(bytes, offset).map(Some)
}

fn sources_at<A: GroupAddress>(bytes: &[u8], offset: usize, count: usize) -> Result<Vec<A>, Error> {
    at_least(bytes, offset + count * A::LEN)?;
    let at = (0..count).map(|number| offset + number * A::LEN);
    Ok(at.map(|at| A::read(&bytes[at..at + A::LEN])).collect())
}

/// A report from its eighth byte on, and how many records it promises.
pub(crate) fn records<A: GroupAddress>(
    mut bytes: &[u8],
    count: usize,
) -> Result<Vec<Record<A>>, Error> {
    let mut records = Vec::new();
    for _ in 0..count {
        at_least(bytes, 4 + A::LEN)?;
        let sources = usize::from(u16_at(bytes, 2));
        let group = group_at(bytes, 4)?;
        let record = sources_at(bytes, 4 + A::LEN, sources)?;
        let len = Record::<A>::len_with(sources) + 4 * usize::from(bytes[1]);
        let kind = (RecordKind::ALL.iter()).find(|kind| **kind as u8 == bytes[0]);
        if let Some(&kind) = kind {
            records.push(Record {
                kind,
                group,
                sources: record,
            });
        }
        at_least(bytes, len)?;
        bytes = &bytes[len..];
    }
    Ok(records)
}

/// Appends records, without auxiliary data.
pub(crate) fn put_records<A: GroupAddress>(
    records: &[Record<A>],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    for record in records {
        let sources = count(record.sources.len())?;
        out.extend_from_slice(&[record.kind as u8, 0]);
        out.extend_from_slice(&sources.to_be_bytes());
        record.group.put(out);
        record.sources.iter().for_each(|source| source.put(out));
    }
    Ok(())
}

/// What follows the group in a query of the latest version.
pub(crate) struct Tail<A> {
    pub(crate) sources: Vec<A>,
    pub(crate) suppress: bool,
    pub(crate) robustness: u8,
    pub(crate) interval_s: u32,
}

impl<A: GroupAddress> Tail<A> {
    pub(crate) fn at(bytes: &[u8], offset: usize) -> Result<Tail<A>, Error> {
        let count = usize::from(u16_at(bytes, offset + 2));
        Ok(Tail {
            sources: sources_at(bytes, offset + 4, count)?,
            suppress: bytes[offset] & 8 != 0,
            robustness: bytes[offset] & 7,
            interval_s: decoded(bytes[offset + 1].into(), 4),
        })
    }
}

/// Appends what follows the group in a query of the latest version.
pub(crate) fn put_tail<A: GroupAddress>(query: &Query<A>, out: &mut Vec<u8>) -> Result<(), Error> {
    if query.robustness > 7 {
        return Err(Error::OutOfRange);
    }
    let interval = encoded(query.interval_s, 4)? as u8;
    out.extend_from_slice(&[u8::from(query.suppress) << 3 | query.robustness, interval]);
    out.extend_from_slice(&count(query.sources.len())?.to_be_bytes());
    query.sources.iter().for_each(|source| source.put(out));
    Ok(())
}

pub(crate) fn count(count: usize) -> Result<u16, Error> {
    u16::try_from(count).map_err(|_| Error::OutOfRange)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_records<A: GroupAddress>(
        group: impl Strategy<Value = A>,
        source: impl Strategy<Value = A>,
    ) -> impl Strategy<Value = Vec<Record<A>>> {
        let kind = (0usize..6).prop_map(|kind| RecordKind::ALL[kind]);
        let sources = prop::collection::vec(source, 0..4);
        let record = (kind, group, sources).prop_map(|(kind, group, sources)| Record {
            kind,
            group,
            sources,
        });
        prop::collection::vec(record, 0..4)
    }

    #[test]
    fn codes_with_a_floating_form() {
        // RFC 3376, section 4.1.1: (mant | 0x10) << (exp + 3).
        let values = [0, 127, 128, 0x8f, 0x90, 0xff].map(|code| decoded(code, 4));
        assert_eq!(values, [0, 127, 128, 248, 256, 31_744]);
        // RFC 3810, section 5.1.3: (mant | 0x1000) << (exp + 3).
        let values = [0x7fff, 0x8000, 0xffff].map(|code| decoded(code, 12));
        assert_eq!(values, [32_767, 32_768, 8_387_584]);
    }

    proptest! {
        #[test]
        fn the_code_of_a_value_is_the_largest_that_is_not_above(value in 0u32..40_000) {
            match encoded(value, 4) {
                Ok(code) => {
                    prop_assert!(code < 256 && decoded(code, 4) <= value);
                    prop_assert!(code == 255 || decoded(code + 1, 4) > value);
                }
                Err(error) => prop_assert!(error == Error::OutOfRange && value > 31_744),
            }
        }
    }
}
