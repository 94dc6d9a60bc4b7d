//! Slots for the storage of P4 types.

use std::collections::BTreeMap;
use std::rc::Rc;

use ir::architecture::Parameter;
use ir::{Architecture, HeaderId, SlotId};
use syntax::source::Span;

use super::Unit;
use super::place::{Place, header_of, is_header};
use crate::arch::Pipeline;
use crate::errors;
use crate::hir::Module;
use crate::types::{StructDef, Ty};

impl Unit<'_> {
    /// Allocates the storage of the parameters of all blocks of the pipeline, and finds the slots of the
    /// architecture's metadata in it. Reports metadata without the expected fields, and returns `None`.
    pub(super) fn storage_of_parameters(
        &mut self,
        pipeline: &Pipeline,
    ) -> Option<BTreeMap<Parameter, (Place, Ty)>> {
        let module = self.module;
        let description = pipeline.description;
        let mut places = BTreeMap::new();
        for (parameter, block, position) in description.storage {
            let instance = pipeline.blocks.get(block.index())?;
            let var = module.var(*module.block(instance.block).params.get(*position)?);
            let name = match parameter {
                Parameter::Intrinsic(path) if !path.is_empty() => (*path).to_string(),
                Parameter::Headers(pipeline) | Parameter::UserMetadata(pipeline)
                    if description.deparses_between() =>
                {
                    format!("{}.{}", description.pipeline(*pipeline).name, var.name)
                }
                _ => var.name.to_string(),
            };
            let place = self.alloc(&var.ty, &name, var.span);
            places.insert(*parameter, (place, var.ty.clone()));
        }
        let found = Architecture::from_names(description, |name| {
            metadata_slot(&places, module, name).ok_or(name)
        });
        match found {
            Ok(architecture) => {
                for (name, slot, width) in architecture.fields() {
                    let found = self.program.slots[slot.index()].width;
                    if found != width {
                        let span = metadata_span(&places, module, name).unwrap_or(self.main_span);
                        let files = crate::architecture_files();
                        self.report(errors::metadata_width(span, name, width, found, &files));
                    }
                }
                self.program.architecture = architecture;
            }
            Err(name) => {
                let wanted = format!("the metadata of {}, with `{name}`", description.name);
                let intrinsic = |p: &&Parameter| matches!(p, Parameter::Intrinsic(_));
                let given = places.keys().find(intrinsic).and_then(|p| places.get(p));
                let found = given.map(|(_, ty)| module.types.show(ty));
                let found = found.unwrap_or_default();
                self.report(errors::type_mismatch(self.main_span, &wanted, &found));
                return None;
            }
        }
        for bridged in description.bridged() {
            let mut slots = Vec::new();
            if let Some((place, _)) = places.get(&Parameter::Bridged(bridged)) {
                place.for_each_slot(&self.program.headers, &mut |slot| slots.push(slot));
            }
            self.program.field_lists.push(ir::FieldList { slots });
        }
        Some(places)
    }

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
                self.headers.next_indexes.push(next);
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
            let header = HeaderId(self.program.headers.len() as u32);
            self.headers.padded.insert(header);
            let slot = self.new_slot(&format!("{name}.$rest"), 8);
            let length = self.new_slot(&format!("{name}.$rest.$length"), 32);
            fields.push(ir::Field {
                slot,
                varbit_length: Some(length),
            });
        }
        let header = HeaderId(self.program.headers.len() as u32);
        let header_fields = fields.iter().map(|f| f.slot);
        self.headers.fields.extend(header_fields);
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

    /// Allocates storage for a varbit of at most `width` bits outside of a header, as the only field of a new
    /// header that is never emitted.
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
        self.headers.loose.insert(slot, header);
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

    /// Records that the headers at `members` are the members of one header union, of which at most one is
    /// valid at a time.
    fn note_union(&mut self, members: &[Place]) {
        let ids: Vec<HeaderId> = members.iter().filter_map(header_of).collect();
        for id in &ids {
            let others = ids.iter().copied().filter(|o| o != id).collect();
            self.headers.siblings.insert(*id, others);
        }
    }
}

/// Returns the slot of a field of the architecture's metadata; `None` if there is no such field. `name` is
/// the field's name, with the name of its struct and a dot before it if there are several structs.
fn metadata_slot(
    places: &BTreeMap<Parameter, (Place, Ty)>,
    module: &Module,
    name: &str,
) -> Option<SlotId> {
    let (place, _, position) = metadata_field(places, module, name)?;
    match place.field(position)? {
        Place::Scalar(slot) => Some(*slot),
        _ => None,
    }
}

/// Returns the place in the source where a field of the architecture's metadata is declared; `None` if
/// there is no such field.
fn metadata_span(
    places: &BTreeMap<Parameter, (Place, Ty)>,
    module: &Module,
    name: &str,
) -> Option<Span> {
    let (_, def, position) = metadata_field(places, module, name)?;
    Some(def.fields.get(position)?.span)
}

/// Returns, for a field of the architecture's metadata, the storage and the definition of its struct and
/// the field's position in the struct; `None` if there is no such field.
fn metadata_field<'a>(
    places: &'a BTreeMap<Parameter, (Place, Ty)>,
    module: &'a Module,
    name: &str,
) -> Option<(&'a Place, &'a StructDef, usize)> {
    let (path, field) = name.split_once('.').unwrap_or(("", name));
    let of_path = |p: &&Parameter| matches!(p, Parameter::Intrinsic(known) if *known == path);
    let (place, ty) = places.get(places.keys().find(of_path)?)?;
    let Ty::Struct(id) = ty else { return None };
    let def = module.types.structure(*id);
    Some((place, def, def.field(field)?))
}
