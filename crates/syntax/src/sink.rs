//! The list of diagnostics of a run, with a bound.

use crate::diagnostics::{Diagnostic, Severity};
use crate::errors;
use crate::source::Span;

/// Collects diagnostics. Beyond a limit, further ones are not kept; a last one says that there are more.
#[derive(Debug, Default)]
pub struct Sink {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Sink {
    /// The most errors that are kept, and also the most warnings.
    pub const LIMIT: usize = 100;

    /// Adds a diagnostic. Once [`Sink::LIMIT`] diagnostics of its severity are kept, further ones are only
    /// counted, and one message that there are too many is kept in their place.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let (count, last): (_, fn(Span) -> Diagnostic) = match diagnostic.severity {
            Severity::Error => (&mut self.errors, errors::too_many),
            Severity::Warning => (&mut self.warnings, errors::too_many_warnings),
        };
        *count += 1;
        match *count {
            n if n <= Sink::LIMIT => self.list.push(diagnostic),
            n if n == Sink::LIMIT + 1 => self.list.push(last(diagnostic.span)),
            _ => {}
        }
    }

    /// Adds a diagnostic as [`Sink::push`] does, unless an equal diagnostic is already kept.
    pub fn push_new(&mut self, diagnostic: Diagnostic) {
        if !self.list.contains(&diagnostic) {
            self.push(diagnostic);
        }
    }

    /// Returns the diagnostics that have been kept so far.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Returns the number of errors added, including those that were not kept.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Returns whether more than [`Sink::LIMIT`] errors were added, so that further errors are not kept.
    pub fn is_full(&self) -> bool {
        self.errors > Sink::LIMIT
    }

    /// Returns the kept diagnostics, in the order in which they were added.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}
