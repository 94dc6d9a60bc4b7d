//! Names, and what they do not mean.

use syntax::diagnostics::Diagnostic;
use syntax::messages;
use syntax::source::Span;

use super::quoted;

/// Makes the error for a name that nothing declares. The hint names `file`, a library file that declares the
/// name and that the program does not include; else `like`, a similar name in scope.
pub(crate) fn unknown_name(
    span: Span,
    name: &str,
    file: Option<&str>,
    like: Option<&str>,
) -> Diagnostic {
    let message = Diagnostic::error("E1001", span, format!("unknown name `{name}`"));
    match (file, like) {
        (Some(file), _) => message.hint(format!("`#include <{file}>` declares it")),
        (None, Some(_)) => message.suggest(like),
        (None, None) => message.hint("names must be declared before they are used"),
    }
}

messages! {
    fn duplicate(name: &str, first: Span) => error("E1002", "`{name}` is declared twice")
        .label(first, "first declared here");

    fn duplicate_member(name: &str, of: &str) =>
        error("E1003", "`{name}` is already a member of `{of}`");

    fn not_a_type(name: &str, what: &str) => error("E1004", "`{name}` is {what}, not a type");

    fn not_a_value(name: &str, what: &str) =>
        error("E1005", "{} is {what}, not a value", quoted(name));

    fn not_callable(name: &str, what: &str) =>
        error("E1006", "{} is {what} and cannot be called", quoted(name));

    fn no_field(name: &str, of: &str, like: Option<&str>) =>
        error("E1007", "`{of}` has no field `{name}`")
            .suggest(like);

    fn no_member(name: &str, of: &str, like: Option<&str>) =>
        error("E1008", "`{of}` has no member `{name}`")
            .suggest(like);

    fn no_method(name: &str, of: &str, like: Option<&str>) =>
        error("E1009", "`{of}` has no method `{name}`")
            .suggest(like);

    fn type_without_members() => error("E1010", "this type has no members to name");

    fn declaration_place() => error("E1011", "this cannot be declared here");

    fn top_level_variable() =>
        error("E1012", "a variable cannot be declared outside of a parser, control, function or action")
            .hint("make it a `const`, or a local of the control that uses it");

    fn recursion(name: &str) => error("E1013", "`{name}` calls itself")
        .note("P4 has no recursion");

    fn annotation_twice(name: &str, first: Span) =>
        error("E1260", "there is another annotation `@{name}` here")
            .label(first, "this one")
            .note("a structured annotation is the only one of its name");

    fn annotation_string(name: &str) => error("E1261", "`@{name}` needs one string");

    fn annotation_number(name: &str, limit: u32) =>
        error("E1264", "`@{name}` needs one number from 0 to {limit}");

    /// Makes the error for an annotation `@pkginfo` or `@platform_property` that does not consist of `key =
    /// value` pairs.
    fn annotation_pairs(name: &str) =>
        error("E1265", "`@{name}` needs keys and values: `key = value, ...`");

    fn annotation_pair(key: &str, wanted: &str) =>
        error("E1266", "the value of `{key}` must be {wanted}");

    fn unknown_annotation_key(key: &str, annotation: &str, like: Option<&str>) =>
        warning("W1267", "`@{annotation}` has no key `{key}`; it is ignored").suggest(like);

    fn size_semantics() =>
        error("E1268", "`@selector_size_semantics` needs \"sum_of_weights\" or \"sum_of_members\"");

    fn role_twice(first: Span) => error("E1269", "an object can be of one role only")
        .label(first, "it is of this one");

    fn annotation_match_kind() => error("E1262", "`@match` needs the name of a match kind");

    fn annotation_translation() =>
        error("E1263", "`@p4runtime_translation` needs a URI and `string`, or a number of bits from 1 to 65536 (or `bit<n>`)");
}

/// Returns the candidate most similar to `name`: the edit distance between the two, without regard to case,
/// may be at most a third of the number of characters of `name`, rounded down. `None` if no candidate is so
/// similar.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = match name.chars().count() {
        0..=2 => 0,
        n => (n / 3).max(1),
    };
    let scored = candidates.filter(|c| *c != name && !c.starts_with("__"));
    scored
        .map(|c| (distance(name, c), c))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, c)| c)
}

/// Counts the insertions, deletions and substitutions of single characters that turn `a` into `b` (the edit
/// distance), without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
