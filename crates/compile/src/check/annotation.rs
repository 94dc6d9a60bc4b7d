//! Annotations whose form the language prescribes. [`crate::p4info`] interprets them for the control plane.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use syntax::ast::{
    self, Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, DeclKind,
};
use syntax::source::Span;

use super::Checker;
use crate::errors;
use crate::fold;
use crate::hir::ExprKind;
use crate::p4info::INT32_MAX;

/// Annotations with one string.
const WITH_STRING: [&str; 8] = [
    "name",
    "deprecated",
    "noWarn",
    "brief",
    "description",
    "controller_header",
    "p4runtime_role",
    "selector_size_semantics",
];

/// Annotations with one number, and the largest that P4Runtime has a place for.
const WITH_NUMBER: [(&str, u32); 4] = [
    ("id", u32::MAX),
    ("priority", u32::MAX),
    ("max_group_size", INT32_MAX),
    ("max_member_weight", INT32_MAX),
];

/// The annotation that names the role whose controllers may access an object (P4Runtime). It must appear only
/// once.
const ROLE: &str = "p4runtime_role";

impl Checker {
    /// Checks the annotations of a declaration, and those of its fields, parameters, members and other parts.
    pub(super) fn check_annotations(&mut self, decl: &ast::Decl) {
        self.annotations(&decl.annotations);
        match &decl.kind {
            DeclKind::Header(d) | DeclKind::HeaderUnion(d) | DeclKind::Struct(d) => {
                d.fields
                    .iter()
                    .for_each(|f| self.annotations(&f.annotations));
            }
            DeclKind::Action(action) => self.param_annotations(&action.params),
            DeclKind::Function(function) => self.param_annotations(&function.signature.params),
            DeclKind::ExternFunction(signature) => self.param_annotations(&signature.params),
            DeclKind::Extern(external) => {
                let members = external.members.iter();
                members.for_each(|m| self.annotations(&m.annotations));
            }
            DeclKind::Parser(parser) => {
                parser.locals.iter().for_each(|d| self.check_annotations(d));
                let states = parser.states.iter();
                states.for_each(|s| self.annotations(&s.annotations));
            }
            DeclKind::Control(control) => {
                control
                    .locals
                    .iter()
                    .for_each(|d| self.check_annotations(d));
            }
            DeclKind::Table(table) => table.properties.iter().for_each(|p| self.property(p)),
            _ => {}
        }
    }

    fn param_annotations(&mut self, params: &[ast::Param]) {
        params.iter().for_each(|p| self.annotations(&p.annotations));
    }

    fn property(&mut self, property: &ast::TableProperty) {
        use ast::TablePropertyKind as P;
        self.annotations(&property.annotations);
        match &property.kind {
            P::Key(keys) => keys.iter().for_each(|k| self.annotations(&k.annotations)),
            P::Actions(actions) => actions
                .iter()
                .for_each(|a| self.annotations(&a.annotations)),
            P::Entries(entries) => entries
                .iter()
                .for_each(|e| self.annotations(&e.annotations)),
            _ => {}
        }
    }

    /// Checks the form of the annotations of one declaration or of one part of it, such as a field or a
    /// parameter, and reports those that stand there twice although they must not.
    fn annotations(&mut self, annotations: &[Annotation]) {
        let structured = |a: &Annotation| {
            matches!(
                a.body,
                AnnotationBody::List(_) | AnnotationBody::KeyValue(_)
            )
        };
        // The first of each name, and the first that is structured.
        let mut seen: BTreeMap<&str, (Span, Option<Span>)> = BTreeMap::new();
        for annotation in annotations {
            let name = annotation.name.as_str();
            let own = structured(annotation).then_some(annotation.span);
            match seen.get_mut(name) {
                None => {
                    seen.insert(name, (annotation.span, own));
                }
                Some((first, first_structured)) => {
                    let clash = own.map_or(*first_structured, |_| Some(*first));
                    if let Some(clash) = clash {
                        self.report(errors::annotation_twice(annotation.span, name, clash));
                    } else if name == ROLE {
                        self.report(errors::role_twice(annotation.span, *first));
                    }
                    *first_structured = first_structured.or(own);
                }
            }
            self.annotation(annotation);
        }
    }

    fn annotation(&mut self, annotation: &Annotation) {
        let name = annotation.name.as_str();
        let lenient = annotation.is_pragma && name != ROLE;
        if WITH_STRING.contains(&name) && !lenient && annotation.string().is_none() {
            self.report(errors::annotation_string(annotation.span, name));
            return;
        }
        if let Some((_, limit)) = WITH_NUMBER.iter().find(|(known, _)| *known == name) {
            let number = annotation.int().map(fold::literal);
            if !number.is_some_and(|n| n >= BigInt::ZERO && n <= BigInt::from(*limit)) {
                self.report(errors::annotation_number(annotation.span, name, *limit));
                return;
            }
        }
        if name == "selector_size_semantics" && crate::p4info::size_semantics(annotation).is_none()
        {
            self.report(errors::size_semantics(annotation.span));
        }
        match &annotation.body {
            body if name == "match" => {
                let kinds = &self.module.types.match_kinds;
                let known = |t: &AnnotationToken| matches!(&t.kind, AnnotationTokenKind::Word(word) if kinds.contains(word));
                if !matches!(body, AnnotationBody::Tokens(tokens) if matches!(&tokens[..], [only] if known(only)))
                {
                    self.report(errors::annotation_match_kind(annotation.span));
                }
            }
            body if name == "p4runtime_translation" => {
                if !matches!(body, AnnotationBody::Tokens(tokens) if is_translation(tokens)) {
                    self.report(errors::annotation_translation(annotation.span));
                }
            }
            AnnotationBody::List(items) => items.iter().for_each(|e| self.annotation_value(e)),
            AnnotationBody::KeyValue(items) => {
                items.iter().for_each(|e| self.annotation_value(&e.value));
            }
            AnnotationBody::Tokens(_) | AnnotationBody::None => {}
        }
    }

    /// Returns the indices of the field lists that the annotations `@field_list(1, NAME, Enum.member)` give,
    /// in parentheses or brackets; a name stands for the value of that constant. Reports an index that is no
    /// constant of 32 bits.
    pub(super) fn field_lists(&mut self, annotations: &[Annotation]) -> Vec<u32> {
        const WHAT: &str = "the index of a field list";
        let mut numbers = Vec::new();
        for annotation in annotations {
            if annotation.name.as_str() != "field_list" {
                continue;
            }
            let exprs = match &annotation.body {
                AnnotationBody::Tokens(tokens) => operands(tokens),
                AnnotationBody::List(exprs) => Some(exprs.clone()),
                _ => None,
            };
            let Some(exprs) = exprs.filter(|exprs| !exprs.is_empty()) else {
                self.report(errors::not_constant(annotation.span, WHAT));
                continue;
            };
            for expr in &exprs {
                let Some(value) = self.constant_int(expr, WHAT) else {
                    continue;
                };
                match fold::to_u32(&value) {
                    Some(number) => numbers.push(number),
                    None => self.report(errors::not_constant(expr.span, WHAT)),
                }
            }
        }
        numbers
    }

    /// Checks that a value in a structured annotation is a constant string, number or truth value, and
    /// reports any other value.
    fn annotation_value(&mut self, expr: &ast::Expr) {
        let value = self.infer(expr, None);
        let constant = matches!(
            value.kind,
            ExprKind::Str(_) | ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Missing
        );
        if !constant {
            self.report(errors::annotation_value(expr.span));
        }
    }
}

/// Parses a list of numbers and (dotted) names, with commas between them, to expressions; `None` if `tokens`
/// contain anything else.
fn operands(tokens: &[AnnotationToken]) -> Option<Vec<ast::Expr>> {
    let is_comma = |token: &AnnotationToken| is_symbol(token, ",");
    tokens.split(is_comma).map(operand).collect()
}

fn operand(tokens: &[AnnotationToken]) -> Option<ast::Expr> {
    let (first, mut rest) = tokens.split_first()?;
    let kind = match &first.kind {
        AnnotationTokenKind::Int(value) => ast::ExprKind::Int(value.clone()),
        AnnotationTokenKind::Word(word) => ast::ExprKind::Path(ast::Path {
            absolute: false,
            name: ast::Name::new(word.clone(), first.span),
            span: first.span,
        }),
        AnnotationTokenKind::Str(_) | AnnotationTokenKind::Symbol(_) => return None,
    };
    let mut expr = ast::Expr {
        kind,
        span: first.span,
    };
    while let [dot, member, more @ ..] = rest {
        let AnnotationTokenKind::Word(word) = &member.kind else {
            return None;
        };
        if !is_symbol(dot, ".") {
            return None;
        }
        expr = ast::Expr {
            span: expr.span.to(member.span),
            kind: ast::ExprKind::Member {
                base: Box::new(expr),
                member: ast::Name::new(word.clone(), member.span),
            },
        };
        rest = more;
    }
    rest.is_empty().then_some(expr)
}

fn is_symbol(token: &AnnotationToken, symbol: &str) -> bool {
    matches!(&token.kind, AnnotationTokenKind::Symbol(s) if &**s == symbol)
}

/// Returns whether `tokens` are valid arguments of `@p4runtime_translation`: a URI, a comma, and either a
/// width in bits, `string` or `bit<w>`.
fn is_translation(tokens: &[AnnotationToken]) -> bool {
    use AnnotationTokenKind as T;
    let symbol = |t: &AnnotationToken, text: &str| matches!(&t.kind, T::Symbol(s) if &**s == text);
    let word = |t: &AnnotationToken, text: &str| matches!(&t.kind, T::Word(s) if &**s == text);
    let widths = BigInt::from(1)..=BigInt::from(ir::Bits::MAX_WIDTH);
    let number =
        |t: &AnnotationToken| matches!(&t.kind, T::Int(n) if widths.contains(&fold::literal(n)));
    let [uri, comma, rest @ ..] = tokens else {
        return false;
    };
    let target = match rest {
        [one] => number(one) || word(one, "string"),
        [bit, open, width, close] => {
            word(bit, "bit") && symbol(open, "<") && number(width) && symbol(close, ">")
        }
        _ => false,
    };
    matches!(uri.kind, T::Str(_)) && symbol(comma, ",") && target
}
