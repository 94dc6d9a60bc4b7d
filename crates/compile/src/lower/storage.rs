//! Slots for the storage of P4 types.

use std::rc::Rc;

use ir::{HeaderId, SlotId};
use syntax::source::Span;

use super::Lowerer;
use super::place::{Place, header_of, is_header};
use crate::errors;
use crate::types::Ty;

impl Lowerer<'_> {
    /// Adds a slot of `width` bits to the program and returns its id.
    pub(super) fn new_slot(&mut self, name: &str, width: u32) -> SlotId {
        self.spend(1);
        let id = SlotId(self.program.slots.len() as u32);
        self.program.slots.push(ir::Slot {
            name: name.to_string(),
            width,
        });
        id
    }

    /// Allocates new storage for a value of type `ty`, in slots whose names begin with `name`.
    pub(super) fn alloc(&mut self, ty: &Ty, name: &str, span: Span) -> Place {
        let types = &self.module.types;
        match types.representation(ty) {
            Ty::Struct(id) => {
                let fields = types.structure(id).fields.clone();
                let places = fields
                    .iter()
                    .map(|f| self.alloc(&f.ty, &format!("{name}.{}", f.name), span));
                Place::Fields(places.collect())
            }
            Ty::Tuple(items) => {
                let items: Vec<Ty> = items.to_vec();
                let places = items
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.alloc(t, &format!("{name}[{i}]"), span));
                Place::Fields(places.collect())
            }
            Ty::Header(id) => self.alloc_header(id, name),
            Ty::Union(id) => {
                let fields = types.structure(id).fields.clone();
                let places: Rc<[Place]> = fields
                    .iter()
                    .map(|f| self.alloc(&f.ty, &format!("{name}.{}", f.name), span))
                    .collect();
                self.note_union(&places);
                Place::Union(places)
            }
            Ty::Stack(element, size) => {
                let places = (0..size)
                    .map(|i| self.alloc(&element, &format!("{name}[{i}]"), span))
                    .collect();
                if !is_header(&element) {
                    return Place::Fields(places);
                }
                let next = self.new_slot(&format!("{name}.nextIndex"), 32);
                self.next_indexes.push(next);
                Place::Stack(places, next)
            }
            Ty::Varbit(width) => self.alloc_varbit(width, name),
            ty => match types.scalar_width(&ty) {
                Some(width) => Place::Scalar(self.new_slot(name, width)),
                None => {
                    if ty != Ty::Missing {
                        let shown = types.show(&ty);
                        self.report(errors::variable_type(span, &shown));
                    }
                    Place::Fields(Rc::from([]))
                }
            },
        }
    }

    fn alloc_header(&mut self, id: crate::types::StructId, name: &str) -> Place {
        let valid = self.new_slot(&format!("{name}.$valid"), 1);
        let mut fields = Vec::new();
        let places = self.alloc_header_fields(id, name, &mut fields);
        let varbit = fields.iter().any(|f| f.varbit_length.is_some());
        let bits: u32 = fields.iter().map(|f| self.width_of(f.slot)).sum();
        if !varbit && !bits.is_multiple_of(8) {
            // A header of the IR is whole bytes or has a varbit: this one is always empty.
            self.padded
                .insert(HeaderId(self.program.headers.len() as u32));
            let slot = self.new_slot(&format!("{name}.$rest"), 8);
            let length = self.new_slot(&format!("{name}.$rest.$length"), 32);
            fields.push(ir::Field {
                slot,
                varbit_length: Some(length),
            });
        }
        let header = HeaderId(self.program.headers.len() as u32);
        let header_fields = fields.iter().map(|f| f.slot);
        self.header_fields.extend(header_fields);
        self.program.headers.push(ir::Header {
            name: name.to_string(),
            valid,
            fields,
        });
        Place::Header(header, places)
    }

    fn width_of(&self, slot: SlotId) -> u32 {
        self.program.slots[slot.index()].width
    }

    /// Allocates a varbit of at most `width` bits outside of a header, as the only field of a new header
    /// that is never emitted.
    fn alloc_varbit(&mut self, width: u32, name: &str) -> Place {
        let valid = self.new_slot(&format!("{name}.$valid"), 1);
        let slot = self.new_slot(name, width);
        let length = self.new_slot(&format!("{name}.$length"), 32);
        let header = HeaderId(self.program.headers.len() as u32);
        self.program.headers.push(ir::Header {
            name: name.to_string(),
            valid,
            fields: vec![ir::Field {
                slot,
                varbit_length: Some(length),
            }],
        });
        self.loose.insert(slot, header);
        Place::Varbit(slot, length)
    }

    fn alloc_header_fields(
        &mut self,
        id: crate::types::StructId,
        name: &str,
        out: &mut Vec<ir::Field>,
    ) -> Rc<[Place]> {
        let fields = self.module.types.structure(id).fields.clone();
        let places = fields
            .iter()
            .map(|f| self.alloc_header_field(&f.ty, &format!("{name}.{}", f.name), out));
        places.collect()
    }

    fn alloc_header_field(&mut self, ty: &Ty, name: &str, out: &mut Vec<ir::Field>) -> Place {
        match self.module.types.representation(ty) {
            Ty::Varbit(width) => {
                let slot = self.new_slot(name, width);
                let length = self.new_slot(&format!("{name}.$length"), 32);
                out.push(ir::Field {
                    slot,
                    varbit_length: Some(length),
                });
                Place::Varbit(slot, length)
            }
            Ty::Struct(inner) => Place::Fields(self.alloc_header_fields(inner, name, out)),
            Ty::Stack(element, size) => {
                let items = (0..size)
                    .map(|i| self.alloc_header_field(&element, &format!("{name}[{i}]"), out));
                Place::Fields(items.collect())
            }
            ty => {
                let slot = self.new_slot(name, self.module.types.scalar_width(&ty).unwrap_or(1));
                out.push(ir::Field {
                    slot,
                    varbit_length: None,
                });
                Place::Scalar(slot)
            }
        }
    }

    /// Records that these headers are the members of one header union, of which at most one is valid at a time.
    fn note_union(&mut self, members: &[Place]) {
        let ids: Vec<HeaderId> = members.iter().filter_map(header_of).collect();
        for id in &ids {
            let others = ids.iter().copied().filter(|o| o != id).collect();
            self.siblings.insert(*id, others);
        }
    }
}
