//! Entries as serialized messages, since most of what clients read is entries. Where a decoded message is needed, it
//! is decoded from these bytes.

use crate::entries;
use crate::field_match::{put_match, put_value};
use crate::info::Table;
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::protobuf::{nested, put_number};
use engine::control::{EntryAction, InstalledEntry, Target};
use engine::meter::MeterConfig;
use engine::runtime::CounterData;
use ir::ActionCall;
use prost::Message;
use prost::encoding::{bool, bytes, int32, int64, message};
use prost::encoding::{uint32, uint64};

impl Pipeline {
    /// Appends the contents of an `Action` message for an action call.
    fn put_call(&self, out: &mut Vec<u8>, call: &ActionCall) {
        let declared = &self.program.actions[call.action.index()];
        let action = self.info.actions.get(declared.id);
        put_number(out, 1, declared.id);
        for (at, (param, value)) in declared.params.iter().zip(&call.args).enumerate() {
            let field = action.and_then(|action| action.params.at(at, param.id));
            nested(out, 4, |out| {
                put_number(out, 2, param.id);
                put_value(out, 3, field, value);
            });
        }
    }

    pub(crate) fn action_message(&self, call: &ActionCall) -> m::Action {
        let mut out = Vec::new();
        self.put_call(&mut out, call);
        m::Action::decode(&out[..]).unwrap_or_default()
    }

    /// Appends the contents of a `TableEntry` message for an entry, with those of its resources that are set in
    /// `asked`.
    pub(crate) fn put_entry(
        &self,
        out: &mut Vec<u8>,
        table: &Table,
        read: &InstalledEntry,
        asked: &m::TableEntry,
    ) {
        let entry = &read.entry;
        let note = entry.note.as_ref().map(|note| entries::note(Some(note)));
        put_number(out, 1, table.id);
        for &(key, field) in &table.by_id {
            put_match(out, 2, &table.fields.list[field], &entry.matches[key]);
        }
        nested(out, 3, |out| match &entry.action {
            EntryAction::Call(call) => nested(out, 1, |out| self.put_call(out, call)),
            EntryAction::Target(Target::Member(id)) => uint32::encode(2, id, out),
            EntryAction::Target(Target::Group(id)) => uint32::encode(3, id, out),
            EntryAction::Target(Target::OneShot(set)) => {
                if let Some(profile) = self.info.profiles.get(table.implementation) {
                    let note = note.clone().unwrap_or_default();
                    message::encode(4, &self.set_message(profile, set, &note), out);
                }
            }
            EntryAction::Keep => {}
        });
        if entry.priority != 0 {
            int32::encode(4, &entry.priority, out);
        }
        if let Some(note) = note.as_ref().filter(|note| note.controller_metadata != 0) {
            uint64::encode(5, &note.controller_metadata, out);
        }
        let metered = table.direct_meter.is_some();
        if let Some(config) = entry
            .meter
            .filter(|_| metered && asked.meter_config.is_some())
        {
            message::encode(6, &config_message(config), out);
        }
        let counted = table.direct_counter != 0 && asked.counter_data.is_some();
        if let Some(count) = read.counter.filter(|_| counted) {
            message::encode(7, &count_message(count), out);
        }
        if entry.idle_timeout_ns != 0 {
            uint64::encode(9, &entry.idle_timeout_ns, out);
        }
        if let Some(idle_ns) = read.idle_ns.filter(|_| asked.time_since_last_hit.is_some()) {
            nested(out, 10, |out| int64::encode(1, &(idle_ns as i64), out));
        }
        if let Some(note) = note.filter(|note| !note.metadata.is_empty()) {
            bytes::encode(11, &note.metadata, out);
        }
        if metered && asked.meter_counter_data.is_some() {
            message::encode(12, &colours_message(read.meter_counts), out);
        }
        if read.is_const {
            bool::encode(13, &true, out);
        }
    }

    /// Returns an entry as a `TableEntry` message, without its resources.
    pub(crate) fn entry_message(&self, table: &Table, read: &InstalledEntry) -> m::TableEntry {
        let mut out = Vec::new();
        self.put_entry(&mut out, table, read, &m::TableEntry::default());
        m::TableEntry::decode(&out[..]).unwrap_or_default()
    }
}

pub(crate) fn count_message(data: CounterData) -> m::CounterData {
    // The message's numbers have 63 bits.
    m::CounterData {
        byte_count: (data.bytes & i64::MAX as u64) as i64,
        packet_count: (data.packets & i64::MAX as u64) as i64,
    }
}

/// Builds the message of a meter's counts by colour; all are zero if `counts` is `None`.
pub(crate) fn colours_message(counts: Option<[CounterData; 3]>) -> m::MeterCounterData {
    let [green, yellow, red] = counts.unwrap_or_default().map(|c| Some(count_message(c)));
    m::MeterCounterData { green, yellow, red }
}

pub(crate) fn config_message(config: MeterConfig) -> m::MeterConfig {
    m::MeterConfig {
        cir: config.cir as i64,
        cburst: config.cburst as i64,
        pir: config.pir as i64,
        pburst: config.pburst as i64,
        eburst: 0,
    }
}
