//! Values: operators, members, initialisers and what can be written to.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use super::plural;

pub(crate) fn not_an_lvalue(span: Span) -> Diagnostic {
    Diagnostic::error("E1060", span, "this cannot be written to")
        .note("only variables, their fields, elements and slices can")
}

pub(crate) fn read_only(span: Span, name: &str, what: &str, declared: Span) -> Diagnostic {
    Diagnostic::error(
        "E1061",
        span,
        format!("`{name}` is {what} and cannot be written to"),
    )
    .label(declared, "declared here")
}

pub(crate) fn not_indexable(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1062", span, format!("`{found}` has no elements"))
        .note("header stacks and tuples have")
}

pub(crate) fn not_sliceable(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1063", span, format!("`{found}` has no bits to slice"))
}

pub(crate) fn initialiser_count(span: Span, of: &str, wanted: usize, found: usize) -> Diagnostic {
    Diagnostic::error(
        "E1064",
        span,
        format!("{of} has {}, {found} given", plural(wanted, "member")),
    )
}

pub(crate) fn field_missing(span: Span, field: &str, of: &str) -> Diagnostic {
    Diagnostic::error(
        "E1065",
        span,
        format!("the field `{field}` of `{of}` has no value"),
    )
    .hint("add it, or `...` for default values")
}

pub(crate) fn stack_property_place(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1066",
        span,
        format!("`{name}` of a header stack can only be used in parsers"),
    )
}

pub(crate) fn no_default_value(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("E1250", span, format!("`{ty}` has no default value"))
}
