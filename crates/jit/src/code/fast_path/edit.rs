//! Headers where they lie in the packet: which fields are read there, and what is written when the packet leaves.

use super::{Loaded, Source};
use crate::analysis::ParserForm;
use crate::analysis::headers::Home;
use crate::code::bytes::{Packer, Pieces, Window};
use crate::code::wide::{Wide, limbs_for};
use crate::code::{EntryPoint, Place, Slots, nth};
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Type, Value};
use ir::{Expr, HeaderId, Pipeline, SlotId};

impl<'a> Slots<'a, '_> {
    /// Returns the headers and fields that can live in the packet while their header is valid, with
    /// assignments written there. Nothing else occupies their bytes: extracted headers do not overlap, and
    /// the payload begins after them.
    pub(super) fn edited(&mut self) -> Vec<(HeaderId, SlotId)> {
        let program = self.program;
        let headers = &self.facts().headers;
        let mut edited = Vec::new();
        for (i, header) in program.headers.iter().enumerate() {
            for field in &header.fields {
                let (slot, width) = (field.slot, self.width(field.slot));
                let whole_bytes = |h: Home| h.offset.is_multiple_of(8) && width.is_multiple_of(8);
                if headers.can_be_edited(slot)
                    && headers.is_assigned(slot)
                    && headers.home(slot).is_some_and(whole_bytes)
                    && matches!(self.places[slot.index()], Place::Values { .. })
                {
                    edited.push((HeaderId(i as u32), slot));
                }
            }
        }
        edited
    }

    /// Generates code that writes the value of a field of whole bytes into the packet, where its header was
    /// extracted.
    pub(in crate::code) fn store_at_source(&mut self, slot: SlotId, value: &Wide) {
        let Some(home) = self.facts().headers.home(slot) else {
            return;
        };
        let base = self.source(home.header);
        let at = self.b.ins().iadd_imm_u(base, i64::from(home.offset / 8));
        let mut packer = Packer::new(at);
        self.pack(&mut packer, value);
        self.pack_end_exactly(packer);
    }

    /// Generates code that writes the assigned fields of those of the `emitted` headers that are valid into
    /// the packet, where the headers were extracted.
    pub(super) fn edit(&mut self, emitted: &[HeaderId]) {
        for &header in emitted {
            if self.facts().headers.is_extracted(header) && !self.changes(header, false).is_empty()
            {
                let valid = self.read(self.program.headers[header.index()].valid).low();
                let (there, after) = (self.b.create_block(), self.b.create_block());
                self.branch_on(valid, there, after, &[]);
                self.continue_in(there);
                let base = self.source(header);
                let pieces = self.overlay(header, false);
                self.store_pieces(base, &pieces);
                self.b.ins().jump(after, &[]);
                self.continue_in(after);
            }
        }
    }

    /// Returns the runs of bytes (first, end) of a header without a varbit that hold fields which may be
    /// assigned or, if `all` is true, which may differ from what was extracted. Fields that certainly have
    /// the extracted value, or whose assignments are in the packet already, are left out.
    fn changes(&mut self, header: HeaderId, all: bool) -> Vec<(u32, u32)> {
        let program = self.program;
        let headers = &self.facts().headers;
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for field in &program.headers[header.index()].fields {
            let is_written = self.places[field.slot.index()] == Place::EditedInPacket;
            let Some(home) = headers
                .home(field.slot)
                .filter(|_| (all || headers.is_assigned(field.slot)) && !is_written)
            else {
                continue;
            };
            if self.as_loaded(field.slot).is_some() {
                continue;
            }
            let end = (home.offset + self.width(field.slot)).div_ceil(8);
            let first = home.offset / 8;
            match runs.last_mut() {
                Some(last) if last.1 >= first => last.1 = end,
                _ => runs.push((first, end)),
            }
        }
        runs
    }

    /// Generates the present bytes of a header in the runs of [`Gen::changes`], including fields that only
    /// share bytes with changed ones.
    fn overlay(&mut self, header: HeaderId, all: bool) -> Pieces {
        let program = self.program;
        let mut pieces = Pieces::new();
        for (first, end) in self.changes(header, all) {
            let mut packer = Packer::keeping(first);
            for field in &program.headers[header.index()].fields {
                let Some(home) = self.facts().headers.home(field.slot) else {
                    continue;
                };
                let field_end = home.offset + self.width(field.slot);
                // The bits of the field within these bytes.
                let (from, to) = (home.offset.max(8 * first), field_end.min(8 * end));
                if from >= to {
                    continue;
                }
                let value = match self.places[field.slot.index()] {
                    Place::InPacket | Place::EditedInPacket => {
                        self.field_at_source(home, field.slot)
                    }
                    _ => self.read(field.slot),
                };
                let value = self.slice(&value, field_end - from - 1, field_end - to);
                self.pack(&mut packer, &value);
            }
            pieces.extend(self.pack_end_exactly(packer));
        }
        pieces
    }

    /// Generates the address from which a header was last extracted.
    pub(in crate::code) fn source(&mut self, header: HeaderId) -> Value {
        match self.fast_path_mut().sources[header.index()] {
            Some(Source::Value(variable)) => self.b.use_var(variable),
            Some(Source::Memory(word)) => {
                let at = self.b.ins().stack_addr(I64, word, 0);
                self.b.ins().load(I64, MemFlagsData::trusted(), at, 0)
            }
            None => self.packet,
        }
    }

    /// Generates a load of a field of a valid header that lies in the packet.
    pub(super) fn field_at_source(&mut self, home: Home, slot: SlotId) -> Wide {
        self.bits_at_source(home, self.width(slot))
    }

    /// Generates a load of `width` bits, from the field at `home` on, of a valid header that lies in the
    /// packet.
    pub(in crate::code) fn bits_at_source(&mut self, home: Home, width: u32) -> Wide {
        let base = self.source(home.header);
        let bytes = self.program.header_max_bytes(home.header) as u32;
        let mut window = Window::new(base, bytes);
        self.window_field(&mut window, home.offset, width)
    }

    /// Generates the value of a field that lies in the packet: loaded if its header is valid, else zero.
    pub(in crate::code) fn reload_from_packet(&mut self, slot: SlotId) -> Wide {
        let width = self.width(slot);
        let Some(home) = self.facts().headers.home(slot) else {
            return self.constant(&ir::Bits::zero(width));
        };
        let valid = self.program.headers[home.header.index()].valid;
        let valid = self.read(valid).low();
        let (there, after) = (self.b.create_block(), self.b.create_block());
        let zero = self.imm(0);
        let zeros = vec![zero.into(); limbs_for(width)];
        for _ in 0..limbs_for(width) {
            self.b.append_block_param(after, I64);
        }
        match self.known_value(valid) {
            Some(0) => return self.constant(&ir::Bits::zero(width)),
            Some(_) => return self.field_at_source(home, slot),
            None => self.b.ins().brif(valid, there, &[], after, &zeros),
        };
        self.continue_in(there);
        let value = self.field_at_source(home, slot);
        let limbs: Vec<_> = value.limbs.iter().map(|&l| l.into()).collect();
        self.b.ins().jump(after, &limbs);
        self.continue_in(after);
        Wide::new(width, self.b.block_params(after).iter().copied().collect())
    }

    /// Generates the address in the packet of a valid header that lies there as it was extracted, except for
    /// assigned fields; `None` if the header does not lie there for certain.
    fn place_in_packet(&mut self, header: HeaderId) -> Option<Value> {
        match self.facts().headers.is_from_packet(header) {
            true => Some(self.source(header)),
            false => self.fields_as_loaded(header),
        }
    }

    /// Generates the bytes of a valid header that lies in the packet at `from`: loads of the packet, with the
    /// present values of assigned fields over them.
    fn bytes_from_packet(&mut self, header: HeaderId, from: Value) -> Pieces {
        let always = self.facts().headers.is_from_packet(header);
        let bytes = self.program.header_max_bytes(header) as u32;
        let mut pieces = self.load_bytes(from, bytes);
        let runs = self.changes(header, !always);
        pieces.retain(|&(at, value)| {
            let end = at + self.b.func.dfg.value_type(value).bytes();
            !runs.iter().any(|run| run.0 <= at && end <= run.1)
        });
        pieces.extend(self.overlay(header, !always));
        pieces
    }

    /// Generates the writing of a valid header, which lies in the packet except for assigned fields, to the
    /// address `to`. Returns false, with nothing generated, if the header does not lie there for certain.
    pub(in crate::code) fn emit_from_packet(&mut self, to: Value, header: HeaderId) -> bool {
        let Some(fast_path) = &mut self.fast_path else {
            return false;
        };
        let ahead = fast_path.read_ahead.remove(&header);
        let pieces = ahead.or_else(|| {
            let from = self.place_in_packet(header)?;
            Some(self.bytes_from_packet(header, from))
        });
        if let Some(pieces) = &pieces {
            self.store_pieces(to, pieces);
        }
        pieces.is_some()
    }

    /// Generates loads of the bytes of the packet that the deparser will emit, since it overwrites them.
    pub(super) fn read_ahead(&mut self, emitted: &[HeaderId]) {
        for &header in emitted {
            let Some(from) = self.place_in_packet(header) else {
                continue;
            };
            let valid = self.read(self.program.headers[header.index()].valid).low();
            let pieces = match self.known_value(valid) {
                Some(0) => continue,
                Some(_) => self.bytes_from_packet(header, from),
                None => self.bytes_if(valid, header, from),
            };
            self.fast_path_mut().read_ahead.insert(header, pieces);
        }
    }

    /// Generates [`Gen::bytes_from_packet`] for a header whose validity is `valid`, and zeros for the case
    /// that it is not valid.
    fn bytes_if(&mut self, valid: Value, header: HeaderId, from: Value) -> Pieces {
        let [there, not_there, after] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(valid, there, &[], not_there, &[]);
        self.continue_in(there);
        let pieces = self.bytes_from_packet(header, from);
        let values: Vec<_> = pieces.iter().map(|&(_, value)| value).collect();
        let args: Vec<BlockArg> = values.iter().map(|&value| value.into()).collect();
        self.b.ins().jump(after, &args);
        self.continue_in(not_there);
        let types = values.iter().map(|&v| self.b.func.dfg.value_type(v));
        let types: Vec<Type> = types.collect();
        let zeros: Vec<BlockArg> = (types.iter())
            .map(|&of| self.b.ins().iconst(of, 0).into())
            .collect();
        self.b.ins().jump(after, &zeros);
        for of in types {
            self.b.append_block_param(after, of);
        }
        self.continue_in(after);
        let params = self.b.block_params(after).to_vec();
        let places = pieces.into_iter().map(|(at, _)| at);
        places.zip(params).collect()
    }

    /// Returns the address from which a header was extracted if at least one of its fields certainly has the
    /// extracted value; the others may have been assigned. Else returns `None`.
    fn fields_as_loaded(&mut self, header: HeaderId) -> Option<Value> {
        let program = self.program;
        let fields = &program.headers[header.index()].fields;
        let mut bases = (fields.iter()).filter_map(|field| self.as_loaded(field.slot));
        let base = bases.next()?;
        bases.all(|other| other == base).then_some(base)
    }

    /// Records for the code generator that `value`, the value of a field, was loaded from its header at the
    /// address `base`.
    pub(in crate::code) fn note_loaded(&mut self, slot: SlotId, value: &Wide, base: Value) {
        if let Some(fast_path) = &mut self.fast_path {
            for (limb, &value) in value.limbs.iter().enumerate() {
                let loaded = Loaded { slot, limb, base };
                fast_path.loaded.insert(value, loaded);
            }
        }
    }

    /// Returns the address at which a field's header was extracted if the field certainly has the extracted
    /// value; else `None`.
    fn as_loaded(&mut self, slot: SlotId) -> Option<Value> {
        let Place::Values { first, .. } = self.places[slot.index()] else {
            return None;
        };
        let mut found = None;
        for limb in 0..self.layout.slot_limbs(slot) {
            let value = self.b.use_var(nth(first, limb));
            let value = self.b.func.dfg.resolve_aliases(value);
            let loaded = *self.fast_path.as_ref()?.loaded.get(&value)?;
            if (loaded.slot, loaded.limb) != (slot, limb)
                || found.is_some_and(|base| base != loaded.base)
            {
                return None;
            }
            found = Some(loaded.base);
        }
        found
    }

    /// Returns true if, on the fast path, a slot is the validity bit of a header; its assignment may move
    /// headers.
    pub(in crate::code) fn is_validity(&self, slot: SlotId) -> bool {
        self.fast_path.is_some() && self.facts().headers.validity_of(slot).is_some()
    }

    /// Returns true if code of a parser or of checksum verification is being generated on the fast path.
    pub(in crate::code) fn is_on_arrival(&self) -> bool {
        self.fast_path.as_ref().is_some_and(|s| s.on_arrival)
    }

    /// Returns the place of a field in its header if, on the fast path, the header, whenever it is valid,
    /// lies in the packet except for assigned fields; else `None`.
    pub(in crate::code) fn home_in_header(&self, slot: SlotId) -> Option<Home> {
        self.fast_path.as_ref()?;
        let headers = &self.facts().headers;
        let home = headers.home(slot)?;
        headers.is_from_packet(home.header).then_some(home)
    }

    /// Returns the place in its header of the field that `expr` is, if the field has the value that now lies
    /// in the packet while its header is valid, and zero otherwise; else `None`.
    pub(in crate::code) fn home_in_packet(&self, expr: &Expr) -> Option<Home> {
        let (fast_path, Expr::Slot(slot)) = (self.fast_path.as_ref()?, expr) else {
            return None;
        };
        let headers = &self.facts().headers;
        let unchanged = headers.is_unchanged(*slot, fast_path.on_arrival)
            || self.places[slot.index()] == Place::EditedInPacket;
        headers.home(*slot).filter(|_| unchanged)
    }

    /// Returns the form of the parser to generate for the current function: specialised, or for all outcomes.
    fn parser_form(&self) -> &'a ParserForm<'a> {
        let facts = self.facts();
        if self.entry_point != EntryPoint::FastPath {
            return &facts.parser;
        }
        match (self.pipeline(), &facts.egress_parser, &facts.specialised) {
            (Pipeline::EGRESS, Some(parser), _) => parser,
            (_, _, Some((_, parser))) => parser,
            _ => &facts.parser,
        }
    }

    /// Generates code that records the address `base` from which a header is being extracted and, if the
    /// extraction moves headers, that they moved.
    pub(in crate::code) fn note_extraction(&mut self, header: HeaderId, base: Value) {
        let Some(fast_path) = &self.fast_path else {
            return;
        };
        match fast_path.sources[header.index()] {
            Some(Source::Value(variable)) => self.b.def_var(variable, base),
            Some(Source::Memory(word)) => {
                let at = self.b.ins().stack_addr(I64, word, 0);
                (self.b.ins()).store(MemFlagsData::trusted(), base, at, 0);
            }
            None => {}
        }
        if self.parser_form().moves[header.index()] {
            self.note_move();
        }
    }

    /// Generates code that records, when a header is about to become valid or invalid, that headers move if
    /// that changes its validity and the deparser emits it.
    pub(in crate::code) fn note_validity(&mut self, header: HeaderId, valid: bool) {
        if self.fast_path.is_none() {
            return;
        }
        let headers = &self.facts().headers;
        if headers.emitted.is_none() || !headers.is_emitted(header) {
            return;
        }
        let mut change = self.read(self.program.headers[header.index()].valid).low();
        match self.known_value(change) {
            Some(now) if now == u64::from(valid) => return,
            Some(_) => return self.note_move(),
            None => {}
        }
        if valid {
            change = self.b.ins().bxor_imm_u(change, 1);
        }
        self.note_move_if(change);
    }

    /// Generates code that records, at the assignment of `slot`, that headers move if it is the validity of
    /// an emitted header.
    pub(in crate::code) fn note_assignment(&mut self, slot: SlotId) {
        if self.fast_path.is_some() {
            let headers = &self.facts().headers;
            if (headers.validity_of(slot)).is_some_and(|h| headers.is_emitted(h)) {
                self.note_move();
            }
        }
    }

    /// Generates code that records that headers no longer lie where they were extracted.
    pub(in crate::code) fn note_move(&mut self) {
        if self.fast_path.is_some() {
            let one = self.imm(1);
            self.note_move_if(one);
        }
    }

    fn note_move_if(&mut self, condition: Value) {
        let fast_path = self.fast_path_mut();
        fast_path.course.may_move = true;
        let variable = fast_path.moved;
        let moved = self.b.use_var(variable);
        let moved = self.b.ins().bor(moved, condition);
        self.b.def_var(variable, moved);
    }
}
