//! The externs of v1model, as statements call them.

use super::parser::BitWriter;
use super::{Flow, Run};
use crate::exec::DropReason;
use crate::hash;
use crate::trace::EventKind;
use ir::{Bits, Expr, HashAlgorithm, Loc, SlotId, Stmt, StmtKind};

impl Run<'_, '_> {
    pub(super) fn extern_call(&mut self, stmt: &Stmt) -> Flow {
        let loc = stmt.loc;
        match &stmt.kind {
            StmtKind::RegisterRead { .. }
            | StmtKind::RegisterWrite { .. }
            | StmtKind::Count { .. }
            | StmtKind::MeterExecute { .. } => self.indexed(stmt),
            StmtKind::DirectMeterRead { meter, dst } => {
                let (meter, dst) = (*meter, *dst);
                let colour = self.cx.runtime.direct_meter_colour(meter);
                let width = self.program.slots[dst.index()].width;
                self.set(dst, &Bits::from_u64(width, u64::from(colour)));
                self.note(loc, || EventKind::DirectMeter { meter, colour });
            }
            StmtKind::Hash {
                dst,
                algorithm,
                data,
                payload,
            } => self.hash(*dst, *algorithm, data, *payload, loc),
            StmtKind::Random { dst, low, high } => {
                let (low, high) = (self.eval(low).low_u64(), self.eval(high).low_u64());
                let drawn = self.cx.runtime.random(low, high);
                let value = Bits::from_u64(self.program.slots[dst.index()].width, drawn);
                self.set(*dst, &value);
                let dst = *dst;
                self.note(loc, || EventKind::Random { dst, value });
            }
            StmtKind::Digest { digest, values } => {
                let values: Vec<Bits> = values.iter().map(|v| self.eval(v)).collect();
                let limbs: Vec<u64> = values.iter().flat_map(|v| v.limbs()).copied().collect();
                self.cx.runtime.digest(*digest, &limbs);
                let digest = *digest;
                self.note(loc, || EventKind::Digest { digest, values });
            }
            StmtKind::Log { format, values } => {
                if self.cx.trace.is_some() {
                    let values: Vec<Bits> = values.iter().map(|v| self.eval(v)).collect();
                    let message = log_message(format, &values);
                    self.note(loc, || EventKind::Log(message));
                }
            }
            StmtKind::Assert { cond } => {
                let holds = self.truth(cond);
                self.note(loc, || EventKind::Assert(holds));
                if !holds {
                    return self.drop_packet(DropReason::AssertFailed);
                }
            }
            _ => self.intent(stmt),
        }
        Flow::Next
    }

    /// Runs a statement that accesses a register, counter or meter.
    fn indexed(&mut self, stmt: &Stmt) {
        let loc = stmt.loc;
        match &stmt.kind {
            StmtKind::RegisterRead {
                dst,
                register,
                index,
            } => {
                let (dst, register) = (*dst, *register);
                let index = self.eval(index).low_u64();
                let width = self.program.slots[dst.index()].width;
                let cell = self.cx.runtime.register_read(register, index);
                let value = Bits::from_limbs(width, cell);
                self.set(dst, &value);
                self.note(loc, || EventKind::RegisterRead {
                    register,
                    index,
                    value,
                });
            }
            StmtKind::RegisterWrite {
                register,
                index,
                value,
            } => {
                let register = *register;
                let (index, value) = (self.eval(index).low_u64(), self.eval(value));
                let runtime = &mut self.cx.runtime;
                runtime.register_write(register, index, value.limbs());
                self.note(loc, || EventKind::RegisterWrite {
                    register,
                    index,
                    value,
                });
            }
            StmtKind::Count { counter, index } => {
                let counter = *counter;
                let index = self.eval(index).low_u64();
                let packet_bytes = self.cx.packet_len;
                self.cx.runtime.count(counter, index, packet_bytes);
                self.note(loc, || EventKind::Count { counter, index });
            }
            StmtKind::MeterExecute { meter, index, dst } => {
                let (meter, index) = (*meter, self.eval(index).low_u64());
                let (packet_bytes, now_ps) = (self.cx.packet_len, self.cx.now_ps);
                let runtime = &mut self.cx.runtime;
                let colour = runtime.meter_execute(meter, index, packet_bytes, now_ps);
                let width = self.program.slots[dst.index()].width;
                self.set(*dst, &Bits::from_u64(width, u64::from(colour)));
                self.note(loc, || EventKind::Meter {
                    meter,
                    index,
                    colour,
                });
            }
            _ => {}
        }
    }

    fn hash(
        &mut self,
        dst: SlotId,
        algorithm: HashAlgorithm,
        data: &[Expr],
        payload: bool,
        loc: Loc,
    ) {
        let values: Vec<Bits> = data.iter().map(|d| self.eval(d)).collect();
        let data = concatenation(&values);
        let payload = match payload {
            true => &self.cx.packet[self.cx.consumed..],
            false => &[],
        };
        let width = self.program.slots[dst.index()].width;
        let mut limbs = vec![0; width.div_ceil(64) as usize];
        hash::hash(algorithm, &data, payload, &mut limbs);
        let value = Bits::from_limbs(width, &limbs);
        self.set(dst, &value);
        self.note(loc, || EventKind::Hash {
            algorithm,
            dst,
            value,
        });
    }

    /// Records a request of the program to the switch (clone, resubmit, recirculate or truncate the packet), which the
    /// switch carries out after this part of the pipeline.
    fn intent(&mut self, stmt: &Stmt) {
        let event = match &stmt.kind {
            StmtKind::Clone {
                session, preserve, ..
            } => {
                let session = self.eval(session).low_u64() as u32;
                self.cx.intents.clone = Some((session, *preserve));
                EventKind::Clone { session }
            }
            StmtKind::Resubmit { preserve } => {
                self.cx.intents.resubmit = Some(*preserve);
                EventKind::Resubmit
            }
            StmtKind::Recirculate { preserve } => {
                self.cx.intents.recirculate = Some(*preserve);
                EventKind::Recirculate
            }
            StmtKind::Truncate { length } => {
                let length = self.eval(length).low_u64() as u32;
                let shortest = self.cx.intents.truncate.map_or(length, |l| l.min(length));
                self.cx.intents.truncate = Some(shortest);
                EventKind::Truncate(length)
            }
            // The callers run these. They are named, so that a new statement is not forgotten here.
            StmtKind::Assign { .. }
            | StmtKind::SetValid(_)
            | StmtKind::SetInvalid(_)
            | StmtKind::If { .. }
            | StmtKind::Switch { .. }
            | StmtKind::Block { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break(_)
            | StmtKind::Exit
            | StmtKind::Apply { .. }
            | StmtKind::RegisterRead { .. }
            | StmtKind::RegisterWrite { .. }
            | StmtKind::Count { .. }
            | StmtKind::MeterExecute { .. }
            | StmtKind::DirectMeterRead { .. }
            | StmtKind::Hash { .. }
            | StmtKind::Random { .. }
            | StmtKind::Digest { .. }
            | StmtKind::Log { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Extract { .. }
            | StmtKind::Lookahead { .. }
            | StmtKind::Advance { .. }
            | StmtKind::Reject { .. }
            | StmtKind::Emit(_) => return,
        };
        self.note(stmt.loc, || event);
    }
}

/// Concatenates the values, most significant bit first, and fills the last byte with zero bits.
fn concatenation(values: &[Bits]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = BitWriter::new(&mut bytes);
    for value in values {
        writer.append(value, value.width());
    }
    bytes
}

/// Replaces each `{}` in a format by the next value, in decimal if it has at most 64 bits, else in hexadecimal. A `{}`
/// for which there is no value stays.
fn log_message(format: &str, values: &[Bits]) -> String {
    let mut parts = format.split("{}");
    let mut message = parts.next().unwrap_or_default().to_string();
    let mut values = values.iter();
    for part in parts {
        match values.next() {
            Some(value) => match value.to_u64() {
                Some(small) => message.push_str(&small.to_string()),
                None => message.push_str(&crate::trace::hex(value)),
            },
            None => message.push_str("{}"),
        }
        message.push_str(part);
    }
    message
}
