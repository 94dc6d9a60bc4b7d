//! Calls and arguments, and places where something cannot be done.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use super::{plural, similar};

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

pub(crate) fn top_level_block(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1039",
        span,
        "an instance made at the top level cannot be applied",
    )
    .hint("make it inside of the parser or control that applies it")
}

pub(crate) fn ambiguous_call(span: Span, name: &str, first: Span, second: Span) -> Diagnostic {
    Diagnostic::error(
        "E1200",
        span,
        format!("more than one `{name}` takes these arguments"),
    )
    .label(first, "this one does")
    .label(second, "and so does this one")
    .hint("give the arguments by name")
}

pub(crate) fn param_type(span: Span, found: &str, of: &str) -> Diagnostic {
    Diagnostic::error(
        "E1201",
        span,
        format!("a parameter of {of} cannot be of type `{found}`"),
    )
}

pub(crate) fn param_direction(span: Span, name: &str, ty: &str) -> Diagnostic {
    Diagnostic::error(
        "E1202",
        span,
        format!("the parameter `{name}` of type `{ty}` cannot have a direction"),
    )
}

pub(crate) fn default_of_out(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1203",
        span,
        format!("the parameter `{name}` is written to, so it cannot have a default value"),
    )
}

pub(crate) fn default_of_optional(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1204",
        span,
        format!("the parameter `{name}` is optional, so it cannot have a default value"),
    )
}

pub(crate) fn optional_place(span: Span, name: &str, of: &str) -> Diagnostic {
    Diagnostic::error(
        "E1205",
        span,
        format!("the parameter `{name}` of {of} cannot be optional"),
    )
    .note("externs, packages and types of parsers and controls can have optional parameters")
}

pub(crate) fn instance_place(span: Span, ty: &str, place: &str) -> Diagnostic {
    Diagnostic::error(
        "E1206",
        span,
        format!("`{ty}` cannot be instantiated {place}"),
    )
}

pub(crate) fn body_of(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error(
        "E1207",
        span,
        format!("an instance of `{ty}` cannot have a body"),
    )
    .note("only instances of externs with abstract methods have one")
}

pub(crate) fn abstract_method(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1208",
        span,
        format!("this instance does not provide the abstract method `{name}`"),
    )
    .hint("declare the instance with a body")
}

pub(crate) fn no_abstract_method(
    span: Span,
    name: &str,
    of: &str,
    like: Option<&str>,
) -> Diagnostic {
    let message = format!("`{of}` has no such abstract method `{name}`");
    similar(Diagnostic::error("E1209", span, message), like)
}

pub(crate) fn constructor_type(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E1210",
        span,
        format!("the constructor of `{name}` cannot have a return type"),
    )
}

pub(crate) fn return_type(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E1211",
        span,
        format!("`{found}` cannot be the return type of an extern"),
    )
}
