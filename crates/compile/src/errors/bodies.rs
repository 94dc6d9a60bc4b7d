//! Statements and parser states.

use syntax::messages;
use syntax::source::Span;

use super::{plural, quoted};

messages! {
    fn switch_subject(found: &str) => error("E1090", "`{found}` cannot be switched on");

    fn duplicate_label() => error("E1091", "this case is already there");

    fn default_not_last(next: Span) => error("E1230", "`default` must be the last case of a switch")
        .label(next, "this case comes after it");

    fn action_label(name: &str) => error("E1092", "{} is not an action", quoted(name))
        .note("a switch on `action_run` has the names of actions as labels");

    fn action_run_place() => error("E1093", "`action_run` can only be the subject of a `switch`");

    fn loop_variable(found: &str) => error("E1094", "a range cannot be counted with `{found}`")
        .hint("use bit or int");

    fn no_start_state(name: &str) => error("E1100", "the parser `{name}` has no state `start`");

    fn reserved_state(name: &str) =>
        error("E1101", "`{name}` is a state that every parser has already");

    fn unknown_state(name: &str, like: Option<&str>) => error("E1102", "there is no state `{name}`")
        .suggest(like);

    fn no_transition(name: &str) =>
        warning("W1103", "the state `{name}` has no transition and so goes to `reject`")
            .hint("write `transition reject;` or where it should go");

    fn select_key(found: &str) => error("E1104", "`{found}` cannot be selected on");

    fn keyset_count(what: &str, wanted: usize, found: usize) =>
        error("E1105", "this {what} needs {}, {found} given", plural(wanted, "value"));

    fn unreachable_case() =>
        warning("W1106", "this case is never reached, since an earlier one matches everything");

    fn empty_range(low: &str, high: &str) =>
        warning("W1107", "the range from {low} to {high} is empty, so nothing matches");

    fn mask_type(found: &str) => error("E1108", "`{found}` has no masks and ranges");

    fn never_ends(name: &str) =>
        error("E1231", "the parser `{name}` can reach neither `accept` nor `reject`");
}
