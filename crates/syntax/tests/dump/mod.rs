//! Prints the tree as text.
//!
//! The text has S-expressions without places. It follows the tree node by node and is not meant to be read back.

use syntax::ast::*;

/// Renders a program as text, each declaration on a line or, if it is long, a block of lines.
pub fn program(program: &Program) -> String {
    let mut out = String::new();
    for decl in &program.decls {
        out.push_str(&decl_sexp(decl).layout(0));
        out.push('\n');
    }
    out
}

/// Renders an expression on one line.
pub fn expr(expr: &Expr) -> String {
    expr_sexp(expr).flat()
}

enum Sexp {
    Atom(String),
    List(Vec<Sexp>),
}

impl Sexp {
    fn flat(&self) -> String {
        match self {
            Sexp::Atom(text) => text.clone(),
            Sexp::List(items) => format!(
                "({})",
                items.iter().map(Sexp::flat).collect::<Vec<_>>().join(" ")
            ),
        }
    }

    /// Renders the node on one line if it fits into 100 characters, else with its parts on separate lines.
    /// `indent` is the indentation in characters.
    fn layout(&self, indent: usize) -> String {
        let flat = self.flat();
        let Sexp::List(items) = self else { return flat };
        if indent + flat.len() <= 100 {
            return flat;
        }
        let head = items
            .iter()
            .take_while(|i| matches!(i, Sexp::Atom(_)))
            .count();
        let mut out = format!(
            "({}",
            items[..head]
                .iter()
                .map(Sexp::flat)
                .collect::<Vec<_>>()
                .join(" ")
        );
        for item in &items[head..] {
            out.push('\n');
            out.push_str(&" ".repeat(indent + 2));
            out.push_str(&item.layout(indent + 2));
        }
        out.push(')');
        out
    }
}

fn atom(text: impl Into<String>) -> Sexp {
    Sexp::Atom(text.into())
}

/// Makes a node from its head and its parts.
fn node(head: &str, parts: impl IntoIterator<Item = Sexp>) -> Sexp {
    let mut items = vec![atom(head)];
    items.extend(parts);
    Sexp::List(items)
}

/// Makes a node from its head and its parts; `None` if it has no parts.
fn group(head: &str, parts: impl IntoIterator<Item = Sexp>) -> Option<Sexp> {
    let mut parts = parts.into_iter().peekable();
    parts.peek()?;
    Some(node(head, parts))
}

fn name(name: &Name) -> Sexp {
    atom(name.as_str())
}

fn names(head: &str, list: &[Name]) -> Option<Sexp> {
    group(head, list.iter().map(name))
}

fn path(path: &Path) -> Sexp {
    atom(format!(
        "{}{}",
        if path.absolute { "." } else { "" },
        path.name
    ))
}

// -- Declarations -----------------------------------------------------------------------------------------------------

fn decl_sexp(decl: &Decl) -> Sexp {
    let Sexp::List(mut items) = decl_kind(&decl.kind) else {
        return atom("?");
    };
    items.extend(decl.annotations.iter().map(annotation));
    Sexp::List(items)
}

fn decl_kind(kind: &DeclKind) -> Sexp {
    match kind {
        DeclKind::Const(d) => node(
            "const",
            [type_sexp(&d.ty), name(&d.name), expr_sexp(&d.value)],
        ),
        DeclKind::Var(d) => node(
            "var",
            [type_sexp(&d.ty), name(&d.name)]
                .into_iter()
                .chain(d.init.iter().map(expr_sexp)),
        ),
        DeclKind::Instantiation(d) => {
            let mut parts = vec![type_sexp(&d.ty), name(&d.name)];
            parts.extend(group("args", d.args.iter().map(argument)));
            parts.extend(
                d.body
                    .iter()
                    .map(|body| node("body", body.iter().map(decl_sexp))),
            );
            node("instance", parts)
        }
        DeclKind::Function(d) => node(
            "function",
            signature(&d.signature).into_iter().chain([block(&d.body)]),
        ),
        DeclKind::ExternFunction(d) => node("extern-function", signature(d)),
        DeclKind::Extern(d) => {
            let params = names("type-params", &d.type_params);
            let head = [name(&d.name)].into_iter().chain(params);
            node("extern", head.chain(d.members.iter().map(extern_member)))
        }
        DeclKind::Action(d) => {
            let params = group("params", d.params.iter().map(param));
            node(
                "action",
                [name(&d.name)]
                    .into_iter()
                    .chain(params)
                    .chain([block(&d.body)]),
            )
        }
        DeclKind::Parser(d) => {
            let head = block_type(&d.ty, &d.constructor_params).into_iter();
            node(
                "parser",
                head.chain(d.locals.iter().map(decl_sexp))
                    .chain(d.states.iter().map(state)),
            )
        }
        DeclKind::Control(d) => {
            let head = block_type(&d.ty, &d.constructor_params).into_iter();
            node(
                "control",
                head.chain(d.locals.iter().map(decl_sexp))
                    .chain([node("apply", [block(&d.apply)])]),
            )
        }
        DeclKind::ParserType(d) => node("parser-type", block_type(d, &[])),
        DeclKind::ControlType(d) => node("control-type", block_type(d, &[])),
        DeclKind::Package(d) => node("package", block_type(d, &[])),
        DeclKind::ValueSet(d) => node(
            "value-set",
            [type_sexp(&d.ty), expr_sexp(&d.size), name(&d.name)],
        ),
        DeclKind::Table(d) => node(
            "table",
            [name(&d.name)]
                .into_iter()
                .chain(d.properties.iter().map(table_property)),
        ),
        _ => type_decl(kind),
    }
}

/// Renders a declaration of a type, or of members of `error` or `match_kind`.
fn type_decl(kind: &DeclKind) -> Sexp {
    match kind {
        DeclKind::Typedef(d) => {
            let target = match &d.target {
                TypedefTarget::Type(ty) => type_sexp(ty),
                TypedefTarget::Decl(decl) => decl_sexp(decl),
            };
            node("typedef", [target, name(&d.name)])
        }
        DeclKind::NewType(d) => node("type", [type_sexp(&d.ty), name(&d.name)]),
        DeclKind::Header(d) => struct_like("header", d),
        DeclKind::HeaderUnion(d) => struct_like("header-union", d),
        DeclKind::Struct(d) => struct_like("struct", d),
        DeclKind::Enum(d) => {
            let members = d.members.iter().map(|m| match &m.value {
                None => name(&m.name),
                Some(value) => node("=", [name(&m.name), expr_sexp(value)]),
            });
            node(
                "enum",
                [name(&d.name)]
                    .into_iter()
                    .chain(d.underlying.iter().map(type_sexp))
                    .chain(members),
            )
        }
        DeclKind::Error(list) => node("error", list.iter().map(name)),
        DeclKind::MatchKind(list) => node("match-kind", list.iter().map(name)),
        _ => atom("?"),
    }
}

fn signature(s: &Signature) -> Vec<Sexp> {
    let mut parts = vec![type_sexp(&s.return_type), name(&s.name)];
    parts.extend(names("type-params", &s.type_params));
    parts.extend(group("params", s.params.iter().map(param)));
    parts
}

fn extern_member(member: &ExternMember) -> Sexp {
    let mut sexp = match &member.kind {
        ExternMemberKind::Constructor { params, .. } => {
            node("constructor", params.iter().map(param))
        }
        ExternMemberKind::Method {
            is_abstract,
            signature: s,
        } => node(
            if *is_abstract {
                "abstract-method"
            } else {
                "method"
            },
            signature(s),
        ),
    };
    if let Sexp::List(items) = &mut sexp {
        items.extend(member.annotations.iter().map(annotation));
    }
    sexp
}

fn block_type(ty: &BlockType, constructor_params: &[Param]) -> Vec<Sexp> {
    let mut parts = vec![name(&ty.name)];
    parts.extend(names("type-params", &ty.type_params));
    parts.extend(group("params", ty.params.iter().map(param)));
    parts.extend(group(
        "constructor-params",
        constructor_params.iter().map(param),
    ));
    parts
}

fn struct_like(head: &str, d: &StructLike) -> Sexp {
    let fields = d.fields.iter().map(|f| {
        Sexp::List(
            [type_sexp(&f.ty), name(&f.name)]
                .into_iter()
                .chain(f.annotations.iter().map(annotation))
                .collect(),
        )
    });
    node(
        head,
        [name(&d.name)]
            .into_iter()
            .chain(names("type-params", &d.type_params))
            .chain(fields),
    )
}

fn param(p: &Param) -> Sexp {
    let direction = match p.direction {
        Direction::None => None,
        Direction::In => Some(atom("in")),
        Direction::Out => Some(atom("out")),
        Direction::InOut => Some(atom("inout")),
    };
    let parts = direction
        .into_iter()
        .chain([type_sexp(&p.ty), name(&p.name)]);
    let default = p
        .default
        .iter()
        .map(|value| node("default", [expr_sexp(value)]));
    Sexp::List(
        parts
            .chain(default)
            .chain(p.annotations.iter().map(annotation))
            .collect(),
    )
}

fn state(s: &ParserState) -> Sexp {
    let mut parts = vec![name(&s.name)];
    parts.extend(s.body.iter().map(stmt));
    parts.extend(s.transition.iter().map(|t| match &t.kind {
        TransitionKind::State(next) => node("transition", [name(next)]),
        TransitionKind::Select { args, cases } => {
            let cases = cases
                .iter()
                .map(|c| node("case", [keysets(&c.keysets), name(&c.state)]));
            node(
                "select",
                [Sexp::List(args.iter().map(expr_sexp).collect())]
                    .into_iter()
                    .chain(cases),
            )
        }
    }));
    parts.extend(s.annotations.iter().map(annotation));
    node("state", parts)
}

fn keysets(sets: &Keysets) -> Sexp {
    Sexp::List(sets.items.iter().map(keyset).collect())
}

fn keyset(set: &Keyset) -> Sexp {
    match &set.kind {
        KeysetKind::Expr(e) => expr_sexp(e),
        KeysetKind::Mask(value, mask) => node("&&&", [expr_sexp(value), expr_sexp(mask)]),
        KeysetKind::Range(low, high) => node("..", [expr_sexp(low), expr_sexp(high)]),
        KeysetKind::Default => atom("default"),
        KeysetKind::DontCare => atom("_"),
    }
}

fn table_property(p: &TableProperty) -> Sexp {
    let mut parts = Vec::new();
    if p.is_const {
        parts.push(atom("const"));
    }
    match &p.kind {
        TablePropertyKind::Key(elements) => parts.extend(elements.iter().map(|k| {
            let annotations = k.annotations.iter().map(annotation);
            Sexp::List(
                [expr_sexp(&k.expr), name(&k.match_kind)]
                    .into_iter()
                    .chain(annotations)
                    .collect(),
            )
        })),
        TablePropertyKind::Actions(actions) => parts.extend(actions.iter().map(action_ref)),
        TablePropertyKind::Entries(entries) => parts.extend(entries.iter().map(entry)),
        TablePropertyKind::DefaultAction(e)
        | TablePropertyKind::Size(e)
        | TablePropertyKind::Custom(e) => {
            parts.push(expr_sexp(e));
        }
    }
    parts.extend(p.annotations.iter().map(annotation));
    node(p.name.as_str(), parts)
}

fn action_ref(a: &ActionRef) -> Sexp {
    let args = a
        .args
        .iter()
        .map(|args| node("args", args.iter().map(argument)));
    let parts: Vec<_> = args.chain(a.annotations.iter().map(annotation)).collect();
    if parts.is_empty() {
        path(&a.path)
    } else {
        Sexp::List([path(&a.path)].into_iter().chain(parts).collect())
    }
}

fn entry(e: &Entry) -> Sexp {
    let mut parts = Vec::new();
    if e.is_const {
        parts.push(atom("const"));
    }
    parts.extend(e.priority.iter().map(|p| node("priority", [expr_sexp(p)])));
    parts.push(keysets(&e.keysets));
    parts.push(action_ref(&e.action));
    parts.extend(e.annotations.iter().map(annotation));
    node("entry", parts)
}

fn annotation(a: &Annotation) -> Sexp {
    let head = format!("{}{}", if a.is_pragma { "@pragma " } else { "@" }, a.name);
    match &a.body {
        AnnotationBody::None => atom(head),
        AnnotationBody::Tokens(tokens) => node(&head, tokens.iter().map(annotation_token)),
        AnnotationBody::List(list) => node(&head, [node("list", list.iter().map(expr_sexp))]),
        AnnotationBody::KeyValue(list) => node(&head, list.iter().map(named)),
    }
}

fn annotation_token(token: &AnnotationToken) -> Sexp {
    match &token.kind {
        AnnotationTokenKind::Word(text) | AnnotationTokenKind::Symbol(text) => atom(&**text),
        AnnotationTokenKind::Int(literal) => int(literal),
        AnnotationTokenKind::Str(text) => atom(format!("{text:?}")),
    }
}

fn named(n: &NamedExpr) -> Sexp {
    node("=", [name(&n.name), expr_sexp(&n.value)])
}

// -- Types ------------------------------------------------------------------------------------------------------------

fn type_sexp(ty: &Type) -> Sexp {
    match &ty.kind {
        TypeKind::Bool => atom("bool"),
        TypeKind::Error => atom("error"),
        TypeKind::MatchKind => atom("match_kind"),
        TypeKind::String => atom("string"),
        TypeKind::Int => atom("int"),
        TypeKind::Bit(None) => atom("bit"),
        TypeKind::Bit(Some(width)) => node("bit", [expr_sexp(width)]),
        TypeKind::SignedInt(width) => node("int", [expr_sexp(width)]),
        TypeKind::Varbit(width) => node("varbit", [expr_sexp(width)]),
        TypeKind::Void => atom("void"),
        TypeKind::DontCare => atom("_"),
        TypeKind::Named(p) => path(p),
        TypeKind::Specialised { path: p, args } => Sexp::List(
            [atom("of"), path(p)]
                .into_iter()
                .chain(args.iter().map(type_sexp))
                .collect(),
        ),
        TypeKind::Stack { element, size } => node("stack", [type_sexp(element), expr_sexp(size)]),
        TypeKind::Tuple(args) => node("tuple", args.iter().map(type_sexp)),
        TypeKind::List(element) => node("list", [type_sexp(element)]),
        TypeKind::Missing => atom("<missing>"),
    }
}

// -- Statements -------------------------------------------------------------------------------------------------------

fn block(b: &Block) -> Sexp {
    node(
        "block",
        b.stmts
            .iter()
            .map(stmt)
            .chain(b.annotations.iter().map(annotation)),
    )
}

fn stmt(s: &Stmt) -> Sexp {
    match &s.kind {
        StmtKind::Empty => node("empty", []),
        StmtKind::Assign { op, target, value } => {
            let op = format!("{}=", op.map_or("", BinaryOp::symbol));
            node(&op, [expr_sexp(target), expr_sexp(value)])
        }
        StmtKind::Call(call) => expr_sexp(call),
        StmtKind::If {
            condition,
            then_branch,
            else_branch,
        } => {
            let branches = [Some(then_branch), else_branch.as_ref()]
                .into_iter()
                .flatten()
                .map(|b| stmt(b));
            node("if", [expr_sexp(condition)].into_iter().chain(branches))
        }
        StmtKind::Switch { subject, cases } => {
            let cases = cases.iter().map(|c| {
                let label = match &c.label {
                    SwitchLabel::Default(_) => atom("default"),
                    SwitchLabel::Expr(e) => expr_sexp(e),
                };
                node("case", [label].into_iter().chain(c.body.iter().map(block)))
            });
            node("switch", [expr_sexp(subject)].into_iter().chain(cases))
        }
        StmtKind::Return(value) => node("return", value.iter().map(expr_sexp)),
        StmtKind::Exit => node("exit", []),
        StmtKind::Break => node("break", []),
        StmtKind::Continue => node("continue", []),
        StmtKind::Block(b) => block(b),
        StmtKind::For {
            annotations,
            init,
            condition,
            update,
            body,
        } => {
            let init = Sexp::List(init.iter().map(stmt).collect());
            let update = Sexp::List(update.iter().map(stmt).collect());
            let parts = [init, expr_sexp(condition), update, stmt(body)].into_iter();
            node("for", parts.chain(annotations.iter().map(annotation)))
        }
        StmtKind::ForIn {
            annotations,
            variable,
            collection,
            body,
        } => {
            let collection = match collection {
                ForCollection::Expr(e) => expr_sexp(e),
                ForCollection::Range(low, high) => node("..", [expr_sexp(low), expr_sexp(high)]),
            };
            let parts = [decl_sexp(variable), collection, stmt(body)].into_iter();
            node("for-in", parts.chain(annotations.iter().map(annotation)))
        }
        StmtKind::Decl(decl) => decl_sexp(decl),
    }
}

// -- Expressions ------------------------------------------------------------------------------------------------------

fn int(literal: &IntLiteral) -> Sexp {
    let width = match literal.width {
        None => String::new(),
        Some(IntWidth { bits, signed }) => format!("{bits}{}", if signed { 's' } else { 'w' }),
    };
    let prefix = match literal.radix {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    atom(format!("{width}{prefix}{}", literal.digits))
}

fn argument(a: &Argument) -> Sexp {
    let value = match &a.value {
        ArgumentValue::Expr(e) => expr_sexp(e),
        ArgumentValue::DontCare => atom("_"),
    };
    match &a.name {
        None => value,
        Some(n) => node("=", [name(n), value]),
    }
}

fn expr_sexp(e: &Expr) -> Sexp {
    match &e.kind {
        ExprKind::Int(literal) => int(literal),
        ExprKind::Bool(value) => atom(value.to_string()),
        ExprKind::Str(text) => atom(format!("{text:?}")),
        ExprKind::This => atom("this"),
        ExprKind::Dots => atom("..."),
        ExprKind::InvalidHeader => atom("{#}"),
        ExprKind::Path(p) => path(p),
        ExprKind::Type(ty) => node("type", [type_sexp(ty)]),
        ExprKind::Member { base, member } => node(".", [expr_sexp(base), name(member)]),
        ExprKind::Index { base, index } => node("[]", [expr_sexp(base), expr_sexp(index)]),
        ExprKind::Slice { base, high, low } => {
            node("[:]", [expr_sexp(base), expr_sexp(high), expr_sexp(low)])
        }
        ExprKind::PlusSlice { base, low, width } => {
            node("[+:]", [expr_sexp(base), expr_sexp(low), expr_sexp(width)])
        }
        ExprKind::Unary { op, operand } => node(op.symbol(), [expr_sexp(operand)]),
        ExprKind::Binary {
            op, left, right, ..
        } => node(op.symbol(), [expr_sexp(left), expr_sexp(right)]),
        ExprKind::Ternary {
            condition,
            if_true,
            if_false,
        } => node(
            "?:",
            [
                expr_sexp(condition),
                expr_sexp(if_true),
                expr_sexp(if_false),
            ],
        ),
        ExprKind::Cast { ty, operand } => node("cast", [type_sexp(ty), expr_sexp(operand)]),
        ExprKind::Call {
            callee,
            type_args,
            args,
        } => {
            let types = group("<>", type_args.iter().map(type_sexp));
            node(
                "call",
                [expr_sexp(callee)]
                    .into_iter()
                    .chain(types)
                    .chain(args.iter().map(argument)),
            )
        }
        ExprKind::List(items) => node("list", items.iter().map(expr_sexp)),
        ExprKind::Record { fields, dots } => node(
            "record",
            fields
                .iter()
                .map(named)
                .chain(dots.iter().map(|_| atom("..."))),
        ),
        ExprKind::Missing => atom("<missing>"),
    }
}
