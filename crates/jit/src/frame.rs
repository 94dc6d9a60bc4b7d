//! What machine code sees of a packet: a fixed layout that generated code addresses by offset.
//!
//! A [`Frame`] is built on the stack for one run of one half of the pipeline and read back when it ends. It knows
//! nothing of the program; which slots are where in the state is [`ir::Layout`]'s business.

use engine::PacketContext;

/// One run of one half of the pipeline. All fields are machine words, so that generated code needs one kind of access.
#[repr(C)]
pub(crate) struct Frame {
    /// The state array.
    pub state: *mut u64,
    /// First byte of the packet.
    pub packet: *const u8,
    /// Length of the packet.
    pub packet_len: u64,
    /// Bytes that the parser took; read by payload hashes.
    pub consumed: u64,
    /// Where the deparser writes.
    pub emitted: *mut u8,
    /// Bytes that the deparser wrote.
    pub emitted_len: u64,
    /// A [`drop_code`], or zero.
    pub drop: u64,
    /// Not zero if a clone was asked for.
    pub clone: u64,
    /// Its session.
    pub clone_session: u64,
    /// What it preserves, as a [`preserve_code`].
    pub clone_preserve: u64,
    /// Zero, or one more than a [`preserve_code`].
    pub resubmit: u64,
    /// Zero, or one more than a [`preserve_code`].
    pub recirculate: u64,
    /// Zero, or one more than the length asked for.
    pub truncate: u64,
    /// The context that the frame was made from, for the functions of [`crate::shims`].
    pub context: *mut PacketContext<'static>,
}

/// An optional field list as a word: zero is none.
pub(crate) fn preserve_code(list: Option<ir::FieldListId>) -> u64 {
    list.map_or(0, |id| u64::from(id.0) + 1)
}

/// The inverse of [`preserve_code`].
pub(crate) fn preserve_of(code: u64) -> Option<ir::FieldListId> {
    (code.checked_sub(1)).map(|id| ir::FieldListId(id as u32))
}

/// Values of [`Frame::drop`].
pub(crate) mod drop_code {
    /// [`engine::DropReason::StepLimit`].
    pub const STEP_LIMIT: u64 = 1;
    /// [`engine::DropReason::AssertFailed`].
    pub const ASSERT_FAILED: u64 = 2;
}
