//! The messages of the check. `tests/examine.rs` has programs for each.

use syntax::messages;

messages! {
    fn read_of_invalid(name: &str, header: &str) =>
        warning("W1180", "`{name}` is read where `{header}` may be invalid")
            .hint("test `isValid()` before, or explain it: `// allow(invalid): REASON` above the statement");

    fn read_of_unset(name: &str) =>
        warning("W1181", "`{name}` is read where it may have no value")
            .hint("give it a value where it is declared, or explain it: `// allow(unset): REASON` above the statement");

    fn sent_unset(name: &str) =>
        warning("W1182", "`{name}` may be sent without a value: its header was made valid, and nothing was written to it")
            .hint("assign all fields after `setValid()`; other targets send what earlier packets have left in memory");

    fn allowance_without_use() =>
        warning("W1183", "this explains nothing: the statement reads nothing that may not be there");

    fn allowance_without_reason() => warning("W1184", "this gives no reason")
        .hint("write `// allow(invalid): REASON`");

    fn unknown_allowance(kind: &str) => warning("W1185", "there is nothing called `{kind}` to allow")
        .hint("there are `invalid` and `unset`");
}
