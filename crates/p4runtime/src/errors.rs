//! Refusals by their status.

use engine::control::{ControlError, ControlErrorCode};

pub(crate) fn invalid(message: impl Into<String>) -> ControlError {
    ControlError::new(ControlErrorCode::InvalidArgument, message)
}

pub(crate) fn unimplemented(message: impl Into<String>) -> ControlError {
    ControlError::new(ControlErrorCode::Unimplemented, message)
}

pub(crate) fn not_found(message: impl Into<String>) -> ControlError {
    ControlError::new(ControlErrorCode::NotFound, message)
}

pub(crate) fn out_of_range(message: impl Into<String>) -> ControlError {
    ControlError::new(ControlErrorCode::OutOfRange, message)
}

pub(crate) fn denied(message: impl Into<String>) -> ControlError {
    ControlError::new(ControlErrorCode::PermissionDenied, message)
}
