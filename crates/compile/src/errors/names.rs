//! Names, and what they do not mean.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use super::{quoted, similar};

pub(crate) fn unknown_name(span: Span, name: &str, like: Option<&str>) -> Diagnostic {
    let message = Diagnostic::error("E1001", span, format!("unknown name `{name}`"));
    match like {
        Some(_) => similar(message, like),
        None => message.hint("names must be declared before they are used"),
    }
}

pub(crate) fn duplicate(span: Span, name: &str, first: Span) -> Diagnostic {
    Diagnostic::error("E1002", span, format!("`{name}` is declared twice"))
        .label(first, "first declared here")
}

pub(crate) fn duplicate_member(span: Span, name: &str, of: &str) -> Diagnostic {
    Diagnostic::error(
        "E1003",
        span,
        format!("`{name}` is already a member of `{of}`"),
    )
}

pub(crate) fn not_a_type(span: Span, name: &str, what: &str) -> Diagnostic {
    Diagnostic::error("E1004", span, format!("`{name}` is {what}, not a type"))
}

pub(crate) fn not_a_value(span: Span, name: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        "E1005",
        span,
        format!("{} is {what}, not a value", quoted(name)),
    )
}

pub(crate) fn not_callable(span: Span, name: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        "E1006",
        span,
        format!("{} is {what} and cannot be called", quoted(name)),
    )
}

pub(crate) fn no_field(span: Span, name: &str, of: &str, like: Option<&str>) -> Diagnostic {
    similar(
        Diagnostic::error("E1007", span, format!("`{of}` has no field `{name}`")),
        like,
    )
}

pub(crate) fn no_member(span: Span, name: &str, of: &str, like: Option<&str>) -> Diagnostic {
    similar(
        Diagnostic::error("E1008", span, format!("`{of}` has no member `{name}`")),
        like,
    )
}

pub(crate) fn no_method(span: Span, name: &str, of: &str, like: Option<&str>) -> Diagnostic {
    similar(
        Diagnostic::error("E1009", span, format!("`{of}` has no method `{name}`")),
        like,
    )
}

pub(crate) fn type_without_members(span: Span) -> Diagnostic {
    Diagnostic::error("E1010", span, "this type has no members to name")
}

pub(crate) fn declaration_place(span: Span) -> Diagnostic {
    Diagnostic::error("E1011", span, "this cannot be declared here")
}

pub(crate) fn top_level_variable(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1012",
        span,
        "a variable cannot be declared outside of a parser, control, function or action",
    )
    .hint("make it a `const`, or a local of the control that uses it")
}

pub(crate) fn recursion(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E1013", span, format!("`{name}` calls itself")).note("P4 has no recursion")
}

pub(crate) fn annotation_twice(span: Span, name: &str, first: Span) -> Diagnostic {
    Diagnostic::error(
        "E1260",
        span,
        format!("there is another annotation `@{name}` here"),
    )
    .label(first, "this one")
    .note("a structured annotation is the only one of its name")
}

pub(crate) fn annotation_string(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E1261", span, format!("`@{name}` needs one string"))
}

pub(crate) fn annotation_number(span: Span, name: &str, limit: u32) -> Diagnostic {
    Diagnostic::error(
        "E1264",
        span,
        format!("`@{name}` needs one number from 0 to {limit}"),
    )
}

/// What `@pkginfo` and `@platform_property` have.
pub(crate) fn annotation_pairs(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1265",
        span,
        format!("`@{name}` needs keys and values: `key = value, ...`"),
    )
}

pub(crate) fn annotation_pair(span: Span, key: &str, wanted: &str) -> Diagnostic {
    Diagnostic::error(
        "E1266",
        span,
        format!("the value of `{key}` must be {wanted}"),
    )
}

pub(crate) fn unknown_annotation_key(
    span: Span,
    key: &str,
    annotation: &str,
    like: Option<&str>,
) -> Diagnostic {
    let message = format!("`@{annotation}` has no key `{key}`; it is ignored");
    similar(Diagnostic::warning("W1267", span, message), like)
}

pub(crate) fn size_semantics(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1268",
        span,
        "`@selector_size_semantics` needs \"sum_of_weights\" or \"sum_of_members\"",
    )
}

pub(crate) fn role_twice(span: Span, first: Span) -> Diagnostic {
    Diagnostic::error("E1269", span, "an object can be of one role only")
        .label(first, "it is of this one")
}

pub(crate) fn annotation_match_kind(span: Span) -> Diagnostic {
    Diagnostic::error("E1262", span, "`@match` needs the name of a match kind")
}

pub(crate) fn annotation_translation(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1263",
        span,
        "`@p4runtime_translation` needs a URI and `string`, or a number of bits from 1 to 65536 (or `bit<n>`)",
    )
}
