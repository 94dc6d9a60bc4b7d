//! Types, and constants that do not fit them.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use super::plural;
use crate::check::scope::StructKind;

pub(crate) fn type_mismatch(span: Span, wanted: &str, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1020",
        span,
        format!("expected `{wanted}`, found `{found}`"),
    )
}

pub(crate) fn bad_cast(span: Span, from: &str, to: &str) -> Diagnostic {
    let message = Diagnostic::error("E1021", span, format!("`{from}` cannot be cast to `{to}`"));
    let mixed = |a: &str, b: &str| a.starts_with("bit<") && b.starts_with("int<");
    match mixed(from, to) || mixed(to, from) {
        true => message.hint("a cast changes either the width or the sign: cast twice"),
        false => message,
    }
}

pub(crate) fn unary_operand(span: Span, op: &str, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1022",
        span,
        format!("`{op}` cannot be applied to `{found}`"),
    )
}

pub(crate) fn binary_operands(span: Span, op: &str, left: &str, right: &str) -> Diagnostic {
    Diagnostic::error(
        "E1023",
        span,
        format!("`{op}` cannot be applied to `{left}` and `{right}`"),
    )
}

pub(crate) fn unsized_int(span: Span) -> Diagnostic {
    Diagnostic::error("E1024", span, "the width of this integer is not known here")
        .hint("give it one, as in `8w1`, or cast it")
}

pub(crate) fn bad_width(span: Span, width: &str) -> Diagnostic {
    Diagnostic::error(
        "E1025",
        span,
        format!(
            "{width} is not a width: widths go from 1 to {}",
            ir::Bits::MAX_WIDTH
        ),
    )
}

pub(crate) fn type_argument_count(
    span: Span,
    name: &str,
    wanted: usize,
    found: usize,
) -> Diagnostic {
    let wanted = plural(wanted, "type argument");
    Diagnostic::error(
        "E1026",
        span,
        format!("`{name}` takes {wanted}, {found} given"),
    )
}

pub(crate) fn cannot_infer(span: Span, param: &str, of: &str) -> Diagnostic {
    Diagnostic::error(
        "E1027",
        span,
        format!("the type parameter `{param}` of `{of}` cannot be inferred"),
    )
    .hint(format!("write it: `{of}<...>(...)`"))
}

pub(crate) fn field_type(span: Span, found: &str, kind: StructKind) -> Diagnostic {
    let (of, allowed) = match kind {
        StructKind::Struct => (
            "struct",
            "a compile-time type or an instance cannot be stored",
        ),
        StructKind::Header => (
            "header",
            "allowed are bit, int, varbit, bool, serializable enums and structs of them",
        ),
        StructKind::Union => ("header union", "allowed are headers"),
    };
    Diagnostic::error(
        "E1028",
        span,
        format!("a field of a {of} cannot be of type `{found}`"),
    )
    .note(allowed)
}

pub(crate) fn header_not_bytes(span: Span, name: &str, bits: u64) -> Diagnostic {
    let message = format!(
        "the {bits} bits of `{name}` are not whole bytes, so extracting it always ends in error ParserInvalidArgument"
    );
    Diagnostic::warning("W1029", span, message)
}

pub(crate) fn two_varbits(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1030",
        span,
        format!("header `{name}` has more than one varbit field"),
    )
}

pub(crate) fn stack_of(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1031",
        span,
        format!("the elements of an array or header stack cannot be of type `{found}`"),
    )
}

pub(crate) fn bad_stack_size(span: Span, size: &str) -> Diagnostic {
    Diagnostic::error(
        "E1032",
        span,
        format!("{size} is not the size of a header stack: sizes go from 1 to 1024"),
    )
}

pub(crate) fn enum_underlying(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1033",
        span,
        format!("an enum cannot be represented by `{found}`"),
    )
    .hint("use a `bit<n>` or an `int<n>`")
}

pub(crate) fn new_type_basis(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1034",
        span,
        format!("a new type cannot be made of `{found}`"),
    )
    .hint("use `typedef`, or base it on bit, int or bool")
}

pub(crate) fn variable_type(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1035",
        span,
        format!("a variable cannot be of type `{found}`"),
    )
}

pub(crate) fn instance_as_variable(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1036",
        span,
        format!("`{found}` is not the type of a variable"),
    )
    .hint("make an instance: write parentheses after the type")
}

pub(crate) fn not_instantiable(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1037", span, format!("`{found}` has no instances"))
}

pub(crate) fn instance_without_name(span: Span) -> Diagnostic {
    Diagnostic::error("E1038", span, "this instance has no name and no use")
}

pub(crate) fn not_constant(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(
        "E1040",
        span,
        format!("{what} must be known at compile time"),
    )
}

pub(crate) fn constant_overflow(span: Span, value: &str, ty: &str, cut: &str) -> Diagnostic {
    let short = |n: &str| match n.len() {
        0..=40 => n.to_string(),
        digits => format!("a number of {digits} digits"),
    };
    let message = format!(
        "{} does not fit `{ty}` and becomes {}",
        short(value),
        short(cut)
    );
    Diagnostic::warning("W1041", span, message)
}

pub(crate) fn division_by_zero(span: Span) -> Diagnostic {
    Diagnostic::error("E1042", span, "division by zero")
}

pub(crate) fn negative_division(span: Span) -> Diagnostic {
    Diagnostic::error("E1043", span, "division of negative numbers is not defined")
}

pub(crate) fn negative_shift(span: Span) -> Diagnostic {
    Diagnostic::error("E1044", span, "a shift by a negative amount")
}

pub(crate) fn signed_shift(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1045",
        span,
        format!("a value cannot be shifted by `{found}`, which may be negative"),
    )
    .hint("cast it to `bit`")
}

pub(crate) fn constant_too_large(span: Span) -> Diagnostic {
    let limit = crate::fold::MAX_BITS;
    Diagnostic::error(
        "E1046",
        span,
        format!("this constant has more than {limit} bits"),
    )
}

pub(crate) fn slice_range(span: Span, high: &str, low: &str, width: u32) -> Diagnostic {
    let message = Diagnostic::error(
        "E1047",
        span,
        format!("bits {high} to {low} are not a slice of {width} bits"),
    );
    message.note(format!(
        "the first number is the highest bit, from {} down to the second",
        width - 1
    ))
}

pub(crate) fn index_range(span: Span, index: &str, size: u32) -> Diagnostic {
    Diagnostic::error(
        "E1048",
        span,
        format!("there is no element {index} among {size}"),
    )
}

pub(crate) fn negative_count(span: Span, value: &str) -> Diagnostic {
    Diagnostic::error("E1049", span, format!("{value} is out of range here"))
}

pub(crate) fn static_assert(span: Span, message: Option<&str>) -> Diagnostic {
    let text = match message {
        Some(text) => format!("static assertion failed: {text}"),
        None => "static assertion failed".to_string(),
    };
    Diagnostic::error("E1050", span, text)
}

pub(crate) fn member_type(span: Span, found: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        "E1220",
        span,
        format!("a member of {what} cannot be of type `{found}`"),
    )
}

pub(crate) fn type_argument(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1221",
        span,
        format!("`{found}` cannot be a type argument here"),
    )
}

pub(crate) fn member_value(span: Span, value: &str, ty: &str) -> Diagnostic {
    Diagnostic::error(
        "E1222",
        span,
        format!("{value} is not in the range of `{ty}`"),
    )
}

pub(crate) fn generic_block(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1223",
        span,
        format!("`{name}` has a body, so it cannot have type parameters"),
    )
    .note("types of parsers and controls can be generic, parsers and controls themselves cannot")
}
