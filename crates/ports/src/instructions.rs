//! The processor's counter of instructions, through perf_event_open(2). It knows nothing of what is counted.
//!
//! Virtual machines and containers often have no such counter. Then opening it is an error, and callers continue without.

use crate::PortError;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// `perf_event_attr` as of its first version (PERF_ATTR_SIZE_VER0); newer kernels accept it.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
}

const HARDWARE: u32 = 0;
const INSTRUCTIONS: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// Counts the instructions that the thread which made the counter executes in user space.
#[derive(Debug)]
pub struct InstructionCounter {
    event: File,
}

impl InstructionCounter {
    /// Opens a counter of this thread's instructions, and starts it. Fails if the processor's counters are not
    /// available.
    pub fn new() -> Result<InstructionCounter, PortError> {
        let attributes = EventAttributes {
            kind: HARDWARE,
            size: size_of::<EventAttributes>() as u32,
            config: INSTRUCTIONS,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..EventAttributes::default()
        };
        let (this_thread, any_processor, no_group, close_on_exec) = (0, -1, -1, 8);
        // SAFETY: the kernel reads `size` bytes of the attributes, which live through the call, and keeps nothing of them.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread,
                any_processor,
                no_group,
                close_on_exec,
            )
        };
        if descriptor < 0 {
            return Err(PortError::io(
                "the processor's counters",
                &io::Error::last_os_error(),
            ));
        }
        // SAFETY: the descriptor is new and nobody else's.
        let event = unsafe { File::from_raw_fd(descriptor as i32) };
        Ok(InstructionCounter { event })
    }

    /// Returns the number of instructions counted since the start; `None` if the counter cannot be read.
    pub fn read(&self) -> Option<u64> {
        let mut count = [0; 8];
        (&self.event).read_exact(&mut count).ok()?;
        Some(u64::from_ne_bytes(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_at_least_a_loop_or_says_why_not() {
        match InstructionCounter::new() {
            Ok(counter) => {
                let before = counter.read().expect("readable");
                let sum = (0..1000u64).fold(0u64, |a, b| std::hint::black_box(a ^ b));
                assert_eq!(std::hint::black_box(sum), (0..1000).fold(0, |a, b| a ^ b));
                let after = counter.read().expect("readable");
                assert!(after - before >= 1000, "{before} {after}");
            }
            Err(error) => assert!(error.to_string().contains("counters"), "{error}"),
        }
    }
}
