//! Updates of table entries as a client sends them: names and numbers of one table to bytes.
//!
//! A client has its table from the device's P4Info. This file knows no P4Info, and no value but numbers: whatever is written in another
//! way is refused here, and for the client to say.

use crate::messages::tag;
use crate::protobuf::{nested, put_number};
use ir::{Form, MatchKind};
use smallvec::SmallVec;

/// A number without leading zeros, in network order; zero has no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(SmallVec<[u8; 32]>);

impl Number {
    /// Makes a number from its bytes, the most significant first; leading zeros are removed.
    pub fn from_be_bytes(bytes: &[u8]) -> Number {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Number(SmallVec::from_slice(&bytes[zeros..]))
    }

    fn bits(&self) -> u32 {
        match self.0.first() {
            None => 0,
            Some(first) => self.0.len() as u32 * 8 - first.leading_zeros(),
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn is_all_ones(&self, width: u32) -> bool {
        self.bits() == width && self.0.iter().map(|byte| byte.count_ones()).sum::<u32>() == width
    }

    fn trailing_zeros(&self) -> u32 {
        let zeros = self.0.iter().rev().take_while(|byte| **byte == 0).count();
        let rest = self.0.iter().rev().nth(zeros);
        zeros as u32 * 8 + rest.map_or(0, |byte| byte.trailing_zeros())
    }

    fn is_within(&self, mask: &Number) -> bool {
        let pairs = self.0.iter().rev().zip(mask.0.iter().rev());
        self.0.len() <= mask.0.len() && pairs.into_iter().all(|(byte, mask)| byte & !mask == 0)
    }

    fn is_above(&self, other: &Number) -> bool {
        (self.0.len(), &self.0) > (other.0.len(), &other.0)
    }

    fn small(&self) -> Option<u32> {
        let fits = self.0.len() <= 4;
        fits.then(|| {
            self.0
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(*byte))
        })
    }
}

/// The value that a client states for a match field.
#[derive(Clone, Debug)]
pub enum Given {
    /// A single number, all of whose bits must match.
    Number(Number),
    /// Value and prefix length, value and mask, or both ends of a range.
    Pair(Number, Number),
}

/// The id and the width of a match field or of an action's parameter.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The id in its table or action.
    pub id: u32,
    /// The width in bits.
    pub width: u32,
}

/// Names with what they stand for.
pub type Named<T> = Vec<(String, T)>;

fn find<'a, T>(names: &'a Named<T>, name: &str) -> Option<&'a T> {
    names
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, it)| it)
}

/// What is needed to encode calls of an action.
#[derive(Clone, Debug)]
pub struct ActionShape {
    /// The id of the action in the program.
    pub id: u32,
    /// The parameters whose values are numbers, by name.
    pub params: Named<Slot>,
}

impl ActionShape {
    /// Finds the parameter with this name; `None` if there is none.
    pub fn param(&self, name: &str) -> Option<Slot> {
        find(&self.params, name).copied()
    }
}

/// What is needed to encode the entries of a table.
#[derive(Clone, Debug)]
pub struct EntryEncoder {
    /// The id of the table in the program.
    pub table: u32,
    /// The fields whose values are numbers, by name, with their match kinds.
    pub fields: Named<(Slot, MatchKind)>,
    /// The actions of the table, by name.
    pub actions: Named<ActionShape>,
}

impl EntryEncoder {
    /// Finds the key field with this name, with its match kind; `None` if there is none.
    pub fn field(&self, name: &str) -> Option<(Slot, MatchKind)> {
        find(&self.fields, name).copied()
    }

    /// Finds the action with this name; `None` if there is none.
    pub fn action(&self, name: &str) -> Option<&ActionShape> {
        find(&self.actions, name)
    }

    /// Begins the encoding of an entry of this table, with no contents yet.
    pub fn entry(&self) -> EntryBytes {
        let mut bytes = Vec::with_capacity(256);
        put_number(&mut bytes, 1, self.table);
        EntryBytes { bytes }
    }
}

/// The encoded contents of a `TableEntry`: first the matches, then the action, then the rest.
#[derive(Debug)]
pub struct EntryBytes {
    bytes: Vec<u8>,
}

fn put_value(out: &mut Vec<u8>, tag: u32, value: &Number) {
    // The shortest string has one byte at least.
    let bytes = if value.is_zero() { &[0][..] } else { &value.0 };
    nested(out, tag, |out| out.extend_from_slice(bytes));
}

impl EntryBytes {
    /// Adds the match of a field, or nothing if it accepts any value. Returns false if `given` cannot be a match of
    /// the field.
    pub fn put_match(&mut self, (slot, kind): (Slot, MatchKind), given: &Given) -> bool {
        let Slot { id, width } = slot;
        let fits = |number: &Number| number.bits() <= width;
        let mut put = |fill: &dyn Fn(&mut Vec<u8>)| {
            nested(&mut self.bytes, 2, |out| {
                put_number(out, 1, id);
                nested(out, tag(kind), fill);
            });
        };
        let two = |first: &Number, second: &Number| {
            let (first, second) = (first.clone(), second.clone());
            move |out: &mut Vec<u8>| {
                put_value(out, 1, &first);
                put_value(out, 2, &second);
            }
        };
        match (kind.form(), given) {
            (Form::Value, Given::Number(value)) if fits(value) => {
                put(&|out| put_value(out, 1, value));
            }
            (Form::Prefix, Given::Pair(value, length)) if fits(value) => {
                let Some(length) = length.small().filter(|length| *length <= width) else {
                    return false;
                };
                if !value.is_zero() && value.trailing_zeros() < width - length {
                    return false;
                }
                if length > 0 {
                    put(&|out| {
                        put_value(out, 1, value);
                        put_number(out, 2, length);
                    });
                }
            }
            (Form::Masked, Given::Pair(value, mask)) if fits(mask) && value.is_within(mask) => {
                if !mask.is_zero() {
                    put(&two(value, mask));
                }
            }
            (Form::Range, Given::Pair(low, high)) if fits(high) && !low.is_above(high) => {
                if !(low.is_zero() && high.is_all_ones(width)) {
                    put(&two(low, high));
                }
            }
            _ => return false,
        }
        true
    }

    /// Sets the action of the entry. Returns false if a number does not fit into its parameter.
    pub fn put_action(&mut self, action: &ActionShape, params: &[(Slot, Number)]) -> bool {
        nested(&mut self.bytes, 3, |out| {
            nested(out, 1, |out| {
                put_number(out, 1, action.id);
                for (slot, value) in params {
                    nested(out, 4, |out| {
                        put_number(out, 2, slot.id);
                        put_value(out, 3, value);
                    });
                }
            });
        });
        params
            .iter()
            .all(|(slot, value)| value.bits() <= slot.width)
    }

    /// Encodes a `WriteRequest` that contains only one update of this kind with this entry. The concatenation of such
    /// requests is one request with all updates.
    pub fn request(mut self, kind: u32, priority: u32, metadata: &[u8]) -> Vec<u8> {
        put_number(&mut self.bytes, 4, priority);
        if !metadata.is_empty() {
            nested(&mut self.bytes, 11, |out| out.extend_from_slice(metadata));
        }
        let mut request = Vec::with_capacity(self.bytes.len() + 16);
        nested(&mut request, 4, |out| {
            put_number(out, 1, kind);
            nested(out, 2, |out| {
                nested(out, 2, |out| out.extend_from_slice(&self.bytes))
            });
        });
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::EntityKind;
    use crate::messages as m;
    use prost::Message;

    fn number(value: u64) -> Number {
        Number::from_be_bytes(&value.to_be_bytes())
    }

    #[test]
    fn requests_one_after_another_are_one() {
        let slot = |id, width| Slot { id, width };
        let encoder = EntryEncoder {
            table: 3,
            fields: vec![("dst".into(), (slot(1, 32), MatchKind::Lpm))],
            actions: vec![(
                "act".into(),
                ActionShape {
                    id: 7,
                    params: vec![("port".into(), slot(1, 9))],
                },
            )],
        };
        let (field, action) = (
            encoder.field("dst").unwrap(),
            encoder.action("act").unwrap(),
        );
        let mut requests = Vec::new();
        for port in [0, 511] {
            let mut entry = encoder.entry();
            assert!(entry.put_match(field, &Given::Pair(number(0x0a00_0000), number(8))));
            assert!(entry.put_action(action, &[(action.param("port").unwrap(), number(port))]));
            requests.extend(entry.request(2, 0, b""));
        }
        let request = m::RawWriteRequest::decode(&requests[..]).unwrap();
        let updates = request
            .updates
            .into_iter()
            .map(crate::entities::Update::decode);
        let values = updates.map(|update| {
            let update = update.unwrap();
            assert_eq!(update.kind, 2);
            let Some(EntityKind::Table(entry)) = update.entity.unwrap().entity else {
                panic!("no table entry");
            };
            assert_eq!(entry.table_id, 3);
            let Some(m::Match::Lpm(lpm)) = &entry.matches[0].kind else {
                panic!("no prefix");
            };
            assert_eq!((&lpm.value[..], lpm.prefix_len), (&[10, 0, 0, 0][..], 8));
            let Some(m::ActionKind::Action(call)) = entry.action.unwrap().kind else {
                panic!("no action");
            };
            call.params[0].value.to_vec()
        });
        assert_eq!(values.collect::<Vec<_>>(), [vec![0], vec![1, 255]]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |kind, width, given| {
            let (encoder, slot) = (
                EntryEncoder {
                    table: 1,
                    fields: vec![],
                    actions: vec![],
                },
                Slot { id: 1, width },
            );
            !encoder.entry().put_match((slot, kind), &given)
        };
        assert!(refused(MatchKind::Exact, 9, Given::Number(number(512))));
        assert!(refused(
            MatchKind::Lpm,
            32,
            Given::Pair(number(1), number(8))
        ));
        assert!(refused(
            MatchKind::Lpm,
            32,
            Given::Pair(number(0), number(33))
        ));
        assert!(refused(
            MatchKind::Ternary,
            32,
            Given::Pair(number(3), number(5))
        ));
        assert!(refused(
            MatchKind::Range,
            32,
            Given::Pair(number(256), number(255))
        ));
        assert!(!refused(
            MatchKind::Range,
            32,
            Given::Pair(number(255), number(256))
        ));
    }
}
