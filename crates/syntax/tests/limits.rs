//! Behaviour at the limits, where a program in a file of its own would be unwieldy.

use std::path::Path;

use expect_test::{Expect, expect};
use syntax::{IncludeStyle, LoadError, Loaded, Loader, parse, parse_str};

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&parse_str(text).render());
}

#[test]
fn nesting() {
    check(
        &format!("const int A =\n    {}1;", "(".repeat(300)),
        expect![[r#"
        error[E0204]: this is nested too deeply
         --> input.p4:2:204
          |
        2 | ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1;
          |                                    ^
          = note: the rest of the program was not read
    "#]],
    );
}

#[test]
fn number_of_errors() {
    let parsed = parse_str(&"const int A = ;\n".repeat(150));
    assert_eq!(parsed.diagnostics.len(), 101);
    expect![[r#"
        error[E0299]: too many errors; this and all later ones are not shown
           --> input.p4:101:15
            |
        101 | const int A = ;
            |               ^
    "#]]
    .assert_eq(&parsed.diagnostics[100].render(&parsed.sources));
}

#[test]
fn long_lines_are_shown_in_part() {
    check(
        &format!(
            "const int A = {}$ + 1{};",
            "1 + ".repeat(100),
            " + 1".repeat(100)
        ),
        expect![[r#"
        error[E0100]: unexpected character `$`
         --> input.p4:1:415
          |
        1 |  + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + $ + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
          |                                    ^
    "#]],
    );
}

#[test]
fn missing_main_file() {
    let parsed = parse(Path::new("none.p4"), &syntax::MemoryLoader::new(), &[]);
    expect![[r#"
        error[E0001]: there is no file `none.p4`
         --> none.p4:1:1
          |
        1 |
          | ^
    "#]]
    .assert_eq(&parsed.render());
}

/// A loader of files nobody should write.
struct OddLoader;

impl Loader for OddLoader {
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        let text = "#include <secret.p4>\n#include <huge.p4>\nconst int A = 1;".to_string();
        Ok(Loaded {
            path: path.to_path_buf(),
            text,
        })
    }

    fn include(&self, name: &str, _: IncludeStyle, _: &Path) -> Result<Loaded, LoadError> {
        match name {
            "huge.p4" => Ok(Loaded {
                path: name.into(),
                text: " ".repeat((64 << 20) + 1),
            }),
            _ => Err(LoadError::Unreadable(
                name.into(),
                "permission denied".into(),
            )),
        }
    }
}

#[test]
fn unreadable_and_huge_files() {
    let parsed = parse(Path::new("main.p4"), &OddLoader, &[]);
    expect![[r#"
        error[E0002]: cannot read the included file `secret.p4`: permission denied
         --> main.p4:1:10
          |
        1 | #include <secret.p4>
          |          ^^^^^^^^^^^

        error[E0023]: this file has more than 64 megabytes and was not read
         --> main.p4:2:10
          |
        2 | #include <huge.p4>
          |          ^^^^^^^^^
    "#]]
    .assert_eq(&parsed.render());
    assert_eq!(parsed.program.decls.len(), 1);
}

#[test]
fn many_warnings_are_no_error() {
    let parsed = syntax::parse_str(&"# a comment\n".repeat(1000));
    assert_eq!(parsed.diagnostics.len(), 101);
    assert!(!parsed.has_errors());
    assert!(
        parsed
            .render()
            .contains("warning[W0298]: too many warnings")
    );
}

/// Returns a program whose macros `A0` to `A59` each double the text of the one before, by `double`, and the token `A59`.
fn doubling(double: &str, first: &str) -> String {
    let mut text = format!("{double}\n#define A0 {first}\n");
    for i in 1..60 {
        text += &format!("#define A{i} D(A{})\n", i - 1);
    }
    text + "const int C = A59;\n"
}

#[test]
fn macros_that_double_one_token() {
    for (double, first) in [
        (
            "#define P(a, b) a##b\n#define Q(a) P(a, a)\n#define D(a) Q(a)",
            "x",
        ),
        ("#define S(x) #x\n#define D(a) S(a a)", "\"\""),
        ("#define S(x) #x\n#define D(a) S(a)", "\"\\\""),
        ("#define S(...) #__VA_ARGS__\n#define D(a) S(a, a)", "x"),
        ("#define P(a, b) a##b##a##b\n#define D(a) P(a, a)\n", "1"),
    ] {
        let parsed = parse_str(&doubling(double, first));
        let codes: Vec<_> = parsed.diagnostics.iter().map(|d| d.code).collect();
        assert!(codes.contains(&"E0020"), "{double}: {codes:?}");
        let longest = parsed.render().lines().map(str::len).max();
        assert!(longest < Some(1000), "{double}: {longest:?}");
    }
}
