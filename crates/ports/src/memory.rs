//! Memory that was freed goes back to the kernel: the setting of the C library's allocator that a switch needs that serves clients.
//!
//! The allocator keeps what was freed for later: it raises the size from which blocks are mapped one by one with each large block that
//! is freed, and of many small blocks it gives nothing back while one of them is in use. A request of megabytes would leave its memory
//! with the process. And a vector of megabytes that is no mapping of its own grows by a copy, which is a pause. It also gives threads
//! arenas of their own, up to eight for each processor, each of which keeps memory beside the others: another thread does not
//! use the blocks that one frees. Other allocators than glibc's are left alone.

/// Blocks of at least this size are memory mappings of their own.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: libc::c_int = 1 << 18;

/// Arenas of the whole process, the first thread's included.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 1;

/// Configures glibc's allocator for the rest of the process. Each block of at least 256 KiB becomes a memory mapping of
/// its own, which is returned to the system when it is freed, and grows without a copy. Smaller blocks of all threads
/// come from one arena, and from those that other threads already use; so call this when a process starts.
pub fn set_up_allocator() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two numbers, and may be called at any time, from any thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}

/// Returns the pages that the process has freed to the system (`malloc_trim`). Takes milliseconds, during which threads
/// that use the same arena of the allocator wait. Does nothing with other allocators than glibc's.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes a number, and may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
