//! The frame of a packet: a fixed layout that generated code addresses by offset.
//!
//! A [`Frame`] is built on the stack for one run of one function and read back when it ends. It knows
//! nothing of the program; [`ir::Layout`] says which slots are where in the state.

use crate::notes::List;
use crate::views::{CellsView, TableView, no_cells, no_views};
use engine::{DropReason, Output, Packet, Replication, Runtime, Spare, Time};

/// One run of one function. All fields are machine words, so that generated code needs one kind of access.
#[repr(C)]
pub(crate) struct Frame {
    /// The state array.
    pub state: *mut u64,
    /// First byte of the packet. The functions that have [`Arrival`]s set it when they call a shim that reads it.
    pub packet: *mut u8,
    /// Length of the packet; the same holds.
    pub packet_len: u64,
    /// Bytes that the parser took; read by payload hashes.
    pub consumed: u64,
    /// The address at which the deparser writes.
    pub emitted: *mut u8,
    /// Bytes that the deparser wrote.
    pub emitted_len: u64,
    /// A [`drop_code`], or zero.
    pub drop: u64,
    /// Not zero if a clone is requested.
    pub clone: u64,
    /// Its session.
    pub clone_session: u64,
    /// The list that it preserves, as a [`preserve_code`].
    pub clone_preserve: u64,
    /// Zero, or one more than a [`preserve_code`].
    pub resubmit: u64,
    /// Zero, or one more than a [`preserve_code`].
    pub recirculate: u64,
    /// Zero, or one more than the length to truncate to.
    pub truncate: u64,
    /// On the fast path, the time.
    pub now_us: u64,
    /// On the fast path, the tables that are looked up in place.
    pub views: *const TableView,
    /// On the fast path, the registers and counters that are reached in place.
    pub cells: *const CellsView,
    /// While packets are prefetched for, where their keys are noted.
    pub notes: *mut List,
    /// On the fast path, not zero unless the slots that live in the state array are zero.
    pub memory_used: u64,
    /// On the fast path, replicas that egress dropped.
    pub replicas_dropped: u64,
    /// The result of a function of [`crate::preserving`]: the address of the arguments.
    pub found_args: *const u64,
    /// The position of the action; bit 32 is set on a hit.
    pub found: u64,
    /// For the functions of [`crate::shims`].
    pub context: *mut Context<'static>,
}

impl Frame {
    /// Makes the frame of a run without any request.
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

/// A packet for the functions that are run on several, one after the other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Its first byte; only the fast path writes there.
    pub packet: *mut u8,
    /// Its length, of which the program's reach is stored there.
    pub len: u64,
    /// Bytes of its memory that are free in front of it; of a packet [`exit::SENT_MOVED`], where its first byte is now.
    pub headroom: u64,
    /// The port at which it arrived.
    pub port: u64,
    /// The code of [`exit`] with which it ended, by the fast path.
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
    /// Time.
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
    /// On the fast path, packets that are done with.
    pub spare: *mut Spare,
    /// The copies of one packet that leave, in order, but for its last.
    pub copies: Vec<Output>,
    /// The port of the last, which the packet itself becomes.
    pub last: Option<u32>,
}

/// The end of the run of a packet on the fast path, in the low byte of [`Arrival::code`]. The port is in the bits above.
pub(crate) mod exit {
    /// The packet is edited where it lies. Nobody truncates it.
    pub const SENT_IN_PLACE: u64 = 0;
    /// Its headers lie in front of its payload, and it begins where [`super::Arrival::headroom`] says. Nobody truncates it.
    pub const SENT_MOVED: u64 = 1;
    /// The headers are emitted.
    pub const SENT: u64 = 2;
    /// [`engine::Exit::AfterIngress`].
    pub const AFTER_INGRESS: u64 = 3;
    /// [`engine::Exit::AfterEgress`].
    pub const AFTER_EGRESS: u64 = 4;
    /// The packet is for the function of all outcomes of the parser; nothing has been done.
    pub const UNSPECIALISED: u64 = 5;
    /// As [`SENT_IN_PLACE`], but that it has to be truncated.
    pub const CUT_IN_PLACE: u64 = 6;
    /// As [`SENT_MOVED`], but that it has to be truncated.
    pub const CUT_MOVED: u64 = 7;
    /// Replicas were made; those that leave are in the context.
    pub const REPLICATED: u64 = 8;
    /// More than this by [`super::drop_code`] is a drop.
    pub const DROPPED: u64 = 16;
}

/// Encodes an optional field list as a word, in which zero means `None`.
pub(crate) fn preserve_code(list: Option<ir::FieldListId>) -> u64 {
    list.map_or(0, |id| u64::from(id.0) + 1)
}

/// Decodes a word that [`preserve_code`] made into an optional field list.
pub(crate) fn preserve_of(code: u64) -> Option<ir::FieldListId> {
    (code.checked_sub(1)).map(|id| ir::FieldListId(id as u32))
}

/// Returns the value of [`Frame::drop`] that stands for a reason.
pub(crate) const fn drop_code(reason: DropReason) -> u64 {
    reason as u64 + 1
}

/// Returns the drop reason that a code of [`drop_code`] stands for; `None` if the code is zero or unknown.
pub(crate) fn drop_reason(code: u64) -> Option<DropReason> {
    let at = usize::try_from(code.checked_sub(1)?).ok()?;
    DropReason::ALL.get(at).copied()
}
