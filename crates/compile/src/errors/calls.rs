//! Calls and arguments, and places where something cannot be done.

use syntax::diagnostics::Diagnostic;
use syntax::messages;
use syntax::source::Span;

use super::plural;

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

messages! {
    fn argument_twice(name: &str) => error("E1072", "the argument `{name}` is given twice");

    fn argument_without_name(of: &str) =>
        error("E1089", "this argument of `{of}` has no name, but others have one")
            .hint("name all arguments of a call, or none");

    fn no_parameter(name: &str, of: &str, like: Option<&str>) =>
        error("E1073", "`{of}` has no parameter `{name}`")
            .suggest(like);

    fn ignored_argument(name: &str) =>
        error("E1074", "`_` cannot stand for `{name}`, which is not an `out` parameter");

    fn action_param_order(name: &str) =>
        error("E1075", "the parameter `{name}` has a direction but follows one without")
            .note("parameters that the control plane sets come last");

    fn constructor_direction(name: &str) =>
        error("E1076", "the constructor parameter `{name}` cannot have a direction");

    fn missing_return(name: &str) => error("E1077", "`{name}` can end without returning a value");

    fn return_value() => error("E1078", "nothing is returned from here, so `return` takes no value");

    fn return_without_value(wanted: &str) =>
        error("E1079", "`return` needs a value of type `{wanted}`");

    fn exit_place() => error("E1081", "`exit` can only be used in actions and controls");

    fn outside_loop(what: &str) => error("E1082", "`{what}` outside of a loop");
}

pub(crate) fn apply_place(span: Span, what: &str) -> Diagnostic {
    let place = if what == "a parser" {
        "in the states of a parser"
    } else {
        "in the apply block of a control"
    };
    Diagnostic::error("E1083", span, format!("{what} can only be applied {place}"))
}

messages! {
    fn action_place() => error("E1084", "an action cannot be called from a parser or function");

    fn verify_place() => error("E1085", "`verify` can only be used in parsers");

    fn direct_apply_constructor(name: &str) =>
        error("E1086", "`{name}` has constructor parameters, so it must be instantiated first");

    fn block_params(name: &str, wanted: &str, n: usize, m: usize) =>
        error("E1087", "`{name}` has {}, but `{wanted}` has {n}", plural(m, "parameter"));

    fn block_param(param: &str, name: &str, of: &str, wanted: &str, given: &str) =>
        error("E1088", "the parameter `{param}` of `{name}` is `{given}`, but `{of}` needs `{wanted}`");
}

pub(crate) fn deprecated(span: Span, name: &str, advice: Option<&str>) -> Diagnostic {
    let message = Diagnostic::warning("W1089", span, format!("`{name}` is deprecated"));
    match advice {
        Some(advice) => message.hint(advice),
        None => message,
    }
}

messages! {
    fn top_level_block() => error("E1039", "an instance made at the top level cannot be applied")
        .hint("make it inside of the parser or control that applies it");

    fn ambiguous_call(name: &str, first: Span, second: Span) =>
        error("E1200", "more than one `{name}` takes these arguments")
            .label(first, "this one does")
            .label(second, "and so does this one")
            .hint("give the arguments by name");

    fn param_type(found: &str, of: &str) =>
        error("E1201", "a parameter of {of} cannot be of type `{found}`");

    fn param_direction(name: &str, ty: &str) =>
        error("E1202", "the parameter `{name}` of type `{ty}` cannot have a direction");

    fn default_of_out(name: &str) =>
        error("E1203", "the parameter `{name}` is written to, so it cannot have a default value");

    fn default_of_optional(name: &str) =>
        error("E1204", "the parameter `{name}` is optional, so it cannot have a default value");

    fn optional_place(name: &str, of: &str) =>
        error("E1205", "the parameter `{name}` of {of} cannot be optional")
            .note("externs, packages and types of parsers and controls can have optional parameters");

    fn instance_place(ty: &str, place: &str) =>
        error("E1206", "`{ty}` cannot be instantiated {place}");

    fn body_of(ty: &str) => error("E1207", "an instance of `{ty}` cannot have a body")
        .note("only instances of externs with abstract methods have one");

    fn abstract_method(name: &str) =>
        error("E1208", "this instance does not provide the abstract method `{name}`")
            .hint("declare the instance with a body");

    fn no_abstract_method(name: &str, of: &str, like: Option<&str>) =>
        error("E1209", "`{of}` has no such abstract method `{name}`").suggest(like);

    fn constructor_type(name: &str) =>
        error("E1210", "the constructor of `{name}` cannot have a return type");

    fn return_type(found: &str) =>
        error("E1211", "`{found}` cannot be the return type of an extern");
}
