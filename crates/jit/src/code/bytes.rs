//! Packet bytes to values and back.
//!
//! A [`Window`] reads fields out of bytes whose presence has been checked: it never touches a byte beyond them, and
//! neighbouring fields share one wide load. A [`Packer`] is the opposite: it concatenates values and writes eight
//! bytes at a time. Neither knows of headers.

use super::wide::{Limbs, Wide, limbs_for};
use super::{EntryPoint, Memory, Words};
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value};

/// Checked bytes of the packet.
pub(crate) struct Window {
    /// Address of the first byte.
    base: Value,
    /// Number of bytes.
    bytes: u32,
    /// Loads made so far: first byte, number of bytes, value.
    loads: Vec<(u32, u32, Value)>,
}

impl Window {
    /// Makes a window of the `bytes` bytes that begin at the address `base`. The caller has checked that the
    /// packet has these bytes.
    pub fn new(base: Value, bytes: u32) -> Window {
        Window {
            base,
            bytes,
            loads: Vec::new(),
        }
    }

    /// Returns the address of the window's first byte.
    pub fn base(&self) -> Value {
        self.base
    }

    /// Returns one load (first byte, size in bytes) that covers the bytes `first` to `last`. It is aligned to its size
    /// within the window if possible, so that neighbouring fields share a load. Returns `None` if no single load
    /// covers the bytes.
    fn covering(&self, first: u32, last: u32) -> Option<(u32, u32)> {
        let span = last - first + 1;
        let size = match self.bytes {
            8.. => 8,
            4..8 => 4,
            2..4 => 2,
            _ => 1,
        };
        if span > size {
            return None;
        }
        let aligned = first / size * size;
        if last < aligned + size && aligned + size <= self.bytes {
            return Some((aligned, size));
        }
        Some((first.min(self.bytes - size), size))
    }
}

fn integer(bytes: u32) -> Type {
    match bytes {
        1 => I8,
        2 => I16,
        4 => I32,
        _ => I64,
    }
}

impl Memory<'_, '_> {
    /// Returns the flags for loads from the packet. With them the optimiser does not move a load ahead of the
    /// check that its bytes exist.
    pub(crate) fn packet_memory(&self) -> MemFlagsData {
        let flags = MemFlagsData::new().with_notrap();
        match self.entry_point {
            // It is edited where it lies.
            EntryPoint::FastPath | EntryPoint::Unspecialised => flags,
            _ => flags.with_readonly(),
        }
    }

    /// Generates a load of 1, 2, 4 or 8 bytes of the window, from byte `first` on, as a number in network
    /// order. Returns the value of an earlier load of the same bytes if there is one.
    fn load_window(&mut self, window: &mut Window, first: u32, bytes: u32) -> Value {
        debug_assert!(first + bytes <= window.bytes);
        let known = (window.loads.iter()).find(|l| (l.0, l.1) == (first, bytes));
        if let Some(&(_, _, value)) = known {
            return value;
        }
        let flags = self.packet_memory();
        let value = if bytes == 1 {
            (self.b.ins()).uload8(I64, flags, window.base, first as i32)
        } else {
            let raw = (self.b.ins()).load(integer(bytes), flags, window.base, first as i32);
            let value = self.network_order(raw, bytes);
            match bytes {
                8 => value,
                _ => self.b.ins().uextend(I64, value),
            }
        };
        window.loads.push((first, bytes, value));
        value
    }

    /// Generates loads of up to 8 bytes of the window, from byte `first` on, as one number in network order:
    /// one load for each power of two in the number of bytes.
    fn load_pieces(&mut self, window: &mut Window, first: u32, bytes: u32) -> Value {
        let mut result = None;
        let mut done = 0;
        for size in [8, 4, 2, 1] {
            if bytes & size == 0 {
                continue;
            }
            let piece = self.load_window(window, first + done, size);
            result = Some(match result {
                None => piece,
                Some(high) => {
                    let high = self.shl_imm(high, 8 * size);
                    self.b.ins().bor(high, piece)
                }
            });
            done += size;
        }
        result.expect("at least one byte")
    }

    /// Generates a load of `width` bits (at most 64) that start `offset` bits after the window's first byte.
    fn window_limb(&mut self, window: &mut Window, offset: u32, width: u32) -> Value {
        let end = offset + width;
        let (first, last) = (offset / 8, (end - 1) / 8);
        let span = last - first + 1;
        if offset.is_multiple_of(8) && matches!(width, 8 | 16 | 32 | 64) {
            return self.load_window(window, first, span);
        }
        let mask = u64::MAX >> (64 - width);
        if span == 9 {
            let high = self.load_pieces(window, first, 8);
            let low = self.load_window(window, last, 1);
            let below = 8 * (last + 1) - end;
            let high = self.shl_imm(high, 8 - below);
            let low = self.shr_imm(low, below);
            let value = self.b.ins().bor(high, low);
            return self.and_imm(value, mask);
        }
        let (loaded, load_end) = match window.covering(first, last) {
            Some((start, size)) => (self.load_window(window, start, size), start + size),
            None => (self.load_pieces(window, first, span), last + 1),
        };
        let value = self.shr_imm(loaded, 8 * load_end - end);
        self.and_imm(value, mask)
    }

    /// Generates a load of a field of `width` bits that starts `offset` bits after the window's first byte.
    pub(crate) fn window_field(&mut self, window: &mut Window, offset: u32, width: u32) -> Wide {
        let limbs: Limbs = (0..limbs_for(width) as u32)
            .map(|i| {
                let low = 64 * i;
                let bits = (width - low).min(64);
                self.window_limb(window, offset + width - low - bits, bits)
            })
            .collect();
        Wide { width, limbs }
    }
}

impl Words<'_> {
    /// Generates the exchange of a value's 2, 4 or 8 bytes if the machine is little-endian.
    fn network_order(&mut self, value: Value, bytes: u32) -> Value {
        if bytes == 1 || cfg!(target_endian = "big") {
            return value;
        }
        self.b.ins().bswap(value)
    }
}

/// Values that are to be written to memory as they are: for each, the offset of its first byte and the bytes.
pub(crate) type Pieces = Vec<(u32, Value)>;

/// The destination of a [`Packer`].
enum Target {
    /// Memory.
    Memory(Value),
    /// A list, to be written to memory later. The number is the offset of the first byte.
    Pieces(u32, Pieces),
}

/// Concatenates values into bytes, the first value first, most significant bit first.
pub(crate) struct Packer {
    target: Target,
    /// Number of bytes written.
    written: u32,
    /// The bits to be written next, right-aligned; the bits above them have been written.
    pending: Option<Value>,
    pending_bits: u32,
}

impl Packer {
    /// Number of bytes after the end to which [`Words::pack_end`] may write.
    pub const SLACK: u32 = 7;

    /// Makes a packer that writes to memory from the address `base` on.
    pub fn new(base: Value) -> Packer {
        Packer::to(Target::Memory(base))
    }

    /// Makes a packer that writes nothing to memory, but collects the bytes in a list, for the offsets from
    /// `first` on.
    pub fn keeping(first: u32) -> Packer {
        Packer::to(Target::Pieces(first, Pieces::new()))
    }

    fn kept(self) -> Pieces {
        match self.target {
            Target::Memory(_) => Pieces::new(),
            Target::Pieces(_, pieces) => pieces,
        }
    }

    fn to(target: Target) -> Packer {
        Packer {
            target,
            written: 0,
            pending: None,
            pending_bits: 0,
        }
    }
}

impl Memory<'_, '_> {
    /// Generates loads of the `bytes` bytes of the packet at the address `from`, and returns them in the
    /// order in which they lie in memory.
    pub(crate) fn load_bytes(&mut self, from: Value, bytes: u32) -> Pieces {
        let size = match bytes {
            8.. => 8,
            4..8 => 4,
            2..4 => 2,
            _ => 1,
        };
        let mut pieces = Pieces::new();
        let mut at = 0;
        while at < bytes {
            // The last piece overlaps the one before it.
            let start = at.min(bytes - size);
            let load = self.packet_memory();
            let value = (self.b.ins()).load(integer(size), load, from, start as i32);
            pieces.push((start, value));
            at = start + size;
        }
        pieces
    }

    /// Generates a sum that is congruent, modulo 2^16 - 1, to that of the 16-bit words of the `bytes` bytes
    /// of the packet at `from`, padded with a zero byte. The sum is below 2^48 for 2^16 words, and zero only
    /// if all bytes are zero.
    pub(crate) fn sum_bytes(&mut self, from: Value, bytes: u32) -> Value {
        let mut sum: Option<Value> = None;
        let mut at = 0;
        while at < bytes {
            let size = match bytes - at {
                4.. => 4,
                2..4 => 2,
                _ => 1,
            };
            let flags = self.packet_memory();
            let offset = at as i32;
            let mut value = match size {
                4 => self.b.ins().uload32(flags, from, offset),
                2 => self.b.ins().uload16(I64, flags, from, offset),
                _ => self.b.ins().uload8(I64, flags, from, offset),
            };
            if size == 1 && cfg!(target_endian = "big") {
                value = self.shl_imm(value, 8);
            }
            sum = Some(match sum {
                None => value,
                Some(sum) => self.b.ins().iadd(sum, value),
            });
            at += size;
        }
        let sum = sum.unwrap_or_else(|| self.imm(0));
        if cfg!(target_endian = "little") {
            // Exchanging the bytes of a word is multiplying it by 2^8, modulo 2^16 - 1.
            return self.shl_imm(sum, 8);
        }
        sum
    }
}

impl Words<'_> {
    /// Appends the bits of a value to the packer, most significant bit first.
    pub(crate) fn pack(&mut self, packer: &mut Packer, value: &Wide) {
        let mut width = value.width;
        for &limb in value.limbs.iter().rev() {
            let bits = (width - 1) % 64 + 1;
            self.pack_limb(packer, limb, bits);
            width -= bits;
        }
    }

    fn pack_limb(&mut self, packer: &mut Packer, limb: Value, bits: u32) {
        let room = 64 - packer.pending_bits;
        let Some(pending) = packer.pending else {
            packer.pending = Some(limb);
            packer.pending_bits = bits;
            return self.pack_flush(packer, bits == 64);
        };
        if bits <= room {
            // Room for 64 bits means nothing pending, so the shift is below 64.
            let up = self.shl_imm(pending, bits);
            packer.pending = Some(self.b.ins().bor(up, limb));
            packer.pending_bits += bits;
            return self.pack_flush(packer, bits == room);
        }
        let up = self.shl_imm(pending, room);
        let first = self.shr_imm(limb, bits - room);
        packer.pending = Some(self.b.ins().bor(up, first));
        self.pack_flush(packer, true);
        // The bits just written stay above, and are shifted out later.
        packer.pending = Some(limb);
        packer.pending_bits = bits - room;
    }

    fn pack_flush(&mut self, packer: &mut Packer, full: bool) {
        if let Some(pending) = packer.pending.filter(|_| full) {
            self.store_packed(packer, pending, 8);
            packer.pending = None;
            packer.pending_bits = 0;
        }
    }

    fn store_packed(&mut self, packer: &mut Packer, value: Value, bytes: u32) {
        let mut value = value;
        if bytes < 8 {
            value = self.b.ins().ireduce(integer(bytes), value);
        }
        let value = self.network_order(value, bytes);
        match &mut packer.target {
            Target::Memory(base) => self.store_pieces(*base, &[(packer.written, value)]),
            Target::Pieces(first, pieces) => pieces.push((*first + packer.written, value)),
        }
        packer.written += bytes;
    }

    /// Generates the write of the packer's last bits, padded with zeros to whole bytes, and returns the
    /// number of bytes packed in all. May write up to [`Packer::SLACK`] zero bytes more.
    pub(crate) fn pack_end(&mut self, mut packer: Packer) -> u32 {
        let total = packer.written + packer.pending_bits.div_ceil(8);
        if let Some(pending) = packer.pending {
            let bytes = packer.pending_bits.div_ceil(8);
            let store = if bytes.is_power_of_two() { bytes } else { 8 };
            let value = self.shl_imm(pending, 8 * store - packer.pending_bits);
            self.store_packed(&mut packer, value, store);
        }
        total
    }

    /// Generates the write of the packer's last bits like [`Words::pack_end`], but of no byte after them.
    /// Returns the bytes that the packer has collected; an empty list if it writes to memory.
    pub(crate) fn pack_end_exactly(&mut self, mut packer: Packer) -> Pieces {
        let mut bytes = packer.pending_bits.div_ceil(8);
        let Some(pending) = packer.pending else {
            return packer.kept();
        };
        let pending = self.shl_imm(pending, 8 * bytes - packer.pending_bits);
        while bytes > 0 {
            let piece = 1 << bytes.ilog2();
            let value = self.shr_imm(pending, 8 * (bytes - piece));
            self.store_packed(&mut packer, value, piece);
            bytes -= piece;
        }
        packer.kept()
    }

    /// Generates code that writes each of `pieces` to memory at its offset from the address `to`.
    pub(crate) fn store_pieces(&mut self, to: Value, pieces: &[(u32, Value)]) {
        for &(at, value) in pieces {
            let flags = MemFlagsData::new().with_notrap();
            self.b.ins().store(flags, value, to, at as i32);
        }
    }
}
