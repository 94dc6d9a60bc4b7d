//! The frame of a packet: a fixed layout that generated code addresses by offset.
//!
//! A [`Frame`] is built on the stack for one run of one function and read back when it ends. It knows
//! nothing of the program; [`ir::Layout`] says which slots are where in the state.

use crate::notes::List;
use crate::views::{CellsView, TableView, no_cells, no_views};
use engine::{DropReason, Output, Packet, Replication, Runtime, Spare, Time};

/// The data of one run of one function. All fields are machine words, so that generated code needs one kind
/// of access.
#[repr(C)]
pub(crate) struct Frame {
    /// The state array.
    pub state: *mut u64,
    /// First byte of the packet. The functions that have [`Arrival`]s set it when they call a shim that reads it.
    pub packet: *mut u8,
    /// Length of the packet in bytes, set at the same times as `packet`.
    pub packet_len: u64,
    /// Bytes that the parser took; read by payload hashes.
    pub consumed: u64,
    /// The address at which the deparser writes.
    pub emitted: *mut u8,
    /// Number of bytes that the deparser wrote.
    pub emitted_len: u64,
    /// A [`drop_code`], or zero if the packet is not dropped.
    pub drop: u64,
    /// Not zero if a clone is requested.
    pub clone: u64,
    /// The session of the requested clone.
    pub clone_session: u64,
    /// The field list that the clone preserves, as a [`preserve_code`].
    pub clone_preserve: u64,
    /// Zero, or one more than the [`preserve_code`] of a requested resubmission.
    pub resubmit: u64,
    /// Zero, or one more than the [`preserve_code`] of a requested recirculation.
    pub recirculate: u64,
    /// Zero, or one more than the length in bytes to truncate to.
    pub truncate: u64,
    /// On the fast path, the time in microseconds.
    pub now_us: u64,
    /// On the fast path, the tables that are looked up in place.
    pub views: *const TableView,
    /// On the fast path, the registers and counters that are reached in place.
    pub cells: *const CellsView,
    /// The lists in which the prefetch function records keys and indexes.
    pub notes: *mut List,
    /// On the fast path, zero if all slots that live in the state array are zero.
    pub memory_used: u64,
    /// On the fast path, the number of replicas that egress dropped.
    pub replicas_dropped: u64,
    /// The result of a lookup by [`crate::preserving`]: the address of the action's arguments.
    pub found_args: *const u64,
    /// The result of such a lookup: the position of the action; bit 32 is set on a hit.
    pub found: u64,
    /// The data on which the functions of [`crate::shims`] work.
    pub context: *mut Context<'static>,
}

impl Frame {
    /// Makes the frame of a run on the packet of `len` bytes at `packet`, without any request and with the
    /// marks that no table is looked up in place and that the state array may be in use.
    pub fn new(state: *mut u64, packet: *mut u8, len: usize, context: &mut Context<'_>) -> Frame {
        Frame {
            state,
            packet,
            packet_len: len as u64,
            consumed: 0,
            emitted: context.emitted.as_mut_ptr(),
            emitted_len: 0,
            drop: 0,
            clone: 0,
            clone_session: 0,
            clone_preserve: 0,
            resubmit: 0,
            recirculate: 0,
            truncate: 0,
            now_us: 0,
            views: no_views(),
            cells: no_cells(),
            notes: std::ptr::null_mut(),
            memory_used: 1,
            found_args: std::ptr::null(),
            found: 0,
            replicas_dropped: 0,
            context: std::ptr::from_mut(context).cast(),
        }
    }
}

/// A packet, as the functions see it that run several packets one after the other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Its first byte; only the fast path writes there.
    pub packet: *mut u8,
    /// Its length in bytes; as many of them as the program may look into are stored at `packet`.
    pub len: u64,
    /// Bytes of its memory that are free in front of its first byte. After [`exit::SENT_MOVED`], the place
    /// where the packet begins now.
    pub headroom: u64,
    /// The port at which it arrived.
    pub port: u64,
    /// The code of [`exit`] that says what became of it on the fast path.
    pub code: u64,
}

impl Arrival {
    /// Describes a packet for the compiled functions, after storing its first `reach_bytes` bytes in contiguous
    /// memory.
    #[inline]
    pub fn new((port, packet): &mut (u32, Packet), reach_bytes: usize) -> Arrival {
        packet.store(reach_bytes);
        Arrival {
            len: packet.len() as u64,
            packet: packet.first_byte(),
            headroom: packet.headroom() as u64,
            port: (*port).into(),
            code: 0,
        }
    }
}

impl Frame {
    /// Sets the packet on which the function runs.
    #[inline]
    pub fn set_packet(&mut self, arrival: &Arrival) {
        self.packet = arrival.packet;
        self.packet_len = arrival.len;
    }

    /// Returns the bytes that the deparser wrote.
    ///
    /// # Safety
    /// The function that the frame was for has ended and written `emitted_len` bytes behind `emitted`, memory that stays as it is while
    /// the result is used.
    pub unsafe fn emitted_bytes(&self) -> &[u8] {
        // SAFETY: the caller keeps the contract above.
        unsafe { std::slice::from_raw_parts(self.emitted, self.emitted_len as usize) }
    }
}

/// The data that the functions of [`crate::shims`] work on.
pub(crate) struct Context<'a> {
    /// The time.
    pub now_ps: Time,
    /// Tables and the other stateful objects.
    pub runtime: &'a mut Runtime,
    /// The memory that the deparser writes to.
    pub emitted: &'a mut Vec<u8>,
    /// On the fast path, the multicast groups.
    pub replication: Option<&'a Replication>,
    /// On the fast path, the packets that are run, from the first arrival on.
    pub packets: *const (u32, Packet),
    /// On the fast path, their arrivals.
    pub arrivals: *const Arrival,
    /// On the fast path, packets that are no longer needed, whose memory is reused.
    pub spare: *mut Spare,
    /// The replicas of one packet that leave, in order, except for the last.
    pub copies: Vec<Output>,
    /// The port at which the last replica leaves, for which the packet itself is used.
    pub last: Option<u32>,
}

/// What became of a packet on the fast path, in the low byte of [`Arrival::code`]. The output port is in the
/// bits above.
pub(crate) mod exit {
    /// The packet was edited where it lies, and is not truncated.
    pub const SENT_IN_PLACE: u64 = 0;
    /// Its headers lie in front of its payload, and it begins where [`super::Arrival::headroom`] says. It is
    /// not truncated.
    pub const SENT_MOVED: u64 = 1;
    /// Its headers were emitted to the buffer of the frame.
    pub const SENT: u64 = 2;
    /// It leaves the fast path as [`engine::Exit::AfterIngress`].
    pub const AFTER_INGRESS: u64 = 3;
    /// It leaves the fast path as [`engine::Exit::AfterEgress`].
    pub const AFTER_EGRESS: u64 = 4;
    /// The parser's outcome is one that the function is not specialised for; nothing has been done.
    pub const UNSPECIALISED: u64 = 5;
    /// As [`SENT_IN_PLACE`], but the packet has to be truncated.
    pub const CUT_IN_PLACE: u64 = 6;
    /// As [`SENT_MOVED`], but the packet has to be truncated.
    pub const CUT_MOVED: u64 = 7;
    /// Replicas were made; those that leave are in the [`super::Context`].
    pub const REPLICATED: u64 = 8;
    /// A code of this plus a [`super::drop_code`] is a drop.
    pub const DROPPED: u64 = 16;
}

/// Encodes the field list that a clone, resubmission or recirculation preserves as a word: zero for none,
/// else its number plus one.
pub(crate) fn preserve_code(list: Option<ir::FieldListId>) -> u64 {
    list.map_or(0, |id| u64::from(id.0) + 1)
}

/// Returns the field list that a word of [`preserve_code`] stands for; `None` for zero.
pub(crate) fn preserve_of(code: u64) -> Option<ir::FieldListId> {
    (code.checked_sub(1)).map(|id| ir::FieldListId(id as u32))
}

/// Returns the word that stands for a drop reason in [`Frame::drop`]; never zero.
pub(crate) const fn drop_code(reason: DropReason) -> u64 {
    reason as u64 + 1
}

/// Returns the drop reason that a code of [`drop_code`] stands for; `None` if the code is zero or unknown.
pub(crate) fn drop_reason(code: u64) -> Option<DropReason> {
    let at = usize::try_from(code.checked_sub(1)?).ok()?;
    DropReason::ALL.get(at).copied()
}
