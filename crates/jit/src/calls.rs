//! The functions that machine code calls for everything stateful, and for what would be too long to generate in place.
//!
//! Each takes the [`Frame`] first if it needs the switch. Values pass as pointers to limbs in memory that the caller
//! owns. Ids, widths and lengths come from a verified program, so nothing here can be out of bounds; and were there a
//! panic all the same, it would abort at the border of the `extern "C"` function rather than unwind through machine code.

use crate::frame::{Arrival, Frame};
use engine::control::Replica;
use engine::hash::hash;
use engine::table::Lookup;
use engine::{Output, Runtime};
use ir::{
    BinaryOp, Bits, CounterId, DigestId, HashAlgorithm, MeterId, RegisterId, TableId, ValueSetId,
};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// The result of a table lookup, returned in two registers.
#[repr(C)]
pub(crate) struct Found {
    pub args: *const u64,
    /// The position of the action; bit 32 is set on a hit.
    pub action_and_hit: u64,
}

/// Looks up a key of `limbs` limbs in a table, and returns the action and the address of its arguments.
///
/// # Safety
///
/// `frame` is the frame of the running function; `key` points to `limbs` limbs.
pub(crate) unsafe extern "C" fn lookup(
    frame: *mut Frame,
    table: u64,
    key: *const u64,
    limbs: u64,
) -> Found {
    // SAFETY: the caller keeps the contract of `look_up`.
    unsafe {
        look_up(frame, key, limbs, |runtime, key, bytes| {
            runtime.lookup(TableId(table as u32), key, bytes)
        })
    }
}

/// Calls `by` to look up a key, with the runtime, the key and the packet's length in bytes, and returns the
/// action and the address of its arguments.
///
/// # Safety
///
/// `frame` is the frame of the running function; `key` points to `limbs` limbs.
#[inline(always)]
unsafe fn look_up(
    frame: *mut Frame,
    key: *const u64,
    limbs: u64,
    by: impl for<'r> FnOnce(&'r mut Runtime, &[u64], usize) -> Lookup<'r>,
) -> Found {
    // SAFETY: the caller keeps the contract above; the context outlives the run and only shims use it meanwhile.
    let (key, runtime, bytes) = unsafe {
        let context = &mut *(*frame).context;
        let key = from_raw_parts(key, limbs as usize);
        (key, &mut *context.runtime, (*frame).packet_len)
    };
    let found = by(runtime, key, bytes as usize);
    Found {
        args: found.args.as_ptr(),
        action_and_hit: u64::from(found.action) | u64::from(found.hit) << 32,
    }
}

/// Looks up a key of one limb in a table, and returns the action and the address of its arguments.
///
/// # Safety
///
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn lookup_word(frame: *mut Frame, table: u64, key: u64) -> Found {
    // SAFETY: the caller keeps the contract of `lookup`.
    unsafe { lookup(frame, table, &raw const key, 1) }
}

/// Looks up a packed key of `limbs` limbs (fields without gaps between them) in a table that has packed keys,
/// and returns the action and the address of its arguments.
///
/// # Safety
///
/// `frame` is the frame of the running function; `key` points to `limbs` limbs.
pub(crate) unsafe extern "C" fn lookup_packed(
    frame: *mut Frame,
    table: u64,
    key: *const u64,
    limbs: u64,
) -> Found {
    // SAFETY: the caller keeps the contract of `look_up`.
    unsafe {
        look_up(frame, key, limbs, |runtime, key, bytes| {
            runtime.lookup_packed(TableId(table as u32), key, bytes)
        })
    }
}

/// Returns the address of the first limb of a register's cell, valid until the next call of any of these
/// functions.
///
/// # Safety
///
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn register_cell(
    frame: *mut Frame,
    register: u64,
    index: u64,
) -> *const u64 {
    // SAFETY: the caller keeps the contract above.
    let context = unsafe { &mut *(*frame).context };
    (context.runtime)
        .register_read(RegisterId(register as u32), index)
        .as_ptr()
}

/// Returns the value of a register's cell, in a register whose cells have one limb.
///
/// # Safety
///
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn register_read_word(
    frame: *mut Frame,
    register: u64,
    index: u64,
) -> u64 {
    // SAFETY: the caller keeps the contract above.
    let context = unsafe { &mut *(*frame).context };
    (context.runtime).register_read(RegisterId(register as u32), index)[0]
}

/// Writes `value` to a register's cell, in a register whose cells have one limb.
///
/// # Safety
///
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn register_write_word(
    frame: *mut Frame,
    register: u64,
    index: u64,
    value: u64,
) {
    // SAFETY: the caller keeps the contract above.
    let context = unsafe { &mut *(*frame).context };
    (context.runtime).register_write(RegisterId(register as u32), index, &[value]);
}

/// Writes the value at `value` to a register's cell.
///
/// # Safety
///
/// `frame` is the frame of the running function; `value` points to the `limbs` limbs of a cell.
pub(crate) unsafe extern "C" fn register_write(
    frame: *mut Frame,
    register: u64,
    index: u64,
    value: *const u64,
    limbs: u64,
) {
    // SAFETY: the caller keeps the contract above.
    unsafe {
        let context = &mut *(*frame).context;
        let value = from_raw_parts(value, limbs as usize);
        (context.runtime).register_write(RegisterId(register as u32), index, value);
    }
}

/// Counts the packet in a counter's cell.
///
/// # Safety
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn count(frame: *mut Frame, counter: u64, index: u64) {
    // SAFETY: the caller keeps the contract above.
    unsafe {
        let bytes = (*frame).packet_len as usize;
        let context = &mut *(*frame).context;
        (context.runtime).count(CounterId(counter as u32), index, bytes);
    }
}

/// Runs the packet through a meter's cell, which also counts it, and returns its colour: 0 green, 1 yellow, 2
/// red.
///
/// # Safety
///
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn meter_execute(frame: *mut Frame, meter: u64, index: u64) -> u64 {
    // SAFETY: the caller keeps the contract above.
    let colour = unsafe {
        let bytes = (*frame).packet_len as usize;
        let context = &mut *(*frame).context;
        let now_ps = context.now_ps;
        (context.runtime).meter_execute(MeterId(meter as u32), index, bytes, now_ps)
    };
    colour.into()
}

/// Returns the colour that a direct meter gave to the last hit of its table: 0 green, 1 yellow, 2 red.
///
/// # Safety
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn direct_meter_read(frame: *mut Frame, meter: u64) -> u64 {
    // SAFETY: the caller keeps the contract above.
    let runtime = unsafe { &*(*(*frame).context).runtime };
    runtime.direct_meter_colour(MeterId(meter as u32)).into()
}

/// Returns a random value between two bounds, both included.
///
/// # Safety
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn random(frame: *mut Frame, low: u64, high: u64) -> u64 {
    // SAFETY: the caller keeps the contract above.
    unsafe {
        let context = &mut *(*frame).context;
        context.runtime.random(low, high)
    }
}

/// Queues a digest message with the given values for the control plane.
///
/// # Safety
///
/// `frame` is the frame of the running function; `values` points to `limbs` limbs.
pub(crate) unsafe extern "C" fn digest(
    frame: *mut Frame,
    digest: u64,
    values: *const u64,
    limbs: u64,
) {
    // SAFETY: the caller keeps the contract above.
    unsafe {
        let context = &mut *(*frame).context;
        let values = from_raw_parts(values, limbs as usize);
        (context.runtime).digest(DigestId(digest as u32), values);
    }
}

/// Returns 1 if a key is in a value set, else 0.
///
/// # Safety
/// `frame` is the frame of the running function; `key` points to `limbs` limbs.
pub(crate) unsafe extern "C" fn value_set_contains(
    frame: *mut Frame,
    value_set: u64,
    key: *const u64,
    limbs: u64,
) -> u64 {
    // SAFETY: the caller keeps the contract above.
    let contains = unsafe {
        let context = &mut *(*frame).context;
        let key = from_raw_parts(key, limbs as usize);
        (context.runtime).value_set_contains(ValueSetId(value_set as u32), key)
    };
    contains.into()
}

/// The algorithms by which [`hash_bytes`] hashes.
const ALGORITHMS: [HashAlgorithm; 5] = [
    HashAlgorithm::Crc32,
    HashAlgorithm::Crc16,
    HashAlgorithm::Identity,
    HashAlgorithm::Csum16,
    HashAlgorithm::Xor16,
];

/// Returns the number by which generated code names a hash algorithm in calls of [`hash_bytes`].
pub(crate) fn algorithm_code(algorithm: HashAlgorithm) -> u64 {
    place_in(&ALGORITHMS, algorithm)
}

/// Hashes `data`, followed by the payload if `with_payload` is not zero, into `out`.
///
/// # Safety
/// `frame` is the frame of the running function; `data` points to `bytes` bytes and `out` to `out_limbs` limbs.
pub(crate) unsafe extern "C" fn hash_bytes(
    frame: *mut Frame,
    algorithm: u64,
    data: *const u8,
    bytes: u64,
    with_payload: u64,
    out: *mut u64,
    out_limbs: u64,
) {
    // SAFETY: the caller keeps the contract above; the packet is `packet_len` bytes, of which `consumed` were checked.
    let (data, out, payload) = unsafe {
        let len = match with_payload {
            0 => 0,
            // Of programs with this, packets are stored as a whole.
            _ => (*frame).packet_len as usize,
        };
        let packet = from_raw_parts((*frame).packet.cast_const(), len);
        let payload = packet.get((*frame).consumed as usize..).unwrap_or(&[]);
        (
            from_raw_parts(data, bytes as usize),
            from_raw_parts_mut(out, out_limbs as usize),
            payload,
        )
    };
    hash(ALGORITHMS[algorithm as usize], data, payload, out);
}

/// The operators that [`binary`] computes.
const OPERATORS: [BinaryOp; 6] = [
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Sar,
];

/// Returns the number by which generated code names an operator in calls of [`binary`].
pub(crate) fn operator_code(op: BinaryOp) -> u64 {
    place_in(&OPERATORS, op)
}

/// Returns the position of `element` in `list`: the number that generated code passes instead of the element.
fn place_in<T: PartialEq>(list: &[T], element: T) -> u64 {
    let at = list.iter().position(|each| *each == element);
    at.expect("only what is in the list is called") as u64
}

/// Calculates `out = a op b` for values that are too wide for inline code; `op` is an [`operator_code`].
///
/// # Safety
///
/// `a` and `out` point to the limbs of values of `width` bits, `b` to those of one of `b_width` bits.
pub(crate) unsafe extern "C" fn binary(
    op: u64,
    width: u64,
    b_width: u64,
    a: *const u64,
    b: *const u64,
    out: *mut u64,
) {
    let limbs = |width: u64| width.div_ceil(64) as usize;
    // SAFETY: the caller keeps the contract above.
    let (a, b, out) = unsafe {
        (
            from_raw_parts(a, limbs(width)),
            from_raw_parts(b, limbs(b_width)),
            from_raw_parts_mut(out, limbs(width)),
        )
    };
    let a = Bits::from_limbs(width as u32, a);
    let b = Bits::from_limbs(b_width as u32, b);
    let result = Bits::binary(OPERATORS[op as usize], &a, &b);
    out.copy_from_slice(result.limbs());
}

/// Reads the `bits` bits that start `offset` bits after `base`, in the order of the network, into the
/// `out_limbs` limbs at `out`. Limbs beyond those bits become zero.
///
/// # Safety
///
/// The bytes that these bits are in can be read, and `out` points to `out_limbs` limbs, enough for `bits`
/// bits.
pub(crate) unsafe extern "C" fn read_bits(
    base: *const u8,
    offset: u64,
    bits: u64,
    out: *mut u64,
    out_limbs: u64,
) {
    // SAFETY: the caller keeps the contract above.
    let (bytes, out) = unsafe {
        let bytes = from_raw_parts(base, (offset + bits).div_ceil(8) as usize);
        (bytes, from_raw_parts_mut(out, out_limbs as usize))
    };
    out.fill(0);
    for i in 0..bits {
        // Bit `i` counted from the least significant, which is the last on the wire.
        let at = offset + bits - 1 - i;
        let bit = bytes[(at / 8) as usize] >> (7 - at % 8) & 1;
        out[(i / 64) as usize] |= u64::from(bit) << (i % 64);
    }
}

/// Writes the low `bits` bits of a value, in the order of the network, from `offset` bits after `base` on,
/// and zeros up to the end of the last byte.
///
/// # Safety
///
/// The bytes that these bits are in can be written, those before `offset` in the first of them have been, and
/// `value` points to limbs enough for `bits` bits.
pub(crate) unsafe extern "C" fn append_bits(
    base: *mut u8,
    offset: u64,
    value: *const u64,
    bits: u64,
) {
    let first = (offset / 8) as usize;
    let end = (offset + bits).div_ceil(8) as usize;
    if bits == 0 {
        return;
    }
    // SAFETY: the caller keeps the contract above. Only bytes that this call completes are cleared, through raw writes,
    // because they may be uninitialised.
    let (bytes, value) = unsafe {
        let fresh = (offset.div_ceil(8)) as usize;
        base.add(fresh).write_bytes(0, end - fresh);
        (
            from_raw_parts_mut(base.add(first), end - first),
            from_raw_parts(value, bits.div_ceil(64) as usize),
        )
    };
    for i in 0..bits {
        let bit = value[((bits - 1 - i) / 64) as usize] >> ((bits - 1 - i) % 64) & 1;
        let at = offset % 8 + i;
        bytes[(at / 8) as usize] |= (bit as u8) << (7 - at % 8);
    }
}

/// Makes room for `bytes` more emitted bytes after `end`, the end of those that the deparser has written.
/// Returns the new address of `end`, since the buffer may have moved.
///
/// # Safety
///
/// `frame` is the frame of the running function, and everything from its `emitted` up to `end` has been
/// written.
pub(crate) unsafe extern "C" fn reserve(frame: *mut Frame, end: *mut u8, bytes: u64) -> *mut u8 {
    // SAFETY: the caller keeps the contract above; `emitted` is the vector's own memory.
    unsafe {
        let context = &mut *(*frame).context;
        let used = end.offset_from((*frame).emitted) as usize;
        context.emitted.set_len(used);
        context.emitted.reserve(bytes as usize);
        (*frame).emitted = context.emitted.as_mut_ptr();
        (*frame).emitted.add(used)
    }
}

/// The replicas of a multicast group, returned in two registers.
#[repr(C)]
pub(crate) struct Replicas {
    pub first: *const Replica,
    pub end: *const Replica,
}

/// Returns the address of the first replica of a multicast group and the address after its last one, and
/// resets the frame's count of dropped replicas to zero. The addresses are equal for a group without
/// replicas.
///
/// # Safety
///
/// `frame` is the frame of the running function.
pub(crate) unsafe extern "C" fn replicas(frame: *mut Frame, group: u64) -> Replicas {
    // SAFETY: the caller keeps the contract above; nobody changes groups while the context is there.
    let replicas = unsafe {
        (*frame).replicas_dropped = 0;
        let replicas = (*(*frame).context).replication;
        replicas.map_or(&[][..], |r| r.replicas(group as u32))
    };
    let first = replicas.as_ptr();
    let end = replicas.as_ptr_range().end;
    Replicas { first, end }
}

/// Makes the packet of a replica that leaves at `port`, and returns the address to which its `header_bytes`
/// bytes of headers are to be written. For the last replica, which is the packet that arrived, the address is
/// that of the emitted headers; they replace the front of the packet later, since it may still be read.
///
/// # Safety
///
/// `frame` is the frame of the running function on the fast path, `arrival` that of the packet that is run.
/// The headers are written before anything else is called, and are no longer than what the deparser may
/// write.
pub(crate) unsafe extern "C" fn replica_room(
    frame: *mut Frame,
    arrival: *const Arrival,
    port: u64,
    header_bytes: u64,
    is_last: u64,
) -> *mut u8 {
    // SAFETY: the caller keeps the contract above. The packets stay where they are while the context is there, and nobody else uses
    // them or the spare ones while a function runs.
    let frame = unsafe { &mut *frame };
    // SAFETY: as above.
    let context = unsafe { &mut *frame.context };
    if is_last != 0 {
        context.last = Some(port as u32);
        frame.emitted_len = header_bytes;
        return frame.emitted;
    }
    let at = (arrival.addr() - context.arrivals.addr()) / size_of::<Arrival>();
    // SAFETY: as above; there are as many packets as arrivals.
    let (packet, spare) = unsafe { (&(*context.packets.add(at)).1, (*context.spare).take()) };
    let mut copy = packet.with_room(frame.consumed as usize, header_bytes as usize, spare);
    if let Some(length) = frame.truncate.checked_sub(1) {
        copy.truncate(length as usize);
    }
    // The address is taken where the packet stays: a move of its box says that nobody else has one.
    let copies = &mut context.copies;
    let at = copies.len();
    copies.push(Output::new(port as u32, copy));
    copies[at].packet.first_byte()
}

/// Makes the packet of a replica that leaves at `port` and whose headers lie where the deparser has emitted
/// them.
///
/// # Safety
///
/// As for [`replica_room`]; the frame says how long the headers are.
pub(crate) unsafe extern "C" fn replica_of_emitted(
    frame: *mut Frame,
    arrival: *const Arrival,
    port: u64,
    is_last: u64,
) {
    // SAFETY: the caller keeps the contract above. The room is as long as the headers, and is elsewhere unless they are there already.
    unsafe {
        let (from, bytes) = ((*frame).emitted, (*frame).emitted_len);
        let to = replica_room(frame, arrival, port, bytes, is_last);
        from.copy_to(to, bytes as usize);
    }
}
