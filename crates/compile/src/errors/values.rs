//! Values: operators, members, initialisers and what can be written to.

use syntax::messages;
use syntax::source::Span;

use super::plural;

messages! {
    fn not_an_lvalue() => error("E1060", "this cannot be written to")
        .note("only variables, their fields, elements and slices can");

    fn read_only(name: &str, what: &str, declared: Span) =>
        error("E1061", "`{name}` is {what} and cannot be written to")
            .label(declared, "declared here");

    fn not_indexable(found: &str) => error("E1062", "`{found}` has no elements")
        .note("header stacks and tuples have");

    fn not_sliceable(found: &str) => error("E1063", "`{found}` has no bits to slice");

    fn initialiser_count(of: &str, wanted: usize, found: usize) =>
        error("E1064", "{of} has {}, {found} given", plural(wanted, "member"));

    fn field_missing(field: &str, of: &str) =>
        error("E1065", "the field `{field}` of `{of}` has no value")
            .hint("add it, or `...` for default values");

    fn stack_property_place(name: &str) =>
        error("E1066", "`{name}` of a header stack can only be used in parsers");

    fn no_default_value(ty: &str) => error("E1250", "`{ty}` has no default value");
}
