//! Functions that machine code calls rarely, and that leave all registers as they were.
//!
//! A call that may happen makes the code generator keep whatever is needed behind it in registers that must be saved at the beginning and
//! restored at the end of the function, for every packet. These calls, for what a lookup in place does not do, cost
//! more when they happen and nothing when they do not. Their results are in the [`Frame`]. On other machines than x86-64 they
//! are ordinary calls, and so they are for Miri, which runs no assembly. This file knows how registers are kept and nothing else.

use crate::calls::{lookup, lookup_word};
use crate::frame::Frame;
use cranelift_codegen::isa::CallConv;

/// Returns the calling convention of this module's functions: `PreserveAll` on x86-64 Unix, else `usual`.
pub(crate) fn call_conv(usual: CallConv) -> CallConv {
    match cfg!(all(target_arch = "x86_64", target_family = "unix")) {
        true => CallConv::PreserveAll,
        false => usual,
    }
}

#[cfg(not(all(target_arch = "x86_64", target_family = "unix", not(miri))))]
pub(crate) use functions::{find, find_word};
#[cfg(all(target_arch = "x86_64", target_family = "unix", not(miri)))]
pub(crate) use keeping_registers::{find, find_word};

/// The functions themselves.
mod functions {
    use super::{Frame, lookup, lookup_word};
    use crate::calls::Found;

    /// Does the same as [`lookup`], but returns the results in the frame. The unused `_packet` parameter stands where
    /// the calling function holds that address, so that it need not be moved.
    ///
    /// # Safety
    /// As for [`lookup`].
    pub(crate) unsafe extern "C" fn find(
        frame: *mut Frame,
        _packet: *mut u8,
        key: *const u64,
        limbs: u64,
        table: u64,
    ) {
        // SAFETY: the caller keeps the contract.
        unsafe { note(frame, lookup(frame, table, key, limbs)) }
    }

    /// Does the same as [`lookup_word`], but returns the results in the frame.
    ///
    /// # Safety
    /// As for [`lookup_word`].
    pub(crate) unsafe extern "C" fn find_word(
        frame: *mut Frame,
        _packet: *mut u8,
        key: u64,
        table: u64,
    ) {
        // SAFETY: the caller keeps the contract.
        unsafe { note(frame, lookup_word(frame, table, key)) }
    }

    /// Writes the result of a lookup to the frame, where the calling code reads it.
    ///
    /// # Safety
    ///
    /// `frame` is the frame of the running function.
    unsafe fn note(frame: *mut Frame, found: Found) {
        // SAFETY: the caller keeps the contract.
        unsafe {
            (*frame).found_args = found.args;
            (*frame).found = found.action_and_hit;
        }
    }
}

/// The same functions, wrapped in code that also keeps the registers which the C calling convention does not.
#[cfg(all(target_arch = "x86_64", target_family = "unix", not(miri)))]
mod keeping_registers {
    use std::arch::naked_asm;

    macro_rules! keeping {
        ($name:ident) => {
            /// Calls the function of the same name with the same arguments, and preserves every register except the
            /// flags.
            ///
            /// # Safety
            /// As for the function.
            #[unsafe(naked)]
            pub(crate) unsafe extern "C" fn $name() {
                naked_asm!(
                    "push rbp",
                    "mov rbp, rsp",
                    "push rax",
                    "push rcx",
                    "push rdx",
                    "push rsi",
                    "push rdi",
                    "push r8",
                    "push r9",
                    "push r10",
                    "push r11",
                    // Generated code has integers only, but the convention says all.
                    "sub rsp, 264",
                    "movups [rsp], xmm0",
                    "movups [rsp + 16], xmm1",
                    "movups [rsp + 32], xmm2",
                    "movups [rsp + 48], xmm3",
                    "movups [rsp + 64], xmm4",
                    "movups [rsp + 80], xmm5",
                    "movups [rsp + 96], xmm6",
                    "movups [rsp + 112], xmm7",
                    "movups [rsp + 128], xmm8",
                    "movups [rsp + 144], xmm9",
                    "movups [rsp + 160], xmm10",
                    "movups [rsp + 176], xmm11",
                    "movups [rsp + 192], xmm12",
                    "movups [rsp + 208], xmm13",
                    "movups [rsp + 224], xmm14",
                    "movups [rsp + 240], xmm15",
                    // The stack is aligned for a call: the return address, ten registers and 264 bytes.
                    "call {function}",
                    "movups xmm0, [rsp]",
                    "movups xmm1, [rsp + 16]",
                    "movups xmm2, [rsp + 32]",
                    "movups xmm3, [rsp + 48]",
                    "movups xmm4, [rsp + 64]",
                    "movups xmm5, [rsp + 80]",
                    "movups xmm6, [rsp + 96]",
                    "movups xmm7, [rsp + 112]",
                    "movups xmm8, [rsp + 128]",
                    "movups xmm9, [rsp + 144]",
                    "movups xmm10, [rsp + 160]",
                    "movups xmm11, [rsp + 176]",
                    "movups xmm12, [rsp + 192]",
                    "movups xmm13, [rsp + 208]",
                    "movups xmm14, [rsp + 224]",
                    "movups xmm15, [rsp + 240]",
                    "add rsp, 264",
                    "pop r11",
                    "pop r10",
                    "pop r9",
                    "pop r8",
                    "pop rdi",
                    "pop rsi",
                    "pop rdx",
                    "pop rcx",
                    "pop rax",
                    "pop rbp",
                    "ret",
                    function = sym super::functions::$name,
                )
            }
        };
    }

    keeping!(find);
    keeping!(find_word);
}
