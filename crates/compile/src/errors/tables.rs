//! Tables.

use syntax::messages;
use syntax::source::Span;

use super::quoted;

messages! {
    fn no_actions(name: &str) => error("E1110", "the table `{name}` has no actions");

    fn table_key(found: &str) => error("E1111", "`{found}` cannot be a key");

    fn unknown_match_kind(name: &str, like: Option<&str>) =>
        error("E1112", "there is no match kind `{name}`")
            .suggest(like);

    fn key_without_name() => error("E1113", "this key has no name for the control plane")
        .hint("add `@name(\"...\")` after it");

    fn key_name_twice(name: &str, first: Span) =>
        error("E1109", "two fields of this key have the control-plane name `{name}`")
            .label(first, "this is the other")
            .hint("give one of them another `@name`");

    fn not_an_action(name: &str, what: &str) =>
        error("E1114", "{} is {what}, not an action", quoted(name));

    fn action_not_listed(name: &str, table: &str) =>
        error("E1115", "the action `{name}` is not in the list of table `{table}`")
            .hint(format!("add `{name};` to its actions"));

    fn action_listed_twice(name: &str) => error("E1116", "the action `{name}` is listed twice");

    fn default_is_tableonly(name: &str) =>
        error("E1117", "`{name}` is `@tableonly` and cannot be the default action");

    fn entry_is_defaultonly(name: &str) =>
        error("E1118", "`{name}` is `@defaultonly` and cannot be the action of an entry");

    fn entry_match(kind: &str) =>
        error("E1119", "a key with match kind `{kind}` cannot be matched this way");

    fn lpm_mask() => error("E1120", "the mask of an lpm key must be ones followed by zeros");

    fn unknown_property(architecture: &str, name: &str, like: Option<&str>) =>
        warning("W1121", "{architecture} tables have no property `{name}`; it is ignored").suggest(like);

    fn two_lpm_keys(name: &str) => error("E1122", "the table `{name}` has more than one lpm key");

    fn entry_range(value: &str) => error("E1123", "{value} is not a priority");

    fn duplicate_entry() => error("E1124", "an earlier entry matches the same")
        .hint("remove one of the two");

    fn property_order(name: &str, after: &str) =>
        error("E1240", "`{name}` must come after `{after}`, which it refers to");

    fn entries_without_key(table: &str) =>
        error("E1241", "the table `{table}` has no key, so it cannot have entries");

    fn bound_argument(param: &str) =>
        error("E1242", "the argument of `{param}` must be the one in the table's list of actions");

    fn no_action_params() =>
        error("E1243", "`NoAction`, which tables without a default action run, cannot have parameters");

    fn first_priority() =>
        error("E1244", "the first entry must have a priority, since a later one has");

    fn needless_priority(table: &str) =>
        error("E1245", "the entries of `{table}` cannot have priorities")
            .note("only tables with a ternary, range or optional key have them");

    fn priority_of_const() =>
        error("E1246", "a `const` entry cannot have a priority: the first entry that matches wins");
}
