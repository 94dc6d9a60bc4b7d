//! Types, and constants that do not fit them.

use syntax::diagnostics::Diagnostic;
use syntax::messages;
use syntax::source::Span;

use super::plural;
use crate::types::StructKind;

messages! {
    fn type_mismatch(wanted: &str, found: &str) =>
        error("E1020", "expected `{wanted}`, found `{found}`");
}

pub(crate) fn bad_cast(span: Span, from: &str, to: &str) -> Diagnostic {
    let message = Diagnostic::error("E1021", span, format!("`{from}` cannot be cast to `{to}`"));
    let mixed = |a: &str, b: &str| a.starts_with("bit<") && b.starts_with("int<");
    match mixed(from, to) || mixed(to, from) {
        true => message.hint("a cast changes either the width or the sign: cast twice"),
        false if from == to => message.hint("leave the cast out"),
        false => message,
    }
}

messages! {
    fn unary_operand(op: &str, found: &str) =>
        error("E1022", "`{op}` cannot be applied to `{found}`");

    fn binary_operands(op: &str, left: &str, right: &str) =>
        error("E1023", "`{op}` cannot be applied to `{left}` and `{right}`");

    fn unsized_int() => error("E1024", "the width of this integer is not known here")
        .hint("give it one, as in `8w1`, or cast it");

    fn bad_width(width: &str) =>
        error("E1025", "{width} is not a width: widths go from 1 to {}", ir::Bits::MAX_WIDTH);

    fn type_argument_count(name: &str, wanted: usize, found: usize) =>
        error("E1026", "`{name}` takes {}, {found} given", plural(wanted, "type argument"));

    fn cannot_infer(param: &str, of: &str) =>
        error("E1027", "the type parameter `{param}` of `{of}` cannot be inferred")
            .hint(format!("write it: `{of}<...>(...)`"));
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

messages! {
    fn header_not_bytes(name: &str, bits: u64) =>
        warning("W1029", "the {bits} bits of `{name}` are not whole bytes, so extracting it always ends in error ParserInvalidArgument");

    fn two_varbits(name: &str) => error("E1030", "header `{name}` has more than one varbit field");

    fn stack_of(found: &str) =>
        error("E1031", "the elements of an array or header stack cannot be of type `{found}`");

    fn bad_stack_size(size: &str) =>
        error("E1032", "{size} is not the size of a header stack: sizes go from 1 to 1024");

    fn enum_underlying(found: &str) => error("E1033", "an enum cannot be represented by `{found}`")
        .hint("use a `bit<n>` or an `int<n>`");

    fn new_type_basis(found: &str) => error("E1034", "a new type cannot be made of `{found}`")
        .hint("use `typedef`, or base it on bit, int or bool");

    fn variable_type(found: &str) => error("E1035", "a variable cannot be of type `{found}`");

    fn instance_as_variable(found: &str) =>
        error("E1036", "`{found}` is not the type of a variable")
            .hint("make an instance: write parentheses after the type");

    fn not_instantiable(found: &str) => error("E1037", "`{found}` has no instances");

    fn instance_without_name() => error("E1038", "this instance has no name and no use");

    fn not_constant(what: &str) => error("E1040", "{what} must be known at compile time");
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

messages! {
    fn division_by_zero() => error("E1042", "division by zero");

    fn negative_division() => error("E1043", "division of negative numbers is not defined");

    fn negative_shift() => error("E1044", "a shift by a negative amount");

    fn signed_shift(found: &str) =>
        error("E1045", "a value cannot be shifted by `{found}`, which may be negative")
            .hint("cast it to `bit`");

    fn constant_too_large() =>
        error("E1046", "this constant has more than {} bits", crate::fold::MAX_BITS);

    fn slice_range(high: &str, low: &str, width: u32) =>
        error("E1047", "bits {high} to {low} are not a slice of {width} bits")
            .note(format!("the first number is the highest bit, from {} down to the second", width - 1));

    fn index_range(index: &str, size: u32) =>
        error("E1048", "there is no element {index} among {size}");

    fn negative_count(value: &str) => error("E1049", "{value} is out of range here");
}

pub(crate) fn static_assert(span: Span, message: Option<&str>) -> Diagnostic {
    let text = match message {
        Some(text) => format!("static assertion failed: {text}"),
        None => "static assertion failed".to_string(),
    };
    Diagnostic::error("E1050", span, text)
}

messages! {
    fn member_type(found: &str, what: &str) =>
        error("E1220", "a member of {what} cannot be of type `{found}`");

    fn type_argument(found: &str) => error("E1221", "`{found}` cannot be a type argument here");

    fn member_value(value: &str, ty: &str) =>
        error("E1222", "{value} is not in the range of `{ty}`");

    fn generic_block(name: &str) =>
        error("E1223", "`{name}` has a body, so it cannot have type parameters")
            .note("types of parsers and controls can be generic, parsers and controls themselves cannot");
}
