//! The architecture, its externs, and the limits of this compiler.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use super::plural;

/// A library: right as far as it goes, and nothing to run.
pub(crate) fn no_main(span: Span) -> Diagnostic {
    Diagnostic::warning(
        "W1130",
        span,
        "the program has no `main`: it is checked, and there is nothing to run",
    )
    .hint("end it with `V1Switch(parser(), ..., deparser()) main;`")
}

pub(crate) fn wrong_package(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1131",
        span,
        format!("`main` is a `{found}`, not a `V1Switch` or `PSA_Switch`"),
    )
    .note("programs for other architectures than v1model and PSA cannot be compiled")
}

pub(crate) fn extern_place(span: Span, name: &str, place: &str) -> Diagnostic {
    Diagnostic::error(
        "E1132",
        span,
        format!("`{name}` can only be used in {place}"),
    )
}

pub(crate) fn unknown_extern(span: Span, architecture: &str, name: &str) -> Diagnostic {
    let message = format!("{architecture} has no extern `{name}`");
    Diagnostic::error("E1133", span, message)
}

pub(crate) fn clone_half(span: Span, kind: &str, half: &str) -> Diagnostic {
    Diagnostic::error(
        "E1134",
        span,
        format!("a clone of kind `{kind}` cannot be made in the {half} control"),
    )
}

pub(crate) fn field_list_entry(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1135",
        span,
        "only fields can be preserved, not computed values",
    )
}

pub(crate) fn varbit_digest(span: Span) -> Diagnostic {
    Diagnostic::error("E1136", span, "a varbit cannot be part of a digest")
}

pub(crate) fn extract_header(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1137", span, format!("`{found}` cannot be extracted"))
        .note("only headers can")
}

pub(crate) fn extract_varbit(span: Span, name: &str, has: bool) -> Diagnostic {
    let message = match has {
        true => format!("`{name}` has a varbit field, whose length must be given"),
        false => format!("`{name}` has no varbit field, so no length can be given"),
    };
    Diagnostic::error("E1138", span, message)
}

pub(crate) fn emit_value(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1139", span, format!("`{found}` cannot be emitted"))
        .note("only headers, and what is made of them")
}

pub(crate) fn id_prefix(span: Span, id: u32, wanted: u32) -> Diagnostic {
    Diagnostic::error(
        "E1141",
        span,
        format!("the id {id:#010x} has the wrong first byte; it should be {wanted:#04x}"),
    )
}

pub(crate) fn id_twice(span: Span, id: u32) -> Diagnostic {
    Diagnostic::error("E1142", span, format!("the id {id:#x} is used twice"))
}

pub(crate) fn id_zero(span: Span) -> Diagnostic {
    Diagnostic::error("E1148", span, "the id 0 means that there is none")
}

pub(crate) fn controller_field(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1150",
        span,
        format!(
            "'{name}' has no fixed width; the fields of a header to or from the controller have one"
        ),
    )
}

/// A number that the type of its field in P4Info cannot hold.
pub(crate) fn beyond_p4info(span: Span, what: &str, value: u64, limit: u64) -> Diagnostic {
    Diagnostic::error(
        "E1149",
        span,
        format!("{what} is {value}, and the control plane can be told {limit} at most"),
    )
}

pub(crate) fn control_name_twice(span: Span, name: &str, kind: &str) -> Diagnostic {
    Diagnostic::error(
        "E1143",
        span,
        format!("two {kind}s have the control-plane name `{name}`"),
    )
    .hint("rename one, or give it another `@name`")
}

pub(crate) fn direct_resource_shared(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1144",
        span,
        format!("`{name}` already belongs to another table"),
    )
}

pub(crate) fn action_param_type(span: Span, name: &str, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1145",
        span,
        format!("the control plane cannot set `{name}`, which is of type `{found}`"),
    )
}

pub(crate) fn log_values(span: Span, holes: usize, values: usize) -> Diagnostic {
    let message = format!(
        "the message has {} for {}",
        plural(holes, "place"),
        plural(values, "value")
    );
    Diagnostic::error("E1146", span, message).note("each `{}` takes one value")
}

pub(crate) fn annotation_value(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1147",
        span,
        "a value in a structured annotation must be a constant string, number or truth value",
    )
}

pub(crate) fn unsupported(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("E1190", span, format!("{what} is not supported yet"))
}

pub(crate) fn too_large(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("E1191", span, format!("too large: {what}"))
}

pub(crate) fn violation(span: Span, violation: &ir::verify::VerifyError) -> Diagnostic {
    Diagnostic::error(
        "E1199",
        span,
        format!("the compiled program breaks a limit or rule of the IR: {violation}"),
    )
}

pub(crate) fn main_kind(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(
        "E1270",
        span,
        format!("`main` is {what}, but it must be an instance of a package"),
    )
}

pub(crate) fn lookahead_type(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1271",
        span,
        format!("`{found}` has no fixed size, so it cannot be looked at"),
    )
}

pub(crate) fn emit_not_bytes(span: Span, name: &str) -> Diagnostic {
    Diagnostic::warning(
        "W1272",
        span,
        format!("`{name}` is not whole bytes, so zero bits are emitted after it"),
    )
}
