//! Memory shared with the kernel, or given to it: mapped on creation, unmapped on drop.
//!
//! It knows sizes and bounds, but not the meaning of the bytes.

use crate::PortError;
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU32;

/// A mapped region.
pub(crate) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the region belongs to this value alone; the kernel's use of it does not depend on the thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of a descriptor's memory from `offset` on, which is then shared with the kernel. All pages
    /// are present when this returns. `what` describes the memory in errors.
    pub(crate) fn of_descriptor(
        fd: RawFd,
        offset: libc::off_t,
        bytes: usize,
        what: &str,
    ) -> Result<Mapping, PortError> {
        Mapping::map(fd, offset, bytes, libc::MAP_SHARED, what)
    }

    /// Maps `bytes` bytes of fresh memory of this process, all zeros. `what` describes the memory in errors.
    pub(crate) fn anonymous(bytes: usize, what: &str) -> Result<Mapping, PortError> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Mapping::map(-1, 0, bytes, flags, what)
    }

    fn map(
        fd: RawFd,
        offset: libc::off_t,
        bytes: usize,
        flags: libc::c_int,
        what: &str,
    ) -> Result<Mapping, PortError> {
        // SAFETY: a new region at an address that the kernel chooses; the result is checked.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_POPULATE,
                fd,
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(PortError::last(what));
        }
        Ok(Mapping {
            start: start.cast(),
            bytes,
        })
    }

    /// Returns the address of the region's first byte.
    pub(crate) fn address(&self) -> *mut u8 {
        self.start
    }

    /// Returns the 32-bit word at `offset`, which both the kernel and this process read and write; `None` if it is
    /// outside of the region or not aligned.
    pub(crate) fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let fits = offset.checked_add(4).is_some_and(|end| end <= self.bytes);
        if !fits || !offset.is_multiple_of(4) {
            return None;
        }
        // SAFETY: in bounds and aligned (the region begins on a page); accessed only atomically on this side, and the region
        // lives as long as `self`.
        Some(unsafe { &*self.start.add(offset).cast::<AtomicU32>() })
    }

    /// Returns the `length` bytes of the region from `offset` on; `None` if the region does not contain them all.
    ///
    /// # Safety
    /// Until the slice is gone, the kernel must not write to these bytes, and nobody else may refer to them.
    pub(crate) unsafe fn bytes_mut(&mut self, offset: usize, length: usize) -> Option<&mut [u8]> {
        let end = offset.checked_add(length)?;
        if end > self.bytes {
            return None;
        }
        // SAFETY: in bounds; the rest is the caller's promise. Every byte was initialised by the kernel.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), length) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the region is ours, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
