//! Statements and parser states.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use super::{plural, quoted, similar};

pub(crate) fn switch_subject(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1090", span, format!("`{found}` cannot be switched on"))
}

pub(crate) fn duplicate_label(span: Span) -> Diagnostic {
    Diagnostic::error("E1091", span, "this case is already there")
}

pub(crate) fn default_not_last(span: Span, next: Span) -> Diagnostic {
    Diagnostic::error("E1230", span, "`default` must be the last case of a switch")
        .label(next, "this case comes after it")
}

pub(crate) fn action_label(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E1092", span, format!("{} is not an action", quoted(name)))
        .note("a switch on `action_run` has the names of actions as labels")
}

pub(crate) fn action_run_place(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1093",
        span,
        "`action_run` can only be the subject of a `switch`",
    )
}

pub(crate) fn loop_variable(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1094",
        span,
        format!("a range cannot be counted with `{found}`"),
    )
    .hint("use bit or int")
}

pub(crate) fn no_start_state(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1100",
        span,
        format!("the parser `{name}` has no state `start`"),
    )
}

pub(crate) fn reserved_state(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1101",
        span,
        format!("`{name}` is a state that every parser has already"),
    )
}

pub(crate) fn unknown_state(span: Span, name: &str, like: Option<&str>) -> Diagnostic {
    similar(
        Diagnostic::error("E1102", span, format!("there is no state `{name}`")),
        like,
    )
}

pub(crate) fn no_transition(span: Span, name: &str) -> Diagnostic {
    Diagnostic::warning(
        "W1103",
        span,
        format!("the state `{name}` has no transition and so goes to `reject`"),
    )
    .hint("write `transition reject;` or where it should go")
}

pub(crate) fn select_key(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1104", span, format!("`{found}` cannot be selected on"))
}

pub(crate) fn keyset_count(span: Span, what: &str, wanted: usize, found: usize) -> Diagnostic {
    Diagnostic::error(
        "E1105",
        span,
        format!(
            "this {what} needs {}, {found} given",
            plural(wanted, "value")
        ),
    )
}

pub(crate) fn unreachable_case(span: Span) -> Diagnostic {
    Diagnostic::warning(
        "W1106",
        span,
        "this case is never reached, since an earlier one matches everything",
    )
}

pub(crate) fn empty_range(span: Span, low: &str, high: &str) -> Diagnostic {
    Diagnostic::warning(
        "W1107",
        span,
        format!("the range from {low} to {high} is empty, so nothing matches"),
    )
}

pub(crate) fn mask_type(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1108", span, format!("`{found}` has no masks and ranges"))
}

pub(crate) fn never_ends(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1231",
        span,
        format!("the parser `{name}` can reach neither `accept` nor `reject`"),
    )
}
