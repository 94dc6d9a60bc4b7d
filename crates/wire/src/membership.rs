//! One model of the messages of IGMP and MLD. They differ in the length of addresses, in types, and in the place and unit of a query's time,
//! which are a [`GroupAddress`]'s; `igmp` and `mld` have what is around a message: checksums and IP headers.

use crate::{Error, at_least, u16_at};

/// An IPv4 or IPv6 address, with what distinguishes the messages of its protocol (IGMP or MLD) from those of the other.
pub trait GroupAddress: Copy + Ord + std::fmt::Debug {
    /// Bytes of an address.
    const LEN: usize;
    /// The offset of the group address in a message that names one group.
    const GROUP_AT: usize;
    /// The latest version of the protocol.
    const LATEST: u8;
    /// Message type of a query.
    const QUERY: u8;
    /// Message type of a report of the latest version.
    const REPORT: u8;
    /// Message types of reports of older versions, each with its version.
    const OLD_REPORTS: &'static [(u8, u8)];
    /// Message type with which a host of an older version leaves a group.
    const LEAVE: u8;
    /// The destination address of general queries.
    const ALL_HOSTS: Self;
    /// The destination address of messages that leave a group.
    const ALL_ROUTERS: Self;
    /// The destination address of reports of the latest version.
    const REPORT_LISTENERS: Self;
    /// The unit of a query's maximum response time, in milliseconds.
    const UNIT_MS: u32;
    /// Bits of the mantissa when a query's maximum response time is a floating-point code.
    const MANTISSA_BITS: u32;
    /// The maximum response time of a version 1 query in milliseconds, if these queries have no such field.
    const TIMELESS_MS: Option<u32>;
    /// Reads an address from the beginning of `bytes`, which must hold at least [`GroupAddress::LEN`].
    fn read(bytes: &[u8]) -> Self;
    /// Appends the bytes of the address, in network order, to `out`.
    fn put(self, out: &mut Vec<u8>);
    /// Returns true if the address is a multicast address.
    fn is_group(self) -> bool;
    /// Returns the maximum response code of a query: the encoded time within which hosts must answer.
    fn code(query: &[u8]) -> u32;
    /// Appends the bytes of a message in front of its group address to `out`: type `kind`, maximum response code
    /// `code`, and zero for the checksum.
    fn put_head(kind: u8, code: u16, out: &mut Vec<u8>);
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
    /// The host wants to hear these sources in addition to the former ones.
    AllowNewSources = 5,
    /// The host no longer wants to hear these sources.
    BlockOldSources = 6,
}

impl RecordKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [RecordKind; 6] = [
        RecordKind::ModeIsInclude,
        RecordKind::ModeIsExclude,
        RecordKind::ChangeToInclude,
        RecordKind::ChangeToExclude,
        RecordKind::AllowNewSources,
        RecordKind::BlockOldSources,
    ];
}

/// A host's statement about one group in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<A> {
    /// The meaning of the sources.
    pub kind: RecordKind,
    /// The group.
    pub group: A,
    /// Sources.
    pub sources: Vec<A>,
}

/// A query. Those of older versions have no sources, flags and interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<A> {
    /// Version of the protocol: IGMP 1 to 3, MLD 1 or 2.
    pub version: u8,
    /// The group about which the query asks; `None` in a general query.
    pub group: Option<A>,
    /// The longest time after which hosts answer, in milliseconds.
    pub max_response_ms: u32,
    /// Sources of the group.
    pub sources: Vec<A>,
    /// S flag: routers that hear the query do not lower their timers.
    pub suppress: bool,
    /// The querier's robustness variable, below 8; zero if the query does not contain it.
    pub robustness: u8,
    /// The querier's query interval in seconds; zero if the query does not contain it.
    pub interval_s: u32,
}

/// A message of IGMP or MLD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<A> {
    /// A router asks which groups have members.
    Query(Query<A>),
    /// A report of the latest version, without the records of unknown kinds.
    Report(Vec<Record<A>>),
    /// A report of an older version.
    OldReport {
        /// Version of the protocol.
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

/// Decodes a time code: small values stand for themselves, large ones are floating-point numbers with a mantissa of
/// `bits` bits and an exponent of three (RFC 3376, sections 4.1.1 and 4.1.7; RFC 3810, section 5.1.3). Returns the time
/// in the field's unit.
fn decoded(code: u32, bits: u32) -> u32 {
    if code < 1 << (bits + 3) {
        return code;
    }
    let mantissa = code & ((1 << bits) - 1) | 1 << bits;
    mantissa << ((code >> bits & 7) + 3)
}

/// Encodes a time, in the field's unit, as a code for [`decoded`]; a time without a code is rounded down. Fails with
/// `OutOfRange` if no code stands for so long a time.
fn encoded(value: u32, bits: u32) -> Result<u32, Error> {
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

fn group_at<A: GroupAddress>(bytes: &[u8], offset: usize) -> Result<A, Error> {
    let group = A::read(&at_least(bytes, offset + A::LEN)?[offset..offset + A::LEN]);
    group.is_group().then_some(group).ok_or(Error::Malformed)
}

fn sources_at<A: GroupAddress>(bytes: &[u8], offset: usize, count: usize) -> Result<Vec<A>, Error> {
    at_least(bytes, offset + count * A::LEN)?;
    let at = (0..count).map(|number| offset + number * A::LEN);
    Ok(at.map(|at| A::read(&bytes[at..at + A::LEN])).collect())
}

impl<A: GroupAddress> Message<A> {
    /// Returns the destination address of the IP packet that carries the message.
    pub fn destination(&self) -> A {
        match self {
            Message::Query(query) => query.group.unwrap_or(A::ALL_HOSTS),
            Message::Report(_) => A::REPORT_LISTENERS,
            Message::OldReport { group, .. } => *group,
            Message::Leave { .. } => A::ALL_ROUTERS,
        }
    }

    /// Returns the fields of an IGMP or MLD message, whose checksum the caller has checked. Fails with `Truncated` if
    /// bytes are missing, and with `Malformed` for an unknown type, a query whose length is that of no version, or a
    /// group address that is not multicast.
    pub(crate) fn read(bytes: &[u8]) -> Result<Message<A>, Error> {
        at_least(bytes, 8)?;
        let old = A::OLD_REPORTS.iter().find(|(kind, _)| *kind == bytes[0]);
        match (bytes[0], old) {
            (kind, _) if kind == A::QUERY => Query::read(bytes).map(Message::Query),
            (kind, _) if kind == A::REPORT => {
                records(&bytes[8..], u16_at(bytes, 6).into()).map(Message::Report)
            }
            (kind, _) if kind == A::LEAVE => Ok(Message::Leave {
                group: group_at(bytes, A::GROUP_AT)?,
            }),
            (_, Some(&(_, version))) => Ok(Message::OldReport {
                version,
                group: group_at(bytes, A::GROUP_AT)?,
            }),
            _ => Err(Error::Malformed),
        }
    }

    /// Appends the message to `out` with zero as its checksum. Fails with `OutOfRange` if a number does not fit its
    /// field, or the protocol has no such version.
    pub(crate) fn put(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut naming = |kind, group: A| {
            A::put_head(kind, 0, out);
            group.put(out);
            Ok(())
        };
        match self {
            Message::Query(query) => query.put(out),
            Message::Report(records) => {
                let count = count(records.len())?.to_be_bytes();
                out.extend_from_slice(&[A::REPORT, 0, 0, 0, 0, 0, count[0], count[1]]);
                records.iter().try_for_each(|record| record.put(out))
            }
            Message::OldReport { version, group } => {
                let old = A::OLD_REPORTS.iter().find(|(_, its)| its == version);
                naming(old.ok_or(Error::OutOfRange)?.0, *group)
            }
            Message::Leave { group } => naming(A::LEAVE, *group),
        }
    }
}

impl<A: Copy> Message<A> {
    /// Returns a copy of the message in which each group and source address is replaced by what `to` returns for it;
    /// `None` if `to` returns `None` for one of them.
    pub fn map<B>(&self, to: impl Fn(A) -> Option<B>) -> Option<Message<B>> {
        let all = |sources: &[A]| sources.iter().map(|&it| to(it)).collect::<Option<Vec<B>>>();
        Some(match self {
            Message::Query(query) => Message::Query(Query {
                version: query.version,
                group: match query.group {
                    Some(group) => Some(to(group)?),
                    None => None,
                },
                max_response_ms: query.max_response_ms,
                sources: all(&query.sources)?,
                suppress: query.suppress,
                robustness: query.robustness,
                interval_s: query.interval_s,
            }),
            Message::Report(records) => {
                let record = |record: &Record<A>| {
                    Some(Record {
                        kind: record.kind,
                        group: to(record.group)?,
                        sources: all(&record.sources)?,
                    })
                };
                Message::Report(records.iter().map(record).collect::<Option<_>>()?)
            }
            Message::OldReport { version, group } => Message::OldReport {
                version: *version,
                group: to(*group)?,
            },
            Message::Leave { group } => Message::Leave { group: to(*group)? },
        })
    }
}

impl<A: GroupAddress> Query<A> {
    fn read(bytes: &[u8]) -> Result<Query<A>, Error> {
        let tail = A::GROUP_AT + A::LEN;
        let named = &at_least(bytes, tail)?[A::GROUP_AT..tail];
        let is_general = named.iter().all(|&byte| byte == 0);
        let code = A::code(bytes);
        let mut query = Query {
            version: A::LATEST,
            group: match is_general {
                true => None,
                false => Some(group_at(bytes, A::GROUP_AT)?),
            },
            max_response_ms: decoded(code, A::MANTISSA_BITS) * A::UNIT_MS,
            sources: Vec::new(),
            suppress: false,
            robustness: 0,
            interval_s: 0,
        };
        match (bytes.len() - tail, A::TIMELESS_MS) {
            (0, Some(response_ms)) if code == 0 => {
                (query.version, query.group) = (1, None);
                query.max_response_ms = response_ms;
            }
            // Older versions have no floating form.
            (0, _) => (query.version, query.max_response_ms) = (A::LATEST - 1, code * A::UNIT_MS),
            (1..4, _) => return Err(Error::Malformed),
            _ => {
                let sources = u16_at(bytes, tail + 2).into();
                query.sources = sources_at(bytes, tail + 4, sources)?;
                query.suppress = bytes[tail] & 8 != 0;
                query.robustness = bytes[tail] & 7;
                query.interval_s = decoded(bytes[tail + 1].into(), 4);
            }
        }
        Ok(query)
    }

    fn put(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let time = self.max_response_ms / A::UNIT_MS;
        let code = match self.version {
            0 => return Err(Error::OutOfRange),
            1 if A::TIMELESS_MS.is_some() => 0,
            version if version < A::LATEST => time,
            version if version == A::LATEST => encoded(time, A::MANTISSA_BITS)?,
            _ => return Err(Error::OutOfRange),
        };
        if code >> (A::MANTISSA_BITS + 4) != 0 || self.robustness > 7 {
            return Err(Error::OutOfRange);
        }
        A::put_head(A::QUERY, code as u16, out);
        match self.group {
            Some(group) => group.put(out),
            None => out.resize(out.len() + A::LEN, 0),
        }
        if self.version == A::LATEST {
            let interval = encoded(self.interval_s, 4)? as u8;
            out.extend_from_slice(&[u8::from(self.suppress) << 3 | self.robustness, interval]);
            out.extend_from_slice(&count(self.sources.len())?.to_be_bytes());
            self.sources.iter().for_each(|source| source.put(out));
        }
        Ok(())
    }
}

/// Reads `count` group records from `bytes`, which begin behind the first eight bytes of a report. Leaves out records
/// of unknown kinds. Fails with `Truncated` if bytes are missing, and with `Malformed` if a group address is not
/// multicast.
fn records<A: GroupAddress>(mut bytes: &[u8], count: usize) -> Result<Vec<Record<A>>, Error> {
    let mut records = Vec::new();
    for _ in 0..count {
        let group = group_at(bytes, 4)?;
        let sources = usize::from(u16_at(bytes, 2));
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

impl<A: GroupAddress> Record<A> {
    /// Returns the length in bytes of a group record with `sources` sources and no auxiliary data.
    pub const fn len_with(sources: usize) -> usize {
        4 + A::LEN * (1 + sources)
    }

    /// Appends the group record to `out`, without auxiliary data. Fails with `OutOfRange` for more than 65,535 sources.
    fn put(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let sources = count(self.sources.len())?.to_be_bytes();
        out.extend_from_slice(&[self.kind as u8, 0, sources[0], sources[1]]);
        self.group.put(out);
        self.sources.iter().for_each(|source| source.put(out));
        Ok(())
    }
}

fn count(count: usize) -> Result<u16, Error> {
    u16::try_from(count).map_err(|_| Error::OutOfRange)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates random messages of the latest version, and of older versions except for their queries, for property
    /// tests.
    pub(crate) fn any_message<A: GroupAddress + 'static>(
        group: impl Strategy<Value = A> + Clone,
        source: impl Strategy<Value = A> + Clone,
    ) -> impl Strategy<Value = Message<A>> {
        let sources = prop::collection::vec(source, 0..4);
        let queries = (
            prop::option::of(group.clone()),
            0u32..1 << (A::MANTISSA_BITS + 4),
            sources.clone(),
            (any::<bool>(), 0u8..8, 0u32..256),
        );
        let record =
            (0usize..6, group.clone(), sources).prop_map(|(kind, group, sources)| Record {
                kind: RecordKind::ALL[kind],
                group,
                sources,
            });
        prop_oneof![
            queries.prop_map(|(group, code, sources, (suppress, robustness, interval))| {
                Message::Query(Query {
                    version: A::LATEST,
                    group,
                    max_response_ms: decoded(code, A::MANTISSA_BITS) * A::UNIT_MS,
                    sources,
                    suppress,
                    robustness,
                    interval_s: decoded(interval, 4),
                })
            }),
            prop::collection::vec(record, 0..4).prop_map(Message::Report),
            (1..A::LATEST, group.clone())
                .prop_map(|(version, group)| Message::OldReport { version, group }),
            group.prop_map(|group| Message::Leave { group }),
        ]
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
