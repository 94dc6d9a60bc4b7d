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
