//! Tables.

use syntax::diagnostics::Diagnostic;
use syntax::source::Span;

use super::{quoted, similar};

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

pub(crate) fn duplicate_entry(span: Span) -> Diagnostic {
    Diagnostic::error("E1124", span, "an earlier entry matches the same")
        .hint("remove one of the two")
}

pub(crate) fn property_order(span: Span, name: &str, after: &str) -> Diagnostic {
    Diagnostic::error(
        "E1240",
        span,
        format!("`{name}` must come after `{after}`, which it refers to"),
    )
}

pub(crate) fn entries_without_key(span: Span, table: &str) -> Diagnostic {
    Diagnostic::error(
        "E1241",
        span,
        format!("the table `{table}` has no key, so it cannot have entries"),
    )
}

pub(crate) fn bound_argument(span: Span, param: &str) -> Diagnostic {
    Diagnostic::error(
        "E1242",
        span,
        format!("the argument of `{param}` must be the one in the table's list of actions"),
    )
}

pub(crate) fn no_action_params(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1243",
        span,
        "`NoAction`, which tables without a default action run, cannot have parameters",
    )
}

pub(crate) fn first_priority(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1244",
        span,
        "the first entry must have a priority, since a later one has",
    )
}

pub(crate) fn needless_priority(span: Span, table: &str) -> Diagnostic {
    Diagnostic::error(
        "E1245",
        span,
        format!("the entries of `{table}` cannot have priorities"),
    )
    .note("only tables with a ternary, range or optional key have them")
}

pub(crate) fn priority_of_const(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E1246",
        span,
        "a `const` entry cannot have a priority: the first entry that matches wins",
    )
}
