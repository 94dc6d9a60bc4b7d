//! Programs that are right: each compiles without an error, and what comes out is what was reviewed.
//!
//! For `tests/p4/accept/NAME.p4` the IR is in `NAME.ir`, the P4Info in `NAME.p4info`, and warnings, if any, in `NAME.warnings`. Set `UPDATE_EXPECT=1` to write
//! what is given now, and read it before committing.

mod programs;

use std::path::Path;

use compile::{Options, compile_file, compile_text, preprocess_file};
use programs::{programs, root};

fn name(path: &Path) -> String {
    path.file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

#[test]
fn each_program_gives_its_ir_and_p4info() {
    let programs = programs("tests/p4/accept");
    assert!(programs.len() >= 15, "only {} programs", programs.len());
    for path in programs {
        let source = std::fs::read_to_string(&path).expect("a program");
        let outcome = compile_text(&source, &name(&path), &Options::default());
        let rendered = outcome.render();
        let Some(compiled) = outcome.compiled else {
            panic!("{rendered}")
        };
        let text = ir::text::print(&compiled.program);
        assert_eq!(
            ir::text::parse(&text).expect("IR that can be read back"),
            compiled.program
        );
        expect_test::expect_file![path.with_extension("ir")].assert_eq(&text);
        // Most have nothing to be warned of.
        let warnings = path.with_extension("warnings");
        if !rendered.is_empty() || warnings.exists() {
            expect_test::expect_file![warnings].assert_eq(&rendered);
        }
        expect_test::expect_file![path.with_extension("p4info")]
            .assert_eq(&compiled.p4info.to_text());
    }
}

#[test]
fn programs_that_are_run_elsewhere_compile() {
    let mut programs = programs("tests/p4/run");
    for app in std::fs::read_dir(root().join("python/holdfast/apps")).expect("the applications") {
        // A folder's program has its name; other files are parts that it includes.
        let folder = app.expect("an application").path();
        let name = folder.file_name().expect("a name").to_os_string();
        let program = folder.join(name).with_extension("p4");
        programs.extend(program.is_file().then_some(program));
    }
    assert!(programs.len() >= 50, "only {} programs", programs.len());
    for path in programs {
        let outcome = compile_file(&path, &Options::default());
        assert!(outcome.compiled.is_some(), "{}", outcome.render());
    }
}

/// Checks that the text after the preprocessor is the same program, and that messages about it name the same places.
#[test]
fn what_the_preprocessor_leaves_compiles_to_the_same() {
    let all = programs("tests/p4/accept")
        .into_iter()
        .chain(programs("tests/p4/run"));
    for path in all {
        let options = Options::default();
        let given = compile_file(&path, &options);
        let program = given.compiled.as_ref().expect("a program");
        let left = preprocess_file(&path, &options);
        for (text, places) in [(&left.text, true), (&left.plain, false)] {
            // In its own directory, so that the name of the program is the same.
            let again = compile_text(text, &path.to_string_lossy(), &options);
            let shown = path.display();
            let Some(compiled) = &again.compiled else {
                panic!("{shown}: {}", again.render())
            };
            assert_eq!(compiled.p4info, program.p4info, "{shown}");
            let parsed = syntax::parse_str(text);
            let no_directives = parsed.sources.files().iter().all(|file| {
                let mut lines = file.text.lines();
                lines.all(|line| !line.starts_with("#") || line.starts_with("# "))
            });
            assert!(no_directives, "{shown}");
            if places {
                assert_eq!(compiled.program, program.program, "{shown}");
                let at = |outcome: &compile::Outcome| -> Vec<_> {
                    // The preprocessor's own warnings are about what is gone.
                    let later = outcome
                        .diagnostics
                        .iter()
                        .filter(|d| !left.diagnostics.iter().any(|own| own.code == d.code));
                    let place = |d: &syntax::Diagnostic| (d.code, outcome.sources.location(d.span));
                    later.map(place).collect()
                };
                assert_eq!(at(&again), at(&given), "{shown}");
            }
        }
    }
}

#[test]
fn the_same_text_gives_the_same_result() {
    for path in programs("tests/p4/accept") {
        let compile = || {
            compile_file(&path, &Options::default())
                .compiled
                .expect("a program")
        };
        let (a, b) = (compile(), compile());
        assert_eq!(a.program, b.program);
        assert_eq!(a.p4info, b.p4info);
    }
}

#[test]
fn macros_and_include_directories_reach_the_program() {
    let source = "#include <core.p4>\n#include \"missing.p4\"\n#ifdef WANTED\nconst bit<8> x = true;\n#endif\n";
    let options = Options {
        include_dirs: vec![root()],
        defines: vec![("WANTED".into(), "1".into())],
        ..Default::default()
    };
    let rendered = compile_text(source, "options.p4", &options).render();
    assert!(rendered.contains("missing.p4"), "{rendered}");
    let source = source.replace(
        "#include \"missing.p4\"\n",
        "#include \"p4include/v1model.p4\"\n",
    );
    let rendered = compile_text(&source, "options.p4", &options).render();
    assert!(
        rendered.contains("error[E1020]: expected `bit<8>`, found `bool`"),
        "{rendered}"
    );
}

/// An include that is written almost like a file that is there gets the file's name.
#[test]
fn a_missing_include_is_told_what_is_there() {
    let options = Options {
        include_dirs: vec![root().join("p4include"), root()],
        ..Options::default()
    };
    for (wanted, given) in [
        ("<V1Model.p4>", "v1model.p4"),
        ("\"V1MODEL.P4\"", "v1model.p4"),
        ("<v1model>", "v1model.p4"),
        ("<v1_model.p4>", "v1model.p4"),
        ("<Core.p4>", "core.p4"),
        ("<PSA.p4>", "psa.p4"),
        ("<BMv2/psa.p4>", "bmv2/psa.p4"),
        ("<p4include/PSA.p4>", "p4include/psa.p4"),
    ] {
        let source = format!("#include {wanted}\n");
        for options in [&options, &Options::default()] {
            let rendered = compile_text(&source, "case.p4", options).render();
            if options.include_dirs.is_empty() && given.starts_with("p4include") {
                continue;
            }
            let hint = format!("= hint: did you mean `{given}`?");
            assert!(rendered.contains("error[E0002]"), "{rendered}");
            assert!(rendered.contains(&hint), "{wanted}: {rendered}");
        }
    }
    let rendered = compile_text("#include <tna.p4>\n", "case.p4", &options).render();
    assert!(rendered.contains("= hint: add the directory"), "{rendered}");
}

/// A generator of numbers that is the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Splits a program into words, numbers, single symbols, and the blanks between these.
fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| match first {
            _ if first.is_alphanumeric() || first == '_' => c.is_alphanumeric() || c == '_',
            _ if first.is_whitespace() => c.is_whitespace(),
            _ => false,
        };
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| !same(*c))
            .map_or(rest.len(), |(i, _)| i);
        tokens.push(&rest[..end]);
        rest = &rest[end..];
    }
    tokens
}

/// Damaged programs give messages, never a panic, and never a program together with an error.
#[test]
fn damaged_programs_are_handled() {
    let mut numbers = Numbers(7);
    let mut compiled = 0;
    for path in programs("tests/p4/accept") {
        let source = std::fs::read_to_string(&path).expect("a program");
        let tokens = tokens(&source);
        for _ in 0..60 {
            let mut damaged = tokens.clone();
            for _ in 0..=numbers.below(3) {
                let (from, to) = (numbers.below(damaged.len()), numbers.below(damaged.len()));
                match numbers.below(3) {
                    0 => {
                        damaged.remove(to);
                    }
                    1 => damaged[to] = damaged[from],
                    _ => damaged.insert(to, damaged[from]),
                }
            }
            let outcome = compile_text(&damaged.concat(), &name(&path), &Options::default());
            let failed = outcome.diagnostics.iter().any(|d| d.is_error());
            let library = outcome.diagnostics.iter().any(|d| d.code == "W1130");
            assert_eq!(outcome.compiled.is_none(), failed || library);
            compiled += usize::from(outcome.compiled.is_some());
        }
    }
    // Damage that leaves programs right is part of the test.
    assert!(compiled > 20, "only {compiled} damaged programs compile");
}
