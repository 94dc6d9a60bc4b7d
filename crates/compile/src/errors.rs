//! Every message the checker and the lowering can give, one constructor function each.
//!
//! Codes from E1000 and W1000; each belongs to exactly one function. `tests/p4/reject/semantic` has a program for each
//! with the text it must give.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use crate::check::scope::StructKind;

fn similar(message: Diagnostic, similar: Option<&str>) -> Diagnostic {
    match similar {
        Some(name) => message.hint(format!("did you mean `{name}`?")),
        None => message,
    }
}

/// A name in backquotes; what has no name is just "this".
fn quoted(name: &str) -> String {
    match name {
        "this" => name.to_string(),
        name => format!("`{name}`"),
    }
}

fn plural(n: usize, noun: &str) -> String {
    match n {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

// Names ----------------------------------------------------------------------------------------------------------------

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

// Types ----------------------------------------------------------------------------------------------------------------

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
    Diagnostic::error(
        "E1029",
        span,
        format!("header `{name}` has {bits} bits, which is not a whole number of bytes"),
    )
    .hint(format!("{} more bits make it whole", 8 - bits % 8))
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
        format!("the elements of a stack must be headers or header unions, not `{found}`"),
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

// Constants ------------------------------------------------------------------------------------------------------------

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

// Values and lvalues -----------------------------------------------------------------------------------------------------

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

// Calls ----------------------------------------------------------------------------------------------------------------

pub(crate) fn argument_count(
    span: Span,
    name: &str,
    wanted: usize,
    found: usize,
    declared: Span,
) -> Diagnostic {
    let message = Diagnostic::error(
        "E1070",
        span,
        format!(
            "`{name}` takes {}, {found} given",
            plural(wanted, "argument")
        ),
    );
    if declared == span {
        message
    } else {
        message.label(declared, "declared here")
    }
}

pub(crate) fn no_overload(span: Span, name: &str, wanted: &[usize], found: usize) -> Diagnostic {
    let counts: Vec<String> = wanted.iter().map(usize::to_string).collect();
    Diagnostic::error(
        "E1071",
        span,
        format!(
            "`{name}` takes {} arguments, {found} given",
            counts.join(" or ")
        ),
    )
}

pub(crate) fn argument_twice(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1072",
        span,
        format!("the argument `{name}` is given twice"),
    )
}

pub(crate) fn no_parameter(span: Span, name: &str, of: &str, like: Option<&str>) -> Diagnostic {
    similar(
        Diagnostic::error("E1073", span, format!("`{of}` has no parameter `{name}`")),
        like,
    )
}

pub(crate) fn ignored_argument(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1074",
        span,
        format!("`_` cannot stand for `{name}`, which is not an `out` parameter"),
    )
}

pub(crate) fn action_param_order(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1075",
        span,
        format!("the parameter `{name}` has a direction but follows one without"),
    )
    .note("parameters that the control plane sets come last")
}

pub(crate) fn constructor_direction(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1076",
        span,
        format!("the constructor parameter `{name}` cannot have a direction"),
    )
}

pub(crate) fn missing_return(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1077",
        span,
        format!("`{name}` can end without returning a value"),
    )
}

pub(crate) fn return_value(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1078",
        span,
        "nothing is returned from here, so `return` takes no value",
    )
}

pub(crate) fn return_without_value(span: Span, wanted: &str) -> Diagnostic {
    Diagnostic::error(
        "E1079",
        span,
        format!("`return` needs a value of type `{wanted}`"),
    )
}

pub(crate) fn exit_place(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1081",
        span,
        "`exit` can only be used in actions and controls",
    )
}

pub(crate) fn outside_loop(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("E1082", span, format!("`{what}` outside of a loop"))
}

pub(crate) fn apply_place(span: Span, what: &str) -> Diagnostic {
    let place = if what == "a parser" {
        "in the states of a parser"
    } else {
        "in the apply block of a control"
    };
    Diagnostic::error("E1083", span, format!("{what} can only be applied {place}"))
}

pub(crate) fn action_place(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1084",
        span,
        "an action cannot be called from a parser or function",
    )
}

pub(crate) fn verify_place(span: Span) -> Diagnostic {
    Diagnostic::error("E1085", span, "`verify` can only be used in parsers")
}

pub(crate) fn direct_apply_constructor(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1086",
        span,
        format!("`{name}` has constructor parameters, so it must be instantiated first"),
    )
}

pub(crate) fn block_params(span: Span, name: &str, wanted: &str, n: usize, m: usize) -> Diagnostic {
    Diagnostic::error(
        "E1087",
        span,
        format!(
            "`{name}` has {}, but `{wanted}` has {n}",
            plural(m, "parameter")
        ),
    )
}

pub(crate) fn block_param(
    span: Span,
    param: &str,
    name: &str,
    of: &str,
    wanted: &str,
    given: &str,
) -> Diagnostic {
    let message =
        format!("the parameter `{param}` of `{name}` is `{given}`, but `{of}` needs `{wanted}`");
    Diagnostic::error("E1088", span, message)
}

pub(crate) fn deprecated(span: Span, name: &str, advice: Option<&str>) -> Diagnostic {
    let message = Diagnostic::warning("W1089", span, format!("`{name}` is deprecated"));
    match advice {
        Some(advice) => message.hint(advice),
        None => message,
    }
}

// Switch, loops --------------------------------------------------------------------------------------------------------

pub(crate) fn switch_subject(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1090", span, format!("`{found}` cannot be switched on"))
}

pub(crate) fn duplicate_label(span: Span) -> Diagnostic {
    Diagnostic::error("E1091", span, "this case is already there")
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

// Parsers --------------------------------------------------------------------------------------------------------------

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
    Diagnostic::error(
        "E1107",
        span,
        format!("the range from {low} to {high} is empty"),
    )
}

pub(crate) fn mask_type(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1108", span, format!("`{found}` has no masks and ranges"))
}

// Tables ---------------------------------------------------------------------------------------------------------------

pub(crate) fn no_actions(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E1110", span, format!("the table `{name}` has no actions"))
}

pub(crate) fn table_key(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("E1111", span, format!("`{found}` cannot be a key"))
}

pub(crate) fn unknown_match_kind(span: Span, name: &str, like: Option<&str>) -> Diagnostic {
    similar(
        Diagnostic::error("E1112", span, format!("there is no match kind `{name}`")),
        like,
    )
}

pub(crate) fn key_without_name(span: Span) -> Diagnostic {
    Diagnostic::error("E1113", span, "this key has no name for the control plane")
        .hint("add `@name(\"...\")` after it")
}

pub(crate) fn not_an_action(span: Span, name: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        "E1114",
        span,
        format!("{} is {what}, not an action", quoted(name)),
    )
}

pub(crate) fn action_not_listed(span: Span, name: &str, table: &str) -> Diagnostic {
    Diagnostic::error(
        "E1115",
        span,
        format!("the action `{name}` is not in the list of table `{table}`"),
    )
    .hint(format!("add `{name};` to its actions"))
}

pub(crate) fn action_listed_twice(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1116",
        span,
        format!("the action `{name}` is listed twice"),
    )
}

pub(crate) fn default_is_tableonly(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1117",
        span,
        format!("`{name}` is `@tableonly` and cannot be the default action"),
    )
}

pub(crate) fn entry_is_defaultonly(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1118",
        span,
        format!("`{name}` is `@defaultonly` and cannot be the action of an entry"),
    )
}

pub(crate) fn entry_match(span: Span, kind: &str) -> Diagnostic {
    Diagnostic::error(
        "E1119",
        span,
        format!("a key with match kind `{kind}` cannot be matched this way"),
    )
}

pub(crate) fn lpm_mask(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1120",
        span,
        "the mask of an lpm key must be ones followed by zeros",
    )
}

pub(crate) fn unknown_property(span: Span, name: &str, like: Option<&str>) -> Diagnostic {
    let message = format!("v1model tables have no property `{name}`; it is ignored");
    similar(Diagnostic::warning("W1121", span, message), like)
}

pub(crate) fn two_lpm_keys(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1122",
        span,
        format!("the table `{name}` has more than one lpm key"),
    )
}

pub(crate) fn entry_range(span: Span, value: &str) -> Diagnostic {
    Diagnostic::error("E1123", span, format!("{value} is not a priority"))
}

// The architecture -----------------------------------------------------------------------------------------------------

pub(crate) fn no_main(span: Span) -> Diagnostic {
    Diagnostic::error("E1130", span, "the program has no `main`")
        .hint("end it with `V1Switch(parser(), ..., deparser()) main;`")
}

pub(crate) fn wrong_package(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1131",
        span,
        format!("`main` is a `{found}`, not a `V1Switch`"),
    )
    .note("programs for other architectures than v1model cannot be compiled")
}

pub(crate) fn extern_place(span: Span, name: &str, place: &str) -> Diagnostic {
    Diagnostic::error(
        "E1132",
        span,
        format!("`{name}` can only be used in {place}"),
    )
}

pub(crate) fn unknown_extern(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E1133", span, format!("v1model has no extern `{name}`"))
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

pub(crate) fn varbit_place(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1136",
        span,
        "a varbit can only be copied, compared with a varbit, emitted and put in a 16-bit checksum",
    )
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

pub(crate) fn unknown_algorithm(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1140",
        span,
        format!("the hash algorithm `{name}` is not supported"),
    )
    .hint("use crc16, crc32, csum16, xor16 or identity")
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

// What this compiler does not do -------------------------------------------------------------------------------------------

pub(crate) fn unsupported(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("E1190", span, format!("{what} is not supported yet"))
}

pub(crate) fn duplicate_entry(span: Span) -> Diagnostic {
    Diagnostic::error("E1124", span, "an earlier entry matches the same")
        .hint("remove one of the two")
}

pub(crate) fn log_values(span: Span, holes: usize, values: usize) -> Diagnostic {
    let message = format!(
        "the message has {} for {}",
        plural(holes, "place"),
        plural(values, "value")
    );
    Diagnostic::error("E1146", span, message).note("each `{}` takes one value")
}

pub(crate) fn violation(span: Span, violation: &ir::verify::VerifyError) -> Diagnostic {
    Diagnostic::error(
        "E1199",
        span,
        format!("the compiled program breaks a limit or rule of the IR: {violation}"),
    )
}

pub(crate) fn top_level_block(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1039",
        span,
        "an instance made at the top level cannot be applied",
    )
    .hint("make it inside of the parser or control that applies it")
}

pub(crate) fn annotation_value(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1147",
        span,
        "a value in a structured annotation must be a constant string, number or truth value",
    )
}

pub(crate) fn too_large(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("E1191", span, format!("too large: {what}"))
}
