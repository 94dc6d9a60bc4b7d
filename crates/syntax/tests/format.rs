//! The formatter: what it changes, and that it changes nothing else in any program of the repository.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

fn check(text: &str, expected: &Expect) {
    let once = syntax::format::format(text).expect("a text that can be formatted");
    expected.assert_eq(&once);
    let twice = syntax::format::format(&once).expect("a text that can be formatted");
    assert_eq!(once, twice, "the second time changes more");
}

#[test]
fn indents_blocks_and_keeps_the_shape_of_continued_lines() {
    check(
        r#"


@name("a")
  header h_t{bit<8> a;
bit< 8 >  b;   // of b
}
control C( inout headers_t hdr ,in bit<8>x,
           inout meta_t meta)
(bit<8> size) {
   action a( bit<8> p ){ hdr.h.a=p; }
	table t {
	key = { hdr.h.a:exact;
	        hdr.h.b :ternary ; }
	actions = {
	a ; NoAction;
	}
	const entries = {
	( 1,2 ) : a(3);
	_:NoAction( );
	}
	}
apply{
if(hdr.h.isValid( )&&
   !( x>1 )) {
      t . apply( );


   } else if (x ==1)
   hdr.h.a = - 1;
   else
   {
     hdr.h.a=(bit<8>) -x+ (x - -1) ;
        }
   hdr.h.b[ 3:0 ]=x>0?1:0;
   /* A comment
      of two lines. */
   foo( x,
        { x,
          y } );
}
}
"#,
        &expect![[r#"
            @name("a")
            header h_t {bit<8> a;
                bit<8> b;  // of b
            }
            control C(inout headers_t hdr, in bit<8> x,
                      inout meta_t meta)
            (bit<8> size) {
                action a(bit<8> p) { hdr.h.a = p; }
                table t {
                    key = { hdr.h.a: exact;
                            hdr.h.b: ternary; }
                    actions = {
                        a; NoAction;
                    }
                    const entries = {
                        (1, 2): a(3);
                        _: NoAction();
                    }
                }
                apply {
                    if (hdr.h.isValid() &&
                        !(x>1)) {
                        t.apply();
                    } else if (x == 1)
                        hdr.h.a = -1;
                    else
                    {
                        hdr.h.a = (bit<8>) -x + (x - -1);
                    }
                    hdr.h.b[3:0] = x>0 ? 1 : 0;
                    /* A comment
                       of two lines. */
                    foo(x,
                        { x,
                          y });
                }
            }
        "#]],
    );
}

#[test]
fn aligns_what_the_author_aligned() {
    check(
        r#"struct s {
    bit<8>   a;
    // Of c.
    bit<16> cc; // second
    @a("x") int<4>     d;  // third
    bit<8> long   @name("l");
    bit<8> s @name("s");

    bit<8> e;
    bit<128> f;
}
const bit<8> A   = 1;
const bit<16> LONG = 2;
parser P() {
    state start {
        transition select(x) {
            1:   accept;
            20000: reject;
            default: start;
        }
    }
}
"#,
        &expect![[r#"
            struct s {
                bit<8>  a;
                // Of c.
                bit<16> cc;       // second
                @a("x") int<4> d; // third
                bit<8> long @name("l");
                bit<8> s    @name("s");

                bit<8> e;
                bit<128> f;
            }
            const bit<8> A     = 1;
            const bit<16> LONG = 2;
            parser P() {
                state start {
                    transition select(x) {
                        1:       accept;
                        20000:   reject;
                        default: start;
                    }
                }
            }
        "#]],
    );
}

#[test]
fn keeps_directives_and_strings_and_follows_their_branches() {
    check(
        "#define  F(x)   x +\\\n    1\n  #ifdef A\nif (a) {\n#else\nif (b) {\n#endif\nc = \"x\n   y\" ++  d;\n}\n@pragma  x  y\naction a() {\n}\r\n",
        &expect![[r##"
            #define  F(x)   x +\
                1
              #ifdef A
            if (a) {
            #else
            if (b) {
            #endif
                c = "x
               y" ++ d;
            }
            @pragma x y
            action a() {
            }
        "##]],
    );
    let ends = syntax::format::format("a;\r\n b;\n");
    assert_eq!(ends.as_deref(), Ok("a;\r\nb;\r\n"));
    for (text, line) in [("\n/* x", 2), ("a\nb \\\nc", 2), ("x = \"a;\n", 1)] {
        let refused = syntax::format::format(text).expect_err("a text that cannot be formatted");
        assert_eq!(refused.line, line, "{refused}");
    }
}

fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder");
    for path in entries.map(|e| e.expect("an entry").path()) {
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|end| end == "p4") {
            found.push(path);
        }
    }
}

#[test]
fn formats_every_program_of_the_repository_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in [
        "benches",
        "examples",
        "p4include",
        "python/holdfast",
        "tests/p4",
    ] {
        programs(&root.join(folder), &mut all);
    }
    let formatted = all.iter().filter(|path| {
        let text = String::from_utf8_lossy(&std::fs::read(path).expect("a program")).into_owned();
        match syntax::format::format(&text) {
            Ok(once) => {
                let is_test = path.starts_with(root.join("tests"));
                assert!(is_test || once == text, "holdfast fmt {}", path.display());
                assert_eq!(
                    syntax::format::format(&once),
                    Ok(once.clone()),
                    "{}",
                    path.display()
                );
                true
            }
            Err(refused) => {
                assert!(
                    !refused.reason.contains("would change"),
                    "{}",
                    path.display()
                );
                false
            }
        }
    });
    assert!(formatted.count() > 300);
}
