//! Errors of action profiles and direct meters.

use syntax::messages;

messages! {
    fn selector_width(width: u64) =>
        error("E1280", "the output of an action selector has 1 to 64 bits, not {width}");

    fn entries_with_implementation(table: &str) =>
        error("E1281", "table `{table}` has entries and an implementation")
            .hint("entries in the source cannot name members of an action profile");

    fn direct_meter_outside(meter: &str) =>
        error("E1283", "`{meter}` is read outside the actions of tables")
            .hint("a direct meter is read in the actions of its table");

    fn selector_algorithm() =>
        error("E1140", "a selector cannot choose by `random`: packets of one flow must take one way");
}
