//! Every diagnostic of this crate, with one constructor function each ([`messages`]).
//!
//! E00xx comes from the preprocessor, E01xx from single tokens, E02xx from the grammar. A code is never reused for
//! something else. Each constructor has at least one expected text in the tests, which `tests/codes.rs` checks.

use std::path::Path;

use crate::diagnostics::Diagnostic;
use crate::loader::LoadError;
use crate::messages;
use crate::source::Span;

// ---------------------------------------------------------------------------------------------------------------------
// The preprocessor
// ---------------------------------------------------------------------------------------------------------------------

/// Makes the error for a program file that does not exist or cannot be read.
pub(crate) fn cannot_open(span: Span, path: &Path, error: &LoadError) -> Diagnostic {
    let path = path.display();
    match error {
        LoadError::NotFound(_) => {
            Diagnostic::error("E0001", span, format!("there is no file `{path}`"))
        }
        LoadError::Unreadable(_, why) => {
            Diagnostic::error("E0001", span, format!("cannot read `{path}`: {why}"))
        }
    }
}

/// Makes the error for an included file that does not exist or cannot be read. `like` is the name of a
/// similar file that exists.
pub(crate) fn cannot_include(
    span: Span,
    name: &str,
    error: &LoadError,
    like: Option<&str>,
) -> Diagnostic {
    match error {
        LoadError::NotFound(tried) => {
            let mut diagnostic = Diagnostic::error(
                "E0002",
                span,
                format!("cannot find the included file `{name}`"),
            );
            for place in tried {
                diagnostic = diagnostic.note(format!("there is no `{}`", place.display()));
            }
            match like {
                Some(_) => diagnostic.suggest(like),
                None => diagnostic.hint("add the directory it is in to the include directories"),
            }
        }
        LoadError::Unreadable(path, why) => Diagnostic::error(
            "E0002",
            span,
            format!("cannot read the included file `{}`: {why}", path.display()),
        ),
    }
}

messages! {
    /// Reports files that include each other deeper than `limit`, usually because they include each other endlessly.
    fn includes_too_deep(limit: usize) =>
        error("E0003", "files include each other more than {limit} deep")
            .hint("guard the included file with `#ifndef NAME`, `#define NAME` and `#endif`");

    /// Reports an `#include` that does not name a file.
    fn malformed_include() => error("E0004", "`#include` needs a file name")
        .hint("write `#include \"file\"` or `#include <file>`");

    /// Warns of an unknown directive. The reference compiler's preprocessor does not process such lines,
    /// and its lexer skips them.
    fn unknown_directive(name: &str) =>
        warning("W0005", "there is no preprocessor directive `#{name}`; the line is ignored")
            .hint("a comment starts with `//`");

    /// Reports a directive that other preprocessors have and this one does not support.
    fn unsupported_directive(name: &str) => error("E0024", "`#{name}` is not supported");
}

/// Makes an error with the text of an `#error` directive.
pub(crate) fn error_directive(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(
        "E0006",
        span,
        format!("#error {message}").trim_end().to_string(),
    )
}

/// Makes a warning with the text of a `#warning` directive.
pub(crate) fn warning_directive(span: Span, message: &str) -> Diagnostic {
    Diagnostic::warning(
        "W0007",
        span,
        format!("#warning {message}").trim_end().to_string(),
    )
}

messages! {
    /// Reports an `#else`, `#elif` or `#endif` without `#if`.
    fn without_if(directive: &str) => error("E0008", "`#{directive}` without an `#if` before it");

    /// Reports an `#else` or `#elif` after `#else`.
    fn after_else(directive: &str, earlier: Span) =>
        error("E0009", "`#{directive}` after the `#else` of the same `#if`")
            .label(earlier, "the `#else` is here");

    /// Reports an `#if` without `#endif`.
    fn unterminated_if() => error("E0010", "this conditional has no `#endif` in its file");

    /// Reports a directive that needs the name of a macro and has none.
    fn macro_name_expected(directive: &str) =>
        error("E0011", "`#{directive}` needs the name of a macro");

    /// Reports a macro whose parameters are not a list of different names separated by commas.
    fn malformed_macro_params(name: &str) =>
        error("E0012", "the parameters of the macro `{name}` are not a list of different names")
            .hint("for a macro without parameters, leave a blank before the parenthesis");
}

/// Reports a macro that is used with too few or too many arguments.
pub(crate) fn wrong_macro_args(
    span: Span,
    name: &str,
    wanted: usize,
    given: usize,
    definition: Span,
) -> Diagnostic {
    let s = if wanted == 1 { "" } else { "s" };
    let are = if given == 1 { "is" } else { "are" };
    Diagnostic::error(
        "E0013",
        span,
        format!("the macro `{name}` takes {wanted} argument{s}, but {given} {are} given"),
    )
    .label(definition, format!("`{name}` is defined here"))
}

messages! {
    /// Reports a use of a macro whose arguments have no closing parenthesis.
    fn unterminated_macro_use(name: &str) =>
        error("E0014", "the arguments of the macro `{name}` have no closing `)`");

    /// Reports an `#if` whose expression cannot be evaluated.
    fn bad_condition(problem: &str) =>
        error("E0015", "this condition cannot be evaluated: {problem}");

    /// Warns of a macro that is defined again with another meaning.
    fn macro_redefined(name: &str, earlier: Span) =>
        warning("W0016", "the macro `{name}` is defined again with another meaning")
            .label(earlier, "it was defined here before")
            .hint(format!("if that is intended, write `#undef {name}` first"));

    /// Warns of a `##` that joins two texts which together are not one token.
    fn bad_paste(text: &str) =>
        warning("W0017", "`##` makes `{text}`, which is not one token; it stays two")
            .hint("leave the `##` out");

    /// Reports a `##` at the start or end of a macro.
    fn paste_at_edge() => error("E0018", "`##` needs something on both sides");

    /// Warns of a `#`, in a macro with parameters, that no parameter follows.
    fn stringify_needs_param() =>
        warning("W0019", "in a macro with parameters, `#` has a parameter after it; this one stays as it is");

    /// Reports a program that macros or includes have made too large.
    fn program_too_large() => error("E0020", "the program is too large after preprocessing")
        .note("the rest of it was not read; macros or includes that multiply each other are the usual cause");

    /// Reports a `#line` without a valid line number.
    fn malformed_line() =>
        error("E0021", "`#line` needs a line number and perhaps a file name in quotes");

    /// Warns of text after the end of a directive.
    fn extra_in_directive(directive: &str) =>
        warning("W0022", "text after `#{directive}` is ignored")
            .hint("make it a comment");

    /// Warns of blanks between a `\` and the end of its line. The reference compiler's preprocessor warns
    /// of them, too.
    fn loose_splice() =>
        warning("W0025", "blanks after this `\\`; it joins the line with the next one all the same")
            .hint("remove the blanks, or the `\\` if the lines are not to be joined");

    /// Reports a file that is larger than `limit_mb` megabytes.
    fn file_too_large(limit_mb: usize) =>
        error("E0023", "this file has more than {limit_mb} megabytes and was not read");
}

// ---------------------------------------------------------------------------------------------------------------------
// Single tokens
// ---------------------------------------------------------------------------------------------------------------------

/// Reports a character that P4 does not use.
pub(crate) fn unexpected_character(span: Span, text: &str) -> Diagnostic {
    let character = match text.chars().next() {
        Some(c) if c.is_control() => format!("U+{:04X}", u32::from(c)),
        _ => format!("`{text}`"),
    };
    Diagnostic::error("E0100", span, format!("unexpected character {character}"))
}

messages! {
    /// Reports a string without its closing quote.
    fn unterminated_string() => error("E0101", "this string has no closing `\"`");

    /// Reports a comment without its closing `*/`.
    fn unterminated_comment() => error("E0102", "this comment has no closing `*/`");

    /// Reports a token that begins with a digit and is no integer literal of P4; `problem` says why.
    fn malformed_integer(text: &str, problem: &str) =>
        error("E0103", "`{text}` is not an integer: {problem}");
}

// ---------------------------------------------------------------------------------------------------------------------
// The grammar
// ---------------------------------------------------------------------------------------------------------------------

messages! {
    /// Reports that the parser expected `wanted` at this place and found `found`.
    fn expected(wanted: &str, found: &str) => error("E0200", "expected {wanted}, found {found}");

    /// Reports a missing semicolon at the end of a line, after `after`.
    fn missing_semicolon(after: &str) => error("E0202", "missing `;` after {after}");

    /// Reports a `{` at `open` without its `}`; `what` names the construct that it opens.
    fn unclosed_brace(what: &str, open: Span) =>
        error("E0203", "missing `}}` at the end of the {what}")
            .label(open, format!("the {what} starts here"));

    /// Reports nesting or chains of operators that are deeper than the parser's limit.
    fn too_deep() => error("E0204", "this is nested too deeply")
        .note("the rest of the program was not read");
}

/// Makes the error for a declaration of `what` at a place where it is not allowed. `place` describes that
/// place, and `belongs` the places where it is allowed (empty for no hint).
pub(crate) fn misplaced(span: Span, what: &str, place: &str, belongs: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error("E0205", span, format!("{what} cannot be declared {place}"));
    if belongs.is_empty() {
        diagnostic
    } else {
        diagnostic.hint(format!("it can be declared {belongs}"))
    }
}

messages! {
    /// Reports a word or `}` outside of the declaration that should contain it.
    fn stray(text: &str) => error("E0206", "`{text}` cannot stand outside of a declaration")
        .hint("look for a `}` too many before it");

    /// Reports a keyword where a name is expected; `what` describes the name.
    fn keyword_as_name(keyword: &str, what: &str) =>
        error("E0207", "expected {what}, but `{keyword}` is a keyword");

    /// Reports a comma at the end of a list that may not end with one.
    fn trailing_comma() => error("E0208", "this list may not end with a comma");

    /// Reports a `_` where a value is expected.
    fn dont_care_value() => error("E0209", "`_` is not a value")
        .note("it can stand for a whole argument, a whole type argument or a whole key set");

    /// Reports a type where a value is expected.
    fn type_as_value(text: &str) => error("E0210", "expected an expression, but `{text}` is a type")
        .hint("a cast has parentheses around the type: `(bit<8>) value`");

    /// Reports a `...` that is not at the end of its list.
    fn dots_not_last() => error("E0211", "`...` can only stand at the end of the list");

    /// Reports an increment such as `i++`, which P4 does not have.
    fn increment() => error("E0212", "`++` joins two values; there is nothing on its right")
        .hint("to add one, write `+= 1`");

    /// Reports an assignment to an expression that is no variable or part of one.
    fn not_assignable() => error("E0213", "nothing can be assigned to this expression")
        .note("the left side must be a variable, perhaps with members, indices and slices");

    /// Reports an expression that is used as a statement, such as `a + b;`.
    fn expression_statement() => error("E0214", "this expression is not a statement")
        .note("a statement calls something or assigns to something");

    /// Reports an `else` without an `if`.
    fn else_without_if() => error("E0215", "`else` without an `if` before it");

    /// Reports a statement, beginning with `word`, that is not allowed in a parser state.
    fn not_in_state(word: &str) => error("E0216", "`{word}` cannot be used in a parser state");

    /// Reports a statement or declaration after a state's transition.
    fn after_transition(transition: Span) =>
        error("E0217", "nothing can follow the transition of a state")
            .label(transition, "the transition is here");

    /// Reports a declaration or statement after a control's `apply` block.
    fn after_apply(apply: Span) =>
        error("E0218", "nothing can follow the `apply` block of a control")
            .label(apply, "the block is here");
}

/// Reports a control without an `apply` block. If `ends_early`, a hint says that a `}` too many may have ended the
/// control.
pub(crate) fn control_without_apply(span: Span, name: &str, ends_early: bool) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        "E0219",
        span,
        format!("the control `{name}` has no `apply` block"),
    );
    if ends_early {
        diagnostic.hint("a `}` too many in it ends it early")
    } else {
        diagnostic
    }
}

messages! {
    /// Reports a parser without states.
    fn parser_without_states(name: &str) => error("E0220", "the parser `{name}` has no states")
        .hint("it needs at least `state start { transition accept; }`");

    /// Reports a declaration after a parser's first state.
    fn local_after_state() =>
        error("E0221", "declarations in a parser must stand before its first state");

    /// Reports an array size after the name of a variable, as in `T name[4]`.
    fn size_after_name(ty: Span) => error("E0222", "a size cannot stand after the name")
        .label(ty, "it belongs after the type, and only a stack of headers has one");

    /// Reports a function that has no body and is not declared `extern`.
    fn function_without_body(name: &str) => error("E0223", "the function `{name}` has no body")
        .hint("to declare a function of the architecture, write `extern` before it");
}

/// Reports a method without a return type.
pub(crate) fn method_without_type(span: Span, name: &str, object: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        "E0224",
        span,
        format!("the method `{name}` has no return type"),
    );
    if name == object {
        diagnostic.note("a constructor has none, but cannot be abstract")
    } else {
        diagnostic.note(format!(
            "only a constructor has none, and that would be called `{object}`"
        ))
    }
}

messages! {
    /// Reports an enum without members.
    fn empty_enum(name: &str) => error("E0225", "the enum `{name}` has no members");

    /// Reports a value of an enum member whose enum has no underlying type.
    fn value_in_plain_enum(name: &str) =>
        error("E0226", "`{name}` cannot have a value, because its enum has no underlying type")
            .hint("write the type after `enum`: `enum bit<8> Name { ... }`");

    /// Reports an enum member without a value whose enum has an underlying type.
    fn enum_member_without_value(name: &str) =>
        error("E0227", "`{name}` needs a value, because its enum has an underlying type");

    /// Reports a key element without a match kind.
    fn key_without_match_kind() => error("E0228", "this key has no match kind")
        .hint("write for instance `: exact` after it");

    /// Reports a semicolon after the list of a table property, as in `key = { ... };`.
    fn semicolon_after_list(property: &str) =>
        error("E0229", "there is no `;` after the list of `{property}`");

    /// Reports a priority that is an expression without parentheses around it, as in `priority = N: ...`.
    fn bare_priority() => error("E0230", "a priority that is not just a number needs parentheses");

    /// Reports an annotation `@name(` without its `)`.
    fn unclosed_annotation() => error("E0201", "this annotation has no closing `)`");

    /// Reports a word that starts no declaration, as in `headr foo { ... }`.
    fn unknown_declaration(word: &str) => error("E0231", "`{word}` does not start a declaration");

    /// Reports that there are too many errors, and that the later ones are not shown.
    fn too_many() => error("E0299", "too many errors; this and all later ones are not shown");

    /// Warns that there are too many warnings, and that the later ones are not shown.
    fn too_many_warnings() =>
        warning("W0298", "too many warnings; this and all later ones are not shown");
}
