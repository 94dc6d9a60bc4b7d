//! Valid programs and their trees, one feature per test.

#[allow(dead_code, reason = "every test has its own part of it")]
mod dump;

use expect_test::{Expect, expect};

fn check(text: &str, tree: Expect) {
    let parsed = syntax::parse_str(text);
    assert_eq!(parsed.render(), "", "diagnostics for {text}");
    tree.assert_eq(&dump::program(&parsed.program));
}

/// Parses `text` as an expression, in a program that declares some types and values, and checks its syntax tree.
fn check_expr(text: &str, tree: Expect) {
    let program = format!(
        "struct S {{ }} struct G<T> {{ }} enum E {{ A }} const int v = 1; const int X = {text};"
    );
    let parsed = syntax::parse_str(&program);
    assert_eq!(parsed.render(), "", "diagnostics for {text}");
    let Some(syntax::ast::DeclKind::Const(decl)) = parsed.program.decls.last().map(|d| &d.kind)
    else {
        panic!("{text} made {:?}", parsed.program.decls.last());
    };
    tree.assert_eq(&dump::expr(&decl.value));
}

/// Parses `text` as statements in the body of a control, and checks the syntax tree.
fn check_stmts(text: &str, tree: Expect) {
    let program = format!("struct S {{ }} struct G<T> {{ }} control c() {{ apply {{ {text} }} }}");
    let parsed = syntax::parse_str(&program);
    assert_eq!(parsed.render(), "", "diagnostics for {text}");
    let last = syntax::ast::Program {
        decls: parsed.program.decls.last().cloned().into_iter().collect(),
        ..Default::default()
    };
    tree.assert_eq(&dump::program(&last));
}

// -- Literals ---------------------------------------------------------------------------------------------------------

#[test]
fn integers() {
    check_expr("10", expect!["10"]);
    check_expr("0xFf", expect!["0xFf"]);
    check_expr("0D1_000", expect!["1000"]);
    check_expr("0o17 + 0b1_01", expect!["(+ 0o17 0b101)"]);
    check_expr(
        "8w0b_1010_1010 ++ 32s0xFF ++ 16w0377",
        expect!["(++ (++ 8w0b10101010 32s0xFF) 16w0377)"],
    );
    check_expr(
        "256w0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        expect!["256w0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"],
    );
}

#[test]
fn other_literals() {
    check_expr("true", expect!["true"]);
    check_expr("\"a \\\" b\" ++ \"\"", expect![[r#"(++ "a \\\" b" "")"#]]);
    check_expr("{#}", expect!["{#}"]);
    check_expr("...", expect!["..."]);
    check_expr("this", expect!["this"]);
}

// -- Expressions ------------------------------------------------------------------------------------------------------

#[test]
fn precedence() {
    check_expr("a + b * c - d", expect!["(- (+ a (* b c)) d)"]);
    check_expr(
        "a || b && c == d | e ^ f & g << 1",
        expect!["(|| a (&& b (== c (| d (^ e (& f (<< g 1)))))))"],
    );
    check_expr(
        "a ++ b + c |+| d |-| e",
        expect!["(|-| (|+| (+ (++ a b) c) d) e)"],
    );
    check_expr("!a == ~b", expect!["(== (! a) (~ b))"]);
    check_expr("-a.b[1] % +c", expect!["(% (- ([] (. a b) 1)) (+ c))"]);
    check_expr("a == b < c", expect!["(== a (< b c))"]);
    check_expr("(a + b) * c", expect!["(* (+ a b) c)"]);
}

#[test]
fn shifts_and_comparisons() {
    check_expr("a >> 1 > b", expect!["(> (>> a 1) b)"]);
    check_expr("a < b", expect!["(< a b)"]);
    check_expr("a < b > (c)", expect!["(> (< a b) c)"]);
    check_expr("a <= b", expect!["(<= a b)"]);
    check_expr("v < E.A", expect!["(< v (. E A))"]);
}

#[test]
fn ternary() {
    check_expr("a ? b : c ? d : e", expect!["(?: a b (?: c d e))"]);
    check_expr("a ? b ? c : d : e", expect!["(?: a (?: b c d) e)"]);
}

#[test]
fn postfixes() {
    check_expr("a.b.c[i + 1]", expect!["([] (. (. a b) c) (+ i 1))"]);
    check_expr("a[7:0]", expect!["([:] a 7 0)"]);
    check_expr("a[i +: 8]", expect!["([+:] a i 8)"]);
    check_expr("a[c ? 1 : 2 : 0]", expect!["([:] a (?: c 1 2) 0)"]);
    check_expr(
        "f(x, _, n = 3, m = _)",
        expect!["(call f x _ (= n 3) (= m _))"],
    );
    check_expr(
        "a.apply().action_run",
        expect!["(. (call (. a apply)) action_run)"],
    );
    check_expr(".a.key.type", expect!["(. (. .a key) type)"]);
    check_expr("error.NoError", expect!["(. (type error) NoError)"]);
}

#[test]
fn type_arguments_in_expressions() {
    check_expr("f<bit<8>>(x)", expect!["(call f (<> (bit 8)) x)"]);
    check_expr("p.lookahead<S>()", expect!["(call (. p lookahead) (<> S))"]);
    check_expr(
        "f<_, G<G<bit<8>>>>(x)",
        expect!["(call f (<> _ (of G (of G (bit 8)))) x)"],
    );
    check_expr("G<S>(1)", expect!["(call G (<> S) 1)"]);
    check_expr(
        "G<bit<8>>.apply()",
        expect!["(call (. (type (of G (bit 8))) apply))"],
    );
    check_expr("f<error>(x)", expect!["(call f (<> error) x)"]);
    check_expr("f<list<S>>(x)", expect!["(call f (<> (list S)) x)"]);
}

#[test]
fn casts() {
    check_expr("(bit<8>) x", expect!["(cast (bit 8) x)"]);
    check_expr("(S) x", expect!["(cast S x)"]);
    check_expr("(.S) -x", expect!["(cast .S (- x))"]);
    check_expr("(v) - x", expect!["(- v x)"]);
    check_expr("(S) {1, 2}", expect!["(cast S (list 1 2))"]);
    check_expr(
        "(G<bit<8>>) { f = 1 }",
        expect!["(cast (of G (bit 8)) (record (= f 1)))"],
    );
    check_expr("(S[2]) {...}", expect!["(cast (stack S 2) (list ...))"]);
    check_expr("(E.A)", expect!["(. E A)"]);
    check_expr("(bool)(bit<1>) x", expect!["(cast bool (cast (bit 1) x))"]);
    check_expr("(Unknown) x", expect!["(cast Unknown x)"]);
    check_expr("(int) 3", expect!["(cast int 3)"]);
    check_expr("(error) x", expect!["(cast error x)"]);
    check_expr(
        "(tuple<bit<8>, bool>) { 1, true }",
        expect!["(cast (tuple (bit 8) bool) (list 1 true))"],
    );
}

#[test]
fn lists_and_records() {
    check_expr("{}", expect!["(list)"]);
    check_expr("{1, {2, 3}, }", expect!["(list 1 (list 2 3))"]);
    check_expr("{1, ...}", expect!["(list 1 ...)"]);
    check_expr(
        "{a = 1, b = {c = 2}, }",
        expect!["(record (= a 1) (= b (record (= c 2))))"],
    );
    check_expr("{a = 1, ...}", expect!["(record (= a 1) ...)"]);
    check_expr(
        "{key = 1, list = 2}",
        expect!["(record (= key 1) (= list 2))"],
    );
}

#[test]
fn a_value_may_hide_a_type() {
    check(
        "struct S { } const bool X = f<S>(1); const int S = 1; const bool Y = (S) - 1;",
        expect![[r#"
        (struct S)
        (const bool X (call f (<> S) 1))
        (const int S 1)
        (const bool Y (- S 1))
    "#]],
    );
    check(
        "extern bool f<T>(in T x); const bool Y = (T) - 1;",
        expect![[r#"
        (extern-function bool f (type-params T) (params (in T x)))
        (const bool Y (- T 1))
    "#]],
    );
}

// -- Types ------------------------------------------------------------------------------------------------------------

#[test]
fn types() {
    check(
        "struct S<T> { bit a; bit<8> b; int<W> c; varbit<(A > B ? A : B)> d; bool e; error f; T g; H[4] h; .X i;
         tuple<bit<8>, T> j; G<bit<8>, G<T, _>> k; list<S<T>> l; string m; int n; bit<W - 1>[2][3] o; match_kind p;
         tuple<> q; }",
        expect![[r#"
            (struct S
              (type-params T)
              (bit a)
              ((bit 8) b)
              ((int W) c)
              ((varbit (?: (> A B) A B)) d)
              (bool e)
              (error f)
              (T g)
              ((stack H 4) h)
              (.X i)
              ((tuple (bit 8) T) j)
              ((of G (bit 8) (of G T _)) k)
              ((list (of S T)) l)
              (string m)
              (int n)
              ((stack (stack (bit (- W 1)) 2) 3) o)
              (match_kind p)
              ((tuple) q))
        "#]],
    );
    check(
        "header H { @name(\"x\") bit<8> type; varbit<32> key; } header_union U { H a; }",
        expect![[r#"
        (header H ((bit 8) type (@name "x")) ((varbit 32) key))
        (header-union U (H a))
    "#]],
    );
    check(
        "typedef bit<9> Port; type Port PortId; typedef struct S { } T;",
        expect![[r#"
        (typedef (bit 9) Port)
        (type Port PortId)
        (typedef (struct S) T)
    "#]],
    );
    check(
        "enum E { A, B, } enum bit<8> F { A = 1, B = 2 + 3 } enum Port G { A = 1 }",
        expect![[r#"
        (enum E A B)
        (enum F (bit 8) (= A 1) (= B (+ 2 3)))
        (enum G Port (= A 1))
    "#]],
    );
    check(
        "error { A, B } match_kind { exact, lpm, } error { }",
        expect![[r#"
        (error A B)
        (match-kind exact lpm)
        (error)
    "#]],
    );
}

// -- Declarations -----------------------------------------------------------------------------------------------------

#[test]
fn externs() {
    check(
        "extern X<T> { X(int n); @pure abstract T f(in T a, @optional out bit<8> b); void g<U>(U a = 1); }
         extern T h<T>(in T a); extern void i(); extern E { } @a extern E j();",
        expect![[r#"
            (extern X
              (type-params T)
              (constructor (int n))
              (abstract-method T f (params (in T a) (out (bit 8) b @optional)) @pure)
              (method void g (type-params U) (params (U a (default 1)))))
            (extern-function T h (type-params T) (params (in T a)))
            (extern-function void i)
            (extern E)
            (extern-function E j @a)
        "#]],
    );
}

#[test]
fn constants_and_functions() {
    check(
        "const bit<8> A = 1; @inline bit<8> f<T>(in T a, inout bit<8> b) { return a; } void g() { }",
        expect![[r#"
        (const (bit 8) A 1)
        (function (bit 8) f (type-params T) (params (in T a) (inout (bit 8) b)) (block (return a)) @inline)
        (function void g (block))
    "#]],
    );
    check(
        "S f(in S x) { return x; } .S g() { return {}; }",
        expect![[r#"
        (function S f (params (in S x)) (block (return x)))
        (function .S g (block (return (list))))
    "#]],
    );
}

#[test]
fn instantiations() {
    check(
        "P(A(), B()) main; X<bit<8>>(1, n = 2) x; @a(b) X() y;",
        expect![[r#"
        (instance P main (args (call A) (call B)))
        (instance (of X (bit 8)) x (args 1 (= n 2)))
        (instance X y (@a b))
    "#]],
    );
    check(
        "X() x = { bit<8> f(in bit<8> a) { return this.g(a); } Y() y; };",
        expect![[r#"
        (instance X x
          (body
            (function (bit 8) f (params (in (bit 8) a)) (block (return (call (. this g) a))))
            (instance Y y)))
    "#]],
    );
}

#[test]
fn architecture() {
    check(
        "parser P<H>(packet_in b, out H h); control C<H>(inout H h); package S<H>(P<H> p, C<H> c = D());",
        expect![[r#"
        (parser-type P (type-params H) (params (packet_in b) (out H h)))
        (control-type C (type-params H) (params (inout H h)))
        (package S (type-params H) (params ((of P H) p) ((of C H) c (default (call D)))))
    "#]],
    );
}

#[test]
fn parsers() {
    check(
        "parser p(packet_in b, out H h)(bit<8> n) {
            const bit<8> A = 1; bit<8> v = 2; X() x; @id(1) value_set<bit<8>>(4) s; value_set<tuple<bit<8>, T>>(4) t;
            @name(\"st\") state start { ; b.extract(h.a); v = 1; { bit<8> w; } if (v == 1) v = 2; transition next; }
            state next { transition select(h.a, b.lookahead<bit<8>>()) {
                (1, _): a; (0x0F &&& 0xFF, 1 .. 3): b; (s, default): c; default: accept; } }
            state more { transition select(v) { 1: a; 1 .. 2: b; (3): c; 4 &&& 5: d; s: e; (bit<8>) 1: f; _: reject; } }
            state end { }
        }",
        expect![[r#"
            (parser p
              (params (packet_in b) (out H h))
              (constructor-params ((bit 8) n))
              (const (bit 8) A 1)
              (var (bit 8) v 2)
              (instance X x)
              (value-set (bit 8) 4 s (@id 1))
              (value-set (tuple (bit 8) T) 4 t)
              (state start
                (empty)
                (call (. b extract) (. h a))
                (= v 1)
                (block (var (bit 8) w))
                (if (== v 1) (= v 2))
                (transition next)
                (@name "st"))
              (state next
                (select
                  ((. h a) (call (. b lookahead) (<> (bit 8))))
                  (case (1 _) a)
                  (case ((&&& 0x0F 0xFF) (.. 1 3)) b)
                  (case (s default) c)
                  (case (default) accept)))
              (state more
                (select
                  (v)
                  (case (1) a)
                  (case ((.. 1 2)) b)
                  (case (3) c)
                  (case ((&&& 4 5)) d)
                  (case (s) e)
                  (case ((cast (bit 8) 1)) f)
                  (case (_) reject)))
              (state end))
        "#]],
    );
}

#[test]
fn controls_and_tables() {
    check(
        "control c(inout H h)(int n) {
            bit<8> v; X(n) x;
            action a(inout bit<8> p, bit<9> q) { p = 1; }
            @hidden table t {
                key = { h.a : exact @name(\"k\"); h.b & 1 : lpm; c ? a : b : ternary; }
                actions = { a(v); @tableonly b; .d; }
                const default_action = b();
                size = 1024 * n;
                @x implementation = action_profile(32);
                psa_idle_timeout = E.A;
            }
            table u { actions = { } const entries = {
                (1, _) : a(2) @name(\"e\");
                const priority = 10: (1 &&& 2, 3 .. 4) : b;
                priority = (n + 1): 5 : b();
                default : b; } }
            apply { t.apply(); }
        }",
        expect![[r#"
            (control c
              (params (inout H h))
              (constructor-params (int n))
              (var (bit 8) v)
              (instance X x (args n))
              (action a (params (inout (bit 8) p) ((bit 9) q)) (block (= p 1)))
              (table t
                (key ((. h a) exact (@name "k")) ((& (. h b) 1) lpm) ((?: c a b) ternary))
                (actions (a (args v)) (b @tableonly) .d)
                (default_action const (call b))
                (size (* 1024 n))
                (implementation (call action_profile 32) @x)
                (psa_idle_timeout (. E A))
                @hidden)
              (table u
                (actions)
                (entries const
                  (entry (1 _) (a (args 2)) (@name "e"))
                  (entry const (priority 10) ((&&& 1 2) (.. 3 4)) b)
                  (entry (priority (+ n 1)) (5) (b (args)))
                  (entry (default) b)))
              (apply (block (call (. t apply)))))
        "#]],
    );
}

// -- Statements -------------------------------------------------------------------------------------------------------

#[test]
fn assignments() {
    check_stmts(
        "a = 1; a.b[1] = 2; a[7:0] = 3; a[i +: 2] = 3; (a) = 4; a += 1; a -= 1; a |+|= 1; a |-|= 1; a *= 1; a /= 1;
         a %= 1; a <<= 1; a >>= 1; a &= 1; a |= 1; a ^= 1; .a = 1; this.a = 1;",
        expect![[r#"
            (control c
              (apply
                (block
                  (= a 1)
                  (= ([] (. a b) 1) 2)
                  (= ([:] a 7 0) 3)
                  (= ([+:] a i 2) 3)
                  (= a 4)
                  (+= a 1)
                  (-= a 1)
                  (|+|= a 1)
                  (|-|= a 1)
                  (*= a 1)
                  (/= a 1)
                  (%= a 1)
                  (<<= a 1)
                  (>>= a 1)
                  (&= a 1)
                  (|= a 1)
                  (^= a 1)
                  (= .a 1)
                  (= (. this a) 1))))
        "#]],
    );
}

#[test]
fn calls() {
    check_stmts(
        "f(); a.b(1); f<T>(1); a.f<T, bit<8>>(x); S.apply(1); G<bit<8>>.apply(x); .f(1);",
        expect![[r#"
        (control c
          (apply
            (block
              (call f)
              (call (. a b) 1)
              (call f (<> T) 1)
              (call (. a f) (<> T (bit 8)) x)
              (call (. S apply) 1)
              (call (. (type (of G (bit 8))) apply) x)
              (call .f 1))))
    "#]],
    );
}

#[test]
fn local_declarations() {
    check_stmts(
        "bit<8> a; S b = {}; G<S> c; X<y> d; S[2] e; Unknown f; const int g = 1; @a bool h; X(1) i; X<T>(1) j;
         tuple<bool> k; list<S> l = {}; error m; .S n; bit<8> key = 1; S type; int o = 1;",
        expect![[r#"
            (control c
              (apply
                (block
                  (var (bit 8) a)
                  (var S b (list))
                  (var (of G S) c)
                  (var (of X y) d)
                  (var (stack S 2) e)
                  (var Unknown f)
                  (const int g 1)
                  (var bool h @a)
                  (instance X i (args 1))
                  (instance (of X T) j (args 1))
                  (var (tuple bool) k)
                  (var (list S) l (list))
                  (var error m)
                  (var .S n)
                  (var (bit 8) key 1)
                  (var S type)
                  (var int o 1))))
        "#]],
    );
}

#[test]
fn conditions_and_switches() {
    check_stmts(
        "if (a) b(); else if (c) { } else { d(); } return; return a + 1; exit;",
        expect![[r#"
        (control c
          (apply (block (if a (call b) (if c (block) (block (call d)))) (return) (return (+ a 1)) (exit))))
    "#]],
    );
    check_stmts(
        "switch (t.apply().action_run) { a: b: { x(); } default: { } }
         switch (x) { 1: { } (2 + 3): @a { } E.A: { } .b: { } }",
        expect![[r#"
            (control c
              (apply
                (block
                  (switch
                    (. (call (. t apply)) action_run)
                    (case a)
                    (case b (block (call x)))
                    (case default (block)))
                  (switch x (case 1 (block)) (case (+ 2 3) (block @a)) (case (. E A) (block)) (case .b (block))))))
        "#]],
    );
}

#[test]
fn loops() {
    check_stmts(
        "for (bit<8> i = 0, j = 1; i < 8; i += 1, f(i)) { break; }
         for (i = 0; i < 8; i = i + 1) continue;
         for (; true; ) { }
         @unroll for (bit<8> i in 1 .. 8) { }
         for (@a H h in hs) f(h);
         for (S s in (list<S>) {}) ;",
        expect![[r#"
            (control c
              (apply
                (block
                  (for ((var (bit 8) i 0) (= j 1)) (< i 8) ((+= i 1) (call f i)) (block (break)))
                  (for ((= i 0)) (< i 8) ((= i (+ i 1))) (continue))
                  (for () true () (block))
                  (for-in (var (bit 8) i) (.. 1 8) (block) @unroll)
                  (for-in (var H h @a) hs (call f h))
                  (for-in (var S s) (cast (list S) (list)) (empty)))))
        "#]],
    );
}

#[test]
fn annotations() {
    check(
        "@a @b() @c(x (1, \"s\") 0x1F $ ;) @d[] @e[1, x + 2,] @f[k = 1, key = \"v\"] @table(1) const int A = 1;
         @pragma foo bar 1
         const int B = 2;
         @pragma baz
         @x const int C = 3;",
        expect![[r#"
            (const int A 1 @a
              (@b)
              (@c x ( 1 , "s" ) 0x1F $ ;)
              (@d (list))
              (@e (list 1 (+ x 2)))
              (@f (= k 1) (= key "v"))
              (@table 1))
            (const int B 2 (@pragma foo bar 1))
            (const int C 3 @pragma baz @x)
        "#]],
    );
}

#[test]
fn contextual_keywords_are_names() {
    check(
        "struct apply { bit<8> key; bit<8> actions; bit<8> state; bit<8> entries; bit<8> type; bit<8> priority;
             bit<8> list; }
         control c(inout bit<8> key, in bit<8> state) {
             action actions(bit<8> type) { key = type + state; } table priority { actions = { actions; } }
             apply { bit<8> apply = key; priority.apply(); apply = state; entries = 1; type = 2; } }",
        expect![[r#"
            (struct apply
              ((bit 8) key)
              ((bit 8) actions)
              ((bit 8) state)
              ((bit 8) entries)
              ((bit 8) type)
              ((bit 8) priority)
              ((bit 8) list))
            (control c
              (params (inout (bit 8) key) (in (bit 8) state))
              (action actions (params ((bit 8) type)) (block (= key (+ type state))))
              (table priority (actions actions))
              (apply
                (block
                  (var (bit 8) apply key)
                  (call (. priority apply))
                  (= apply state)
                  (= entries 1)
                  (= type 2))))
        "#]],
    );
}

#[test]
fn empty_declarations() {
    check(
        "; const int A = 1; ;",
        expect![[r#"
        (const int A 1)
    "#]],
    );
    check("", expect![[r#""#]]);
}

// -- Things beside the dump -------------------------------------------------------------------------------------------

#[test]
fn spans_cover_what_they_name() {
    let parsed = syntax::parse_str("const bit<8> A = (1 + 2) * x[3:1];\nstruct S { bit<8> f; }");
    let text = |span| parsed.sources.text(span);
    let [constant, structure] = parsed.program.decls.as_slice() else {
        panic!("{:?}", parsed.program)
    };
    assert_eq!(text(constant.span), "const bit<8> A = (1 + 2) * x[3:1];");
    assert_eq!(text(structure.span), "struct S { bit<8> f; }");
    let syntax::ast::DeclKind::Const(decl) = &constant.kind else {
        panic!("{constant:?}")
    };
    assert_eq!(text(decl.ty.span), "bit<8>");
    assert_eq!(text(decl.value.span), "(1 + 2) * x[3:1]");
    let syntax::ast::ExprKind::Binary {
        left,
        right,
        op_span,
        ..
    } = &decl.value.kind
    else {
        panic!("{decl:?}")
    };
    assert_eq!(
        (text(left.span), text(*op_span), text(right.span)),
        ("(1 + 2)", "*", "x[3:1]")
    );
}

#[test]
fn annotation_values() {
    let parsed = syntax::parse_str(
        "@name(\"a.\" \"b\") @id(0x2a) @id[42] @doc[\"d\"] @x(y) const int A = 1;",
    );
    let annotations = &parsed.program.decls[0].annotations;
    let strings: Vec<_> = annotations.iter().map(|a| a.string()).collect();
    assert_eq!(
        strings,
        [
            Some("a.b".to_string()),
            None,
            None,
            Some("d".to_string()),
            None
        ]
    );
    let ints: Vec<_> = annotations
        .iter()
        .map(|a| a.int().map(|i| (i.radix, i.digits.to_string())))
        .collect();
    let both = [Some((16, "2a".to_string())), Some((10, "42".to_string()))];
    assert_eq!(ints, [&[None], &both[..], &[None, None]].concat());
}
