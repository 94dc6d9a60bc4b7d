//! Every diagnostic of this crate, with one constructor function each.
//!
//! E00xx comes from the preprocessor, E01xx from single tokens, E02xx from the grammar. A code is never reused for
//! something else. Each constructor has at least one expected text in the tests, which `tests/codes.rs` checks.

use std::path::Path;

use crate::diagnostics::Diagnostic;
use crate::loader::LoadError;
use crate::source::Span;

// ---------------------------------------------------------------------------------------------------------------------
// The preprocessor
// ---------------------------------------------------------------------------------------------------------------------

/// The file to compile cannot be read.
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

/// An included file cannot be found or read.
pub(crate) fn cannot_include(span: Span, name: &str, error: &LoadError) -> Diagnostic {
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
            diagnostic.hint("add the directory it is in to the include directories")
        }
        LoadError::Unreadable(path, why) => Diagnostic::error(
            "E0002",
            span,
            format!("cannot read the included file `{}`: {why}", path.display()),
        ),
    }
}

/// Files include each other without end, most likely.
pub(crate) fn includes_too_deep(span: Span, limit: usize) -> Diagnostic {
    Diagnostic::error(
        "E0003",
        span,
        format!("files include each other more than {limit} deep"),
    )
    .hint("guard the included file with `#ifndef NAME`, `#define NAME` and `#endif`")
}

/// An `#include` does not name a file.
pub(crate) fn malformed_include(span: Span) -> Diagnostic {
    Diagnostic::error("E0004", span, "`#include` needs a file name")
        .hint("write `#include \"file\"` or `#include <file>`")
}

/// A directive nobody knows. The reference compiler's preprocessor leaves such lines alone, and its lexer skips them.
pub(crate) fn unknown_directive(span: Span, name: &str) -> Diagnostic {
    let diagnostic = Diagnostic::warning(
        "W0005",
        span,
        format!("there is no preprocessor directive `#{name}`; the line is ignored"),
    );
    diagnostic.hint("a comment starts with `//`")
}

/// A directive that other preprocessors have.
pub(crate) fn unsupported_directive(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0024", span, format!("`#{name}` is not supported"))
}

/// `#error`
pub(crate) fn error_directive(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(
        "E0006",
        span,
        format!("#error {message}").trim_end().to_string(),
    )
}

/// `#warning`
pub(crate) fn warning_directive(span: Span, message: &str) -> Diagnostic {
    Diagnostic::warning(
        "W0007",
        span,
        format!("#warning {message}").trim_end().to_string(),
    )
}

/// `#else`, `#elif` or `#endif` without `#if`.
pub(crate) fn without_if(span: Span, directive: &str) -> Diagnostic {
    Diagnostic::error(
        "E0008",
        span,
        format!("`#{directive}` without an `#if` before it"),
    )
}

/// `#else` or `#elif` after `#else`.
pub(crate) fn after_else(span: Span, directive: &str, earlier: Span) -> Diagnostic {
    Diagnostic::error(
        "E0009",
        span,
        format!("`#{directive}` after the `#else` of the same `#if`"),
    )
    .label(earlier, "the `#else` is here")
}

/// `#if` without `#endif`.
pub(crate) fn unterminated_if(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0010",
        span,
        "this conditional has no `#endif` in its file",
    )
}

/// A directive that needs a macro's name has none.
pub(crate) fn macro_name_expected(span: Span, directive: &str) -> Diagnostic {
    Diagnostic::error(
        "E0011",
        span,
        format!("`#{directive}` needs the name of a macro"),
    )
}

/// A macro's parameters are not names between commas.
pub(crate) fn malformed_macro_params(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0012",
        span,
        format!("the parameters of the macro `{name}` are not a list of different names"),
    )
    .hint("for a macro without parameters, leave a blank before the parenthesis")
}

/// A macro is used with too few or too many arguments.
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

/// The arguments of a macro never end.
pub(crate) fn unterminated_macro_use(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0014",
        span,
        format!("the arguments of the macro `{name}` have no closing `)`"),
    )
    .note("they may not contain preprocessor directives")
}

/// The expression of an `#if` makes no sense.
pub(crate) fn bad_condition(span: Span, problem: &str) -> Diagnostic {
    Diagnostic::error(
        "E0015",
        span,
        format!("this condition cannot be evaluated: {problem}"),
    )
}

/// A macro is defined again with another meaning.
pub(crate) fn macro_redefined(span: Span, name: &str, earlier: Span) -> Diagnostic {
    Diagnostic::warning(
        "W0016",
        span,
        format!("the macro `{name}` is defined again with another meaning"),
    )
    .label(earlier, "it was defined here before")
    .hint(format!("if that is intended, write `#undef {name}` first"))
}

/// `##` makes something that is no token.
pub(crate) fn bad_paste(span: Span, text: &str) -> Diagnostic {
    Diagnostic::warning(
        "W0017",
        span,
        format!("`##` makes `{text}`, which is not one token; it stays two"),
    )
    .hint("leave the `##` out")
}

/// `##` at the start or end of a macro.
pub(crate) fn paste_at_edge(span: Span) -> Diagnostic {
    Diagnostic::error("E0018", span, "`##` needs something on both sides")
}

/// `#` without a parameter after it.
pub(crate) fn stringify_needs_param(span: Span) -> Diagnostic {
    Diagnostic::warning(
        "W0019",
        span,
        "in a macro with parameters, `#` has a parameter after it; this one stays as it is",
    )
}

/// Macros or includes make too much of a program.
pub(crate) fn program_too_large(span: Span) -> Diagnostic {
    Diagnostic::error("E0020", span, "the program is too large after preprocessing")
        .note("the rest of it was not read; macros or includes that multiply each other are the usual cause")
}

/// A `#line` does not say which line.
pub(crate) fn malformed_line(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0021",
        span,
        "`#line` needs a line number and perhaps a file name in quotes",
    )
}

/// Something after a directive that should end.
pub(crate) fn extra_in_directive(span: Span, directive: &str) -> Diagnostic {
    Diagnostic::warning(
        "W0022",
        span,
        format!("text after `#{directive}` is ignored"),
    )
    .hint("make it a comment")
}

/// A file of a size no program has.
pub(crate) fn file_too_large(span: Span, limit_mb: usize) -> Diagnostic {
    Diagnostic::error(
        "E0023",
        span,
        format!("this file has more than {limit_mb} megabytes and was not read"),
    )
}

// ---------------------------------------------------------------------------------------------------------------------
// Single tokens
// ---------------------------------------------------------------------------------------------------------------------

/// A character P4 has no use for.
pub(crate) fn unexpected_character(span: Span, text: &str) -> Diagnostic {
    let character = match text.chars().next() {
        Some(c) if c.is_control() => format!("U+{:04X}", u32::from(c)),
        _ => format!("`{text}`"),
    };
    Diagnostic::error("E0100", span, format!("unexpected character {character}"))
}

/// A string without its closing quote.
pub(crate) fn unterminated_string(span: Span) -> Diagnostic {
    Diagnostic::error("E0101", span, "this string has no closing `\"`")
}

/// A comment without its end.
pub(crate) fn unterminated_comment(span: Span) -> Diagnostic {
    Diagnostic::error("E0102", span, "this comment has no closing `*/`")
}

/// A number that is none.
pub(crate) fn malformed_integer(span: Span, text: &str, problem: &str) -> Diagnostic {
    Diagnostic::error(
        "E0103",
        span,
        format!("`{text}` is not an integer: {problem}"),
    )
}

// ---------------------------------------------------------------------------------------------------------------------
// The grammar
// ---------------------------------------------------------------------------------------------------------------------

/// Something else was wanted here.
pub(crate) fn expected(span: Span, wanted: &str, found: &str) -> Diagnostic {
    Diagnostic::error("E0200", span, format!("expected {wanted}, found {found}"))
}

/// A line ends without its semicolon.
pub(crate) fn missing_semicolon(span: Span, after: &str) -> Diagnostic {
    Diagnostic::error("E0202", span, format!("missing `;` after {after}"))
}

/// A `{` without its `}`.
pub(crate) fn unclosed_brace(span: Span, what: &str, open: Span) -> Diagnostic {
    Diagnostic::error(
        "E0203",
        span,
        format!("missing `}}` at the end of the {what}"),
    )
    .label(open, format!("the {what} starts here"))
}

/// Nesting or chains beyond the limit.
pub(crate) fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error("E0204", span, "this is nested too deeply")
        .note("the rest of the program was not read")
}

/// A declaration where it may not be.
pub(crate) fn misplaced(span: Span, what: &str, place: &str, belongs: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error("E0205", span, format!("{what} cannot be declared {place}"));
    if belongs.is_empty() {
        diagnostic
    } else {
        diagnostic.hint(format!("it can be declared {belongs}"))
    }
}

/// Something outside of the declaration it belongs in.
pub(crate) fn stray(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error(
        "E0206",
        span,
        format!("`{text}` cannot stand outside of a declaration"),
    )
    .hint("look for a `}` too many before it")
}

/// A keyword as a name.
pub(crate) fn keyword_as_name(span: Span, keyword: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        "E0207",
        span,
        format!("expected {what}, but `{keyword}` is a keyword"),
    )
}

/// A comma before the end of a list that takes none.
pub(crate) fn trailing_comma(span: Span) -> Diagnostic {
    Diagnostic::error("E0208", span, "this list may not end with a comma")
}

/// `_` as a value.
pub(crate) fn dont_care_value(span: Span) -> Diagnostic {
    Diagnostic::error("E0209", span, "`_` is not a value")
        .note("it can stand for a whole argument, a whole type argument or a whole key set")
}

/// A type as a value.
pub(crate) fn type_as_value(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error(
        "E0210",
        span,
        format!("expected an expression, but `{text}` is a type"),
    )
    .hint("a cast has parentheses around the type: `(bit<8>) value`")
}

/// `...` before other fields.
pub(crate) fn dots_not_last(span: Span) -> Diagnostic {
    Diagnostic::error("E0211", span, "`...` can only stand at the end of the list")
}

/// `i++`
pub(crate) fn increment(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0212",
        span,
        "`++` joins two values; there is nothing on its right",
    )
    .hint("to add one, write `+= 1`")
}

/// An assignment to something that is no variable.
pub(crate) fn not_assignable(span: Span) -> Diagnostic {
    Diagnostic::error("E0213", span, "nothing can be assigned to this expression")
        .note("the left side must be a variable, perhaps with members, indices and slices")
}

/// `a + b;`
pub(crate) fn expression_statement(span: Span) -> Diagnostic {
    Diagnostic::error("E0214", span, "this expression is not a statement")
        .note("a statement calls something or assigns to something")
}

/// `else` alone.
pub(crate) fn else_without_if(span: Span) -> Diagnostic {
    Diagnostic::error("E0215", span, "`else` without an `if` before it")
}

/// A statement parser states cannot have.
pub(crate) fn not_in_state(span: Span, word: &str) -> Diagnostic {
    Diagnostic::error(
        "E0216",
        span,
        format!("`{word}` cannot be used in a parser state"),
    )
}

/// Something after a state's transition.
pub(crate) fn after_transition(span: Span, transition: Span) -> Diagnostic {
    Diagnostic::error(
        "E0217",
        span,
        "nothing can follow the transition of a state",
    )
    .label(transition, "the transition is here")
}

/// Something after a control's `apply` block.
pub(crate) fn after_apply(span: Span, apply: Span) -> Diagnostic {
    Diagnostic::error(
        "E0218",
        span,
        "nothing can follow the `apply` block of a control",
    )
    .label(apply, "the block is here")
}

/// A control without `apply`.
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

/// A parser without states.
pub(crate) fn parser_without_states(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0220", span, format!("the parser `{name}` has no states"))
        .hint("it needs at least `state start { transition accept; }`")
}

/// A variable after a parser's first state.
pub(crate) fn local_after_state(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0221",
        span,
        "declarations in a parser must stand before its first state",
    )
}

/// `T name[4]`
pub(crate) fn size_after_name(span: Span, ty: Span) -> Diagnostic {
    Diagnostic::error("E0222", span, "a size cannot stand after the name").label(
        ty,
        "it belongs after the type, and only a stack of headers has one",
    )
}

/// A function without a body that is not `extern`.
pub(crate) fn function_without_body(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0223", span, format!("the function `{name}` has no body"))
        .hint("to declare a function of the architecture, write `extern` before it")
}

/// A method without a return type.
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

/// An enum without members.
pub(crate) fn empty_enum(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0225", span, format!("the enum `{name}` has no members"))
}

/// A value in an enum without an underlying type.
pub(crate) fn value_in_plain_enum(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0226",
        span,
        format!("`{name}` cannot have a value, because its enum has no underlying type"),
    )
    .hint("write the type after `enum`: `enum bit<8> Name { ... }`")
}

/// No value in an enum with an underlying type.
pub(crate) fn enum_member_without_value(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0227",
        span,
        format!("`{name}` needs a value, because its enum has an underlying type"),
    )
}

/// A key element without a match kind.
pub(crate) fn key_without_match_kind(span: Span) -> Diagnostic {
    Diagnostic::error("E0228", span, "this key has no match kind")
        .hint("write for instance `: exact` after it")
}

/// `key = { ... };`
pub(crate) fn semicolon_after_list(span: Span, property: &str) -> Diagnostic {
    Diagnostic::error(
        "E0229",
        span,
        format!("there is no `;` after the list of `{property}`"),
    )
}

/// `priority = N: ...`
pub(crate) fn bare_priority(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0230",
        span,
        "a priority that is not just a number needs parentheses",
    )
}

/// `@name(` without its `)`.
pub(crate) fn unclosed_annotation(span: Span) -> Diagnostic {
    Diagnostic::error("E0201", span, "this annotation has no closing `)`")
}

/// `headr foo { ... }`
pub(crate) fn unknown_declaration(span: Span, word: &str) -> Diagnostic {
    Diagnostic::error(
        "E0231",
        span,
        format!("`{word}` does not start a declaration"),
    )
}

/// More than anybody wants to read.
pub(crate) fn too_many(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0299",
        span,
        "too many errors; this and all later ones are not shown",
    )
}

/// Likewise.
pub(crate) fn too_many_warnings(span: Span) -> Diagnostic {
    Diagnostic::warning(
        "W0298",
        span,
        "too many warnings; this and all later ones are not shown",
    )
}
