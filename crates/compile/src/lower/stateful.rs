//! Action profiles and selectors, digests, direct meters, and registers that tell the state of ports.

use std::collections::BTreeSet;

use ir::{Expr, StmtKind};
use syntax::source::Span;

use super::externs::has_varbit;
use super::place::Value;
use super::{Body, Code, ExternKind, Unit, build};
use crate::errors;
use crate::hir::{self, Arg};
use crate::types::Ty;
use syntax::ast::Annotation;

/// The annotation of a register that the switch's agent writes.
const PORT_STATE: &str = "port_state";

impl Body<'_, '_> {
    /// Adds the action profile of an instance `action_profile(size)` to the program.
    pub(super) fn action_profile(&mut self, name: &str, args: &[Arg]) -> ExternKind {
        let size = self.constant_arg(args, 0, "the size of an action profile");
        self.new_profile(name, size.unwrap_or(0), None)
    }

    /// Adds the action selector of an instance `action_selector(algorithm, size, outputWidth)` to the
    /// program. Reports an output width that is not 1 to 64 bits, and returns `None`.
    pub(super) fn action_selector(
        &mut self,
        name: &str,
        algorithm: ir::HashAlgorithm,
        args: &[Arg],
        span: Span,
    ) -> Option<ExternKind> {
        let size = self.constant_arg(args, 1, "the size of an action selector");
        let width = self.constant_arg(args, 2, "the output width of an action selector");
        let width = width.unwrap_or(1);
        let Some(width) = u32::try_from(width).ok().filter(|w| (1..=64).contains(w)) else {
            self.report(errors::selector_width(span, width));
            return None;
        };
        let selector = ir::Selector {
            algorithm,
            width,
            max_group_size: 0,
            sum_of_members: false,
        };
        Some(self.new_profile(name, size.unwrap_or(0), Some(selector)))
    }

    /// Lowers `direct_meter.read(result)`, which writes the colour of the packet to the argument.
    pub(super) fn direct_meter_read(&mut self, meter: ir::MeterId, args: &[Arg], span: Span) {
        let target = self.out_arg(args, 0);
        let width = self.module.types.scalar_width(&target.1);
        let width = width.unwrap_or(2);
        let dst = self.new_slot("$colour", width.max(2));
        self.read_direct_meter(meter, dst, span);
        let slots = &self.program.slots;
        let value = build::resize(Expr::Slot(dst), width, slots);
        self.store(&target, Value::Bits(value));
    }
}

impl Code<'_> {
    /// Emits the read of a direct meter's colour into a slot, and records its place in the source for
    /// [`Unit::check_direct_meter_reads`].
    pub(super) fn read_direct_meter(&mut self, meter: ir::MeterId, dst: ir::SlotId, span: Span) {
        self.emit(StmtKind::DirectMeterRead { meter, dst });
        self.made.direct_meter_reads.push((meter, span));
    }
}

impl Unit<'_> {
    /// Returns the members of a digest of `value`. Reports a varbit in the value, or a value without members,
    /// and returns `None`.
    pub(super) fn digest_values(&mut self, value: &Value, span: Span) -> Option<Vec<Expr>> {
        let values = value.leaves();
        if has_varbit(value) {
            self.report(errors::varbit_digest(span));
        } else if values.is_empty() {
            self.report(errors::unsupported(span, "a digest without members"));
        } else {
            return Some(values);
        }
        None
    }

    /// Adds a digest with the members `values` and the type `ty` to the program, and returns its id.
    pub(super) fn new_digest(
        &mut self,
        name: String,
        values: &[Expr],
        ty: &Ty,
        span: Span,
    ) -> ir::DigestId {
        let widths = values.iter().map(|e| e.width(&self.program.slots));
        let widths = widths.collect();
        let id = ir::DigestId(self.program.digests.len() as u32);
        self.program.digests.push(ir::Digest {
            name,
            id: 0,
            widths,
        });
        self.info.digests.push((id, ty.clone(), span));
        id
    }

    fn new_profile(&mut self, name: &str, size: u64, selector: Option<ir::Selector>) -> ExternKind {
        let id = ir::ActionProfileId(self.program.action_profiles.len() as u32);
        self.program.action_profiles.push(ir::ActionProfile {
            name: name.to_string(),
            id: 0,
            size,
            selector,
        });
        ExternKind::Profile(id)
    }

    /// Returns the action profile of a table; `None` if it has none. Reports a table that has an action
    /// profile and entries, and returns `None`.
    pub(super) fn implementation(
        &mut self,
        def: &hir::Table,
        profile: Option<usize>,
    ) -> Option<ir::ActionProfileId> {
        let ExternKind::Profile(id) = self.info.externs[profile?].kind else {
            return None;
        };
        if def.has_entries {
            self.report(errors::entries_with_implementation(def.span, &def.name));
            return None;
        }
        Some(id)
    }

    /// Reports reads of direct meters outside of actions, or of meters that no table has. In actions that
    /// tables without the meter run too, makes the reads give green for those tables.
    pub(super) fn check_direct_meter_reads(&mut self) {
        let mut guarded = BTreeSet::new();
        for (meter, span) in std::mem::take(&mut self.made.direct_meter_reads) {
            let program = &self.program;
            let reads = |body: &[ir::Stmt]| block_reads(body, meter);
            let outside = program.controls().any(reads);
            let foreign = program
                .tables
                .iter()
                .filter(|table| table.direct_meter != Some(meter))
                .flat_map(|table| &table.actions)
                .any(|a| reads(&program.actions[a.action.index()].body));
            let attached = program.tables.iter().any(|t| t.direct_meter == Some(meter));
            if foreign && attached && guarded.insert(meter) {
                self.guard_direct_meter(meter);
            }
            if outside || !attached {
                let name = self.program.meters[meter.index()].name.clone();
                self.report(errors::direct_meter_outside(span, &name));
            }
        }
    }
}

/// Returns whether a register has the annotation `@port_state`, with which the switch writes the states of
/// its ports to the register.
pub(super) fn is_port_state(annotations: &[Annotation]) -> bool {
    annotations.iter().any(|a| a.name.as_str() == PORT_STATE)
}

pub(super) fn block_reads(body: &[ir::Stmt], meter: ir::MeterId) -> bool {
    ir::statements(body).any(
        |stmt| matches!(stmt.kind, StmtKind::DirectMeterRead { meter: read, .. } if read == meter),
    )
}
