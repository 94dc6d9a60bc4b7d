//! Errors between this process and the kernel, with messages that tell the user what to do.

use std::fmt;
use std::io;

/// A failure between this process and the kernel.
#[derive(Debug)]
pub enum PortError {
    /// The process lacks a privilege. The text names the operation.
    NotPermitted(String),
    /// A program or a feature of the kernel is missing.
    Missing(String),
    /// Another program uses the resource at the moment.
    Busy(String),
    /// The arguments make no sense, as in a name that is too long.
    Invalid(String),
    /// The kernel or the `ip` tool refused for another reason.
    Failed(String),
}

impl PortError {
    /// Converts an I/O error into a [`PortError`] according to its code. `what` describes the failed operation in the
    /// message.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => PortError::NotPermitted(format!(
                "{what}: not permitted; run as root, or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN"
            )),
            Some(libc::EBUSY) => PortError::Busy(format!("{what}: {error}")),
            _ => PortError::Failed(format!("{what}: {error}")),
        }
    }

    /// Converts the error of this thread's last system call into a [`PortError`]. `what` describes the failed operation
    /// in the message.
    pub(crate) fn last(what: impl fmt::Display) -> PortError {
        PortError::io(what, &io::Error::last_os_error())
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortError::NotPermitted(text)
            | PortError::Missing(text)
            | PortError::Busy(text)
            | PortError::Invalid(text)
            | PortError::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for PortError {}
