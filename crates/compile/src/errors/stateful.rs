//! What is wrong with action profiles, direct meters and registers of port states.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

pub(crate) fn selector_width(span: Span, width: u64) -> Diagnostic {
    Diagnostic::error(
        "E1280",
        span,
        format!("the output of an action selector has 1 to 64 bits, not {width}"),
    )
}

pub(crate) fn entries_with_implementation(span: Span, table: &str) -> Diagnostic {
    Diagnostic::error(
        "E1281",
        span,
        format!("table `{table}` has entries and an implementation"),
    )
    .hint("entries in the source cannot name members of an action profile")
}

pub(crate) fn direct_meter_outside(span: Span, meter: &str) -> Diagnostic {
    Diagnostic::error(
        "E1283",
        span,
        format!("`{meter}` is read outside the actions of tables"),
    )
    .hint("a direct meter is read in the actions of its table")
}

pub(crate) fn port_state_width(span: Span, width: u32) -> Diagnostic {
    Diagnostic::error(
        "E1284",
        span,
        format!("a register of port states has cells of 1 bit, not {width}"),
    )
}

pub(crate) fn selector_algorithm(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1140",
        span,
        "a selector cannot choose by `random`: packets of one flow must take one way",
    )
}
