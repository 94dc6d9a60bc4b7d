//! A program with its P4Info, and what is not written or read: packets for the controller, digests, idle entries.

use crate::contradiction::contradiction;
use crate::errors::{invalid, not_found};
use crate::info::{Header, Info};
use crate::messages as m;
use crate::translation::Mappings;
use bytes::Bytes;
use engine::Switch;
use engine::control::{ControlError, ControlErrorCode, Operation};
use engine::digest::DigestList;
use engine::refuse;
use engine::takeover::Takeover;
use ir::{Bits, DigestId, Program};
use prost::{DecodeError, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A program with its P4Info. Any number of switches that run the program can share it.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) program: Arc<Program>,
    pub(crate) info: Info,
    notes: Mutex<BTreeMap<Noted, ObjectNote>>,
}

/// An object for which the pipeline stores an [`ObjectNote`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Noted {
    /// A group of an action profile: the profile's P4Runtime id, and the group's id.
    Group(u32, u32),
    Multicast(u32),
    Session(u32),
}

/// What clients stated about an object that the switch does not use, kept to be returned when they read the object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ObjectNote {
    pub metadata: Bytes,
    /// The members or replicas whose port was given by the deprecated number.
    pub numeric: BTreeSet<(u32, u32)>,
}

impl Pipeline {
    /// Makes a pipeline from a program and a serialized `p4.config.v1.P4Info`. Fails with INVALID_ARGUMENT or
    /// UNIMPLEMENTED if the P4Info contradicts itself or the program, or has unsupported types. `own` is the
    /// compiler's own P4Info, empty if unknown.
    pub fn new(
        program: Arc<Program>,
        own: &[u8],
        p4info: &[u8],
        mappings: &Mappings,
    ) -> Result<Pipeline, ControlError> {
        let message = proto::p4info::P4Info::decode(p4info);
        let message = message.map_err(|why| invalid(format!("P4Info: {why}")))?;
        let info = Info::new(&message, &program, mappings)?;
        let differs = || (!own.is_empty()).then(|| proto::difference::of_p4info(own, p4info));
        if let Some(what) = contradiction(&program, &info).or_else(|| differs().flatten()) {
            return Err(invalid(format!(
                "the P4Info and the device config are not of one program: {what}"
            )));
        }
        Ok(Pipeline {
            program,
            info,
            notes: Mutex::default(),
        })
    }

    /// Returns the program of the pipeline.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the width in bits of port numbers in the program's architecture.
    pub(crate) fn port_bits(&self) -> u32 {
        self.program.architecture.description().port_bits()
    }

    fn notes(&self) -> MutexGuard<'_, BTreeMap<Noted, ObjectNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn object_note(&self, of: Noted) -> ObjectNote {
        self.notes().get(&of).cloned().unwrap_or_default()
    }

    pub(crate) fn keep(&self, operation: Operation, (of, note): (Noted, ObjectNote)) {
        let mut notes = self.notes();
        if operation == Operation::Delete || note == ObjectNote::default() {
            notes.remove(&of);
        } else {
            notes.insert(of, note);
        }
    }

    /// Moves notes, which are what clients said of objects and the switch does not use (metadata, and which ports
    /// were given by the deprecated number), from the old pipeline to this one: those of all multicast groups and
    /// clone sessions, and those of groups whose profile is in `moves`.
    pub(crate) fn inherit_notes(&self, old: &Pipeline, moves: &Takeover) {
        let stays = |of: &Noted| match of {
            Noted::Multicast(_) | Noted::Session(_) => true,
            Noted::Group(id, _) => {
                let profile = old.info.profiles.get(*id);
                profile.is_some_and(|it| moves.has_profile(it.profile_id()))
            }
        };
        let inherited: Vec<_> = old.notes().extract_if(.., |of, _| stays(of)).collect();
        self.notes().extend(inherited);
    }

    /// Returns whether a role may access an object.
    pub fn role_may(&self, role: &str, id: u32) -> bool {
        self.info.role_may(role, id)
    }

    /// Builds the packet that a serialized `PacketOut` sends into the CPU port. Fails with INVALID_ARGUMENT unless
    /// each metadata field occurs exactly once.
    pub fn packet_out(&self, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        let message = m::PacketOut::decode(message);
        let message = message.map_err(|why| invalid(format!("packet-out: {why}")))?;
        let fields = self.info.header("packet_out").map(|header| &header.fields);
        for (at, item) in message.metadata.iter().enumerate() {
            let id = item.id;
            refuse!(
                fields.is_none_or(|fields| fields.get(id).is_none()) => InvalidArgument,
                "packet-out: no metadata field has id {id}"
            );
            refuse!(
                message.metadata[..at].iter().any(|other| other.id == id) => InvalidArgument,
                "packet-out: metadata field {id} is given twice"
            );
        }
        let mut whole: Option<Bits> = None;
        let header = self.info.header("packet_out");
        for (field, width) in header.iter().flat_map(|header| header.parts()) {
            let part = match field {
                Some(field) => {
                    let given = message.metadata.iter().find(|item| item.id == field.id);
                    let given = given.ok_or_else(|| {
                        let name = &field.name;
                        invalid(format!("packet-out: metadata field '{name}' is missing"))
                    })?;
                    let what = || format!("packet-out metadata '{}'", field.name);
                    field.value(&given.value, &what)?
                }
                None => Bits::zero(width),
            };
            whole = Some(match whole {
                Some(high) => high.concat(&part),
                None => part,
            });
        }
        let mut packet = Vec::new();
        if let Some(bits) = whole {
            let padding = bits.width().next_multiple_of(8) - bits.width();
            let padded = match padding {
                0 => bits,
                padding => bits.concat(&Bits::zero(padding)),
            };
            packet = padded.to_be_bytes();
        }
        packet.extend_from_slice(&message.payload);
        Ok(packet)
    }

    /// Builds the serialized `PacketIn` for a packet that came out of the CPU port; `None` if the packet is shorter
    /// than the controller header.
    pub fn packet_in(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let header = self.info.header("packet_in");
        let bits: u32 = header.map_or(0, header_bits);
        let (front, payload) = packet.split_at_checked(bits.div_ceil(8) as usize)?;
        let mut metadata = Vec::new();
        if bits > 0 {
            let whole = Bits::from_be_bytes(front.len() as u32 * 8, front);
            let mut rest = whole.width();
            for (field, width) in header.iter().flat_map(|header| header.parts()) {
                rest -= width;
                let value = whole.slice(rest + width - 1, rest);
                metadata.extend(field.map(|field| m::PacketMetadata {
                    id: field.id,
                    value: field.shown(&value),
                }));
            }
        }
        let message = m::PacketOut {
            payload: Bytes::copy_from_slice(payload),
            metadata,
        };
        Some(message.encode_to_vec())
    }

    /// Removes the digest lists that are to be sent now (full, or older than their timeout) from a switch, until they
    /// contain at least `most` messages together, and returns them. Also discards up to `most` messages of digests
    /// that no client has enabled.
    pub fn take_digests(&self, switch: &mut Switch, most: usize) -> Vec<DigestList> {
        let now_ps = switch.runtime().now_ps();
        // Messages that nobody asked for.
        switch.take_unconfigured_digests(now_ps, most);
        switch.take_due_digests(now_ps, most)
    }

    /// Builds the digest id and the serialized `DigestList` of each of these lists, with the timestamp `now_ns`.
    pub fn digest_messages(&self, lists: Vec<DigestList>, now_ns: i64) -> Vec<(u32, Vec<u8>)> {
        let lists = lists.into_iter().filter_map(|list| {
            let id = self.program.digests[list.digest.index()].id;
            let ty = self.info.digests.get(id)?.ty.as_ref().ok()?;
            let values = list.messages.into_iter();
            let data = values.map(|members| {
                let whole = members.into_iter().reduce(|high, low| high.concat(&low));
                let whole = whole.unwrap_or_else(|| Bits::zero(1));
                ty.to_data(&whole.resize(ty.width().max(1)))
            });
            let message = m::DigestList {
                digest_id: id,
                list_id: list.list_id,
                data: data.collect(),
                timestamp: now_ns,
            };
            Some((id, message.encode_to_vec()))
        });
        lists.collect()
    }

    /// Acknowledges a digest list; does nothing if the list is not outstanding. Fails if there is no such digest.
    pub fn acknowledge(
        &self,
        switch: &mut Switch,
        digest_id: u32,
        list_id: u64,
    ) -> Result<(), ControlError> {
        let digest = self.info.digests.by_id(digest_id)?;
        match switch.acknowledge_digest(DigestId(digest.number as u32), list_id) {
            Err(error) if error.code != ControlErrorCode::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes at most `most` entries that have been idle for their timeout from a switch. Returns an
    /// `IdleTimeoutNotification`, serialized, for each table that has any, with the table's id. The entries stay in
    /// their tables.
    pub fn take_idle(&self, switch: &mut Switch, now_ns: i64, most: usize) -> Vec<(u32, Vec<u8>)> {
        let now_ps = switch.runtime().now_ps();
        let mut found: Vec<(u32, m::IdleTimeoutNotification)> = Vec::new();
        for (table, idle) in switch.take_idle_entries(now_ps, most) {
            let id = self.program.tables[table.index()].id;
            let Some(table) = self.info.tables.get(id) else {
                continue;
            };
            let mut entry = self.entry_message(table, &idle);
            (entry.action, entry.is_const) = (None, false);
            match found.iter_mut().find(|(table, _)| *table == id) {
                Some((_, notification)) => notification.entries.push(entry),
                None => {
                    let entries = vec![entry];
                    let timestamp = now_ns;
                    found.push((id, m::IdleTimeoutNotification { entries, timestamp }));
                }
            }
        }
        let found = found.into_iter();
        found
            .map(|(id, message)| (id, message.encode_to_vec()))
            .collect()
    }
}

fn header_bits(header: &Header) -> u32 {
    let widths = header.parts().map(|(_, width)| width);
    widths.fold(0, u32::saturating_add)
}

/// Formats a serialized `p4.config.v1.P4Info` as text. Fails if it cannot be decoded.
pub fn p4info_text(message: &[u8]) -> Result<String, DecodeError> {
    proto::p4info::P4Info::decode(message)?;
    Ok(proto::text::p4info(message))
}

/// Builds the ABORTED error for an operation during which another pipeline was loaded, so that the objects it refers
/// to are gone.
pub(crate) fn replaced(during: &str) -> ControlError {
    ControlError::new(
        ControlErrorCode::Aborted,
        format!("the pipeline was replaced during the {during}"),
    )
}

pub(crate) fn missing(what: &str, id: u32) -> ControlError {
    not_found(format!("there is no {what} {id}"))
}
