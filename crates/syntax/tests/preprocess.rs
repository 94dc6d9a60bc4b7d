//! The preprocessor, tested through its output program.

#[allow(dead_code, reason = "every test has its own part of it")]
mod dump;

use std::path::Path;

use expect_test::{Expect, expect};
use syntax::{FileLoader, MemoryLoader, Parsed, parse};

fn parse_files(files: &[(&str, &str)], defines: &[(&str, &str)]) -> Parsed {
    let loader = files
        .iter()
        .fold(MemoryLoader::new(), |loader, (path, text)| {
            loader.file(*path, *text)
        });
    let defines: Vec<_> = defines
        .iter()
        .map(|(n, v)| (n.to_string(), v.to_string()))
        .collect();
    parse(Path::new(files[0].0), &loader, &defines)
}

/// Returns the syntax tree of a parsed program as text, followed by its diagnostics.
fn outcome(parsed: &Parsed) -> String {
    format!("{}{}", dump::program(&parsed.program), parsed.render())
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&outcome(&parse_files(&[("input.p4", text)], &[])));
}

fn check_files(files: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&outcome(&parse_files(files, &[])));
}

/// Returns whether `condition` is true as the condition of an `#if`.
fn holds(condition: &str) -> bool {
    let text = format!(
        "#define ONE 1\n#define ADD(a, b) ((a) + (b))\n#if {condition}\nconst int A = 1;\n#endif\n"
    );
    let parsed = parse_files(&[("input.p4", &text)], &[]);
    assert_eq!(parsed.render(), "", "diagnostics for {condition}");
    !parsed.program.decls.is_empty()
}

// -- Macros -----------------------------------------------------------------------------------------------------------

#[test]
fn object_macros() {
    check(
        "#define N 8\n#define T bit<N>\n#define EMPTY\nconst T A EMPTY = N;",
        expect![[r#"
        (const (bit 8) A 8)
    "#]],
    );
    check(
        "#define N 8\n#undef N\n#undef M\nconst int A = N;",
        expect![[r#"
        (const int A N)
    "#]],
    );
}

#[test]
fn function_macros() {
    check(
        "#define MAX(a, b) ((a) > (b) ? (a) : (b))\nconst int A = MAX(x, MAX(y, f(1, 2)));",
        expect![[r#"
        (const int A
          (?: (> x (?: (> y (call f 1 2)) y (call f 1 2))) x (?: (> y (call f 1 2)) y (call f 1 2))))
    "#]],
    );
    check(
        "#define F() 1\n#define G(x) x\nconst int A = F() + G() 2 + F;",
        expect![[r#"
        (const int A (+ (+ 1 2) F))
    "#]],
    );
    check(
        "#define F (1)\n#define G(x)x\nconst int A = F + G\n(2);",
        expect![[r#"
        (const int A (+ 1 2))
    "#]],
    );
}

#[test]
fn variadic_macros() {
    check(
        "#define CALL(f, ...) f(__VA_ARGS__)\nconst int A = CALL(g, 1, 2) + CALL(h);",
        expect![[r#"
        (const int A (+ (call g 1 2) (call h)))
    "#]],
    );
    check(
        "#define CALL(f, args...) f(0, ## args)\nconst int A = CALL(g, 1, 2) + CALL(h);",
        expect![[r#"
        (const int A (+ (call g 0 1 2) (call h 0)))
    "#]],
    );
}

#[test]
fn strings_and_pasting() {
    check(
        "#define S(x) #x\n#define T(x) S(x)\n#define N 1 + \"q\"\nconst string A = S(N) ++ T(N);",
        expect![[r#"
        (const string A (++ "N" "1 + \\\"q\\\""))
    "#]],
    );
    check(
        "#define CAT(a, b) a ## b\n#define X 1\nconst int A = CAT(X, 2) + CAT(x, X) + CAT(, y) + CAT(z,);",
        expect![[r#"
        (const int A (+ (+ (+ X2 xX) y) z))
    "#]],
    );
    check(
        "#define W(n, v) n ## w ## v\nconst int A = W(8, 0xFF) CAT;\n#define CAT + 1",
        expect![[r#"
        error[E0200]: expected `;`, found `CAT`
         --> input.p4:2:26
          |
        2 | const int A = W(8, 0xFF) CAT;
          |                          ^^^
    "#]],
    );
}

#[test]
fn macros_that_name_themselves() {
    check(
        "#define A A + 1\nconst int x = A;",
        expect![[r#"
        (const int x (+ A 1))
    "#]],
    );
    check(
        "#define A B\n#define B A\nconst int x = A + B;",
        expect![[r#"
        (const int x (+ A B))
    "#]],
    );
    check(
        "#define f(x) f(x + 1)\nconst int x = f(f(2));",
        expect![[r#"
        (const int x (call f (+ (call f (+ 2 1)) 1)))
    "#]],
    );
}

#[test]
fn macros_that_multiply() {
    let mut text = String::from("#define M0 1 +\n");
    for i in 1..40 {
        text += &format!("#define M{i} M{} M{}\n", i - 1, i - 1);
    }
    check(
        &format!("{text}const int A = M39 1;"),
        expect![[r#"
        error[E0020]: the program is too large after preprocessing
          --> input.p4:41:15
           |
        41 | const int A = M39 1;
           |               ^^^
           = note: in the expansion of `M39`, defined at input.p4:40
           = note: the rest of it was not read; macros or includes that multiply each other are the usual cause
    "#]],
    );
    let uses = format!(
        "#define f(x) (x)\nconst int A = {}1{};",
        "f(".repeat(300),
        ")".repeat(300)
    );
    check(
        &uses,
        expect![[r#"
        error[E0020]: the program is too large after preprocessing
         --> input.p4:2:215
          |
        2 | (f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(f
          |                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = note: in the expansion of `f`, defined at input.p4:1
          = note: the rest of it was not read; macros or includes that multiply each other are the usual cause
    "#]],
    );
}

#[test]
fn predefined_macros() {
    check(
        "const int A = __LINE__;\n#define L __LINE__\nconst int B = L;\nconst string C = __FILE__;",
        expect![[r#"
        (const int A 1)
        (const int B 3)
        (const string C "input.p4")
    "#]],
    );
    let parsed = parse_files(
        &[(
            "input.p4",
            "const int A = N;\n#ifdef FLAG\nconst int B = 1;\n#endif",
        )],
        &[("N", "5 + 1"), ("FLAG", "")],
    );
    expect![[r#"
        (const int A (+ 5 1))
        (const int B 1)
    "#]]
    .assert_eq(&outcome(&parsed));
}

#[test]
fn continued_lines_and_comments() {
    check(
        "#define SUM(a, b) \\\n  a /* one\n  two */ + \\\r\n  b // three\nconst int A = SUM(1, 2); // four \\\nconst int B = 1;",
        expect![[r#"
            (const int A (+ 1 2))
        "#]],
    );
    check(
        "const string A = \"two\nlines\" ++ \"one \\\nline\";",
        expect![[r#"
        (const string A (++ "two\nlines" "one line"))
    "#]],
    );
}

// -- Conditions -------------------------------------------------------------------------------------------------------

#[test]
fn conditions() {
    for condition in [
        "1",
        "ONE",
        "defined ONE",
        "defined(ONE) && !defined(TWO)",
        "ADD(ONE, 2) == 3",
        "1 + 2 * 3 == 7",
        "(1 ? 2 : 1 / 0) == 2",
        "-1 < 0",
        "~0 == -1",
        "0x10 == 16 && 010 == 8 && 0b11 == 3 && 10UL == 10",
        "1 << 4 >> 2 == 4",
        "UNKNOWN == 0",
        "7 % 4 == 3",
        "(6 & 3 | 8 ^ 1) == 11",
        "0 && 1 / 0 || 1",
        "!0",
        "+1",
        "5 >= 5 && 5 <= 5 && 5 != 6",
        "defined __LINE__",
        "defined apply || 1",
    ] {
        assert!(holds(condition), "{condition}");
    }
    for condition in [
        "0",
        "UNKNOWN",
        "!defined ONE",
        "2 > 3",
        "1 ? 0 : 1",
        "1 << 64",
    ] {
        assert!(!holds(condition), "{condition}");
    }
}

/// Every escape of up to three signs is a character exactly if it follows the grammar of C (ISO C 6.4.4.4).
#[test]
fn escapes_of_characters_are_digits() {
    let follows = |code: &str| match code.strip_prefix('x') {
        _ if code == "f" => true,
        Some(hex) => {
            let digits = hex.trim_start_matches('0');
            !hex.is_empty() && digits.len() <= 2 && hex.bytes().all(|b| b.is_ascii_hexdigit())
        }
        None => {
            let octal = code.bytes().all(|b| (b'0'..b'8').contains(&b));
            octal && (code.len() < 3 || code.as_bytes()[0] < b'4')
        }
    };
    let signs = ["0", "3", "7", "8", "f", "x", "+", "-", "_", " ", "\u{661}"];
    let mut codes = vec![String::new()];
    for _ in 0..3 {
        let longer = codes
            .iter()
            .flat_map(|code| signs.map(|sign| format!("{code}{sign}")));
        codes = longer.collect();
        for code in &codes {
            let text = format!("#if '\\{code}' || 1\n#endif\n");
            let said = parse_files(&[("input.p4", &text)], &[]).render();
            assert_eq!(said.is_empty(), follows(code), "'\\{code}': {said}");
        }
    }
}

#[test]
fn groups() {
    check(
        "#if 0\nbad $ ' \"\n#if 1\n#else\n#bogus\n#endif\n#elif 1\nconst int A = 1;\n#elif 1\nconst int B = 1;\n#else\nconst int C = 1;\n#endif\n\
         #ifndef X\n#define X\n# ifdef X\nconst int D = 1;\n# endif\n#else\nconst int E = 1;\n#endif",
        expect![[r#"
            (const int A 1)
            (const int D 1)
        "#]],
    );
}

// -- Includes ---------------------------------------------------------------------------------------------------------

#[test]
fn includes() {
    check_files(
        &[
            (
                "dir/main.p4",
                "#include \"a.p4\"\n#include <b.p4>\n#define B <b.p4>\n#include B\nconst int M = 1;",
            ),
            ("dir/a.p4", "#include \"sub/c.p4\"\nconst int A = 1;"),
            (
                "dir/sub/c.p4",
                "#pragma once\n#include \"../sub/c.p4\"\nconst int C = 1;",
            ),
            ("dir/sub/../sub/c.p4", "const int C2 = 1;"),
            (
                "b.p4",
                "#ifndef B_P4\n#define B_P4\nconst int B = 1;\n#endif",
            ),
        ],
        expect![[r#"
            (const int C2 1)
            (const int C 1)
            (const int A 1)
            (const int B 1)
            (const int M 1)
        "#]],
    );
}

#[test]
fn file_loader() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("includes");
    std::fs::create_dir_all(dir.join("lib")).expect("a directory for the test");
    std::fs::write(
        dir.join("main.p4"),
        "#include <core.p4>\n#include <lib.p4>\n#include \"own.p4\"",
    )
    .expect("main");
    std::fs::write(dir.join("own.p4"), b"const int OWN = 1; // \xff").expect("own.p4");
    std::fs::write(dir.join("lib/lib.p4"), "const int LIB = 1;").expect("lib.p4");
    let loader = FileLoader::new()
        .include_dir(dir.join("lib"))
        .builtin("core.p4", "const int CORE = 1;");
    let parsed = parse(&dir.join("main.p4"), &loader, &[]);
    expect![[r#"
        (const int CORE 1)
        (const int LIB 1)
        (const int OWN 1)
    "#]]
    .assert_eq(&outcome(&parsed));
    assert!(
        parse(&dir.join("none.p4"), &loader, &[])
            .render()
            .starts_with("error[E0001]: there is no file")
    );
}

#[test]
fn includes_that_multiply() {
    let twice = "#include \"input.p4\"\n#include \"input.p4\"\ncontrol";
    check_files(
        &[("input.p4", twice)],
        expect![[r#"
        error[E0003]: files include each other more than 64 deep
         --> input.p4:1:10
          |
        1 | #include "input.p4"
          |          ^^^^^^^^^^
          = note: included from input.p4:1
          = hint: guard the included file with `#ifndef NAME`, `#define NAME` and `#endif`
    "#]],
    );
    let names: Vec<_> = (0..16)
        .map(|i| (format!("{i}.p4"), format!("{}.p4", i + 1)))
        .collect();
    let texts: Vec<_> = names
        .iter()
        .map(|(_, next)| twice.replace("input.p4", next))
        .collect();
    let mut files: Vec<_> = names
        .iter()
        .zip(&texts)
        .map(|((name, _), text)| (name.as_str(), text.as_str()))
        .collect();
    files.push(("16.p4", ""));
    let rendered = parse_files(&files, &[]).render();
    assert!(
        rendered.starts_with("error[E0020]: the program is too large after preprocessing"),
        "{rendered}"
    );
    assert_eq!(rendered.matches("error[").count(), 1, "{rendered}");
}

// -- Places -----------------------------------------------------------------------------------------------------------

#[test]
fn places_in_macros() {
    check(
        "#define BAD 1 + )\n#define ID(x) x\nconst int A = BAD;\nconst int B = ID(1 +\n  );",
        expect![[r#"
        error[E0200]: expected an expression, found `)`
         --> input.p4:3:15
          |
        3 | const int A = BAD;
          |               ^^^
          = note: in the expansion of `BAD`, defined at input.p4:1

        error[E0200]: expected an expression, found `;`
         --> input.p4:5:4
          |
        5 |   );
          |    ^
    "#]],
    );
}

#[test]
fn places_in_includes_and_lines() {
    check_files(
        &[
            (
                "main.p4",
                "#include \"a.p4\"\n#line 100 \"other.p4\"\n\nconst = 1;\n# 7\nconst = 2;\n# 20 \"third.p4\" 1 3 4\nconst = 3;\n# 20 \"x\" 5\n",
            ),
            ("a.p4", "\tint 1;"),
        ],
        expect![[r#"
            error[E0021]: `#line` needs a line number and perhaps a file name in quotes
              --> third.p4:21:1
               |
            21 | # 20 "x" 5
               | ^

            error[E0200]: expected a name, found `1`
             --> a.p4:1:6
              |
            1 | 	int 1;
              | 	    ^
              = note: included from main.p4:1

            error[E0200]: expected a type, found `=`
               --> other.p4:101:7
                |
            101 | const = 1;
                |       ^

            error[E0200]: expected a type, found `=`
             --> other.p4:7:7
              |
            7 | const = 2;
              |       ^

            error[E0200]: expected a type, found `=`
              --> third.p4:20:7
               |
            20 | const = 3;
               |       ^
        "#]],
    );
}

// -- Joined lines -----------------------------------------------------------------------------------------------------

#[test]
fn lines_are_joined_before_tokens() {
    let one_line = "#define LONG_NAME(a) a + 8w7 /* c */\n#undef X\n#ifdef LONG_NAME\nconst bit<8> quite = LONG_NAME(1) |+| \"a\\\"b\" >> 1; // end\n#endif\n";
    let whole = outcome(&parse_files(&[("input.p4", one_line)], &[]));
    assert!(whole.starts_with("(const (bit 8) quite"), "{whole}");
    for splice in ["\\\n", "\\\r\n", "\\\n\\\n"] {
        for at in 0..one_line.len() {
            let text = format!("{}{splice}{}", &one_line[..at], &one_line[at..]);
            let joined = outcome(&parse_files(&[("input.p4", &text)], &[]));
            assert_eq!(joined, whole, "{text}");
        }
    }
    check(
        "#define LONG_NA\\\nME 8w7\nconst bit<8> q = LONG_NAME; // con\\\ntinued\nconst int r = 1;\\",
        expect![[r#"
            (const (bit 8) q 8w7)
            (const int r 1)
        "#]],
    );
}

#[test]
fn places_behind_joined_lines() {
    check(
        "con\\\nst int a = 1 \\\n  + );\r\nconst int lo\\\r\nng = ;\nconst int s = \"a\\\nb\" 1\\\n;",
        expect![[r#"
            error[E0200]: expected an expression, found `)`
             --> input.p4:3:5
              |
            3 |   + );
              |     ^

            error[E0200]: expected an expression, found `;`
             --> input.p4:5:6
              |
            5 | ng = ;
              |      ^

            error[E0200]: expected `;`, found `1`
             --> input.p4:7:4
              |
            7 | b" 1\
              |    ^
        "#]],
    );
    check(
        "#define A 1 + \\ \n 2 // c \\\t\n goes on\nconst int a = A;\\ \t\n/* \\ \n */ const int b = 1;\n#if 1 == \\\n 2 2\n#endif\n#include <no\\\nne.p4>\n#error a \\\nb\n",
        expect![[r#"
            (const int a (+ 1 2))
            (const int b 1)
            warning[W0025]: blanks after this `\`; it joins the line with the next one all the same
             --> input.p4:1:15
              |
            1 | #define A 1 + \
              |               ^
              = hint: remove the blanks, or the `\` if the lines are not to be joined

            warning[W0025]: blanks after this `\`; it joins the line with the next one all the same
             --> input.p4:4:17
              |
            4 | const int a = A;\
              |                 ^
              = hint: remove the blanks, or the `\` if the lines are not to be joined

            error[E0015]: this condition cannot be evaluated: unexpected `2`
             --> input.p4:8:4
              |
            8 |  2 2
              |    ^

            error[E0002]: cannot find the included file `none.p4`
              --> input.p4:10:10
               |
            10 | #include <no\
               |          ^^^^
               = note: there is no `none.p4`
               = hint: add the directory it is in to the include directories

            error[E0006]: #error a b
              --> input.p4:12:2
               |
            12 | #error a \
               |  ^^^^^
        "#]],
    );
}

// -- As in C ----------------------------------------------------------------------------------------------------------

#[test]
fn conditions_have_unsigned_numbers() {
    for condition in [
        "-1 > 0u",
        "0xFFFFFFFFFFFFFFFF > 0",
        "18446744073709551615 == -1",
        "(1 ? -1 : 0u) > 0",
        "-1 / 2u == 0x7FFFFFFFFFFFFFFF",
        "-8 >> 1 == -4 && -8u >> 1 > 0 && 4 << -1 == 2 && 1 >> 64 == 0 && -1 >> 64 == -1",
        "'a' == 97 && '\\n' == 10 && '\\'' == 39 && '\\xff' == -1",
        "(0, 1)",
        "__has_include(\"input.p4\") && !__has_include(<none.p4>)",
        "__STDC__ && __ASSEMBLER__ && !__INCLUDE_LEVEL__",
    ] {
        assert!(holds(condition), "{condition}");
    }
    check(
        "#define HAS(x) defined(x)\n#define TWICE(x) x x\n#if HAS(HAS)\nconst int A = 1;\n#endif\n#if 1lul\n#endif\n#if 09\n#endif\n#if 0x1FFFFFFFFFFFFFFFF\n#endif\n#if ''\n#endif\n#if __has_include\n#endif",
        expect![[r#"
            (const int A 1)
            error[E0015]: this condition cannot be evaluated: `1lul` is not an integer
             --> input.p4:6:5
              |
            6 | #if 1lul
              |     ^^^^

            error[E0015]: this condition cannot be evaluated: `09` is not an integer
             --> input.p4:8:5
              |
            8 | #if 09
              |     ^^

            error[E0015]: this condition cannot be evaluated: `0x1FFFFFFFFFFFFFFFF` has more than 64 bits
              --> input.p4:10:5
               |
            10 | #if 0x1FFFFFFFFFFFFFFFF
               |     ^^^^^^^^^^^^^^^^^^^

            error[E0015]: this condition cannot be evaluated: `''` is not a character
              --> input.p4:12:5
               |
            12 | #if ''
               |     ^^

            error[E0015]: this condition cannot be evaluated: `__has_include` needs a file name
              --> input.p4:14:5
               |
            14 | #if __has_include
               |     ^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn directives_among_the_arguments_of_a_macro() {
    check(
        "#define F(x, y) x + y\nconst int a = F(1,\n#ifdef F\n  2\n#else\n  3\n#endif\n);\nconst int b = F(F(1, 2),\n#define N 4\n#undef F\n  N) + F;\n",
        expect![[r#"
            (const int a (+ 1 2))
            (const int b (+ (+ (call F 1 2) 4) F))
        "#]],
    );
    check_files(
        &[
            (
                "main.p4",
                "#define F(x) x\nconst int a = F(\n#include \"a.p4\"\n1;\nconst int b = 2",
            ),
            ("a.p4", "2"),
        ],
        expect![[r#"
            (const int a F)
            (const int b 2)
            error[E0014]: the arguments of the macro `F` have no closing `)`
             --> main.p4:2:15
              |
            2 | const int a = F(
              |               ^

            error[E0202]: missing `;` after the constant
             --> main.p4:2:16
              |
            2 | const int a = F(
              |                ^

            error[E0202]: missing `;` after the constant
             --> main.p4:5:16
              |
            5 | const int b = 2
              |                ^
        "#]],
    );
}

#[test]
fn text_that_is_left_out_needs_no_partners() {
    check(
        "#if 0\n5\" long, it's /* so\n#endif\nconst string A = \"s\";\nconst string B = \"two\n#lines\";",
        expect![[r#"
            (const string A "s")
            (const string B "two\n#lines")
        "#]],
    );
}

#[test]
fn strings_of_arguments() {
    check(
        "#define S(x) #x\nconst string A = S( a \\ \"b\\n\"  c\\);\n#define N 12\n#line N \"f\" \\\n\nconst int L = __LINE__ + __COUNTER__ + __COUNTER__; const string F = __BASE_FILE__;\n#line 7 /*\n */\nconst int M = __LINE__;\n#include \"none.p4\" more",
        expect![[r#"
            (const string A "a \\ \\\"b\\\\n\\\" c")
            (const int L (+ (+ 12 0) 1))
            (const string F "input.p4")
            (const int M 7)
            warning[W0022]: text after `#include` is ignored
             --> f:8:20
              |
            8 | #include "none.p4" more
              |                    ^^^^
              = hint: make it a comment

            error[E0002]: cannot find the included file `none.p4`
             --> f:8:10
              |
            8 | #include "none.p4" more
              |          ^^^^^^^^^^^^^^
              = note: there is no `none.p4`
              = hint: add the directory it is in to the include directories
        "#]],
    );
}

#[test]
fn directives_within_strings() {
    check(
        "#define X\nconst string A = f(\"one // \\\"1\\\"\n  #if defined(X)\ntwo \\\n2\n#elif 1\nthree\n#else\nfour\n  #endif\n\n#ifndef X\n#endif\nfive\" ++ \"\", 1); const int B = ;\n#if 0\n\"six\n#endif\nconst string C = \"seven\n#ifdef X\n\", D;\nconst string E = \"eight\n#endif\n;const int F = 1;",
        expect![[r#"
            (const string A (call f (++ "one // \\\"1\\\"\ntwo 2\n\nfive" "") 1))
            (const string E "eight")
            (const int F 1)
            error[E0101]: this string has no closing `"`
              --> input.p4:21:18
               |
            21 | const string E = "eight
               |                  ^^^^^^

            error[E0200]: expected an expression, found `;`
              --> input.p4:14:32
               |
            14 | five" ++ "", 1); const int B = ;
               |                                ^

            error[E0200]: expected `;`, found `,`
              --> input.p4:20:2
               |
            20 | ", D;
               |  ^
        "#]],
    );
}

/// An even number of backslashes before a quote leaves it the end of its string, whether a directive interrupts the
/// string or not.
#[test]
fn backslashes_before_the_quote_of_an_interrupted_string() {
    for count in 0..9 {
        let backslashes = "\\".repeat(count);
        let whole = format!("const string A = f(\"one\ntwo{backslashes}\", 1);\n");
        let split = whole.replace("two", "#if 1\ntwo") + "#endif\n";
        let [whole, split] = [whole, split].map(|text| parse_files(&[("input.p4", &text)], &[]));
        assert_eq!(whole.has_errors(), count % 2 == 1, "{count}");
        assert_eq!(
            split.has_errors(),
            count % 2 == 1,
            "{count}: {}",
            split.render()
        );
        if !whole.has_errors() {
            assert_eq!(dump::program(&whole.program), dump::program(&split.program));
        }
    }
}
